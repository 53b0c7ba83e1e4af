/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether communicators have GPUs: then Tutti's kernels carry out their calls, on the streams and in
 * the memory of the program, and Tutti's library talks to CUDA's driver itself. Otherwise calls move
 * memory of the host when their turn on a stream has come (stream.c).
 *
 * TUTTI_NCCL_KERNELS says which; by itself it is kernels where the GPUs are real. */
#include "binding.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <string.h>

typedef int (*get_context_device_fn)(int *out);
typedef int (*record_fn)(cudaEvent_t event, cudaStream_t stream);

/* What TUTTI_NCCL_KERNELS says: "auto", "0" or "1". */
static char get_setting(void)
{
	tutti_param_info info;

	for (int index = 0; tutti_param_get(index, &info) == TUTTI_OK; index++)
		if (!strcmp(info.variable, "TUTTI_NCCL_KERNELS"))
			return *info.value;
	return 'a';
}

bool tti_nccl_has_kernels(void)
{
	static _Atomic char kept;
	char setting = atomic_load(&kept);

	if (!setting) {
		setting = get_setting();
		atomic_store(&kept, setting);
	}
	if (setting != 'a')
		return setting == '1';
	return tti_nccl_find_runtime() ? tti_nccl_has_gpus() : tti_nccl_gpu_is_in_use();
}

/* -- A process without a runtime that can be found ---------------------------------------------- */

static void *find_in_driver(const char *name)
{
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *symbol = library ? dlsym(library, name) : NULL;

	if (library)
		(void)dlclose(library); /* the program has it still */
	return symbol;
}

int tti_nccl_context_device(void)
{
	const get_context_device_fn get = (get_context_device_fn)find_in_driver("cuCtxGetDevice");
	int device = 0;

	return get && get(&device) == 0 ? device : 0;
}

int tti_nccl_driver_record(cudaEvent_t event, cudaStream_t stream)
{
	const record_fn record = (record_fn)find_in_driver("cuEventRecord");

	return record ? record(event, stream) : -1;
}
