/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of handoffs: what is known of some, and on random machines that what a plan says is
 * so and nobody could do better than its bound. */
#include "insight/plan/job.h"
#include "machines.h"

#include <stdio.h>

#include "insight/handoff/handoff_report.h"
#include "plan/handoff/handoff.h"
#include "support/random_topo.h"
#include "support/sanitizer.h"
#include "util/error.h"
#include "util/mem.h"

#define MOST   512
#define ROUNDS (SANITIZED ? 40 : 250)

static uint64_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

struct sides {
	uint32_t from[MOST], to[MOST];
	struct tti_handoff_job handoff;
};

static void range(uint32_t *list, uint32_t *n, uint32_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		list[(*n)++] = first + i;
}

static struct tti_handoff_plan *plan_of(const struct tti_handoff_job *handoff)
{
	struct tti_handoff_plan *plan = NULL;

	if (tti_handoff_plan_make(handoff, &plan) != TUTTI_OK ||
	    tti_handoff_figures(handoff, plan) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	if (tti_handoff_plan_check(handoff, plan) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return plan;
}

/* -- Known ones ------------------------------------------------------------------------- */

/* Two nodes of 8 GPUs and 1, 2 or 4 NICs: the cases of the patent. */
static void as_many_pairs_as_sit_beside(void **state)
{
	static const struct {
		const char *name;
		uint32_t npairs;
		double gbps;
	} cases[] = {
		{ "handoff_1nic", 2, 3.125 },
		{ "handoff_2nic", 4, 6.25 },
		{ "handoff_4nic", 8, 12.5 },
		{ "handoff_4nic_nvlink", 8, 50 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct machine m;
		struct sides s = { .handoff = { .nfrom = 0 } };
		struct tti_plan_job *job = NULL;
		struct tti_handoff_plan *plan;
		const struct tti_routes *routes;
		char path[512];

		snprintf(path, sizeof(path), TEST_DATA "/topologies/handoff/%s.xml", cases[i].name);
		machine_read(&m, path, TTI_MODEL_TUTTI);
		routes = m.routes;
		assert_int_equal(tti_plan_job_of(&routes, 1, 2, 0, &job), TUTTI_OK);
		s.handoff = (struct tti_handoff_job){ .job = job, .from = s.from, .to = s.to };
		range(s.from, &s.handoff.nfrom, 0, 8);
		range(s.to, &s.handoff.nto, 8, 8);
		plan = plan_of(&s.handoff);
		assert_int_equal(plan->nways, cases[i].npairs);
		assert_true(plan->gbps > cases[i].gbps * 0.999);
		assert_true(plan->gbps < cases[i].gbps * 1.001);
		for (uint32_t k = 0; k < plan->nways; k++) {
			assert_true(plan->ways[k].straight);
			assert_true(plan->ways[k].share * cases[i].npairs > 0.999);
			assert_true(plan->ways[k].share * cases[i].npairs < 1.001);
			assert_int_equal(plan->ways[k].from + 8, plan->ways[k].to);
		}
		tti_handoff_plan_free(plan);
		tti_plan_job_free(job);
		machine_release(&m);
	}
}

/* Five nodes in three rounds over a pair each, in place of a chain of five with two. */
static void short_ones_go_down_a_tree(void **state)
{
	static const uint32_t sender[] = { 0, 0, 1, 0, 1 };
	struct machine m;
	struct sides s = { .handoff = { .nfrom = 0 } };
	struct tti_plan_job *job = NULL;
	struct tti_handoff_plan *plan;
	const struct tti_routes *routes;

	(void)state;
	machine_read(&m, TEST_DATA "/topologies/handoff/handoff_1nic.xml", TTI_MODEL_TUTTI);
	routes = m.routes;
	assert_int_equal(tti_plan_job_of(&routes, 1, 6, 0, &job), TUTTI_OK);
	s.handoff = (struct tti_handoff_job){
		.job = job, .from = s.from, .to = s.to, .is_short = true
	};
	range(s.from, &s.handoff.nfrom, 0, 8);
	range(s.to, &s.handoff.nto, 8, 40);
	plan = plan_of(&s.handoff);
	assert_int_equal(plan->nways, 5);
	assert_int_equal(plan->nlegs, 5);
	assert_int_equal(plan->depth, 2);
	for (uint32_t i = 0; i < plan->nlegs; i++) {
		assert_int_equal(plan->legs[i].to_node, i + 1);
		assert_int_equal(plan->legs[i].from_node, sender[i]);
	}
	tti_handoff_plan_free(plan);
	tti_plan_job_free(job);
	machine_release(&m);
}

/* 64 nodes alike, without any time to look for better shares than the first. */
static void many_nodes_alike(void **state)
{
	struct machine m;
	struct sides s = { .handoff = { .nfrom = 0 } };
	struct tti_plan_job *job = NULL;
	struct tti_handoff_plan *plan;
	const struct tti_routes *routes;

	(void)state;
	machine_read(&m, TEST_DATA "/topologies/handoff/handoff_2nic_unequal.xml", TTI_MODEL_TUTTI);
	routes = m.routes;
	assert_int_equal(tti_plan_job_of(&routes, 1, 64, 0, &job), TUTTI_OK);
	s.handoff = (struct tti_handoff_job){
		.job = job, .from = s.from, .to = s.to, .budget_ms = 1e-6
	};
	range(s.from, &s.handoff.nfrom, 0, 8);
	range(s.to, &s.handoff.nto, 8, 504);
	plan = plan_of(&s.handoff);
	assert_true(plan->gbps > 4.375 * 0.99);
	assert_int_equal(plan->nlegs, 63);
	tti_handoff_plan_free(plan);
	tti_plan_job_free(job);
	machine_release(&m);
}

/* -- Random ones ------------------------------------------------------------------------- */

/* Some ranks of some, in any order. */
static uint32_t draw_side(uint64_t *state, uint32_t first, uint32_t n, uint32_t *list)
{
	uint32_t count = 0;

	while (count == 0)
		for (uint32_t i = 0; i < n; i++)
			if (next(state) % 3)
				list[count++] = first + i;
	for (uint32_t i = 1; i < count; i++) {
		const uint32_t at = (uint32_t)(next(state) % (i + 1)), swapped = list[at];

		list[at] = list[i];
		list[i] = swapped;
	}
	return count;
}

/* A plan, or a reason why there is none. */
static bool try_one(struct tti_handoff_job *handoff, uint64_t seed)
{
	struct tti_handoff_plan *plan = NULL;
	const tutti_status st = tti_handoff_plan_make(handoff, &plan);

	if (st == TUTTI_EPLAN)
		return false;
	if (st != TUTTI_OK || tti_handoff_figures(handoff, plan) != TUTTI_OK ||
	    tti_handoff_plan_check(handoff, plan) != TUTTI_OK)
		fail_msg("seed %lu: %s", (unsigned long)seed, tti_error_text());
	if (plan->nways) {
		const struct tti_handoff_time time = tti_handoff_plan_time(plan, 64e6);

		assert_true(time.us >= time.bound_us * (1 - 1e-6));
		assert_true(plan->naive_gbps <= plan->bound_gbps * (1 + 1e-6));
	}
	tti_handoff_plan_free(plan);
	return true;
}

static void random_machines(void **state)
{
	uint32_t nplans = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct machine m[2];
		const struct tti_routes *routes[2];
		uint64_t random = seed;
		struct sides s;
		struct tti_plan_job *job = NULL;
		const uint32_t count = 1 + seed % 2;

		for (int i = 0; i < 2; i++) {
			machine_build(&m[i], random_topo(2 * seed + (uint64_t)i), TTI_MODEL_TUTTI);
			routes[i] = m[i].routes;
		}
		if (tti_plan_job_of(routes, 2, count, seed % 5 ? 0 : 7, &job) == TUTTI_OK &&
		    job->nranks <= MOST) {
			const uint32_t half = job->nranks / 2;
			const bool overlap = seed % 4 == 0;

			s.handoff = (struct tti_handoff_job){ .job = job,
							      .from = s.from,
							      .to = s.to,
							      .from_sharded = seed % 3 == 1,
							      .to_sharded = seed % 7 == 2,
							      .is_short = seed % 5 == 3,
							      .budget_ms = seed % 2 ? 1e-3 : 0 };
			s.handoff.nfrom =
				draw_side(&random, 0, overlap ? job->nranks : half, s.from);
			s.handoff.nto = draw_side(&random, overlap ? 0 : half,
						  overlap ? job->nranks : job->nranks - half, s.to);
			nplans += try_one(&s.handoff, seed);
		}
		tti_plan_job_free(job);
		machine_release(&m[0]);
		machine_release(&m[1]);
	}
	print_message("%u plans\n", nplans);
	assert_true(nplans > ROUNDS / 4);
}

/* -- Bad ones ------------------------------------------------------------------------------ */

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_pairs_as_sit_beside),
		cmocka_unit_test(short_ones_go_down_a_tree),
		cmocka_unit_test(many_nodes_alike),
		cmocka_unit_test(random_machines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
