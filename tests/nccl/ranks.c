/* SPDX-License-Identifier: BSD-3-Clause */
#include "nccl/ranks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#define RANKS_MOST 16

struct crowd {
	int n;
	ranks_fn fn;
	void *arg;
	ncclUniqueId id;
};

struct rank {
	const struct crowd *crowd;
	int rank;
	pthread_t thread;
};

static _Atomic int failures;
static pthread_barrier_t barrier;
static _Thread_local bool has_ended;
static void (*prepare)(int rank);

int ranks_failures(void)
{
	return atomic_load(&failures);
}

bool ranks_failed(const char *file, int line, const char *what)
{
	atomic_fetch_add(&failures, 1);
	(void)fprintf(stderr, "%s:%d: %s: \"%s\"\n", file, line, what, ncclGetLastError(NULL));
	return false;
}

void ranks_prepare(void (*fn)(int rank))
{
	prepare = fn;
}

void ranks_ended(void)
{
	has_ended = true;
}

void ranks_meet(void)
{
	pthread_barrier_wait(&barrier);
}

static void *run_rank(void *self)
{
	const struct rank *rank = self;
	const struct crowd *crowd = rank->crowd;
	ncclComm_t comm = NULL;

	has_ended = false;
	if (prepare)
		prepare(rank->rank);
	if (!CHECK_OK(ncclCommInitRank(&comm, crowd->n, crowd->id, rank->rank)))
		return NULL;
	crowd->fn(comm, rank->rank, crowd->n, crowd->arg);
	if (!has_ended)
		CHECK_OK(ncclCommDestroy(comm));
	return NULL;
}

int ranks_run(int n, ranks_fn fn, void *arg)
{
	struct crowd crowd = { .n = n, .fn = fn, .arg = arg };
	struct rank ranks[RANKS_MOST];
	const int before = ranks_failures();

	if (!CHECK(n <= RANKS_MOST) || !CHECK_OK(ncclGetUniqueId(&crowd.id)))
		return 1;
	pthread_barrier_init(&barrier, NULL, (unsigned)n);
	for (int rank = 0; rank < n; rank++) {
		ranks[rank] = (struct rank){ .crowd = &crowd, .rank = rank };
		CHECK(pthread_create(&ranks[rank].thread, NULL, run_rank, &ranks[rank]) == 0);
	}
	for (int rank = 0; rank < n; rank++)
		pthread_join(ranks[rank].thread, NULL);
	pthread_barrier_destroy(&barrier);
	return ranks_failures() - before;
}
