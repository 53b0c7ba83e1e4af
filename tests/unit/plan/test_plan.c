/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of whole jobs: equal nodes, uneven ones, different machines, many. */
#include "insight/plan/job.h"
#include "machines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/connect/connect.h"
#include "util/error.h"

static const char *const files[] = {
	"/topologies/azhpc-images__ndv4-topo.xml",
	"/topologies/Azure-azhpc-images__ndv2-topo.xml",
	"/topologies/aws-ofi-nccl__p4d-24xl-topo.xml",
	"/topologies/rccl__topo_8p_940.xml",
};
#define NFILES (sizeof(files) / sizeof(files[0]))

static struct machine machines[NFILES];

static int set_up(void **state)
{
	(void)state;
	for (size_t i = 0; i < NFILES; i++) {
		char path[256];

		snprintf(path, sizeof(path), TEST_DATA "%s", files[i]);
		machine_read(&machines[i], path, TTI_MODEL_NCCL);
	}
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	for (size_t i = 0; i < NFILES; i++)
		machine_release(&machines[i]);
	return 0;
}

static struct tti_plan *plan_of(const struct tti_plan_job *job)
{
	const struct tti_plan_config config = { .cross_nic = TTI_CROSS_AUTO,
						.budget_ms = UNHURRIED_MS };
	struct tti_plan *plan = NULL;

