/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graphs.h"

#define PCI(busid, more, inside) "<pci busid='" busid "' " more ">" inside "</pci>"
#define FAST                     "link_speed='16.0 GT/s PCIe' link_width='16'"
#define AMD_CPU                  "vendor='AuthenticAMD' arch='x86_64'"

static struct tti_graph *graph_of_text(const char *text)
{
	return graph_of(doc_of_text(text), TTI_MODEL_TUTTI);
}

static bool has(const struct tti_graph *graph, enum tti_node_type type, const char *name)
{
	return tti_graph_find(graph, type, name) != TTI_NODE_NONE;
}

/* -- What a PCI function is ---------------------------------------------------------------- */

static void class_decides_only_where_nothing_else_does(void **state)
{
	static const struct {
		const char *function;
		enum tti_node_type type;
	} is[] = {
		{ PCI("0000:01:00.0", "class='0x030200'", ""), TTI_NODE_DEV },
		{ PCI("0000:01:00.0", "class='0x038000' vendor='0x1002'", ""), TTI_NODE_DEV },
		{ PCI("0000:01:00.0", "class='0x038000' vendor='0x1a03'", ""), TTI_NODE_PCI },
		{ PCI("0000:01:00.0", "class='0x030000' vendor='0x102b' link_width='16'", ""),
		  TTI_NODE_PCI },
		{ PCI("0000:01:00.0", "class='0x030000' vendor='0x10de' link_width='16'", ""),
		  TTI_NODE_DEV },
		{ PCI("0000:01:00.0", "class='0x030000' vendor='0x10de' link_width='1'", ""),
		  TTI_NODE_PCI },
		{ PCI("0000:01:00.0", "class='0x120000'", ""), TTI_NODE_DEV },
		{ PCI("0000:01:00.0", "class='0x0b4000' vendor='0x1bcf'", ""), TTI_NODE_DEV },
		{ PCI("0000:01:00.0", "class='0x0b4000' vendor='0x8086'", ""), TTI_NODE_PCI },
		{ PCI("0000:01:00.0", "class='0x010802'", ""), TTI_NODE_PCI },
		{ PCI("0000:01:00.0", "", ""), TTI_NODE_PCI },
		{ PCI("0000:01:00.0", "", "<gpu/>"), TTI_NODE_DEV },
		{ PCI("0000:01:00.0", "class='0x020000'", "<gpu/>"), TTI_NODE_DEV },
		{ PCI("0000:01:00.0", "class='0x030200'", "<nic><net name='n'/></nic>"),
		  TTI_NODE_NIC },
		{ PCI("0000:01:00.0", "class='0x020000'", ""), TTI_NODE_NIC },
		{ PCI("0000:01:00.0", "class='0x0c0600'", ""), TTI_NODE_NIC },
		{ PCI("0000:01:00.0", "class='0x030200'", PCI("0000:02:00.0", "", "")),
		  TTI_NODE_PCI },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(is) / sizeof(is[0]); i++) {
		struct tti_strbuf text = { 0 };
		struct tti_graph *graph;

		tti_strbuf_addf(&text, "<cpu>%s</cpu>", is[i].function);
		graph = graph_of_text(text.text);
		if (!has(graph, is[i].type, "0000:01:00.0"))
			fail_msg("%s is no %s", is[i].function, tti_node_type_name(is[i].type));
		assert_int_equal(graph->ntype[TTI_NODE_GPU], is[i].type == TTI_NODE_DEV);
		tti_graph_free(graph);
		tti_strbuf_release(&text);
	}
}

static void gpus_without_a_driver_get_the_next_numbers(void **state)
{
	struct tti_graph *graph =
		graph_of_text("<cpu>" PCI("0000:03:00.0", "class='0x030200'", "")
				      PCI("0000:01:00.0", "", "<gpu dev='4'/>")
					      PCI("0000:02:00.0", "class='0x120000'", "") "</cpu>");

	(void)state;
	assert_int_equal(graph->ntype[TTI_NODE_GPU], 3);
	assert_false(graph->nodes[node_of(graph, TTI_NODE_GPU, "GPU4")].gpu.bare);
	assert_true(graph->nodes[node_of(graph, TTI_NODE_GPU, "GPU5")].gpu.bare);
	assert_true(graph->nodes[node_of(graph, TTI_NODE_GPU, "GPU6")].gpu.bare);
	tti_graph_free(graph);
}

