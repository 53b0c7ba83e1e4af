/* SPDX-License-Identifier: BSD-3-Clause */
/* Where lanes lie: both ends mean the same memory, nothing lies on anything else, and every part of
 * every message that a communicator allows fits a slot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/device/proxy.h"
#include "device/lanes.h"

static const struct tti_lane_shape shapes[] = {
	{ 1, 1, 1024, 0 },      { 2, 4, 4096, 64 },   { 3, 7, 1040, 16 },
	{ 32, 4, 65536, 2048 }, { 17, 2, 65552, 48 },
};
#define NSHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void assert_same(const struct tti_dev_lane *a, const struct tti_dev_lane *b)
{
	assert_memory_equal(a, b, sizeof(*a));
}

static void both_ends_mean_the_same_memory(void **state)
{
	(void)state;
	for (size_t i = 0; i < NSHAPES; i++) {
		const struct tti_lane_shape *shape = &shapes[i];
		const uint64_t a = 1 << 20, b = a + tti_lanes_bytes(shape);

		for (uint32_t block = 0; block < shape->nblocks; block++) {
			const struct tti_dev_lane out = tti_lane_out(shape, block, a, b);
			const struct tti_dev_lane in = tti_lane_in(shape, block, b, a);

			assert_same(&out, &in);
			/* What the receiver waits on lies at the receiver. */
			assert_true(in.full >= b && in.slots >= b && in.heads >= b);
			assert_true(out.freed >= a && out.freed < b);
		}
	}
}

/* Each byte that a lane uses is claimed once. */
static void claim(uint8_t *memory, uint64_t at, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++)
		assert_int_equal(memory[at + i]++, 0);
}

static void nothing_lies_on_anything_else(void **state)
{
	(void)state;
	for (size_t i = 0; i < NSHAPES; i++) {
		const struct tti_lane_shape *shape = &shapes[i];
		const size_t nbytes = tti_lanes_bytes(shape);
		uint8_t *memory = calloc(2, nbytes);

		assert_non_null(memory);
		for (uint32_t block = 0; block < shape->nblocks; block++)
			for (int turn = 0; turn < 2; turn++) {
				const struct tti_dev_lane lane =
					turn ? tti_lane_in(shape, block, 0, nbytes)
					     : tti_lane_out(shape, block, 0, nbytes);

				claim(memory, lane.full, 8);
				claim(memory, lane.freed, 8);
				claim(memory, lane.heads,
				      lane.nslots * sizeof(struct tti_dev_head));
				claim(memory, lane.slots, (size_t)lane.nslots * lane.slot_bytes);
				if (shape->word_bytes)
					claim(memory, lane.words,
					      (size_t)lane.nslots * 2 * lane.word_bytes);
				else
					assert_int_equal(lane.words, 0);
				assert_int_equal((lane.slots | lane.words | lane.heads) % 16, 0);
				assert_int_equal(lane.slot_bytes % 16, 0);
			}
		free(memory);
	}
}

/* `head`: bytes before the data in the same room. */
static void assert_fits(size_t nbytes, uint32_t nblocks, size_t room, size_t head)
{
	for (uint32_t block = 0; block < nblocks; block++)
		assert_true(tti_proxy_edge(nbytes, block + 1, nblocks) -
				    tti_proxy_edge(nbytes, block, nblocks) + head <=
			    room);
}

static void every_message_fits(void **state)
{
	(void)state;
	for (size_t i = 0; i < NSHAPES; i++) {
		const struct tti_lane_shape *shape = &shapes[i];
		const struct tti_dev_lane lane = tti_lane_in(shape, 0, 0, 0);
		const size_t most = (size_t)shape->nblocks * shape->slot_bytes;
		const size_t words = (size_t)shape->nblocks * shape->word_bytes;

		for (size_t less = 0; less < 300; less++) {
			assert_fits(most - less, shape->nblocks, lane.slot_bytes, 0);
			if (less <= words && words)
				assert_fits(words - less, shape->nblocks, lane.word_bytes,
					    sizeof(struct tti_dev_head));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_mean_the_same_memory),
		cmocka_unit_test(nothing_lies_on_anything_else),
		cmocka_unit_test(every_message_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
