/* SPDX-License-Identifier: BSD-3-Clause */
/* More endpoints than a table of pairs is made for: rows on demand, in bounded memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>

#include "insight/topo/paths_check.h"
#include "topo/paths/routes.h"
#include "unit/topo/graphs.h"
#include "util/error.h"

#define MANY 3000

/* Two sockets of GPUs and NICs, in turn, each on its CPU. */
static struct tti_graph *many(int n)
{
	struct tti_strbuf text = { 0 };
	struct tti_graph *graph;

	for (int i = 0; i < n; i++) {
		if (i % (n / 2) == 0)
			tti_strbuf_addf(&text, "%s<cpu numaid=\"%d\" affinity=\"f\">",
					i ? "</cpu>" : "", i / (n / 2));
		tti_strbuf_addf(&text,
				"<pci busid=\"%04x:%02x:%02x.0\" class=\"%s\" "
				"link_width=\"%d\">",
				i >> 13, i >> 5 & 0xff, i & 31, i % 2 ? "0x020000" : "0x030200",
				1 << i % 5);
		if (i % 2)
			tti_strbuf_addf(
				&text, "<nic><net name=\"n%d\" dev=\"%d\" gdr=\"1\"/></nic>", i, i);
		else
			tti_strbuf_addf(&text, "<gpu dev=\"%d\" sm=\"80\" gdr=\"1\"/>", i);
		tti_strbuf_add(&text, "</pci>");
	}
	tti_strbuf_add(&text, "</cpu>");
	assert_false(text.failed);
	graph = graph_of(doc_of_text(text.text), TTI_MODEL_TUTTI);
	tti_strbuf_release(&text);
	return graph;
}

static struct tti_paths *paths_of(const struct tti_graph *graph)
{
	struct tti_paths *paths = NULL;

