/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_CLUSTER_CLUSTER_ODD_H
#define TTI_INSIGHT_CLUSTER_CLUSTER_ODD_H

/* Hosts that differ from most that are like them: what people look for in a cluster.
 * Owner: tti_odd_release(). Threads: any. */

#include "insight/cluster/cluster.h"

/* A kind that nearly is another one, which has more hosts. */
struct tti_odd_kind {
	uint32_t kind, like;
	size_t ndiffs;    /* 0: only bus ids, names or what no graph shows differ */
	const char *text; /* what differs, A: like, B: kind; a line each         */
};

/* A NIC that is on another rail than that NIC of most hosts of its kind. */
struct tti_odd_nic {
	uint32_t host, port;
	int32_t rail, usual;
};

struct tti_odd {
	struct tti_arena arena;
	struct tti_odd_kind *kinds;
	struct tti_odd_nic *nics;
	size_t nkinds, nnics;
	uint32_t unseen; /* kinds that were not looked at: there are too many */
};

TUTTI_CHECKED tutti_status tti_odd_find(const struct tti_cluster *cluster, struct tti_odd *out);
void tti_odd_release(struct tti_odd *odd);

#endif
