/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "insight/topo/path_type_of.h"
#include "insight/topo/paths_check.h"
#include "topo/paths/paths.h"
#include "unit/topo/graphs.h"
#include "util/error.h"
#include "util/fault.h"

static struct tti_paths *paths_of(const struct tti_graph *graph)
{
	struct tti_paths *paths = NULL;

	if (tti_paths_build(graph, &paths) != TUTTI_OK || tti_paths_check(paths) != TUTTI_OK)
		fail_msg("%s: %s", graph->source, tti_error_text());
	return paths;
}

/* "GPU0", "HOST1", "mlx5_0": whichever endpoint has that name; "0xb/GPU0": on that host. */
static uint32_t endpoint(const struct tti_paths *paths, const char *name)
{
	const struct tti_graph *graph = paths->graph;
	const char *slash = strchr(name, '/');
	const char *own = slash ? slash + 1 : name;

	for (uint32_t i = 0; i < paths->n; i++) {
		const struct tti_node *node = &graph->nodes[paths->endpoints[i]];
		const char *host = graph->hosts[node->host];

		if (strcmp(node->name, own) == 0 &&
		    (!slash || (strncmp(host, name, (size_t)(slash - name)) == 0)))
			return paths->endpoints[i];
	}
	fail_msg("no endpoint %s", name);
	return 0;
}

struct expected {
	const char *from, *to;
	enum tti_path_type type;
	double gbps; /* 0: whatever */
	int nhops;   /* -1: whatever */
};

static void expect_path(const struct tti_paths *paths, const struct expected *want, bool back)
{
	const uint32_t from = endpoint(paths, back ? want->to : want->from);
	const uint32_t to = endpoint(paths, back ? want->from : want->to);
	const struct tti_path *path = tti_paths_get(paths, from, to);

	if (path->type != want->type || (want->nhops >= 0 && path->nhops != want->nhops) ||
	    (want->gbps > 0 && (float)want->gbps != path->bw_gbps))
		fail_msg("%s to %s%s: %s, %g GB/s, %u hops, not %s, %g, %d", want->from, want->to,
			 back ? " and back" : "", tti_path_type_name(path->type),
			 (double)path->bw_gbps, path->nhops, tti_path_type_name(want->type),
			 want->gbps, want->nhops);
}

static void expect_paths(const char *inside, const struct expected *want, size_t n)
{
	struct tti_graph *graph = graph_of(doc_of_text(inside), TTI_MODEL_TUTTI);
	struct tti_paths *paths = paths_of(graph);

	for (size_t i = 0; i < n; i++) {
		expect_path(paths, &want[i], false);
		expect_path(paths, &want[i], true);
	}
	tti_paths_free(paths);
	tti_graph_free(graph);
}

#define EXPECT(inside, ...)                                                    \
	do {                                                                   \
		const struct expected want_[] = { __VA_ARGS__ };               \
		expect_paths(inside, want_, sizeof(want_) / sizeof(want_[0])); \
	} while (0)

#define CPU(id) "<cpu numaid=\"" #id "\" arch=\"x86_64\" affinity=\"f\">"
#define END_CPU "</cpu>"
#define SWITCH(busid)                                                              \
	"<pci busid=\"0000:" busid ":00.0\" class=\"0x060400\" link_width=\"16\" " \
	"link_speed=\"16.0 GT/s PCIe\">"
#define END_PCI "</pci>"
#define PCI(busid)                                                                \
	"<pci busid=\"0000:" busid ":00.0\" class=\"0x030200\" link_width=\"8\" " \
	"link_speed=\"16.0 GT/s PCIe\">"
#define GPU(dev) "<gpu dev=\"" #dev "\" sm=\"80\"/>"
#define NET(dev) "<net name=\"n" #dev "\" dev=\"" #dev "\" speed=\"80000\"/>"
#define NIC(busid, dev)                                                           \
	"<pci busid=\"0000:" busid ":00.0\" class=\"0x020000\" link_width=\"8\" " \
	"link_speed=\"16.0 GT/s PCIe\"><nic>" NET(dev) "</nic></pci>"

/* -- Types ------------------------------------------------------------------------------- */

