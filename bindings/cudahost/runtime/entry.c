/* SPDX-License-Identifier: BSD-3-Clause */
/* Versions, functions of the driver, the profiler. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "runtime/runtime.h"

static void *driver;
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

/* NVIDIA's driver knows nothing of this runtime's memory and streams. The engine is below Tutti's
 * alone. */
static void *take_if_ours(void *library)
{
	if (library && !dlsym(library, "tti_cuda_device_count")) {
		(void)dlclose(library);
		return NULL;
	}
	return library;
}

/* The one that is loaded, or is beside this library, or that the loader finds. */
static void find_driver(void)
{
	Dl_info here;
	char path[PATH_MAX];

	driver = take_if_ours(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD));
	if (!driver && dladdr((void *)&driver_once, &here) && here.dli_fname) {
		const char *slash = strrchr(here.dli_fname, '/');
		const int nbytes = slash ? (int)(slash - here.dli_fname) : 1;

		(void)snprintf(path, sizeof(path), "%.*s/libcuda.so.1", nbytes,
			       slash ? here.dli_fname : ".");
		driver = take_if_ours(dlopen(path, RTLD_LAZY));
	}
	if (!driver)
		driver = take_if_ours(dlopen("libcuda.so.1", RTLD_LAZY));
}

static void *get_driver(void)
{
	(void)pthread_once(&driver_once, find_driver);
	return driver;
}

/* -- Versions ----------------------------------------------------------------------------- */

int tti_cudaRuntimeGetVersion(int *out)
{
	if (!out)
		return tti_cudart_null("cudaRuntimeGetVersion", "version");
	*out = TTI_CUDART_VERSION;
	return 0;
}

int tti_cudaDriverGetVersion(int *out)
{
	int (*ask)(int *) = NULL;

	if (!out)
		return tti_cudart_null("cudaDriverGetVersion", "version");
	if (get_driver())
		*(void **)&ask = dlsym(get_driver(), "cuDriverGetVersion");
	if (!ask || ask(out))
		*out = TTI_CUDART_VERSION;
	return 0;
}

/* -- Functions ---------------------------------------------------------------------------- */

/* The numbers of cudaDriverEntryPointQueryResult. */
enum { FOUND = 0, NOT_FOUND = 1, VERSION = 2 };

/* *out is NULL where there is no such function, which is no error. */
static int find_entry(const char *symbol, unsigned version, unsigned long long flags, void **out,
		      int *result)
{
	int (*ask)(const char *, void **, int, unsigned long long, int *);
	int error = 0;

	*out = NULL;
	*result = NOT_FOUND;
	if (!get_driver())
		return 0;
	*(void **)&ask = dlsym(get_driver(), "cuGetProcAddress_v2");
	if (ask)
		error = ask(symbol, out, (int)version, flags, result);
	else
		*out = dlsym(get_driver(), symbol);
	if (error)
		*result = VERSION;
	else if (*out)
		*result = FOUND;
	return error;
}

static int get_entry(const char *function, const char *symbol, void **out, unsigned version,
		     unsigned long long flags, int *result)
{
	int error, mine;

	if (!symbol || !out)
		return tti_cudart_null(function, symbol ? "function" : "symbol");
	if (flags > 3)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s(): flags are %#llx: pass 0, 1 or 2",
				     function, flags);
	error = find_entry(symbol, version, flags, out, &mine);
	if (result)
		*result = mine;
	return error;
}

int tti_cudaGetDriverEntryPoint(const char *symbol, void **out, unsigned long long flags,
				int *result)
{
	return get_entry("cudaGetDriverEntryPoint", symbol, out, TTI_CUDART_VERSION, flags, result);
}

int tti_cudaGetDriverEntryPoint_ptsz(const char *symbol, void **out, unsigned long long flags,
				     int *result)
{
	return get_entry("cudaGetDriverEntryPoint", symbol, out, TTI_CUDART_VERSION,
			 flags ? flags : 2, result);
}

int tti_cudaGetDriverEntryPointByVersion(const char *symbol, void **out, unsigned version,
					 unsigned long long flags, int *result)
{
	return get_entry("cudaGetDriverEntryPointByVersion", symbol, out, version, flags, result);
}

int tti_cudaGetDriverEntryPointByVersion_ptsz(const char *symbol, void **out, unsigned version,
					      unsigned long long flags, int *result)
{
	return get_entry("cudaGetDriverEntryPointByVersion", symbol, out, version,
			 flags ? flags : 2, result);
}

/* -- The profiler ------------------------------------------------------------------------- */

int tti_cudaProfilerStart(void)
{
	return 0;
}

int tti_cudaProfilerStop(void)
{
	return 0;
}
