/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_CALLS_H
#define TESTS_SUPPORT_CALLS_H

/* One collective call whose result is known: made and held against the serial result
 * on every rank. */

#include <stdbool.h>
#include <stddef.h>

#include "tutti/inspect.h"

struct call {
	tutti_collective coll;
	tutti_type type;
	tutti_op op;
	size_t count;
	int root;
	bool in_place;
};

/* Fills buffers of its own; what is wrong is CHECKed (world.h). */
void call_and_check(const struct call *call, tutti_comm_t comm, int rank, int n);

/* The same with its buffers in `memory`, of call_bytes(). */
size_t call_bytes(const struct call *call, int n);
void call_and_check_in(const struct call *call, tutti_comm_t comm, int rank, int n, char *memory);

#endif