static void types_over_pci(void **state)
{
	(void)state;
	EXPECT(CPU(0) SWITCH("01") PCI("02") GPU(0) END_PCI NIC("03", 0) SWITCH("04") PCI("05")
		       GPU(1) END_PCI END_PCI END_PCI PCI("06") GPU(2) END_PCI END_CPU CPU(1)
			       NIC("11", 1) END_CPU,
	       { "GPU0", "GPU0", TTI_PATH_LOC, TTI_LOC_GBPS, 0 },
	       { "GPU0", "n0", TTI_PATH_PIX, 10, 4 }, { "GPU0", "GPU1", TTI_PATH_PXB, 12, 5 },
	       { "GPU1", "n0", TTI_PATH_PXB, 10, 5 }, { "GPU0", "GPU2", TTI_PATH_PHB, 12, 5 },
	       { "GPU2", "HOST0", TTI_PATH_PHB, 12, 3 }, { "n1", "HOST1", TTI_PATH_PHB, 10, 3 },
	       { "GPU2", "n1", TTI_PATH_SYS, 0, 5 }, { "GPU0", "HOST1", TTI_PATH_SYS, 0, -1 },
	       { "HOST0", "HOST1", TTI_PATH_SYS, 0, 3 }, { "n0", "n1", TTI_PATH_SYS, 0, -1 });
}

static void types_inside_one_device(void **state)
{
	(void)state;
	EXPECT(CPU(0) PCI("01") GPU(0) GPU(1) END_PCI
	       "<pci busid=\"0000:02:00.0\" class=\"0x020000\" link_width=\"8\">"
	       "<nic>" NET(0) NET(1) "</nic></pci>" END_CPU,
	       { "GPU0", "GPU1", TTI_PATH_LOC, TTI_LOC_GBPS, 2 },
	       { "n0", "n1", TTI_PATH_LOC, 10, 2 }, { "GPU0", "n1", TTI_PATH_PHB, 6, 4 });
}

static void types_over_nvlink(void **state)
{
	(void)state;
	/* 0 - 1 - 2, 3 alone. */
	EXPECT(CPU(0) PCI("01") "<gpu dev=\"0\" sm=\"80\">"
				"<nvlink target=\"0000:02:00.0\" count=\"2\"/></gpu>" END_PCI PCI(
					"02") "<gpu dev=\"1\" sm=\"80\"><nvlink "
					      "target=\"0000:01:00.0\" count=\"2\"/>"
					      "<nvlink target=\"0000:03:00.0\" "
					      "count=\"4\"/></gpu>" END_PCI PCI(
						      "03") "<gpu dev=\"2\" sm=\"80\"><nvlink "
							    "target=\"0000:02:00.0\" count=\"4\"/>"
							    "</gpu>" END_PCI PCI("04") GPU(3)
								    END_PCI END_CPU,
	       { "GPU0", "GPU1", TTI_PATH_NVL, 40, 3 }, { "GPU1", "GPU2", TTI_PATH_NVL, 80, 3 },
	       { "GPU0", "GPU2", TTI_PATH_NVB, 40, 4 }, { "GPU0", "GPU3", TTI_PATH_PHB, 12, 4 });
}

#define ON_SWITCH(busid, dev, count)               \
	PCI(busid)                                 \
	"<gpu dev=\"" #dev "\" sm=\"80\"><nvlink " \
	"target=\"0000:f0:00.0\" tclass=\"0x068000\" count=\"" #count "\"/></gpu>" END_PCI

static void types_over_nvswitch_of_two_hosts(void **state)
{
	(void)state;
	EXPECT("<cpu host_hash=\"0xa\" numaid=\"0\" affinity=\"f\">" ON_SWITCH("01", 0, 12)
		       ON_SWITCH("02", 1, 6)
			       NIC("03", 0) "</cpu><cpu host_hash=\"0xb\" numaid=\"0\" "
					    "affinity=\"f\">" ON_SWITCH(
						    "01", 2,
						    12) "</cpu><cpu host_hash=\"0xc\" numaid=\"0\" "
							"affinity=\"f\">" NIC("03", 1) "</cpu>",
	       { "GPU0", "GPU1", TTI_PATH_NVL, 120, 4 }, { "GPU0", "GPU2", TTI_PATH_NVL, 240, 4 },
	       { "n0", "n1", TTI_PATH_NET, 10, 0 }, { "GPU0", "n1", TTI_PATH_NET, 10, 0 },
	       { "0xa/HOST0", "0xc/HOST0", TTI_PATH_NET, 10, 0 },
	       { "0xa/HOST0", "0xb/HOST0", TTI_PATH_DIS, 0, 0 },
	       { "GPU2", "n1", TTI_PATH_DIS, 0, 0 });
}

