/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_GRAPH_DIFF_TREE_H
#define TTI_TOPO_GRAPH_DIFF_TREE_H

/* For diff.c: a graph as a tree, and which node of one tree is which of another.
 *
 * The tree has the parents of the graph, a node for each host and one above all hosts.
 * Nodes are matched from the top down, by what they are and what hangs below them. Names and
 * bus ids only choose among nodes that are equal otherwise, or help where none are.
 * Which nodes have no match, and so how many lines a diff has, does not depend on the order
 * of a and b.
 *
 * Owner: tti_diff_tree_release(). The graph must outlive it. Threads: any. */

#include "topo/graph/graph.h"
#include "util/strbuf.h"

/* A fact about a node: "link" "gen4 x16, 24.0 GB/s". */
#define TTI_DIFF_FACTS 8
struct tti_diff_fact {
	const char *what;
	size_t at, len; /* in facts->text */
};
struct tti_diff_facts {
	struct tti_strbuf text;
	struct tti_diff_fact fact[TTI_DIFF_FACTS];
	size_t n;
};
/* What a graph says about a node, without names, bus ids and what was measured. */
void tti_diff_facts_of(const struct tti_graph *graph, uint32_t node, struct tti_diff_facts *out);

/* Nodes of the tree: those of the graph, then hosts, then the top. */
struct tti_diff_tree {
	const struct tti_graph *graph;
	uint32_t n, top;
	uint32_t *parent;
	uint32_t *first, *children; /* children[first[v] .. first[v + 1])           */
	uint32_t *order;            /* all, each before its children                */
	uint64_t *deep;             /* a hash of the node and all below             */
	uint64_t *label; /* a hash of the names of GPUs and NETs below, else of its own */
	uint32_t *match; /* in the other tree, TTI_NODE_NONE: none        */
};

TUTTI_CHECKED tutti_status tti_diff_tree_init(struct tti_diff_tree *tree,
					      const struct tti_graph *graph);
void tti_diff_tree_release(struct tti_diff_tree *tree);
TUTTI_CHECKED tutti_status tti_diff_match(struct tti_diff_tree *a, struct tti_diff_tree *b);

/* Whether a link crosses the tree instead of being one of its branches. */
static inline bool tti_diff_crosses(const struct tti_graph *graph, const struct tti_topo_link *link)
{
	if (link->type == TTI_LINK_NVL || link->type == TTI_LINK_C2C || link->type == TTI_LINK_SYS)
		return true;
	return graph->nodes[link->from].parent != link->to &&
	       graph->nodes[link->to].parent != link->from;
}

#endif
