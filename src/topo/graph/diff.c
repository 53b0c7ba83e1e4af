/* SPDX-License-Identifier: BSD-3-Clause */

#include "topo/graph/diff.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "topo/graph/diff_tree.h"
#include "topo/graph/words.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

/* At most so many names of children are listed. */
#define MOST_NAMES 16

/* The GPUs and nets in a subtree that have no match. */
struct unmatched {
	uint32_t ngpus, nnets;
};

struct side {
	struct tti_diff_tree tree;
	const char *name;
	struct unmatched *unmatched; /* of each node */
};

struct diff {
	struct side a, b;
	struct tti_diff_facts of_a, of_b; /* scratch */
	struct tti_strbuf *out;
	size_t n;
};

/* -- What nodes are called ------------------------------------------------------------------ */

/* The names of the children that have one: "GPU0", "mlx5_0, mlx5_1". */
static size_t add_names(const struct tti_diff_tree *tree, uint32_t v, struct tti_strbuf *out)
{
	const struct tti_node *nodes = tree->graph->nodes;
	const char *names[MOST_NAMES];
	size_t n = 0;

	for (uint32_t i = tree->first[v]; i < tree->first[v + 1] && n < MOST_NAMES; i++) {
		const struct tti_node *child = &nodes[tree->children[i]];

		if (child->type == TTI_NODE_GPU || child->type == TTI_NODE_NET)
			names[n++] = child->name;
	}
	tti_words_names(names, n, out);
	return n;
}

/* "GPU0 (0000:1b:00.0)", "NIC mlx5_0 (0000:3b:00.0)", "PCI 0000:17:00.0", "CPU1". */
static void add_node(const struct tti_diff_tree *tree, uint32_t v, struct tti_strbuf *out)
{
	const struct tti_graph *graph = tree->graph;
	const struct tti_node *node;

	if (v >= graph->nnodes) {
		tti_strbuf_add(out, v == tree->top ? "all" : "host ");
		tti_words_text(v == tree->top ? "" : graph->hosts[v - graph->nnodes], out);
		return;
	}
	node = &graph->nodes[v];
	if (graph->nhosts > 1) {
		tti_words_text(graph->hosts[node->host], out);
		tti_strbuf_add(out, " ");
	}
	if (node->type == TTI_NODE_NIC || node->type == TTI_NODE_NET || node->type == TTI_NODE_PCI)
		tti_strbuf_addf(out, "%s ", tti_node_type_name(node->type));
	if ((node->type == TTI_NODE_DEV || node->type == TTI_NODE_NIC) && add_names(tree, v, out))
		tti_strbuf_addf(out, " (%s)", node->name);
	else
		tti_words_text(node->name, out);
}

/* The place of a node: " below PCI 0000:17:00.0 of CPU0". */
static void add_place(const struct tti_diff_tree *tree, uint32_t v, struct tti_strbuf *out)
{
	const struct tti_graph *graph = tree->graph;
	const uint32_t up = tree->parent[v];
	const uint32_t cpu = v < graph->nnodes ? tti_graph_cpu_of(graph, v) : TTI_NODE_NONE;

	if (up >= graph->nnodes)
		return;
	tti_strbuf_add(out, " below ");
	add_node(tree, up, out);
	if (cpu == TTI_NODE_NONE || cpu == up || cpu == v)
		return;
	tti_strbuf_add(out, " of ");
	tti_words_text(graph->nodes[cpu].name, out);
}

/* -- Lines ------------------------------------------------------------------------------------ */

static void end_line(struct diff *diff)
{
	tti_strbuf_add(diff->out, "\n");
	diff->n++;
}

/* The name of a node, and its name in B if that differs. */
static void add_pair(struct diff *diff, uint32_t v)
{
	struct tti_strbuf in_a = { 0 }, in_b = { 0 };

	add_node(&diff->a.tree, v, &in_a);
	add_node(&diff->b.tree, diff->a.tree.match[v], &in_b);
	if (in_a.failed || in_b.failed) {
		diff->out->failed = true;
	} else {
		tti_strbuf_add(diff->out, in_a.text);
		if (strcmp(in_a.text, in_b.text) != 0)
			tti_strbuf_addf(diff->out, ", in B %s", in_b.text);
	}
	tti_strbuf_release(&in_a);
	tti_strbuf_release(&in_b);
}

/* -- What only one side has --------------------------------------------------------------------- */

