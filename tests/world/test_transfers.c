/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives of two ranks, of lengths around those at which they are cut into more
 * messages, as the one or the other side finds its call kept or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/world.h"
#include "tutti/inspect.h"

#define KB 1024u

/* One message, two, 16 and more; where pieces get longer; a slot and more (256 KiB over shared
 * memory). */
static const size_t lengths[] = {
	0,
	1,
	48,
	8 * KB - 1,
	8 * KB,
	8 * KB + 1,
	16 * KB,
	16 * KB + 1,
	64 * KB,
	128 * KB - 1,
	128 * KB,
	128 * KB + 15,
	128 * KB + 16,
	256 * KB - 1,
	256 * KB,
	256 * KB + 1,
	1000 * KB,
	2048 * KB + 5,
	4096 * KB - 1,
	4096 * KB,
	4096 * KB + 77,
};
#define LENGTHS (sizeof(lengths) / sizeof(lengths[0]))
#define LONGEST (4096 * KB + 77)

static const char *const transports[] = { "shm", "tcp" };

static void over_each(world_fn two_ranks)
{
	for (size_t t = 0; t < sizeof(transports) / sizeof(transports[0]); t++) {
		const struct world world = { .n = 2, .transport = transports[t] };

		assert_int_equal(world_run(&world, two_ranks, NULL), 0);
	}
}

static uint8_t byte_of(size_t i, unsigned round)
{
	return (uint8_t)(i + i / 251 * 7 + round * 31);
}

static void fill(uint8_t *data, size_t nbytes, unsigned round)
{
	for (size_t i = 0; i < nbytes; i++)
		data[i] = byte_of(i, round);
}

static bool is_filled(const uint8_t *data, size_t nbytes, unsigned round)
{
	for (size_t i = 0; i < nbytes; i++)
		if (data[i] != byte_of(i, round))
			return false;
	return data[nbytes] == 0xee;
}

/* Round 0 is not kept yet; in round 2 the sender is in a group, in round 3 the receiver, and
 * such calls never go straight. */
static void one_way(tutti_comm_t comm, int rank, int n, void *arg)
{
	uint8_t *data = malloc(LONGEST + 1);

	(void)n;
	(void)arg;
	for (unsigned round = 0; round < 4 * LENGTHS && data; round++) {
		const size_t nbytes = lengths[round / 4];
		const bool groups = round % 4 == 3 - (unsigned)rank % 2;
		tutti_status st;

		memset(data, 0xee, nbytes + 1);
		if (rank == 0)
			fill(data, nbytes, round);
		if (groups)
			CHECK_OK(tutti_group_start());
		st = rank == 0 ? tutti_send(data, nbytes, TUTTI_UINT8, 1, comm, NULL)
			       : tutti_recv(data, nbytes, TUTTI_UINT8, 0, comm, NULL);
		CHECK_OK(st);
		if (groups)
			CHECK_OK(tutti_group_end());
		if (!CHECK(is_filled(data, nbytes, round)))
			break;
	}
	CHECK(data);
	free(data);
}

static void any_length_arrives(void **state)
{
	(void)state;
	over_each(one_way);
}

/* What two slots hold is sent before anything is received, in however many messages. */
static void send_first(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const size_t both[] = { 8 * KB + 1, 100 * KB, 250 * KB, 256 * KB };
	uint8_t *data = malloc(256 * KB + 1);
	const int peer = 1 - rank;

	(void)n;
	(void)arg;
	for (unsigned k = 0; k < 16 && data; k++) {
		const size_t nbytes = both[k % 4];

		for (unsigned i = 0; i < 2; i++) {
			fill(data, nbytes, 2 * k + i);
			CHECK_OK(tutti_send(data, nbytes, TUTTI_UINT8, peer, comm, NULL));
		}
		for (unsigned i = 0; i < 2; i++) {
			memset(data, 0xee, nbytes + 1);
			CHECK_OK(tutti_recv(data, nbytes, TUTTI_UINT8, peer, comm, NULL));
			CHECK(is_filled(data, nbytes, 2 * k + i));
		}
	}
	CHECK(data);
	free(data);
}

static void both_may_send_first(void **state)
{
	const struct world world = { .n = 2, .transport = "shm", .timeout_ms = 20000 };

	(void)state;
	assert_int_equal(world_run(&world, send_first, NULL), 0);
}

/* -- In place ------------------------------------------------------------------------ */

/* What is not sent yet must not be written. */
static void swap_in_place(tutti_comm_t comm, int rank, int n, void *arg)
{
	uint8_t *data = malloc(LONGEST + 1);

	(void)n;
	(void)arg;
	for (unsigned k = 0; k < LENGTHS && data; k++) {
		const size_t nbytes = lengths[k], room = nbytes / 2 * 2;
		const int half = (int)(nbytes / 2);

		memset(data, 0xee, LONGEST + 1);
		fill(data, room, k + (unsigned)rank);
		CHECK_OK(tutti_all_to_all(data, data, (size_t)half, TUTTI_UINT8, comm, NULL));
		for (size_t i = 0; i < room; i++) {
			const size_t from = i / (size_t)half;
			const size_t at = (size_t)rank * (size_t)half + i % (size_t)half;

			if (!CHECK(data[i] == byte_of(at, k + (unsigned)from)))
				break;
		}
		CHECK(data[room] == 0xee);
	}
	CHECK(data);
	free(data);
}

