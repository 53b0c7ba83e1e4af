/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths against those that trying all ways finds, and against themselves after nodes and
 * links have changed their places: on all files and on random machines. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "insight/topo/paths_check.h"
#include "path_oracle.h"
#include "support/random_topo.h"
#include "support/sanitizer.h"
#include "topo/paths/paths.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/hash.h"

#define RANDOM_GRAPHS (SANITIZED ? 100 : 1000)
#define WHOLE_LINKS   70    /* up to here ways that lead nowhere are tried too */
#define MOST_WAYS     40000 /* of a random machine; those with more are too slow to try */

static struct tti_paths *paths_of(const struct tti_graph *graph)
{
	struct tti_paths *paths = NULL;

	if (tti_paths_build(graph, &paths) != TUTTI_OK || tti_paths_check(paths) != TUTTI_OK)
		fail_msg("%s: %s", graph->source, tti_error_text());
	return paths;
}

/* -- Against the oracle ---------------------------------------------------------------- */

static void expect_network(const struct oracle *oracle, uint32_t from, uint32_t to,
			   const struct tti_path *path)
{
	const struct oracle_way out = oracle_reach(oracle, from, true);
	const struct oracle_way in = oracle_reach(oracle, to, false);
	const bool any = out.type != TTI_PATH_DIS && in.type != TTI_PATH_DIS;

	assert_int_equal(path->type, any ? TTI_PATH_NET : TTI_PATH_DIS);
	assert_int_equal(path->nhops, 0);
	if (!any)
		return;
	assert_true(path->bw_gbps == (out.bw < in.bw ? out.bw : in.bw));
	assert_true(path->latency_ns == (float)((double)(out.latency + in.latency) / 1024));
}

static void expect_pair(const struct oracle *oracle, const struct tti_paths *paths, uint32_t from,
			uint32_t to)
{
	const struct tti_graph *graph = oracle->graph;
	const struct tti_path *path = tti_paths_get(paths, from, to);
	const struct oracle_way *best = oracle_best(oracle, from, to);

	if (from == to) {
		assert_int_equal(path->type, TTI_PATH_LOC);
		assert_int_equal(path->nhops, 0);
		assert_true(path->bw_gbps == (float)TTI_LOC_GBPS);
		return;
	}
	if (best->type == TTI_PATH_DIS) {
		expect_network(oracle, from, to, path);
		return;
	}
	if (path->type != best->type || path->bw_gbps != best->bw || path->nhops != best->nhops ||
	    path->latency_ns != (float)((double)best->latency / 1024) ||
	    memcmp(tti_paths_hops(paths, from, to), best->hops,
		   best->nhops * sizeof(*best->hops)) != 0)
		fail_msg("%s: %s to %s is %s, %g GB/s, %u hops, %g ns; the best is %s, %g GB/s, "
			 "%u hops, %g ns",
			 graph->source, graph->nodes[from].name, graph->nodes[to].name,
			 tti_path_type_name(path->type), (double)path->bw_gbps, path->nhops,
			 (double)path->latency_ns, tti_path_type_name(best->type), (double)best->bw,
			 best->nhops, (double)best->latency / 1024);
}

/* Pairs of each type, graphs tried and their ways. */
struct tally {
	unsigned types[TTI_PATH_DIS + 1], ngraphs;
	uint64_t nways;
};

static void expect_best(const struct tti_graph *graph, const struct tti_paths *paths, uint64_t most,
			struct tally *tally)
{
	struct oracle oracle;

	assert_true(oracle_init(&oracle, graph, graph->nlinks <= WHOLE_LINKS, most));
	assert_int_equal(oracle.n, paths->n);
	for (uint32_t i = 0; i < oracle.n && oracle.nways < most; i++)
		for (uint32_t j = 0; j < oracle.n; j++) {
			const uint32_t from = oracle.endpoints[i], to = oracle.endpoints[j];

			expect_pair(&oracle, paths, from, to);
			tally->types[tti_paths_get(paths, from, to)->type]++;
		}
	tally->nways += oracle.nways;
	tally->ngraphs += oracle.nways < most;
	oracle_release(&oracle);
}

