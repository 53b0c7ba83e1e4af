/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective on devices: ranks that share a GPU, that have one each, and that have none, in one
 * communicator; memory of the GPU that the host cannot touch. Every byte is held against the serial
 * result.
 *   TEST_CASE        this case alone of each world
 *   TEST_WORLD       this world alone
 *   TEST_REGISTERED  all ranks register their memory */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/device/lend.h"
#include "gpu.h"
#include "ranks.h"
#include "support/calls.h"
#include "support/sanitizer.h"
#include "support/world.h"

#define RANKS 5
#define LARGE 40000

static const struct place {
	int n, devices[RANKS];
} places[] = {
	{ 1, { 0 } },          { 2, { 0, 1 } },           { 2, { 0, 0 } },
	{ 2, { -1, 0 } },      { 3, { 0, 1, 2 } },        { 3, { 0, -1, 1 } },
	{ 4, { 3, 2, 1, 0 } }, { 5, { 0, 1, -1, 1, 0 } }, { 4, { -1, 0, -1, -1 } },
};

#define PLACES (sizeof(places) / sizeof(places[0]))

static struct call draw(int coll, int number, int n)
{
	static const size_t counts[] = { 1, 0, 7, 64, 1000, LARGE };
	const uint64_t random = numbers_mix((uint64_t)coll << 32 | (unsigned)number);
	const struct operation *op = operation_of((tutti_collective)coll);
	const tutti_type type = (tutti_type)((number + coll) % TUTTI_TYPE_COUNT);
	const size_t many = op->sends_all || op->gets_all ? (size_t)n : 1;
	const size_t count = counts[random % 6];
	const int kind = (int)(random >> 8) % NUMBERS_OPS;

	return (struct call){
		.coll = (tutti_collective)coll,
		.type = type,
		.count = count > 64 ? (count + random % 7) / many : count,
		.in_place = random >> 16 & 1,
		.op = numbers_op_for(type, kind),
		.root = (int)(random >> 20 & 0xff) % n,
		.spread = (enum call_spread)(op->uneven ? random >> 30 & 0xff : 0) % CALL_SPREADS,
		.manner = (enum call_manner)(random >> 40 & 3),
		.seed = random,
	};
}

/* Cases of each collective. Under sanitizers there are fewer where only the way of the data differs
 * (tests/cuda/CMakeLists.txt). */
static int ncases(void)
{
	if (!SANITIZED)
		return 36;
	return getenv("TEST_REGISTERED") || getenv("TUTTI_CUDAHOST_NO_PEER") ? 4 : 12;
}

static bool is_chosen(const char *variable, int number)
{
	const char *only = getenv(variable);

	return !only || atoi(only) == number;
}

static bool is_all_mapped(const struct place *place)
{
	for (int rank = 0; rank < place->n; rank++)
		if (place->devices[rank] < 0)
			return false;
	return place->n > 1;
}

static void make_all(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct place *place = arg;
	struct caller caller = { .comm = comm, .rank = rank, .n = n };
	struct gpu_buffer buffer;
	tutti_reg_t reg = NULL;
	int number = 0;

	gpu_alloc(&buffer, place->devices[rank], (size_t)16 * (LARGE + 200) * 4 * RANKS);
	if (getenv("TEST_REGISTERED"))
		CHECK(tutti_register(comm, buffer.memory, buffer.nbytes, &reg) == TUTTI_OK);
	caller.memory = buffer.view;
	caller.shift = buffer.memory - buffer.view;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; i < ncases(); i++, number++) {
			const struct call call = draw(coll, i, n);
			enum call_result result;
			char text[200];

			if (!is_chosen("TEST_CASE", number))
				continue;
			CHECK(call_bytes(&call, n) <= buffer.nbytes);
			result = caller_run(&caller, &call);
			if (result == CALL_RIGHT)
				continue;
			call_print(&call, text, sizeof(text));
			fprintf(stderr, "rank %d, case %d: %s\n", rank, number, text);
			if (result == CALL_LOST)
				goto out;
		}
	if (getenv("TEST_REGISTERED") && !getenv("TEST_CASE") && is_all_mapped(place))
		CHECK(tti_lending_count(ranks_inside(comm)) == 1);
out:
	CHECK(tutti_deregister(comm, reg) == TUTTI_OK);
	CHECK(tti_lending_count(ranks_inside(comm)) == 0);
	caller_release(&caller);
	gpu_free(&buffer);
}

static void every_collective_is_right_on_devices(void **state)
{
	(void)state;
	for (size_t i = 0; i < PLACES; i++) {
		const struct world world = { .n = places[i].n, .devices = places[i].devices };

		if (!is_chosen("TEST_WORLD", (int)i))
			continue;
		if (world_run(&world, make_all, (void *)(uintptr_t)&places[i]) != 0)
			fail_msg("in world %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_collective_is_right_on_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
