/* SPDX-License-Identifier: BSD-3-Clause */
/* Hops inside a node that leave it by one NIC and come back by another: on machines of two
 * halves, against a linear program over all rings and ways there are, and where they must
 * not be. */
#include "machines.h"
#include "support/search_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/search/column.h"
#include "support/random_topo.h"
#include "support/sanitizer.h"
#include "util/strbuf.h"

static struct tti_members alone(const struct machine *m, uint32_t ngpus, uint32_t nnets)
{
	const uint32_t *n = m->graph->ntype;

	return (struct tti_members){ .routes = m->routes,
				     .nodes = m->graph->by_type[TTI_NODE_GPU],
				     .n = n[TTI_NODE_GPU] < ngpus ? n[TTI_NODE_GPU] : ngpus,
				     .nets = m->graph->by_type[TTI_NODE_NET],
				     .ninner = n[TTI_NODE_NET] < nnets ? n[TTI_NODE_NET] : nnets };
}

static struct tti_local *search(const struct tti_loads *loads, enum tti_pattern pattern,
				enum tti_cross_nic cross, bool both)
{
	const struct tti_local_config config = {
		.pattern = pattern, .cross_nic = cross, .both_ways = both, .budget_ms = UNHURRIED_MS
	};
	struct tti_local *out = NULL;

	assert_int_equal(tti_local_search(loads, &config, &out), TUTTI_OK);
	assert_int_equal(tti_local_check(loads, both, out), TUTTI_OK);
	return out;
}

static uint32_t count_detours(const struct tti_loads *loads, const struct tti_local *search)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < search->nchannels; i++)
		for (uint32_t k = 0; k < loads->n; k++)
			count += !tti_way_is_direct(search->channels[i].way, k);
	return count;
}

/* -- Two halves ---------------------------------------------------------------------- */

/* What the first half can send to all that is not its own: each of its GPUs has one link
 * but for those to its own half. No ring gets by with less than once out of it. */
static double cut_of_half(const struct machine *m)
{
	double sum = 0;

	for (uint32_t i = 0; i < 4; i++) {
		const uint32_t gpu = m->graph->by_type[TTI_NODE_GPU][i];
		const struct tti_node *dev = &m->graph->nodes[m->graph->nodes[gpu].parent];

		for (uint32_t k = 0; k < dev->nlinks; k++) {
			const struct tti_topo_link *link = &m->graph->links[dev->first_link + k];

			if (link->type == TTI_LINK_PCI)
				sum += (double)link->bw_gbps;
		}
	}
	return sum;
}

/* 48 GB/s cross the CPUs, 48 the network: all that the GPUs of a half can send. */
static void two_halves(void **state)
{
	static const char *const files[] = { "rccl__topo_8p_4nics.xml",
					     "rccl__topo_collnet_n4.xml" };

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct tti_loads *loads = NULL;
		struct tti_local *with, *without;
		struct tti_members members;
		struct machine m;
		char path[256];

		snprintf(path, sizeof(path), TEST_DATA "/topologies/%s", files[i]);
		machine_read(&m, path, TTI_MODEL_NCCL);
		members = alone(&m, 8, 4);
		assert_int_equal(tti_loads_build(&members, &loads), TUTTI_OK);
		with = search(loads, TTI_PATTERN_RING, TTI_CROSS_AUTO, false);
		without = search(loads, TTI_PATTERN_RING, TTI_CROSS_SAME, false);
		assert_true(fabs(cut_of_half(&m) - 96) < 1e-3);
		assert_true(with->total_gbps >= 0.9999 * 96);
		assert_true(with->bound_gbps <= 96 * (1 + 1e-5));
		assert_true(fabs(without->total_gbps - 48) < 0.01);
		assert_int_equal(with->cross_nic, TTI_CROSS_ANY);
		assert_int_equal(without->cross_nic, TTI_CROSS_SAME);
		assert_true(count_detours(loads, with) > 0);
		assert_int_equal(count_detours(loads, without), 0);
		tti_local_free(with);
		tti_local_free(without);
		tti_loads_free(loads);
		machine_release(&m);
	}
}

/* -- All rings and ways there are ---------------------------------------------------- */

struct walk {
	const struct tti_loads *loads;
	struct tti_lp *lp;
	uint32_t order[8], ncolumns;
	struct tti_load all[4096];
	size_t n;
};

static bool take(struct walk *walk, const struct tti_hop *hop)
{
	for (uint32_t i = 0; hop->bw_gbps > 0 && i < hop->n; i++) {
		assert_true(walk->n < 4096);
		walk->all[walk->n++] = walk->loads->loads[hop->first + i];
	}
	return hop->bw_gbps > 0;
}

static bool is_gpu(const struct tti_loads *loads, uint32_t member)
{
	return loads->routes->paths->graph->nodes[loads->nodes[member]].type == TTI_NODE_GPU;
}

