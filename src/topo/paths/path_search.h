/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PATHS_PATH_SEARCH_H
#define TTI_TOPO_PATHS_PATH_SEARCH_H

/* The best paths from one endpoint to all others, exactly; for paths.c.
 *
 * Owner: tti_path_search_free(). The graph must outlive it. Threads: one at a time. */

#include "topo/paths/paths.h"

struct tti_path_search;

/* `nvb`: paths may lead through another GPU. */
TUTTI_CHECKED tutti_status tti_path_search_create(const struct tti_graph *graph, bool nvb,
						  struct tti_path_search **out);
void tti_path_search_free(struct tti_path_search *search);

/* Search from one endpoint, or from several NETs at once: each path then begins at the
 * NET from which it is best. This forgets what the last search found. */
TUTTI_CHECKED tutti_status tti_path_search_run(struct tti_path_search *search,
					       const uint32_t *sources, size_t nsources);

struct tti_path_found {
	enum tti_path_type type;
	float bw_gbps;       /* of the narrowest link                             */
	uint64_t latency;    /* sum of tti_path_search_latency()                       */
	uint32_t nhops, end; /* end: for tti_path_search_hops()                        */
};
/* The best path to an endpoint; false: there is none. */
bool tti_path_search_found(const struct tti_path_search *search, uint32_t node,
			   struct tti_path_found *out);
/* Its links in their order, found->nhops of them. */
void tti_path_search_hops(const struct tti_path_search *search, const struct tti_path_found *found,
			  uint32_t *hops);

/* The work of all searches so far, in steps of some 10 ns. */
uint64_t tti_path_search_steps(const struct tti_path_search *search);

/* Latencies add up as integers, in units of 2^-10 ns, so that a sum does not depend on its
 * order. */
static inline uint64_t tti_path_search_latency(float ns)
{
	if (!(ns > 0))
		return 0;
	return ns < 1e12F ? (uint64_t)((double)ns * 1024 + 0.5) : UINT64_C(1) << 50;
}
static inline float tti_path_search_ns(uint64_t latency)
{
	return (float)((double)latency / 1024);
}

#endif
