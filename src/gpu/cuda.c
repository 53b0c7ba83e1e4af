/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gpu/cuda_impl.h"
#include "gpu/fd_offer.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"

#define USUAL_LIBRARY "libcuda.so.1"
/* The driver on host memory alone has it (bindings/cudahost/engine/host_abi.h). */
#define HOST_SYMBOL   "tti_cuda_kernel_register"
/* Without CUDA_DEVICE_MAX_CONNECTIONS. */
#define CONNECTIONS   8

struct tti_gpu_counts tti_gpu_counts;

void tti_gpu_held(struct tti_gpu_held *out)
{
	*out = (struct tti_gpu_held){
		.gpus = atomic_load(&tti_gpu_counts.gpus),
		.memories = atomic_load(&tti_gpu_counts.memories),
		.maps = atomic_load(&tti_gpu_counts.maps),
		.fds = atomic_load(&tti_gpu_counts.fds) + tti_fd_offer_files(),
		.pinned = atomic_load(&tti_gpu_counts.pinned),
		.streams = atomic_load(&tti_gpu_counts.streams),
		.events = atomic_load(&tti_gpu_counts.events),
		.libraries = atomic_load(&tti_gpu_counts.libraries),
	};
}

/* -- Errors ------------------------------------------------------------------------ */

/* What helps, where an error says enough for that. */
static const char *remedy_of(int rc)
{
	switch (rc) {
	case TTI_CUDA_OUT_OF_MEMORY:
		return "; free some, or have fewer communicators and blocks: tutti env shows what "
		       "they take";
	case TTI_CUDA_NOT_INITIALIZED:
	case TTI_CUDA_DEINITIALIZED:
		return "; CUDA works neither in a child of fork() (start processes anew, as "
		       "\"spawn\" does) nor while the process ends";
	case TTI_CUDA_STUB_LIBRARY:
		return "; this is the toolkit's library for linking: take its folder (stubs) out "
		       "of "
		       "LD_LIBRARY_PATH";
	case TTI_CUDA_DEVICE_UNAVAILABLE:
		return "; another process has the device for itself: nvidia-smi -c DEFAULT lets "
		       "several use it";
	case TTI_CUDA_NO_DEVICE:
		return "; no GPU is visible: see nvidia-smi, CUDA_VISIBLE_DEVICES, and in a "
		       "container whether it was started with GPUs (--gpus all)";
	case TTI_CUDA_PEER_ACCESS_UNSUPPORTED:
		return "; tutti doctor says which GPUs reach each other";
	case TTI_CUDA_INVALID_IMAGE:
	case TTI_CUDA_NO_BINARY_FOR_GPU:
	case TTI_CUDA_INVALID_PTX:
	case TTI_CUDA_UNSUPPORTED_PTX_VERSION:
		return "; install a newer driver, or kernels that were built for this GPU "
		       "(TUTTI_CUDA_KERNELS)";
	case TTI_CUDA_ILLEGAL_ADDRESS:
	case TTI_CUDA_LAUNCH_FAILED:
		return "; a kernel has failed, of Tutti or of the program: compute-sanitizer names "
		       "it; the process must be started anew";
	case TTI_CUDA_NOT_PERMITTED:
		return "; a stream is being captured, or the process may not do that";
	case TTI_CUDA_SYSTEM_NOT_READY:
		return "; start nvidia-fabricmanager, which machines with NVSwitch need";
	case TTI_CUDA_SYSTEM_DRIVER_MISMATCH:
		return "; driver and kernel module are of different versions: load the module "
		       "anew, "
		       "or reboot";
	case TTI_CUDA_COMPAT_NOT_SUPPORTED:
		return "; a CUDA compatibility library is in the way, which this GPU does not "
		       "allow: take it out of LD_LIBRARY_PATH";
	case TTI_CUDA_MPS_CONNECTION_FAILED:
		return "; the MPS daemon does not answer: start it (nvidia-cuda-mps-control -d), "
		       "or "
		       "unset CUDA_MPS_PIPE_DIRECTORY";
	default:
		return "";
	}
}

static tutti_status status_of(int rc)
{
	return rc == TTI_CUDA_OUT_OF_MEMORY ? TUTTI_ENOMEM : TUTTI_ESYS;
}