static void ports_of_a_card_share_a_nic(void **state)
{
	struct tti_graph *graph = graph_of_text(
		"<cpu>" PCI("0000:03:00.0", FAST, "<nic><net name='a' guid='0x7'/></nic>")
			PCI("0000:03:00.1", FAST, "<nic><net name='b' guid='0x7'/></nic>")
				PCI("0000:04:00.0", FAST, "<nic><net name='c'/></nic>") PCI(
					"0000:04:01.0", FAST,
					"<nic><net name='d'/></nic>") "<nic><net name='eth0'/><net "
								      "name='eth1'/><net name='g' "
								      "net='0'/></nic></cpu>");
	const struct tti_node *a = &graph->nodes[node_of(graph, TTI_NODE_NET, "a")];
	const struct tti_node *b = &graph->nodes[node_of(graph, TTI_NODE_NET, "b")];
	const struct tti_node *c = &graph->nodes[node_of(graph, TTI_NODE_NET, "c")];
	const struct tti_node *d = &graph->nodes[node_of(graph, TTI_NODE_NET, "d")];
	const struct tti_node *e = &graph->nodes[node_of(graph, TTI_NODE_NET, "eth0")];
	const struct tti_node *f = &graph->nodes[node_of(graph, TTI_NODE_NET, "eth1")];

	(void)state;
	assert_true(a->parent == b->parent && c->parent != d->parent);
	assert_true(a->net.asic == b->net.asic && c->net.asic != d->net.asic);
	assert_true(e->parent != f->parent && e->net.asic != f->net.asic);
	assert_int_equal(graph->ntype[TTI_NODE_NIC], 5);
	assert_int_equal(graph->ntype[TTI_NODE_NET], 6);
	expect_near(gbps_of(graph, e->parent, node_of(graph, TTI_NODE_CPU, "CPU"), TTI_LINK_PCI),
		    TTI_LOC_GBPS);
	tti_graph_free(graph);
}

static void what_is_not_stated_is_assumed_and_noted(void **state)
{
	struct tti_graph *graph =
		graph_of_text("<cpu>" PCI("0000:01:00.0", "link_width='8'", "<gpu/>")
				      PCI("0000:02:00.0", "link_speed='Unknown' link_width='0'",
					  "<nic><net name='a' speed='-1'/></nic>") "</cpu>");
	const uint32_t cpu = node_of(graph, TTI_NODE_CPU, "CPU");
	const uint32_t nic = node_of(graph, TTI_NODE_NIC, "0000:02:00.0");

	(void)state;
	expect_near(gbps_of(graph, cpu, node_of(graph, TTI_NODE_DEV, "0000:01:00.0"), TTI_LINK_PCI),
		    6);
	expect_near(gbps_of(graph, cpu, nic, TTI_LINK_PCI), 12);
	expect_near(gbps_of(graph, nic, node_of(graph, TTI_NODE_NET, "a"), TTI_LINK_NET), 1.25);
	assert_int_equal(count_notes(graph, TTI_NOTE_ASSUMED_SPEED), 2);
	assert_int_equal(count_notes(graph, TTI_NOTE_ASSUMED_NET), 1);
	assert_int_equal(graph->nnotes, 3);
	tti_graph_free(graph);
}