	if (tti_paths_build(graph, &paths) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return paths;
}

static uint32_t gpu_at(const struct tti_graph *graph, uint32_t i)
{
	return graph->by_type[TTI_NODE_GPU][i];
}

static uint32_t net_at(const struct tti_graph *graph, uint32_t i)
{
	return graph->by_type[TTI_NODE_NET][i];
}

static void rows_come_on_demand(void **state)
{
	struct tti_graph *graph = many(MANY);
	struct tti_paths *paths = paths_of(graph);
	const struct tti_path *near = tti_paths_get(paths, gpu_at(graph, 0), net_at(graph, 0));
	const struct tti_path *far =
		tti_paths_get(paths, gpu_at(graph, 0), net_at(graph, MANY / 2 - 1));

	(void)state;
	assert_null(paths->at);
	assert_int_equal(paths->n, MANY + 2);
	assert_int_equal(near->type, TTI_PATH_PHB);
	assert_int_equal(near->nhops, 4);
	assert_int_equal(far->type, TTI_PATH_SYS);
	assert_int_equal(far->nhops, 5);
	assert_true(far == tti_paths_get(paths, gpu_at(graph, 0), net_at(graph, MANY / 2 - 1)));
	assert_int_equal(
		graph->links[*tti_paths_hops(paths, net_at(graph, 5), gpu_at(graph, 3))].from,
		net_at(graph, 5));
	assert_true(tti_paths_has(paths, gpu_at(graph, 0)));
	assert_false(tti_paths_has(paths, gpu_at(graph, 1)));
	assert_int_equal(tti_paths_check(paths), TUTTI_OK);
	tti_paths_free(paths);
	tti_graph_free(graph);
}

/* What comes on demand is what a table has: of the first endpoints of a machine that is
 * cut down to them. */
static void rows_are_what_a_table_has(void **state)
{
	struct tti_graph *large = many(MANY), *small = many(400);
	struct tti_paths *rows = paths_of(large), *table = paths_of(small);

	(void)state;
	assert_null(rows->at);
	assert_non_null(table->at);
	for (uint32_t i = 0; i < 20; i++)
		for (uint32_t j = 0; j < 100; j++) {
			const struct tti_path *a =
				tti_paths_get(rows, gpu_at(large, i), net_at(large, j));
			const struct tti_path *b =
				tti_paths_get(table, gpu_at(small, i), net_at(small, j));

			assert_int_equal(a->type, b->type);
			assert_int_equal(a->nhops, b->nhops);
			assert_true(a->bw_gbps == b->bw_gbps && a->latency_ns == b->latency_ns);
		}
	tti_paths_free(rows);
	tti_paths_free(table);
	tti_graph_free(large);
	tti_graph_free(small);
}

static void memory_is_bounded(void **state)
{
	struct tti_graph *graph = many(MANY);
	struct tti_paths *paths = paths_of(graph);
	uint32_t n = 0;

	(void)state;
	while (n < paths->n && tti_paths_get(paths, paths->endpoints[n], paths->endpoints[0]))
		n++;
	assert_in_range(n, 400, TTI_PATHS_BYTES / sizeof(struct tti_path) / paths->n);
	assert_non_null(strstr(tti_error_text(), "do not fit into the 80 MiB"));
	assert_null(tti_paths_hops(paths, paths->endpoints[n], paths->endpoints[0]));
	/* What was there stays. */
	assert_non_null(tti_paths_get(paths, paths->endpoints[n - 1], paths->endpoints[0]));
	tti_paths_free(paths);
	tti_graph_free(graph);
}

struct shared {
	const struct tti_paths *paths;
	const struct tti_routes *routes;
	uint32_t first;
	double sum;
};

static void *read_some(void *arg)
{
	struct shared *shared = arg;
	const struct tti_graph *graph = shared->paths->graph;

	for (uint32_t i = 0; i < 30; i++)
		for (uint32_t j = 0; j < 30; j++) {
			const uint32_t from = gpu_at(graph, (shared->first + i) % 40);
			const uint32_t to = net_at(graph, j);

			shared->sum += (double)tti_paths_get(shared->paths, from, to)->bw_gbps;
			shared->sum += (double)tti_routes_get(shared->routes, from, to)->bw_gbps;
		}
	return NULL;
}

static void many_threads_may_read(void **state)
{
	const struct tti_routes_config config = { .p2p_level = TTI_PATH_PXB,
						  .gdr_level = TTI_PATH_PXB,
						  .gdr_read = -1 };
	const int sizes[] = { 200, MANY };

	(void)state;
	for (size_t at = 0; at < 2; at++) {
		struct tti_graph *graph = many(sizes[at]);
		struct tti_paths *paths = paths_of(graph);
		struct tti_routes *routes = NULL;
		struct shared shared[4];
		pthread_t threads[4];

		assert_int_equal(tti_routes_build(paths, &config, &routes), TUTTI_OK);
		for (uint32_t i = 0; i < 4; i++) {
			shared[i] = (struct shared){ paths, routes, i * 3, 0 };
			assert_int_equal(pthread_create(&threads[i], NULL, read_some, &shared[i]),
					 0);
		}
		for (size_t i = 0; i < 4; i++) {
			pthread_join(threads[i], NULL);
			assert_true(shared[i].sum > 0);
		}
		tti_routes_free(routes);
		tti_paths_free(paths);
		tti_graph_free(graph);
	}
}

static void routes_come_on_demand(void **state)
{
	struct tti_graph *graph = many(MANY);
	struct tti_paths *paths = paths_of(graph);
	const struct tti_routes_config config = { .p2p_level = TTI_PATH_PXB,
						  .gdr_level = TTI_PATH_PXB,
						  .gdr_read = -1 };
	const struct tti_route *route;
	struct tti_routes *routes = NULL;

	(void)state;
	assert_int_equal(tti_routes_build(paths, &config, &routes), TUTTI_OK);
	assert_null(routes->at);
	assert_int_equal(tti_routes_want_all(routes), TUTTI_EUNSUPPORTED);
	assert_non_null(strstr(tti_error_text(), "3002 GPUs"));
	route = tti_routes_get(routes, gpu_at(graph, 0), net_at(graph, 0));
	assert_int_equal(route->why, TTI_ROUTE_GDR_FAR);
	assert_int_equal(route->via, graph->by_type[TTI_NODE_HOST][0]);
	assert_true(route == tti_routes_get(routes, gpu_at(graph, 0), net_at(graph, 0)));
	assert_int_equal(tti_routes_get(routes, gpu_at(graph, 1), gpu_at(graph, 1))->type,
			 TTI_PATH_LOC);
	tti_routes_free(routes);
	tti_paths_free(paths);
	tti_graph_free(graph);
}

/* A chain of switches that is longer than a path may be. */
static void no_path_is_too_long_to_count(void **state)
{
	const unsigned n = UINT16_MAX;
	struct tti_strbuf text = { 0 };
	struct tti_paths *paths = NULL;
	struct tti_graph *graph;

	(void)state;
	tti_strbuf_add(&text, "<cpu numaid=\"0\">");
	for (unsigned i = 0; i < n; i++) {
		tti_strbuf_addf(&text, "<pci busid=\"%04x:%02x:%02x.0\" class=\"0x060400\">",
				i >> 13, i >> 5 & 0xff, i & 31);
		if (i == 0 || i == n - 1)
			tti_strbuf_addf(&text,
					"<pci busid=\"f000:%02x:00.0\" class=\"0x030000\"><gpu "
					"dev=\"%d\"/></pci>",
					i == 0, i == 0);
		if (i + 1 < n)
			tti_strbuf_addf(&text, "<pcilink target=\"%04x:%02x:%02x.0\"/>",
					(i + 1) >> 13, (i + 1) >> 5 & 0xff, (i + 1) & 31);
		tti_strbuf_add(&text, "</pci>");
	}
	tti_strbuf_add(&text, "</cpu>");
	assert_false(text.failed);
	graph = graph_of(doc_of_text(text.text), TTI_MODEL_TUTTI);
	tti_strbuf_release(&text);
	assert_int_equal(tti_paths_build(graph, &paths), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "65538 links"));
	tti_graph_free(graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_come_on_demand),
		cmocka_unit_test(rows_are_what_a_table_has),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(many_threads_may_read),
		cmocka_unit_test(routes_come_on_demand),
		cmocka_unit_test(no_path_is_too_long_to_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
