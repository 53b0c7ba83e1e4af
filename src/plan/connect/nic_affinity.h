/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_NIC_AFFINITY_H
#define TTI_PLAN_NIC_AFFINITY_H

/* NICs for the ranks of each node: which of them a rank should use first, so that none
 * carries more than its part, ranks are near theirs, and partners on two nodes (those of
 * one place among the ranks of their nodes) are on one rail. The best of all assignments
 * of one NIC to each rank, by what comes first in this list:
 *
 *     load    a NIC's k-th rank finds the load k / its GB/s; those of all ranks, from the
 *             highest to the lowest, are lexicographically least: the worst is least
 *     reach   as few ranks as can be with a NIC that nothing leads to
 *     near    the sum of the types of the routes (PIX 4 ... SYS 9), then the sum of what
 *             they lack of the widest, in thousandths
 *     rails   ranks on another rail than their partner on the first node
 *
 * How many ranks a NIC has follows from the loads alone, but for ties: the least loads
 * there are, as many as ranks. What is left is an assignment problem with
 * capacities, solved by shortest augmenting paths (Ford and Fulkerson, 1962; Tomizawa,
 * Networks 1971): exact. Of equal ones the same is found wherever it runs.
 *
 * Threads: any. */

#include "plan/plan.h"

struct tti_nic_affinity_node {
	const struct tti_routes *routes;
	const uint32_t *members; /* endpoints of the graph, one for each rank      */
	uint32_t nranks;
	const uint32_t *nets; /* NETs of the graph                              */
	uint32_t nnets;
	/* What is equal where two NICs are on one network, 0: unknown; NULL: none is known.
	 * Where it is not known of all NICs of two nodes, or they have none in common, those
	 * of one place in the lists are on one rail. */
	const uint64_t *rail;
};

/* order_out[node][rank * nnets + k]: as index into its nets, the NIC that a rank should use
 * k-th: its own, then by distance, those as near in turn from its own on. NULL for a node
 * without NICs. */
TUTTI_CHECKED tutti_status tti_nic_affinity_assign(const struct tti_nic_affinity_node *nodes,
						   uint32_t nnodes, struct tti_arena *arena,
						   uint32_t ***order_out);

/* Whether it is known which NICs of two nodes are on one rail, and there are such. */
bool tti_nic_affinity_share_rails(const struct tti_nic_affinity_node *one,
				  const struct tti_nic_affinity_node *other);
/* Whether NIC number a of one node and number b of another are on one rail. */
bool tti_nic_affinity_same_rail(const struct tti_nic_affinity_node *one, uint32_t a,
				const struct tti_nic_affinity_node *other, uint32_t b);

#endif
