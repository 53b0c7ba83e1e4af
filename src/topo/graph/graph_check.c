/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/graph.h"

#include <math.h>
#include <stddef.h>

#include "util/error.h"

#define NTYPES (TTI_NODE_NIC + 1)
#define NLINKS (TTI_LINK_NET + 1)

/* Which types a link may join. */
static bool may_link(enum tti_link_type type, enum tti_node_type a, enum tti_node_type b)
{
	static const struct {
		enum tti_link_type type;
		enum tti_node_type a, b;
	} allowed[] = {
		{ TTI_LINK_LOC, TTI_NODE_GPU, TTI_NODE_DEV },
		{ TTI_LINK_LOC, TTI_NODE_HOST, TTI_NODE_CPU },
		{ TTI_LINK_NVL, TTI_NODE_DEV, TTI_NODE_DEV },
		{ TTI_LINK_NVL, TTI_NODE_DEV, TTI_NODE_NVS },
		{ TTI_LINK_NVL, TTI_NODE_DEV, TTI_NODE_CPU },
		{ TTI_LINK_C2C, TTI_NODE_DEV, TTI_NODE_CPU },
		{ TTI_LINK_PCI, TTI_NODE_DEV, TTI_NODE_PCI },
		{ TTI_LINK_PCI, TTI_NODE_DEV, TTI_NODE_CPU },
		{ TTI_LINK_PCI, TTI_NODE_PCI, TTI_NODE_PCI },
		{ TTI_LINK_PCI, TTI_NODE_PCI, TTI_NODE_CPU },
		{ TTI_LINK_PCI, TTI_NODE_NIC, TTI_NODE_PCI },
		{ TTI_LINK_PCI, TTI_NODE_NIC, TTI_NODE_CPU },
		{ TTI_LINK_SYS, TTI_NODE_CPU, TTI_NODE_CPU },
		{ TTI_LINK_SYS, TTI_NODE_CPU, TTI_NODE_PKG },
		{ TTI_LINK_SYS, TTI_NODE_PKG, TTI_NODE_PKG },
		{ TTI_LINK_NET, TTI_NODE_NIC, TTI_NODE_NET },
	};

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]); i++)
		if (allowed[i].type == type && ((allowed[i].a == a && allowed[i].b == b) ||
						(allowed[i].a == b && allowed[i].b == a)))
			return true;
	return false;
}

/* The node that a node must hang below, and the link between them. */
static bool may_hang(enum tti_node_type type, enum tti_node_type parent)
{
	switch (type) {
	case TTI_NODE_GPU:
		return parent == TTI_NODE_DEV;
	case TTI_NODE_HOST:
		return parent == TTI_NODE_CPU;
	case TTI_NODE_NET:
		return parent == TTI_NODE_NIC;
	case TTI_NODE_DEV:
	case TTI_NODE_PCI:
	case TTI_NODE_NIC:
		return parent == TTI_NODE_PCI || parent == TTI_NODE_CPU;
	case TTI_NODE_CPU:
		return parent == TTI_NODE_PKG;
	case TTI_NODE_NVS:
	case TTI_NODE_PKG:
		return false;
	}
	return false;
}

static enum tti_link_type link_to_parent(enum tti_node_type type)
{
	switch (type) {
	case TTI_NODE_GPU:
	case TTI_NODE_HOST:
		return TTI_LINK_LOC;
	case TTI_NODE_NET:
		return TTI_LINK_NET;
	case TTI_NODE_DEV:
	case TTI_NODE_PCI:
	case TTI_NODE_NIC:
		return TTI_LINK_PCI;
	case TTI_NODE_CPU:
	case TTI_NODE_NVS:
	case TTI_NODE_PKG:
		return TTI_LINK_SYS;
	}
	return TTI_LINK_SYS;
}

static bool is_endpoint(enum tti_node_type type)
{
	return type == TTI_NODE_GPU || type == TTI_NODE_HOST || type == TTI_NODE_NET;
}

/* -- Nodes ------------------------------------------------------------------------------- */

