/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_HANDOFF_SHAPE_H
#define TTI_COLL_HANDOFF_SHAPE_H

/* The plan of a handoff as an algorithm needs it, in ranks and whole numbers.
 *
 * The vector, or each part of a sharded side, is cut into stripes. A stripe goes from one rank
 * to a rank of another host, and from there down a tree of ranks to all ranks of that host that
 * want it. If `from` and `to` are one rank, that rank has the stripe already.
 *
 *     stripe          hops                        the same vector, stripe by stripe
 *     0 ─▶ 4 , 5/7    4 ─▶ 5, 4 ─▶ 6, 4 ─▶ 7      |----- 0 to 4 -----|- 1 to 5 -|
 *     1 ─▶ 5 , 2/7    5 ─▶ 6, 5 ─▶ 7, 5 ─▶ 4
 *
 * One rank makes the shape from the plan; all others get its bytes and check them. It is one block
 * of 32-bit numbers without pointers, so equal bytes are equal plans.
 *
 * Owner: tti_free(). Threads: any may read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/tutti.h"

/* Stripes begin and end at multiples of 1 / TTI_HANDOFF_UNITS of what they are cut from. */
#define TTI_HANDOFF_UNITS 4096

struct tti_handoff_stripe {
	int32_t from, to;
	int32_t source, dest; /* the part of a sharded side `from`, `to`; -1: the side is whole */
	uint32_t begin, end;  /* of that part, or of the whole vector, in units */
	uint32_t first, n;    /* hops[first .. first + n): parents before their children */
};

struct tti_handoff_hop {
	int32_t from, to;
};

struct tti_handoff_shape {
	uint32_t nstripes, nhops;
	/* The stripes follow, by source, by dest, then in an order in which each rank that sends a
	 * stripe has it; and then the hops. */
};

static inline size_t tti_handoff_shape_bytes(uint32_t nstripes, uint32_t nhops)
{
	return sizeof(struct tti_handoff_shape) + nstripes * sizeof(struct tti_handoff_stripe) +
	       nhops * sizeof(struct tti_handoff_hop);
}

static inline struct tti_handoff_stripe *tti_handoff_stripes(const struct tti_handoff_shape *shape)
{
	return (struct tti_handoff_stripe *)(uintptr_t)(shape + 1);
}

static inline struct tti_handoff_hop *tti_handoff_hops(const struct tti_handoff_shape *shape)
{
	return (struct tti_handoff_hop *)(uintptr_t)(tti_handoff_stripes(shape) + shape->nstripes);
}

/* A handoff among ranks 0 .. n - 1. It borrows the sides, which have been checked: their ranks
 * are in range, no rank is twice on a side, and each side has one. */
struct tti_handoff_call {
	int n;
	tutti_side from, to;
};

/* Whether the ranks of a side hold parts; the part of a single rank is the whole. */
static inline bool tti_handoff_is_sharded(const tutti_side *side)
{
	return side->sharded && side->n > 1;
}

/* Whether both sides are sharded: then each part goes straight from the one rank that has it to the
 * one that shall have it, and there is nothing to plan. */
static inline bool tti_handoff_is_direct(const struct tti_handoff_call *call)
{
	return tti_handoff_is_sharded(&call->from) && tti_handoff_is_sharded(&call->to);
}

/* The stripes of one part: [*first, *first + return value). */
uint32_t tti_handoff_stripes_of(const struct tti_handoff_shape *shape, int32_t source, int32_t dest,
				uint32_t *first);

/* The next place behind `at` where one of stripes[first .. first + n) begins or ends;
 * TTI_HANDOFF_UNITS: none does. */
uint32_t tti_handoff_next_cut(const struct tti_handoff_shape *shape, uint32_t first, uint32_t n,
			      uint32_t at);

/* Prove that the shape brings all of the vector, once, to each rank that wants it and to no other,
 * from ranks that have it. `nbytes` is the length of the block. *depth: the most messages one after
 * the other, at least 1. TUTTI_EPLAN (quiet) names the first breach. */
TUTTI_CHECKED tutti_status tti_handoff_shape_check(const struct tti_handoff_call *call,
						   const struct tti_handoff_shape *shape,
						   size_t nbytes, int *depth);

/* -- handoff_stripes.c ------------------------------------------------------------- */

struct tti_handoff_job;
struct tti_handoff_plan;

/* Make the shape of a plan, *nbytes long. A tree that would carry less than 1 / 128 of the vector
 * gives its share to other trees of its root. A side of one rank is not sharded. TUTTI_EINTERNAL:
 * the plan does not reach all. */
TUTTI_CHECKED tutti_status tti_handoff_shape_of_plan(const struct tti_handoff_job *handoff,
						     const struct tti_handoff_plan *plan,
						     struct tti_handoff_shape **out,
						     size_t *nbytes);

#endif
