/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_CLUSTER_CLUSTER_ODD_H
#define TTI_INSIGHT_CLUSTER_CLUSTER_ODD_H

/* Outliers: hosts that differ from most of those that resemble them. People look for these in a
 * cluster.
 * Owner: tti_outliers_release(). Threads: any. */

#include "insight/cluster/cluster.h"

/* A kind that is nearly equal to another kind, `like`, which has more hosts. */
struct tti_outlier_kind {
	uint32_t kind, like;
	size_t ndiffs;    /* 0: only bus ids, names or what no graph shows differ */
	const char *text; /* what differs, A: like, B: kind; a line each         */
};

/* A NIC whose rail is not the rail that this NIC has on most hosts of the kind. */
struct tti_outlier_nic {
	uint32_t host, port;
	int32_t rail, usual;
};

struct tti_outliers {
	struct tti_arena arena;
	struct tti_outlier_kind *kinds;
	struct tti_outlier_nic *nics;
	size_t nkinds, nnics;
	uint32_t unseen; /* kinds that were not compared, because there are too many */
};

TUTTI_CHECKED tutti_status tti_outliers_find(const struct tti_cluster *cluster,
					     struct tti_outliers *out);
void tti_outliers_release(struct tti_outliers *outliers);

#endif
