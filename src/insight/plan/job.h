/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_PLAN_JOB_H
#define TTI_INSIGHT_PLAN_JOB_H

/* Jobs that nobody runs, over machines as topologies describe them. Threads: any. */

#include "plan/plan.h"

/* A copy of GPUs (or, without any, HOSTs) of a topology as ranks of `count` nodes: for
 * tools. *out is freed with tti_plan_job_free(). ranks_per_node 0: one for each GPU with a
 * rank, else for each GPU, else for each HOST. */
TUTTI_CHECKED tutti_status tti_plan_job_of(const struct tti_routes *const *kinds, uint32_t nkinds,
					   uint32_t count, uint32_t ranks_per_node,
					   struct tti_plan_job **out);
/* A job with one node for each of routes[]; equal nodes have equal pointers. */
struct tti_job_layout {
	const struct tti_routes *const *routes;
	uint32_t nnodes, ranks_per_node;
	const uint32_t *node_of_rank; /* how ranks are dealt out; NULL: node after node   */
	uint32_t nranks;              /* entries of that                                  */
	const int32_t *group;         /* leaf switch of each node, -1 unknown; NULL: all  */
	const char *const *names;     /* of each node; NULL: node0, node1 ...             */
};
/* TUTTI_EINVAL: a rank is on a node that does not exist, or a node has no ranks. */
TUTTI_CHECKED tutti_status tti_job_lay_out(const struct tti_job_layout *layout,
					   struct tti_plan_job **out);
/* The NETs that plans may use on a node with this graph, in *out, of the arena. NETs that are
 * virtual by their names are left out, as their traffic takes another NET, unless
 * TUTTI_SOCKET_IFNAME asks for them or there are no others. */
TUTTI_CHECKED tutti_status tti_plan_nets_of(const struct tti_graph *graph, struct tti_arena *arena,
					    const uint32_t **out, uint32_t *n_out);
void tti_plan_job_free(struct tti_plan_job *job);

#endif
