/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <glob.h>
#include <time.h>

#include "graphs.h"
#include "support/random_topo.h"
#include "support/xml_edit.h"
#include "util/fault.h"

/* -- Real machines ---------------------------------------------------------------------- */

static void build_files(const char *folder, size_t least)
{
	char pattern[512];
	size_t built = 0;
	glob_t files;

	snprintf(pattern, sizeof(pattern), "%s/topologies/%s*.xml", TEST_DATA, folder);
	assert_int_equal(glob(pattern, 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct tti_xml_doc *doc = NULL, *again = NULL;

		if (tti_xml_read_file(files.gl_pathv[i], &doc) != TUTTI_OK)
			fail_msg("%s", tti_error_text());
		if (tti_schema_check(doc) != TUTTI_OK) {
			tti_xml_free(doc);
			continue;
		}
		assert_int_equal(tti_xml_copy(doc, &again), TUTTI_OK);
		tti_graph_free(graph_of(doc, TTI_MODEL_TUTTI));
		tti_graph_free(graph_of(again, TTI_MODEL_NCCL));
		built++;
	}
	globfree(&files);
	assert_true(built >= least);
}

static void all_files_build_and_pass_the_checker(void **state)
{
	(void)state;
	build_files("", 30);
	build_files("raw/", 6);
}

static void ndv4_has_its_figures(void **state)
{
	struct tti_graph *graph =
		graph_of(doc_of_file("azhpc-images__ndv4-topo.xml"), TTI_MODEL_TUTTI);
	const uint32_t gpu = node_of(graph, TTI_NODE_GPU, "GPU0");
	const uint32_t net = node_of(graph, TTI_NODE_NET, "mlx5_0");
	const uint32_t dev = graph->nodes[gpu].parent;
	const uint32_t nvs = node_of(graph, TTI_NODE_NVS, "NVS0");

	(void)state;
	assert_int_equal(graph->ntype[TTI_NODE_GPU], 8);
	assert_int_equal(graph->ntype[TTI_NODE_NET], 8);
	assert_int_equal(graph->ntype[TTI_NODE_NVS], 1);
	assert_int_equal(graph->nodes[nvs].nlinks, 8);
	expect_near(gbps_of(graph, gpu, dev, TTI_LINK_LOC), TTI_LOC_GBPS);
	expect_near(gbps_of(graph, dev, nvs, TTI_LINK_NVL), 240);
	expect_near(gbps_of(graph, nvs, dev, TTI_LINK_NVL), 240);
	expect_near(gbps_of(graph, dev, graph->nodes[dev].parent, TTI_LINK_PCI), 24);
	expect_near(gbps_of(graph, net, graph->nodes[net].parent, TTI_LINK_NET), 25);
	assert_string_equal(graph->nodes[tti_graph_cpu_of(graph, gpu)].name, "CPU0");
	assert_int_equal(graph->nodes[gpu].gpu.sm, 80);
	assert_int_equal(graph->nodes[net].line, 5);
	tti_graph_free(graph);
}

static void ndv2_is_a_cube_mesh(void **state)
{
	struct tti_graph *graph =
		graph_of(doc_of_file("Azure-azhpc-images__ndv2-topo.xml"), TTI_MODEL_NCCL);
	const uint32_t a = node_of(graph, TTI_NODE_DEV, "0001:00:00.0");

	(void)state;
	expect_near(gbps_of(graph, a, node_of(graph, TTI_NODE_DEV, "0002:00:00.0"), TTI_LINK_NVL),
		    20);
	expect_near(gbps_of(graph, a, node_of(graph, TTI_NODE_DEV, "0004:00:00.0"), TTI_LINK_NVL),
		    40);
	assert_true(gbps_of(graph, a, node_of(graph, TTI_NODE_DEV, "0006:00:00.0"), TTI_LINK_NVL) ==
		    0);
	expect_near(gbps_of(graph, node_of(graph, TTI_NODE_CPU, "CPU0"),
			    node_of(graph, TTI_NODE_CPU, "CPU1"), TTI_LINK_SYS),
		    10);
	tti_graph_free(graph);
}

static void amd_links_have_the_figures_of_their_gpu(void **state)
{
	struct tti_graph *graph =
		graph_of(doc_of_file("raw/rccl__topo_8p_940.xml"), TTI_MODEL_TUTTI);
	const uint32_t dev = node_of(graph, TTI_NODE_DEV, "0000:0c:00.0");

	(void)state;
	expect_near(gbps_of(graph, dev, node_of(graph, TTI_NODE_DEV, "0000:15:00.0"), TTI_LINK_NVL),
		    tti_model_xgmi_gbps("gfx942"));
	assert_int_equal(graph->nnotes, 0);
	tti_graph_free(graph);
}

/* -- Made-up ones ------------------------------------------------------------------------- */

static bool same_graph(const struct tti_graph *a, const struct tti_graph *b)
{
	if (a->nnodes != b->nnodes || a->nlinks != b->nlinks || a->nnotes != b->nnotes)
		return false;
	for (uint32_t i = 0; i < a->nlinks; i++) {
		const struct tti_topo_link *x = &a->links[i], *y = &b->links[i];

		if (x->from != y->from || x->to != y->to || x->reverse != y->reverse ||
		    x->type != y->type || x->count != y->count ||
		    memcmp(&x->bw_gbps, &y->bw_gbps, sizeof(float)) != 0 ||
		    memcmp(&x->latency_ns, &y->latency_ns, sizeof(float)) != 0)
			return false;
	}
	for (uint32_t i = 0; i < a->nnodes; i++)
		if (strcmp(a->nodes[i].name, b->nodes[i].name) != 0 ||
		    a->nodes[i].parent != b->nodes[i].parent)
			return false;
	for (uint32_t i = 0; i < a->nnotes; i++)
		if (strcmp(a->notes[i].text, b->notes[i].text) != 0)
			return false;
	return true;
}

static void random_machines_build_the_same_each_time(void **state)
{
	uint32_t gpus = 0, nets = 0, hosts = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 1000; seed++) {
		struct tti_xml_doc *doc = random_topo(seed), *again = random_topo(seed);
		const enum tti_model model = seed % 2 ? TTI_MODEL_NCCL : TTI_MODEL_TUTTI;
		struct tti_graph *a, *b;

		assert_non_null(doc);
		assert_non_null(again);
		assert_true(xml_same(doc->root, again->root));
		if (tti_schema_check(doc) != TUTTI_OK)
			fail_msg("seed %d: %s", (int)seed, tti_error_text());
		a = graph_of(doc, model);
		b = graph_of(again, model);
		assert_true(same_graph(a, b));
		gpus += a->ntype[TTI_NODE_GPU];
		nets += a->ntype[TTI_NODE_NET];
		hosts += a->nhosts;
		tti_graph_free(a);
		tti_graph_free(b);
	}
	assert_true(gpus > 5000 && nets > 2000 && hosts > 1100);
}