static tutti_status count_unmatched(struct side *side)
{
	const struct tti_diff_tree *tree = &side->tree;

	side->unmatched = tti_calloc(tree->n, sizeof(*side->unmatched));
	if (!side->unmatched)
		return tti_fail(TUTTI_ENOMEM, "no memory to compare two topologies");
	for (uint32_t i = tree->n; i-- > 1;) {
		const uint32_t v = tree->order[i];
		struct unmatched *unmatched = &side->unmatched[v],
				 *up = &side->unmatched[tree->parent[v]];

		if (v < tree->graph->nnodes && tree->match[v] == TTI_NODE_NONE) {
			unmatched->ngpus += tree->graph->nodes[v].type == TTI_NODE_GPU;
			unmatched->nnets += tree->graph->nodes[v].type == TTI_NODE_NET;
		}
		up->ngpus += unmatched->ngpus;
		up->nnets += unmatched->nnets;
	}
	return TUTTI_OK;
}

/* ", with 2 GPUs and 1 NIC port below", unless the name of the node says so. */
static void add_unmatched(const struct side *side, uint32_t v, struct tti_strbuf *out)
{
	const struct tti_graph *graph = side->tree.graph;
	const struct unmatched unmatched = side->unmatched[v];

	if (unmatched.ngpus + unmatched.nnets == 0 ||
	    (v < graph->nnodes && graph->nodes[v].type != TTI_NODE_CPU &&
	     graph->nodes[v].type != TTI_NODE_PCI && graph->nodes[v].type != TTI_NODE_PKG))
		return;
	tti_strbuf_add(out, ", with ");
	if (unmatched.ngpus)
		tti_strbuf_addf(out, "%" PRIu32 " GPU%s", unmatched.ngpus,
				unmatched.ngpus == 1 ? "" : "s");
	if (unmatched.ngpus && unmatched.nnets)
		tti_strbuf_add(out, " and ");
	if (unmatched.nnets)
		tti_strbuf_addf(out, "%" PRIu32 " NIC port%s", unmatched.nnets,
				unmatched.nnets == 1 ? "" : "s");
	tti_strbuf_add(out, " below");
}

/* A line for each node that has no match and whose parent has one. */
static void only_in(struct diff *diff, const struct side *side)
{
	const struct tti_diff_tree *tree = &side->tree;

	for (uint32_t i = 0; i < tree->n; i++) {
		const uint32_t v = tree->order[i];

		if (tree->match[v] != TTI_NODE_NONE ||
		    tree->match[tree->parent[v]] == TTI_NODE_NONE)
			continue;
		tti_strbuf_addf(diff->out, "only in %s: ", side->name);
		add_node(tree, v, diff->out);
		add_place(tree, v, diff->out);
		add_unmatched(side, v, diff->out);
		end_line(diff);
	}
}

/* -- What both have ------------------------------------------------------------------------------ */

static void moved(struct diff *diff, uint32_t v)
{
	const struct tti_diff_tree *a = &diff->a.tree, *b = &diff->b.tree;
	const uint32_t w = a->match[v];

	if (v == a->top || a->match[a->parent[v]] == b->parent[w])
		return;
	tti_strbuf_add(diff->out, "moved: ");
	add_pair(diff, v);
	tti_strbuf_add(diff->out, ": in A");
	add_place(a, v, diff->out);
	tti_strbuf_add(diff->out, "; in B");
	add_place(b, w, diff->out);
	end_line(diff);
}

static const struct tti_diff_fact *find_fact(const struct tti_diff_facts *facts, const char *what)
{
	for (size_t i = 0; i < facts->n; i++)
		if (strcmp(facts->fact[i].what, what) == 0)
			return &facts->fact[i];
	return NULL;
}

static void changed(struct diff *diff, uint32_t v, const struct tti_diff_fact *x,
		    const struct tti_diff_fact *y)
{
	const char *a = diff->of_a.text.text + x->at, *b = diff->of_b.text.text + y->at;

	if (x->len == y->len && memcmp(a, b, x->len) == 0)
		return;
	add_pair(diff, v);
	tti_strbuf_addf(diff->out, ": %s %.*s in A, %.*s in B", x->what, x->len ? (int)x->len : 4,
			x->len ? a : "none", y->len ? (int)y->len : 4, y->len ? b : "none");
	end_line(diff);
}

