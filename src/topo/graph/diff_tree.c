/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/diff_tree.h"

#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

static uint64_t hash_text(uint64_t seed, const char *text)
{
	return tti_hash_combine(seed, tti_hash_bytes(text, strlen(text)));
}

/* -- Shape --------------------------------------------------------------------------------- */

void tti_diff_tree_release(struct tti_diff_tree *tree)
{
	tti_free(tree->parent);
	tti_free(tree->first);
	tti_free(tree->children);
	tti_free(tree->order);
	tti_free(tree->deep);
	tti_free(tree->label);
	tti_free(tree->match);
	*tree = (struct tti_diff_tree){ 0 };
}

static bool allocate(struct tti_diff_tree *tree)
{
	const size_t n = tree->n;

	tree->parent = tti_calloc(n, sizeof(*tree->parent));
	tree->first = tti_calloc(n + 2, sizeof(*tree->first));
	tree->children = tti_calloc(n, sizeof(*tree->children));
	tree->order = tti_calloc(n, sizeof(*tree->order));
	tree->deep = tti_calloc(n, sizeof(*tree->deep));
	tree->label = tti_calloc(n, sizeof(*tree->label));
	tree->match = tti_calloc(n, sizeof(*tree->match));
	return tree->parent && tree->first && tree->children && tree->order && tree->deep &&
	       tree->label && tree->match;
}

static uint32_t parent_of(const struct tti_diff_tree *tree, uint32_t v)
{
	const struct tti_graph *graph = tree->graph;

	if (v >= graph->nnodes)
		return tree->top;
	if (graph->nodes[v].parent != TTI_NODE_NONE)
		return graph->nodes[v].parent;
	return graph->nodes[v].host < graph->nhosts ? graph->nnodes + graph->nodes[v].host
						    : tree->top;
}

struct slot {
	uint64_t key;
	uint32_t type, node;
};

static int by_slot(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

/* Siblings are in the order of type, then of bus ids or NUMA ids. */
static struct slot slot_of(const struct tti_graph *graph, uint32_t v)
{
	struct slot slot = { .node = v };

	if (v >= graph->nnodes)
		return slot;
	slot.type = graph->nodes[v].type;
	if (slot.type == TTI_NODE_CPU)
		slot.key = (uint64_t)graph->nodes[v].cpu.numaid;
	else if (slot.type == TTI_NODE_DEV || slot.type == TTI_NODE_PCI ||
		 slot.type == TTI_NODE_NIC)
		slot.key = graph->nodes[v].pci.busid;
	return slot;
}

static bool sort_children(struct tti_diff_tree *tree)
{
	struct slot *slots = tti_calloc(tree->n, sizeof(*slots));

	if (!slots)
		return false;
	for (uint32_t v = 0; v < tree->n; v++) {
		uint32_t *child = tree->children + tree->first[v];
		const uint32_t n = tree->first[v + 1] - tree->first[v];

		for (uint32_t i = 0; i < n; i++)
			slots[i] = slot_of(tree->graph, child[i]);
		if (n > 1)
			qsort(slots, n, sizeof(*slots), by_slot);
		for (uint32_t i = 0; i < n; i++)
			child[i] = slots[i].node;
	}
	tti_free(slots);
	return true;
}

static bool make_shape(struct tti_diff_tree *tree)
{
	uint32_t done = 0, n = 0;

	for (uint32_t v = 0; v < tree->n; v++) {
		tree->parent[v] = parent_of(tree, v);
		if (v != tree->top)
			tree->first[tree->parent[v] + 2]++;
	}
	for (uint32_t v = 0; v < tree->n; v++)
		tree->first[v + 1] += tree->first[v];
	for (uint32_t v = 0; v < tree->top; v++)
		tree->children[tree->first[tree->parent[v] + 1]++] = v;
	if (!sort_children(tree))
		return false;
	tree->order[n++] = tree->top;
	for (; done < n; done++) {
		const uint32_t v = tree->order[done];

		for (uint32_t i = tree->first[v]; i < tree->first[v + 1]; i++)
			tree->order[n++] = tree->children[i];
	}
	return true;
}

/* -- Hashes --------------------------------------------------------------------------------- */

/* The sum over the links that cross the tree, which does not depend on their order. */
static uint64_t hash_links(const struct tti_graph *graph, const struct tti_node *node)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < node->nlinks; i++) {
		const struct tti_topo_link *link = &graph->links[node->first_link + i];
		uint64_t hash = tti_hash_combine(link->type, link->count);

		if (tti_diff_crosses(graph, link))
			sum += tti_hash_combine(hash, (uint64_t)((double)link->bw_gbps * 1e3));
	}
	return sum;
}