/* 4000 GPUs with four NVLinks each, and 45,000 NUMA nodes: links must not be looked for
 * one by one, nor every node linked to every other. */
static void large_documents_take_linear_time(void **state)
{
	struct tti_strbuf gpus = { 0 }, cpus = { 0 };
	struct timespec start, end;
	struct tti_graph *graph;

	(void)state;
	tti_strbuf_add(&gpus, "<cpu>");
	for (unsigned i = 0; i < 4000; i++) {
		tti_strbuf_addf(&gpus, "<pci busid=\"%04x:%02x:00.0\"><gpu sm=\"80\">", i >> 8,
				i & 0xff);
		for (unsigned j = 1; j <= 4; j++) {
			const unsigned to = (i * 7 + j * 997) % 4000;

			tti_strbuf_addf(&gpus, "<nvlink target=\"%04x:%02x:00.0\"/>", to >> 8,
					to & 0xff);
		}
		tti_strbuf_add(&gpus, "</gpu></pci>");
	}
	tti_strbuf_add(&gpus, "</cpu>");
	for (unsigned i = 0; i < 45000; i++)
		tti_strbuf_addf(&cpus, "<cpu numaid=\"%u\"/>", i);
	assert_false(gpus.failed || cpus.failed);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	graph = graph_of(doc_of_text(gpus.text), TTI_MODEL_TUTTI);
	assert_int_equal(graph->ntype[TTI_NODE_GPU], 4000);
	tti_graph_free(graph);
	for (int model = TTI_MODEL_TUTTI; model <= TTI_MODEL_NCCL; model++) {
		graph = graph_of(doc_of_text(cpus.text), (enum tti_model)model);
		assert_true(graph->nlinks < 200000);
		tti_graph_free(graph);
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	assert_true(end.tv_sec - start.tv_sec < 10); /* sanitizers: 0.3 s without */
	tti_strbuf_release(&gpus);
	tti_strbuf_release(&cpus);
}

static void running_out_of_memory_is_an_error(void **state)
{
	struct tti_xml_doc *doc = random_topo(4);
	struct tti_graph *graph = NULL;
	int failures = 0;

	(void)state;
	assert_non_null(doc);
	for (unsigned n = 1; !graph && n < 500; n++) {
		tutti_status status;
		char fault[32];

		snprintf(fault, sizeof(fault), "mem:%u", n);
		tti_fault_set(fault);
		status = tti_graph_build(doc, TTI_MODEL_TUTTI, &graph);
		tti_fault_set(NULL);
		assert_true(status == TUTTI_OK || status == TUTTI_ENOMEM);
		failures += status == TUTTI_ENOMEM;
	}
	assert_non_null(graph);
	assert_true(failures > 10);
	tti_graph_free(graph);
	tti_xml_free(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_files_build_and_pass_the_checker),
		cmocka_unit_test(ndv4_has_its_figures),
		cmocka_unit_test(ndv2_is_a_cube_mesh),
		cmocka_unit_test(amd_links_have_the_figures_of_their_gpu),
		cmocka_unit_test(random_machines_build_the_same_each_time),
		cmocka_unit_test(large_documents_take_linear_time),
		cmocka_unit_test(running_out_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
