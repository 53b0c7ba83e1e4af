/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of calls, and where their buffers may lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "core/call/args.h"
#include "core/call/counts.h"
#include "core/comm.h"

#define N     3
#define RANK  1
#define COUNT 4 /* elements of one row */

static const size_t even[N] = { COUNT, COUNT, COUNT };
static const size_t packed[N] = { 0, COUNT, 2 * COUNT };
static const size_t other[N] = { COUNT, COUNT, COUNT + 1 };

static void calls_are_told(void **state)
{
	static const struct {
		struct tti_args args;
		const char *want;
	} tests[] = {
		{ { .coll = TUTTI_ALL_REDUCE, .count = 7 }, "all_reduce(7 x float32, sum)" },
		{ { .coll = TUTTI_BROADCAST, .count = 7, .root = 2 },
		  "broadcast(7 x float32, root 2)" },
		{ { .coll = TUTTI_REDUCE, .count = 7, .op = TUTTI_MAX, .root = 2 },
		  "reduce(7 x float32, max, root 2)" },
		{ { .coll = TUTTI_ALL_GATHER, .count = 7 }, "all_gather(7 x float32)" },
		{ { .coll = TUTTI_REDUCE_SCATTER, .count = 7 },
		  "reduce_scatter(7 x float32, sum)" },
		{ { .coll = TUTTI_BARRIER }, "barrier()" },
		{ { .coll = TUTTI_SEND_RECV, .count = 7, .root = 2, .is_send = true },
		  "send(7 x float32, to 2)" },
		{ { .coll = TUTTI_SEND_RECV, .count = 7, .root = 2 }, "recv(7 x float32, from 2)" },
		{ { .coll = TUTTI_HANDOFF, .count = 7 }, "handoff(7 x float32, from 0 to 1)" },
		{ { .coll = TUTTI_ALL_TO_ALL, .count = 7 }, "all_to_all(7 x float32)" },
		{ { .coll = TUTTI_GATHER, .count = 7, .root = 2 }, "gather(7 x float32, root 2)" },
		{ { .coll = TUTTI_SCATTER, .count = 7, .root = 2 },
		  "scatter(7 x float32, root 2)" },
		{ { .coll = TUTTI_ALL_TO_ALL_V, .count = 7 }, "all_to_all_v(float32)" },
		{ { .coll = TUTTI_GATHER_V, .count = 7, .root = 2 }, "gather_v(float32, root 2)" },
		{ { .coll = TUTTI_SCATTER_V, .count = 7, .root = 2 },
		  "scatter_v(float32, root 2)" },
		{ { .coll = TUTTI_ALL_GATHER_V, .count = 7, .root = 0x1a },
		  "all_gather_v(7 x float32 in all, counts 0000001a)" },
		{ { .coll = TUTTI_REDUCE_SCATTER_V, .count = 7, .root = 0x1a },
		  "reduce_scatter_v(7 x float32 in all, sum, counts 0000001a)" },
		{ { .coll = (tutti_collective)TTI_PING_COLL, .root = 2 }, "ping(rank 2)" },
	};
	char text[200];

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		struct tti_args args = tests[i].args;

		args.type = TUTTI_FLOAT32;
		tti_args_format(&args, "from 0 to 1", text, sizeof(text));
		assert_string_equal(text, tests[i].want);
	}
}

/* A call of rank 1 of 3, each row of 4 elements. */
static struct tti_args call_of(tutti_collective coll, int root)
{
	const bool sends = coll == TUTTI_ALL_TO_ALL_V || coll == TUTTI_SCATTER_V ||
			   coll == TUTTI_REDUCE_SCATTER_V;
	const bool gets =
		coll == TUTTI_ALL_TO_ALL_V || coll == TUTTI_GATHER_V || coll == TUTTI_ALL_GATHER_V;

	return (struct tti_args){ .coll = coll,
				  .type = TUTTI_FLOAT32,
				  .count = COUNT,
				  .root = root,
				  .send_counts = sends ? even : NULL,
				  .send_displs =
					  sends && coll != TUTTI_REDUCE_SCATTER_V ? packed : NULL,
				  .recv_counts = gets ? even : NULL,
				  .recv_displs = gets ? packed : NULL };
}

static tutti_status check(struct tti_args args)
{
	struct tti_comm *comm = calloc(1, sizeof(*comm));
	tutti_status status;

	assert_non_null(comm);
	comm->n = N;
	comm->rank = RANK;
	status = tti_counts_take_in(comm, &args);
	if (status == TUTTI_OK)
		status = tti_args_check(comm, &args);
	free(comm);
	return status;
}

/* Whichever way a receive buffer lies over a send buffer: in place is right, all else that
 * overlaps is refused. */