static void nodes_know_their_element(void **state)
{
	struct tti_xml_doc *doc = doc_of_file("azhpc-images__ndv4-topo.xml");
	struct tti_graph *graph = NULL;

	(void)state;
	assert_int_equal(tti_graph_build(doc, TTI_MODEL_TUTTI, &graph), TUTTI_OK);
	for (uint32_t i = 0; i < graph->nnodes; i++) {
		const struct tti_node *node = &graph->nodes[i];
		const struct tti_xml *xml = doc->root;

		if (node->type == TTI_NODE_NVS) {
			assert_int_equal(node->element, TTI_NODE_NONE);
			continue;
		}
		for (uint32_t n = 0; n < node->element; n++)
			xml = tti_xml_walk(xml);
		assert_int_equal(xml->line, node->line);
		if (node->type == TTI_NODE_NET)
			assert_string_equal(tti_xml_get(xml, "name"), node->name);
	}
	tti_graph_free(graph);
	tti_xml_free(doc);
}

static void names_are_unique(void **state)
{
	struct tti_graph *graph = graph_of_text(
		"<cpu>" PCI("0000:01:00.0", "", "<gpu dev='0'/>")
			PCI("0000:02:00.0", "",
			    "<gpu dev='0'/>") "<nic><net name='n' dev='0'/><net name='n' "
					      "dev='1'/><net name='n' dev='2'/>"
					      "<net name='n#2'/></nic></cpu>");

	(void)state;
	assert_true(has(graph, TTI_NODE_GPU, "GPU0") && has(graph, TTI_NODE_GPU, "GPU0#2"));
	assert_true(has(graph, TTI_NODE_NET, "n") && has(graph, TTI_NODE_NET, "n#2") &&
		    has(graph, TTI_NODE_NET, "n#3") && has(graph, TTI_NODE_NET, "n#4"));
	tti_graph_free(graph);
}

/* A container's eth0, as NCCL dumps it. */
static void a_net_below_each_cpu_is_one_nic(void **state)
{
	static const char nic[] = "<nic><net name='eth0' dev='0' port='0' speed='10000'/>"
				  "<net name='eth1' dev='1' port='0' speed='10000'/></nic>";
	struct tti_strbuf text = { 0 };
	struct tti_graph *graph;
	uint32_t net;

	(void)state;
	tti_strbuf_addf(&text,
			"<cpu host_hash='0xHOST_A' numaid='1'>%s</cpu>"
			"<cpu host_hash='0xHOST_A' numaid='0'>%s"
			"<nic><net name='eth0' dev='2' port='0'/></nic></cpu>"
			"<cpu host_hash='0xHOST_B' numaid='0'>%s</cpu>",
			nic, nic, nic);
	graph = graph_of_text(text.text);
	tti_strbuf_release(&text);
	assert_int_equal(graph->nhosts, 2);
	assert_string_equal(graph->hosts[1], "0xHOST_B");
	/* Two of each host, and another one of a name that is taken. */
	assert_int_equal(graph->ntype[TTI_NODE_NET], 5);
	assert_int_equal(graph->ntype[TTI_NODE_NIC], 5);
	assert_true(has(graph, TTI_NODE_NET, "eth0#2"));
	net = node_of(graph, TTI_NODE_NET, "0xHOST_A/eth0");
	assert_string_equal(graph->nodes[tti_graph_cpu_of(graph, net)].name, "CPU0");
	tti_graph_free(graph);
}

static void a_bus_id_twice_is_two_devices(void **state)
{
	struct tti_graph *graph = graph_of_text(
		"<cpu numaid='0'>" PCI("0000:0a:00.0", FAST,
				       PCI("0000:01:00.0", FAST, "<gpu dev='0' sm='80'/>"))
			PCI("0000:0b:00.0", FAST,
			    PCI("0000:0a:00.0", FAST, "<nic><net name='n'/></nic>") PCI(
				    "0000:01:00.0", FAST, "<gpu dev='1' sm='80'/>")
				    PCI("0000:02:00.0", FAST,
					"<gpu dev='2' sm='80'>"
					"<nvlink target='0000:01:00.0'/></gpu>")) "</cpu><cpu "
										  "numaid='0' "
										  "host_hash='0x1'"
										  ">" PCI("0000:0a:"
											  "00.0",
											  "",
											  "") "</"
											      "cpu"
											      ">");

	(void)state;
	assert_true(has(graph, TTI_NODE_GPU, "GPU0") && has(graph, TTI_NODE_GPU, "GPU1"));
	assert_true(has(graph, TTI_NODE_NIC, "/0000:0a:00.0"));
	assert_true(has(graph, TTI_NODE_PCI, "/0000:0a:00.0"));
	assert_int_equal(count_notes(graph, TTI_NOTE_BUSID_TWICE), 2);
	/* What leads to the id leads to the first. */
	expect_near(gbps_of(graph, node_of(graph, TTI_NODE_DEV, "0000:02:00.0"),
			    graph->nodes[node_of(graph, TTI_NODE_GPU, "GPU0")].parent,
			    TTI_LINK_NVL),
		    20);
	tti_graph_free(graph);
}