static tutti_status check_node(const struct tti_graph *graph, uint32_t at)
{
	const struct tti_node *node = &graph->nodes[at];

	if ((unsigned)node->type >= NTYPES)
		return tti_fail(TUTTI_EINTERNAL, "graph: node %u has type %d", at, (int)node->type);
	if (!node->name || !*node->name)
		return tti_fail(TUTTI_EINTERNAL, "graph: node %u has no name", at);
	if (node->host >= graph->nhosts)
		return tti_fail(TUTTI_EINTERNAL, "graph: %s is on host %u of %u", node->name,
				node->host, graph->nhosts);
	if (node->parent != TTI_NODE_NONE && node->parent >= graph->nnodes)
		return tti_fail(TUTTI_EINTERNAL, "graph: %s has parent %u of %u", node->name,
				node->parent, graph->nnodes);
	return TUTTI_OK;
}

static tutti_status check_parent(const struct tti_graph *graph, uint32_t at)
{
	const struct tti_node *node = &graph->nodes[at], *parent;
	uint32_t steps = 0;

	if (node->parent == TTI_NODE_NONE) {
		if (node->type == TTI_NODE_CPU || node->type == TTI_NODE_NVS ||
		    node->type == TTI_NODE_PKG)
			return TUTTI_OK;
		return tti_fail(TUTTI_EINTERNAL, "graph: %s %s hangs on nothing",
				tti_node_type_name(node->type), node->name);
	}
	parent = &graph->nodes[node->parent];
	if (!may_hang(node->type, parent->type) || parent->host != node->host)
		return tti_fail(TUTTI_EINTERNAL, "graph: %s %s hangs on %s %s",
				tti_node_type_name(node->type), node->name,
				tti_node_type_name(parent->type), parent->name);
	if (!tti_graph_link(graph, at, node->parent, link_to_parent(node->type)))
		return tti_fail(TUTTI_EINTERNAL, "graph: %s has no link to its parent %s",
				node->name, parent->name);
	for (uint32_t up = at; up != TTI_NODE_NONE; up = graph->nodes[up].parent)
		if (steps++ > graph->nnodes)
			return tti_fail(TUTTI_EINTERNAL, "graph: %s is its own ancestor",
					node->name);
	return TUTTI_OK;
}

/* -- Links ------------------------------------------------------------------------------- */

static tutti_status check_figures(const struct tti_graph *graph, uint32_t at)
{
	const struct tti_topo_link *link = &graph->links[at];
	const bool many = link->type == TTI_LINK_NVL || link->type == TTI_LINK_C2C;

	if (!isfinite(link->bw_gbps) || !(link->bw_gbps > 0))
		return tti_fail(TUTTI_EINTERNAL, "graph: link %u has %g GB/s", at,
				(double)link->bw_gbps);
	if (!isfinite(link->latency_ns) || !(link->latency_ns >= 0))
		return tti_fail(TUTTI_EINTERNAL, "graph: link %u has %g ns", at,
				(double)link->latency_ns);
	if (link->count == 0 || (link->count > 1 && !many))
		return tti_fail(TUTTI_EINTERNAL, "graph: link %u stands for %u", at, link->count);
	return TUTTI_OK;
}

static tutti_status check_link(const struct tti_graph *graph, uint32_t at, uint32_t from)
{
	const struct tti_topo_link *link = &graph->links[at], *back;

	if (link->from != from || link->to >= graph->nnodes || link->to == from)
		return tti_fail(TUTTI_EINTERNAL, "graph: link %u of node %u is from %u to %u", at,
				from, link->from, link->to);
	if ((unsigned)link->type >= NLINKS ||
	    !may_link(link->type, graph->nodes[from].type, graph->nodes[link->to].type))
		return tti_fail(TUTTI_EINTERNAL, "graph: link %u, from %s to %s, has type %d", at,
				graph->nodes[from].name, graph->nodes[link->to].name,
				(int)link->type);
	if (link->reverse >= graph->nlinks)
		return tti_fail(TUTTI_EINTERNAL, "graph: link %u has reverse %u of %u", at,
				link->reverse, graph->nlinks);
	back = &graph->links[link->reverse];
	if (back->from != link->to || back->to != from || back->type != link->type ||
	    back->reverse != at)
		return tti_fail(TUTTI_EINTERNAL, "graph: link %u has reverse %u, of others", at,
				link->reverse);
	return check_figures(graph, at);
}

