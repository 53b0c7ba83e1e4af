/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_COUNTS_H
#define TTI_CORE_COUNTS_H

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

/* Look at the counts that this rank needs, and fill in what follows from them: of calls
 * whose counts are the same on all ranks args->count, the sum, and args->root, a hash.
 * TUTTI_EINVAL: an array is NULL, or what it says is more than memory has. */
TUTTI_CHECKED tutti_status tti_counts_take_in(const struct tti_comm *comm, struct tti_args *args);

/* Elements from `first` on, counted from the buffer's begin. */
struct tti_range {
	size_t first, count;
};

/* What this rank has for, or gets from, `peer` (itself included) in a call by pairs, or in
 * an all to all; false: nothing, not even an empty message. */
bool tti_pair_range(const struct tti_comm *comm, const struct tti_args *args, int peer,
		    bool is_send, struct tti_range *out);

/* Where all that this rank sends, or receives, begins and ends. */
void tti_counts_bounds(const struct tti_comm *comm, const struct tti_args *args, bool is_send,
		       struct tti_range *out);

/* Whether anything that this rank sends lies where it receives. */
bool tti_counts_overlap(const struct tti_comm *comm, const struct tti_args *args);
/* What a rank sends to itself is what it receives from itself; with TUTTI_CHECK=1, nothing is
 * received into one place from two ranks. */
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
