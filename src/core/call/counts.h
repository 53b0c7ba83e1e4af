/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CALL_COUNTS_H
#define TTI_CORE_CALL_COUNTS_H

/* Calls with a count for each rank: what is wrong with them, which elements go between two
 * ranks, and a copy of the counts for calls that are queued.
 *
 * Owner: a copy is counted, tti_counts_drop(). Threads: any may take and drop; else pure. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "coll/collective.h"
#include "tutti/inspect.h"

struct tti_args;
struct tti_comm;

struct tti_counts {
	_Atomic int users;
	size_t at[]; /* send counts, send displacements, receive counts, receive displacements */
};

/* Check the counts that this rank needs. If all ranks have the same counts, set args->count to
 * their sum and args->root to their hash. TUTTI_EINVAL: an array is NULL, or counts more than
 * memory has. */
TUTTI_CHECKED tutti_status tti_counts_take_in(const struct tti_comm *comm, struct tti_args *args);

/* Elements from `first` on, counted from the buffer's begin. */
struct tti_range {
	size_t first, count;
};

/* The elements that this rank sends to, or receives from, `peer` (itself included) in a call by
 * pairs or an all to all; false: there is no message, not even an empty one. */
bool tti_pair_range(const struct tti_comm *comm, const struct tti_args *args, int peer,
		    bool is_send, struct tti_range *out);

/* Where all that this rank sends, or receives, begins and ends. */
void tti_counts_bounds(const struct tti_comm *comm, const struct tti_args *args, bool is_send,
		       struct tti_range *out);

/* Whether anything that this rank sends lies where it receives. */
bool tti_counts_overlap(const struct tti_comm *comm, const struct tti_args *args);
/* TUTTI_EINVAL: a rank sends itself another number than it receives from itself, or, with
 * TUTTI_CHECK=1, would receive from two ranks into one place. */
TUTTI_CHECKED tutti_status tti_counts_check(const struct tti_comm *comm,
					    const struct tti_args *args);

/* Whether send and receive buffer are one. */
bool tti_counts_in_place(const struct tti_comm *comm, const struct tti_args *args);

/* The arrays become a copy of the user's. */
TUTTI_CHECKED tutti_status tti_counts_keep(const struct tti_comm *comm, struct tti_args *args);
/* NULL is fine, here and there. */
struct tti_counts *tti_counts_take(struct tti_counts *counts);
void tti_counts_drop(struct tti_counts *counts);

#endif