/* "FUNCTION: NAME, TEXT; REMEDY" */
static void describe(const struct tti_gpu_driver *driver, int rc, const char *function, char *out,
		     size_t size)
{
	const char *name = NULL, *text = NULL;

	if (driver->call.error_name(rc, &name) || !name)
		name = "unknown error";
	if (driver->call.error_text(rc, &text) || !text)
		text = "";
	snprintf(out, size, "%s: %s (%d)%s%s%s", function, name, rc, *text ? ", " : "", text,
		 remedy_of(rc));
}

tutti_status tti_gpu_fail(const struct tti_gpu *gpu, int rc, const char *function, const char *fmt,
			  ...)
{
	char cause[640], what[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	describe(gpu->driver, rc, function, cause, sizeof(cause));
	return tti_fail(status_of(rc), "GPU %d (%s): %s: %s", gpu->facts.ordinal, gpu->facts.name,
			what, cause);
}

tutti_status tti_gpu_fail_quiet(const struct tti_gpu *gpu, int rc, const char *function,
				const char *fmt, ...)
{
	char cause[640], what[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	describe(gpu->driver, rc, function, cause, sizeof(cause));
	return tti_fail_quiet(status_of(rc), "GPU %d (%s): %s: %s", gpu->facts.ordinal,
			      gpu->facts.name, what, cause);
}

tutti_status tti_gpu_driver_fail(const struct tti_gpu_driver *driver, int rc, const char *function,
				 const char *fmt, ...)
{
	char cause[640], what[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(what, sizeof(what), fmt, args);
	va_end(args);
	describe(driver, rc, function, cause, sizeof(cause));
	return tti_fail(status_of(rc), "%s: %s", what, cause);
}

void tti_gpu_not_released(const struct tti_gpu *gpu, int rc, const char *function)
{
	char cause[640];

	describe(gpu->driver, rc, function, cause, sizeof(cause));
	tti_log(TTI_LOG_WARN, TTI_GPU, "GPU %d (%s): something is not released: %s",
		gpu->facts.ordinal, gpu->facts.name, cause);
}

void tti_gpu_give_back(const struct tti_gpu *gpu, int (*call)(void *), void *object,
		       const char *function)
{
	int rc = call(object);

	if (rc)
		rc = call(object);
	if (rc)
		tti_gpu_not_released(gpu, rc, function);
}

void tti_gpu_give_back_at(const struct tti_gpu *gpu, int (*call)(uint64_t), uint64_t at,
			  const char *function)
{
	int rc = call(at);

	if (rc)
		rc = call(at);
	if (rc)
		tti_gpu_not_released(gpu, rc, function);
}

/* -- The driver -------------------------------------------------------------------- */

/* How many functions are missing; the first few go to `names`. */
static int load_functions(struct tti_gpu_driver *driver, char *names, size_t size)
{
	static const struct {
		const char *symbol;
		size_t at;
	} table[] = {
#define X(field, symbol, arguments) { #symbol, offsetof(struct tti_cuda_functions, field) },
		TTI_CUDA_FUNCTION_MAP(X)
#undef X
	};
	size_t length = 0;
	int missing = 0;

	names[0] = '\0';
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		void *const function = dlsym(driver->library, table[i].symbol);

		/* Where there is dlsym(), pointers to functions are as pointers to data. */
		memcpy((char *)&driver->call + table[i].at, &function, sizeof(function));
		if (function)
			continue;
		if (missing++ < 4 && length < size)
			length += (size_t)snprintf(names + length, size - length, "%s%s",
						   missing > 1 ? ", " : "", table[i].symbol);
	}
	return missing;
}

/* The library is loaded: is it a driver, and does it work? */
static tutti_status ask_driver(struct tti_gpu_driver *driver)
{
	char text[640];
	int rc, missing = load_functions(driver, text, sizeof(text));
	const char *function = "cuInit";

	if (missing && !driver->call.init)
		return tti_fail_quiet(TUTTI_EINVAL, "%s is no driver of CUDA: it has no %s",
				      driver->path, text);
	if (missing)
		return tti_fail_quiet(
			TUTTI_EUNSUPPORTED,
			"%s is older than CUDA 12.0: %d functions are missing (%s%s); "
			"install a driver of version 525 or newer",
			driver->path, missing, text, missing > 4 ? ", ..." : "");
	rc = driver->call.init(0);
	if (!rc) {
		function = "cuDriverGetVersion";
		rc = driver->call.version(&driver->version);
	}
	if (!rc) {
		function = "cuDeviceGetCount";
		rc = driver->call.device_count(&driver->count);
	}
	if (rc) {
		describe(driver, rc, function, text, sizeof(text));
		return tti_fail_quiet(TUTTI_EUNSUPPORTED, "%s does not work: %s", driver->path,
				      text);
	}
	if (driver->version < TTI_CUDA_LEAST_VERSION)
		return tti_fail_quiet(TUTTI_EUNSUPPORTED,
				      "%s is of CUDA %d.%d: 12.0 is the least; install a driver of "
				      "version 525 or newer",
				      driver->path, driver->version / 1000,
				      driver->version % 1000 / 10);
	return TUTTI_OK;
}

tutti_status tti_gpu_driver_open(const char *path, struct tti_gpu_driver **out)
{
	const char *const own = path ? path : tti_params()->cuda_lib;
	const char *const name = own ? own : USUAL_LIBRARY;
	struct tti_gpu_driver *driver = tti_zalloc(sizeof(*driver));
	tutti_status status;

	*out = NULL;
	if (driver)
		driver->path = tti_strdup(name);
	if (!driver || !driver->path) {
		tti_free(driver);
		return tti_fail_quiet(TUTTI_ENOMEM, "no memory for the table of %s", name);
	}
	driver->pid = (int)getpid();
	driver->library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	if (driver->library)
		status = ask_driver(driver);
	else if (own)
		status = tti_fail_quiet(TUTTI_EINVAL, "TUTTI_CUDA_LIB=%s cannot be loaded: %s",
					name, dlerror());
	else
		status = tti_fail_quiet(TUTTI_EUNSUPPORTED,
					"there is no driver of CUDA on this machine: %s; install "
					"NVIDIA's driver, or name a library with TUTTI_CUDA_LIB",
					dlerror());
	if (status != TUTTI_OK) {
		tti_gpu_driver_close(driver);
		return status;
	}
	driver->is_host = dlsym(driver->library, HOST_SYMBOL) != NULL;
	*out = driver;
	return TUTTI_OK;
}

void tti_gpu_driver_close(struct tti_gpu_driver *driver)
{
	if (!driver)
		return;
	if (driver->library)
		dlclose(driver->library);
	tti_free(driver->path);
	tti_free(driver);
}

tutti_status tti_gpu_driver(struct tti_gpu_driver **out)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct tti_gpu_driver *driver;
	tutti_status status = TUTTI_OK;

	(void)pthread_mutex_lock(&lock);
	if (!driver)
		status = tti_gpu_driver_open(NULL, &driver);
	*out = driver;
	(void)pthread_mutex_unlock(&lock);
	if (status != TUTTI_OK)
		return tti_fail(status, "%s", tti_error_text());
	if ((*out)->pid != (int)getpid())
		return tti_fail(
			TUTTI_EUNSUPPORTED,
			"process %d is a child, by fork(), of one that uses GPUs: CUDA does "
			"not work in it; start processes anew, as \"spawn\" does",
			(int)getpid());
	return TUTTI_OK;
}

const char *tti_gpu_driver_path(const struct tti_gpu_driver *driver)
{
	return driver->path;
}

int tti_gpu_driver_version(const struct tti_gpu_driver *driver)
{
	return driver->version;
}

int tti_gpu_driver_count(const struct tti_gpu_driver *driver)
{
	return driver->count;
}

void *tti_gpu_driver_symbol(const struct tti_gpu_driver *driver, const char *name)
{
	return dlsym(driver->library, name);
}

const char *tti_gpu_launch_blocking(void)
{
	const char *value = tti_env_foreign("CUDA_LAUNCH_BLOCKING");

	return value && *value && strcmp(value, "0") != 0 ? value : NULL;
}

int tti_gpu_connections(void)
{
	const char *value = tti_env_foreign("CUDA_DEVICE_MAX_CONNECTIONS");
	const int number = value ? atoi(value) : 0;

	return number > 0 ? number : CONNECTIONS;
}

bool tti_gpu_driver_is_host(const struct tti_gpu_driver *driver)
{
	return driver->is_host;
}
