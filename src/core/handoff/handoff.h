/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_HANDOFF_HANDOFF_H
#define TTI_CORE_HANDOFF_HANDOFF_H

/* Plans and programs of handoffs, and the proof that replicas are equal (TUTTI_CHECK).
 *
 * At the first handoff of two sides rank 0 plans it, over how hosts are wired (wiring.h). Rank 0
 * broadcasts the shape of the plan (coll/algorithms/handoff_shape.h), every rank checks it,
 * hashes are compared, and the plan is kept with its programs while it is used. If both sides
 * hold parts there is nothing to plan. A plan has a program for each order of its cuts, which a
 * small count may change.
 *
 * Owner: the communicator. Threads: the executing one's. */

#include "coll/algorithms/handoff.h"
#include "core/handoff/sides.h"
#include "engine/engine.h"

#define TTI_HANDOFFS_KEPT         32
#define TTI_HANDOFF_PROGRAMS_KEPT 64 /* of all plans */

struct tti_args;
struct tti_comm;

/* The chunks of the last call by slots, or in memory, and the key of their program among those
 * that the communicator keeps: the plan, slots or memory, and the parts in their order, which
 * most counts have in common. */
struct tti_handoff_cut {
	struct tti_handoff_chunks chunks;
	size_t count, line;
	TTI_VEC(int32_t) key; /* empty: there was none */
};

/* The plan that all ranks agreed on for two sides. */
struct tti_handoff_kept {
	struct tti_sides *sides; /* NULL: free */
	bool is_short;
	int depth;                       /* messages of the longest way */
	uint64_t used;                   /* when last, in calls         */
	uint64_t number;                 /* no other plan ever has it   */
	struct tti_handoff_shape *shape; /* NULL: an empty one          */
	struct tti_handoff_cut cut[2];   /* by slots, in memory         */
};

/* The program of a call and where its chunks lie, valid until the next one. *slice_bytes: of a
 * step; an input of a memory program, else chosen here. */
TUTTI_CHECKED tutti_status tti_handoff_get(struct tti_comm *comm, const struct tti_args *args,
					   bool in_memory, struct tti_executable **out,
					   size_t *slice_bytes, struct tti_layout *layout);
void tti_handoffs_release(struct tti_comm *comm);

/* Whether the sides of a handoff need a plan that is not there: the same on all ranks. */
bool tti_handoff_needs_plan(const struct tti_comm *comm, const struct tti_args *args);
/* Room for a plan, before tti_handoff_keep(), which takes the shape. */
TUTTI_CHECKED tutti_status tti_handoff_make_room(struct tti_comm *comm);
void tti_handoff_keep(struct tti_comm *comm, const struct tti_args *args,
		      struct tti_handoff_shape *shape, int depth);

/* A handoff as coll has it; whether it is so short that its plan differs. */
struct tti_handoff_call tti_handoff_call_of(const struct tti_comm *comm,
					    const struct tti_args *args);
bool tti_handoff_is_short(const struct tti_comm *comm, const struct tti_args *args);

#endif
