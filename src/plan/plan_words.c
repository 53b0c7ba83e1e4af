/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan_words.h"

#include <stdio.h>

#include "topo/graph/words.h"

/* The GPU or NET below a device or NIC, by which people know it; else the node itself. */
static const struct tti_node *known_as(const struct tti_graph *graph, uint32_t node)
{
	const struct tti_node *at = &graph->nodes[node];

	if (at->type != TTI_NODE_DEV && at->type != TTI_NODE_NIC)
		return at;
	for (uint32_t i = 0; i < at->nlinks; i++) {
		const uint32_t other = graph->links[at->first_link + i].to;

		if (graph->nodes[other].parent == node &&
		    (graph->nodes[other].type == TTI_NODE_GPU ||
		     graph->nodes[other].type == TTI_NODE_NET))
			return &graph->nodes[other];
	}
	return at;
}

static void end_words(const struct tti_graph *graph, uint32_t node, char buf[48])
{
	const struct tti_node *at = known_as(graph, node);

	if (at->type == TTI_NODE_PCI)
		(void)snprintf(buf, 48, "switch %.40s", at->full_name);
	else if (at->type == TTI_NODE_NVS)
		(void)snprintf(buf, 48, "the NVLink switch");
	else
		(void)snprintf(buf, 48, "%.47s", at->full_name);
}

void tti_link_words(const struct tti_loads *loads, uint32_t row, char buf[TTI_LINK_WORDS])
{
	const struct tti_graph *graph = loads->routes->paths->graph;
	const struct tti_topo_link *link = &graph->links[loads->link[row]];
	char from[48], to[48];

	end_words(graph, link->from, from);
	end_words(graph, link->to, to);
	if (link->type == TTI_LINK_NET)
		(void)snprintf(buf, TTI_LINK_WORDS, "cable of %s, %s", to,
			       graph->nodes[link->to].type == TTI_NODE_NET ? "outwards"
									   : "inwards");
	else
		(void)snprintf(buf, TTI_LINK_WORDS, "%s to %s (%s)", from, to,
			       tti_words_link_type(graph, link->type));
}

void tti_gbps_words(double gbps, char buf[24])
{
	(void)snprintf(buf, 24, gbps < 0.995 ? "%.3g" : gbps < 9.995 ? "%.2f" : "%.1f", gbps);
}
