/* SPDX-License-Identifier: BSD-3-Clause */
/* Shapes of handoffs: made of plans for random hosts and sides they reach everybody, each pair
 * carries what the plan says; and the checker sees what is wrong. */
#include "insight/plan/job.h"
#include "unit/plan/machines.h"

#include <stdio.h>
#include <string.h>

#include "coll/algorithms/handoff_shape.h"
#include "plan/handoff/handoff.h"
#include "support/random_topo.h"
#include "support/sanitizer.h"
#include "util/error.h"
#include "util/mem.h"

#define MOST   256
#define ROUNDS (SANITIZED ? 60 : 400)

static uint32_t next(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % below;
}

/* -- Of plans ---------------------------------------------------------------------------- */

struct scene {
	uint32_t from[MOST], to[MOST];
	int from_ranks[MOST], to_ranks[MOST];
	struct tti_handoff_job job;
	struct tti_handoff_call call;
};

/* Some ranks in any order. */
static uint32_t draw_side(uint64_t *random, uint32_t n, uint32_t *list, int *ranks)
{
	const uint32_t count = 1 + next(random, n);
	uint32_t all[MOST];

	for (uint32_t i = 0; i < n; i++)
		all[i] = i;
	for (uint32_t i = 0; i < count; i++) {
		const uint32_t at = i + next(random, n - i), rank = all[at];

		all[at] = all[i];
		list[i] = rank;
		ranks[i] = (int)rank;
	}
	return count;
}

static void draw_sides(uint64_t *random, const struct tti_plan_job *job, struct scene *s)
{
	s->job = (struct tti_handoff_job){ .job = job, .from = s->from, .to = s->to };
	s->job.nfrom = draw_side(random, job->nranks, s->from, s->from_ranks);
	s->job.nto = draw_side(random, job->nranks, s->to, s->to_ranks);
	s->job.from_sharded = s->job.nfrom > 1 && next(random, 3) == 0;
	s->job.to_sharded = s->job.nto > 1 && next(random, 4) == 0;
	s->job.is_short = next(random, 4) == 0;
	s->call = (struct tti_handoff_call){
		.n = (int)job->nranks,
		.from = { s->from_ranks, (int)s->job.nfrom, s->job.from_sharded },
		.to = { s->to_ranks, (int)s->job.nto, s->job.to_sharded },
	};
}

/* Units that one rank sends another as stripes, in the part of a way. */
static uint32_t units_of(const struct tti_handoff_shape *shape, const struct tti_handoff_way *way)
{
	const struct tti_handoff_stripe *stripe = tti_handoff_stripes(shape);
	const int32_t part = way->part == TTI_HANDOFF_WHOLE ? -1 : (int32_t)way->part;
	uint32_t sum = 0;

	for (uint32_t i = 0; i < shape->nstripes; i++)
		if (stripe[i].from == (int32_t)way->from && stripe[i].to == (int32_t)way->to &&
		    stripe[i].source == part)
			sum += stripe[i].end - stripe[i].begin;
	return sum;
}

/* Of a whole vector pairs carry their shares: what two ways of a pair carry is one. */
static void check_shares(const struct scene *s, const struct tti_handoff_plan *plan,
			 const struct tti_handoff_shape *shape)
{
	const double whole = s->job.from_sharded ? 1.0 / s->job.nfrom : 1;

	for (uint32_t i = 0; i < plan->nways && !s->job.to_sharded; i++) {
		const struct tti_handoff_way *way = &plan->ways[i];
		double share = 0;
		uint32_t n = 0;

		for (uint32_t k = 0; k < plan->nways; k++)
			if (plan->ways[k].from == way->from && plan->ways[k].to == way->to &&
			    plan->ways[k].part == way->part) {
				share += plan->ways[k].share / whole;
				n++;
			}
		assert_true(units_of(shape, way) <= share * TTI_HANDOFF_UNITS + n);
		assert_true(units_of(shape, way) >= share * TTI_HANDOFF_UNITS - n);
	}
}

