/* SPDX-License-Identifier: BSD-3-Clause */
/* The tree for the terminal. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "insight/print/print.h"
#include "unit/topo/graphs.h"
#include "util/fault.h"

static char *tree_of(struct tti_xml_doc *doc, bool color, bool utf8)
{
	const struct tti_print_config config = { .color = color, .utf8 = utf8 };
	struct tti_graph *graph = graph_of(doc, TTI_MODEL_TUTTI);
	struct tti_strbuf buf = { 0 };
	char *text;

	tti_print_tree(graph, &config, &buf);
	tti_graph_free(graph);
	text = tti_strbuf_take(&buf);
	assert_non_null(text);
	return text;
}

static void expect_tree(const char *inside, bool color, bool utf8, const char *wanted)
{
	char *text = tree_of(doc_of_text(inside), color, utf8);

	assert_string_equal(text, wanted);
	free(text);
}

static void one_line_a_thing(void **state)
{
	static const char machine[] =
		"<cpu numaid='0' affinity='f' arch='x86_64' vendor='GenuineIntel' familyid='6' "
		"modelid='143' tutti_mem_gbps='100' tutti_mem_ns='90'>"
		"<pci busid='0000:01:00.0' class='0x060400' link_speed='16 GT/s' link_width='16'>"
		"<pci busid='0000:02:00.0' class='0x030200' link_speed='16 GT/s' link_width='16'>"
		"<gpu dev='0' sm='80' rank='3'/></pci>"
		"<pci busid='0000:03:00.0' class='0x020700' link_speed='16 GT/s' link_width='16'>"
		"<nic><net name='ib0' dev='0' speed='200000' port='1' rail='2' gdr='1'/></nic>"
		"</pci></pci></cpu>";
	static const char tree[] =
		"text.xml: 1 socket, 1 NUMA node, 1 GPU, 1 NIC port\n"
		"`- NUMA 0  Intel Sapphire Rapids, cpus 0-3, memory 100.0 GB/s 90 ns\n"
		"   `- switch                   0000:01:00.0  gen4 x16  24.0 GB/s\n"
		"      |- GPU0  GPU, sm 80      0000:02:00.0  gen4 x16  24.0 GB/s  rank 3\n"
		"      `- ib0   InfiniBand HCA  0000:03:00.0  gen4 x16  24.0 GB/s  200 Gb/s, "
		"port 1, rail 2\n";

	(void)state;
	expect_tree(machine, false, false, tree);
}

/* Nobody's terminal is set by a file. */
static void names_of_a_file_are_text(void **state)
{
	static const char port[] = "<cpu numaid='0'><nic><net name='e&#10;1' dev='0'/></nic></cpu>";
	char *text = tree_of(doc_of_text(port), false, true);

	(void)state;
	assert_non_null(strstr(text, "e?1"));
	free(text);
}

static void color_is_all_that_color_adds(void **state)
{
	char *plain = tree_of(doc_of_file("azhpc-images__ndv4-topo.xml"), false, true);
	char *color = tree_of(doc_of_file("azhpc-images__ndv4-topo.xml"), true, true);
	char *to = color;

	(void)state;
	assert_non_null(strstr(color, "\033[1;32mGPU0\033[0m"));
	for (const char *from = color; *from;) {
		if (*from == '\033')
			from = strchr(from, 'm') + 1;
		else
			*to++ = *from++;
	}
	*to = '\0';
	assert_string_equal(color, plain);
	free(plain);
	free(color);
}

static void meshes_have_a_table(void **state)
{
	char *text = tree_of(doc_of_file("Azure-azhpc-images__ndv2-topo.xml"), false, false);

	(void)state;
	assert_non_null(strstr(text, "\nNVLinks between GPUs, 20.0 GB/s each\n"));
	assert_non_null(strstr(text, "\nGPU4     2     -     -     -     X     1     1     2\n"));
	assert_non_null(strstr(text, "\nBetween CPUs: socket to socket 10.0 GB/s\n"));
	free(text);
}

static void nothing_is_a_topology_too(void **state)
{
	(void)state;
	expect_tree("", false, true, "text.xml: nothing\n");
}

