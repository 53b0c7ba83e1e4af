/* SPDX-License-Identifier: BSD-3-Clause */
/* By which NICs ranks of several nodes talk, as a plan says: a plan by hand, and those of real
 * machines beside their channels. */
#include "machines.h"

#include <stdio.h>
#include <string.h>

#include "plan/connect/nic_pairs.h"
#include "util/error.h"

/* -- By hand ----------------------------------------------------------------------- */

/* Two nodes of two ranks and two NICs, and one of a single rank. Ring 0 leaves by a and enters
 * by b, ring 1 by other NICs; ranks 1 and 3 are neighbours in a tree alone. */
static const char by_hand[] =
	"{\"nodes\":3,\"ranks\":5,\"hosts\":["
	"{\"name\":\"x\",\"kind\":0,\"ranks\":[0,1],\"endpoints\":[\"A\",\"B\"],"
	"\"nets\":[\"a\",\"b\"]},"
	"{\"name\":\"y\",\"kind\":0,\"ranks\":[2,3],\"endpoints\":[\"A\",\"B\"],"
	"\"nets\":[\"a\",\"b\"]},"
	"{\"name\":\"z\",\"kind\":1,\"ranks\":[4],\"endpoints\":[\"A\"],\"nets\":[\"c\"]}],"
	"\"patterns\":{\"ring\":{\"total_bw_gbps\":4,\"bound_bw_gbps\":4,\"search_ms\":0,"
	"\"cross_nic\":1,\"limit\":\"\",\"channels\":["
	"{\"bw_gbps\":3,\"ranks\":[0,1,2,3,4],\"nets\":[[\"b\",\"a\"],[\"b\",\"a\"],[\"c\",\"c\"]],"
	"\"type_intra\":\"SYS\",\"type_inter\":\"SYS\"},"
	"{\"bw_gbps\":1,\"ranks\":[0,1,2,3,4],\"nets\":[[\"a\",\"b\"],[\"a\",\"b\"],[\"c\",\"c\"]],"
	"\"type_intra\":\"SYS\",\"type_inter\":\"SYS\"}]},"
	"\"tree\":{\"total_bw_gbps\":4,\"bound_bw_gbps\":4,\"search_ms\":0,\"cross_nic\":0,"
	"\"limit\":\"\",\"channels\":["
	"{\"bw_gbps\":2,\"ranks\":[4,1,0,3,2],\"parents\":[1,4,3,1,-1],"
	"\"nets\":[[\"a\",\"a\"],[\"b\",\"b\"],[\"c\",\"c\"]],"
	"\"type_intra\":\"SYS\",\"type_inter\":\"SYS\"},"
	"{\"bw_gbps\":2,\"ranks\":[3,4,1,2,0],\"parents\":[1,4,3,-1,3],"
	"\"nets\":[[\"a\",\"a\"],[\"b\",\"b\"],[\"c\",\"c\"]],"
	"\"type_intra\":\"SYS\",\"type_inter\":\"SYS\"}]}}}";

static struct tti_plan *read_plan(const char *text, const char *name)
{
	struct tti_plan *plan = NULL;