static bool prove(const struct scene *s, uint64_t seed)
{
	struct tti_handoff_plan *plan = NULL;
	struct tti_handoff_shape *shape = NULL;
	const tutti_status st = tti_handoff_plan_make(&s->job, &plan);
	size_t nbytes = 0;
	int depth = 0;

	if (st == TUTTI_EPLAN)
		return false;
	if (st != TUTTI_OK || tti_handoff_plan_check(&s->job, plan) != TUTTI_OK ||
	    tti_handoff_shape_of_plan(&s->job, plan, &shape, &nbytes) != TUTTI_OK ||
	    tti_handoff_shape_check(&s->call, shape, nbytes, &depth) != TUTTI_OK)
		fail_msg("seed %lu: %s", (unsigned long)seed, tti_error_text());
	assert_true(depth >= 1);
	check_shares(s, plan, shape);
	tti_free(shape);
	tti_handoff_plan_free(plan);
	return true;
}

static void random_plans(void **state)
{
	uint32_t nproven = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct machine m[2];
		const struct tti_routes *routes[2];
		struct tti_plan_job *job = NULL;
		uint64_t random = seed;
		struct scene s;

		for (int i = 0; i < 2; i++) {
			machine_build(&m[i], random_topo(2 * seed + (uint64_t)i), TTI_MODEL_TUTTI);
			routes[i] = m[i].routes;
		}
		if (tti_plan_job_of(routes, 1 + seed % 2, 1 + next(&random, 3),
				    seed % 3 ? 1 + next(&random, 6) : 0, &job) == TUTTI_OK &&
		    job->nranks <= MOST) {
			draw_sides(&random, job, &s);
			nproven += prove(&s, seed);
		}
		tti_plan_job_free(job);
		machine_release(&m[0]);
		machine_release(&m[1]);
	}
	print_message("%u proven\n", nproven);
	assert_true(nproven > ROUNDS / 4);
}

/* Two nodes, four ranks each beside the second one's unequal NICs: 5/14 and 1/7 of it. */
static void unequal_nics(void **state)
{
	struct machine m;
	const struct tti_routes *routes;
	struct tti_plan_job *job = NULL;
	struct tti_handoff_plan *plan = NULL;
	struct tti_handoff_shape *shape = NULL;
	const struct tti_handoff_stripe *stripe;
	struct scene s;
	size_t nbytes = 0;
	int depth = 0;

	(void)state;
	machine_read(&m, TEST_DATA "/topologies/handoff/handoff_2nic_unequal.xml", TTI_MODEL_TUTTI);
	routes = m.routes;
	assert_int_equal(tti_plan_job_of(&routes, 1, 2, 0, &job), TUTTI_OK);
	s.job = (struct tti_handoff_job){
		.job = job, .from = s.from, .to = s.to, .nfrom = 8, .nto = 8
	};
	for (int i = 0; i < 8; i++) {
		s.from_ranks[i] = (int)(s.from[i] = (uint32_t)i);
		s.to_ranks[i] = (int)(s.to[i] = (uint32_t)i + 8);
	}
	s.call = (struct tti_handoff_call){ 16, { s.from_ranks, 8, 0 }, { s.to_ranks, 8, 0 } };
	assert_int_equal(tti_handoff_plan_make(&s.job, &plan), TUTTI_OK);
	assert_int_equal(tti_handoff_shape_of_plan(&s.job, plan, &shape, &nbytes), TUTTI_OK);
	assert_int_equal(tti_handoff_shape_check(&s.call, shape, nbytes, &depth), TUTTI_OK);
	stripe = tti_handoff_stripes(shape);
	for (int32_t rank = 0; rank < 8; rank++) {
		uint32_t sum = 0;

		for (uint32_t i = 0; i < shape->nstripes; i++)
			if (stripe[i].from == rank && stripe[i].to == rank + 8)
				sum += stripe[i].end - stripe[i].begin;
		assert_in_range(sum,
				rank % 4 > 1 ? 0
				: rank < 4   ? TTI_HANDOFF_UNITS * 5 / 14 - 1
					     : TTI_HANDOFF_UNITS / 7 - 1,
				rank % 4 > 1 ? 0
				: rank < 4   ? TTI_HANDOFF_UNITS * 5 / 14 + 2
					     : TTI_HANDOFF_UNITS / 7 + 2);
	}
	tti_free(shape);
	tti_handoff_plan_free(plan);
	tti_plan_job_free(job);
	machine_release(&m);
}

