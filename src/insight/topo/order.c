/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/topo/order.h"

#include <stdlib.h>

#include "util/mem.h"

struct key {
	uint32_t node, parent;
	const struct tti_node *at;
};

/* CPUs as the kernel numbers them; all others are alike here. */
static int64_t numaid_of(const struct tti_node *node)
{
	return node->type == TTI_NODE_CPU ? node->cpu.numaid : 0;
}

static int compare_keys(const void *left, const void *right)
{
	const struct key *a = left, *b = right;

	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->at->host != b->at->host)
		return a->at->host < b->at->host ? -1 : 1;
	if (numaid_of(a->at) != numaid_of(b->at))
		return numaid_of(a->at) < numaid_of(b->at) ? -1 : 1;
	if (a->at->pci.busid != b->at->pci.busid)
		return a->at->pci.busid < b->at->pci.busid ? -1 : 1;
	return a->node < b->node ? -1 : a->node > b->node;
}

static void sort_nodes(const struct tti_graph *graph, struct key *keys,
		       struct tti_print_order *order)
{
	const uint32_t n = graph->nnodes;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t parent = graph->nodes[i].parent;

		keys[i] = (struct key){ i, parent == TTI_NODE_NONE ? n : parent, &graph->nodes[i] };
		order->first[keys[i].parent + 1]++;
	}
	qsort(keys, n, sizeof(*keys), compare_keys);
	for (uint32_t i = 0; i < n; i++)
		order->nodes[i] = keys[i].node;
	for (uint32_t i = 0; i <= n; i++)
		order->first[i + 1] += order->first[i];
}

/* Depth first, with what is still to be visited on a stack: the last child first. */
static void walk_nodes(uint32_t n, struct tti_print_order *order, uint32_t *stack)
{
	uint32_t depth = 0, done = 0, node = n;

	for (;;) {
		for (uint32_t i = order->first[node + 1]; i-- > order->first[node];)
			stack[depth++] = order->nodes[i];
		if (!depth)
			return;
		node = stack[--depth];
		order->walk[done++] = node;
	}
}

bool tti_print_order_make(const struct tti_graph *graph, struct tti_print_order *out)
{
	const size_t n = (size_t)graph->nnodes + 2;
	struct key *keys = tti_calloc(n, sizeof(*keys));
	uint32_t *stack = tti_calloc(n, sizeof(*stack));

	out->nodes = tti_calloc(n, sizeof(*out->nodes));
	out->first = tti_calloc(n, sizeof(*out->first));
	out->walk = tti_calloc(n, sizeof(*out->walk));
	if (keys && stack && out->nodes && out->first && out->walk) {
		sort_nodes(graph, keys, out);
		walk_nodes(graph->nnodes, out, stack);
	} else {
		tti_print_order_release(out);
	}
	tti_free(keys);
	tti_free(stack);
	return out->nodes != NULL;
}

void tti_print_order_release(struct tti_print_order *order)
{
	tti_free(order->nodes);
	tti_free(order->first);
	tti_free(order->walk);
	*order = (struct tti_print_order){ 0 };
}