	if (tti_plan_read(text, strlen(text), name, &plan) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return plan;
}

static void check_wires(const struct tti_plan *plan, uint32_t rank,
			const struct tti_nic_pair *expected, uint32_t n)
{
	struct tti_nic_pairs wires;

	assert_int_equal(tti_nic_pairs_of_plan(plan, rank, &wires), TUTTI_OK);
	assert_int_equal(wires.n, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(wires.at[i].peer, expected[i].peer);
		assert_int_equal(wires.at[i].near, expected[i].near);
		assert_int_equal(wires.at[i].far, expected[i].far);
		assert_float_equal(wires.at[i].out_gbps, expected[i].out_gbps, 1e-9);
		assert_float_equal(wires.at[i].in_gbps, expected[i].in_gbps, 1e-9);
	}
	tti_nic_pairs_release(&wires);
}

static void rings_before_trees(void **state)
{
	/* What is only got by a ring is answered the same way. */
	static const struct tti_nic_pair of_0[] = { { 4, 0, 0, 1, 1 }, { 4, 1, 0, 3, 3 } };
	static const struct tti_nic_pair of_1[] = {
		{ 2, 0, 1, 3, 3 },
		{ 2, 1, 0, 1, 1 }, /* rings */
		{ 3, 0, 1, 2, 2 }, /* one tree */
		{ 4, 0, 0, 4, 4 },
	};
	static const struct tti_nic_pair of_2[] = { { 1, 0, 1, 1, 1 }, { 1, 1, 0, 3, 3 } };
	static const struct tti_nic_pair of_4[] = {
		{ 0, 0, 0, 1, 1 }, { 0, 0, 1, 3, 3 }, { 1, 0, 0, 4, 4 },
		{ 3, 0, 0, 3, 3 }, { 3, 0, 1, 1, 1 },
	};
	struct tti_plan *plan = read_plan(by_hand, "by hand");

	(void)state;
	check_wires(plan, 0, of_0, 2);
	check_wires(plan, 1, of_1, 4);
	check_wires(plan, 2, of_2, 2);
	check_wires(plan, 4, of_4, 5);
	tti_plan_free(plan);
}

/* -- Of machines --------------------------------------------------------------------- */

static const struct tti_nic_pair *find(const struct tti_nic_pairs *wires, uint32_t peer,
				       int32_t near, int32_t far)
{
	for (uint32_t i = 0; i < wires->n; i++)
		if (wires->at[i].peer == peer && (int32_t)wires->at[i].near == near &&
		    (int32_t)wires->at[i].far == far)
			return &wires->at[i];
	return NULL;
}

/* What the rings carry from `from` to `to` over these NICs. */
static double carried(const struct tti_plan *plan, uint32_t from, uint32_t to, uint32_t out,
		      uint32_t in)
{
	const struct tti_plan_pattern *rings = tti_plan_pattern(plan, TTI_PATTERN_RING);
	double sum = 0;

	for (uint32_t i = 0; i < rings->nchannels; i++) {
		const struct tti_plan_channel *ring = &rings->channels[i];

		for (uint32_t k = 0; k < ring->nranks; k++)
			if (ring->ranks[k] == from && ring->ranks[(k + 1) % ring->nranks] == to &&
			    ring->ends[plan->ranks[from].node].out == (int32_t)out &&
			    ring->ends[plan->ranks[to].node].in == (int32_t)in)
				sum += (double)ring->bw_gbps;
	}
	return sum;
}

/* Both ends say the same of what is between them, and of rings, what the channels say. */
static void check_both_ends(const struct tti_plan *plan, struct tti_nic_pairs *wires)
{
	for (uint32_t rank = 0; rank < plan->nranks; rank++)
		for (uint32_t i = 0; i < wires[rank].n; i++) {
			const struct tti_nic_pair *here = &wires[rank].at[i];
			const struct tti_nic_pair *there = find(
				&wires[here->peer], rank, (int32_t)here->far, (int32_t)here->near);
			const double out = carried(plan, rank, here->peer, here->near, here->far);

			assert_int_not_equal(plan->ranks[rank].node, plan->ranks[here->peer].node);
			assert_true(here->near < plan->nodes[plan->ranks[rank].node].nnets);
			assert_non_null(there);
			assert_float_equal(here->out_gbps, there->in_gbps, 1e-6);
			assert_float_equal(here->in_gbps, there->out_gbps, 1e-6);
			if (out > 0)
				assert_float_equal(here->out_gbps, out, 1e-6);
		}
}

static uint32_t check_rings(const struct tti_plan *plan, const struct tti_nic_pairs *wires)
{
	const struct tti_plan_pattern *rings = tti_plan_pattern(plan, TTI_PATTERN_RING);
	uint32_t nhops = 0;

	for (uint32_t i = 0; i < rings->nchannels; i++) {
		const struct tti_plan_channel *ring = &rings->channels[i];

		for (uint32_t k = 0; k < ring->nranks; k++) {
			const uint32_t a = ring->ranks[k], b = ring->ranks[(k + 1) % ring->nranks];
			const uint32_t from = plan->ranks[a].node, to = plan->ranks[b].node;

			if (from == to)
				continue;
			assert_non_null(
				find(&wires[a], b, ring->ends[from].out, ring->ends[to].in));
			nhops++;
		}
	}
	return nhops;
}

static void channels_of_machines(void **state)
{
	static const char *const names[] = { "SimAI-SimCCL__topo_8A100_4CX6-3",
					     "aws-ofi-nccl__p4d-24xl-topo-2",
					     "azhpc-images__ndv5-topo-2",
					     "rccl__topo_8p_pcie_2nic-2" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[512], *text = calloc(1, 1 << 20);
		struct tti_nic_pairs *wires;
		struct tti_plan *plan;
		FILE *file;

		(void)snprintf(path, sizeof(path), TEST_GOLDEN "/plan/%s.json", names[i]);
		file = fopen(path, "re");
		assert_non_null(file);
		assert_non_null(text);
		assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
		fclose(file);
		plan = read_plan(text, path);
		free(text);
		wires = calloc(plan->nranks, sizeof(*wires));
		assert_non_null(wires);
		for (uint32_t rank = 0; rank < plan->nranks; rank++)
			assert_int_equal(tti_nic_pairs_of_plan(plan, rank, &wires[rank]), TUTTI_OK);
		check_both_ends(plan, wires);
		assert_true(check_rings(plan, wires) > 0);
		for (uint32_t rank = 0; rank < plan->nranks; rank++)
			tti_nic_pairs_release(&wires[rank]);
		free(wires);
		tti_plan_free(plan);
	}
}

/* One node: nobody is elsewhere. */
static void one_node_has_none(void **state)
{
	static const char one[] =
		"{\"nodes\":1,\"ranks\":2,\"hosts\":[{\"name\":\"x\",\"kind\":0,\"ranks\":[0,1],"
		"\"endpoints\":[\"A\",\"B\"],\"nets\":[]}],\"patterns\":{\"ring\":{"
		"\"total_bw_gbps\":4,\"bound_bw_gbps\":4,\"search_ms\":0,\"cross_nic\":0,"
		"\"limit\":\"\",\"channels\":[{\"bw_gbps\":4,\"ranks\":[0,1],\"nets\":[],\"type_"
		"intra\":"
		"\"SYS\","
		"\"type_inter\":\"SYS\"}]}}}";
	struct tti_plan *plan = read_plan(one, "one node");

	(void)state;
	check_wires(plan, 0, NULL, 0);
	tti_plan_free(plan);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rings_before_trees),
		cmocka_unit_test(channels_of_machines),
		cmocka_unit_test(one_node_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
