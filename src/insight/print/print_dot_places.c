/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/print/print_dot.h"

#include "util/mem.h"

static float uplink_gbps(const struct tti_graph *graph, uint32_t node)
{
	const uint32_t parent = graph->nodes[node].parent;
	const struct tti_topo_link *link =
		parent == TTI_NODE_NONE ? NULL : tti_graph_link(graph, node, parent, TTI_LINK_PCI);

	return link ? link->bw_gbps : 0;
}

/* The only port of a NIC; NULL: it has none, or several. */
static const struct tti_node *only_port(const struct tti_graph *graph,
					const struct tti_dot_place *places, uint32_t nic)
{
	const uint32_t port = places[nic].first;

	if (port == TTI_NODE_NONE || places[port].sibling != TTI_NODE_NONE)
		return NULL;
	return &graph->nodes[port];
}

/* Two NICs of one parent that one box can show: same make, same speed. */
static bool go_together(const struct tti_graph *graph, const struct tti_dot_place *places,
			uint32_t a, uint32_t b)
{
	const struct tti_node *left = only_port(graph, places, a);
	const struct tti_node *right = only_port(graph, places, b);
	const float up_a = uplink_gbps(graph, a), up_b = uplink_gbps(graph, b);

	return left && right && graph->nodes[a].pci.vendor == graph->nodes[b].pci.vendor &&
	       graph->nodes[a].pci.device == graph->nodes[b].pci.device &&
	       left->net.speed_mbps == right->net.speed_mbps && up_a >= up_b && up_a <= up_b;
}

/* Each NIC joins the last box below its parent, or opens one. last[parent] is the NIC
 * that came last; the last parent is none. */
static void box_nics(const struct tti_graph *graph, struct tti_dot_place *places, uint32_t *last)
{
	for (uint32_t i = 0; i <= graph->nnodes; i++)
		last[i] = TTI_NODE_NONE;
	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_NIC]; i++) {
		const uint32_t nic = graph->by_type[TTI_NODE_NIC][i];
		const uint32_t parent = graph->nodes[nic].parent;
		uint32_t *tail = &last[parent == TTI_NODE_NONE ? graph->nnodes : parent];

		if (*tail != TTI_NODE_NONE && go_together(graph, places, *tail, nic)) {
			places[nic].box = places[*tail].box;
			places[*tail].next = nic;
		}
		*tail = nic;
		places[places[nic].box].count++;
	}
}

/* From behind, so that the first one is found first. */
static void chain_parts(const struct tti_graph *graph, struct tti_dot_place *places,
			enum tti_node_type type)
{
	for (uint32_t i = graph->ntype[type]; i-- > 0;) {
		const uint32_t part = graph->by_type[type][i];
		const uint32_t whole = graph->nodes[part].parent;

		if (whole == TTI_NODE_NONE)
			continue;
		places[part].sibling = places[whole].first;
		places[whole].first = part;
	}
}

static void box_parts(const struct tti_graph *graph, struct tti_dot_place *places,
		      enum tti_node_type type)
{
	for (uint32_t i = 0; i < graph->ntype[type]; i++) {
		const uint32_t part = graph->by_type[type][i];

		if (graph->nodes[part].parent != TTI_NODE_NONE)
			places[part].box = places[graph->nodes[part].parent].box;
	}
}

struct tti_dot_place *tti_dot_places(const struct tti_graph *graph)
{
	const size_t n = (size_t)graph->nnodes + 1;
	struct tti_dot_place *places = tti_calloc(n, sizeof(*places));
	uint32_t *last = tti_calloc(n, sizeof(*last));

	if (!places || !last) {
		tti_free(places);
		tti_free(last);
		return NULL;
	}
	for (uint32_t i = 0; i < graph->nnodes; i++)
		places[i] =
			(struct tti_dot_place){ i, TTI_NODE_NONE, 0, TTI_NODE_NONE, TTI_NODE_NONE };
	chain_parts(graph, places, TTI_NODE_GPU);
	chain_parts(graph, places, TTI_NODE_NET);
	box_nics(graph, places, last);
	box_parts(graph, places, TTI_NODE_GPU);
	box_parts(graph, places, TTI_NODE_NET);
	box_parts(graph, places, TTI_NODE_HOST);
	tti_free(last);
	return places;
}
