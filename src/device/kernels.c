/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/kernels.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device/families.h"
#include "device/kernels_host.h"
#include "device/pass.h"
#include "gpu/cuda_kernel.h"
#include "tutti/types.h"
#include "util/error.h"
#include "util/file.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"

/* Programs that have Tutti in them, as its own, are beside the folder of libraries. */
#ifndef TUTTI_LIB_FROM_BIN
#define TUTTI_LIB_FROM_BIN "../lib"
#endif
#define FATBIN_FILE "tutti/tutti_kernels.fatbin"
#define HOST_FILE   "tutti/libtutti_kernels_host.so"
#define FATBIN_MOST ((size_t)256 << 20)
/* The driver on host memory does not read the code of a library: kernels have been registered. */
#define HOST_IMAGE  ".version 7.0\n"

enum {
#define X(family) OF_##family,
	TTI_DEV_FAMILY_MAP(X)
#undef X
		COPY, /* the kernel that only moves */
	KERNELS,
	DEVICES = 64, /* of a driver that are told apart; more are prepared again and again */
};

_Static_assert(sizeof(struct tti_dev_launch) <= 4096, "parameters of a kernel");

struct tti_kernels {
	struct tti_gpu_driver *driver;
	struct tti_gpu_library *library;
	void *kernel[KERNELS];
	uint64_t prepared; /* a bit for each device */
	struct tti_kernels *next;
};

/* Of all drivers of the process, mostly one; kept for ever. */
static struct {
	pthread_mutex_t lock;
	struct tti_kernels *first;
} loaded = { .lock = PTHREAD_MUTEX_INITIALIZER };

static const char *name_of(int kernel)
{
	static const char *const names[KERNELS] = {
#define X(family) [OF_##family] = "tutti_run_" #family,
		TTI_DEV_FAMILY_MAP(X)
#undef X
			[COPY] = "tutti_run_copy",
	};

	return names[kernel];
}

/* Of a type, -1: of what only moves. */
static int kernel_of(int type)
{
	static const int kernels[TUTTI_TYPE_COUNT] = {
#define X(name, family) [TUTTI_##name] = OF_##family,
		TTI_DEV_TYPE_MAP(X)
#undef X
	};

	tti_assert(type < TUTTI_TYPE_COUNT);
	return type < 0 ? COPY : kernels[type];
}

/* -- Where they are ---------------------------------------------------------------- */

/* The folder of this library, or of the program that it is part of, with a / at its end. */
static void own_folder(char *out, size_t size, bool *is_program)
{
	struct link_map *map = NULL;
	ssize_t length = 0;
	Dl_info self;

	*is_program = true;
	if (dladdr1(&loaded, &self, (void **)&map, RTLD_DL_LINKMAP) && map && map->l_name[0]) {
		*is_program = false;
		length = snprintf(out, size, "%s", map->l_name);
	} else { /* whose name in that list is empty */
		length = readlink("/proc/self/exe", out, size);
	}
	if (length < 0 || (size_t)length >= size)
		length = 0;
	while (length && out[length - 1] != '/')
		length--;
	out[length] = '\0';
}

tutti_status tti_kernels_path(bool is_host, char **out)
{
	const char *const own = tti_params()->cuda_kernels;
	char folder[PATH_MAX];
	size_t size;
	bool is_program;

	if (own) {
		*out = tti_strdup(own);
		return *out ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "path of %s: out of memory", own);
	}
	own_folder(folder, sizeof(folder), &is_program);
	size = strlen(folder) + sizeof(TUTTI_LIB_FROM_BIN "/") + sizeof(HOST_FILE);
	*out = tti_alloc(size);
	if (!*out)
		return tti_fail(TUTTI_ENOMEM, "path of kernels for GPUs: out of memory");
	snprintf(*out, size, "%s%s%s", folder, is_program ? TUTTI_LIB_FROM_BIN "/" : "",
		 is_host ? HOST_FILE : FATBIN_FILE);
	return TUTTI_OK;
}

/* -- Loading ----------------------------------------------------------------------- */

static tutti_status load_fatbin(struct tti_kernels *kernels, const char *path)
{
	size_t nbytes = 0;
	char *image = NULL;
	tutti_status status;

	if (access(path, R_OK) < 0)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"there are no kernels for GPUs: %s: %m; build Tutti where nvcc is, "
				"or name the file with TUTTI_CUDA_KERNELS",
				path);
	TTI_TRY(tti_file_read(path, "kernels for GPUs", FATBIN_MOST, &image, &nbytes));
	if (!nbytes || nbytes > FATBIN_MOST)
		status = tti_fail(TUTTI_EUNSUPPORTED,
				  "kernels for GPUs: %s has %zu bytes: it is no file of kernels",
				  path, nbytes);
	else
		status = tti_gpu_library_load(kernels->driver, image, nbytes, path,
					      &kernels->library);
	tti_free(image);
	return status;
}