static void in_place(void **state)
{
	(void)state;
	over_each(swap_in_place);
}

/* The cut of each way is its own. */
static void swap_uneven(tutti_comm_t comm, int rank, int n, void *arg)
{
	static const size_t pairs[][2] = { { 64 * KB, 600 * KB },
					   { 8 * KB + 1, 8 * KB },
					   { 3000 * KB, 9 },
					   { 129 * KB, 255 * KB } };
	uint8_t *data = malloc(LONGEST + 1), *got = malloc(LONGEST + 1);

	(void)n;
	(void)arg;
	for (unsigned k = 0; k < 8 && data && got; k++) {
		const size_t out = pairs[k % 4][rank], in = pairs[k % 4][1 - rank];

		fill(data, out, k + (unsigned)rank);
		memset(got, 0xee, in + 1);
		CHECK_OK(tutti_send_recv(data, out, 1 - rank, got, in, 1 - rank, TUTTI_UINT8, comm,
					 NULL));
		CHECK(is_filled(got, in, k + (unsigned)(1 - rank)));
	}
	CHECK(data && got);
	free(data);
	free(got);
}

static void each_way_has_its_length(void **state)
{
	(void)state;
	over_each(swap_uneven);
}

/* -- What does not fit together --------------------------------------------------------- */

/* Of both lengths the first message has 8 KiB, and calls of both are kept. */
static void differing(tutti_comm_t comm, int rank, int n, void *arg)
{
	static uint8_t data[2][80 * KB];
	const size_t more = 80 * KB, less = 64 * KB;

	(void)n;
	(void)arg;
	for (int round = 0; round < 2; round++)
		for (int k = 0; k < 2; k++) {
			const size_t nbytes = k ? more : less;

			CHECK_OK(rank == 0
					 ? tutti_send(data[0], nbytes, TUTTI_UINT8, 1, comm, NULL)
					 : tutti_recv(data[1], nbytes, TUTTI_UINT8, 0, comm, NULL));
		}
	if (rank == 0) {
		CHECK_OK(tutti_send(data[0], more, TUTTI_UINT8, 1, comm, NULL));
		CHECK(tutti_recv(data[0], less, TUTTI_UINT8, 1, comm, NULL) == TUTTI_EMISMATCH);
	} else {
		CHECK(tutti_recv(data[1], less, TUTTI_UINT8, 0, comm, NULL) == TUTTI_EMISMATCH);
		CHECK(strstr(tutti_last_error(comm), "recv(65536 x uint8, from 0)"));
	}
}

/* The receiver finds it; the sender hears of it in its next call. */
static void differing_short(tutti_comm_t comm, int rank, int n, void *arg)
{
	const bool *grouped = arg;
	float data[20] = { 0 };
	tutti_status st;

	(void)n;
	if (*grouped)
		CHECK_OK(tutti_group_start());
	st = rank == 0 ? tutti_send(data, 20, TUTTI_FLOAT32, 1, comm, NULL)
		       : tutti_recv(data, 10, TUTTI_FLOAT32, 0, comm, NULL);
	if (*grouped) {
		CHECK_OK(st);
		st = tutti_group_end();
	}
	if (rank == 0)
		st = tutti_barrier(comm, NULL);
	CHECK(st == TUTTI_EMISMATCH);
	if (!CHECK(strstr(tutti_last_error(comm),
			  "rank 0 sends 20 x float32 to rank 1, which receives 10 x float32")))
		fprintf(stderr, "  %s\n", tutti_last_error(comm));
}

static void mismatch_of_short_ones(void **state)
{
	const struct world world = { .n = 2, .transport = "shm" };

	(void)state;
	for (int i = 0; i < 2; i++) {
		bool grouped = i;

		assert_int_equal(world_run(&world, differing_short, &grouped), 0);
	}
}

static void mismatch(void **state)
{
	const struct world world = { .n = 2, .transport = "shm" };

	(void)state;
	assert_int_equal(world_run(&world, differing, NULL), 0);
}

/* -- What TUTTI_ALGO says ---------------------------------------------------------------- */

static const char *last_algorithm(tutti_comm_t comm)
{
	struct tutti_call_report report;

	return CHECK_OK(tutti_comm_last_call(comm, &report)) ? report.algorithm : "";
}

struct pinned {
	const char *algo, *transport;
	size_t nbytes;
	const char *way; /* that a send of memory takes that peers address; NULL: it fails */
};

