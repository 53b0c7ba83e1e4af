/* SPDX-License-Identifier: BSD-3-Clause */
/* Modules and libraries of kernels. Code of a GPU cannot run here. It can be loaded, and what is
 * asked for by name has a handle, so that programs begin. The code is not read: any name is found,
 * and runs if tti_cuda_kernel_register() has it. A launch of another is an error that names it.
 * A function is loaded onto a device when it is first launched there or asked about: as with CUDA's
 * lazy loading, that may wait for all that devices do (drain.h).
 *
 * A library is a module, and a kernel of a library is a function, as CUDA lets both be passed. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/driver.h"
#include "engine/drain.h"
#include "engine/held.h"
#include "engine/kernel.h"
#include "engine/launch.h"

struct function {
	struct function *next;
	struct module *module;
	_Atomic uint64_t loaded; /* onto which devices, a bit for each */
	char name[];
};

struct module {
	struct module *next;
	struct function *functions;
};

static struct module *modules; /* the newest first */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* -- Code ---------------------------------------------------------------------------------- */

#define FATBIN_WRAPPER 0x466243b1u
#define FATBIN         0xba55ed50u

/* The beginning of an ELF file (a cubin), of a fat binary or of PTX, which is text. */
static bool is_code(const unsigned char head[4])
{
	uint32_t magic;

	memcpy(&magic, head, sizeof(magic));
	return !memcmp(head, "\177ELF", 4) || magic == FATBIN_WRAPPER || magic == FATBIN ||
	       (head[0] && strchr("./ \t\r\n", head[0]));
}

static int check_code(const void *code, const char *what)
{
	const int bad = tti_driver_need(code, what);

	if (bad || is_code(code))
		return bad;
	return tti_cuda_fail(CUDA_ERROR_INVALID_IMAGE, "%s: this is no cubin, fat binary or PTX",
			     what);
}

static int check_file(const char *path, const char *what)
{
	unsigned char head[4] = { 0 };
	int fd, bad = tti_driver_need(path, what);
	ssize_t n;

	if (bad)
		return bad;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return tti_cuda_fail(CUDA_ERROR_FILE_NOT_FOUND, "%s: %s: %m", what, path);
	n = read(fd, head, sizeof(head));
	close(fd);
	if (n == sizeof(head) && is_code(head))
		return TTI_CUDA_OK;
	return tti_cuda_fail(CUDA_ERROR_INVALID_IMAGE, "%s: %s is no cubin, fat binary or PTX",
			     what, path);
}

/* -- Modules ------------------------------------------------------------------------------- */

static int load(struct module **out)
{
	struct module *module = calloc(1, sizeof(*module));

	if (!module)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "no memory for a module");
	pthread_mutex_lock(&lock);
	module->next = modules;
	modules = module;
	pthread_mutex_unlock(&lock);
	tti_cuda_held_add(TTI_CUDA_HELD_modules, 1);
	*out = module;
	return TTI_CUDA_OK;
}

/* NULL: there is none. The lock is held. */
static struct module **find(const void *handle)
{
	struct module **at = &modules;

	while (*at && *at != handle)
		at = &(*at)->next;
	return *at ? at : NULL;
}

static int no_module(const void *handle)
{
	return tti_cuda_fail(TTI_CUDA_EHANDLE,
			     "%p is no module or library, or one that was unloaded", handle);
}

static int unload(const void *handle)
{
	struct module *module = NULL, **at;

	pthread_mutex_lock(&lock);
	at = find(handle);
	if (at) {
		module = *at;
		*at = module->next;
	}
	pthread_mutex_unlock(&lock);
	if (!module)
		return no_module(handle);
	tti_cuda_held_add(TTI_CUDA_HELD_modules, -1);
	for (struct function *f = module->functions, *next; f; f = next) {
		next = f->next;
		free(f);
	}
	free(module);
	return TTI_CUDA_OK;
}

static struct function *make_function(struct module *module, const char *name)
{
	const size_t nbytes = strlen(name) + 1;
	struct function *f = malloc(sizeof(*f) + nbytes);

	if (!f)
		return NULL;
	memcpy(f->name, name, nbytes);
	atomic_init(&f->loaded, 0);
	f->module = module;
	f->next = module->functions;
	module->functions = f;
	return f;
}

static int get_function(const void *handle, const char *name, struct function **out)
{
	struct module **at;
	struct function *f = NULL;
	int bad = tti_driver_need(name, "the name of a kernel");

	if (!bad)
		bad = tti_driver_need(out, "the handle of a kernel");
	if (bad)
		return bad;
	pthread_mutex_lock(&lock);
	at = find(handle);
	for (f = at ? (*at)->functions : NULL; f && strcmp(f->name, name) != 0; f = f->next)
		;
	if (at && !f)
		f = make_function(*at, name);
	pthread_mutex_unlock(&lock);
	if (!at)
		return no_module(handle);
	if (!f)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "no memory for kernel %s", name);
	*out = f;
	return TTI_CUDA_OK;
}

/* The function, which lives as long as its module. */
static int find_function(const void *handle, struct function **out)
{
	struct function *f = NULL;

	pthread_mutex_lock(&lock);
	for (struct module *at = modules; at && !f; at = at->next)
		for (f = at->functions; f && f != handle; f = f->next)
			;
	pthread_mutex_unlock(&lock);
	*out = f;
	if (f)
		return TTI_CUDA_OK;
	return tti_cuda_fail(TTI_CUDA_EHANDLE, "%p is no kernel, or its module was unloaded",
			     handle);
}

