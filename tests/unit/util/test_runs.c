/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of units against a model: an array that says of each unit which run has it, and whether it is
 * dirty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "util/runs.h"

#define LIMIT 3000u
#define HELD  24

struct held {
	uint32_t first, units; /* units 0: nothing */
};

static struct {
	struct tti_runs runs;
	struct held held[HELD];
	bool dirty[LIMIT]; /* of free units: written to since they were cleaned */
	unsigned seed;
} now;

static unsigned below(unsigned n)
{
	return (unsigned)rand_r(&now.seed) % n;
}

static bool is_held(uint32_t unit)
{
	for (int i = 0; i < HELD; i++)
		if (unit - now.held[i].first < now.held[i].units)
			return true;
	return false;
}

/* The longest stretch of free units in which an aligned run of `units` would fit exists. */
static bool would_fit(uint32_t units, uint32_t align)
{
	for (uint32_t at = 0; at + units <= LIMIT; at += align) {
		uint32_t free_units = 0;

		while (free_units < units && !is_held(at + free_units))
			free_units++;
		if (free_units == units)
			return true;
	}
	return false;
}

static bool any_dirty(uint32_t first, uint32_t units)
{
	for (uint32_t i = 0; i < units; i++)
		if (now.dirty[first + i])
			return true;
	return false;
}

static void take(struct held *held)
{
	const uint32_t units = 1 + below(below(4) ? 20 : 400), align = 1u << below(8);
	bool dirty = true;
	const uint32_t first = tti_runs_take(&now.runs, units, align, &dirty);

	if (first == TTI_RUNS_NONE) {
		/* With few runs a look sees all of them, and without an alignment all that fit. */
		if (align == 1)
			assert_false(would_fit(units, 1));
		return;
	}
	assert_true(first % align == 0 && first + units <= LIMIT);
	for (uint32_t i = 0; i < units; i++)
		assert_false(is_held(first + i));
	/* Clean is clean. */
	if (!dirty)
		assert_false(any_dirty(first, units));
	*held = (struct held){ first, units };
}

static void mark(uint32_t first, uint32_t units, bool dirty)
{
	for (uint32_t i = 0; i < units; i++)
		now.dirty[first + i] = dirty;
}

static void give(struct held *held)
{
	const bool dirty = below(2);

	mark(held->first, held->units, dirty);
	tti_runs_give(&now.runs, held->first, dirty);
	*held = (struct held){ 0 };
}

static void resize(struct held *held)
{
	const uint32_t first = held->first, old = held->units, units = 1 + below(2 * old);
	bool dirty = below(2);
	const bool loses_dirty = dirty, good = tti_runs_resize(&now.runs, first, units, &dirty);

	if (units <= old) {
		assert_true(good);
		mark(first + units, old - units, loses_dirty);
		held->units = units;
		return;
	}
	/* What is free behind it is taken, unless it is part below and part above the top. */
	if (!good) {
		bool all_free = first + units <= now.runs.top;

		for (uint32_t i = old; i < units && all_free; i++)
			all_free = !is_held(first + i);
		assert_false(all_free);
		return;
	}
	assert_true(first + units <= LIMIT);
	for (uint32_t i = old; i < units; i++)
		assert_false(is_held(first + i));
	if (!dirty)
		assert_false(any_dirty(first + old, units - old));
	held->units = units;
}

static void clean_all(void)
{
	uint32_t first, units;

	while ((first = tti_runs_clean(&now.runs, &units)) != TTI_RUNS_NONE) {
		for (uint32_t i = 0; i < units; i++)
			assert_false(is_held(first + i));
		mark(first, units, false);
	}
	for (uint32_t i = 0; i < LIMIT; i++)
		assert_true(is_held(i) || !now.dirty[i]);
}

/* What begins where is known, of every unit. */
static void check_begins(void)
{
	for (uint32_t unit = 0; unit < LIMIT + 10; unit++) {
		uint32_t units = 0;

		for (int i = 0; i < HELD; i++)
			if (now.held[i].units && now.held[i].first == unit)
				units = now.held[i].units;
		assert_int_equal(tti_runs_units(&now.runs, unit), units);
	}
}

static void random_use(void **state)
{
	const unsigned seed = (unsigned)time(NULL);

	(void)state;
	printf("seed %u\n", seed);
	for (unsigned round = 0; round < 20; round++) {
		memset(&now, 0, sizeof(now));
		now.seed = seed + round;
		tti_runs_init(&now.runs, LIMIT);
		for (int step = 0; step < 3000; step++) {
			struct held *held = &now.held[below(HELD)];

			if (!held->units)
				take(held);
			else if (below(3))
				give(held);
			else
				resize(held);
			if (step % 500 == 499)
				clean_all();
			if (step % 100 == 99)
				check_begins();
		}
		for (int i = 0; i < HELD; i++)
			if (now.held[i].units)
				give(&now.held[i]);
		clean_all();
		/* All are one again. */
		assert_int_equal(now.runs.top, 0);
		tti_runs_release(&now.runs);
	}
}

static void edges(void **state)
{
	struct tti_runs runs;
	bool dirty;

	(void)state;
	tti_runs_init(&runs, 10);
	assert_int_equal(tti_runs_take(&runs, 11, 1, &dirty), TTI_RUNS_NONE);
	assert_int_equal(tti_runs_take(&runs, UINT32_MAX, 1, &dirty), TTI_RUNS_NONE);
	assert_int_equal(tti_runs_take(&runs, 10, 1, &dirty), 0);
	assert_false(dirty);
	assert_int_equal(tti_runs_take(&runs, 1, 1, &dirty), TTI_RUNS_NONE);
	dirty = true;
	assert_false(tti_runs_resize(&runs, 0, 11, &dirty));
	dirty = true;
	assert_true(tti_runs_resize(&runs, 0, 4, &dirty));
	assert_int_equal(tti_runs_units(&runs, 0), 4);
	/* What it lost is dirty, so it is when it is taken again. */
	assert_int_equal(tti_runs_take(&runs, 6, 1, &dirty), 4);
	assert_true(dirty);
	assert_int_equal(tti_runs_units(&runs, 5), 0);
	assert_int_equal(tti_runs_units(&runs, UINT32_MAX), 0);
	tti_runs_release(&runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_use),
		cmocka_unit_test(edges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