/* "mlx5_0" and "mlx5_1" are the same name with other numbers. */
static bool same_stem(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b);

	while (na && a[na - 1] >= '0' && a[na - 1] <= '9')
		na--;
	while (nb && b[nb - 1] >= '0' && b[nb - 1] <= '9')
		nb--;
	return na == nb && memcmp(a, b, na) == 0;
}

static void compare_facts(struct diff *diff, uint32_t v)
{
	const struct tti_graph *a = diff->a.tree.graph, *b = diff->b.tree.graph;
	const uint32_t w = diff->a.tree.match[v];

	tti_diff_facts_of(a, v, &diff->of_a);
	tti_diff_facts_of(b, w, &diff->of_b);
	if (diff->of_a.text.failed || diff->of_b.text.failed) {
		diff->out->failed = true;
		return;
	}
	for (size_t i = 0; i < diff->of_a.n; i++) {
		const struct tti_diff_fact *x = &diff->of_a.fact[i];
		const struct tti_diff_fact *y = find_fact(&diff->of_b, x->what);

		if (y)
			changed(diff, v, x, y);
	}
	if (a->nodes[v].type == TTI_NODE_NET && !same_stem(a->nodes[v].name, b->nodes[w].name)) {
		tti_strbuf_add(diff->out, "NET ");
		tti_words_text(a->nodes[v].name, diff->out);
		tti_strbuf_add(diff->out, " is called ");
		tti_words_text(b->nodes[w].name, diff->out);
		tti_strbuf_add(diff->out, " in B");
		end_line(diff);
	}
}

/* -- Links that cross the tree --------------------------------------------------------------------- */

static const char *const link_words[] = {
	[TTI_LINK_LOC] = "link",     [TTI_LINK_NVL] = "NVLink",   [TTI_LINK_C2C] = "C2C",
	[TTI_LINK_PCI] = "PCI link", [TTI_LINK_SYS] = "SYS link", [TTI_LINK_NET] = "cable",
};

/* A link that crosses the tree, from a node to one that comes after it in A. For a link of B
 * the numbers are those of the matching nodes in A. */
struct cross {
	uint32_t to; /* in A */
	const struct tti_topo_link *link;
};

struct crosses {
	struct cross *at;
	size_t n, room;
};

static int by_end(const void *a, const void *b)
{
	const struct cross *x = a, *y = b;

	if (x->to != y->to)
		return x->to < y->to ? -1 : 1;
	return (x->link->type > y->link->type) - (x->link->type < y->link->type);
}

/* The crossing links of v, which is `self` in A, between nodes that both sides have. */
static bool list_crosses(const struct tti_diff_tree *tree, uint32_t v, uint32_t self, bool is_b,
			 struct crosses *out)
{
	const struct tti_graph *graph = tree->graph;

	out->n = 0;
	for (uint32_t i = 0; i < graph->nodes[v].nlinks; i++) {
		const struct tti_topo_link *link = &graph->links[graph->nodes[v].first_link + i];
		const uint32_t to = is_b ? tree->match[link->to] : link->to;

		if (!tti_diff_crosses(graph, link) || tree->match[link->to] == TTI_NODE_NONE ||
		    to < self)
			continue;
		if (!tti_vec_push(out, ((struct cross){ to, link })))
			return false;
	}
	if (out->n > 1)
		qsort(out->at, out->n, sizeof(*out->at), by_end);
	return true;
}

/* "4 links, 80 GB/s"; both directions if they differ. */
static void add_link(const struct tti_graph *graph, const struct tti_topo_link *link,
		     struct tti_strbuf *out)
{
	const struct tti_topo_link *back = &graph->links[link->reverse];
	char there[TTI_WORDS_MAX], here[TTI_WORDS_MAX];

	tti_words_gbps((double)link->bw_gbps, there);
	tti_words_gbps((double)back->bw_gbps, here);
	if (link->count > 1 || back->count > 1)
		tti_strbuf_addf(out, "%u links, ", (unsigned)link->count);
	tti_strbuf_addf(out, "%s GB/s", there);
	if (link->bw_gbps != back->bw_gbps || link->count != back->count)
		tti_strbuf_addf(out, " (%u links, %s GB/s back)", (unsigned)back->count, here);
}

static bool same_link(const struct diff *diff, const struct tti_topo_link *x,
		      const struct tti_topo_link *y)
{
	const struct tti_topo_link *back_x = &diff->a.tree.graph->links[x->reverse];
	const struct tti_topo_link *back_y = &diff->b.tree.graph->links[y->reverse];

	return x->count == y->count && x->bw_gbps == y->bw_gbps && back_x->count == back_y->count &&
	       back_x->bw_gbps == back_y->bw_gbps;
}

