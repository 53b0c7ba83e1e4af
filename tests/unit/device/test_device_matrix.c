/* SPDX-License-Identifier: BSD-3-Clause */
/* Device programs leave the bits that the engine leaves. The matrix has every algorithm x ranks 1 to 33 x
 * blocks 1 to 4 x threads 1 and 4 x slots 1, 2 and 8 x every type with every operator that it has (or
 * every type, if the algorithm only moves data). The rest is drawn: shapes, cuts, roots, lengths, who is
 * in place, slots or words, launches.
 *
 * A case is three calls, of ranks that take turns on one thread. `make device-matrix` runs all, and each
 * algorithm in each configuration once more on threads, with up to 8 ranks; the unit test runs a sample
 * of both. By hand:
 *
 *     TEST_CASES=5000 TEST_SEED=7 build/release/tests/unit_device_matrix    # so many on threads
 *     TEST_CASES=all TEST_ALGORITHM=3 build/release/tests/unit_device_matrix    # all of one
 *     TEST_CASES=all TEST_EVERY=7 build/release/tests/unit_device_matrix    # every seventh
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
#define CONFIGS (4 * 2 * 3)
/* Cases of an algorithm, a number of ranks and a configuration, at most. */
#define LAPS    51
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
	out->nslots = slots[index / 8];
}

/* Pairs of a type and an operator, or types, that an algorithm is to meet. */
static int npairs(const struct tti_algorithm *algo)
{
	tutti_type type;
	int op;

	if (algo->coll == TUTTI_BARRIER)
		return 1;
	return tti_collective_reduces(algo->coll) ? trial_pair(0, &type, &op) : TUTTI_TYPE_COUNT;
}

/* How many cases of three calls there are for it. One rank alone combines nothing. */
static int nlaps(const struct tti_algorithm *algo, int n)
{
	return n == 1 ? 1 : (npairs(algo) + TRIAL_CALLS - 1) / TRIAL_CALLS;
}

/* The first pair of a case. */
static int pair_of(int lap)
{
	return 1 + TRIAL_CALLS * lap;
}

static size_t case_of(size_t algorithm, int n, int lap, size_t config)
{
	return ((algorithm * RANKS + (size_t)n - 1) * LAPS + (size_t)lap) * CONFIGS + config;
}

/* What a case tries, whatever its configuration, so that the engine runs once for all of them. Many ranks
 * have short messages in most cases, as they have many of them. */
static struct trial_config config_of(size_t number, uint64_t seed)
{
	const struct tti_algorithm *algo = algorithm_at(number / CONFIGS / LAPS / RANKS);
	const int n = 1 + (int)(number / CONFIGS / LAPS % RANKS);
	const int lap = (int)(number / CONFIGS % LAPS);
	const bool is_long = n <= 8 || (lap == 0 && (n <= 16 || seed / 11 % 8 == 0));

	return (struct trial_config){
		.algo = algo,
		.n = n,
		.root = tti_collective_is_rooted(algo->coll) ? (int)(seed % (uint64_t)n) : 0,
		.shape = (int)(seed / 7 % (SHAPE_KINDS + 1)) - 1,
		.split = { .parts = is_long ? 1 + (int)(seed / 3 % 3) : 1,
			   .stripes = (int)(seed / 9 % 3) },
		.pair = pair_of(lap),
		.refuses = algo->needs_memory && seed / 5 % 3 == 0 && algo->coll != TUTTI_BARRIER &&
			   algo->coll != TUTTI_SEND_RECV && algo->coll != TUTTI_HANDOFF,
		.most_blocks = is_long    ? 4
			       : lap == 0 ? 2
					  : 1,
		.has_any_bits = true,
		.seed = seed,
	};
}

static uint64_t seed_of(size_t number)
{
	uint64_t random = run_seed * 1000003 + number;

	return next_random(&random);
}

static void must_be(bool right, size_t number)
{
	if (!right)
		fail_msg("TEST_SEED=%llu TEST_CASE=%zu, pair %d", (unsigned long long)run_seed,
			 number, trial.config.pair);
}

/* What the engine makes of a case, in `trial`; `pair` -1: as the case has it. */
static void run_engine(size_t number, int pair)
{
	struct trial_config config = config_of(number, seed_of(number / CONFIGS));
	const struct bed_config bed = device_plain_bed(config.n, 256);

	config.pair = pair < 0 ? config.pair : pair;
	trial_init(&trial, &config, &bed);
	must_be(trial_run(&trial), number);
}

/* What the device makes of the same. */
static void run_device(size_t number, bool in_turns)
{
	struct device_config device;

	configure(&device, trial.config.n, number % CONFIGS, seed_of(number));
	device.in_turns = in_turns;
	must_be(device_trial_run(&trial, &device, NULL), number);
}

