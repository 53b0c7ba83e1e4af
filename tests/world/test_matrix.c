/* SPDX-License-Identifier: BSD-3-Clause */
/* Every collective, in every way it may be called: transports and registered memory, 1 to 9
 * ranks, each algorithm over hosts of any sizes, types, operators, counts, in place, roots,
 * uneven counts, streams, groups, plans; in any order on one communicator, so that what one call
 * leaves behind does not disturb the next.
 *
 * A world is a communicator, a case is one call in it. All cases are numbered; what is not part
 * of the product (the count within its range, say) is drawn by seed and number.
 *   TEST_CASES  how many, spread over all worlds; "all"
 *   TEST_SEED   draws and samples others (1)
 *   TEST_WORLD  this one alone
 *   TEST_CASE   this one alone of the world */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/comm.h"
#include "core/handle.h"
#include "support/calls.h"
#include "support/sanitizer.h"
#include "support/shapes.h"
#include "support/world.h"
#include "tutti/insight.h"

#define SAMPLE  (SANITIZED ? 1500 : 6000)
#define RANKS   9
#define PINS    9 /* what is chosen, then the algorithms of each collective in turn */
#define KINDS   (2 * PINS + 1)
#define WORLDS  (KINDS * RANKS)
#define COUNTS  7
#define LARGEST 30000
/* So many cases are worth all worlds and not one of each kind. */
#define MANY    50000

/* -- Worlds -------------------------------------------------------------------------- */

struct corner {
	int number;
	int n;
	bool tcp, registered;
	int pin;
	uint64_t seed;
	/* Numbers of cases, in the order in which they are called. */
	uint32_t *cases;
	size_t ncases;
	_Atomic long came;
};

static struct corner corner_at(int number, uint64_t seed)
{
	const int kind = number / RANKS;

	return (struct corner){ .number = number,
				.n = number % RANKS + 1,
				.tcp = kind >= PINS && kind < 2 * PINS,
				.registered = kind == 2 * PINS,
				.pin = kind < 2 * PINS ? kind % PINS : 0,
				.seed = numbers_mix(seed * WORLDS + (uint64_t)number) };
}

/* Whose algorithms it is run by; those of none are run in one way. */
static tutti_collective pinned_as(tutti_collective coll)
{
	if (coll == TUTTI_ALL_GATHER_V)
		return TUTTI_ALL_GATHER;
	return coll == TUTTI_REDUCE_SCATTER_V ? TUTTI_REDUCE_SCATTER : coll;
}

static const char *algorithm_of(const struct corner *corner, tutti_collective coll)
{
	return corner->pin == 0 ? NULL : tutti_algorithm_name(pinned_as(coll), corner->pin - 1);
}

static bool takes_part(const struct corner *corner, tutti_collective coll)
{
	return corner->pin == 0 || algorithm_of(corner, coll);
}

/* Where an order is asked for that the algorithm does not keep, another one has to. */
static const char *keeps_order(tutti_collective coll)
{
	if (coll == TUTTI_REDUCE)
		return ",flat";
	return coll == TUTTI_ALL_REDUCE || coll == TUTTI_REDUCE_SCATTER ? ",direct" : "";
}

/* Where the first cannot be taken: for its order, or as buffers are not registered. */
static const char *second(tutti_collective coll, const char *name)
{
	if (!name || strcmp(name, "memory") != 0 || coll == TUTTI_REDUCE || coll == TUTTI_BARRIER)
		return keeps_order(coll);
	return coll == TUTTI_BROADCAST || coll == TUTTI_GATHER || coll == TUTTI_SCATTER ? ",flat"
											: ",direct";
}

static void pin_all(const struct corner *corner, char *out, size_t size)
{
	size_t at = 0;

	out[0] = '\0';
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++) {
		const char *name = algorithm_of(corner, (tutti_collective)coll);
		const char *other = second((tutti_collective)coll, name);

		if (!name || (int)pinned_as((tutti_collective)coll) != coll)
			continue;
		if (strcmp(other, "") != 0 && strcmp(name, other + 1) == 0)
			other = "";
		at += (size_t)snprintf(out + at, size - at, "%s%s:%s%s", at ? ";" : "",
				       tutti_collective_name((tutti_collective)coll), name, other);
	}
}

/* -- Cases --------------------------------------------------------------------------- */

/* How many cases a collective has in a world, and which is which: digits of its number. */
#define DIGITS 6

static void radices(tutti_collective coll, size_t *digits)
{
	const struct operation *op = operation_of(coll);
	const bool is_call = coll != TUTTI_BARRIER;

	digits[0] = is_call ? TUTTI_TYPE_COUNT : 1;
	digits[1] = is_call ? COUNTS : 1;
	digits[2] = is_call ? 2 : 1;
	digits[3] = op->reduces ? NUMBERS_OPS : 1;
	/* First, last, or any. */
	digits[4] = op->rooted && !op->reduces ? 3 : 1;
	digits[5] = op->uneven && !op->reduces ? CALL_SPREADS : coll == TUTTI_HANDOFF ? 10 : 1;
}

