/* SPDX-License-Identifier: BSD-3-Clause */
/* More members than an exact answer about each ring is possible for. */
#include "machines.h"
#include "support/search_check.h"

#include "util/strbuf.h"

/* Hosts of 4 GPUs on one NVLink switch and some NICs beside them; `odd`: one GPU has fewer
 * NVLinks, so that not all is alike. */
static struct tti_xml_doc *rack(unsigned nhosts, unsigned nnics, bool odd)
{
	struct tti_strbuf out = { 0 };
	struct tti_xml_doc *doc = NULL;

	tti_strbuf_add(&out, "<system version=\"1\">");
	for (unsigned i = 0; i < 4 * nhosts; i++) {
		if (i % 4 == 0)
			tti_strbuf_addf(&out,
					"<cpu host_hash=\"0x%x\" numaid=\"0\" affinity=\"ff\" "
					"arch=\"arm64\">",
					i + 1);
		tti_strbuf_addf(&out,
				"<pci busid=\"%04x:00:00.0\" class=\"0x060400\" "
				"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
				"<pci busid=\"%04x:01:00.0\" class=\"0x030200\" "
				"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\">"
				"<gpu dev=\"%u\" sm=\"90\" gdr=\"1\"><nvlink "
				"target=\"fffffff:ff:ff.0\" count=\"%d\" tclass=\"0x068000\"/>"
				"</gpu></pci>",
				16 * (i % 4), 16 * (i % 4), i % 4, odd && i == 0 ? 6 : 18);
		for (unsigned k = i % 4; k < nnics; k += 4)
			tti_strbuf_addf(&out,
					"<pci busid=\"%04x:03:00.0\" class=\"0x020700\" "
					"link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic><net "
					"name=\"mlx5_%u\" dev=\"%u\" speed=\"400000\" port=\"1\" "
					"guid=\"0x%x\" gdr=\"1\"/></nic></pci>",
					16 * (i % 4) + 1 + k / 4, k, k, k + 1);
		tti_strbuf_add(&out, i % 4 == 3 ? "</pci></cpu>" : "</pci>");
	}
	tti_strbuf_add(&out, "</system>");
	assert_false(out.failed);
	assert_int_equal(tti_xml_read(out.text, out.len, "rack", &doc), TUTTI_OK);
	tti_strbuf_release(&out);
	return doc;
}

static void search(const struct tti_loads *loads, enum tti_pattern pattern, double gap)
{
	const struct tti_local_config config = { .pattern = pattern,
						 .cross_nic = TTI_CROSS_AUTO,
						 .budget_ms = UNHURRIED_MS };
	struct tti_local *first = NULL, *second = NULL;

	assert_int_equal(tti_local_search(loads, &config, &first), TUTTI_OK);
	assert_int_equal(tti_local_check(loads, false, first), TUTTI_OK);
	assert_true(first->nchannels > 0);
	assert_true(first->total_gbps >= first->bound_gbps * (1 - gap));
	if (pattern != TTI_PATTERN_RING && pattern != TTI_PATTERN_TREE) {
		tti_local_free(first);
		return;
	}
	/* No clock has a say in it. */
	assert_int_equal(tti_local_search(loads, &config, &second), TUTTI_OK);
	assert_int_equal(first->nchannels, second->nchannels);
	assert_true(first->total_gbps == second->total_gbps);
	for (uint32_t i = 0; i < first->nchannels; i++)
		assert_memory_equal(first->channels[i].order, second->channels[i].order,
				    loads->n * sizeof(uint32_t));
	tti_local_free(first);
	tti_local_free(second);
}

static void plan(struct tti_xml_doc *doc, bool nets, double gap)
{
	struct machine m;
	struct tti_members members;
	struct tti_loads *loads = NULL;

	machine_build(&m, doc, TTI_MODEL_TUTTI);
	members = (struct tti_members){ .routes = m.routes,
					.nodes = m.graph->by_type[TTI_NODE_GPU],
					.n = m.graph->ntype[TTI_NODE_GPU],
					.nets = m.graph->by_type[TTI_NODE_NET],
					.nnets = nets ? m.graph->ntype[TTI_NODE_NET] : 0 };
	assert_int_equal(tti_loads_build(&members, &loads), TUTTI_OK);
	for (int i = 0; i < TTI_PATTERN_COUNT; i++)
		search(loads, (enum tti_pattern)i,
		       tti_pattern_has_heads((enum tti_pattern)i) ? 1 : gap);
	tti_loads_free(loads);
	machine_release(&m);
}

