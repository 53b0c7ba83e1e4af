/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory programs of every collective on devices, whose blocks read and write buffers of peers, each
 * its own part; and what runs where the buffers of some rank are not reached. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/device_trial.h"
#include "support/sanitizer.h"

#define RANKS 9

static struct trial trial;

static void try_one(const struct tti_algorithm *algo, int n, bool refuses, uint64_t seed)
{
	const struct trial_config config = {
		.algo = algo,
		.n = n,
		.root = tti_collective_is_rooted(algo->coll) ? (int)(seed % (uint64_t)n) : 0,
		.shape = -1,
		.split = { .parts = 1 + (int)(seed / 3 % 3) },
		.refuses = refuses,
		.has_any_bits = true,
		.seed = seed,
	};
	const struct bed_config bed = device_plain_bed(n, 256);
	struct device_config device;
	bool right;

	device_draw(&device, n, seed);
	device.in_turns = seed % 4 != 0;
	trial_init(&trial, &config, &bed);
	right = trial_run(&trial) && device_trial_run(&trial, &device, NULL);
	trial_release(&trial);
	assert_true(right);
}

static void programs_have_the_engines_bits(void **state)
{
	const struct tti_algorithm *algo;
	uint64_t seed = 1;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (algo = tti_algorithm_at((tutti_collective)coll, i)); i++)
			for (int n = 1; algo->needs_memory && n <= RANKS; n += SANITIZED ? 2 : 1)
				for (int k = 0; k < (SANITIZED ? 1 : 4); k++)
					try_one(algo, n, false, seed++);
}

/* A barrier has no buffers that could be out of reach; of a send nobody but the sender asks; what a
 * handoff touches its caller knows. */
static void who_is_not_reached_makes_all_go_another_way(void **state)
{
	const struct tti_algorithm *algo;
	uint64_t seed = 5001;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0;
		     coll != TUTTI_BARRIER && coll != TUTTI_SEND_RECV && coll != TUTTI_HANDOFF &&
		     (algo = tti_algorithm_at((tutti_collective)coll, i));
		     i++)
			for (int n = 2; algo->needs_memory && n <= RANKS; n += SANITIZED ? 3 : 1)
				for (int k = 0; k < (SANITIZED ? 1 : 3); k++)
					try_one(algo, n, true, seed++);
}

/* What a block has of a piece fits what it has room for, however long the piece is. */
static void parts_fit_their_room(void **state)
{
	(void)state;
	for (size_t size = 1; size <= 16; size *= 2)
		for (uint32_t nblocks = 1; nblocks <= TTI_DEV_BLOCKS_MAX; nblocks++)
			for (size_t nbytes = 16; nbytes < 2000; nbytes += 16 * nblocks + 48)
				assert_in_range(device_slot_bytes(nbytes, size, nblocks), 16,
						tti_dev_part_bytes(nbytes, nblocks));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_have_the_engines_bits),
		cmocka_unit_test(who_is_not_reached_makes_all_go_another_way),
		cmocka_unit_test(parts_fit_their_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
