/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_DEVICE_TURNS_H
#define TESTS_SUPPORT_DEVICE_TURNS_H

/* Launches as tti_dev_host_run() runs them, but all their threads are stacks of the one thread that
 * calls: one runs until it has to wait, then another does, in an order that is drawn. So hundreds of
 * threads need no cores, and take the same turns each time. TSan sees what no barrier, release or
 * acquire orders between them, as it does of threads, and finds the same each time.
 *
 * Threads: any. */

#include <stdbool.h>

#include "device/host_run.h"

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