static size_t ncases_of(tutti_collective coll)
{
	size_t digits[DIGITS];

	radices(coll, digits);
	return digits[0] * digits[1] * digits[2] * digits[3] * digits[4] * digits[5];
}

static size_t count_in(size_t range, uint64_t random, size_t parts)
{
	static const struct {
		size_t first, last;
	} ranges[COUNTS] = { { 0, 0 },    { 1, 1 },       { 2, 8 },         { 9, 64 },
			     { 65, 999 }, { 1000, 5000 }, { 5001, LARGEST } };
	const size_t count =
		ranges[range].first + random % (ranges[range].last - ranges[range].first + 1);

	return range < 4 ? count : (count + parts - 1) / parts;
}

static enum call_manner manner_of(uint64_t random)
{
	static const enum call_manner manners[] = {
		CALL_PLAIN, CALL_PLAIN,   CALL_PLAIN,     CALL_PLAIN,
		CALL_PLAIN, CALL_AS_PLAN, CALL_ON_STREAM, CALL_IN_GROUP,
	};

	return manners[random % (sizeof(manners) / sizeof(manners[0]))];
}

static struct call case_at(const struct corner *corner, size_t number)
{
	const uint64_t random = numbers_mix(corner->seed + number);
	const int any = (int)(random >> 8 & 0xff) % corner->n;
	size_t index = number;
	int coll = 0;

	for (; index >= ncases_of((tutti_collective)coll); coll++)
		index -= ncases_of((tutti_collective)coll);
	const struct operation *op = operation_of((tutti_collective)coll);
	size_t digits[DIGITS], digit[DIGITS];

	radices((tutti_collective)coll, digits);
	for (int i = 0; i < DIGITS; i++) {
		digit[i] = index % digits[i];
		index /= digits[i];
	}
	return (struct call){
		.coll = (tutti_collective)coll,
		.type = (tutti_type)digit[0],
		.count = count_in(digit[1], random >> 16 & 0xffffff,
				  op->sends_all || op->gets_all ? (size_t)corner->n : 1),
		.in_place = digit[2] == 1,
		.op = numbers_op_for((tutti_type)digit[0], (int)digit[3]),
		.root = digits[4] == 1 || digit[4] == 2 ? any
			: digit[4] == 0                 ? 0
							: corner->n - 1,
		.spread = (enum call_spread)(
			op->uneven ? digits[5] == 1 ? random % CALL_SPREADS : digit[5] : 0),
		.manner = manner_of(random >> 5),
		.seed = numbers_mix(random),
	};
}

/* So many cases of a collective, other ones for another seed: its steps are prime to all that
 * there are. */
static void sample(struct corner *corner, tutti_collective coll, size_t first, size_t share)
{
	const size_t all = ncases_of(coll);
	size_t index = corner->seed % all;

	for (size_t i = 0; i < all && i < share; i++) {
		corner->cases[corner->ncases++] = (uint32_t)(first + index);
		index = (index + 7919) % all;
	}
}

static void choose_cases(struct corner *corner, size_t share)
{
	uint64_t random = corner->seed;
	size_t first = 0, all = 0;

	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		all += ncases_of((tutti_collective)coll);
	corner->cases = calloc(all, sizeof(*corner->cases));
	assert_non_null(corner->cases);
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++) {
		if (takes_part(corner, (tutti_collective)coll))
			sample(corner, (tutti_collective)coll, first, share);
		first += ncases_of((tutti_collective)coll);
	}
	for (size_t i = corner->ncases; i > 1; i--) {
		random = numbers_mix(random);
		const uint32_t last = corner->cases[i - 1];

		corner->cases[i - 1] = corner->cases[random % i];
		corner->cases[random % i] = last;
	}
}

/* -- Runs ---------------------------------------------------------------------------- */

/* Cases taken alone. */
static long only_world = -1, only_case = -1;
static unsigned long run_seed;

static bool take_shape(const struct corner *corner, struct tti_comm *comm)
{
	const uint64_t kind = corner->seed >> 8 & 7;

	/* Half of them are one host, as they are. */
	if (corner->pin == 0 || kind >= SHAPE_KINDS)
		return true;
	tti_shape_free(comm->shape);
	comm->shape = shape_draw(corner->n, (enum shape_kind)kind, corner->seed);
	return comm->shape;
}

