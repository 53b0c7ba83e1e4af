/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "support/random_topo.h"
#include "topo/graph.h"
#include "util/error.h"

static struct tti_graph *build_file(const char *name, enum tti_model model)
{
	const struct tti_graph_config config = { .model = model };
	struct tti_xml_doc *doc = NULL;
	struct tti_graph *graph = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/topologies/%s", TEST_DATA, name);
	if (tti_xml_read_file(path, &doc) != TUTTI_OK ||
	    tti_graph_build(doc, &config, &graph) != TUTTI_OK)
		fail_msg("%s: %s", name, tti_error_text());
	tti_xml_free(doc);
	return graph;
}

static uint32_t node_of(const struct tti_graph *graph, enum tti_node_type type, const char *name)
{
	const uint32_t node = tti_graph_find(graph, type, name);

	if (node == TTI_NODE_NONE)
		fail_msg("no %s %s in %s", tti_node_type_name(type), name, graph->source);
	return node;
}

static const struct tti_link *link_of(const struct tti_graph *graph, uint32_t from, uint32_t to,
				      enum tti_link_type type)
{
	const struct tti_link *link = tti_graph_link(graph, from, to, type);

	if (!link)
		fail_msg("no %s link from %s to %s", tti_link_type_name(type),
			 graph->nodes[from].name, graph->nodes[to].name);
	return link;
}

static void expect_gbps(const struct tti_link *link, double gbps)
{
	assert_float_equal(link->bw_gbps, (float)gbps, (float)gbps * 1e-6F);
}

/* -- All files ------------------------------------------------------------------------ */

static void all_files_build_and_pass_the_checker(void **state)
{
	glob_t files;

	(void)state;
	assert_int_equal(glob(TEST_DATA "/topologies/*.xml", 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= 30);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		const char *name = strrchr(files.gl_pathv[i], '/') + 1;

		for (int model = TTI_MODEL_TUTTI; model <= TTI_MODEL_NCCL; model++) {
			struct tti_graph *graph = build_file(name, (enum tti_model)model);

			if (tti_graph_check(graph) != TUTTI_OK)
				fail_msg("%s: %s", name, tti_error_text());
			assert_true(graph->ntype[TTI_NODE_GPU] > 1);
			assert_true(graph->ntype[TTI_NODE_CPU] > 0);
			tti_graph_free(graph);
		}
	}
	globfree(&files);
}

static void ndv4_has_its_figures(void **state)
{
	struct tti_graph *graph = build_file("azhpc-images__ndv4-topo.xml", TTI_MODEL_TUTTI);
	const uint32_t gpu = node_of(graph, TTI_NODE_GPU, "GPU0");
	const uint32_t net = node_of(graph, TTI_NODE_NET, "mlx5_0");
	const uint32_t dev = graph->nodes[gpu].parent;

	(void)state;
	assert_int_equal(graph->ntype[TTI_NODE_GPU], 8);
	assert_int_equal(graph->ntype[TTI_NODE_NET], 8);
	assert_int_equal(graph->ntype[TTI_NODE_NVS], 1);
	expect_gbps(link_of(graph, gpu, dev, TTI_LINK_LOC), TTI_LOC_GBPS);
	expect_gbps(link_of(graph, dev, graph->by_type[TTI_NODE_NVS][0], TTI_LINK_NVL), 240);
	expect_gbps(link_of(graph, dev, graph->nodes[dev].parent, TTI_LINK_PCI), 24);
	expect_gbps(link_of(graph, net, graph->nodes[net].parent, TTI_LINK_NET), 25);
	assert_string_equal(graph->nodes[tti_graph_cpu_of(graph, gpu)].name, "CPU0");
	tti_graph_free(graph);
}

static void random_machines_build_and_pass_the_checker(void **state)
{
	uint32_t gpus = 0, nets = 0, hosts = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		for (int model = TTI_MODEL_TUTTI; model <= TTI_MODEL_NCCL; model++) {
			const struct tti_graph_config config = { .model = (enum tti_model)model };
			struct tti_xml_doc *doc = random_topo(seed);
			struct tti_graph *graph = NULL;

			assert_non_null(doc);
			if (tti_graph_build(doc, &config, &graph) != TUTTI_OK ||
			    tti_graph_check(graph) != TUTTI_OK)
				fail_msg("seed %d: %s", (int)seed, tti_error_text());
			gpus += graph->ntype[TTI_NODE_GPU];
			nets += graph->ntype[TTI_NODE_NET];
			hosts += graph->nhosts;
			tti_xml_free(doc);
			tti_graph_free(graph);
		}
	}
	assert_true(gpus > 10000 && nets > 4000 && hosts > 2200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_files_build_and_pass_the_checker),
		cmocka_unit_test(ndv4_has_its_figures),
		cmocka_unit_test(random_machines_build_and_pass_the_checker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
