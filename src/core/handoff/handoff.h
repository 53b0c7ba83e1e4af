/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_HANDOFF_H
#define TTI_CORE_HANDOFF_H

/* Plans and programs of handoffs, and the proof that replicas are equal (TUTTI_CHECK).
 *
 * At the first handoff of some sides rank 0 plans it, over how hosts are wired (wiring.h). What
 * the plan comes to (coll/handoff_shape.h) goes round, every rank proves it, hashes are
 * compared, and it is kept with its program for as long as it is used. Where both sides hold
 * parts there is nothing to plan. A plan has a program for each order of its cuts, which a small
 * count may change.
 *
 * Owner: the communicator. Threads: the executing one's. */

#include "coll/algorithms/handoff.h"
#include "core/handoff/sides.h"
#include "engine/engine.h"

#define TTI_HANDOFFS_KEPT         32
#define TTI_HANDOFF_PROGRAMS_KEPT 64 /* of all plans */

struct tti_args;
struct tti_comm;

/* The chunks of the last call that went one way, and what their program is found by among those
 * that the communicator keeps: the plan, the way, and the parts in their order, which most counts
 * have in common. */
struct tti_handoff_cut {
	struct tti_handoff_chunks chunks;
	size_t count, line;
	TTI_VEC(int32_t) key; /* empty: there was none */
};

/* What all ranks agreed on for some sides, and the programs that were made of it. */
struct tti_handoff_kept {
	struct tti_sides *sides; /* NULL: free */
	bool is_short;
	int depth;                       /* messages of the longest way */
	uint64_t used;                   /* when last, in calls         */
	uint64_t number;                 /* no other plan ever has it   */
	struct tti_handoff_shape *shape; /* NULL: an empty one          */
	struct tti_handoff_cut cut[2];   /* by slots, in memory         */
};

/* The program of a call and where its chunks lie: until the next one. *slice_bytes: of a step, by
 * slots chosen here; a memory program is given it. */
TUTTI_CHECKED tutti_status tti_handoff_get(struct tti_comm *comm, const struct tti_args *args,
					   bool in_memory, struct tti_executable **out,
					   size_t *slice_bytes, struct tti_layout *layout);
void tti_handoffs_release(struct tti_comm *comm);

/* Whether the sides of a handoff have no plan yet, as they need one: the same on all ranks. */
bool tti_handoff_needs_plan(const struct tti_comm *comm, const struct tti_args *args);
/* Room to keep one, once before tti_handoff_keep(), which takes the shape. */
TUTTI_CHECKED tutti_status tti_handoff_make_room(struct tti_comm *comm);
void tti_handoff_keep(struct tti_comm *comm, const struct tti_args *args,
		      struct tti_handoff_shape *shape, int depth);

/* A handoff as coll sees it, and whether it has a plan for short ones. */
struct tti_handoff_call tti_handoff_call_of(const struct tti_comm *comm,
					    const struct tti_args *args);
bool tti_handoff_is_short(const struct tti_comm *comm, const struct tti_args *args);

#endif
