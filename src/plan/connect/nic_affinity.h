/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_NIC_AFFINITY_H
#define TTI_PLAN_NIC_AFFINITY_H

/* NIC affinity: which NIC each rank of a node should use first, so that no NIC carries more
 * than its part, ranks are near their NICs, and partners on two nodes (ranks of one place
 * among the ranks of their nodes) are on one rail. It is the best of all assignments of one
 * NIC to each rank, by these criteria in their order:
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
	/* Equal for two NICs on one network; 0: unknown; NULL: none is known. If it is not
	 * known for all NICs of two nodes, or they have no value in common, NICs of one place
	 * in the lists are on one rail. */
	const uint64_t *rail;
};

/* order_out[node][rank * nnets + k]: the NIC that a rank should use k-th, as index into the node's
 * nets: first its own, then the others by distance, and NICs of one distance in turn from its own
 * on. NULL for a node without NICs. */
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