/* Each hop from number `at` on by each way there is. */
static void add_ways(struct walk *walk, uint32_t at)
{
	const struct tti_loads *loads = walk->loads;
	const uint32_t n = loads->n;
	const size_t before = walk->n;
	uint32_t from, to;

	if (at == n) {
		assert_int_equal(tti_lp_add(walk->lp, walk->all, walk->n), TUTTI_OK);
		walk->ncolumns++;
		return;
	}
	from = walk->order[at];
	to = walk->order[(at + 1) % n];
	if (take(walk, tti_hop(loads, from, to)))
		add_ways(walk, at + 1);
	walk->n = before;
	if (tti_hop(loads, from, to)->type < TTI_PATH_PHB || !is_gpu(loads, from) ||
	    !is_gpu(loads, to))
		return;
	for (uint32_t a = 0; a < loads->ninner; a++)
		for (uint32_t b = 0; b < loads->ninner; b++) {
			const struct tti_way way = { .out = a, .in = b };

			if (tti_way_exists(loads, way) && take(walk, tti_hop_out(loads, a, from)) &&
			    take(walk, tti_hop_in(loads, b, to)))
				add_ways(walk, at + 1);
			walk->n = before;
		}
}

static void add_rings(struct walk *walk, uint32_t at, uint32_t used)
{
	if (at == walk->loads->n) {
		add_ways(walk, 0);
		return;
	}
	for (uint32_t i = 1; i < walk->loads->n; i++)
		if (!(used >> i & 1)) {
			walk->order[at] = i;
			add_rings(walk, at + 1, used | 1u << i);
		}
}

/* How many hops over NICs the search found. */
static uint32_t compare(const struct machine *m, uint32_t ngpus, uint32_t nnets)
{
	const struct tti_members members = alone(m, ngpus, nnets);
	struct walk walk = { .order = { 0 } };
	struct tti_loads *loads = NULL;
	struct tti_local *found;
	double best = 0;
	uint32_t count;

	if (members.n < 2 || members.ninner < 2)
		return 0;
	assert_int_equal(tti_loads_build(&members, &loads), TUTTI_OK);
	assert_int_equal(tti_lp_create(loads->capacity, loads->nrows, &walk.lp), TUTTI_OK);
	walk.loads = loads;
	add_rings(&walk, 1, 1);
	if (walk.ncolumns)
		assert_int_equal(tti_lp_solve(walk.lp, &best), TUTTI_OK);
	found = search(loads, TTI_PATTERN_RING, TTI_CROSS_AUTO, false);
	if (fabs(found->total_gbps - best) > 1e-3 * best + 1e-3 ||
	    found->bound_gbps < best * (1 - 1e-5))
		fail_msg("%s: %.3f GB/s, at most %.3f; the best of %u is %.3f", m->doc->source,
			 found->total_gbps, found->bound_gbps, walk.ncolumns, best);
	count = count_detours(loads, found);
	tti_local_free(found);
	tti_lp_free(walk.lp);
	tti_loads_free(loads);
	return count;
}

static uint32_t compare_random(uint64_t seed)
{
	struct machine m;
	uint32_t count;

	machine_build(&m, random_topo(seed), (enum tti_model)(seed % 2));
	count = compare(&m, 4, 2) + compare(&m, 3, 4);
	machine_release(&m);
	return count;
}

static void against_all_ways(void **state)
{
	const char *asked = getenv("TEST_ROUNDS");
	const uint64_t rounds = asked ? strtoull(asked, NULL, 10) : SANITIZED ? 20 : 200;
	uint32_t count = 0;

	(void)state;
	for (uint64_t seed = 100; seed < 100 + rounds; seed++)
		count += compare_random(seed);
	assert_true(count > 0);
	/* The first NIC has no speed, and so no fabric, which the others have. */
	assert_true(compare_random(1045) > 0);
}

/* Never worse than without; trees too, in one direction and in both. */
static void never_worse(void **state)
{
	glob_t files;

	(void)state;
	machine_files(&files);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		struct tti_loads *loads = NULL;
		struct tti_members members;
		struct machine m;

		machine_read(&m, files.gl_pathv[i], (enum tti_model)(i % 2));
		members = alone(&m, 8, 16);
		if (members.n > 1 && members.ninner > 1) {
			assert_int_equal(tti_loads_build(&members, &loads), TUTTI_OK);
			for (int k = 0; k < 3; k++) {
				const enum tti_pattern pattern =
					k ? TTI_PATTERN_TREE : TTI_PATTERN_RING;
				struct tti_local *a =
					search(loads, pattern, TTI_CROSS_SAME, k == 2);
				struct tti_local *b =
					search(loads, pattern, TTI_CROSS_AUTO, k == 2);

				assert_true(b->total_gbps >= a->total_gbps * (1 - 1e-4));
				assert_true(b->total_gbps >= b->bound_gbps * 0.98);
				tti_local_free(a);
				tti_local_free(b);
			}
			tti_loads_free(loads);
		}
		machine_release(&m);
	}
	globfree(&files);
}

