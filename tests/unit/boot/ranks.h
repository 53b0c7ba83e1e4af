/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_BOOT_RANKS_H
#define TESTS_BOOT_RANKS_H

/* Threads as ranks of the bootstrap, for its tests. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "boot/watch/watch.h"
#include "util/clock.h"
#include "util/error.h"

struct rank {
	int rank, nranks;
	struct tti_boot *boot;
	void *arg;
	tutti_status status;
	char text[512];
};

/* What a rank does; a status that is not OK is kept with its text. */
typedef tutti_status (*rank_fn)(struct rank *rank);

struct rank_thread {
	struct rank rank;
	rank_fn run;
	pthread_t id;
};

static inline void *rank_main(void *self)
{
	struct rank_thread *thread = self;

	thread->rank.status = thread->run(&thread->rank);
	if (thread->rank.status != TUTTI_OK)
		(void)snprintf(thread->rank.text, sizeof(thread->rank.text), "%s",
			       tti_error_text());
	return NULL;
}

static inline void ranks_start(struct rank_thread *threads, int n, rank_fn run, void *arg)
{
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 1 << 19);
	for (int i = 0; i < n; i++) {
		threads[i].rank.rank = i;
		threads[i].rank.nranks = n;
		threads[i].rank.arg = arg;
		threads[i].run = run;
		assert_int_equal(pthread_create(&threads[i].id, &attr, rank_main, &threads[i]), 0);
	}
	pthread_attr_destroy(&attr);
}

static inline void ranks_join(struct rank_thread *threads, int n)
{
	for (int i = 0; i < n; i++)
		pthread_join(threads[i].id, NULL);
}

static inline void ranks_ok(const struct rank_thread *threads, int n)
{
	for (int i = 0; i < n; i++)
		if (threads[i].rank.status != TUTTI_OK)
			fail_msg("rank %d of %d: %s: %s", i, n,
				 tutti_status_name(threads[i].rank.status), threads[i].rank.text);
}

/* Run as n ranks, all of which must succeed. */
static inline void ranks_run(int n, rank_fn run, void *arg)
{
	struct rank_thread *threads = calloc((size_t)n, sizeof(*threads));

	assert_non_null(threads);
	ranks_start(threads, n, run, arg);
	ranks_join(threads, n);
	ranks_ok(threads, n);
	free(threads);
}

static inline tutti_status rank_connect(struct rank *rank, const tutti_unique_id *ids, int nids,
					int64_t timeout_ms, const _Atomic int *stop)
{
	const struct tti_boot_config config = { .rank = rank->rank,
						.nranks = rank->nranks,
						.ids = ids,
						.nids = nids,
						.timeout_ms = timeout_ms,
						.stop = stop };

	return tti_boot_connect(&config, &rank->boot);
}

#define CHECK_OK(call)                                                                 \
	do {                                                                           \
		const tutti_status check_status = (call);                              \
		if (check_status != TUTTI_OK)                                          \
			fail_msg("%s: %s: %s", #call, tutti_status_name(check_status), \
				 tti_error_text());                                    \
	} while (0)

#endif
