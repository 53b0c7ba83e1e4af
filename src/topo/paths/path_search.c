/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/paths/path_search.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "topo/paths/path_state.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

/* A search over (node, state). The state says how a path reached the node, as far as the type of
 * the path and where it may lead depend on that.
 *
 * A label is a path from the source to a (node, state). Labels are made in rounds, one per hop.
 * Of two paths to the same (node, state), A beats B if A is not narrower and does not come after
 * B in the order (hops, latency, nodes on the path). Each continuation of B is also one of A, and
 * A's then beats B's: so a beaten label is dropped. A best path is found although a part of it
 * need not be best. A narrow label that is early and a wide one that is late are both kept,
 * because a path with a narrow link elsewhere needs the early one.
 *
 * Paths may visit a node twice here, but a best one does not. Take any two states in which one
 * path can reach a node. All that is permitted from the later state is also permitted from the
 * earlier one, and ends in the same or a lower type. Without the circle, the path has no higher
 * type, no less bandwidth and fewer hops.
 *
 * A round makes its labels in the order of the nodes on their paths: it takes the labels of
 * the last round in their order, and from each the links in the order of their ends (first
 * those to endpoints, from which no path goes on). So among equal paths the first one made has
 * the smallest sequence of nodes. */

#define NONE UINT32_MAX

struct edge {
	uint32_t to, link;
	float bw;
	uint8_t hop;
	uint64_t latency;
};

struct label {
	uint64_t latency;
	uint32_t node, link, parent;
	uint32_t beside; /* the next one of its (node, state) in this round */
	float bw;
	uint8_t state;
	bool last;   /* at its end: an endpoint */
	bool beaten; /* by another one          */
};

/* What is known of a (node, state), if `run` is the current one. */
struct place {
	uint32_t run, round;
	uint32_t first;       /* label of this round                  */
	float before, widest; /* of earlier rounds; of this one too   */
};

/* What is known of a node. */
struct seen {
	uint32_t run;
	uint32_t best;  /* endpoints: a label                                   */
	uint32_t nhops; /* endpoints: of it                                     */
	uint8_t rank;   /* PCI, NVS: the lowest of the states it was reached in */
};

struct tti_path_search {
	const struct tti_graph *graph;
	bool nvb, from_nic;
	uint32_t *order; /* place of a node by host, type and name */
	/* edges[first_edge[node] .. first_edge[node + 1]) leave a node, in the order of their
	 * ends. Those to its endpoints, before first_inner[node], come first. */
	struct edge *edges;
	uint32_t *first_edge, *first_inner;
	struct place *places;
	struct seen *seen;
	uint32_t run;
	TTI_VEC(struct label) labels;
	uint64_t steps;
};

/* -- The graph as the search wants it ---------------------------------------------------- */

static int compare_nodes(const void *left, const void *right, void *arg)
{
	const struct tti_graph *graph = arg;
	const struct tti_node *a = &graph->nodes[*(const uint32_t *)left];
	const struct tti_node *b = &graph->nodes[*(const uint32_t *)right];
	int order = 0;

	if (a->host != b->host)
		order = strcmp(graph->hosts[a->host], graph->hosts[b->host]);
	if (!order)
		order = (a->type > b->type) - (a->type < b->type);
	if (!order)
		order = tti_name_order(a->name, b->name);
	return order ? order : (a > b) - (a < b);
}

static bool order_nodes(struct tti_path_search *search)
{
	const struct tti_graph *graph = search->graph;
	uint32_t *sorted = tti_calloc(graph->nnodes, sizeof(*sorted));

	if (!sorted)
		return false;
	for (uint32_t i = 0; i < graph->nnodes; i++)
		sorted[i] = i;
	qsort_r(sorted, graph->nnodes, sizeof(*sorted), compare_nodes, (void *)graph);
	for (uint32_t i = 0; i < graph->nnodes; i++)
		search->order[sorted[i]] = i;
	tti_free(sorted);
	return true;
}

static int compare_edges(const void *left, const void *right, void *arg)
{
	const struct tti_path_search *search = arg;
	const struct tti_topo_link *links = search->graph->links;
	const struct edge *a = left, *b = right;
	const bool ends[] = { a->hop == TTI_HOP_TO_ENDPOINT, b->hop == TTI_HOP_TO_ENDPOINT };
	const uint32_t to[] = { search->order[a->to], search->order[b->to] };
	const enum tti_link_type type[] = { links[a->link].type, links[b->link].type };

	if (ends[0] != ends[1])
		return ends[0] ? -1 : 1;
	if (to[0] != to[1])
		return to[0] < to[1] ? -1 : 1;
	return (type[0] > type[1]) - (type[0] < type[1]);
}

