/* SPDX-License-Identifier: BSD-3-Clause */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/device.h"
#include "engine/launch.h"

enum { NBUCKETS = 256 };

/* Never changed once it is in the table. */
struct entry {
	struct tti_cuda_runnable kernel;
	const void *function;
	struct entry *next_of_function, *next_of_name;
};

static struct {
	pthread_mutex_t lock;
	struct entry *by_function[NBUCKETS], *by_name[NBUCKETS]; /* the newest first */
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct entry **bucket_of_function(const void *function)
{
	const uint64_t hash = (uint64_t)(uintptr_t)function * UINT64_C(0x9e3779b97f4a7c15);

	return &table.by_function[hash >> 56];
}

static struct entry **bucket_of_name(const char *name)
{
	uint32_t hash = 2166136261u; /* FNV-1a */

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 16777619u;
	return &table.by_name[(hash ^ hash >> 16) % NBUCKETS];
}

/* Under the lock. */
static const struct entry *find(const void *function, const char *name)
{
	const struct entry *at = function ? *bucket_of_function(function) : NULL;

	while (at && at->function != function)
		at = at->next_of_function;
	if (at || !name)
		return at;
	at = *bucket_of_name(name);
	while (at && strcmp(at->kernel.name, name) != 0)
		at = at->next_of_name;
	return at;
}

const struct tti_cuda_runnable *tti_cuda_runnable_find(const void *function, const char *name)
{
	const struct entry *found;

	pthread_mutex_lock(&table.lock);
	found = find(function, name);
	pthread_mutex_unlock(&table.lock);
	return found ? &found->kernel : NULL;
}

static bool is_same(const struct entry *entry, const struct entry *other)
{
	return entry->function == other->function && entry->kernel.run == other->kernel.run &&
	       entry->kernel.nargs == other->kernel.nargs &&
	       strcmp(entry->kernel.name, other->kernel.name) == 0 &&
	       memcmp(entry->kernel.arg_bytes, other->kernel.arg_bytes,
		      entry->kernel.nargs * sizeof(size_t)) == 0;
}

static void insert(struct entry *entry, bool has_name)
{
	struct entry **of_function = bucket_of_function(entry->function);
	struct entry **of_name = bucket_of_name(entry->kernel.name);

	if (has_name) {
		entry->next_of_name = *of_name;
		*of_name = entry;
	}
	if (entry->function) {
		entry->next_of_function = *of_function;
		*of_function = entry;
	}
}

/* The sizes and the name are behind the entry. */
static struct entry *create(const void *function, const char *name, tti_cuda_kernel_fn run,
			    const size_t *arg_bytes, size_t nargs)
{
	const size_t sizes = nargs * sizeof(*arg_bytes), nbytes = strlen(name) + 1;
	struct entry *entry = calloc(1, sizeof(*entry) + sizes + nbytes);

	if (!entry)
		return NULL;
	if (sizes)
		memcpy(entry + 1, arg_bytes, sizes);
	memcpy((char *)(entry + 1) + sizes, name, nbytes);
	entry->function = function;
	entry->kernel = (struct tti_cuda_runnable){
		.name = (const char *)(entry + 1) + sizes,
		.run = run,
		.nargs = nargs,
		.arg_bytes = (const size_t *)(entry + 1),
		.is_of_program = function != NULL,
	};
	return entry;
}

static int check(const char *caller, const void *function, const char *name, tti_cuda_kernel_fn run,
		 const size_t *arg_bytes, size_t nargs)
{
	size_t all = 0;

	if ((!function && !name) || !run || (nargs && !arg_bytes))
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s(): the %s is NULL: pass an address",
				     caller,
				     !run                  ? "function that runs the kernel"
				     : nargs && !arg_bytes ? "list of sizes"
							   : "name of the kernel");
	for (size_t at = 0; at < nargs; at++) {
		if (arg_bytes[at] && arg_bytes[at] <= TTI_CUDA_PARAMS_MOST - all) {
			all += arg_bytes[at];
			continue;
		}
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%s(): kernel %s has a parameter %zu of %zu bytes, behind "
				     "%zu: each has 1 at least, and all have %zu at most",
				     caller, name ? name : "?", at, arg_bytes[at], all,
				     TTI_CUDA_PARAMS_MOST);
	}
	return 0;
}

int tti_cuda_runnable_add(const char *caller, const void *function, const char *name,
			  tti_cuda_kernel_fn run, const size_t *arg_bytes, size_t nargs)
{
	const int error = check(caller, function, name, run, arg_bytes, nargs);
	const struct entry *old;
	struct entry *entry;

	if (error)
		return error;
	entry = create(function, name ? name : "?", run, arg_bytes, nargs);
	if (!entry)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "%s(): no memory for kernel %s", caller,
				     name ? name : "?");
	pthread_mutex_lock(&table.lock);
	old = find(function, name);
	if (!old || !is_same(old, entry)) {
		insert(entry, name);
		entry = NULL;
	}
	pthread_mutex_unlock(&table.lock);
	free(entry); /* it was there */
	return 0;
}
