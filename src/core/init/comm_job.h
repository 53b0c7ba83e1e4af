/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_INIT_COMM_JOB_H
#define TTI_CORE_INIT_COMM_JOB_H

/* A communicator as the planner takes it: hosts are nodes, each rank is a member where its
 * memory is. Only rank 0 makes it.
 *
 * Owner: tti_comm_job_release(). Threads: one at a time. */

#include "core/init/wiring.h"
#include "plan/plan.h"

struct tti_machine {
	struct tti_graph *graph;
	struct tti_paths *paths;
	struct tti_routes *routes;
};

struct tti_comm_job {
	struct tti_arena arena;
	struct tti_machine *machines; /* of each host class */
	uint32_t nmachines;
	struct tti_plan_job job;
	/* The part of its host that each rank is on: the socket, or the NUMA node if there is one
	 * socket. */
	uint32_t *part; /* [n] */
};

/* host_of[rank]: the lowest rank of its host. TUTTI_EPLAN: a topology has no NUMA node with
 * cores. */
TUTTI_CHECKED tutti_status tti_comm_job_build(const struct tti_peers *peers,
					      const struct tti_host_classes *hosts,
					      const int *host_of, struct tti_comm_job *out);
/* The same later, to plan at a call, by any rank; without parts and groups. `wiring` may be
 * NULL. */
TUTTI_CHECKED tutti_status tti_comm_job_of_wiring(const struct tti_wiring *wiring,
						  const int *host_of, int n,
						  struct tti_comm_job *out);
void tti_comm_job_release(struct tti_comm_job *job);

#endif
