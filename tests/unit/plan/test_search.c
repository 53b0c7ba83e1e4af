/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels inside one node: on real machines, on random ones, and against a linear
 * program over all rings there are. */
#include "machines.h"
#include "support/search_check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/search/column.h"
#include "support/random_topo.h"
#include "support/sanitizer.h"

/* Every file, or every fourth under a sanitizer. */
#define FILES_STEP (SANITIZED ? 8 : 1)

/* What NICs are for. */
enum nets { NETS_NONE, NETS_ENDS, NETS_INNER };

/* The first `most` GPUs, or HOSTs if there are none, and all NICs if asked for. */
static bool members_of(const struct machine *m, uint32_t most, enum nets nets,
		       struct tti_members *out)
{
	const enum tti_node_type type =
		m->graph->ntype[TTI_NODE_GPU] ? TTI_NODE_GPU : TTI_NODE_HOST;

	*out = (struct tti_members){ .routes = m->routes,
				     .nodes = m->graph->by_type[type],
				     .n = m->graph->ntype[type],
				     .nets = m->graph->by_type[TTI_NODE_NET],
				     .nnets = nets == NETS_ENDS ? m->graph->ntype[TTI_NODE_NET] : 0,
				     .ninner = nets == NETS_INNER ? m->graph->ntype[TTI_NODE_NET]
								  : 0 };
	if (out->n > most)
		out->n = most;
	return out->n > 0;
}

static void search_and_check(const struct tti_loads *loads, enum tti_pattern pattern,
			     enum tti_cross_nic cross, bool both, double gap)
{
	const struct tti_local_config config = {
		.pattern = pattern, .cross_nic = cross, .both_ways = both, .budget_ms = UNHURRIED_MS
	};
	struct tti_local *search = NULL;

	assert_int_equal(tti_local_search(loads, &config, &search), TUTTI_OK);
	assert_int_equal(tti_local_check(loads, both, search), TUTTI_OK);
	assert_true(search->total_gbps >= search->bound_gbps * (1 - gap) - 1e-3);
	tti_local_free(search);
}

static void all_patterns(const struct machine *m, uint32_t most, double gap)
{
	for (int nets = NETS_NONE; nets <= NETS_INNER; nets++) {
		struct tti_members members;
		struct tti_loads *loads = NULL;

		if (!members_of(m, most, (enum nets)nets, &members) ||
		    (nets && m->graph->ntype[TTI_NODE_NET] == 0))
			continue;
		assert_int_equal(tti_loads_build(&members, &loads), TUTTI_OK);
		for (int pattern = 0; pattern < TTI_PATTERN_COUNT; pattern++) {
			const bool heads = pattern == TTI_PATTERN_NVLS ||
					   pattern == TTI_PATTERN_COLLNET_DIRECT;

			/* Heads are limited to one NIC each: their bound is not. */
			search_and_check(loads, (enum tti_pattern)pattern, TTI_CROSS_AUTO, false,
					 heads ? 1 : gap);
			search_and_check(loads, (enum tti_pattern)pattern, TTI_CROSS_ANY, true,
					 heads ? 1 : gap);
		}
		tti_loads_free(loads);
	}
}

static void real_machines(void **state)
{
	glob_t files;

	(void)state;
	machine_files(&files);
	for (size_t i = 0; i < files.gl_pathc; i += FILES_STEP)
		for (int model = 0; model < 2; model++) {
			struct machine m;

			machine_read(&m, files.gl_pathv[i], (enum tti_model)model);
			all_patterns(&m, 8, 0.02);
			machine_release(&m);
		}
	globfree(&files);
}

static void random_machines(void **state)
{
	const char *asked = getenv("TEST_ROUNDS");
	const uint64_t rounds = asked ? strtoull(asked, NULL, 10) : SANITIZED ? 4 : 60;

	(void)state;
	for (uint64_t seed = 0; seed < rounds; seed++) {
		struct machine m;

		machine_build(&m, random_topo(seed), TTI_MODEL_TUTTI);
		all_patterns(&m, 7, 0.02);
		machine_release(&m);
	}
}

/* -- All rings there are ------------------------------------------------------------ */

static void add_ring(struct tti_lp *lp, const struct tti_loads *loads, const uint32_t *order)
{
	struct tti_load all[4096];
	size_t n = 0;

	for (uint32_t i = 0; i < loads->n; i++) {
		const struct tti_hop *hop = tti_hop(loads, order[i], order[(i + 1) % loads->n]);

		if (hop->bw_gbps <= 0)
			return;
		for (uint32_t k = 0; k < hop->n; k++) {
			assert_true(n < 4096);
			all[n++] = loads->loads[hop->first + k];
		}
	}
	assert_int_equal(tti_lp_add(lp, all, n), TUTTI_OK);
}

static void add_rings(struct tti_lp *lp, const struct tti_loads *loads, uint32_t *order,
		      uint32_t at, uint32_t used)
{
	if (at == loads->n) {
		add_ring(lp, loads, order);
		return;
	}
	for (uint32_t i = 1; i < loads->n; i++)
		if (!(used >> i & 1)) {
			order[at] = i;
			add_rings(lp, loads, order, at + 1, used | 1u << i);
		}
}

/* The search against the linear program over every ring. */
static void compare_members(const struct tti_members *members)
{
	const struct tti_local_config config = { .pattern = TTI_PATTERN_RING };
	struct tti_loads *loads = NULL;
	struct tti_local *search = NULL;
	struct tti_lp *lp = NULL;
	uint32_t order[8] = { 0 };
	double best;

	assert_int_equal(tti_loads_build(members, &loads), TUTTI_OK);
	assert_int_equal(tti_lp_create(loads->capacity, loads->nrows, &lp), TUTTI_OK);
	add_rings(lp, loads, order, 1, 1);
	assert_int_equal(tti_lp_solve(lp, &best), TUTTI_OK);
	assert_int_equal(tti_local_search(loads, &config, &search), TUTTI_OK);
	assert_true(fabs(search->total_gbps - best) <= 1e-3 * best + 1e-3);
	assert_true(search->bound_gbps >= best * (1 - 1e-5));
	tti_local_free(search);
	tti_lp_free(lp);
	tti_loads_free(loads);
}

