/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_HANDOFF_PRINT_H
#define TTI_PLAN_HANDOFF_PRINT_H

/* For the printers of handoffs alone: the places of ranks, and the words for figures.
 * Threads: any. */

#include "plan/handoff/handoff.h"
#include "plan/plan_words.h"

struct tti_handoff_view {
	const struct tti_handoff_job *handoff;
	const struct tti_handoff_plan *plan;
	double nbytes;
	struct tti_arena arena;
	uint32_t *node_of, *place_of; /* of each rank */
};

/* false: out of memory. */
bool tti_handoff_view_open(const struct tti_handoff_job *handoff,
			   const struct tti_handoff_plan *plan, double nbytes,
			   struct tti_handoff_view *out);
void tti_handoff_view_close(struct tti_handoff_view *view);

static inline const struct tti_job_node *tti_handoff_job_node(const struct tti_handoff_view *view,
							      uint32_t node)
{
	return &view->handoff->job->nodes[node];
}
static inline const struct tti_graph *tti_handoff_graph(const struct tti_handoff_view *view,
							uint32_t node)
{
	return tti_handoff_job_node(view, node)->routes->paths->graph;
}
/* The endpoint of a rank, as a node of the graph of its node. */
static inline uint32_t tti_handoff_end(const struct tti_handoff_view *view, uint32_t rank)
{
	return tti_handoff_job_node(view, view->node_of[rank])->members[view->place_of[rank]];
}
/* "GPU3", "node1", "mlx5_0". */
const char *tti_handoff_end_name(const struct tti_handoff_view *view, uint32_t rank);
const char *tti_handoff_node_name(const struct tti_handoff_view *view, uint32_t node);
const char *tti_handoff_net_name(const struct tti_handoff_view *view, uint32_t node, uint32_t net);

#define TTI_HANDOFF_WORDS 32
/* "1/8", "37.5 %". */
void tti_handoff_share_words(double share, char buf[TTI_HANDOFF_WORDS]);
/* "64 MiB", "1.5 KiB". */
void tti_handoff_bytes_words(double nbytes, char buf[TTI_HANDOFF_WORDS]);
/* "812 us", "5.31 ms". */
void tti_handoff_time_words(double us, char buf[TTI_HANDOFF_WORDS]);
/* "0-7, 9" */
void tti_handoff_ranks_words(const uint32_t *ranks, uint32_t n, struct tti_strbuf *out);

#endif
