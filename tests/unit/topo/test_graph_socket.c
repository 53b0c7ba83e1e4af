/* SPDX-License-Identifier: BSD-3-Clause */
/* Which NUMA nodes are taken for one socket, and what memory each of them has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "graphs.h"
#include "topo/detect/cpuset.h"
#include "util/strbuf.h"

#define AMD_CPU "vendor='AuthenticAMD' arch='x86_64'"

static struct tti_graph *graph_of_text(const char *text)
{
	return graph_of(doc_of_text(text), TTI_MODEL_TUTTI);
}

static const struct tti_cpu_info *cpu_of(const struct tti_graph *graph, const char *cpu)
{
	return &graph->nodes[node_of(graph, TTI_NODE_CPU, cpu)].cpu;
}

/* NUMA nodes of so many CPUs of Linux, of which the upper half are second threads. */
static struct tti_graph *graph_of_cut(const char *kind, int nodes, int cores, bool threads)
{
	struct tti_strbuf text = { 0 };
	struct tti_graph *graph;

	for (int i = 0; i < nodes; i++) {
		struct tti_strbuf mask = { 0 };
		struct tti_cpuset set = { 0 };
		const uint64_t first = (uint64_t)(i * cores), all = (uint64_t)(nodes * cores);

		assert_true(tti_cpuset_add(&set, first, first + (uint64_t)cores - 1));
		if (threads)
			assert_true(tti_cpuset_add(&set, all + first,
						   all + first + (uint64_t)cores - 1));
		tti_cpuset_format(&set, &mask);
		tti_strbuf_addf(&text, "<cpu numaid='%d' arch='x86_64' %s affinity='%s'/>", i, kind,
				mask.text);
		tti_strbuf_release(&mask);
		tti_cpuset_release(&set);
	}
	graph = graph_of_text(text.text);
	tti_strbuf_release(&text);
	return graph;
}