/* -- Across the tree ------------------------------------------------------------------------ */

#define GPU(n, links)  PCI("0000:0" n ":00.0", FAST, "<gpu sm='80' dev='" n "'>" links "</gpu>")
#define LINK(n, count) "<nvlink target='0000:0" n ":00.0' count='" count "'/>"

static void nvlinks_are_one_link_for_two_gpus(void **state)
{
	struct tti_graph *graph = graph_of_text(
		"<cpu>" GPU("1", LINK("2", "2") LINK("2", "1") LINK("3", "2") LINK("9", "1"))
			GPU("2", LINK("1", "3") LINK("3", "0") LINK("2", "1"))
				GPU("3", LINK("1", "1") LINK("4", "4")) GPU("4", "") "</cpu>");
	const uint32_t a = node_of(graph, TTI_NODE_DEV, "0000:01:00.0");
	const uint32_t b = node_of(graph, TTI_NODE_DEV, "0000:02:00.0");
	const uint32_t c = node_of(graph, TTI_NODE_DEV, "0000:03:00.0");
	const uint32_t d = node_of(graph, TTI_NODE_DEV, "0000:04:00.0");

	(void)state;
	expect_near(gbps_of(graph, a, b, TTI_LINK_NVL), 60);
	assert_int_equal(tti_graph_link(graph, a, b, TTI_LINK_NVL)->count, 3);
	/* Each direction as its end states. */
	expect_near(gbps_of(graph, a, c, TTI_LINK_NVL), 40);
	expect_near(gbps_of(graph, c, a, TTI_LINK_NVL), 20);
	/* What one end states counts for both. */
	expect_near(gbps_of(graph, d, c, TTI_LINK_NVL), 80);
	assert_null(tti_graph_link(graph, b, c, TTI_LINK_NVL));
	assert_int_equal(count_notes(graph, TTI_NOTE_NO_TARGET), 2); /* 9, and 2 itself */
	assert_int_equal(count_notes(graph, TTI_NOTE_ZERO_LINK), 1);
	assert_int_equal(count_notes(graph, TTI_NOTE_UNEVEN), 1);
	assert_int_equal(count_notes(graph, TTI_NOTE_ONE_WAY), 1);
	assert_int_equal(graph->nnotes, 5);
	for (uint32_t i = 0; i < graph->nnotes; i++)
		assert_true((graph->notes[i].peer == TTI_NODE_NONE) ==
			    (graph->notes[i].kind == TTI_NOTE_NO_TARGET));
	tti_graph_free(graph);
}

