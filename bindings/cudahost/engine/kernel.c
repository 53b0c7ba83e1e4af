/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/kernel.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/device.h"

struct skipped {
	struct skipped *next;
	char name[];
};

/* The kernels in the order in which they were launched first. */
static struct {
	pthread_mutex_t lock;
	struct skipped *first;
} skipped = { .lock = PTHREAD_MUTEX_INITIALIZER };

static atomic_bool is_unseen;

/* False: it was there. Under the lock. */
static bool note(const char *kernel)
{
	struct skipped **at = &skipped.first;
	const size_t nbytes = strlen(kernel) + 1;

	while (*at && strcmp((*at)->name, kernel) != 0)
		at = &(*at)->next;
	if (*at)
		return false;
	*at = malloc(sizeof(**at) + nbytes);
	if (*at) {
		(*at)->next = NULL;
		memcpy((*at)->name, kernel, nbytes);
	}
	return true;
}

int tti_cuda_kernel_refused(const char *kernel, const char *caller, bool is_told)
{
	const int error = tti_cuda_fail(
		TTI_CUDA_EFUNCTION,
		"%s(): kernel %s cannot run: it is code for a GPU, and the devices are host "
		"memory; compile it for the host with cuda_on_host.h, or use a GPU",
		caller, kernel);

	pthread_mutex_lock(&skipped.lock);
	if (note(kernel))
		fprintf(stderr, "tutti: %s\n", tti_cuda_error_text());
	pthread_mutex_unlock(&skipped.lock);
	if (!is_told)
		atomic_store(&is_unseen, true);
	return error;
}

int tti_cuda_kernel_missed(const char *kernel, const char *caller)
{
	return tti_cuda_kernel_refused(kernel, caller, false);
}

void tti_cuda_kernel_seen(void)
{
	atomic_store(&is_unseen, false);
}

static void judge(int status, void *nothing)
{
	(void)nothing;
	if (status || !atomic_load(&is_unseen))
		return;
	fflush(NULL);
	fputs("tutti: the program ends with status 1, not 0, because it never asked for the error "
	      "of kernels that did not run:\n",
	      stderr);
	pthread_mutex_lock(&skipped.lock);
	for (const struct skipped *at = skipped.first; at; at = at->next)
		fprintf(stderr, "tutti:     %s\n", at->name);
	pthread_mutex_unlock(&skipped.lock);
	fflush(stderr);
	_exit(1);
}

/* Before what the program registers, so that it is called behind that. The library is linked so
 * that it is never unloaded. */
__attribute__((constructor)) static void watch_exit(void)
{
	(void)on_exit(judge, NULL);
}
