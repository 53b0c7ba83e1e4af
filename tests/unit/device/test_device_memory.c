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
	device.in_turns = seed % 16 != 0;
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

/* -- How often calls ask -------------------------------------------------------------------- */

#define PAIR     2
#define ELEMENTS 64

static void make_program(const char *name, int rank, struct tti_compiled *out)
{
	const struct tti_program_spec spec = { .split = { .parts = 1 }, .rank = rank, .n = PAIR };
	struct tti_program prog;

	assert_int_equal(
		tti_program_build(tti_algorithm_find(TUTTI_ALL_REDUCE, name), &spec, &prog),
		TUTTI_OK);
	assert_int_equal(tti_compile(&prog, out), TUTTI_OK);
	tti_program_release(&prog);
}

/* One all_reduce of bytes; `is_reached`: the second rank's buffers are. */
static enum tti_dev_result run_pair(struct device_bed *bed, const struct tti_compiled prog[2][PAIR],
				    uint64_t memory, bool is_reached)
{
	struct tti_dev_call call[PAIR];
	struct tti_dev_buffers told[PAIR];

	for (int rank = 0; rank < PAIR; rank++) {
		const uint64_t own = memory + (uint64_t)rank * ELEMENTS;
		struct device_work work = {
			.prog = &prog[0][rank],
			.layout = { .input = (const void *)(uintptr_t)own,
				    .output = (void *)(uintptr_t)own,
				    .type_size = 1,
				    .parts = PAIR,
				    .chunk_count = ELEMENTS / PAIR,
				    .row_count = ELEMENTS },
			.type = TUTTI_UINT8,
			.slice_bytes = ELEMENTS,
			.told = told,
		};
		struct device_work other = work;

		for (int peer = 0; peer < PAIR; peer++)
			told[peer] = (struct tti_dev_buffers){ own, own };
		if (rank == 1 && !is_reached)
			told[0].input = TTI_DEV_UNREACHED;
		other.prog = &prog[1][rank];
		other.told = NULL;
		work.fallback = &other;
		device_call_make(bed, rank, &work, &call[rank]);
		call[rank].kind = TTI_DEV_KINDS_MAX;
	}
	assert_int_equal(device_run(bed, call, 1), DEVICE_DONE);
	assert_int_equal(bed->result[0], bed->result[1]);
	return bed->result[0];
}

/* After many calls whose buffers are not reached only some ask, until one finds that they are. */
static void calls_that_ask_in_vain_ask_less(void **state)
{
	const struct device_config config = {
		.n = PAIR, .nblocks = 2, .nthreads = 2, .nslots = 2, .slot_bytes = ELEMENTS
	};
	struct tti_compiled prog[2][PAIR];
	struct device_bed bed;
	uint64_t memory;

	(void)state;
	for (int rank = 0; rank < PAIR; rank++) {
		make_program("memory", rank, &prog[0][rank]);
		make_program("direct", rank, &prog[1][rank]);
	}
	device_bed_init(&bed, &config);
	memory = device_alloc(&bed, PAIR * ELEMENTS);
	for (int i = 0; i < TTI_DEV_ASK_ALWAYS; i++)
		assert_int_equal(run_pair(&bed, prog, memory, false), TTI_DEV_DONE);
	assert_int_equal(run_pair(&bed, prog, memory, true), TTI_DEV_DIRECT);
	for (int i = 0; i <= TTI_DEV_ASK_ALWAYS; i++)
		assert_int_equal(run_pair(&bed, prog, memory, false), TTI_DEV_DONE);
	for (int i = 1; i < TTI_DEV_ASK_EVERY; i++)
		assert_int_equal(run_pair(&bed, prog, memory, true), TTI_DEV_DONE);
	for (int i = 0; i < 3; i++)
		assert_int_equal(run_pair(&bed, prog, memory, true), TTI_DEV_DIRECT);
	device_bed_release(&bed);
	for (int rank = 0; rank < PAIR; rank++)
		for (int which = 0; which < 2; which++)
			tti_compiled_release(&prog[which][rank]);
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
		cmocka_unit_test(calls_that_ask_in_vain_ask_less),
		cmocka_unit_test(parts_fit_their_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
