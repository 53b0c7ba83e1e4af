/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_WORLD_H
#define TESTS_SUPPORT_WORLD_H

/* A world: ranks that are threads of the test, each with its communicator.
 *
 * cmocka's assertions jump and so belong to the main thread alone: ranks use CHECK,
 * which prints, counts and goes on; world_run() gives the count. */

#include <stdbool.h>

#include "tutti/tutti.h"

struct world {
	int n;
	const char *transport; /* NULL: auto                           */
	const char *algo;      /* NULL: chosen                         */
	bool sockets;          /* a real bootstrap over loopback       */
	int timeout_ms;
	int reproducible;
	const int *devices; /* [n]: the GPU of each rank, -1: none; NULL: no rank has one */
};

/* What each rank does. */
typedef void (*world_fn)(tutti_comm_t comm, int rank, int n, void *arg);

/* Run fn on every rank; communicators are destroyed afterwards. How many checks
 * failed. */
int world_run(const struct world *world, world_fn fn, void *arg);

/* Checks that have failed so far, for tests with threads of their own. */
int world_failures(void);

/* Until a thread of this process is in a call on it; false: none was for half a minute. */
bool world_await_call(tutti_comm_t comm);

/* One failed check of any thread. Always false. */
bool world_failed(const char *file, int line, const char *what, const char *more);

#define CHECK(condition) \
	((condition) ? true : world_failed(__FILE__, __LINE__, #condition, tutti_last_error(NULL)))
#define CHECK_OK(call) CHECK((call) == TUTTI_OK)

/* For ranks: the sum of all their values; that this one is `rank` of `n`; a sum of more than a
 * slot holds, so that it goes through many. */
int world_sum_over(tutti_comm_t comm, int value);
void world_check_place(tutti_comm_t comm, int rank, int n);
void world_check_large(tutti_comm_t comm, int n);

#endif
