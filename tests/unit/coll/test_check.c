/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs broken by hand: each is refused, for the right reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/check/check.h"
#include "coll/files/text.h"
#include "util/error.h"
#include "util/mem.h"

static tutti_status check_text(const char *text, int slots)
{
	struct tti_program *prog;
	tutti_status st;
	int n;

	if (tti_program_read(text, &prog, &n) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	st = tti_program_check(prog, n, slots, TTI_ORDER_ANY);
	for (int rank = 0; rank < n; rank++)
		tti_program_release(&prog[rank]);
	tti_free(prog);
	return st;
}

static void refused(const char *text, int slots, const char *expected)
{
	assert_int_equal(check_text(text, slots), TUTTI_EINVAL);
	if (!strstr(tti_error_text(), expected))
		fail_msg("expected \"%s\", is \"%s\"", expected, tti_error_text());
}

static void accepted(const char *text, int slots)
{
	if (check_text(text, slots) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
}

/* Right but for its order. */
static void refused_in_order(const char *text, enum tti_order order, const char *expected)
{
	struct tti_program *prog;
	int n;

	accepted(text, 1);
	assert_int_equal(tti_program_read(text, &prog, &n), TUTTI_OK);
	assert_int_equal(tti_program_check(prog, n, 1, order), TUTTI_EINVAL);
	if (!strstr(tti_error_text(), expected))
		fail_msg("expected \"%s\", is \"%s\"", expected, tti_error_text());
	for (int rank = 0; rank < n; rank++)
		tti_program_release(&prog[rank]);
	tti_free(prog);
}

#define ALL_REDUCE_OF_2 "program all_reduce algorithm test n 2 root 0 chunks 1\n"
#define ALL_REDUCE_OF_3 "program all_reduce algorithm test n 3 root 0 chunks 1\n"

static void a_missing_contribution(void **state)
{
	(void)state;
	/* Rank 2 takes part in nothing but the result. */
	refused(ALL_REDUCE_OF_3 "rank 0\n send chunk 0 to 1\n recv chunk 0 from 1\n"
				"rank 1\n recv_reduce chunk 0 from 0\n send chunk 0 to 0\n"
				" send chunk 0 to 2\n"
				"rank 2\n recv chunk 0 from 1\n",
		1, "output chunk 0 ends without rank 2's contribution");
	refused(ALL_REDUCE_OF_2 "rank 0\n send chunk 0 to 1\n recv chunk 0 from 1\n"
				"rank 1\n send chunk 0 to 0\n recv_reduce chunk 0 from 0 final\n",
		1, "rank 0, step 1: output chunk 0 ends without rank 0's contribution");
	refused("program barrier algorithm test n 3 root 0 chunks 1\n"
		"rank 0\n send chunk 0 to 1\n recv_reduce chunk 0 from 1\n"
		"rank 1\n send chunk 0 to 0\n recv_reduce chunk 0 from 0\n send chunk 0 to 2\n"
		"rank 2\n recv_reduce chunk 0 from 1\n",
		1, "rank 0, step 1: output chunk 0 ends without rank 2's contribution");
}

static void a_contribution_that_comes_twice(void **state)
{
	(void)state;
	refused(ALL_REDUCE_OF_3
		"rank 0\n send chunk 0 to 1\n recv_reduce chunk 0 from 1\n"
		" send chunk 0 to 2\n recv chunk 0 from 2\n"
		"rank 1\n send chunk 0 to 0\n recv_reduce chunk 0 from 0\n"
		" send chunk 0 to 2\n recv chunk 0 from 2\n"
		"rank 2\n recv_reduce chunk 0 from 0\n recv_reduce chunk 0 from 1 final\n"
		" send chunk 0 to 0\n send chunk 0 to 1\n",
		1,
		"rank 2, step 1: chunk 0 already holds rank 0's contribution, which comes again "
		"from rank 1");
	/* Which does no harm in a barrier. */
	accepted("program barrier algorithm test n 3 root 0 chunks 1\n"
		 "rank 0\n send chunk 0 to 1\n recv_reduce chunk 0 from 1\n"
		 " send chunk 0 to 2\n recv chunk 0 from 2\n"
		 "rank 1\n send chunk 0 to 0\n recv_reduce chunk 0 from 0\n"
		 " send chunk 0 to 2\n recv chunk 0 from 2\n"
		 "rank 2\n recv_reduce chunk 0 from 0\n recv_reduce chunk 0 from 1\n"
		 " send chunk 0 to 0\n send chunk 0 to 1\n",
		 1);
}

static void a_deadlock_by_order(void **state)
{
	static const char *const text =
		ALL_REDUCE_OF_2 "rank 0\n recv_reduce chunk 0 from 1 final\n send chunk 0 to 1\n"
				"rank 1\n recv_reduce chunk 0 from 0 final\n send chunk 0 to 0\n";

	(void)state;
	refused(text, 1, "deadlock with 1 slot per link");
	refused(text, 8, "rank 0, step 0 (recv_reduce chunk 0) waits for rank 1, step 1, to send");
	refused(text, 8, "rank 1, step 1 (send chunk 0) comes after its step 0");
}

/* Chunks are independent, so only one strict order of the steps stops. */
static void a_deadlock_by_strict_order(void **state)
{
	(void)state;
	refused("program all_gather algorithm test n 2 root 0 chunks 2\n"
		"rank 0\n recv chunk 1 from 1\n send chunk 0 to 1\n"
		"rank 1\n recv chunk 0 from 0\n send chunk 1 to 0\n",
		8, "deadlock with 8 slots per link, steps one after the other");
}

static void a_deadlock_by_slots(void **state)
{
	static const char *const text =
		"program broadcast algorithm test n 3 root 0 chunks 3\n"
		"rank 0\n send chunk 0 to 1\n send chunk 1 to 1\n send chunk 2 to 2\n"
		" send chunk 0 to 2\n send chunk 1 to 2\n send chunk 2 to 1\n"
		"rank 1\n recv chunk 0 from 0\n recv chunk 1 from 0\n recv chunk 2 from 0\n"
		"rank 2\n recv chunk 2 from 0\n recv chunk 0 from 0\n recv chunk 1 from 0\n";
	static const char *const crossed =
		"program all_reduce algorithm test n 2 root 0 chunks 2\n"
		"rank 0\n send chunk 0 to 1\n send chunk 1 to 1\n"
		" recv_reduce chunk 0 from 1 final\n recv_reduce chunk 1 from 1 final\n"
		"rank 1\n send chunk 0 to 0\n send chunk 1 to 0\n"
		" recv_reduce chunk 0 from 0 final\n recv_reduce chunk 1 from 0 final\n";

	(void)state;
	accepted(text, 1);
	accepted(crossed, 2);
	refused(crossed, 1,
		"rank 0, step 1 (send chunk 1) waits for rank 1, step 2, to free a slot");
}

/* Rank 0's two fan-outs each have room on their links, but not in the one slot they
 * share as long as rank 2 has not read the first. */
static void a_deadlock_by_shared_slots(void **state)
{
	static const char *const text =
		"program broadcast algorithm test n 4 root 0 chunks 2\n"
		"rank 0\n send chunk 0 to 1\n send chunk 0 to 2\n send chunk 1 to 1\n"
		" send chunk 1 to 3\n"
		"rank 1\n recv chunk 0 from 0\n recv chunk 1 from 0\n send chunk 0 to 3\n"
		"rank 2\n recv chunk 1 from 3\n recv chunk 0 from 0\n"
		"rank 3\n recv chunk 1 from 0\n send chunk 1 to 2\n recv chunk 0 from 1\n";

	(void)state;
	refused(text, 1,
		"deadlock with 1 slot per link, steps one after the other, fan-outs in shared "
		"slots: ");
	refused(text, 1,
		"rank 0, step 2 (send chunk 1) waits for rank 2, step 1, to free a shared slot");
	refused(text, 1, "rank 3, step 0 (recv chunk 1) waits for rank 0, step 3, to send");
	accepted(text, 2);
}

static void a_send_that_is_missing(void **state)
{
	(void)state;
	refused(ALL_REDUCE_OF_2 "rank 0\n recv_reduce chunk 0 from 1 final\n"
				"rank 1\n recv_reduce chunk 0 from 0 final\n send chunk 0 to 0\n",
		1, "rank 1, step 0: chunk 0 is to come from rank 0, which sends only 0 messages");
}

static void a_message_that_nobody_takes(void **state)
{
	(void)state;
	refused("program broadcast algorithm test n 3 root 0 chunks 1\n"
		"rank 0\n send chunk 0 to 1\n send chunk 0 to 2\n"
		"rank 1\n recv chunk 0 from 0\n send chunk 0 to 2\n"
		"rank 2\n recv chunk 0 from 0\n",
		1, "rank 1, step 1: chunk 0 is sent to rank 2, which receives only 0 of rank 1's");
	refused("program broadcast algorithm test n 2 root 0 chunks 1\n"
		"rank 0\n send chunk 0 to 1\n send chunk 0 to 1\n"
		"rank 1\n recv chunk 0 from 0\n",
		1, "rank 0, step 1: chunk 0 is sent to rank 1, which receives only 1");
}

static void a_value_used_before_it_is_there(void **state)
{
	(void)state;
	refused("program broadcast algorithm test n 3 root 0 chunks 1\n"
		"rank 0\n send chunk 0 to 1\n"
		"rank 1\n send chunk 0 to 2\n recv chunk 0 from 0\n"
		"rank 2\n recv chunk 0 from 1\n",
		1, "rank 1, step 0: chunk 0 is sent before it has a value");
	refused("program all_gather algorithm test n 2 root 0 chunks 2\n"
		"rank 0\n send chunk 1 to 1\n recv chunk 1 from 1\n"
		"rank 1\n send chunk 1 to 0\n recv chunk 1 from 0\n",
		1, "rank 0, step 0: chunk 1 is sent before it has a value");
	refused("program broadcast algorithm test n 2 root 0 chunks 1\n"
		"rank 0\n recv chunk 0 from 1\n"
		"rank 1\n send chunk 0 to 0\n",
		1, "rank 1, step 0: chunk 0 is sent before it has a value");
}

static void a_wrong_chunk(void **state)
{
	(void)state;
	refused("program broadcast algorithm test n 2 root 0 chunks 2\n"
		"rank 0\n send chunk 0 to 1\n send chunk 1 to 1\n"
		"rank 1\n recv chunk 1 from 0\n recv chunk 0 from 0\n",
		1,
		"rank 1, step 0: chunk 1 is to come from rank 0, but what arrives is chunk 0 (its "
		"step 0)");
	refused("program broadcast algorithm test n 2 root 0 chunks 2\n"
		"rank 0\n send chunk 2 to 1\nrank 1\n recv chunk 0 from 0\n",
		1, "rank 0, step 0: chunk 2 is out of range, there are 2");
}

static void a_wrong_peer(void **state)
{
	(void)state;
	refused(ALL_REDUCE_OF_2 "rank 0\n send chunk 0 to 2\nrank 1\n", 1,
		"rank 0, step 0 (chunk 0): peer 2 is out of range, there are 2 ranks");
	refused(ALL_REDUCE_OF_2 "rank 0\nrank 1\n send chunk 0 to 1\n", 1,
		"rank 1, step 0: chunk 0 goes to or comes from the rank itself");
	refused(ALL_REDUCE_OF_3 "rank 0\n send chunk 0 to 1\n send chunk 0 to 0\nrank 1\nrank 2\n",
		1, "rank 0, step 1: chunk 0 goes to or comes from the rank itself");
}

static void a_final_in_the_wrong_place(void **state)
{
	(void)state;
	refused(ALL_REDUCE_OF_2 "rank 0\n send chunk 0 to 1\n recv_reduce chunk 0 from 1\n"
				"rank 1\n send chunk 0 to 0\n recv_reduce chunk 0 from 0 final\n",
		1, "rank 0, step 1: chunk 0 is complete but not marked final");
	refused(ALL_REDUCE_OF_3
		"rank 0\n recv_reduce chunk 0 from 1 final\n recv_reduce chunk 0 from 2 final\n"
		" send chunk 0 to 1\n send chunk 0 to 2\n"
		"rank 1\n send chunk 0 to 0\n recv chunk 0 from 0\n"
		"rank 2\n send chunk 0 to 0\n recv chunk 0 from 0\n",
		1, "rank 0, step 0: chunk 0 is marked final but lacks rank 2's contribution");
	refused(ALL_REDUCE_OF_3 "rank 0\n recv_reduce chunk 0 from 1\n recv_reduce chunk 0 from 2\n"
				" send chunk 0 to 1\n send chunk 0 to 2\n"
				"rank 1\n send chunk 0 to 0\n recv chunk 0 from 0\n"
				"rank 2\n send chunk 0 to 0\n recv chunk 0 from 0\n",
		1, "rank 0, step 1: chunk 0 is complete but not marked final");
}

static void an_output_that_nobody_writes(void **state)
{
	(void)state;
	refused("program broadcast algorithm test n 3 root 0 chunks 1\n"
		"rank 0\n send chunk 0 to 1\nrank 1\n recv chunk 0 from 0\nrank 2\n",
		1, "rank 2: output chunk 0 is never written");
	refused("program broadcast algorithm test n 2 root 0 chunks 2\n"
		"rank 0\n send chunk 0 to 1\nrank 1\n recv chunk 0 from 0\n",
		1, "rank 1: output chunk 1 is never written");
	/* The copy that compiling adds is not enough for a reduction. */
	refused(ALL_REDUCE_OF_2 "rank 0\nrank 1\n", 1,
		"output chunk 0 ends without rank 1's contribution");
}

static void a_reduction_where_there_is_none(void **state)
{
	(void)state;
	refused("program broadcast algorithm test n 2 root 0 chunks 1\n"
		"rank 0\n send chunk 0 to 1\nrank 1\n recv_reduce chunk 0 from 0 final\n",
		1, "rank 1, step 0: chunk 0 is reduced in a collective without reduction");
}

static void a_copy_that_makes_no_sense(void **state)
{
	(void)state;
	refused("program reduce algorithm test n 2 root 0 chunks 1\n"
		"rank 0\n recv_reduce chunk 0 from 1 final\nrank 1\n copy chunk 0\n"
		" send chunk 0 to 0\n",
		1, "rank 1, step 0: chunk 0 is copied but is not both input and output here");
	refused(ALL_REDUCE_OF_2 "rank 0\n send chunk 0 to 1\n recv_reduce chunk 0 from 1 final\n"
				" copy chunk 0\n"
				"rank 1\n send chunk 0 to 0\n recv_reduce chunk 0 from 0 final\n",
		1, "rank 0, step 2: chunk 0 is copied after it was written");
	accepted(ALL_REDUCE_OF_2
		 "rank 0\n send chunk 0 to 1\n copy chunk 0\n recv_reduce chunk 0 from 1 final\n"
		 "rank 1\n copy chunk 0\n send chunk 0 to 0\n recv_reduce chunk 0 from 0 final\n",
		 1);
}

static void a_wrong_number_of_chunks(void **state)
{
	(void)state;
	refused("program all_gather algorithm test n 2 root 0 chunks 1\nrank 0\nrank 1\n", 1,
		"all_gather of 2 ranks has 1 chunks: must be 2 or a multiple");
	refused("program barrier algorithm test n 1 root 0 chunks 2\nrank 0\n", 1,
		"barrier has 2 chunks: must be 1");
}

static void programs_that_do_not_belong_together(void **state)
{
	struct tti_program prog[2] = {
		{ .coll = TUTTI_BARRIER, .algorithm = "a", .rank = 0, .n = 2, .nchunks = 1 },
		{ .coll = TUTTI_BARRIER, .algorithm = "a", .rank = 1, .n = 2, .nchunks = 1 },
	};

	(void)state;
	prog[1].coll = TUTTI_ALL_REDUCE;
	assert_int_equal(tti_program_check(prog, 2, 1, TTI_ORDER_ANY), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "rank 1's program is all_reduce root 0 chunks 1"));
	prog[1].coll = TUTTI_BARRIER;
	prog[1].rank = 0;
	assert_int_equal(tti_program_check(prog, 2, 1, TTI_ORDER_ANY), TUTTI_EINVAL);
	prog[1].rank = 1;
	prog[1].n = 3;
	assert_int_equal(tti_program_check(prog, 2, 1, TTI_ORDER_ANY), TUTTI_EINVAL);
	prog[1].n = 2;
	assert_int_equal(tti_program_check(prog, 2, 0, TTI_ORDER_ANY), TUTTI_EINVAL);
	assert_int_equal(tti_program_check(prog, 0, 1, TTI_ORDER_ANY), TUTTI_EINVAL);
	prog[0].nchunks = prog[1].nchunks = INT32_MAX;
	assert_int_equal(tti_program_check(prog, 2, 1, TTI_ORDER_ANY), TUTTI_EINVAL);
}

/* Messages between two ranks, each its own chunk. */
static void messages_are_programs(void **state)
{
	(void)state;
	accepted("program send_recv algorithm test n 2 root 0 chunks 2\n"
		 "rank 0\n send chunk 0 to 1\n recv chunk 1 from 1\n"
		 "rank 1\n send chunk 1 to 0\n recv chunk 0 from 0\n",
		 1);
	refused("program send_recv algorithm test n 2 root 0 chunks 1\n"
		"rank 0\n recv chunk 0 from 1\nrank 1\n recv chunk 0 from 0\n",
		1, "which sends only 0 messages");
}

/* Two ranks, the step of one of them in stage `stage`. */
static void stage_refused(int rank, int step, int stage, const char *expected)
{
	struct tti_program *prog;
	int n;

	assert_int_equal(tti_program_read(ALL_REDUCE_OF_2
					  "rank 0\n send chunk 0 to 1\n recv chunk 0 from 1\n"
					  "rank 1\n recv_reduce chunk 0 from 0 final\n"
					  " send chunk 0 to 0\n",
					  &prog, &n),
			 TUTTI_OK);
	assert_int_equal(tti_program_check(prog, n, 1, TTI_ORDER_ANY), TUTTI_OK);
	prog[rank].steps.at[step].stage = stage;
	assert_int_equal(tti_program_check(prog, n, 1, TTI_ORDER_ANY), TUTTI_EINVAL);
	if (!strstr(tti_error_text(), expected))
		fail_msg("expected \"%s\", is \"%s\"", expected, tti_error_text());
	for (rank = 0; rank < n; rank++)
		tti_program_release(&prog[rank]);
	tti_free(prog);
}

static void stages_that_do_not_fit(void **state)
{
	(void)state;
	stage_refused(0, 1, 1, "chunk 0 comes from rank 1 in another stage");
	stage_refused(1, 0, 1, "rank 1, step 1: chunk 0 waits for a step of a later stage");
	stage_refused(0, 0, 1, "rank 0, step 1: chunk 0 waits for a step of a later stage");
	stage_refused(0, 0, 256, "rank 0, step 0: chunk 0 has a stage that is out of range");
}

static void another_order(void **state)
{
	/* 2 to 0 to 1: right in order of nothing. */
	const char *const from_above = "program reduce algorithm test n 3 root 1 chunks 1\n"
				       "rank 0\n recv_reduce chunk 0 from 2\n send chunk 0 to 1\n"
				       "rank 1\n recv_reduce chunk 0 from 0 final\n"
				       "rank 2\n send chunk 0 to 0\n";
	/* 0 op (1 op 2). */
	const char *const from_the_right =
		"program reduce algorithm test n 3 root 0 chunks 1\n"
		"rank 0\n recv_reduce chunk 0 from 1 final\n"
		"rank 1\n recv_reduce chunk 0 from 2\n send chunk 0 to 0\n"
		"rank 2\n send chunk 0 to 1\n";
	/* (0 op 1) op 2. */
	const char *const in_two = "program reduce algorithm test n 3 root 2 chunks 1\n"
				   "rank 0\n send chunk 0 to 1\n"
				   "rank 1\n recv_reduce chunk 0 from 0\n send chunk 0 to 2\n"
				   "rank 2\n recv_reduce chunk 0 from 1 final\n";

	(void)state;
	refused_in_order(from_above, TTI_ORDER_RANKS,
			 "rank 0, step 0: chunk 0 is reduced with rank 2's contribution where rank "
			 "1's must come");
	refused_in_order(from_the_right, TTI_ORDER_RANKS,
			 "rank 1, step 0: chunk 0 is reduced with rank 1's contribution where rank "
			 "0's must come");
	refused_in_order(in_two, TTI_ORDER_ONE_PASS,
			 "rank 1, step 0: chunk 0 is reduced with the contributions of ranks 0 to "
			 "1, not with all in one pass");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_contribution),
		cmocka_unit_test(a_contribution_that_comes_twice),
		cmocka_unit_test(a_deadlock_by_order),
		cmocka_unit_test(a_deadlock_by_strict_order),
		cmocka_unit_test(a_deadlock_by_slots),
		cmocka_unit_test(a_deadlock_by_shared_slots),
		cmocka_unit_test(a_send_that_is_missing),
		cmocka_unit_test(a_message_that_nobody_takes),
		cmocka_unit_test(a_value_used_before_it_is_there),
		cmocka_unit_test(a_wrong_chunk),
		cmocka_unit_test(a_wrong_peer),
		cmocka_unit_test(a_final_in_the_wrong_place),
		cmocka_unit_test(an_output_that_nobody_writes),
		cmocka_unit_test(a_reduction_where_there_is_none),
		cmocka_unit_test(a_copy_that_makes_no_sense),
		cmocka_unit_test(a_wrong_number_of_chunks),
		cmocka_unit_test(programs_that_do_not_belong_together),
		cmocka_unit_test(messages_are_programs),
		cmocka_unit_test(stages_that_do_not_fit),
		cmocka_unit_test(another_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