static uint32_t copy_edges_of(struct tti_path_search *search, uint32_t from, uint32_t n)
{
	const struct tti_graph *graph = search->graph;
	const struct tti_node *node = &graph->nodes[from];
	const uint32_t first = n;

	search->first_edge[from] = search->first_inner[from] = first;
	for (uint32_t at = node->first_link; at < node->first_link + node->nlinks; at++) {
		const struct tti_topo_link *link = &graph->links[at];
		const enum tti_path_hop hop = tti_path_state_hop(graph, link);

		if (hop == TTI_HOP_NONE)
			continue;
		search->first_inner[from] += hop == TTI_HOP_TO_ENDPOINT;
		search->edges[n++] = (struct edge){
			.to = link->to,
			.link = at,
			.bw = link->bw_gbps,
			.hop = (uint8_t)hop,
			.latency = tti_path_search_latency(link->latency_ns),
		};
	}
	if (n - first > 1)
		qsort_r(&search->edges[first], n - first, sizeof(*search->edges), compare_edges,
			search);
	return n;
}

static void copy_edges(struct tti_path_search *search)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < search->graph->nnodes; i++)
		n = copy_edges_of(search, i, n);
	search->first_edge[search->graph->nnodes] = n;
}

tutti_status tti_path_search_create(const struct tti_graph *graph, bool nvb,
				    struct tti_path_search **out)
{
	const size_t n = graph->nnodes;
	struct tti_path_search *search = tti_zalloc(sizeof(*search));

	if (!search)
		goto fail;
	search->graph = graph;
	search->nvb = nvb;
	search->order = tti_calloc(n, sizeof(*search->order));
	search->first_edge = tti_calloc(n + 1, sizeof(*search->first_edge));
	search->first_inner = tti_calloc(n, sizeof(*search->first_inner));
	search->edges = tti_calloc(graph->nlinks, sizeof(*search->edges));
	search->places = tti_calloc(n * TTI_PATH_PLACES, sizeof(*search->places));
	search->seen = tti_calloc(n, sizeof(*search->seen));
	if (!search->order || !search->first_edge || !search->first_inner || !search->edges ||
	    !search->places || !search->seen || !order_nodes(search))
		goto fail;
	copy_edges(search);
	*out = search;
	return TUTTI_OK;
fail:
	tti_path_search_free(search);
	return tti_fail(TUTTI_ENOMEM, "no memory for the paths of %zu nodes", n);
}

void tti_path_search_free(struct tti_path_search *search)
{
	if (!search)
		return;
	tti_free(search->order);
	tti_free(search->first_edge);
	tti_free(search->first_inner);
	tti_free(search->edges);
	tti_free(search->places);
	tti_free(search->seen);
	tti_vec_release(&search->labels);
	tti_free(search);
}

/* -- One search -------------------------------------------------------------------------- */

static struct seen *see(struct tti_path_search *search, uint32_t node)
{
	struct seen *seen = &search->seen[node];

	if (seen->run != search->run)
		*seen = (struct seen){ .run = search->run, .best = NONE, .rank = UINT8_MAX };
	return seen;
}

static bool push(struct tti_path_search *search, const struct label *label)
{
	return tti_vec_push(&search->labels, *label);
}

/* A path to an endpoint is kept if it is the best so far. An earlier one has no more hops. */
static bool reach_endpoint(struct tti_path_search *search, const struct label *label,
			   uint32_t round)
{
	struct seen *seen = see(search, label->node);

	if (seen->best != NONE) {
		const struct label *best = &search->labels.at[seen->best];
		const uint8_t type = tti_path_state_rules[label->state].type,
			      was = tti_path_state_rules[best->state].type;

		if (type > was || (type == was && label->bw < best->bw))
			return true;
		if (type == was && label->bw == best->bw &&
		    (seen->nhops < round || best->latency <= label->latency))
			return true;
	}
	seen->best = (uint32_t)search->labels.n;
	seen->nhops = round;
	return push(search, label);
}

/* Drop labels of this round that the new one beats, which is made after them. false: one of
 * them beats the new one. */
static bool beats_others(struct tti_path_search *search, const struct place *place,
			 const struct label *label)
{
	for (uint32_t at = place->first; at != NONE; at = search->labels.at[at].beside) {
		const struct label *other = &search->labels.at[at];

		search->steps++;
		if (other->latency <= label->latency && other->bw >= label->bw)
			return false;
	}
	for (uint32_t at = place->first; at != NONE; at = search->labels.at[at].beside) {
		struct label *other = &search->labels.at[at];

		if (label->latency < other->latency && label->bw >= other->bw)
			other->beaten = true;
	}
	return true;
}

