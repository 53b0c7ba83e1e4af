/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_LOADS_H
#define TTI_PLAN_LOADS_H

/* The members inside a node, and the cost of traffic between any two of them:
 * which links it loads, and how much. All that no choice of the search could
 * tell apart is left out, so the search sees a small matrix of hops and a vector of
 * capacities.
 *
 * Owner: tti_loads_free(); the routes must outlive it. Threads: any may read. */

#include "plan/search/lp.h"
#include "topo/paths/routes.h"
#include "util/arena.h"

/* The members of one node: endpoints in the order of its ranks, and the NICs that
 * may be used: channels end at them, or, in a job of one node, hops go over them
 * (detour.h). Arrays are the caller's. */
struct tti_members {
	const struct tti_routes *routes;
	const uint32_t *nodes; /* GPU or HOST nodes of the graph            */
	uint32_t n;
	const uint32_t *nets; /* NET nodes of the graph                    */
	uint32_t nnets;       /* that channels end at: 0 if the node is alone        */
	uint32_t ninner;      /* that hops may go over: 0 if it is not     */
};

struct tti_hop {
	uint32_t first, n; /* loads[first .. + n) for 1 GB/s                       */
	float bw_gbps;     /* alone on the machine; 0: no way                      */
	float latency_ns;
	uint8_t type; /* enum tti_path_type                                  */
	uint8_t far;  /* 0: near; else how much worse for leading over CPUs (score.h) */
};

struct tti_loads {
	struct tti_arena arena;
	const struct tti_routes *routes;
	uint32_t n, nnets, ninner; /* one of the last two is 0                        */
	uint32_t *nodes, *nets;    /* of the graph; nnets + ninner NETs               */
	uint32_t *fabric; /* [net]: the first net that it reaches, or itself; NODE_NONE: none */
	uint32_t *cable;  /* [net]: the first NET on the same port                    */
	uint32_t nrows;
	double *capacity; /* GB/s of each row                                     */
	uint32_t *link;   /* the link of a row; of a port that several NETs share: its first */
	struct tti_load *loads;
	struct tti_hop *hop; /* [from * n + to]                                  */
	struct tti_hop *in;  /* [net * n + member]: from the NET                 */
	struct tti_hop *out; /* [net * n + member]: to the NET                   */
	/* [2 * member], [2 * member + 1]: to and from its NVLink switch, if it has one. */
	struct tti_hop *sw;
	uint32_t *nvs; /* [member]: that switch, TTI_NODE_NONE                   */
};

TUTTI_CHECKED tutti_status tti_loads_build(const struct tti_members *members,
					   struct tti_loads **out);
void tti_loads_free(struct tti_loads *loads);

static inline const struct tti_hop *tti_hop(const struct tti_loads *loads, uint32_t from,
					    uint32_t to)
{
	return &loads->hop[from * loads->n + to];
}
static inline const struct tti_hop *tti_hop_in(const struct tti_loads *loads, uint32_t net,
					       uint32_t member)
{
	return &loads->in[net * loads->n + member];
}
static inline const struct tti_hop *tti_hop_out(const struct tti_loads *loads, uint32_t net,
						uint32_t member)
{
	return &loads->out[net * loads->n + member];
}

#endif