static void one_switch(void **state)
{
	(void)state;
	for (unsigned nhosts = 1; nhosts <= 5; nhosts += 4) {
		plan(rack(nhosts, 5, false), false, 0.03);
		plan(rack(nhosts, 8, false), true, 0.03);
	}
	plan(rack(9, 3, false), true, 0.03);
}

static void one_slow_gpu(void **state)
{
	(void)state;
	plan(rack(5, 4, true), false, 0.03);
	plan(rack(5, 4, true), true, 0.03);
}

/* A tree from each of 72 GPUs would carry 1.4 % more than one from any. */
static void one_tree_will_do(void **state)
{
	const struct tti_local_config config = { .pattern = TTI_PATTERN_TREE,
						 .budget_ms = UNHURRIED_MS };
	struct tti_local *found = NULL;
	struct tti_members members;
	struct tti_loads *loads = NULL;
	struct machine m;

	(void)state;
	machine_build(&m, rack(18, 8, false), TTI_MODEL_TUTTI);
	members = (struct tti_members){ .routes = m.routes,
					.nodes = m.graph->by_type[TTI_NODE_GPU],
					.n = m.graph->ntype[TTI_NODE_GPU] };
	assert_int_equal(tti_loads_build(&members, &loads), TUTTI_OK);
	assert_int_equal(tti_local_search(loads, &config, &found), TUTTI_OK);
	assert_int_equal(found->nchannels, 1);
	assert_true(found->total_gbps >= 0.98 * found->bound_gbps);
	tti_local_free(found);
	tti_loads_free(loads);
	machine_release(&m);
}

/* 72 GPUs on PCIe alone, on 18 switches of each of 4 NUMA nodes, with two NICs beside each. */
static struct tti_xml_doc *pcie_host(void)
{
	struct tti_strbuf out = { 0 };
	struct tti_xml_doc *doc = NULL;

	tti_strbuf_add(&out, "<system version=\"1\">");
	for (unsigned i = 0; i < 72; i++) {
		if (i % 18 == 0)
			tti_strbuf_addf(&out,
					"<cpu numaid=\"%u\" affinity=\"%x\" arch=\"x86_64\" "
					"vendor=\"AuthenticAMD\" familyid=\"175\" modelid=\"17\">",
					i / 18, 0xffu << i / 18 * 8);
		tti_strbuf_addf(&out,
				"<pci busid=\"%04x:00:00.0\" class=\"0x060400\" "
				"link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
				"<pci busid=\"%04x:01:00.0\" class=\"0x030200\" "
				"link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
				"<gpu dev=\"%u\" sm=\"89\" gdr=\"1\"/></pci>",
				i, i, i);
		for (unsigned k = 0; k < 2; k++)
			tti_strbuf_addf(&out,
					"<pci busid=\"%04x:%02x:00.0\" class=\"0x020000\" "
					"link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><nic><net "
					"name=\"mlx5_%u\" dev=\"%u\" speed=\"100000\" port=\"1\" "
					"guid=\"0x%x\" gdr=\"1\"/></nic></pci>",
					i, 2 + k, 2 * i + k, 2 * i + k, 2 * i + k + 1);
		tti_strbuf_add(&out, i % 18 == 17 ? "</pci></cpu>" : "</pci>");
	}
	tti_strbuf_add(&out, "</system>");
	assert_false(out.failed);
	assert_int_equal(tti_xml_read(out.text, out.len, "host", &doc), TUTTI_OK);
	tti_strbuf_release(&out);
	return doc;
}

/* Over the CPUs there are 4 GB/s, over the NICs what the slots of the GPUs carry. */
static void many_go_over_nets(void **state)
{
	struct machine m;
	struct tti_members members;
	struct tti_loads *loads = NULL;

	(void)state;
	machine_build(&m, pcie_host(), TTI_MODEL_TUTTI);
	members = (struct tti_members){ .routes = m.routes,
					.nodes = m.graph->by_type[TTI_NODE_GPU],
					.n = m.graph->ntype[TTI_NODE_GPU],
					.nets = m.graph->by_type[TTI_NODE_NET],
					.ninner = m.graph->ntype[TTI_NODE_NET] };
	assert_int_equal(tti_loads_build(&members, &loads), TUTTI_OK);
	search(loads, TTI_PATTERN_RING, 1e-4);
	search(loads, TTI_PATTERN_TREE, 0.02);
	tti_loads_free(loads);
	machine_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_switch),
		cmocka_unit_test(one_slow_gpu),
		cmocka_unit_test(many_go_over_nets),
		cmocka_unit_test(one_tree_will_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