/* x of A, y of B; one may be NULL. */
static void link_line(struct diff *diff, uint32_t from, uint32_t to, const struct tti_topo_link *x,
		      const struct tti_topo_link *y)
{
	tti_strbuf_addf(diff->out, "%s between ", link_words[x ? x->type : y->type]);
	add_pair(diff, from);
	tti_strbuf_add(diff->out, " and ");
	add_pair(diff, to);
	tti_strbuf_add(diff->out, ": ");
	if (x)
		add_link(diff->a.tree.graph, x, diff->out);
	else
		tti_strbuf_add(diff->out, "none");
	tti_strbuf_add(diff->out, " in A, ");
	if (y)
		add_link(diff->b.tree.graph, y, diff->out);
	else
		tti_strbuf_add(diff->out, "none");
	tti_strbuf_add(diff->out, " in B");
	end_line(diff);
}

static bool compare_links(struct diff *diff, uint32_t v, struct crosses *a, struct crosses *b)
{
	size_t i = 0, k = 0;

	if (!list_crosses(&diff->a.tree, v, v, false, a) ||
	    !list_crosses(&diff->b.tree, diff->a.tree.match[v], v, true, b))
		return false;
	while (i < a->n || k < b->n) {
		const int order = i == a->n ? 1 : k == b->n ? -1 : by_end(&a->at[i], &b->at[k]);
		const struct tti_topo_link *x = order <= 0 ? a->at[i].link : NULL;
		const struct tti_topo_link *y = order >= 0 ? b->at[k].link : NULL;
		const uint32_t to = x ? a->at[i].to : b->at[k].to;

		if (!x || !y || !same_link(diff, x, y))
			link_line(diff, v, to, x, y);
		i += x != NULL;
		k += y != NULL;
	}
	return true;
}

/* -- The whole -------------------------------------------------------------------------------------- */

static tutti_status compare(struct diff *diff)
{
	const struct tti_diff_tree *a = &diff->a.tree;
	struct crosses of_a = { 0 }, of_b = { 0 };
	bool good = true;

	TTI_TRY(count_unmatched(&diff->a));
	TTI_TRY(count_unmatched(&diff->b));
	only_in(diff, &diff->a);
	only_in(diff, &diff->b);
	for (uint32_t i = 0; i < a->n; i++)
		if (a->match[a->order[i]] != TTI_NODE_NONE)
			moved(diff, a->order[i]);
	for (uint32_t i = 0; i < a->n; i++) {
		const uint32_t v = a->order[i];

		if (v < a->graph->nnodes && a->match[v] < diff->b.tree.graph->nnodes)
			compare_facts(diff, v);
	}
	for (uint32_t i = 0; i < a->n && good; i++) {
		const uint32_t v = a->order[i];

		if (v < a->graph->nnodes && a->match[v] < diff->b.tree.graph->nnodes)
			good = compare_links(diff, v, &of_a, &of_b);
	}
	tti_vec_release(&of_a);
	tti_vec_release(&of_b);
	if (good && !diff->out->failed)
		return TUTTI_OK;
	return tti_fail(TUTTI_ENOMEM, "no memory to compare two topologies");
}

static void release(struct diff *diff)
{
	tti_diff_tree_release(&diff->a.tree);
	tti_diff_tree_release(&diff->b.tree);
	tti_free(diff->a.unmatched);
	tti_free(diff->b.unmatched);
	tti_strbuf_release(&diff->of_a.text);
	tti_strbuf_release(&diff->of_b.text);
}

tutti_status tti_topo_diff(const struct tti_graph *a, const struct tti_graph *b,
			   struct tti_strbuf *out, size_t *ndiffs_out)
{
	struct diff diff = { .a = { .name = "A" }, .b = { .name = "B" }, .out = out };
	tutti_status status = tti_diff_tree_init(&diff.a.tree, a);

	if (status == TUTTI_OK)
		status = tti_diff_tree_init(&diff.b.tree, b);
	if (status == TUTTI_OK)
		status = tti_diff_match(&diff.a.tree, &diff.b.tree);
	if (status == TUTTI_OK)
		status = compare(&diff);
	release(&diff);
	if (status == TUTTI_OK)
		*ndiffs_out = diff.n;
	return status;
}