static uint64_t hash_own(const struct tti_graph *graph, uint32_t v, struct tti_diff_facts *facts)
{
	uint64_t hash = tti_hash_mix(UINT64_C(97));

	if (v >= graph->nnodes)
		return hash;
	hash = tti_hash_combine(hash, graph->nodes[v].type);
	tti_diff_facts_of(graph, v, facts);
	for (size_t i = 0; i < facts->n && !facts->text.failed; i++)
		hash = tti_hash_combine(hash, tti_hash_bytes(facts->text.text + facts->fact[i].at,
							     facts->fact[i].len));
	return tti_hash_combine(hash, hash_links(graph, &graph->nodes[v]));
}

static bool is_named(const struct tti_graph *graph, uint32_t v)
{
	return v < graph->nnodes &&
	       (graph->nodes[v].type == TTI_NODE_GPU || graph->nodes[v].type == TTI_NODE_NET);
}

/* From the bottom up. Until a node is reached, its deep and label hold the sums over its
 * children. */
static bool hash_all(struct tti_diff_tree *tree)
{
	const struct tti_graph *graph = tree->graph;
	struct tti_diff_facts facts = { 0 };
	bool good;

	for (uint32_t i = tree->n; i-- > 0;) {
		const uint32_t v = tree->order[i], up = tree->parent[v];

		tree->deep[v] = tti_hash_combine(hash_own(graph, v, &facts), tree->deep[v]);
		if (is_named(graph, v))
			tree->label[v] = hash_text(graph->nodes[v].type, graph->nodes[v].name);
		if (v == tree->top)
			break;
		tree->deep[up] += tti_hash_mix(tree->deep[v]);
		tree->label[up] += tree->label[v];
		if (!tree->label[v] && v < graph->nnodes)
			tree->label[v] = hash_text(graph->nodes[v].type, graph->nodes[v].name);
	}
	good = !facts.text.failed;
	tti_strbuf_release(&facts.text);
	return good;
}

tutti_status tti_diff_tree_init(struct tti_diff_tree *tree, const struct tti_graph *graph)
{
	*tree = (struct tti_diff_tree){
		.graph = graph,
		.n = graph->nnodes + graph->nhosts + 1,
		.top = graph->nnodes + graph->nhosts,
	};
	if (allocate(tree) && make_shape(tree) && hash_all(tree)) {
		for (uint32_t v = 0; v < tree->n; v++)
			tree->match[v] = TTI_NODE_NONE;
		return TUTTI_OK;
	}
	tti_diff_tree_release(tree);
	return tti_fail(TUTTI_ENOMEM, "no memory to compare %s", graph->source);
}

/* -- Matching ----------------------------------------------------------------------------- */

struct key {
	uint64_t value;
	uint32_t node;
	uint32_t at; /* place in its list */
};

struct list {
	const uint32_t *at;
	uint32_t n;
};

struct matcher {
	struct tti_diff_tree *a, *b;
	struct key *of_a, *of_b; /* scratch */
};

typedef uint64_t (*key_fn)(const struct tti_diff_tree *tree, uint32_t v);

static uint64_t type_key(const struct tti_diff_tree *tree, uint32_t v)
{
	return v < tree->graph->nnodes ? tree->graph->nodes[v].type + 1u : v == tree->top ? 0 : 99;
}

static uint64_t deep_and_label(const struct tti_diff_tree *tree, uint32_t v)
{
	return tti_hash_combine(tree->deep[v], tree->label[v]);
}

static uint64_t deep_key(const struct tti_diff_tree *tree, uint32_t v)
{
	return tree->deep[v];
}

static uint64_t label_key(const struct tti_diff_tree *tree, uint32_t v)
{
	return tti_hash_combine(type_key(tree, v), tree->label[v]);
}

static uint64_t name_key(const struct tti_diff_tree *tree, uint32_t v)
{
	const struct tti_graph *graph = tree->graph;

	if (v < graph->nnodes)
		return hash_text(type_key(tree, v), graph->nodes[v].name);
	return v == tree->top ? 0 : hash_text(99, graph->hosts[v - graph->nnodes]);
}

static int by_key(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? -1 : 1;
	return (x->at > y->at) - (x->at < y->at);
}