CUresult cuModuleLoad(CUmodule *out, const char *path)
{
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = check_file(path, __func__);
	return tti_driver_result(bad ? bad : load((struct module **)out));
}

CUresult cuModuleLoadData(CUmodule *out, const void *code)
{
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = check_code(code, __func__);
	return tti_driver_result(bad ? bad : load((struct module **)out));
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *code, unsigned noptions,
			    CUjit_option *options, void **values)
{
	(void)noptions, (void)options, (void)values;
	return cuModuleLoadData(out, code);
}

CUresult cuModuleLoadFatBinary(CUmodule *out, const void *code)
{
	return cuModuleLoadData(out, code);
}

CUresult cuModuleUnload(CUmodule module)
{
	const int bad = tti_driver_begin();

	return tti_driver_result(bad ? bad : unload(module));
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name)
{
	const int bad = tti_driver_begin();

	return tti_driver_result(bad ? bad : get_function(module, name, (struct function **)out));
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *out)
{
	const int bad = tti_driver_need(out, __func__);

	if (!bad)
		*out = CU_MODULE_LAZY_LOADING;
	return tti_driver_result(bad);
}

/* -- Libraries ----------------------------------------------------------------------------- */

CUresult cuLibraryLoadData(CUlibrary *out, const void *code, CUjit_option *jit, void **jit_values,
			   unsigned njit, CUlibraryOption *options, void **values,
			   unsigned noptions)
{
	int bad = tti_driver_begin();

	(void)jit, (void)jit_values, (void)njit, (void)options, (void)values, (void)noptions;
	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = check_code(code, __func__);
	return tti_driver_result(bad ? bad : load((struct module **)out));
}

CUresult cuLibraryLoadFromFile(CUlibrary *out, const char *path, CUjit_option *jit,
			       void **jit_values, unsigned njit, CUlibraryOption *options,
			       void **values, unsigned noptions)
{
	int bad = tti_driver_begin();

	(void)jit, (void)jit_values, (void)njit, (void)options, (void)values, (void)noptions;
	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = check_file(path, __func__);
	return tti_driver_result(bad ? bad : load((struct module **)out));
}

CUresult cuLibraryUnload(CUlibrary library)
{
	return cuModuleUnload((CUmodule)library);
}

CUresult cuLibraryGetKernel(CUkernel *out, CUlibrary library, const char *name)
{
	return cuModuleGetFunction((CUfunction *)out, (CUmodule)library, name);
}

CUresult cuLibraryGetModule(CUmodule *out, CUlibrary library)
{
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(out, __func__);
	pthread_mutex_lock(&lock);
	const bool is_there = find(library);

	pthread_mutex_unlock(&lock);
	if (!bad && !is_there)
		bad = no_module(library);
	if (!bad)
		*out = (CUmodule)library;
	return tti_driver_result(bad);
}

/* -- Functions ----------------------------------------------------------------------------- */

static int begin_function(const void *handle, const void *out, const char *what,
			  struct function **f)
{
	int bad = tti_driver_begin();

	if (!bad)
		bad = tti_driver_need(out, what);
	return bad ? bad : find_function(handle, f);
}

CUresult cuKernelGetFunction(CUfunction *out, CUkernel kernel)
{
	struct function *f;
	const int bad = begin_function(kernel, out, __func__, &f);

	if (!bad)
		*out = (CUfunction)f;
	return tti_driver_result(bad);
}

CUresult cuKernelGetLibrary(CUlibrary *out, CUkernel kernel)
{
	struct function *f;
	const int bad = begin_function(kernel, out, __func__, &f);

	if (!bad)
		*out = (CUlibrary)f->module;
	return tti_driver_result(bad);
}

CUresult cuFuncGetModule(CUmodule *out, CUfunction function)
{
	struct function *f;
	const int bad = begin_function(function, out, __func__, &f);

	if (!bad)
		*out = (CUmodule)f->module;
	return tti_driver_result(bad);
}

CUresult cuFuncGetName(const char **out, CUfunction function)
{
	struct function *f;
	const int bad = begin_function(function, out, __func__, &f);

	if (!bad)
		*out = f->name;
	return tti_driver_result(bad);
}

CUresult cuKernelGetName(const char **out, CUkernel kernel)
{
	return cuFuncGetName(out, (CUfunction)kernel);
}

/* Onto the device of the thread's context. */
static void load_function(struct function *f)
{
	const uint64_t bit = (uint64_t)1 << tti_cuda_device_current();

	if (!(atomic_fetch_or(&f->loaded, bit) & bit))
		tti_cuda_drain_all();
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *out, CUfunction function)
{
	struct function *f;
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = begin_function(function, out, __func__, &f);
	if (!bad)
		*out = atomic_load(&f->loaded) >> tti_cuda_device_current() & 1
			       ? CU_FUNCTION_LOADING_STATE_LOADED
			       : CU_FUNCTION_LOADING_STATE_UNLOADED;
	return tti_driver_result(bad);
}

CUresult cuFuncLoad(CUfunction function)
{
	struct function *f;
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = begin_function(function, function, __func__, &f);
	if (!bad)
		load_function(f);
	return tti_driver_result(bad);
}

int tti_driver_kernel(CUfunction function, CUfunction other, const char *caller,
		      const struct tti_cuda_runnable **out)
{
	struct function *f;
	const int bad = find_function(function ? function : other, &f);

	if (bad)
		return bad;
	load_function(f);
	*out = tti_cuda_runnable_find(NULL, f->name);
	if (*out)
		return TTI_CUDA_OK;
	/* The runtime's number for it, 98, is none of the driver's. */
	tti_cuda_kernel_missed(f->name, caller);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}
