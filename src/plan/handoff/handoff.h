/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_HANDOFF_H
#define TTI_PLAN_HANDOFF_H

/* The plan of a handoff, which brings one vector from the ranks of one side to those of
 * another: who sends how much of it to whom over which NICs, how it spreads inside the nodes
 * that receive, and how fast any method could be.
 *
 *     who      On each side of a NIC the ranks that sit beside it (same switch, else as near
 *              as any does), as many on both sides, paired one to one; NICs of one rail first.
 *     where    Nodes that receive stand in chains: each gets the vector once and passes it on,
 *              so that no NIC carries a byte twice.
 *     how much A packing: each way and each tree inside a node gets as much as all links
 *              together carry, found by generating trees (as search.h), with a proof.
 *     bound    The minimum cut between the sources and a rank that receives, over the wires
 *              as they are: no method of any kind exceeds it.
 *
 * All are rates of the whole vector, GB/s: seconds a byte are 1 / 1e9 of their inverse.
 * Deterministic. Owner: tti_handoff_plan_free(); it borrows nothing. Threads: any may read. */

#include "plan/plan.h"
#include "util/strbuf.h"

/* A side lists ranks of the job. Sharded: the i-th holds, or gets, the i-th of n equal parts
 * (of the sum of all parts), else each all of it. */
struct tti_handoff_job {
	const struct tti_plan_job *job;
	const uint32_t *from, *to;
	uint32_t nfrom, nto;
	bool from_sharded, to_sharded;
	/* For handoffs that end before a pipeline of several stages has filled: a node gets a whole
	 * vector over one pair of NICs, and nodes stand in a binomial tree in place of chains. */
	bool is_short;
	double budget_ms; /* of its thread, to look for better shares and trees; 0: no limit */
};

#define TTI_HANDOFF_WHOLE UINT32_MAX

/* A way: what one rank sends to another. */
struct tti_handoff_way {
	uint32_t from, to;        /* ranks of the job                                     */
	uint32_t net_out, net_in; /* of their nodes' nets; TTI_NO_NET: they are on one node */
	uint32_t part;            /* of a sharded side `from`; else TTI_HANDOFF_WHOLE: any part  */
	bool straight;            /* both NICs are on one rail                                   */
	double share;             /* of the vector                                               */
	double gbps;
};

/* A leg: all ways into a node from one other node, or from itself. */
struct tti_handoff_leg {
	uint32_t from_node, to_node;
	uint32_t first, n; /* ways[first .. + n)                             */
	double share, gbps;
};

/* How the data that arrives at a rank gets to all ranks of its node that want it. */
struct tti_handoff_tree {
	uint32_t node, part;
	double share;
	uint32_t n;
	uint32_t *ranks;  /* the root first, parents before their children; one for each
			   * endpoint: others that share it read there               */
	uint32_t *parent; /* index into ranks; of the root UINT32_MAX               */
};

struct tti_handoff_plan {
	struct tti_arena arena;
	uint32_t nfrom, nto, nranks, nnodes;
	bool from_sharded, to_sharded;
	struct tti_handoff_way *ways; /* by node that receives, in the order of their chains */
	struct tti_handoff_leg *legs;
	struct tti_handoff_tree *trees;
	uint32_t nways, nlegs, ntrees;
	double gbps;       /* of the vector, all ways at once; 0: nothing is to be moved */
	double best_gbps;  /* no shares and trees over these ways bring more          */
	double bound_gbps; /* no method brings more                                   */
	const char *limit; /* what limits the plan, in words                         */
	const char *bound; /* and what the bound                                      */
	uint32_t depth, inner_depth; /* nodes one after the other; ranks, inside a node */
	/* For tools, which fill it in (insight/handoff/handoff_figures.c). */
	double naive_gbps; /* if each receiver got a copy of its own from the next source */
	bool on_gpus;
	bool nvlink; /* all hops inside nodes are */
};

/* TUTTI_EINVAL: a rank that is none, or twice on a side; a side without ranks. TUTTI_EPLAN:
 * what nothing leads to, by name. */
TUTTI_CHECKED tutti_status tti_handoff_plan_make(const struct tti_handoff_job *handoff,
						 struct tti_handoff_plan **out);
void tti_handoff_plan_free(struct tti_handoff_plan *plan);

/* Check by means that share nothing with the search that all of the vector gets to all ranks that
 * want it, from ranks that have it by then, that no link carries more than it can, and that nothing
 * is above a bound. TUTTI_EINTERNAL with the first breach. */
TUTTI_CHECKED tutti_status tti_handoff_plan_check(const struct tti_handoff_job *handoff,
						  const struct tti_handoff_plan *plan);

#endif