static void types_over_c2c(void **state)
{
	(void)state;
	EXPECT(CPU(0) PCI("01") "<gpu dev=\"0\" sm=\"90\"><c2c bw=\"40000\" "
				"count=\"10\"/></gpu>" END_PCI PCI(
					"02") "<gpu dev=\"1\" sm=\"90\"><c2c bw=\"40000\" "
					      "count=\"10\"/></gpu>" END_PCI SWITCH("03")
						      NIC("04", 0) END_PCI PCI("05") GPU(2)
							      END_PCI END_CPU CPU(1) NIC("11", 1)
								      END_CPU,
	       { "GPU0", "HOST0", TTI_PATH_C2C, 0, 3 }, { "GPU0", "GPU1", TTI_PATH_C2C, 400, 4 },
	       { "GPU0", "n0", TTI_PATH_P2C, 10, 5 }, { "GPU2", "n0", TTI_PATH_PHB, 10, 5 },
	       { "GPU0", "GPU2", TTI_PATH_PHB, 12, 4 }, { "GPU0", "n1", TTI_PATH_SYS, 0, 5 },
	       { "GPU0", "HOST1", TTI_PATH_SYS, 0, 4 });
}

#define ON_POWER(busid, dev)                           \
	PCI(busid)                                     \
	"<gpu dev=\"" #dev "\" sm=\"70\"><nvlink "     \
	"target=\"0004:00:00.0\" tclass=\"0x068001\" " \
	"count=\"3\"/></gpu>" END_PCI

static void types_over_nvlink_to_cpus(void **state)
{
	(void)state;
	EXPECT(CPU(0) ON_POWER("01", 0) ON_POWER("02", 1) NIC("03", 0) END_CPU CPU(8)
		       ON_POWER("11", 2) END_CPU,
	       { "GPU0", "HOST0", TTI_PATH_C2C, 0, 3 }, { "GPU0", "GPU1", TTI_PATH_C2C, 60, 4 },
	       { "GPU0", "n0", TTI_PATH_PHB, 10, 4 }, { "GPU0", "GPU2", TTI_PATH_SYS, 0, 5 });
}

/* Switches of two sockets with a link between them: no CPU on the way, and no way from one
 * CPU through switches to the other. */
static void types_over_links_between_switches(void **state)
{
	(void)state;
	EXPECT(CPU(0) SWITCH("01") PCI("02") GPU(0) END_PCI
	       "<pcilink target=\"0000:11:00.0\"/>" END_PCI END_CPU CPU(1) SWITCH("11") NIC("12", 0)
		       END_PCI END_CPU,
	       { "GPU0", "n0", TTI_PATH_PXB, 10, 5 }, { "HOST0", "n0", TTI_PATH_PHB, 10, 5 },
	       { "HOST0", "HOST1", TTI_PATH_SYS, 0, 3 });
}

/* -- What is best is not made of what is best ------------------------------------------------ */

#define LANES(busid, width)                                                               \
	"<pci busid=\"0000:" busid ":00.0\" class=\"0x060400\" link_width=\"" width "\" " \
	"link_speed=\"16.0 GT/s PCIe\">"
#define TO(busid) "<pcilink target=\"0000:" busid ":00.0\"/>"

/* From A to D there are A-D of 3 GB/s and A-B-C-D of 24. What hangs below D by 24 GB/s is
 * reached the long way, what hangs there by 3 or less the short one. */
static void wide_ways_and_short_ones_live_side_by_side(void **state)
{
	(void)state;
	EXPECT(CPU(0) LANES("01", "16") PCI("02") GPU(0) END_PCI TO("03") TO("07") END_PCI LANES(
		       "03", "16") TO("04") END_PCI LANES("04", "16") TO("05") END_PCI LANES("05",
											     "16")
		       TO("07") "<pci busid=\"0000:06:00.0\" class=\"0x030200\" link_width=\"8\" "
				"link_speed=\"16.0 GT/s PCIe\">" GPU(1) END_PCI
	       "<pci busid=\"0000:08:00.0\" class=\"0x030200\" link_width=\"1\" "
	       "link_speed=\"16.0 GT/s PCIe\">" GPU(2) END_PCI END_PCI LANES("07", "2")
		       END_PCI END_CPU,
	       { "GPU0", "GPU1", TTI_PATH_PXB, 12, 7 }, { "GPU0", "GPU2", TTI_PATH_PXB, 1.5, 6 });
}

