/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_CREW_H
#define TESTS_SUPPORT_CREW_H

/* A crew: ranks that are processes, for tests in which one dies or stops. What a
 * rank finds goes into memory shared with the test; the parent never joins. */

#include <stdint.h>
#include <sys/types.h>

#include "tutti/tutti.h"

#define CREW_MOST 64

struct crew_rank {
	pid_t pid;
	_Atomic int ready;         /* communicator is up                          */
	_Atomic int64_t calls;     /* finished calls                             */
	_Atomic int status;        /* of the first call that failed               */
	_Atomic int64_t failed_ns; /* when it returned, CLOCK_MONOTONIC; 0: not  */
	_Atomic int done;          /* communicator destroyed, about to exit        */
	char text[512];            /* tutti_last_error() of that call             */
};

struct crew {
	int n;
	const char *transport;
	int timeout_ms;
	/* Called first in the process of a rank, before the library; NULL: nothing. */
	void (*prepare)(struct crew *crew, int rank);
	/* Called over and over until it fails or *stop is set. */
	tutti_status (*call)(struct crew *crew, int rank, tutti_comm_t comm);
	_Atomic int stop;
	_Atomic int has_id;
	tutti_unique_id id;
	struct crew_rank rank[CREW_MOST];
};

/* In shared memory, zeroed. */
struct crew *crew_create(int n, const char *transport,
			 tutti_status (*call)(struct crew *, int, tutti_comm_t));
/* Fork all ranks and wait until all communicators are up; 0, or -1 after 2 minutes. */
int crew_start(struct crew *crew);
/* Wait for all to exit but `except` (-1: none), which is killed once the others have; so are
 * those that have not after timeout_ms. How many these were. */
int crew_wait(struct crew *crew, int timeout_ms, int except);
void crew_free(struct crew *crew);

int64_t crew_now_ns(void);
void crew_nap_us(int us);

#endif
