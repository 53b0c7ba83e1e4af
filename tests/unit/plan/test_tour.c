/* SPDX-License-Identifier: BSD-3-Clause */
/* The cheapest ring and the cheapest tree, against all there are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "plan/search/arbor.h"
#include "plan/search/tour.h"

#define MOST 8

struct prices {
	uint32_t n;
	double hop[MOST * MOST], begin[MOST], end[MOST];
};

/* Some ways do not exist, many cost the same. */
static void draw(struct prices *prices, unsigned *seed, uint32_t most)
{
	const int steps = rand_r(seed) % 2 ? 4 : 100;

	prices->n = 1 + (uint32_t)rand_r(seed) % most;
	for (uint32_t i = 0; i < prices->n * prices->n; i++)
		prices->hop[i] = rand_r(seed) % 6 ? rand_r(seed) % steps / 100.0 : INFINITY;
	for (uint32_t i = 0; i < prices->n; i++) {
		prices->begin[i] = rand_r(seed) % 4 ? rand_r(seed) % steps / 100.0 : INFINITY;
		prices->end[i] = rand_r(seed) % steps / 100.0;
	}
}

static double best_tour(const struct prices *p, uint32_t used, uint32_t last, uint32_t count)
{
	double best = INFINITY;

	if (count == p->n)
		return p->end[last];
	for (uint32_t i = 0; i < p->n; i++) {
		const double hop = count ? p->hop[last * p->n + i] : p->begin[i];

		if (!(used >> i & 1) && hop < INFINITY)
			best = fmin(best, hop + best_tour(p, used | 1u << i, i, count + 1));
	}
	return best;
}

static bool is_order(const uint32_t *order, uint32_t n)
{
	uint32_t seen = 0;

	for (uint32_t i = 0; i < n; i++)
		seen |= order[i] < n ? 1u << order[i] : 0;
	return seen == (1u << n) - 1;
}

static void assert_same(double a, double b)
{
	assert_true((isinf(a) && isinf(b)) || fabs(a - b) < 1e-5);
}

static void tours(void **state)
{
	unsigned seed = 2;

	(void)state;
	for (int round = 0; round < 600; round++) {
		struct prices p;
		double best, cost, least, bound;
		uint32_t order[MOST];

		draw(&p, &seed, 7);
		best = best_tour(&p, 0, 0, 0);

		const struct tti_tour_input in = { p.n, p.hop, p.begin, p.end };

		assert_int_equal(tti_tour_exact(&in, order, &cost, &least), TUTTI_OK);
		assert_true(is_order(order, p.n));
		assert_same(cost, best);
		assert_true(least <= best + 1e-9);
		assert_true(isinf(best) || least > best - 1e-5);
		assert_int_equal(tti_tour_bound(&in, &bound), TUTTI_OK);
		assert_true(bound <= best + 1e-9);
		assert_int_equal(tti_tour_good(&in, order, &cost), TUTTI_OK);
		assert_true(is_order(order, p.n));
		assert_true(cost >= best - 1e-9);
		assert_same(cost, tti_tour_cost(&in, order));
	}
}

/* As long as the largest that is solved exactly: the bound below, the good one above. */
static void a_long_tour(void **state)
{
	const uint32_t n = TTI_TOUR_EXACT;
	double hop[TTI_TOUR_EXACT * TTI_TOUR_EXACT], ends[TTI_TOUR_EXACT];
	uint32_t order[TTI_TOUR_EXACT];
	double cost, least, good, bound;
	unsigned seed = 5;

	(void)state;
	for (uint32_t i = 0; i < n * n; i++)
		hop[i] = rand_r(&seed) % 1000 / 5000.0;
	for (uint32_t i = 0; i < n; i++)
		ends[i] = rand_r(&seed) % 1000 / 5000.0;

	const struct tti_tour_input in = { n, hop, ends, ends };

	assert_int_equal(tti_tour_exact(&in, order, &cost, &least), TUTTI_OK);
	assert_int_equal(tti_tour_bound(&in, &bound), TUTTI_OK);
	assert_int_equal(tti_tour_good(&in, order, &good), TUTTI_OK);
	assert_true(bound <= cost + 1e-9 && least <= cost + 1e-9 && cost <= good + 1e-5);
	assert_true(cost - least < 1e-5);
}

/* -- Trees ------------------------------------------------------------------------ */

static bool is_tree(const uint32_t *parent, uint32_t n)
{
	uint32_t roots = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = i, steps = 0;

		roots += parent[i] == TTI_ARBOR_NO_PARENT;
		while (parent[at] != TTI_ARBOR_NO_PARENT && steps++ <= n)
			at = parent[at];
		if (steps > n)
			return false;
	}
	return roots == 1;
}

static double best_tree(const struct prices *p, uint32_t *parent, uint32_t at, double cost)
{
	double best = INFINITY;

	if (at == p->n)
		return is_tree(parent, p->n) ? cost : INFINITY;
	for (uint32_t from = 0; from < p->n; from++) {
		parent[at] = from == at ? TTI_ARBOR_NO_PARENT : from;
		best = fmin(best, best_tree(p, parent, at + 1,
					    cost + (from == at ? p->begin[at]
							       : p->hop[from * p->n + at])));
	}
	return best;
}

static void trees(void **state)
{
	unsigned seed = 3;

	(void)state;
	for (int round = 0; round < 1000; round++) {
		struct prices p;
		uint32_t parent[MOST], scratch[MOST];
		double best, cost;

		draw(&p, &seed, 5);
		best = best_tree(&p, scratch, 0, 0);

		const struct tti_arbor_input in = { p.n, p.hop, p.begin };

		assert_int_equal(tti_arbor_best(&in, parent, &cost), TUTTI_OK);
		assert_same(cost, best);
		assert_true(isinf(best) || is_tree(parent, p.n));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tours),
		cmocka_unit_test(a_long_tour),
		cmocka_unit_test(trees),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
