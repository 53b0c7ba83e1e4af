/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/cuda_kernel.h"

#include <string.h>

#include "gpu/cuda_impl.h"
#include "util/log.h"
#include "util/mem.h"

#define SHARED_WITHOUT_ASKING 49152u /* bytes, on all devices */

#define FATBIN_MAGIC UINT32_C(0xba55ed50)
#define PARTS_MAX    8

/* The header of a fatbin, as CUDA's tools write it. A file may have several fatbins, one after
 * another. */
struct fatbin_header {
	uint32_t magic;
	uint16_t version;
	uint16_t header_bytes;
	uint64_t body_bytes;
};

struct tti_gpu_library {
	struct tti_gpu_driver *driver;
	char *path;
	void *parts[PARTS_MAX]; /* libraries of the driver: one for each fatbin */
	int nparts;
};

static bool is_fatbin(const char *image, size_t nbytes)
{
	uint32_t magic;

	if (nbytes < sizeof(magic))
		return false;
	memcpy(&magic, image, sizeof(magic));
	return magic == FATBIN_MAGIC;
}

/* The driver is not told the length of what it loads: it believes the header. */
static tutti_status fatbin_length(const char *path, const char *image, size_t nbytes, size_t *out)
{
	struct fatbin_header header = { .header_bytes = sizeof(header) };

	if (!is_fatbin(image, nbytes))
		return tti_fail(TUTTI_EUNSUPPORTED,
				"%s has %zu bytes behind its kernels that are no kernels; "
				"make it with `make fatbin`",
				path, nbytes);
	if (nbytes >= sizeof(header))
		memcpy(&header, image, sizeof(header));
	if (header.header_bytes < sizeof(header) || header.header_bytes > nbytes ||
	    header.body_bytes > nbytes - header.header_bytes)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"%s is cut short: its last kernels have %zu bytes of %llu; "
				"copy it again, or make it with `make fatbin`",
				path, nbytes,
				(unsigned long long)header.header_bytes + header.body_bytes);
	*out = header.header_bytes + (size_t)header.body_bytes;
	return TUTTI_OK;
}

static tutti_status load_part(struct tti_gpu_library *library, const char *image)
{
	struct tti_gpu_driver *const driver = library->driver;
	tutti_status status;
	int rc;

	if (library->nparts == PARTS_MAX)
		return tti_fail(TUTTI_EUNSUPPORTED,
				"%s has more than %d fatbins; make it with `make fatbin`",
				library->path, PARTS_MAX);
	rc = driver->call.library_load(&library->parts[library->nparts], image, NULL, NULL, 0, NULL,
				       NULL, 0);
	if (!rc) {
		library->nparts++;
		tti_gpu_count(&tti_gpu_counts.libraries, 1);
		return TUTTI_OK;
	}
	status = tti_gpu_driver_fail(driver, rc, "cuLibraryLoadData", "loading kernels of %s",
				     library->path);
	return rc == TTI_CUDA_NO_BINARY_FOR_GPU || rc == TTI_CUDA_UNSUPPORTED_PTX_VERSION ||
			       rc == TTI_CUDA_INVALID_IMAGE
		       ? TUTTI_EUNSUPPORTED
		       : status;
}

tutti_status tti_gpu_library_load(struct tti_gpu_driver *driver, const void *image, size_t nbytes,
				  const char *path, struct tti_gpu_library **out)
{
	struct tti_gpu_library *library = tti_zalloc(sizeof(*library));
	tutti_status status = TUTTI_OK;

	*out = NULL;
	if (library)
		library->path = tti_strdup(path);
	if (!library || !library->path) {
		tti_free(library);
		return tti_fail(TUTTI_ENOMEM, "loading %s: out of memory", path);
	}
	library->driver = driver;
	if (!is_fatbin(image, nbytes))
		status = load_part(library, image);
	else
		for (size_t at = 0, length; at < nbytes && status == TUTTI_OK; at += length) {
			const char *const part = (const char *)image + at;

			length = 0;
			status = fatbin_length(path, part, nbytes - at, &length);
			if (status == TUTTI_OK)
				status = load_part(library, part);
		}
	if (status != TUTTI_OK) {
		tti_gpu_library_unload(library);
		return status;
	}
	*out = library;
	return TUTTI_OK;
}

static void unload_part(const struct tti_gpu_library *library, void *part)
{
	int rc = library->driver->call.library_unload(part);

	if (rc)
		rc = library->driver->call.library_unload(part);
	if (rc)
		tti_log(TTI_LOG_WARN, TTI_GPU, "cuLibraryUnload: error %d: %s stays loaded", rc,
			library->path);
	tti_gpu_count(&tti_gpu_counts.libraries, -1);
}

void tti_gpu_library_unload(struct tti_gpu_library *library)
{
	if (!library)
		return;
	while (library->nparts)
		unload_part(library, library->parts[--library->nparts]);
	tti_free(library->path);
	tti_free(library);
}

tutti_status tti_gpu_kernel(struct tti_gpu_library *library, const char *name, void **out)
{
	int rc = TTI_CUDA_NOT_FOUND;

	for (int i = 0; i < library->nparts && rc == TTI_CUDA_NOT_FOUND; i++)
		rc = library->driver->call.library_kernel(out, library->parts[i], name);
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
