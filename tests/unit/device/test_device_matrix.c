/* SPDX-License-Identifier: BSD-3-Clause */
/* Device programs leave the bits that the engine leaves: every algorithm x ranks 1 to 33 x blocks 1 to
 * 4 x threads 1 and 4 x slots 1, 2 and 8 x slots or words. Each case is three calls, whose types and
 * operators go round: an algorithm that reduces meets all of them on every two numbers of ranks. The
 * rest is drawn: shapes, cuts, roots, lengths, who is in place, launches. The unit test runs a sample,
 * `make device-matrix` all. By hand:
 *
 *     TEST_CASES=5000 TEST_SEED=7 build/release/tests/unit_device_matrix    # so many, other ones
 *     TEST_CASE=12345 build/release/tests/unit_device_matrix                # one, on threads
 *     TEST_CASE=12345 TEST_TURNS=1 build/release/tests/unit_device_matrix   # one, in turns */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/device_trial.h"
#include "support/reference.h"
#include "support/sanitizer.h"
#include "support/shapes.h"

#define RANKS   33
#define CONFIGS (4 * 2 * 3 * 2)
/* Cases of the sample that run on threads. */
#define SAMPLE  (SANITIZED ? 12 : 40)

static struct trial trial;
static uint64_t run_seed = 1;

static uint64_t number_of(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, 10) : otherwise;
}

static const struct tti_algorithm *algorithm_at(size_t index)
{
	const struct tti_algorithm *algo = NULL;

	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			if (index-- == 0)
				return algo;
	return NULL;
}

static size_t nalgorithms(void)
{
	size_t n = 0;

	while (algorithm_at(n))
		n++;
	return n;
}

/* The configuration of a number of the matrix; the rest is drawn. */
static void configure(struct device_config *out, int n, size_t index, uint64_t seed)
{
	static const uint32_t threads[] = { 1, 4 }, slots[] = { 1, 2, 8 };

	device_draw(out, n, seed);
	out->nblocks = 1 + (uint32_t)(index % 4);
	out->nthreads = threads[index / 4 % 2];
	out->nslots = slots[index / 8 % 3];
	out->words = index / 24 % 2;
}

static size_t case_of(size_t algorithm, int n, size_t index)
{
	return (algorithm * RANKS + (size_t)n - 1) * CONFIGS + index;
}

static void try_case(size_t number, bool in_turns)
{
	const struct tti_algorithm *algo = algorithm_at(number / CONFIGS / RANKS);
	const int n = 1 + (int)(number / CONFIGS % RANKS);
	uint64_t random = run_seed * 1000003 + number;
	const uint64_t seed = next_random(&random);
	const struct trial_config config = {
		.algo = algo,
		.n = n,
		.root = tti_collective_is_rooted(algo->coll) ? (int)(seed % (uint64_t)n) : 0,
		.shape = (int)(seed / 7 % (SHAPE_KINDS + 1)) - 1,
		.split = { .parts = 1 + (int)(seed / 3 % 3), .stripes = (int)(seed / 9 % 3) },
		.pair = 1 + (int)(number % CONFIGS * TRIAL_CALLS + number / CONFIGS * 7),
		.refuses = algo->needs_memory && seed / 5 % 3 == 0 && algo->coll != TUTTI_BARRIER &&
			   algo->coll != TUTTI_SEND_RECV && algo->coll != TUTTI_HANDOFF,
		.most_blocks = 4,
		.has_any_bits = true,
		.seed = seed,
	};
	const struct bed_config bed = device_plain_bed(n, 256);
	struct device_config device;
	bool right;

	configure(&device, n, number % CONFIGS, seed);
	device.in_turns = in_turns;
	trial_init(&trial, &config, &bed);
	right = trial_run(&trial) && device_trial_run(&trial, &device, NULL);
	trial_release(&trial);
	if (!right)
		fail_msg("TEST_SEED=%llu TEST_CASE=%zu", (unsigned long long)run_seed, number);
}

/* Of each algorithm and number of ranks one, on one thread, which needs no core for each. */
static void every_algorithm_has_the_engines_bits(void **state)
{
	const size_t most = nalgorithms();
	uint64_t random = run_seed;

	(void)state;
	for (size_t algorithm = 0; algorithm < most; algorithm++)
		for (int n = 1; n <= RANKS; n += SANITIZED && n > 3 ? 10 : 1)
			try_case(case_of(algorithm, n, next_random(&random) % CONFIGS), true);
}

static void threads_have_the_engines_bits(void **state)
{
	const size_t most = nalgorithms();
	const uint64_t cases = number_of("TEST_CASES", SAMPLE);
	uint64_t random = run_seed + 1;

	(void)state;
	for (uint64_t i = 0; i < cases; i++) {
		/* Few ranks more often than many, as they take longer. */
		const int some = 1 + (int)(next_random(&random) % RANKS);
		const int n = 1 + (int)(next_random(&random) % (uint64_t)some);

		try_case(case_of(i % most, n, next_random(&random) % CONFIGS), false);
	}
}

static void whole_matrix(void **state)
{
	const size_t all = nalgorithms() * RANKS * CONFIGS;

	(void)state;
	for (size_t number = 0; number < all; number++) {
		/* One of four on threads, of every configuration. */
		try_case(number, (number + number / CONFIGS) % 4 != 0);
		if ((number + 1) % (RANKS * CONFIGS) == 0)
			printf("%zu cases of %zu\n", number + 1, all);
	}
}

static void one_case(void **state)
{
	(void)state;
	try_case(number_of("TEST_CASE", 0), getenv("TEST_TURNS") != NULL);
}

int main(void)
{
	const struct CMUnitTest sample[] = {
		cmocka_unit_test(every_algorithm_has_the_engines_bits),
		cmocka_unit_test(threads_have_the_engines_bits),
	};
	const struct CMUnitTest all[] = { cmocka_unit_test(whole_matrix) };
	const struct CMUnitTest one[] = { cmocka_unit_test(one_case) };
	const char *cases = getenv("TEST_CASES");

	run_seed = number_of("TEST_SEED", 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (getenv("TEST_CASE"))
		return cmocka_run_group_tests(one, NULL, NULL);
	if (cases && strcmp(cases, "all") == 0)
		return cmocka_run_group_tests(all, NULL, NULL);
	return cmocka_run_group_tests(sample, NULL, NULL);
}