/* Whichever allocation fails: no crash, and the buffer says so or holds it all. */
static void out_of_memory_is_said(void **state)
{
	const struct tti_print_config config = { .utf8 = true };
	struct tti_graph *graph =
		graph_of(doc_of_file("Azure-azhpc-images__ndv2-topo.xml"), TTI_MODEL_TUTTI);
	struct tti_strbuf whole = { 0 };
	bool failed = true;

	(void)state;
	tti_print_tree(graph, &config, &whole);
	for (int n = 1; failed; n++) {
		struct tti_strbuf buf = { 0 };
		char fault[24];

		snprintf(fault, sizeof(fault), "mem:%d", n);
		tti_fault_set(fault);
		tti_print_tree(graph, &config, &buf);
		tti_fault_set(NULL);
		failed = buf.failed;
		if (!failed)
			assert_string_equal(buf.text, whole.text);
		tti_strbuf_release(&buf);
		assert_true(n < 10000);
	}
	tti_strbuf_release(&whole);
	tti_graph_free(graph);
}

/* A superchip: what its GPU and CPU say to each other does not go over PCI. */
static void c2c_is_shown_with_the_gpu(void **state)
{
	static const char machine[] =
		"<cpu numaid='0' affinity='f' arch='arm64' tutti_mem_gbps='400' tutti_mem_ns='90'>"
		"<pci busid='0008:06:00.0' class='0x030200' link_speed='64 GT/s' link_width='16'>"
		"<gpu dev='0' sm='103' rank='0'><c2c bw='44712' count='5'/></gpu></pci>"
		"<pci busid='0009:06:00.0' class='0x030200' link_speed='64 GT/s' link_width='16'>"
		"<gpu dev='1' sm='103' rank='1'><nvlink target='fffffff:ff:ff.0' count='18' "
		"tclass='0x068000'/><c2c bw='40000'/></gpu></pci></cpu>";
	static const char tree[] =
		"text.xml: 1 socket, 1 NUMA node, 2 GPUs\n"
		"`- NUMA 0  NVIDIA Grace, cpus 0-3, memory 400.0 GB/s 90 ns\n"
		"   |- GPU0  GPU, sm 103  0008:06:00.0  gen6 x16  96.0 GB/s  rank 0, 5 C2C links "
		"to "
		"its CPU 223.6 GB/s\n"
		"   `- GPU1  GPU, sm 103  0009:06:00.0  gen6 x16  96.0 GB/s  rank 1, 18 NVLinks to "
		"NVSwitch 721.8 GB/s, 1 C2C link to its CPU 40.0 GB/s\n";

	(void)state;
	expect_tree(machine, false, false, tree);
}

static void memory_has_its_size(void **state)
{
	(void)state;
	expect_tree("<cpu numaid='0' affinity='f' arch='arm64' tutti_mem_mib='128648' "
		    "tutti_mem_gbps='400' tutti_mem_ns='90'/>"
		    "<cpu numaid='1' affinity='0' arch='arm64' tutti_mem_mib='512'/>",
		    false, false,
		    "text.xml: 2 sockets, 2 NUMA nodes\n"
		    "|- NUMA 0  Arm, cpus 0-3, memory 125.6 GiB 400.0 GB/s 90 ns\n"
		    "`- NUMA 1  Arm, no cpus, memory 512 MiB\n"
		    "\nBetween CPUs: socket to socket 6.0 GB/s\n");
}

static void cores_of_no_node_are_no_numa_node(void **state)
{
	(void)state;
	expect_tree(
		"<cpu numaid='1' affinity='f0' arch='x86_64' vendor='GenuineIntel' familyid='6' "
		"modelid='143' tutti_package='1'/>"
		"<cpu numaid='-1' affinity='f' arch='x86_64' vendor='GenuineIntel' familyid='6' "
		"modelid='143' tutti_package='0'/>",
		false, false,
		"text.xml: 2 sockets, 1 NUMA node\n"
		"|- CPUs  Intel Sapphire Rapids, cpus 0-3, memory 230.4 GB/s 110 ns (estimate)\n"
		"`- NUMA 1  Intel Sapphire Rapids, cpus 4-7, memory 230.4 GB/s 110 ns (data "
		"sheet)\n"
		"\nBetween CPUs: socket to socket 22.0 GB/s\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_line_a_thing),
		cmocka_unit_test(c2c_is_shown_with_the_gpu),
		cmocka_unit_test(memory_has_its_size),
		cmocka_unit_test(cores_of_no_node_are_no_numa_node),
		cmocka_unit_test(names_of_a_file_are_text),
		cmocka_unit_test(color_is_all_that_color_adds),
		cmocka_unit_test(meshes_have_a_table),
		cmocka_unit_test(nothing_is_a_topology_too),
		cmocka_unit_test(out_of_memory_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