/* The keys of the nodes without a match, in order. */
static uint32_t list_keys(const struct tti_diff_tree *tree, struct list list, key_fn key,
			  struct key *out)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < list.n; i++)
		if (tree->match[list.at[i]] == TTI_NODE_NONE)
			out[n++] = (struct key){ key(tree, list.at[i]), list.at[i], i };
	if (n > 1)
		qsort(out, n, sizeof(*out), by_key);
	return n;
}

static void pair(const struct matcher *m, uint32_t x, uint32_t y)
{
	m->a->match[x] = y;
	m->b->match[y] = x;
}

/* Pair nodes of equal keys: the first with the first, the second with the second, and so on. */
static void join(const struct matcher *m, struct list a, struct list b, key_fn key)
{
	const uint32_t na = list_keys(m->a, a, key, m->of_a);
	const uint32_t nb = na ? list_keys(m->b, b, key, m->of_b) : 0;

	for (uint32_t i = 0, k = 0; i < na && k < nb;) {
		if (m->of_a[i].value < m->of_b[k].value)
			i++;
		else if (m->of_a[i].value > m->of_b[k].value)
			k++;
		else
			pair(m, m->of_a[i++].node, m->of_b[k++].node);
	}
}

static void join_places(const struct matcher *m, struct list a, struct list b)
{
	if (a.n != b.n)
		return;
	for (uint32_t i = 0; i < a.n; i++)
		if (m->a->match[a.at[i]] == TTI_NODE_NONE &&
		    m->b->match[b.at[i]] == TTI_NODE_NONE &&
		    m->a->deep[a.at[i]] == m->b->deep[b.at[i]])
			pair(m, a.at[i], b.at[i]);
}

static struct list children_of(const struct tti_diff_tree *tree, uint32_t v)
{
	return (struct list){ tree->children + tree->first[v],
			      tree->first[v + 1] - tree->first[v] };
}

static void match_children(const struct matcher *m, uint32_t x, uint32_t y)
{
	const struct list a = children_of(m->a, x), b = children_of(m->b, y);

	join(m, a, b, deep_and_label);
	join_places(m, a, b);
	join(m, a, b, deep_key);
	join(m, a, b, label_key);
	join(m, a, b, name_key);
	join(m, a, b, type_key);
}

/* Whether a node can move by itself. GPUs, ports and HOSTs move with their device. */
static bool is_movable(const struct tti_diff_tree *tree, uint32_t v)
{
	const enum tti_node_type type =
		v < tree->graph->nnodes ? tree->graph->nodes[v].type : TTI_NODE_HOST;

	return type != TTI_NODE_GPU && type != TTI_NODE_NET && type != TTI_NODE_HOST;
}

static struct list movable(const struct tti_diff_tree *tree, uint32_t *out)
{
	struct list list = { .at = out };

	for (uint32_t i = 0; i < tree->n; i++)
		if (tree->match[tree->order[i]] == TTI_NODE_NONE &&
		    is_movable(tree, tree->order[i]))
			out[list.n++] = tree->order[i];
	return list;
}

static void match_below(const struct matcher *m)
{
	for (uint32_t i = 0; i < m->a->n; i++)
		if (m->a->match[m->a->order[i]] != TTI_NODE_NONE)
			match_children(m, m->a->order[i], m->a->match[m->a->order[i]]);
}

/* Match the nodes that are left, wherever they hang: these were moved. */
static bool match_moved(const struct matcher *m)
{
	uint32_t *of_a = tti_calloc(m->a->n, sizeof(*of_a));
	uint32_t *of_b = tti_calloc(m->b->n, sizeof(*of_b));
	const bool good = of_a && of_b;

	if (good) {
		const struct list a = movable(m->a, of_a), b = movable(m->b, of_b);

		join(m, a, b, deep_and_label);
		join(m, a, b, label_key);
		join(m, a, b, deep_key);
		if (a.n && b.n)
			match_below(m);
	}
	tti_free(of_a);
	tti_free(of_b);
	return good;
}

tutti_status tti_diff_match(struct tti_diff_tree *a, struct tti_diff_tree *b)
{
	struct matcher m = {
		.a = a,
		.b = b,
		.of_a = tti_calloc(a->n, sizeof(*m.of_a)),
		.of_b = tti_calloc(b->n, sizeof(*m.of_b)),
	};
	bool good = m.of_a && m.of_b;

	if (good) {
		pair(&m, a->top, b->top);
		match_below(&m);
		good = match_moved(&m);
	}
	tti_free(m.of_a);
	tti_free(m.of_b);
	return good ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "no memory to compare two topologies");
}
