/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of kernels: what programs register, by function of the host and by handle. What can run
 * is the engine's.
 *
 * Owner: kernels are of the module that registered them, until it is unregistered; those of
 * tti_cuda_kernel_register() stay.
 * Threads: one lock. */
#include "runtime/kernel.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/kernel.h"

struct tti_cudart_kernel;

struct entry {
	struct entry *next;
	const void *key;
	struct tti_cudart_kernel *kernel;
};

struct tti_cudart_kernel {
	struct tti_cudart_kernel *next; /* of the module */
	struct entry by_function, by_handle;
	const char *name; /* the module's, or the engine's */
};

struct module {
	struct tti_cudart_kernel *kernels;
};

static struct {
	pthread_mutex_t lock;
	struct entry **buckets;
	size_t nbuckets, nentries;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* -- The table, under its lock ------------------------------------------------------------ */

static struct entry **bucket_of(const void *key)
{
	const uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);

	return &table.buckets[hash >> 32 & (table.nbuckets - 1)];
}

static struct tti_cudart_kernel *find(const void *key)
{
	struct entry *at = table.nbuckets ? *bucket_of(key) : NULL;

	while (at && at->key != key)
		at = at->next;
	return at ? at->kernel : NULL;
}

/* Twice as many buckets, or the first ones. */
static bool grow(void)
{
	const size_t nold = table.nbuckets, n = nold ? 2 * nold : 1024;
	struct entry **old = table.buckets, **buckets = calloc(n, sizeof(*buckets));

	if (!buckets)
		return false;
	table.buckets = buckets;
	table.nbuckets = n;
	for (size_t at = 0; at < nold; at++)
		while (old[at]) {
			struct entry *entry = old[at], **bucket = bucket_of(entry->key);

			old[at] = entry->next;
			entry->next = *bucket;
			*bucket = entry;
		}
	free(old);
	return true;
}

static void insert(struct entry *entry, const void *key, struct tti_cudart_kernel *kernel)
{
	struct entry **bucket = bucket_of(key);

	*entry = (struct entry){ *bucket, key, kernel };
	*bucket = entry;
	table.nentries++;
}

static void take_out(struct entry *entry)
{
	struct entry **at = bucket_of(entry->key);

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	table.nentries--;
}

/* The newest comes first where one function is registered twice. */
static struct tti_cudart_kernel *add(const void *function, const char *name)
{
	struct tti_cudart_kernel *kernel = calloc(1, sizeof(*kernel));

	if (!kernel || (table.nentries + 2 > table.nbuckets && !grow())) {
		free(kernel);
		return NULL;
	}
	kernel->name = name;
	insert(&kernel->by_function, function, kernel);
	insert(&kernel->by_handle, kernel, kernel);
	return kernel;
}

/* -- Registering -------------------------------------------------------------------------- */

static void no_memory(const char *function)
{
	(void)tti_cudart_leave(
		tti_cuda_fail(TTI_CUDA_ENOMEM, "%s(): no memory to register kernels", function));
}

void **__cudaRegisterFatBinary(void *binary)
{
	struct module *module = calloc(1, sizeof(*module));

	(void)binary;
	if (!module)
		no_memory("__cudaRegisterFatBinary");
	return (void **)module;
}

void __cudaRegisterFatBinaryEnd(void **module)
{
	(void)module;
}

char __cudaInitModule(void **module)
{
	return module != NULL;
}

void __cudaRegisterFunction(void **handle, const char *function, char *device_function,
			    const char *name, int thread_limit, void *tid, void *bid, void *block,
			    void *grid, int *warp)
{
	struct module *module = (struct module *)handle;
	struct tti_cudart_kernel *kernel;

	(void)device_function, (void)thread_limit, (void)tid, (void)bid, (void)block;
	(void)grid, (void)warp;
	if (!module)
		return;
	(void)pthread_mutex_lock(&table.lock);
	kernel = add(function, name);
	if (kernel) {
		kernel->next = module->kernels;
		module->kernels = kernel;
	}
	(void)pthread_mutex_unlock(&table.lock);
	if (!kernel)
		no_memory("__cudaRegisterFunction");
}

void __cudaUnregisterFatBinary(void **handle)
{
	struct module *module = (struct module *)handle;

	if (!module)
		return;
	(void)pthread_mutex_lock(&table.lock);
	while (module->kernels) {
		struct tti_cudart_kernel *kernel = module->kernels;

		module->kernels = kernel->next;
		take_out(&kernel->by_function);
		take_out(&kernel->by_handle);
		free(kernel);
	}
	(void)pthread_mutex_unlock(&table.lock);
	free(module);
}

void __cudaRegisterVar(void **module, char *variable, char *address, const char *name, int ext,
		       size_t nbytes, int constant, int global)
{
	(void)module, (void)variable, (void)address, (void)name, (void)ext, (void)nbytes;
	(void)constant, (void)global;
}