static tutti_status check_links_of(const struct tti_graph *graph, uint32_t at, uint32_t first)
{
	const struct tti_node *node = &graph->nodes[at];

	if (node->first_link != first || node->nlinks > graph->nlinks - first)
		return tti_fail(TUTTI_EINTERNAL, "graph: links %u + %u of %s, expected from %u on",
				node->first_link, node->nlinks, node->name, first);
	for (uint32_t i = first; i < first + node->nlinks; i++) {
		const struct tti_topo_link *link = &graph->links[i];

		TTI_TRY(check_link(graph, i, at));
		if (i > first && (link[-1].to > link->to ||
				  (link[-1].to == link->to && link[-1].type >= link->type)))
			return tti_fail(TUTTI_EINTERNAL, "graph: links %u and %u of %s: order",
					i - 1, i, node->name);
	}
	if (is_endpoint(node->type) && node->nlinks != 1)
		return tti_fail(TUTTI_EINTERNAL, "graph: endpoint %s has %u links", node->name,
				node->nlinks);
	return TUTTI_OK;
}

/* -- Lists ------------------------------------------------------------------------------- */

/* Nodes are in the order of host and name, and each is there once. So names are unique, and
 * none is missing if the numbers add up. */
static tutti_status check_types(const struct tti_graph *graph)
{
	uint64_t n = 0;

	for (unsigned type = 0; type < NTYPES; type++) {
		const struct tti_node *last = NULL;

		for (uint32_t i = 0; i < graph->ntype[type]; i++) {
			const uint32_t at = graph->by_type[type][i];
			const struct tti_node *node = at < graph->nnodes ? &graph->nodes[at] : NULL;

			if (!node || node->type != type)
				return tti_fail(TUTTI_EINTERNAL, "graph: node %u is no %s", at,
						tti_node_type_name(type));
			if (last && (last->host > node->host ||
				     (last->host == node->host &&
				      tti_name_order(last->name, node->name) >= 0)))
				return tti_fail(TUTTI_EINTERNAL,
						"graph: %s %s after %s: out of order or twice",
						tti_node_type_name(type), node->name, last->name);
			last = node;
		}
		n += graph->ntype[type];
	}
	if (n != graph->nnodes)
		return tti_fail(TUTTI_EINTERNAL, "graph: %llu nodes by type, of %u",
				(unsigned long long)n, graph->nnodes);
	return TUTTI_OK;
}

static tutti_status check_notes(const struct tti_graph *graph)
{
	for (uint32_t i = 0; i < graph->nnotes; i++) {
		const struct tti_note *note = &graph->notes[i];

		if (note->node != TTI_NODE_NONE && note->node >= graph->nnodes)
			return tti_fail(TUTTI_EINTERNAL, "graph: note %u is on node %u of %u", i,
					note->node, graph->nnodes);
		if (!note->text || !*note->text)
			return tti_fail(TUTTI_EINTERNAL, "graph: note %u has no text", i);
	}
	return TUTTI_OK;
}

tutti_status tti_graph_check(const struct tti_graph *graph)
{
	uint32_t first = 0;

	for (uint32_t i = 0; i < graph->nnodes; i++)
		TTI_TRY(check_node(graph, i));
	for (uint32_t i = 0; i < graph->nnodes; i++) {
		TTI_TRY(check_links_of(graph, i, first));
		first += graph->nodes[i].nlinks;
	}
	if (first != graph->nlinks)
		return tti_fail(TUTTI_EINTERNAL, "graph: %u links of nodes, of %u", first,
				graph->nlinks);
	for (uint32_t i = 0; i < graph->nnodes; i++)
		TTI_TRY(check_parent(graph, i));
	TTI_TRY(check_types(graph));
	return check_notes(graph);
}
