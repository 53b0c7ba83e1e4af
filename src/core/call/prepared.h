/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_PREPARED_H
#define TTI_CORE_PREPARED_H

/* Prepared calls: all that does not depend on a call's buffers, worked out once. What is right of
 * its arguments, which program runs it and in what steps, and, where each chunk is one message,
 * where the chunks lie. The communicator keeps the last few, so the same call again is found by
 * its arguments and run; a persistent call is one that its user keeps.
 *
 * Programs stay for the life of the communicator, so nothing of it changes. Calls with operators of
 * the user's own, with counts for each rank and handoffs are prepared anew each time.
 *
 * Owner: the communicator, of those it keeps; else the caller, tti_prepared_release(). Threads: the
 * executing one's; find() is for who makes calls, and looks only while no other thread
 * executes. */

#include "engine/engine.h"
#include "tutti/tutti.h"

struct tti_args;
struct tti_comm;

#define TTI_PREPARED_KEPT 24
#define TTI_SHORT_BYTES   16384 /* of a vector that is run in order; exchanges: one message */

struct tti_prepared {
	struct tti_executable
		*bound;       /* NULL: there is no program, but one for its list of transfers */
	size_t nbytes, slice; /* of the whole vector; of a step */
	/* Another one, run in place of it if all ranks' buffers can be addressed. NULL: none, or that
	 * of a handoff, which is found by its sides. */
	struct tti_executable *memory;
	bool is_forced; /* the memory program: every call asks whether they can */
	bool maps;      /* memory that is mapped is run so */
	bool copies;    /* ordinary memory is, by the kernel */
	const char *algorithm;
	uint64_t packed, part; /* tti_args_pack(); of its signature */
	/* Which programs it has and how they cut the data: as ranks compare it (part holds it), and
	 * as tti_program_split() has it, to be named. 0: none. */
	uint64_t choice, split;
	size_t count;    /* as ranks compare it                          */
	bool is_rooted;  /* it names a root that all ranks know          */
	bool is_checked; /* and they meet before it, with TUTTI_CHECK=1 */
	/* Of a call's buffers: bytes; where recv is to send if they are one. */
	size_t sends, recvs;
	uintptr_t in_place;
	/* Run in the order of its program, places known: */
	bool is_short;
	struct tti_short way;
	unsigned ways; /* that a send or a handoff may go (coll/choose.h) */
	/* A send or receive, whose program is its own: */
	bool is_transfer;
	struct tti_extent extent;
};

/* What a call is found by: tti_args_pack() with its operator as it is run, and whether it is in
 * place, where that makes a difference. All bits set: nothing is kept here. */
struct tti_prepared_key {
	uint64_t what;
	size_t count;
	const char *algo; /* of its arguments */
};

struct tti_prepared_calls {
	/* The newest first, as it is looked for first. */
	struct tti_prepared_key key[TTI_PREPARED_KEPT];
	struct tti_prepared *call[TTI_PREPARED_KEPT]; /* each one of at[] */
	struct tti_prepared at[TTI_PREPARED_KEPT];
	struct tti_prepared other; /* the last one that is not to be found again */
};

/* The call kept for such arguments, which are right: to be run now, by this thread. NULL: there
 * is none, or something may be wrong, or the communicator does not take calls or is busy. */
struct tti_prepared *tti_prepared_find(struct tti_comm *comm, const struct tti_args *args);

/* The call for such arguments, which were found right: one that is kept, or kept from now on, or
 * valid until the next one. */
TUTTI_CHECKED tutti_status tti_prepared_get(struct tti_comm *comm, const struct tti_args *args,
					    struct tti_prepared **out);

/* The same for the caller to keep, as long as the communicator lives. */
TUTTI_CHECKED tutti_status tti_prepared_make(struct tti_comm *comm, const struct tti_args *args,
					     struct tti_prepared *out);
/* Zeroed is fine. */
void tti_prepared_release(struct tti_prepared *call);

/* NULL is fine. */
void tti_prepared_free_all(struct tti_prepared_calls *calls);

#endif
