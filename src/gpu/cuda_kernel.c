/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/cuda_kernel.h"

#include <string.h>

#include "gpu/cuda_impl.h"
#include "util/log.h"
#include "util/mem.h"

#define SHARED_WITHOUT_ASKING 49152u /* bytes, on all devices */

struct tti_gpu_library {
	struct tti_gpu_driver *driver;
	void *handle;
	char *path;
};

tutti_status tti_gpu_library_load(struct tti_gpu_driver *driver, const void *image,
				  const char *path, struct tti_gpu_library **out)
{
	struct tti_gpu_library *library = tti_zalloc(sizeof(*library));
	tutti_status status;
	int rc;

	*out = NULL;
	if (library)
		library->path = tti_strdup(path);
	if (!library || !library->path) {
		tti_free(library);
		return tti_fail(TUTTI_ENOMEM, "loading %s: out of memory", path);
	}
	library->driver = driver;
	rc = driver->call.library_load(&library->handle, image, NULL, NULL, 0, NULL, NULL, 0);
	if (!rc) {
		tti_gpu_count(&tti_gpu_counts.libraries, 1);
		*out = library;
		return TUTTI_OK;
	}
	status =
		tti_gpu_driver_fail(driver, rc, "cuLibraryLoadData", "loading kernels of %s", path);
	tti_free(library->path);
	tti_free(library);
	return rc == TTI_CUDA_NO_BINARY_FOR_GPU || rc == TTI_CUDA_UNSUPPORTED_PTX_VERSION ||
			       rc == TTI_CUDA_INVALID_IMAGE
		       ? TUTTI_EUNSUPPORTED
		       : status;
}

void tti_gpu_library_unload(struct tti_gpu_library *library)
{
	int rc;

	if (!library)
		return;
	rc = library->driver->call.library_unload(library->handle);
	if (rc)
		rc = library->driver->call.library_unload(library->handle);
	if (rc)
		tti_log(TTI_LOG_WARN, TTI_GPU, "cuLibraryUnload: error %d: %s stays loaded", rc,
			library->path);
	tti_gpu_count(&tti_gpu_counts.libraries, -1);
	tti_free(library->path);
	tti_free(library);
}

tutti_status tti_gpu_kernel(struct tti_gpu_library *library, const char *name, void **out)
{
	const int rc = library->driver->call.library_kernel(out, library->handle, name);

	if (rc == TTI_CUDA_NOT_FOUND)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"%s has no kernel %s: it is of another release of Tutti; "
				"TUTTI_CUDA_KERNELS names the file",
				library->path, name);
	if (rc)
		return tti_gpu_driver_fail(library->driver, rc, "cuLibraryGetKernel",
					   "kernel %s of %s", name, library->path);
	return TUTTI_OK;
}

/* Load it for good. A driver that has no function for that does so to tell what it takes. */
static int load_now(const struct tti_gpu *gpu, void *function, const char **name)
{
	void *const symbol = tti_gpu_driver_symbol(gpu->driver, "cuFuncLoad");
	int (*finish)(void *function);
	int blocks, rc;

	*name = "cuFuncLoad";
	if (symbol) {
		memcpy(&finish, &symbol, sizeof(symbol));
		return finish(function);
	}
	*name = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
	rc = gpu->driver->call.resident(&blocks, function, 32, 0);
	return rc == TTI_CUDA_NOT_SUPPORTED ? TTI_CUDA_SUCCESS : rc;
}

tutti_status tti_gpu_kernel_prepare(struct tti_gpu *gpu, void *kernel, uint32_t shared_bytes)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	const char *function = "cuKernelGetFunction";
	struct tti_gpu_scope scope;
	void *loaded;
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = call->kernel_function(&loaded, kernel);
	if (!rc)
		rc = load_now(gpu, loaded, &function);
	if (!rc && shared_bytes > SHARED_WITHOUT_ASKING) {
		function = "cuKernelSetAttribute";
		rc = call->kernel_set(TTI_CUDA_FUNCTION_SHARED_BYTES, (int)shared_bytes, kernel,
				      gpu->device);
	}
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, function,
				    "loading a kernel with %u bytes of shared memory",
				    shared_bytes);
	return TUTTI_OK;
}

tutti_status tti_gpu_kernel_resident(struct tti_gpu *gpu, void *kernel, uint32_t nthreads,
				     uint32_t shared_bytes, int *out)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	const char *function = "cuKernelGetFunction";
	struct tti_gpu_scope scope;
	void *loaded;
	int rc;

	*out = 0;
	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = call->kernel_function(&loaded, kernel);
	if (!rc) {
		function = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
		rc = call->resident(out, loaded, (int)nthreads, shared_bytes);
	}
	tti_gpu_leave(gpu, &scope);
	if (rc == TTI_CUDA_NOT_SUPPORTED)
		return tti_fail_quiet(TUTTI_EUNSUPPORTED,
				      "the driver does not say how many blocks run at a time");
	if (rc)
		return tti_gpu_fail(gpu, rc, function,
				    "how many blocks of %u threads run at a time", nthreads);
	return TUTTI_OK;
}

tutti_status tti_gpu_launch(struct tti_gpu *gpu, void *kernel, uint32_t nblocks, uint32_t nthreads,
			    uint32_t shared_bytes, const void *arg, void *stream)
{
	void *args[] = { (void *)(uintptr_t)arg, NULL };
	struct tti_gpu_scope scope;
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, false, &scope));
	rc = gpu->driver->call.launch(kernel, nblocks, 1, 1, nthreads, 1, 1, shared_bytes, stream,
				      args, NULL);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuLaunchKernel",
				    "launching %u blocks of %u threads with %u bytes of shared "
				    "memory",
				    nblocks, nthreads, shared_bytes);
	return TUTTI_OK;
}