static void cores_tell_how_many_sockets_there_are(void **state)
{
	static const char milan[] = "vendor='AuthenticAMD' familyid='175' modelid='1'";
	static const char rome[] = "vendor='AuthenticAMD' familyid='23' modelid='49'";
	static const char apu[] = "vendor='AuthenticAMD' familyid='175' modelid='144'";
	static const char old[] = "vendor='AuthenticAMD' familyid='21' modelid='1'";
	static const char xeon[] = "vendor='GenuineIntel' familyid='6' modelid='143'";
	static const struct {
		const char *kind;
		int nodes, cores;
		bool threads;
		int sockets;
		double mem_gbps; /* of one node */
	} cut[] = {
		{ milan, 4, 16, true, 1, 38.4 },  /* Perlmutter: one of 64 cores, NPS4 */
		{ milan, 4, 24, false, 2, 76.8 }, /* 96 cores of a virtual machine */
		{ rome, 8, 16, true, 2, 38.4 },   { rome, 8, 4, true, 2, 38.4 },
		{ milan, 3, 16, true, 1, 51.2 },  { apu, 4, 24, true, 4, 200 },
		{ old, 4, 8, false, 2, 76.8 },    { xeon, 4, 12, true, 2, 115.2 },
		{ xeon, 4, 56, true, 4, 230.4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
		struct tti_graph *graph =
			graph_of_cut(cut[i].kind, cut[i].nodes, cut[i].cores, cut[i].threads);
		char last[16];

		snprintf(last, sizeof(last), "CPU%d", cut[i].nodes - 1);
		assert_int_equal(cpu_of(graph, last)->package, cut[i].sockets - 1);
		assert_int_equal(cpu_of(graph, "CPU0")->package, 0);
		expect_near(cpu_of(graph, last)->mem_gbps, cut[i].mem_gbps);
		assert_int_equal(count_notes(graph, TTI_NOTE_ASSUMED_SOCKET), 1);
		tti_graph_free(graph);
	}
}

/* A file with some of the NUMA nodes: the others have their share of the memory as well. */
static void nodes_that_are_not_in_the_file_count(void **state)
{
	static const char kind[] =
		"arch='x86_64' vendor='AuthenticAMD' familyid='175' modelid='48'";
	struct tti_strbuf text = { 0 };
	struct tti_graph *graph;

	(void)state;
	tti_strbuf_addf(&text,
			"<cpu numaid='0' %s affinity='0000ffff,00000000,0000ffff'/>"
			"<cpu numaid='3' %s affinity='ffff0000,00000000,ffff0000,00000000'/>",
			kind, kind);
	graph = graph_of_text(text.text);
	assert_int_equal(graph->ntype[TTI_NODE_PKG], 1);
	expect_near(cpu_of(graph, "CPU3")->mem_gbps, 38.4);
	tti_graph_free(graph);
	tti_strbuf_release(&text);
	graph = graph_of_text("<cpu numaid='2147483647' " AMD_CPU "/>");
	assert_int_equal(graph->nnotes, 0);
	assert_int_equal(graph->ntype[TTI_NODE_PKG], 0);
	tti_graph_free(graph);
}

/* Memory of a node without cores is none of the channels of its socket. */
static void memory_without_cores_has_no_figure(void **state)
{
	struct tti_graph *graph =
		graph_of_text("<cpu numaid='0' " AMD_CPU " affinity='f' tutti_package='0'/>"
			      "<cpu numaid='1' " AMD_CPU " affinity='f0' tutti_package='0'/>"
			      "<cpu numaid='2' " AMD_CPU " affinity='0' tutti_package='0'/>");

	(void)state;
	expect_near(cpu_of(graph, "CPU1")->mem_gbps, 76.8);
	assert_false(cpu_of(graph, "CPU2")->mem_gbps > 0);
	assert_false(cpu_of(graph, "CPU2")->mem_known);
	tti_graph_free(graph);
}

/* It hangs on the node with cores: no socket of two NUMA nodes is made of it. */
static void memory_alone_makes_no_socket_of_several_nodes(void **state)
{
	struct tti_graph *graph =
		graph_of_text("<cpu numaid='0' " AMD_CPU " affinity='f' tutti_package='0'/>"
			      "<cpu numaid='1' " AMD_CPU " affinity='f0' tutti_package='1'/>"
			      "<cpu numaid='2' " AMD_CPU " affinity='0' tutti_package='1'/>"
			      "<cpu numaid='3' " AMD_CPU " affinity='0'/>");
	const uint32_t second = node_of(graph, TTI_NODE_CPU, "CPU1");

	(void)state;
	assert_int_equal(graph->ntype[TTI_NODE_PKG], 0);
	assert_int_equal(graph->nsockets, 2);
	assert_non_null(
		tti_graph_link(graph, second, node_of(graph, TTI_NODE_CPU, "CPU2"), TTI_LINK_SYS));
	assert_int_equal(cpu_of(graph, "CPU3")->package, 0);
	tti_graph_free(graph);
}

static void several_sockets_may_be_one_node(void **state)
{
	struct tti_graph *graph = graph_of_text("<cpu numaid='0' " AMD_CPU " affinity='ffff' "
						"tutti_package='0' tutti_packages='0,2,3'/>");

	(void)state;
	assert_int_equal(graph->nsockets, 3);
	assert_int_equal(cpu_of(graph, "CPU0")->npackages, 3);
	expect_near(cpu_of(graph, "CPU0")->mem_gbps, 3 * 153.6);
	tti_graph_free(graph);
	graph = graph_of_text("<cpu numaid='0' " AMD_CPU " tutti_package='0' tutti_packages='0,1'/>"
			      "<cpu numaid='1' " AMD_CPU " tutti_package='1'/>");
	assert_int_equal(graph->nsockets, 2);
	tti_graph_free(graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cores_tell_how_many_sockets_there_are),
		cmocka_unit_test(nodes_that_are_not_in_the_file_count),
		cmocka_unit_test(memory_without_cores_has_no_figure),
		cmocka_unit_test(memory_alone_makes_no_socket_of_several_nodes),
		cmocka_unit_test(several_sockets_may_be_one_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