static void links_to_switch_and_cpu_go_both_ways(void **state)
{
	struct tti_graph *graph = graph_of_text(
		"<cpu numaid='0'>" GPU("1",
				       "<nvlink target='0000:99:00.0' count='6' tclass='0x068000'/>"
				       "<c2c bw='45000' count='10'/>")
			GPU("2", "<nvlink target='0000:98:00.0' count='3' tclass='0x068001'/>"
				 "<c2c bw='45000' count='0'/>") "</cpu>");
	const uint32_t cpu = node_of(graph, TTI_NODE_CPU, "CPU0");
	const uint32_t a = node_of(graph, TTI_NODE_DEV, "0000:01:00.0");
	const uint32_t b = node_of(graph, TTI_NODE_DEV, "0000:02:00.0");

	(void)state;
	expect_near(gbps_of(graph, node_of(graph, TTI_NODE_NVS, "NVS0"), a, TTI_LINK_NVL), 120);
	expect_near(gbps_of(graph, cpu, a, TTI_LINK_C2C), 450);
	expect_near(gbps_of(graph, cpu, b, TTI_LINK_NVL), 60);
	expect_near(gbps_of(graph, b, cpu, TTI_LINK_NVL), 60);
	assert_int_equal(count_notes(graph, TTI_NOTE_ZERO_LINK), 1);
	tti_graph_free(graph);
}

#define FABRIC_HOST(hash, fabric)                                              \
	"<cpu host_hash='" hash "'><pci busid='0000:01:00.0' " FAST ">"        \
	"<gpu sm='90' " fabric "><nvlink target='fffffff:ff:ff.0' count='18' " \
	"tclass='0x068000'/></gpu></pci></cpu>"

static void hosts_of_one_nvlink_domain_share_its_switch(void **state)
{
	static const char *const plain = FABRIC_HOST("0x1", "") FABRIC_HOST("2", "");
	static const char *const named = FABRIC_HOST("0x1", "tutti_fabric='a.0'")
		FABRIC_HOST("2", "tutti_fabric='b.0'") FABRIC_HOST("3", "tutti_fabric='a.0'");
	struct tti_graph *one = graph_of_text(plain), *two = graph_of_text(named);

	(void)state;
	assert_int_equal(one->nhosts, 2);
	assert_int_equal(one->ntype[TTI_NODE_NVS], 1);
	assert_int_equal(two->ntype[TTI_NODE_NVS], 2);
	assert_int_equal(two->nodes[two->by_type[TTI_NODE_NVS][0]].nlinks, 2);
	/* One bus id on each host, and each its own. */
	assert_int_equal(two->ntype[TTI_NODE_DEV], 3);
	assert_int_equal(one->nlinks, 2 * (2 + 2 + 2 + 2)); /* LOC, HOST, PCI, NVL: no SYS */
	tti_graph_free(one);
	tti_graph_free(two);
}

static void switches_may_be_linked(void **state)
{
	struct tti_graph *graph = graph_of_text(
		"<cpu>" PCI("0000:01:00.0", FAST,
			    "<pcilink target='0000:02:00.0'/><pcilink target='0000:09:00.0'/>" PCI(
				    "0000:03:00.0", FAST, "<gpu/>"))
			PCI("0000:02:00.0", "link_speed='8 GT/s' link_width='16'",
			    "<pcilink target='0000:01:00.0'/>" PCI("0000:04:00.0", FAST,
								   "<gpu/>")) "</cpu>");

	(void)state;
	expect_near(gbps_of(graph, node_of(graph, TTI_NODE_PCI, "0000:02:00.0"),
			    node_of(graph, TTI_NODE_PCI, "0000:01:00.0"), TTI_LINK_PCI),
		    12);
	assert_int_equal(count_notes(graph, TTI_NOTE_NO_TARGET), 1);
	tti_graph_free(graph);
}

/* -- Sockets -------------------------------------------------------------------------------- */

static int package_of(const struct tti_graph *graph, const char *cpu)
{
	return graph->nodes[node_of(graph, TTI_NODE_CPU, cpu)].cpu.package;
}

