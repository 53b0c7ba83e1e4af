/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_PREPARE_PREPARED_H
#define TTI_CORE_PREPARE_PREPARED_H

/* Prepared calls: all that does not depend on a call's buffers, worked out once: which arguments
 * are right, which program runs the call and in what steps, and, where each chunk is one
 * message, where the chunks lie. The communicator keeps the last few, so that the same call is
 * found by its arguments and run at once; a persistent call is one that its user keeps.
 *
 * Programs live as long as the communicator, so a prepared call stays valid. Calls with
 * operators of the user's own or with counts for each rank, and handoffs, are prepared anew each
 * time.
 *
 * Owner: the communicator, of the calls that it keeps; else the caller, tti_prepared_release().
 * Threads: the executing one; find() is for the thread that makes calls, and looks only while no
 * other thread executes any. */

#include "engine/engine.h"
#include "tutti/tutti.h"

struct tti_args;
struct tti_comm;

#define TTI_PREPARED_KEPT 24
#define TTI_SHORT_BYTES   16384 /* of a vector that is run in order; exchanges: one message */

struct tti_prepared {
	/* NULL: there is no program, but one for its list of transfers. */
	struct tti_executable *executable;
	size_t nbytes, slice; /* of the whole vector; of a step */
	/* The memory program, which runs in place of the other one if the buffers of all ranks
	 * can be addressed. NULL: none, or that of a handoff, which is found by its sides. */
	struct tti_executable *memory;
	bool is_forced; /* the memory program: every call asks whether it can run */
	bool maps;      /* it runs on memory that is mapped */
	bool copies;    /* it runs on ordinary memory, which the kernel copies */
	const char *algorithm;
	uint64_t packed, part; /* tti_args_pack(); of its signature */
	/* Which programs it has and how they cut the data: a hash that is in `part`, and
	 * tti_program_split(), for texts. 0: none. */
	uint64_t choice, split;
	size_t count;    /* as ranks compare it                          */
	bool is_rooted;  /* it names a root that all ranks know          */
	bool is_checked; /* with TUTTI_CHECK=1 ranks compare it before the call */
	/* Bytes of the buffers; recv - send of a call in place. */
	size_t sends, recvs;
	uintptr_t in_place;
	/* It runs in the order of its program: */
	bool is_short;
	struct tti_short way;
	unsigned ways; /* that a send or a handoff may go (coll/choose/choose.h) */
	/* A send or receive, which owns its program: */
	bool is_transfer;
	struct tti_extent extent;
};

/* The key of a kept call: tti_args_pack() with the operator that runs, and whether the call is in
 * place, where that makes a difference. All bits set: nothing is kept here. */
struct tti_prepared_key {
	uint64_t what;
	size_t count;
	const char *algo; /* of its arguments */
};

struct tti_prepared_calls {
	/* The newest first: it is the likeliest. */
	struct tti_prepared_key key[TTI_PREPARED_KEPT];
	struct tti_prepared *call[TTI_PREPARED_KEPT]; /* each one of at[] */
	struct tti_prepared at[TTI_PREPARED_KEPT];
	struct tti_prepared other; /* the last call that is not kept */
};

/* The call kept for such arguments, which are right: this thread may run it now. NULL: none is
 * kept, or something may be wrong, or the communicator is busy or takes no calls. */
struct tti_prepared *tti_prepared_find(struct tti_comm *comm, const struct tti_args *args);

/* The call for such arguments, which were found right. It is kept, or else valid until the next
 * one. */
TUTTI_CHECKED tutti_status tti_prepared_get(struct tti_comm *comm, const struct tti_args *args,
					    struct tti_prepared **out);

/* The same for the caller to keep, no longer than the communicator lives. */
TUTTI_CHECKED tutti_status tti_prepared_make(struct tti_comm *comm, const struct tti_args *args,
					     struct tti_prepared *out);
/* Zeroed is fine. */
void tti_prepared_release(struct tti_prepared *call);

/* Steps as the engine runs them, whose messages fit the slots of links: of a call whose ranks all have
 * devices they may be longer. */
size_t tti_prepared_host_slice(const struct tti_comm *comm, size_t slice_bytes);

/* NULL is fine. */
void tti_prepared_free_all(struct tti_prepared_calls *calls);

#endif