/* -- Where they must not be ----------------------------------------------------------- */

/* Two GPUs on two sockets, a NIC beside each. */
struct wanted {
	const char *class[2], *speed[2], *guid[2], *plane[2];
};

static void two_sockets(const struct wanted *wanted, struct machine *m)
{
	struct tti_strbuf out = { 0 };
	struct tti_xml_doc *doc = NULL;

	tti_strbuf_add(&out, "<system version=\"1\">");
	for (unsigned i = 0; i < 2; i++)
		tti_strbuf_addf(
			&out,
			"<cpu numaid=\"%u\" affinity=\"%x\" arch=\"x86_64\" "
			"vendor=\"AuthenticAMD\" "
			"familyid=\"143\" modelid=\"49\"><pci busid=\"000%u:01:00.0\" "
			"class=\"0x060400\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
			"<pci busid=\"000%u:02:00.0\" class=\"0x030200\" "
			"link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">"
			"<gpu dev=\"%u\" sm=\"80\" rank=\"%u\" gdr=\"1\"/></pci>"
			"<pci busid=\"000%u:03:00.0\" class=\"%s\" link_speed=\"16.0 GT/s PCIe\" "
			"link_width=\"16\"><nic><net name=\"net%u\" dev=\"%u\" speed=\"%s\" "
			"port=\"1\" guid=\"%s\" gdr=\"1\"%s/></nic></pci></pci></cpu>",
			i, 15u << 4 * i, i, i, i, i, i, wanted->class[i], i, i, wanted -> speed[i],
			wanted -> guid[i], wanted -> plane[i]);
	tti_strbuf_add(&out, "</system>");
	assert_false(out.failed);
	assert_int_equal(tti_xml_read(out.text, out.len, "sockets", &doc), TUTTI_OK);
	tti_strbuf_release(&out);
	machine_build(m, doc, TTI_MODEL_TUTTI);
}

static double ring_gbps(const struct machine *m, uint32_t *ndetours)
{
	const struct tti_members members = alone(m, 2, 2);
	struct tti_loads *loads = NULL;
	struct tti_local *found;
	double gbps;

	assert_int_equal(tti_loads_build(&members, &loads), TUTTI_OK);
	found = search(loads, TTI_PATTERN_RING, TTI_CROSS_AUTO, false);
	*ndetours = count_detours(loads, found);
	gbps = found->total_gbps;
	tti_local_free(found);
	tti_loads_free(loads);
	return gbps;
}

#define CABLE                                                                 \
	.class = { "0x020700", "0x020700" }, .speed = { "200000", "200000" }, \
	.guid = { "0x1", "0x2" }, .plane = { "", "" }

static void only_where_a_network_leads(void **state)
{
	struct wanted wanted[] = { { CABLE }, { CABLE }, { CABLE }, { CABLE }, { CABLE } };
	double direct = 0;

	(void)state;
	wanted[1].class[1] = "0x020000"; /* Ethernet */
	wanted[2].speed[1] = "-1";
	wanted[3].guid[1] = "0x1"; /* one card, one port */
	wanted[4].plane[0] = " plane=\"0\"";
	wanted[4].plane[1] = " plane=\"1\"";
	for (size_t i = 0; i < 5; i++) {
		struct machine m;
		uint32_t ndetours;
		double gbps;

		two_sockets(&wanted[i], &m);
		gbps = ring_gbps(&m, &ndetours);
		if (i == 1)
			direct = gbps;
		assert_int_equal(ndetours > 0, i == 0);
		assert_true(i <= 1 || fabs(gbps - direct) < 1e-3);
		machine_release(&m);
	}
}

/* NVLinks, or one NIC: then none is looked at. */
static void not_beside_nvlinks(void **state)
{
	static const struct {
		const char *file;
		uint32_t nnets, want;
	} cases[] = { { "azhpc-images__ndv5-topo.xml", 8, 0 },
		      { "aws-ofi-nccl__p4d-24xl-topo.xml", 4, 0 },
		      { "rccl__topo_8p_4nics.xml", 1, 0 },
		      { "rccl__topo_8p_4nics.xml", 4, 4 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tti_members members;
		struct machine m;
		char path[256];
		uint32_t n = UINT32_MAX;

		snprintf(path, sizeof(path), TEST_DATA "/topologies/%s", cases[i].file);
		machine_read(&m, path, TTI_MODEL_TUTTI);
		members = alone(&m, 8, 0);
		assert_int_equal(tti_detour_nets(&members, cases[i].nnets, &n), TUTTI_OK);
		assert_int_equal(n, cases[i].want);
		machine_release(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_halves),         cmocka_unit_test(against_all_ways),
		cmocka_unit_test(never_worse),        cmocka_unit_test(only_where_a_network_leads),
		cmocka_unit_test(not_beside_nvlinks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