	if (tti_plan_make(job, &config, &plan) != TUTTI_OK || tti_plan_check(plan) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return plan;
}

static void equal_nodes(void **state)
{
	(void)state;
	for (size_t i = 0; i < NFILES; i++)
		for (uint32_t count = 1; count < 8; count++) {
			const struct tti_routes *routes = machines[i].routes;
			struct tti_plan_job *job = NULL;
			struct tti_plan *plan, *again;

			assert_int_equal(tti_plan_job_of(&routes, 1, count, 0, &job), TUTTI_OK);
			plan = plan_of(job);
			again = plan_of(job);
			assert_int_equal(plan->nranks, 8 * count);
			assert_int_equal(plan->nkinds, 1);
			assert_non_null(tti_plan_pattern(plan, TTI_PATTERN_RING));
			assert_non_null(tti_plan_pattern(plan, TTI_PATTERN_TREE));
			assert_int_equal(plan->hash, again->hash);
			tti_plan_free(plan);
			tti_plan_free(again);
			tti_plan_job_free(job);
		}
}

/* 8 + 8 + 4 ranks, 7 of 8 GPUs, other NICs, another machine; ranks dealt out in turn. */
static void uneven_nodes(void **state)
{
	static const struct {
		uint32_t machine[4], nranks[4], nnets[4], nnodes;
	} cases[] = {
		{ { 0, 0, 0 }, { 8, 8, 4 }, { 8, 8, 8 }, 3 },
		{ { 0, 0 }, { 7, 8 }, { 8, 4 }, 2 },
		{ { 0, 1, 2, 3 }, { 8, 8, 8, 8 }, { 8, 1, 4, 8 }, 4 },
		{ { 3, 0, 3 }, { 1, 3, 2 }, { 2, 2, 1 }, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tti_job_node nodes[4];
		uint32_t ranks[4][8], count[4] = { 0 }, nranks = 0;
		struct tti_plan_job job = { nodes, cases[i].nnodes, 0 };
		struct tti_plan *plan;

		for (uint32_t node = 0; node < job.nnodes; node++)
			nranks += cases[i].nranks[node];
		for (uint32_t node = 0; job.nranks < nranks; node = (node + 1) % job.nnodes)
			if (count[node] < cases[i].nranks[node])
				ranks[node][count[node]++] = job.nranks++;
		for (uint32_t node = 0; node < job.nnodes; node++) {
			const struct machine *m = &machines[cases[i].machine[node]];

			nodes[node] = (struct tti_job_node){
				.routes = m->routes,
				.members = m->graph->by_type[TTI_NODE_GPU],
				.ranks = ranks[node],
				.nranks = cases[i].nranks[node],
				.nets = m->graph->by_type[TTI_NODE_NET],
				.nnets = cases[i].nnets[node],
				.group = node == 0 || node == 2 ? 0 : -1,
			};
		}
		plan = plan_of(&job);
		assert_non_null(tti_plan_pattern(plan, TTI_PATTERN_RING));
		assert_non_null(tti_plan_pattern(plan, TTI_PATTERN_TREE));
		tti_plan_free(plan);
	}
}

/* CPU ranks by the dozen share few NUMA nodes: it is those that are searched. */
static void many_ranks_on_few_numa_nodes(void **state)
{
	static const uint32_t per_node[] = { 1, 3, 64, 257 };

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(per_node) / sizeof(per_node[0]); i++) {
		const struct machine *m = &machines[2];
		const uint32_t per = per_node[i / 2], nnodes = i % 2 ? 3 : 1;
		const uint32_t nhosts = m->graph->ntype[TTI_NODE_HOST];
		uint32_t *members = calloc(per, sizeof(*members));
		uint32_t *ranks = calloc((size_t)per * nnodes, sizeof(*ranks));
		struct tti_job_node nodes[3];
		const struct tti_plan_job job = { nodes, nnodes, per * nnodes };
		struct tti_plan *plan;

		for (uint32_t k = 0; k < per; k++)
			members[k] = m->graph->by_type[TTI_NODE_HOST][k % nhosts];
		for (uint32_t k = 0; k < job.nranks; k++)
			ranks[k] = k;
		for (uint32_t node = 0; node < nnodes; node++)
			nodes[node] = (struct tti_job_node){
				.routes = m->routes,
				.members = members,
				.ranks = ranks + (size_t)node * per,
				.nranks = per,
				.nets = m->graph->by_type[TTI_NODE_NET],
				.nnets = m->graph->ntype[TTI_NODE_NET],
				.group = -1,
			};
		plan = plan_of(&job);
		for (uint32_t k = 0; k < plan->npatterns; k++) {
			assert_true(plan->patterns[k].nchannels > 0);
			assert_true(plan->patterns[k].total_gbps >=
				    plan->patterns[k].bound_gbps * 0.98);
			assert_true(plan->patterns[k].search_ms < 30000);
		}
		assert_non_null(tti_plan_pattern(plan, TTI_PATTERN_RING));
		assert_non_null(tti_plan_pattern(plan, TTI_PATTERN_TREE));
		tti_plan_free(plan);
		free(members);
		free(ranks);
	}
}

static void jobs_that_are_none(void **state)
{
	const uint32_t *gpus = machines[0].graph->by_type[TTI_NODE_GPU];
	const uint32_t ranks[] = { 0, 1, 1 };
	struct tti_job_node node = { .routes = machines[0].routes,
				     .members = gpus,
				     .ranks = ranks,
				     .nranks = 2,
				     .group = -1 };
	struct tti_job_node two[] = { node, node };
	struct tti_plan *plan = NULL;

	(void)state;
	assert_int_equal(tti_plan_make(&(struct tti_plan_job){ &node, 1, 3 }, NULL, &plan),
			 TUTTI_EINVAL);
	node.nranks = 3;
	assert_int_equal(tti_plan_make(&(struct tti_plan_job){ &node, 1, 3 }, NULL, &plan),
			 TUTTI_EINVAL);
	node.nranks = 0;
	assert_int_equal(tti_plan_make(&(struct tti_plan_job){ &node, 1, 0 }, NULL, &plan),
			 TUTTI_EINVAL);
	two[0].nranks = 1;
	two[1].ranks = ranks + 1;
	two[1].nranks = 1;
	assert_int_equal(tti_plan_make(&(struct tti_plan_job){ two, 2, 2 }, NULL, &plan),
			 TUTTI_EPLAN);
	assert_non_null(strstr(tti_error_text(), "NIC"));
}

static void many_nodes(void **state)
{
	const struct tti_routes *routes = machines[0].routes;
	struct tti_plan_job *job = NULL;
	struct tti_plan *plan;

	(void)state;
	assert_int_equal(tti_plan_job_of(&routes, 1, 512, 0, &job), TUTTI_OK);
	plan = plan_of(job);
	assert_int_equal(plan->nranks, 4096);
	tti_plan_free(plan);
	tti_plan_job_free(job);
}

/* Each place has one parent that knows it; inner places of one tree are leaves of the
 * other; depth is logarithmic. */
static void double_trees(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 130; n++) {
		uint32_t inner[130] = { 0 };

		for (int second = 0; second < 2; second++) {
			uint32_t nroots = 0;

			for (uint32_t place = 0; place < n; place++) {
				const struct tti_tree_place at = tti_double_tree(n, place, second);
				uint32_t up = place, depth = 0;

				nroots += at.parent == UINT32_MAX;
				inner[place] +=
					at.child[0] != UINT32_MAX || at.child[1] != UINT32_MAX;
				if (at.parent != UINT32_MAX)
					assert_int_equal(tti_double_tree(n, at.parent, second)
								 .child[at.which],
							 place);
				while (tti_double_tree(n, up, second).parent != UINT32_MAX) {
					up = tti_double_tree(n, up, second).parent;
					assert_true(2u << depth++ <= n);
				}
			}
			assert_int_equal(nroots, 1);
		}
		for (uint32_t place = 0; place < n; place++)
			assert_true(inner[place] < 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_nodes),
		cmocka_unit_test(uneven_nodes),
		cmocka_unit_test(many_ranks_on_few_numa_nodes),
		cmocka_unit_test(jobs_that_are_none),
		cmocka_unit_test(many_nodes),
		cmocka_unit_test(double_trees),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