static void in_place_and_all_other_overlaps(void **state)
{
	static const struct {
		tutti_collective coll;
		int root, sends, recvs; /* in elements */
		int in_place;           /* where recv is then, counted from send */
	} tests[] = {
		{ TUTTI_ALL_REDUCE, 0, 4, 4, 0 },
		{ TUTTI_BROADCAST, RANK, 4, 4, 0 },
		{ TUTTI_REDUCE, RANK, 4, 4, 0 },
		{ TUTTI_ALL_GATHER, 0, 4, 12, -4 },
		{ TUTTI_REDUCE_SCATTER, 0, 12, 4, 4 },
		{ TUTTI_ALL_TO_ALL, 0, 12, 12, 0 },
		{ TUTTI_GATHER, RANK, 4, 12, -4 },
		{ TUTTI_SCATTER, RANK, 12, 4, 4 },
		{ TUTTI_ALL_TO_ALL_V, 0, 12, 12, 0 },
		{ TUTTI_GATHER_V, RANK, 4, 12, -4 },
		{ TUTTI_SCATTER_V, RANK, 12, 4, 4 },
		{ TUTTI_ALL_GATHER_V, 0, 4, 12, -4 },
		{ TUTTI_REDUCE_SCATTER_V, 0, 12, 4, 4 },
		/* Ranks that have one buffer only. */
		{ TUTTI_BROADCAST, 0, 0, 4, 0 },
		{ TUTTI_REDUCE, 0, 4, 0, 0 },
		{ TUTTI_GATHER, 0, 4, 0, 0 },
		{ TUTTI_SCATTER, 0, 0, 4, 0 },
		{ TUTTI_GATHER_V, 0, 4, 0, 0 },
		{ TUTTI_SCATTER_V, 0, 0, 4, 0 },
	};
	static float memory[64];

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		for (int at = -16; at <= 16; at++) {
			const bool overlap = tests[i].sends > 0 && tests[i].recvs > 0 &&
					     at < tests[i].sends && -at < tests[i].recvs;
			struct tti_args args = call_of(tests[i].coll, tests[i].root);

			args.send = memory + 24;
			args.recv = memory + 24 + at;
			if (check(args) !=
			    (overlap && at != tests[i].in_place ? TUTTI_EINVAL : TUTTI_OK))
				fail_msg("%s, root %d, recv at %d",
					 tutti_collective_name(tests[i].coll), tests[i].root, at);
		}
}

/* Only what both sides count alike can be in place. */
static void other_counts_are_not_in_place(void **state)
{
	static float memory[64];
	struct tti_args args = call_of(TUTTI_ALL_TO_ALL_V, 0);

	(void)state;
	args.send = args.recv = memory;
	assert_int_equal(check(args), TUTTI_OK);
	args.recv_counts = other;
	assert_int_equal(check(args), TUTTI_EINVAL);
	args = call_of(TUTTI_ALL_TO_ALL_V, 0);
	args.send = args.recv = memory;
	args.recv_displs = other;
	assert_int_equal(check(args), TUTTI_EINVAL);
}

/* Where a buffer may be NULL: where this rank has nothing. */
static void buffers_that_are_needed(void **state)
{
	static const struct {
		tutti_collective coll;
		int root;
		bool is_send, sends, recvs;
	} tests[] = {
		{ TUTTI_ALL_REDUCE, 0, false, true, true },
		{ TUTTI_BROADCAST, 0, false, false, true },
		{ TUTTI_BROADCAST, RANK, false, true, true },
		{ TUTTI_REDUCE, 0, false, true, false },
		{ TUTTI_GATHER, 0, false, true, false },
		{ TUTTI_SCATTER, 0, false, false, true },
		{ TUTTI_GATHER_V, 0, false, true, false },
		{ TUTTI_SCATTER_V, 0, false, false, true },
		{ TUTTI_SEND_RECV, 0, true, true, false },
		{ TUTTI_SEND_RECV, 0, false, false, true },
	};
	static float memory[64];

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		struct tti_args args = call_of(tests[i].coll, tests[i].root);

		args.is_send = tests[i].is_send;
		args.recv = memory;
		assert_int_equal(check(args), tests[i].sends ? TUTTI_EINVAL : TUTTI_OK);
		args.send = memory + 32;
		assert_int_equal(check(args), TUTTI_OK);
		args.recv = NULL;
		assert_int_equal(check(args), tests[i].recvs ? TUTTI_EINVAL : TUTTI_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_told),
		cmocka_unit_test(in_place_and_all_other_overlaps),
		cmocka_unit_test(other_counts_are_not_in_place),
		cmocka_unit_test(buffers_that_are_needed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