static void run_cases(struct caller *caller, const struct corner *corner)
{
	for (size_t i = 0; i < corner->ncases; i++) {
		const struct call call = case_at(corner, corner->cases[i]);

		if (only_case >= 0 && corner->cases[i] != (uint32_t)only_case)
			continue;
		const enum call_result result = caller_run(caller, &call);

		if (result != CALL_RIGHT && world_failures() < 100)
			fprintf(stderr,
				"  repeat: TEST_SEED=%lu TEST_WORLD=%d, alone with TEST_CASE=%u\n",
				run_seed, corner->number, corner->cases[i]);
		if (result == CALL_LOST)
			return;
	}
}

static void one_rank(tutti_comm_t handle, int rank, int n, void *arg)
{
	struct corner *corner = arg;
	struct caller caller = { .comm = handle, .rank = rank, .n = n, .came = &corner->came };
	struct tti_comm *comm = NULL;
	void *memory = NULL;

	if (!CHECK_OK(tti_handle_enter(handle, &comm)))
		return;
	if (corner->registered) {
		/* Of the calls with a part for each rank in either buffer. */
		const struct call largest = { .coll = TUTTI_SEND_RECV,
					      .type = TUTTI_COMPLEX128,
					      .count = LARGEST + 64 };

		if (CHECK_OK(tutti_mem_alloc(&memory, call_bytes(&largest, n), handle)))
			caller.memory = memory;
	}
	if (CHECK(take_shape(corner, comm)))
		run_cases(&caller, corner);
	caller_release(&caller);
	CHECK_OK(tutti_mem_free(memory, handle));
	tti_handle_leave(handle);
}

static size_t run_world(int number, size_t share)
{
	struct corner corner = corner_at(number, run_seed);
	char pin[512];
	const struct world world = { .n = corner.n,
				     .transport = corner.tcp ? "tcp" : "shm",
				     .algo = corner.pin ? pin : NULL,
				     /* Half of them meet over loopback. */
				     .sockets = corner.seed >> 16 & 1,
				     .timeout_ms = 120000 };

	pin_all(&corner, pin, sizeof(pin));
	choose_cases(&corner, share);
	if (world_run(&world, one_rank, &corner) > 0)
		fail_msg("world %d: %d ranks over %s%s, %s", number, world.n, world.transport,
			 corner.registered ? ", registered memory" : "",
			 corner.pin ? pin : "what is chosen");
	free(corner.cases);
	return only_case >= 0 ? 1 : corner.ncases;
}

/* How many collectives run in all worlds of a run, or how many cases there are in all. */
static size_t sum_of(bool is_every, bool cases)
{
	size_t sum = 0;

	for (int number = 0; number < WORLDS; number += is_every ? 1 : RANKS) {
		const struct corner corner = corner_at(number, 0);

		for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
			if (takes_part(&corner, (tutti_collective)coll))
				sum += cases ? ncases_of((tutti_collective)coll) : 1;
	}
	return sum;
}

static long number_in(const char *name, long otherwise)
{
	const char *text = getenv(name);

	return text ? strtol(text, NULL, 10) : otherwise;
}

static void matrix(void **state)
{
	const char *asked = getenv("TEST_CASES");
	const size_t all = sum_of(true, true);
	const size_t cases = !asked                      ? SAMPLE
			     : strcmp(asked, "all") == 0 ? all
							 : strtoul(asked, NULL, 10);
	const bool is_every = cases >= MANY;
	const size_t pairs = sum_of(is_every, false);
	const size_t share = cases >= all ? all : (cases + pairs - 1) / pairs;
	size_t ran = 0, nworlds = 0;

	(void)state;
	run_seed = (unsigned long)number_in("TEST_SEED", 1);
	only_world = number_in("TEST_WORLD", -1);
	only_case = number_in("TEST_CASE", -1);
	printf("TEST_SEED=%lu TEST_CASES=%zu\n", run_seed, cases);
	for (int kind = 0; kind < KINDS; kind++) {
		const int any =
			(int)(numbers_mix(run_seed + (uint64_t)kind) % (SANITIZED ? 5 : RANKS));

		for (int n = is_every ? 0 : any; n < (is_every ? RANKS : any + 1); n++)
			if (only_world < 0 || only_world == kind * RANKS + n) {
				ran += run_world(kind * RANKS + n, share);
				nworlds++;
			}
		if (is_every)
			printf("%zu cases of %zu\n", ran, all);
	}
	printf("%zu cases of %zu in %zu worlds of %d\n", ran, all, nworlds, WORLDS);
	assert_true(ran > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matrix),
	};

	/* Short calls of several blocks each, and registered memory from a few elements on. */
	setenv("TUTTI_SHM_SLOT", "4K", 0);
	setenv("TUTTI_TCP_SLOT", "4K", 0);
	setenv("TUTTI_REGISTERED_LEAST", "8K", 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