/* -- The definition --------------------------------------------------------------------------- */

static uint32_t hop(const struct tti_graph *graph, uint32_t from, uint32_t to)
{
	for (int type = 0; type <= TTI_LINK_NET; type++) {
		const struct tti_topo_link *link =
			tti_graph_link(graph, from, to, (enum tti_link_type)type);

		if (link)
			return (uint32_t)(link - graph->links);
	}
	fail_msg("no link");
	return 0;
}

static void what_is_no_way(void **state)
{
	struct tti_graph *graph = graph_of(
		doc_of_text(CPU(0) PCI("01") GPU(0) END_PCI NIC("02", 0) END_CPU), TTI_MODEL_TUTTI);
	const uint32_t gpu = node_of(graph, TTI_NODE_GPU, "GPU0");
	const uint32_t host = node_of(graph, TTI_NODE_HOST, "HOST0");
	const uint32_t dev = graph->nodes[gpu].parent, cpu = graph->nodes[dev].parent;
	const uint32_t way[] = { hop(graph, gpu, dev), hop(graph, dev, cpu),
				 hop(graph, cpu, host) };

	(void)state;
	assert_int_equal(tti_path_type_of(graph, way, 3), TTI_PATH_PHB);
	assert_int_equal(tti_path_type_of(graph, way, 0), TTI_PATH_LOC);
	assert_int_equal(tti_path_type_of(graph, way, 1), TTI_PATH_DIS);
	assert_int_equal(tti_path_type_of(graph, way, 2), TTI_PATH_DIS);
	assert_int_equal(tti_path_type_of(graph, way + 1, 2), TTI_PATH_DIS);
	tti_graph_free(graph);
}

static void names_of_types(void **state)
{
	enum tti_path_type type = TTI_PATH_DIS;

	(void)state;
	for (int i = 0; i <= TTI_PATH_DIS; i++) {
		assert_true(tti_path_type_parse(tti_path_type_name((enum tti_path_type)i), &type));
		assert_int_equal(type, i);
	}
	assert_false(tti_path_type_parse("pix", &type));
	assert_false(tti_path_type_parse("", &type));
}

/* -- The checker --------------------------------------------------------------------------- */

static void expect_breach(struct tti_paths *paths, const char *text)
{
	assert_int_equal(tti_paths_check(paths), TUTTI_EINTERNAL);
	if (!strstr(tti_error_text(), text))
		fail_msg("'%s' is not in '%s'", text, tti_error_text());
}

static void checker_finds_what_is_broken(void **state)
{
	struct tti_graph *graph =
		graph_of(doc_of_file("azhpc-images__ndv4-topo.xml"), TTI_MODEL_TUTTI);
	struct tti_paths *paths = paths_of(graph);
	struct tti_path *path = &paths->at[paths->n - 1]; /* GPU0 to the last NET */
	const struct tti_path was = *path;
	const uint32_t hop_was = paths->hops[was.first_hop + 1];
	struct tti_path *other = &paths->at[(paths->n - 1) * paths->n];

	(void)state;
	path->type = TTI_PATH_PHB;
	expect_breach(paths, "type PHB, but by its hops SYS");
	path->type = TTI_PATH_DIS + 1;
	expect_breach(paths, "type 12");
	path->type = TTI_PATH_DIS;
	expect_breach(paths, "hops of type DIS");
	*path = was;
	path->bw_gbps += 1;
	expect_breach(paths, "GB/s, but by its hops");
	*path = was;
	path->latency_ns += 1;
	expect_breach(paths, "ns, but by its hops");
	*path = was;
	path->nhops--;
	expect_breach(paths, "its hops end at");
	path->nhops = UINT16_MAX;
	expect_breach(paths, "hops ");
	*path = was;
	paths->hops[was.first_hop + 1] = graph->nlinks;
	expect_breach(paths, "is link");
	paths->hops[was.first_hop + 1] = hop_was + 1 < graph->nlinks ? hop_was + 1 : hop_was - 1;
	expect_breach(paths, "path from GPU0");
	paths->hops[was.first_hop + 1] = hop_was;
	/* No path at all is consistent in itself, but there is one in the other direction. */
	*path = (struct tti_path){ .type = TTI_PATH_DIS };
	expect_breach(paths, "in the other direction");
	*path = was;
	path = &paths->at[0];
	path->bw_gbps = 1;
	expect_breach(paths, "to itself");
	path->bw_gbps = (float)TTI_LOC_GBPS;
	assert_int_equal(other->type, was.type);
	assert_int_equal(tti_paths_check(paths), TUTTI_OK);
	tti_paths_free(paths);
	tti_graph_free(graph);
}