/* -- Bad ones ------------------------------------------------------------------------------ */

/* 0 and 1 to 2, 3, 4; half of it over either pair. */
struct block {
	struct tti_handoff_shape head;
	struct tti_handoff_stripe stripe[2];
	struct tti_handoff_hop hop[4];
};

static const int two[] = { 0, 1 }, three[] = { 2, 3, 4 };
static const struct block good = {
	{ 2, 4 },
	{ { 0, 2, -1, -1, 0, 2048, 0, 2 }, { 1, 3, -1, -1, 2048, 4096, 2, 2 } },
	{ { 2, 3 }, { 3, 4 }, { 3, 4 }, { 4, 2 } },
};

static void assert_bad(const struct block *block, const char *text)
{
	const struct tti_handoff_call call = { 6, { two, 2, 0 }, { three, 3, 0 } };
	int depth;

	assert_int_equal(tti_handoff_shape_check(&call, &block->head, sizeof(*block), &depth),
			 TUTTI_EPLAN);
	if (!strstr(tti_error_text(), text))
		fail_msg("%s: no \"%s\"", tti_error_text(), text);
}

#define BAD(text, ...)                   \
	do {                             \
		struct block bad = good; \
		__VA_ARGS__;             \
		assert_bad(&bad, text);  \
	} while (0)

static void breaches(void **state)
{
	const struct tti_handoff_call call = { 6, { two, 2, 0 }, { three, 3, 0 } };
	const struct tti_handoff_call parts = { 6, { two, 2, 1 }, { three, 3, 1 } };
	int depth = 0;

	(void)state;
	assert_int_equal(tti_handoff_shape_check(&call, &good.head, sizeof(good), &depth),
			 TUTTI_OK);
	assert_int_equal(depth, 3);
	assert_int_equal(tti_handoff_shape_check(&call, &good.head, sizeof(good) - 4, &depth),
			 TUTTI_EPLAN);
	assert_int_equal(tti_handoff_shape_check(&parts, &good.head, sizeof(good), &depth),
			 TUTTI_EPLAN);
	BAD("are not what", bad.head.nstripes = 3);
	BAD("are not what", bad.head.nhops = UINT32_MAX);
	BAD("no such rank", bad.stripe[1].from = 6);
	BAD("no such rank", bad.stripe[0].to = -1);
	BAD("no such rank", bad.hop[3].to = 6);
	BAD("there is none", bad.stripe[0].source = 0);
	BAD("there is none", bad.stripe[0].dest = 2);
	BAD("is from", bad.stripe[0].end = 0);
	BAD("is from", bad.stripe[1].end = 4097);
	BAD("has hops", bad.stripe[1].n = 3);
	BAD("has hops", bad.stripe[1].first = 5);
	BAD("what it has not", bad.stripe[0].from = 5);
	BAD("what it has not", bad.hop[0].from = 4);
	BAD("what it has already", bad.hop[1].to = 2);
	BAD("what it has already", bad.stripe[1].begin = 2047);
	BAD("shall not have", bad.hop[1].to = 5);
	BAD("rank 4 never gets what is behind 0", bad.stripe[0].n = 1);
	BAD("rank 2 never gets what is behind 2047", bad.stripe[0].end = 2047);
	BAD("rank 2 never gets what is behind 4000", bad.stripe[1].end = 4000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_plans),
		cmocka_unit_test(unequal_nics),
		cmocka_unit_test(breaches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
