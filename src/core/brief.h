/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_BRIEF_H
#define TTI_CORE_BRIEF_H

/* Short calls. What they cost is what is done before the first message, so the last few are
 * kept with all that does not depend on buffers: what is right of their arguments, which
 * program runs them, where chunks lie. The same call again is found by its arguments and run.
 *
 * Nothing of it ever changes: programs stay for the life of the communicator, and calls with
 * operators of the user's own are not found again.
 *
 * Owner: the communicator. Threads: the executing one's; find() is for who
 * makes calls, and looks only while no other thread executes. */

#include "engine/engine.h"
#include "tutti/tutti.h"

struct tti_args;
struct tti_comm;

#define TTI_BRIEFS_KEPT 8
#define TTI_BRIEF_BYTES 16384 /* of a vector; exchanges: one message; transfers: any */

struct tti_brief_key {
	tutti_collective coll; /* TUTTI_COLLECTIVE_COUNT: nothing is kept here */
	tutti_type type;
	tutti_op op; /* as it is run */
	int root;
	bool is_send;
	size_t count;
};

struct tti_brief {
	struct tti_straight way; /* not of a transfer */
	bool is_transfer;
	uint64_t tag; /* of a transfer */
	/* Of a call's buffers: bytes; where recv is to send if they are one. */
	size_t sends, recvs;
	uintptr_t in_place;
	uint64_t shape, part; /* of its signature */
	const char *algorithm;
};

struct tti_briefs {
	struct tti_brief_key key[TTI_BRIEFS_KEPT];
	struct tti_brief at[TTI_BRIEFS_KEPT];
	struct tti_brief other; /* the last one that is not to be found again */
	uint32_t newest;        /* of key[] */
};

/* The call kept for such arguments, which are right: to be run now, by this thread. NULL: there
 * is none, or something may be wrong, or the communicator does not take calls or is busy. */
struct tti_brief *tti_brief_find(struct tti_comm *comm, const struct tti_args *args);

/* The call for such arguments, which were found right, kept from now on; *out is NULL if it does
 * not go straight. `slice_bytes` as of its program; `part` of its signature. */
TUTTI_CHECKED tutti_status tti_brief_get(struct tti_comm *comm, const struct tti_args *args,
					 struct tti_bound *bound, size_t slice_bytes,
					 struct tti_brief **out);

/* The same of one send or receive, whose messages have that tag; NULL also if there is no
 * memory for it. */
struct tti_brief *tti_brief_get_transfer(struct tti_comm *comm, const struct tti_args *args,
					 uint64_t tag);

/* NULL is fine. */
void tti_briefs_free(struct tti_briefs *briefs);

#endif