static void the_file_says_which_nodes_share_a_socket(void **state)
{
	struct tti_graph *graph = graph_of_text("<cpu numaid='0' " AMD_CPU " tutti_package='36'/>"
						"<cpu numaid='1' " AMD_CPU " tutti_package='36'/>"
						"<cpu numaid='2' " AMD_CPU " tutti_package='4'/>");
	const uint32_t pkg = node_of(graph, TTI_NODE_PKG, "PKG1");
	const uint32_t other = node_of(graph, TTI_NODE_PKG, "PKG0");

	(void)state;
	assert_int_equal(package_of(graph, "CPU0"), 1);
	assert_int_equal(package_of(graph, "CPU1"), 1);
	assert_int_equal(package_of(graph, "CPU2"), 0);
	assert_int_equal(graph->ntype[TTI_NODE_PKG], 2); /* also of the socket with one node */
	expect_near(gbps_of(graph, pkg, other, TTI_LINK_SYS), 16);
	assert_int_equal(graph->nodes[node_of(graph, TTI_NODE_CPU, "CPU2")].parent, other);
	assert_true(gbps_of(graph, pkg, node_of(graph, TTI_NODE_CPU, "CPU0"), TTI_LINK_SYS) > 16);
	assert_int_equal(graph->nodes[pkg].nlinks, 3);
	assert_int_equal(graph->nnotes, 0);
	tti_graph_free(graph);
}

static void distances_tell_sockets_apart(void **state)
{
	struct tti_graph *graph =
		graph_of_text("<cpu numaid='0' " AMD_CPU " tutti_distances='10,12,32,32,99'/>"
			      "<cpu numaid='1' " AMD_CPU " tutti_distances='12,10,32,32,99'/>"
			      "<cpu numaid='3' " AMD_CPU " tutti_distances='32,32,12,10,99'/>");
	struct tti_graph *four = graph_of_text("<cpu numaid='0' tutti_distances='10,21'/>"
					       "<cpu numaid='8' tutti_distances='21,10'/>");

	(void)state;
	assert_int_equal(package_of(graph, "CPU0"), 0);
	assert_int_equal(package_of(graph, "CPU1"), 0);
	assert_int_equal(package_of(graph, "CPU3"), 1);
	assert_int_equal(package_of(four, "CPU8"), 1);
	assert_int_equal(graph->nnotes, 0);
	tti_graph_free(graph);
	tti_graph_free(four);
}

static void halves_are_assumed_and_noted(void **state)
{
	struct tti_graph *graph =
		graph_of_text("<cpu numaid='3' " AMD_CPU "/><cpu numaid='1' " AMD_CPU "/>"
			      "<cpu numaid='0' " AMD_CPU "/><cpu numaid='2' " AMD_CPU "/>");
	struct tti_graph *arm = graph_of_text("<cpu numaid='0' arch='arm64'/>"
					      "<cpu numaid='1' arch='arm64'/>"
					      "<cpu numaid='2' arch='arm64'/>");

	(void)state;
	assert_int_equal(package_of(graph, "CPU1"), 0);
	assert_int_equal(package_of(graph, "CPU2"), 1);
	assert_int_equal(graph->ntype[TTI_NODE_PKG], 2);
	expect_near(gbps_of(graph, node_of(graph, TTI_NODE_PKG, "PKG0"),
			    node_of(graph, TTI_NODE_PKG, "PKG1"), TTI_LINK_SYS),
		    16);
	assert_int_equal(count_notes(graph, TTI_NOTE_ASSUMED_SOCKET), 1);
	assert_int_equal(arm->ntype[TTI_NODE_PKG], 0);
	assert_int_equal(arm->nodes[node_of(arm, TTI_NODE_CPU, "CPU1")].nlinks, 3);
	tti_graph_free(graph);
	tti_graph_free(arm);
}

static void nccl_sees_a_clique(void **state)
{
	struct tti_graph *graph = graph_of(doc_of_text("<cpu numaid='0' " AMD_CPU "/>"
						       "<cpu numaid='1' " AMD_CPU "/>"
						       "<cpu numaid='2' " AMD_CPU "/>"
						       "<cpu numaid='3' " AMD_CPU "/>"),
					   TTI_MODEL_NCCL);

	(void)state;
	assert_int_equal(graph->ntype[TTI_NODE_PKG], 0);
	assert_int_equal(graph->nodes[node_of(graph, TTI_NODE_CPU, "CPU1")].nlinks, 4);
	expect_near(gbps_of(graph, node_of(graph, TTI_NODE_CPU, "CPU0"),
			    node_of(graph, TTI_NODE_CPU, "CPU3"), TTI_LINK_SYS),
		    16);
	tti_graph_free(graph);
}

