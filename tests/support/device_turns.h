/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_DEVICE_TURNS_H
#define TESTS_SUPPORT_DEVICE_TURNS_H

/* Launches as tti_dev_host_run() runs them, but all their threads are stacks of the one thread that
 * calls: one runs until it has to wait, then another does, in an order that is drawn. So hundreds of
 * threads need no cores, and take the same turns each time. What depends on the order in which memory
 * is seen is left to tti_dev_host_run().
 *
 * Threads: any. */

#include <stdbool.h>

#include "device/host_run.h"
#include "util/sanitizer.h"

/* Whether there are turns: TSan takes each stack for a thread. */
#if TTI_HAS_FEATURE(thread_sanitizer) || defined(__SANITIZE_THREAD__)
#define DEVICE_TURNS 0
#else
#define DEVICE_TURNS 1
#endif

struct device_turns {
	int nlines; /* of launches: those of a line run one after the other, with equally many
		     * blocks */
	/* The next launch of a line, when the one before has ended; false: there is none. */
	bool (*next)(void *self, int line, struct tti_dev_launch *out);
	void (*idle)(void *self); /* nobody could go on for some time */
	void *self;
};

void device_turns_run(const struct device_turns *turns, const struct tti_dev_host *host);

#endif