/* What the driver on host memory is handed. */
static tutti_status register_host(const struct tti_kernels *kernels, const char *path)
{
	struct tti_host_driver driver;
	int (*add)(const struct tti_host_driver *);
	void *library, *symbol;
	int error;

	symbol = tti_gpu_driver_symbol(kernels->driver, "tti_cuda_kernel_register");
	memcpy(&driver.add, &symbol, sizeof(symbol));
	symbol = tti_gpu_driver_symbol(kernels->driver, "tti_cuda_reach");
	memcpy(&driver.reach, &symbol, sizeof(symbol));
	symbol = tti_gpu_driver_symbol(kernels->driver, "tti_cuda_kernel_self");
	memcpy(&driver.self, &symbol, sizeof(symbol));
	symbol = tti_gpu_driver_symbol(kernels->driver, "tti_cuda_kernel_join");
	memcpy(&driver.join, &symbol, sizeof(symbol));
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"there are no kernels for GPUs that are host memory: %s; name the "
				"library with TUTTI_CUDA_KERNELS",
				dlerror());
	symbol = dlsym(library, TTI_KERNELS_HOST_REGISTER);
	if (!symbol)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"kernels for GPUs that are host memory: %s has no "
				"%s(): it is no library of kernels, or of another release",
				path, TTI_KERNELS_HOST_REGISTER);
	memcpy(&add, &symbol, sizeof(symbol));
	error = add(&driver);
	if (error)
		return tti_fail(TUTTI_ESYS, "registering kernels of %s: error %d of CUDA", path,
				error);
	return TUTTI_OK;
}

static tutti_status load(struct tti_kernels *kernels)
{
	const bool is_host = tti_gpu_driver_is_host(kernels->driver);
	tutti_status status;
	char *path;

	TTI_TRY(tti_kernels_path(is_host, &path));
	if (is_host) {
		status = register_host(kernels, path);
		if (status == TUTTI_OK)
			status = tti_gpu_library_load(kernels->driver, HOST_IMAGE,
						      sizeof(HOST_IMAGE), path, &kernels->library);
	} else {
		status = load_fatbin(kernels, path);
	}
	for (int i = 0; i < KERNELS && status == TUTTI_OK; i++)
		status = tti_gpu_kernel(kernels->library, name_of(i), &kernels->kernel[i]);
	if (status == TUTTI_OK)
		tti_log(TTI_LOG_INFO, TTI_GPU, "kernels of %s", path);
	tti_free(path);
	return status;
}

/* Onto a device, all of them, since CUDA loads one at its first launch otherwise, and may wait for
 * kernels that run then: these wait for others. Under the lock. */
static tutti_status prepare(struct tti_kernels *kernels, struct tti_gpu *gpu)
{
	const int ordinal = tti_gpu_ordinal(gpu);
	const uint64_t bit = ordinal < DEVICES ? UINT64_C(1) << ordinal : 0;

	if (kernels->prepared & bit)
		return TUTTI_OK;
	for (int i = 0; i < KERNELS; i++)
		TTI_TRY(tti_gpu_kernel_prepare(gpu, kernels->kernel[i],
					       tti_dev_shared_bytes(TTI_DEV_OPERANDS_MAX)));
	kernels->prepared |= bit;
	return TUTTI_OK;
}

/* Under the lock. */
static tutti_status find(struct tti_gpu_driver *driver, struct tti_kernels **out)
{
	struct tti_kernels *kernels = loaded.first;
	tutti_status status;

	while (kernels && kernels->driver != driver)
		kernels = kernels->next;
	*out = kernels;
	if (kernels)
		return TUTTI_OK;
	kernels = tti_zalloc(sizeof(*kernels));
	if (!kernels)
		return tti_fail(TUTTI_ENOMEM, "kernels for GPUs: out of memory");
	kernels->driver = driver;
	status = load(kernels);
	if (status != TUTTI_OK) {
		tti_gpu_library_unload(kernels->library);
		tti_free(kernels);
		return status;
	}
	kernels->next = loaded.first;
	loaded.first = kernels;
	*out = kernels;
	return TUTTI_OK;
}

tutti_status tti_kernels_get(struct tti_gpu *gpu, struct tti_kernels **out)
{
	tutti_status status;

	(void)pthread_mutex_lock(&loaded.lock);
	status = find(tti_gpu_driver_of(gpu), out);
	if (status == TUTTI_OK)
		status = prepare(*out, gpu);
	(void)pthread_mutex_unlock(&loaded.lock);
	if (status != TUTTI_OK)
		*out = NULL;
	return status;
}

/* -- Launching --------------------------------------------------------------------- */

tutti_status tti_kernels_resident(struct tti_kernels *kernels, struct tti_gpu *gpu,
				  uint32_t nthreads, uint32_t *out)
{
	uint32_t fewest = UINT32_MAX;

	*out = UINT32_MAX; /* threads of the host all get their turn */
	if (tti_gpu_driver_is_host(kernels->driver))
		return TUTTI_OK;
	for (int i = 0; i < KERNELS; i++) {
		int blocks;

		TTI_TRY(tti_gpu_kernel_resident(gpu, kernels->kernel[i], nthreads,
						tti_dev_shared_bytes(TTI_DEV_OPERANDS_MAX),
						&blocks));
		if ((uint32_t)blocks < fewest)
			fewest = (uint32_t)blocks;
	}
	*out = fewest * (uint32_t)tti_gpu_facts(gpu)->multiprocessors;
	return TUTTI_OK;
}

tutti_status tti_kernels_launch(struct tti_kernels *kernels, struct tti_gpu *gpu, int type,
				const struct tti_dev_launch *launch, uint32_t nthreads,
				void *stream)
{
	tti_assert(nthreads >= 1 && nthreads <= TTI_DEV_THREADS_MAX);
	for (uint32_t i = 0; i < launch->ncalls; i++)
		tti_assert(type < 0 || !launch->call[i].by_chunk);
	return tti_gpu_launch(gpu, kernels->kernel[kernel_of(type)],
			      launch->ncalls * launch->nblocks, nthreads,
			      tti_dev_shared_bytes(launch->noperands), launch, stream);
}