/* -- Nodes and links in other places ----------------------------------------------------- */

static uint64_t rng_state;

static uint32_t below(uint32_t n)
{
	rng_state += UINT64_C(0x9e3779b97f4a7c15);
	return (uint32_t)(tti_hash_mix(rng_state) % n);
}

static uint32_t *shuffled(struct tti_arena *arena, uint32_t n)
{
	uint32_t *order = tti_arena_alloc(arena, (n + 1) * sizeof(*order));

	assert_non_null(order);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t j = below(i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

/* The links of node `from` of the old graph, in another order, as those of its new node. */
static void move_links(const struct tti_graph *old, struct tti_graph *new, const uint32_t *place,
		       uint32_t *link_place, uint32_t from, uint32_t *at)
{
	const struct tti_node *node = &old->nodes[from];
	uint32_t *order = shuffled(&new->arena, node->nlinks);

	new->nodes[place[from]].first_link = *at;
	for (uint32_t i = 0; i < node->nlinks; i++) {
		const uint32_t was = node->first_link + order[i];

		new->links[*at] = old->links[was];
		new->links[*at].from = place[old->links[was].from];
		new->links[*at].to = place[old->links[was].to];
		link_place[was] = (*at)++;
	}
}

/* place[] of the nodes is the caller's to look at; lives with the graph. */
static struct tti_graph *permuted(const struct tti_graph *old, uint32_t **place_out)
{
	struct tti_graph *new = calloc(1, sizeof(*new));
	struct tti_arena *arena = &new->arena;
	uint32_t *place, *was, *link_place, *host_place, at = 0;

	*new = (struct tti_graph){ .model = old->model,
				   .nnodes = old->nnodes,
				   .nlinks = old->nlinks,
				   .nhosts = old->nhosts,
				   .source = old->source };
	place = shuffled(arena, old->nnodes);
	host_place = shuffled(arena, old->nhosts);
	was = tti_arena_alloc(arena, (old->nnodes + 1) * sizeof(*was));
	link_place = tti_arena_alloc(arena, (old->nlinks + 1) * sizeof(*link_place));
	new->nodes = tti_arena_alloc(arena, (old->nnodes + 1) * sizeof(*new->nodes));
	new->links = tti_arena_alloc(arena, (old->nlinks + 1) * sizeof(*new->links));
	new->hosts = tti_arena_alloc(arena, (old->nhosts + 1) * sizeof(*new->hosts));
	for (uint32_t i = 0; i < old->nhosts; i++)
		new->hosts[host_place[i]] = old->hosts[i];
	for (uint32_t i = 0; i < old->nnodes; i++) {
		struct tti_node *node = &new->nodes[place[i]];

		was[place[i]] = i;
		*node = old->nodes[i];
		node->host = host_place[node->host];
		if (node->parent != TTI_NODE_NONE)
			node->parent = place[node->parent];
	}
	for (uint32_t i = 0; i < old->nnodes; i++)
		move_links(old, new, place, link_place, was[i], &at);
	for (uint32_t i = 0; i < old->nlinks; i++)
		new->links[link_place[i]].reverse = link_place[old->links[i].reverse];
	for (int type = 0; type <= TTI_NODE_NIC; type++) {
		new->ntype[type] = old->ntype[type];
		new->by_type[type] =
			tti_arena_alloc(arena, (old->ntype[type] + 1) * sizeof(uint32_t));
		for (uint32_t i = 0; i < old->ntype[type]; i++)
			new->by_type[type][i] = place[old->by_type[type][i]];
	}
	*place_out = place;
	return new;
}

static void expect_same(const struct tti_paths *old, const struct tti_paths *new,
			const uint32_t *place, uint32_t from, uint32_t to)
{
	const struct tti_path *a = tti_paths_get(old, from, to);
	const struct tti_path *b = tti_paths_get(new, place[from], place[to]);
	const uint32_t *x = tti_paths_hops(old, from, to);
	const uint32_t *y = tti_paths_hops(new, place[from], place[to]);

	assert_int_equal(a->type, b->type);
	assert_int_equal(a->nhops, b->nhops);
	assert_true(a->bw_gbps == b->bw_gbps && a->latency_ns == b->latency_ns);
	for (uint32_t i = 0; i < a->nhops; i++) {
		assert_int_equal(place[old->graph->links[x[i]].to], new->graph->links[y[i]].to);
		assert_int_equal(old->graph->links[x[i]].type, new->graph->links[y[i]].type);
	}
}

static void expect_order_does_not_count(const struct tti_graph *graph,
					const struct tti_paths *paths)
{
	uint32_t *place;
	struct tti_graph *other = permuted(graph, &place);
	struct tti_paths *others = paths_of(other);

	for (uint32_t i = 0; i < paths->n; i++)
		for (uint32_t j = 0; j < paths->n; j++)
			expect_same(paths, others, place, paths->endpoints[i], paths->endpoints[j]);
	tti_paths_free(others);
	tti_arena_release(&other->arena);
	free(other);
}

/* Figures that no machine has: ways that are longer, but wider or faster, and links that
 * differ in their directions. */
static void disturb(struct tti_graph *graph)
{
	for (uint32_t i = 0; i < graph->nlinks; i++) {
		graph->links[i].bw_gbps = (float)(1 + below(5));
		graph->links[i].latency_ns = (float)below(60) * 0.3F;
	}
}

/* -- The machines ------------------------------------------------------------------------ */

static void try_document(const struct tti_xml_doc *doc, enum tti_model model, bool disturbed,
			 uint64_t most, struct tally *tally)
{
	struct tti_graph *graph = NULL;
	struct tti_paths *paths;

	if (tti_graph_build(doc, model, &graph) != TUTTI_OK)
		fail_msg("%s: %s", doc->source, tti_error_text());
	if (disturbed)
		disturb(graph);
	paths = paths_of(graph);
	expect_best(graph, paths, most, tally);
	expect_order_does_not_count(graph, paths);
	tti_paths_free(paths);
	tti_graph_free(graph);
}

static void try_files(const char *pattern, unsigned least)
{
	struct tally tally = { 0 };
	glob_t found;

	assert_int_equal(glob(pattern, 0, NULL, &found), 0);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		struct tti_xml_doc *doc = NULL;

		if (tti_xml_read_file(found.gl_pathv[i], &doc) == TUTTI_OK &&
		    tti_schema_check(doc) == TUTTI_OK) {
			try_document(doc, TTI_MODEL_TUTTI, false, UINT64_MAX, &tally);
			try_document(doc, TTI_MODEL_NCCL, true, UINT64_MAX, &tally);
		}
		tti_xml_free(doc);
	}
	globfree(&found);
	assert_true(tally.ngraphs >= 2 * least);
}

static void paths_of_all_files_are_the_best(void **state)
{
	(void)state;
	try_files(TEST_DATA "/topologies/*.xml", 30);
}

static void paths_of_raw_files_are_the_best(void **state)
{
	(void)state;
	try_files(TEST_DATA "/topologies/raw/*.xml", 5);
}

static void paths_of_random_machines_are_the_best(void **state)
{
	struct tally tally = { 0 };

	(void)state;
	for (uint64_t seed = 1; tally.ngraphs < RANDOM_GRAPHS; seed++) {
		struct tti_xml_doc *doc = random_topo(seed);

		assert_non_null(doc);
		try_document(doc, seed % 4 ? TTI_MODEL_TUTTI : TTI_MODEL_NCCL, seed % 2, MOST_WAYS,
			     &tally);
		tti_xml_free(doc);
	}
	print_message("%llu ways", (unsigned long long)tally.nways);
	for (int type = 0; type <= TTI_PATH_DIS; type++) {
		print_message(", %s %u", tti_path_type_name((enum tti_path_type)type),
			      tally.types[type]);
		assert_true(tally.types[type] > 0 || type == TTI_PATH_PXN);
	}
	print_message("\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_of_all_files_are_the_best),
		cmocka_unit_test(paths_of_raw_files_are_the_best),
		cmocka_unit_test(paths_of_random_machines_are_the_best),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