/* Files of NCCL name no Arm CPU: the GPU on it tells, also those of the host without one. */
static void grace_is_known_by_its_gpu(void **state)
{
	static const char text[] =
		"<cpu numaid='0' arch='arm64'><pci busid='0008:01:00.0' class='0x060400'>"
		"<pci busid='0008:06:00.0' class='0x030200'><gpu dev='0' sm='103'>"
		"<c2c bw='44712' count='5'/></gpu></pci></pci></cpu>"
		"<cpu numaid='1' arch='arm64'/>";
	struct tti_graph *graph = graph_of(doc_of_text(text), TTI_MODEL_TUTTI);
	const uint32_t first = node_of(graph, TTI_NODE_CPU, "CPU0");
	uint32_t second = node_of(graph, TTI_NODE_CPU, "CPU1");

	(void)state;
	expect_near(graph->nodes[second].cpu.mem_gbps, 486);
	assert_true(graph->nodes[second].cpu.mem_known);
	expect_near(gbps_of(graph, first, second, TTI_LINK_SYS), 75);
	tti_graph_free(graph);
	graph = graph_of(doc_of_text(text), TTI_MODEL_NCCL);
	second = node_of(graph, TTI_NODE_CPU, "CPU1");
	expect_near(gbps_of(graph, node_of(graph, TTI_NODE_CPU, "CPU0"), second, TTI_LINK_SYS), 6);
	tti_graph_free(graph);
}

static void memory_is_measured_or_estimated(void **state)
{
	struct tti_xml_doc *doc =
		doc_of_text("<cpu numaid='0' tutti_mem_gbps='77' tutti_mem_ns='88' affinity='f'/>"
			    "<cpu numaid='1' affinity='0,00000000'/><cpu numaid='2'/>");
	struct tti_graph *graph = NULL;
	uint32_t host;

	(void)state;
	assert_int_equal(tti_graph_build(doc, TTI_MODEL_TUTTI, &graph), TUTTI_OK);
	assert_int_equal(graph->ntype[TTI_NODE_HOST], 2); /* none on memory without cores */
	host = node_of(graph, TTI_NODE_HOST, "HOST0");
	expect_near(gbps_of(graph, host, graph->nodes[host].parent, TTI_LINK_LOC), 77);
	assert_true(graph->nodes[graph->nodes[host].parent].cpu.mem_measured);
	assert_false(graph->nodes[node_of(graph, TTI_NODE_CPU, "CPU2")].cpu.mem_measured);
	tti_graph_free(graph);
	tti_xml_free(doc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(class_decides_only_where_nothing_else_does),
		cmocka_unit_test(gpus_without_a_driver_get_the_next_numbers),
		cmocka_unit_test(ports_of_a_card_share_a_nic),
		cmocka_unit_test(what_is_not_stated_is_assumed_and_noted),
		cmocka_unit_test(nodes_know_their_element),
		cmocka_unit_test(names_are_unique),
		cmocka_unit_test(a_net_below_each_cpu_is_one_nic),
		cmocka_unit_test(a_bus_id_twice_is_two_devices),
		cmocka_unit_test(nvlinks_are_one_link_for_two_gpus),
		cmocka_unit_test(links_to_switch_and_cpu_go_both_ways),
		cmocka_unit_test(hosts_of_one_nvlink_domain_share_its_switch),
		cmocka_unit_test(switches_may_be_linked),
		cmocka_unit_test(the_file_says_which_nodes_share_a_socket),
		cmocka_unit_test(distances_tell_sockets_apart),
		cmocka_unit_test(halves_are_assumed_and_noted),
		cmocka_unit_test(nccl_sees_a_clique),
		cmocka_unit_test(grace_is_known_by_its_gpu),
		cmocka_unit_test(memory_is_measured_or_estimated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