/* A path that is a way, but not the best one: the other direction knows a better. */
static void checker_finds_a_worse_path(void **state)
{
	struct tti_graph *graph =
		graph_of(doc_of_text(CPU(0) SWITCH("01") PCI("02") GPU(0) END_PCI
				     "<pcilink target=\"0000:03:00.0\"/>"
				     "<pcilink target=\"0000:05:00.0\"/>" END_PCI SWITCH("03")
					     PCI("04") GPU(1) END_PCI
				     "<pcilink target=\"0000:05:00.0\"/>" END_PCI SWITCH("05")
					     END_PCI END_CPU),
			 TTI_MODEL_TUTTI);
	struct tti_paths *paths = paths_of(graph);
	const uint32_t gpu[] = { endpoint(paths, "GPU0"), endpoint(paths, "GPU1") };
	const uint32_t dev[] = { graph->nodes[gpu[0]].parent, graph->nodes[gpu[1]].parent };
	const uint32_t at[] = { graph->nodes[dev[0]].parent, graph->nodes[dev[1]].parent };
	const uint32_t middle = node_of(graph, TTI_NODE_PCI, "0000:05:00.0");
	const uint32_t detour[] = { hop(graph, gpu[0], dev[0]), hop(graph, dev[0], at[0]),
				    hop(graph, at[0], middle),  hop(graph, middle, at[1]),
				    hop(graph, at[1], dev[1]),  hop(graph, dev[1], gpu[1]) };
	uint32_t *hops = malloc((paths->nhops + 6) * sizeof(*hops));
	struct tti_path *path = &paths->at[paths->index[gpu[0]] * paths->n + paths->index[gpu[1]]];

	(void)state;
	assert_non_null(hops);
	memcpy(hops, paths->hops, paths->nhops * sizeof(*hops));
	memcpy(hops + paths->nhops, detour, sizeof(detour));
	free(paths->hops);
	paths->hops = hops;
	path->first_hop = (uint32_t)paths->nhops;
	path->nhops = 6;
	path->latency_ns = 0;
	for (size_t i = 0; i < 6; i++)
		path->latency_ns += graph->links[detour[i]].latency_ns;
	paths->nhops += 6;
	expect_breach(paths, "there is a way of 5");
	tti_paths_free(paths);
	tti_graph_free(graph);
}

/* -- Out of memory --------------------------------------------------------------------------- */

static void every_allocation_may_fail(void **state)
{
	struct tti_graph *graph =
		graph_of(doc_of_file("azhpc-images__ndv4-topo.xml"), TTI_MODEL_TUTTI);
	tutti_status status = TUTTI_ENOMEM;
	int nth = 0;

	(void)state;
	while (status != TUTTI_OK) {
		struct tti_paths *paths = NULL;
		char list[32];

		snprintf(list, sizeof(list), "mem:%d", ++nth);
		tti_fault_set(list);
		status = tti_paths_build(graph, &paths);
		tti_fault_set(NULL);
		if (status != TUTTI_OK)
			assert_int_equal(status, TUTTI_ENOMEM);
		else
			assert_int_equal(tti_paths_check(paths), TUTTI_OK);
		tti_paths_free(paths);
	}
	assert_true(nth > 10);
	tti_graph_free(graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(types_over_pci),
		cmocka_unit_test(types_inside_one_device),
		cmocka_unit_test(types_over_nvlink),
		cmocka_unit_test(types_over_nvswitch_of_two_hosts),
		cmocka_unit_test(types_over_c2c),
		cmocka_unit_test(types_over_nvlink_to_cpus),
		cmocka_unit_test(types_over_links_between_switches),
		cmocka_unit_test(wide_ways_and_short_ones_live_side_by_side),
		cmocka_unit_test(what_is_no_way),
		cmocka_unit_test(names_of_types),
		cmocka_unit_test(checker_finds_what_is_broken),
		cmocka_unit_test(checker_finds_a_worse_path),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