static void try_with(size_t number, bool in_turns, int pair)
{
	run_engine(number, pair);
	run_device(number, in_turns);
	trial_release(&trial);
}

static void try_case(size_t number, bool in_turns)
{
	try_with(number, in_turns, -1);
}

/* A case of those that there are for an algorithm and a number of ranks. */
static void try_any(size_t algorithm, int n, bool in_turns, uint64_t *random)
{
	const int laps = nlaps(algorithm_at(algorithm), n);
	const int lap = (int)(next_random(random) % (uint64_t)laps);

	try_case(case_of(algorithm, n, lap, next_random(random) % CONFIGS), in_turns);
}

/* -- What is crossed ------------------------------------------------------------------------- */

/* Whether an algorithm meets all pairs on so many ranks. */
static bool meets_all(const struct tti_algorithm *algo, int n)
{
	const int all = npairs(algo);
	bool met[256] = { false };

	for (int lap = 0; lap < nlaps(algo, n); lap++)
		for (int at = 0; at < TRIAL_CALLS; at++)
			met[(pair_of(lap) + at) % all] = true;
	for (int pair = 0; pair < all; pair++)
		if (!met[pair])
			return false;
	return true;
}

static void every_algorithm_meets_all(void **state)
{
	(void)state;
	for (size_t algorithm = 0; algorithm < nalgorithms(); algorithm++)
		for (int n = 2; n <= RANKS; n++) {
			assert_in_range(nlaps(algorithm_at(algorithm), n), 1, LAPS);
			assert_true(meets_all(algorithm_at(algorithm), n));
		}
}

/* -- Trying it ------------------------------------------------------------------------------- */

/* Of each algorithm and number of ranks one, on one thread, which needs no core for each; under
 * sanitizers of few ranks and of one number above. */
static void every_algorithm_has_the_engines_bits(void **state)
{
	const size_t most = nalgorithms();
	uint64_t random = run_seed;

	(void)state;
	for (size_t algorithm = 0; algorithm < most; algorithm++) {
		const int many = 4 + (int)(next_random(&random) % (RANKS - 3));

		for (int n = 1; n <= RANKS; n++)
			if (!SANITIZED || n < 4 || n == many)
				try_any(algorithm, n, true, &random);
	}
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

		try_any(i % most, n, false, &random);
	}
}

/* Blocks divide a message at multiples of what a thread moves at once, also where elements are bytes. */
static void blocks_divide_bytes(void **state)
{
	tutti_type type = TUTTI_FLOAT64;
	int op, pair = 0;

	(void)state;
	while (tutti_type_size(type) > 1)
		(void)trial_pair(pair++, &type, &op);
	for (size_t i = 0; i < 120; i++) {
		const size_t config = i * 5 % CONFIGS;

		if (config % 4 > 0)
			try_with(case_of(i % 4, 2 + (int)(i % 5), 0, config), true, pair - 1);
	}
}

/* All configurations of a case, or every `every`-th, other ones of each case; says how many. */
static size_t try_configs(size_t first, size_t every)
{
	size_t tried = 0;

	run_engine(first, -1);
	for (size_t config = first / CONFIGS % every; config < CONFIGS; config += every, tried++)
		run_device(first + config, true);
	trial_release(&trial);
	return tried;
}

/* All of one algorithm, or every TEST_EVERY-th; says how many. */
static size_t try_all(size_t algorithm)
{
	const struct tti_algorithm *algo = algorithm_at(algorithm);
	const size_t every = number_of("TEST_EVERY", 1);
	size_t tried = 0;

	for (int n = 1; n <= RANKS; n++)
		for (int lap = 0; lap < nlaps(algo, n); lap++)
			tried += try_configs(case_of(algorithm, n, lap, 0), every);
	for (size_t config = 0; config < CONFIGS; config++, tried++)
		try_case(case_of(algorithm, 2 + (int)(config * 5 + algorithm) % 7, 0, config),
			 false);
	return tried;
}

static void whole_matrix(void **state)
{
	const size_t all = nalgorithms(), only = number_of("TEST_ALGORITHM", all);

	(void)state;
	for (size_t i = 0; i < all; i++)
		if (only == i || only == all)
			printf("algorithm %zu of %zu, %s %s: %zu cases\n", i, all,
			       tutti_collective_name(algorithm_at(i)->coll), algorithm_at(i)->name,
			       try_all(i));
}

static void one_case(void **state)
{
	(void)state;
	try_case(number_of("TEST_CASE", 0), getenv("TEST_TURNS") != NULL);
}

int main(void)
{
	const struct CMUnitTest sample[] = {
		cmocka_unit_test(every_algorithm_meets_all),
		cmocka_unit_test(every_algorithm_has_the_engines_bits),
		cmocka_unit_test(threads_have_the_engines_bits),
		cmocka_unit_test(blocks_divide_bytes),
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