static const struct pinned pinned[] = {
	{ NULL, "shm", 256 * KB, "memory" },
	{ NULL, "shm", 8, "direct" },
	{ "send_recv:direct", "shm", 64 * KB, "direct" },
	{ "direct", "shm", 64 * KB, "direct" },
	{ "send_recv:^memory", "shm", 64 * KB, "direct" },
	{ "send_recv:memory", "shm", 64 * KB, "memory" },
	{ "send_recv:memory", "shm", 8, "memory" },
	{ "send_recv:memory", "shm", 0, "direct" },
	{ "send_recv:^direct", "shm", 8, "memory" },
	{ "memory", "shm", 8, "memory" },
	{ "send_recv:memory,direct", "shm", 8, "memory" },
	{ "send_recv:direct,memory", "shm", 64 * KB, "direct" },
	{ "send_recv@64K-:memory", "shm", 64 * KB - 1, "direct" },
	{ "send_recv@64K-:memory", "shm", 64 * KB, "memory" },
	{ "all_reduce:ring", "shm", 256 * KB, "memory" },
	{ "memory", "tcp", 64 * KB, "direct" },
	{ "send_recv:memory,direct", "tcp", 64 * KB, "direct" },
	{ "send_recv:memory", "tcp", 64 * KB, NULL },
};

/* Alone, in a group, and as what one rank has for others in a call by pairs. */
static tutti_status send_as(int kind, uint8_t *data, size_t nbytes, tutti_comm_t comm, int rank)
{
	const size_t counts[2] = { 0, nbytes }, displs[2] = { 0, 0 };
	tutti_status st;

	if (kind == 2)
		return tutti_gather_v(data, rank == 1 ? nbytes : 0, data, rank ? NULL : counts,
				      rank ? NULL : displs, TUTTI_UINT8, 0, comm, NULL);
	if (kind == 1)
		CHECK_OK(tutti_group_start());
	st = rank == 1 ? tutti_send(data, nbytes, TUTTI_UINT8, 0, comm, NULL)
		       : tutti_recv(data, nbytes, TUTTI_UINT8, 1, comm, NULL);
	return kind == 1 ? tutti_group_end() : st;
}

static void send_pinned(tutti_comm_t comm, int rank, int n, void *arg)
{
	const struct pinned *p = arg;
	void *memory = NULL;
	uint8_t *data;

	(void)n;
	CHECK_OK(tutti_mem_alloc(&memory, p->nbytes + 1, comm));
	data = memory;
	for (int kind = 0; kind < 3 && data; kind++) {
		tutti_status st;

		memset(data, 0xee, p->nbytes + 1);
		if (rank == 1)
			fill(data, p->nbytes, (unsigned)kind);
		st = send_as(kind, data, p->nbytes, comm, rank);
		if (!p->way) {
			CHECK(st == TUTTI_EPEER &&
			      strstr(tutti_last_error(comm), "\"send_recv:memory,direct\""));
			break;
		}
		CHECK(st == TUTTI_OK && is_filled(data, p->nbytes, (unsigned)kind));
		CHECK(rank == 0 || !strcmp(last_algorithm(comm), p->way));
	}
	if (p->way)
		CHECK_OK(tutti_mem_free(memory, comm));
}

static void sends_go_as_they_are_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pinned) / sizeof(pinned[0]); i++) {
		const struct world world = { .n = 2,
					     .transport = pinned[i].transport,
					     .algo = pinned[i].algo };
		struct pinned p = pinned[i];

		if (world_run(&world, send_pinned, &p))
			fail_msg("%s over %s, %zu bytes", p.algo ? p.algo : "no pin", p.transport,
				 p.nbytes);
	}
}

/* Who receives where it sends from cannot do so by memory, and says so on all ranks. */
static void swap_by_memory(tutti_comm_t comm, int rank, int n, void *arg)
{
	const size_t counts[2] = { 100, 100 }, displs[2] = { 0, 100 };
	uint8_t data[200] = { 0 };

	(void)rank;
	(void)n;
	(void)arg;
	CHECK(tutti_all_to_all_v(data, counts, displs, data, counts, displs, TUTTI_UINT8, comm,
				 NULL) == TUTTI_EPEER);
	CHECK(strstr(tutti_last_error(comm), "or receives in place"));
}

static void in_place_is_no_way_by_memory(void **state)
{
	const struct world world = { .n = 2, .transport = "shm", .algo = "send_recv:memory" };

	(void)state;
	assert_int_equal(world_run(&world, swap_by_memory, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_length_arrives),
		cmocka_unit_test(both_may_send_first),
		cmocka_unit_test(in_place),
		cmocka_unit_test(each_way_has_its_length),
		cmocka_unit_test(mismatch),
		cmocka_unit_test(mismatch_of_short_ones),
		cmocka_unit_test(sends_go_as_they_are_told),
		cmocka_unit_test(in_place_is_no_way_by_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