void __cudaRegisterManagedVar(void **module, void **variable, char *address, const char *name,
			      int ext, size_t nbytes, int constant, int global)
{
	(void)module, (void)variable, (void)address, (void)name, (void)ext, (void)nbytes;
	(void)constant, (void)global;
}

void __cudaRegisterHostVar(void **module, const char *name, char *variable, size_t nbytes)
{
	(void)module, (void)name, (void)variable, (void)nbytes;
}

void *__cudaRegisterUnifiedTable(void **module, void *unified)
{
	(void)module, (void)unified;
	return NULL;
}

int tti_cuda_kernel_register(const void *function, const char *name, tti_cuda_kernel_fn run,
			     const size_t *arg_bytes, size_t nargs)
{
	return tti_cudart_leave(tti_cuda_runnable_add("tti_cuda_kernel_register", function, name,
						      run, arg_bytes, nargs));
}

/* -- Finding ------------------------------------------------------------------------------ */

/* Under the lock. One that no module has is there from when it is first looked for. NULL: it is not
 * known, or there is no memory. */
static struct tti_cudart_kernel *find_any(const void *function)
{
	struct tti_cudart_kernel *kernel = find(function);
	const struct tti_cuda_runnable *runs;

	if (kernel || !function)
		return kernel;
	runs = tti_cuda_runnable_find(function, NULL);
	return runs ? add(function, runs->name) : NULL;
}

bool tti_cudart_kernel_find(const void *function, const struct tti_cuda_runnable **out)
{
	const struct tti_cudart_kernel *kernel;

	*out = NULL;
	(void)pthread_mutex_lock(&table.lock);
	kernel = find_any(function);
	if (kernel)
		*out = tti_cuda_runnable_find(kernel->by_function.key, kernel->name);
	(void)pthread_mutex_unlock(&table.lock);
	return kernel;
}

/* C++'s names as they are written, where the process can tell. */
static char *demangle(const char *name)
{
	char *(*ask)(const char *, char *, size_t *, int *);
	void *library = NULL;
	char *text = NULL;
	int status = 0;

	*(void **)&ask = dlsym(RTLD_DEFAULT, "__cxa_demangle");
	if (!ask) { /* or where libraries are loaded without their names, as Python does */
		library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
		if (library)
			*(void **)&ask = dlsym(library, "__cxa_demangle");
	}
	if (ask)
		text = ask(name, NULL, NULL, &status);
	if (library)
		(void)dlclose(library);
	return text ? text : strdup(name);
}

/* As people know it; of one that is not known, what is known of its address. NULL: no memory. */
static char *name_of(const void *function)
{
	const struct tti_cudart_kernel *kernel;
	char *name = NULL, *text;
	Dl_info at;

	(void)pthread_mutex_lock(&table.lock);
	kernel = find_any(function);
	if (kernel && kernel->name)
		name = strdup(kernel->name);
	(void)pthread_mutex_unlock(&table.lock);
	if (!name && dladdr(function, &at) && at.dli_sname)
		name = strdup(at.dli_sname);
	if (!name) {
		if (asprintf(&name, "at %p, which was never registered,", function) < 0)
			return NULL;
		return name;
	}
	text = demangle(name);
	free(name);
	return text;
}

int tti_cudart_kernel_refuse(const char *caller, const void *function, bool is_told)
{
	char *name = name_of(function);
	const int error = tti_cuda_kernel_refused(name ? name : "?", caller, is_told);

	free(name);
	return error;
}

/* -- Handles ------------------------------------------------------------------------------ */

static int get_handle(const char *caller, tti_cu_kernel *out, const void *function)
{
	if (!out || !function)
		return tti_cudart_null(caller, out ? "kernel" : "place for the handle");
	(void)pthread_mutex_lock(&table.lock);
	*out = find_any(function);
	(void)pthread_mutex_unlock(&table.lock);
	return *out ? 0 : tti_cudart_kernel_refuse(caller, function, true);
}

int tti___cudaGetKernel(tti_cu_kernel *out, const void *function)
{
	return get_handle("__cudaGetKernel", out, function);
}

int tti_cudaGetKernel(tti_cu_kernel *out, const void *function)
{
	return get_handle("cudaGetKernel", out, function);
}

int tti_cudaGetFuncBySymbol(tti_cu_kernel *out, const void *function)
{
	return get_handle("cudaGetFuncBySymbol", out, function);
}

/* The name as the compiler has it. */
int tti_cudaFuncGetName(const char **out, const void *function)
{
	struct tti_cudart_kernel *kernel;

	if (!out)
		return tti_cudart_null("cudaFuncGetName", "place for the name");
	*out = NULL;
	(void)pthread_mutex_lock(&table.lock);
	kernel = find_any(function);
	if (kernel)
		*out = kernel->name;
	(void)pthread_mutex_unlock(&table.lock);
	return *out ? 0 : tti_cudart_kernel_refuse("cudaFuncGetName", function, true);
}
