/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether communicators have GPUs: then Tutti's kernels carry out their calls, on the streams and in
 * the memory of the program, and Tutti's library talks to CUDA's driver itself. Otherwise calls move
 * memory of the host when their turn on a stream has come (stream.c).
 *
 * TUTTI_NCCL_KERNELS says which; by itself it is kernels where the GPUs are real. */
#include "binding.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef int (*get_context_device_fn)(int *out);
typedef int (*record_fn)(cudaEvent_t event, cudaStream_t stream);
typedef int (*allocate_fn)(void **out, size_t nbytes);
typedef int (*free_fn)(void *memory);

/* Numbers of CUDA. */
#define NOT_SUPPORTED 801

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

static void *find_in_driver(const char *name)
{
	void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *symbol = library ? dlsym(library, name) : NULL;

	if (library)
		(void)dlclose(library); /* the program has it still */
	return symbol;
}

/* Of the program's runtime, or of the driver that it uses. */
static void *find_either(const char *of_runtime, const char *of_driver)
{
	return tti_nccl_find_runtime() ? tti_nccl_find_symbol(of_runtime)
				       : find_in_driver(of_driver);
}

/* -- A process without a runtime that can be found ---------------------------------------------- */

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

/* -- Memory ---------------------------------------------------------------------------------- */

/* What ncclMemAlloc() has of GPUs. */
struct allocation {
	struct allocation *next;
	void *memory;
};

static struct {
	pthread_mutex_t lock;
	struct allocation *first;
} allocations = { .lock = PTHREAD_MUTEX_INITIALIZER };

int tti_nccl_device_alloc(void **out, size_t nbytes, const char **function)
{
	const allocate_fn allocate = (allocate_fn)find_either("cudaMalloc", "cuMemAlloc_v2");
	struct allocation *allocation = calloc(1, sizeof(*allocation));
	int error = NOT_SUPPORTED;

	*function = "cudaMalloc()";
	if (allocation && allocate)
		error = allocate(out, nbytes);
	if (error) {
		free(allocation);
		return error;
	}
	allocation->memory = *out;
	pthread_mutex_lock(&allocations.lock);
	allocation->next = allocations.first;
	allocations.first = allocation;
	pthread_mutex_unlock(&allocations.lock);
	return 0;
}

bool tti_nccl_device_free(void *memory, int *error)
{
	const free_fn give_back = (free_fn)find_either("cudaFree", "cuMemFree_v2");
	struct allocation **at = &allocations.first, *found;

	pthread_mutex_lock(&allocations.lock);
	while (*at && (*at)->memory != memory)
		at = &(*at)->next;
	found = *at;
	if (found)
		*at = found->next;
	pthread_mutex_unlock(&allocations.lock);
	if (!found)
		return false;
	free(found);
	*error = give_back ? give_back(memory) : NOT_SUPPORTED;
	return true;
}
