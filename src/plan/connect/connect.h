/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_CONNECT_H
#define TTI_PLAN_CONNECT_H

/* From the channels inside each kind of node to channels over all nodes.
 * Threads: any, each its own. */

#include "plan/plan.h"
#include "plan/search/colocated.h"

/* A kind of node: nodes with the same routes, members and NICs, which therefore have
 * the same channels. */
struct tti_kind {
	const struct tti_job_node *node; /* the first of them */
	struct tti_colocated colocated;
	struct tti_loads *loads;  /* of endpoints                         */
	struct tti_local *search; /* of the pattern at hand: of members   */
};

struct tti_connect {
	const struct tti_plan_job *job;
	const struct tti_kind *kinds;
	uint32_t nkinds;
	const uint32_t *kind_of;             /* of each node of the job                         */
	const uint32_t *position;            /* position[i]: the node at place i of rings, trees */
	uint32_t min_channels, max_channels; /* of the plan; 0: none, what nodes have or 32 */
	struct tti_arena *arena;             /* of the plan */
};

/* One stretch of the common bandwidth, and which channel of each kind carries it. */
struct tti_stretch {
	double gbps;
	const uint32_t *channel; /* by kind */
};

/* Lay the channels of all kinds side by side until the kind with the least has no more: where
 * one ends in any kind, a new stretch begins. At most `most`; else, or where that carries
 * about as much in fewer, the first channels of all kinds are one stretch, and so on.
 *
 *     kind 0   |---- a ----|-- b --|                    |-- a --|- b -|
 *     kind 1   |-- c --|---- d ----|-- e --|            |-- c --|- d -|
 *     stretch  |   0   | 1 |   2   |      (a,c) (a,d) (b,d)    or (a,c) (b,d)
 */
TUTTI_CHECKED tutti_status tti_stretches(const struct tti_connect *connect, uint32_t most,
					 struct tti_stretch **out, uint32_t *n_out);

/* Fill channels, nchannels and total of a pattern. */
TUTTI_CHECKED tutti_status tti_connect_rings(const struct tti_connect *connect,
					     struct tti_plan_pattern *pattern);
TUTTI_CHECKED tutti_status tti_connect_trees(const struct tti_connect *connect,
					     struct tti_plan_pattern *pattern);
TUTTI_CHECKED tutti_status tti_connect_heads(const struct tti_connect *connect,
					     struct tti_plan_pattern *pattern);

/* Two binary trees over n places, so that an inner place of the one is a leaf of the
 * other (Sanders, Speck and Traeff, Parallel Computing 2009; the second mirrored for even
 * n, shifted by one for odd); floor(log2 n) deep. Parent and children of a place,
 * UINT32_MAX: none. */
struct tti_tree_place {
	uint32_t parent, child[2];
	uint32_t which; /* which child of its parent it is */
};
struct tti_tree_place tti_double_tree(uint32_t n, uint32_t place, bool second);

#endif
