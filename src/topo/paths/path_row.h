/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PATHS_PATH_ROW_H
#define TTI_TOPO_PATHS_PATH_ROW_H

/* All paths from one endpoint, by one search; for paths.c.
 *
 * Owner: who holds the struct; tti_path_rows_release(). Threads: one at a time. */

#include "topo/paths/path_search.h"
#include "util/vec.h"

/* How an endpoint is linked to the network, in both directions. */
struct tti_path_reach {
	bool any;
	float out_gbps, in_gbps;
	uint64_t out_latency, in_latency;
};

struct tti_path_rows {
	const struct tti_graph *graph;
	const uint32_t *endpoints; /* borrowed */
	uint32_t n;
	struct tti_path_search *search;
	struct tti_path_reach *reach;
};

typedef TTI_VEC(uint32_t) tti_path_hops;

/* `nvb`: paths may lead through another GPU. A zeroed struct may be released. */
TUTTI_CHECKED tutti_status tti_path_rows_init(struct tti_path_rows *rows,
					      const struct tti_graph *graph,
					      const uint32_t *endpoints, uint32_t n, bool nvb);
void tti_path_rows_release(struct tti_path_rows *rows);

/* The paths from endpoint `from` (an index) to all: row[n]. Their hops are added to `hops`. If
 * that would have more than most_hops, *full_out is set and the row is not complete. */
TUTTI_CHECKED tutti_status tti_path_rows_fill(struct tti_path_rows *rows, uint32_t from,
					      size_t most_hops, struct tti_path *row,
					      tti_path_hops *hops, bool *full_out);

#endif
