/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/graph.h"

#include <ctype.h>
#include <string.h>

#include "util/mem.h"

const char *tti_node_type_name(enum tti_node_type type)
{
	static const char *const names[] = {
#define X(name, text) text,
		TTI_NODE_MAP(X)
#undef X
	};

	return names[type];
}

const char *tti_link_type_name(enum tti_link_type type)
{
	static const char *const names[] = {
#define X(name, text) text,
		TTI_LINK_MAP(X)
#undef X
	};

	return names[type];
}

void tti_graph_free(struct tti_graph *graph)
{
	if (!graph)
		return;
	tti_arena_release(&graph->arena);
	tti_free(graph);
}

int tti_name_order(const char *a, const char *b)
{
	const char *const start_a = a, *const start_b = b;

	while (*a && *b) {
		if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
			size_t na, nb;
			int order;

			a += strspn(a, "0");
			b += strspn(b, "0");
			na = strspn(a, "0123456789");
			nb = strspn(b, "0123456789");
			order = na != nb ? (na < nb ? -1 : 1) : strncmp(a, b, na);
			if (order)
				return order;
			a += na;
			b += nb;
		} else if (*a != *b) {
			return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
		} else {
			a++;
			b++;
		}
	}
	if (*a || *b)
		return *a ? 1 : -1;
	return strcmp(start_a, start_b);
}

struct tti_cpu_model tti_graph_cpu_model(const struct tti_cpu_info *cpu)
{
	const struct tti_cpu_id id = { cpu->arch, cpu->vendor, cpu->family, cpu->model,
				       cpu->c2c_sm };

	return tti_model_cpu(&id);
}

uint32_t tti_graph_find(const struct tti_graph *graph, enum tti_node_type type, const char *name)
{
	uint32_t found = TTI_NODE_NONE, nfound = 0;

	for (uint32_t i = 0; i < graph->ntype[type]; i++) {
		const uint32_t at = graph->by_type[type][i];

		if (strcmp(graph->nodes[at].full_name, name) == 0)
			return at;
		if (strcmp(graph->nodes[at].name, name) == 0) {
			found = at;
			nfound++;
		}
	}
	return nfound == 1 ? found : TTI_NODE_NONE;
}

bool tti_graph_is_amd(const struct tti_graph *graph, uint32_t node)
{
	const struct tti_node *at = &graph->nodes[node];

	if (at->type == TTI_NODE_GPU)
		at = &graph->nodes[at->parent];
	return at->type == TTI_NODE_DEV && (at->gpu.gcn || at->pci.vendor == 0x1002);
}

uint32_t tti_graph_cpu_of(const struct tti_graph *graph, uint32_t node)
{
	while (node != TTI_NODE_NONE && graph->nodes[node].type != TTI_NODE_CPU)
		node = graph->nodes[node].parent;
	return node;
}

/* The links that leave a node are in the order of (to, type). */
const struct tti_topo_link *tti_graph_link(const struct tti_graph *graph, uint32_t from,
					   uint32_t to, enum tti_link_type type)
{
	uint32_t low = graph->nodes[from].first_link;
	uint32_t high = low + graph->nodes[from].nlinks;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;
		const struct tti_topo_link *link = &graph->links[middle];

		if (link->to == to && link->type == type)
			return link;
		if (link->to < to || (link->to == to && link->type < type))
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}