static bool reach_node(struct tti_path_search *search, struct label *label, uint32_t round)
{
	const size_t at =
		(size_t)label->node * TTI_PATH_PLACES + tti_path_state_rules[label->state].place;
	struct place *place = &search->places[at];

	if (place->run != search->run)
		*place = (struct place){ .run = search->run, .before = -1, .widest = -1 };
	if (place->round != round) {
		place->round = round;
		place->before = place->widest;
		place->first = NONE;
	}
	if (label->bw <= place->before || !beats_others(search, place, label))
		return true;
	if (label->bw > place->widest)
		place->widest = label->bw;
	label->beside = place->first;
	place->first = (uint32_t)search->labels.n;
	return push(search, label);
}

/* Follow one link from a label of the last round. false: out of memory. */
static bool follow(struct tti_path_search *search, uint32_t parent, const struct edge *edge,
		   uint32_t round)
{
	const struct label *from = &search->labels.at[parent];
	struct label label = { .node = edge->to,
			       .link = edge->link,
			       .parent = parent,
			       .beside = NONE,
			       .state = tti_path_state_rules[from->state].next[edge->hop],
			       .last = edge->hop == TTI_HOP_TO_ENDPOINT,
			       .latency = from->latency + edge->latency,
			       .bw = from->bw < edge->bw ? from->bw : edge->bw };

	if (label.state == TTI_AT_START ||
	    (from->state == TTI_AT_E_NVL && !label.last && !search->nvb))
		return true;
	if (label.last)
		return reach_endpoint(search, &label, round);
	if (label.state == TTI_AT_C_GPU && search->from_nic)
		label.state = TTI_AT_C_NIC;
	if (edge->hop == TTI_HOP_PCI_PCI || edge->hop == TTI_HOP_NVL_NVS) {
		struct seen *seen = see(search, edge->to);

		if (tti_path_state_rules[label.state].rank > seen->rank)
			return true;
		seen->rank = tti_path_state_rules[label.state].rank;
	}
	return reach_node(search, &label, round);
}

static bool follow_all(struct tti_path_search *search, uint32_t from, uint32_t round)
{
	const struct label *label = &search->labels.at[from];
	const uint32_t first = search->first_edge[label->node];
	const uint32_t last = label->state > TTI_AT_E_NVL ? search->first_inner[label->node]
							  : search->first_edge[label->node + 1];

	search->steps += last - first;
	for (uint32_t at = first; at < last; at++)
		if (!follow(search, from, &search->edges[at], round))
			return false;
	return true;
}

static bool all_rounds(struct tti_path_search *search)
{
	size_t first = 0, last = search->labels.n;

	for (uint32_t round = 1; first < last; round++) {
		for (size_t at = first; at < last; at++) {
			const struct label *label = &search->labels.at[at];

			if (!label->beaten && !label->last &&
			    !follow_all(search, (uint32_t)at, round))
				return false;
		}
		first = last;
		last = search->labels.n;
	}
	return true;
}

/* The numbers of runs that places remember must not come again. */
static void begin(struct tti_path_search *search)
{
	search->labels.n = 0;
	if (++search->run != 0)
		return;
	memset(search->places, 0,
	       search->graph->nnodes * TTI_PATH_PLACES * sizeof(*search->places));
	memset(search->seen, 0, search->graph->nnodes * sizeof(*search->seen));
	search->run = 1;
}

tutti_status tti_path_search_run(struct tti_path_search *search, const uint32_t *sources,
				 size_t nsources)
{
	bool fine = true;

	begin(search);
	search->from_nic = nsources > 0 && search->graph->nodes[sources[0]].type == TTI_NODE_NET;
	for (size_t i = 0; i < nsources && fine; i++) {
		const struct label label = { .node = sources[i],
					     .link = NONE,
					     .parent = NONE,
					     .beside = NONE,
					     .state = TTI_AT_START,
					     .bw = FLT_MAX };

		see(search, sources[i])->best = (uint32_t)i;
		fine = push(search, &label);
	}
	if (!fine || !all_rounds(search))
		return tti_fail(TUTTI_ENOMEM, "no memory for the paths from %s",
				search->graph->nodes[sources[0]].name);
	return TUTTI_OK;
}

/* -- What it found ----------------------------------------------------------------------- */

bool tti_path_search_found(const struct tti_path_search *search, uint32_t node,
			   struct tti_path_found *out)
{
	const struct seen *seen = &search->seen[node];
	const struct label *label;

	if (seen->run != search->run || seen->best == NONE)
		return false;
	label = &search->labels.at[seen->best];
	out->type = tti_path_state_rules[label->state].type;
	out->bw_gbps = label->bw;
	out->latency = label->latency;
	out->nhops = seen->nhops;
	out->end = seen->best;
	return true;
}

void tti_path_search_hops(const struct tti_path_search *search, const struct tti_path_found *found,
			  uint32_t *hops)
{
	const struct label *label = &search->labels.at[found->end];

	for (uint32_t at = found->nhops; at-- > 0; label = &search->labels.at[label->parent])
		hops[at] = label->link;
}

uint64_t tti_path_search_steps(const struct tti_path_search *search)
{
	return search->steps;
}