static void compare(const struct machine *m)
{
	struct tti_members members;

	if (members_of(m, 6, NETS_NONE, &members) && members.n > 1)
		compare_members(&members);
}

/* A job may have any 3 to 7 GPUs of a machine with 8. */
static void every_subset(void **state)
{
	static const char *const machines[] = { "Azure-azhpc-images__ndv2-topo.xml",
						"aws-ofi-nccl__p4d-24xl-topo.xml" };

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		struct machine m;
		char path[256];

		snprintf(path, sizeof(path), TEST_DATA "/topologies/%s", machines[i]);
		machine_read(&m, path, TTI_MODEL_NCCL);
		for (uint32_t set = 0; set < 256; set += SANITIZED ? 61 : 1) {
			uint32_t nodes[8];
			struct tti_members members = { .routes = m.routes, .nodes = nodes };

			for (uint32_t gpu = 0; gpu < 8; gpu++)
				if (set >> gpu & 1)
					nodes[members.n++] = m.graph->by_type[TTI_NODE_GPU][gpu];
			if (members.n >= 3 && members.n <= 7)
				compare_members(&members);
		}
		machine_release(&m);
	}
}

static void against_all_rings(void **state)
{
	glob_t files;

	(void)state;
	for (uint64_t seed = 1000; seed < (SANITIZED ? 1002 : 1040); seed++) {
		struct machine m;

		machine_build(&m, random_topo(seed), TTI_MODEL_TUTTI);
		compare(&m);
		machine_release(&m);
	}
	machine_files(&files);
	for (size_t i = 0; i < files.gl_pathc; i += FILES_STEP) {
		struct machine m;

		machine_read(&m, files.gl_pathv[i], TTI_MODEL_NCCL);
		compare(&m);
		machine_release(&m);
	}
	globfree(&files);
}

/* -- A mesh ---------------------------------------------------------------------------- */

/* Eight members, each linked to each by 60 GB/s: a tree from each has its links for itself, and
 * so has, of two hosts, a path from each NIC. */
static void a_mesh_needs_few(void **state)
{
	static const struct {
		enum tti_pattern pattern;
		enum nets nets;
		enum tti_cross_nic cross;
		double gbps;
	} cases[] = { { TTI_PATTERN_TREE, NETS_NONE, TTI_CROSS_AUTO, 480 },
		      { TTI_PATTERN_TREE, NETS_ENDS, TTI_CROSS_AUTO, 384 },
		      { TTI_PATTERN_RING, NETS_ENDS, TTI_CROSS_MIRROR, 384 } };
	struct machine m;

	(void)state;
	machine_read(&m, TEST_DATA "/topologies/rccl__topo_8p_940.xml", TTI_MODEL_NCCL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tti_local_config config = { .pattern = cases[i].pattern,
							 .cross_nic = cases[i].cross,
							 .budget_ms = UNHURRIED_MS };
		struct tti_members members;
		struct tti_loads *loads = NULL;
		struct tti_local *search = NULL;

		assert_true(members_of(&m, 8, cases[i].nets, &members));
		assert_int_equal(tti_loads_build(&members, &loads), TUTTI_OK);
		assert_int_equal(tti_local_search(loads, &config, &search), TUTTI_OK);
		assert_int_equal(search->nchannels, 8);
		assert_true(search->total_gbps > cases[i].gbps * (1 - 1e-5));
		tti_local_free(search);
		tti_loads_free(loads);
	}
	machine_release(&m);
}

/* -- The same again ------------------------------------------------------------------ */

static void same_input_same_channels(void **state)
{
	const struct tti_local_config config = { .pattern = TTI_PATTERN_RING,
						 .cross_nic = TTI_CROSS_AUTO,
						 .budget_ms = UNHURRIED_MS };
	struct tti_local *search[2] = { NULL, NULL };
	struct tti_members members;
	struct machine m;

	(void)state;
	machine_read(&m, TEST_DATA "/topologies/rccl__topo_8p_940.xml", TTI_MODEL_NCCL);
	assert_true(members_of(&m, 8, NETS_ENDS, &members));
	for (int i = 0; i < 2; i++) {
		struct tti_loads *loads = NULL;

		assert_int_equal(tti_loads_build(&members, &loads), TUTTI_OK);
		assert_int_equal(tti_local_search(loads, &config, &search[i]), TUTTI_OK);
		tti_loads_free(loads);
	}
	assert_int_equal(search[0]->nchannels, search[1]->nchannels);
	for (uint32_t i = 0; i < search[0]->nchannels; i++) {
		const struct tti_channel *a = &search[0]->channels[i];
		const struct tti_channel *b = &search[1]->channels[i];

		assert_true(a->bw_gbps == b->bw_gbps);
		assert_memory_equal(a->order, b->order, members.n * sizeof(*a->order));
		assert_int_equal(a->net_in, b->net_in);
		assert_int_equal(a->net_out, b->net_out);
	}
	tti_local_free(search[0]);
	tti_local_free(search[1]);
	machine_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(real_machines),     cmocka_unit_test(random_machines),
		cmocka_unit_test(against_all_rings), cmocka_unit_test(every_subset),
		cmocka_unit_test(a_mesh_needs_few),  cmocka_unit_test(same_input_same_channels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
