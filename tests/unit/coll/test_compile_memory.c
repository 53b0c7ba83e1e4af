/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory programs, and programs in place, from steps to operations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "coll/compile/compile.h"
#include "coll/files/text.h"
#include "util/error.h"
#include "util/mem.h"

/* One rank of the programs of a text. */
static tutti_status compile_text(const char *text, int rank, struct tti_compiled *out)
{
	struct tti_program *prog;
	tutti_status st;
	int n;

	if (tti_program_read(text, &prog, &n) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	st = tti_compile(&prog[rank], out);
	for (int r = 0; r < n; r++)
		tti_program_release(&prog[r]);
	tti_free(prog);
	return st;
}

static void compiled(const char *text, int rank, struct tti_compiled *out)
{
	if (compile_text(text, rank, out) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	/* The name was the text's. */
	out->algorithm = "test";
}

static void refused(const char *text, const char *expected)
{
	struct tti_compiled c;

	assert_int_equal(compile_text(text, 0, &c), TUTTI_EINVAL);
	if (!strstr(tti_error_text(), expected))
		fail_msg("expected \"%s\", is \"%s\"", expected, tti_error_text());
}

#define ALL_REDUCE_OF_4 "program all_reduce algorithm test n 4 root 0 chunks 4\n"
#define SWAP_OF_2       "program all_to_all algorithm test n 2 root 0 chunks 4\n"

/* One pass from all inputs to all outputs, in the order of ranks. */
static void a_reduction_is_one_operation(void **state)
{
	static const int got[] = { 0, 1, 3 }, put[] = { 3, 0, 1 };
	struct tti_compiled c;
	const struct tti_operation *oper;

	(void)state;
	compiled(ALL_REDUCE_OF_4 "rank 0\nrank 1\n"
				 "rank 2\n notify to 3\n notify to 0\n notify to 1\n"
				 " wait for 3\n wait for 0\n wait for 1\n"
				 " get_reduce chunk 2 from 3\n get_reduce chunk 2 from 0\n"
				 " get_reduce chunk 2 from 1 final\n"
				 " put chunk 2 to 3\n put chunk 2 to 0\n put chunk 2 to 1\n"
				 " notify to 3\n wait for 3\nrank 3\n",
		 2, &c);
	assert_true(c.is_memory);
	assert_int_equal(c.nopers, 5);
	assert_int_equal(c.nscratch, 0);
	assert_true(c.oper[0].sync && c.oper[1].sync && c.oper[3].sync && c.oper[4].sync);
	assert_int_equal(c.oper[0].nout, 3);
	assert_int_equal(c.queue[c.queue_of[c.oper[0].out]].peer, 3);
	assert_int_equal(c.oper[0].nin, 0);
	assert_int_equal(c.oper[1].nin, 3);
	assert_int_equal(c.queue[c.queue_of[c.oper[1].in]].peer, 0);
	assert_int_equal(c.oper[0].from, TTI_PLACE_NONE);
	assert_int_equal(c.oper[0].to, TTI_PLACE_NONE);
	assert_int_equal(c.oper[3].nout, 1);
	assert_int_equal(c.oper[4].nin, 1);
	oper = &c.oper[2];
	assert_false(oper->sync);
	assert_int_equal(oper->chunk, 2);
	assert_int_equal(oper->nin + oper->nout, 0);
	assert_int_equal(oper->from, TTI_PLACE_INPUT);
	assert_int_equal(oper->to, TTI_PLACE_OUTPUT);
	assert_int_equal(oper->final, 1);
	assert_int_equal(oper->local_at, 2);
	assert_int_equal(oper->nget, 3);
	assert_int_equal(oper->nput, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(c.peer_of[oper->get + i], got[i]);
		assert_int_equal(c.peer_of[oper->put + i], put[i]);
	}
	assert_int_equal(c.step[2], 6);
	assert_int_equal(c.nlocal, 1);
	assert_int_equal(c.local[0], 2);
	tti_compiled_release(&c);
}

/* A second message to a peer, and what is not to be put at once. */
static void rows_end(void **state)
{
	struct tti_compiled c;

	(void)state;
	compiled(ALL_REDUCE_OF_4 "rank 0\n notify to 1\n notify to 2\n notify to 1\n"
				 " get_reduce chunk 0 from 2 final\n get_reduce chunk 0 from 1\n"
				 " put chunk 0 to 1\n put chunk 0 to 1\n put chunk 1 to 2\n"
				 " put chunk 1 to 3 stage 1\nrank 1\nrank 2\nrank 3\n",
		 0, &c);
	assert_int_equal(c.nopers, 7);
	assert_int_equal(c.oper[0].nout, 2);
	assert_int_equal(c.oper[1].nout, 1);
	assert_int_equal(c.oper[2].nget, 1);
	assert_int_equal(c.oper[2].final, 1);
	assert_int_equal(c.oper[2].nput, 0);
	assert_int_equal(c.oper[3].nget, 1);
	assert_int_equal(c.oper[3].from, TTI_PLACE_OUTPUT);
	assert_int_equal(c.oper[3].nput, 1);
	assert_int_equal(c.oper[4].nput, 1);
	assert_int_equal(c.oper[4].from, TTI_PLACE_OUTPUT);
	assert_int_equal(c.oper[4].to, TTI_PLACE_NONE);
	assert_int_equal(c.oper[5].from, TTI_PLACE_INPUT);
	assert_int_equal(c.oper[6].stage, 1);
	/* No copy but those that the program says. */
	assert_int_equal(c.nstages, 2);
	tti_compiled_release(&c);
}

/* Partial results are kept within a run; the next one has the room again. */
static void scratch_is_of_one_run(void **state)
{
	struct tti_compiled c;

	(void)state;
	compiled("program reduce algorithm test n 2 root 1 chunks 4\n"
		 "rank 0\n get_reduce chunk 0 from 1 final\n get_reduce chunk 1 from 1 final\n"
		 " put chunk 0 to 1\n put chunk 1 to 1\n"
		 " get_reduce chunk 2 from 1 stage 1 final\n put chunk 2 to 1 stage 1\n"
		 " notify to 1\n get_reduce chunk 3 from 1 final\n put chunk 3 to 1\n"
		 "rank 1\n",
		 0, &c);
	assert_int_equal(c.nopers, 7);
	assert_int_equal(c.nscratch, 2);
	assert_int_equal(c.oper[0].to, TTI_PLACE_SCRATCH);
	assert_int_equal(c.oper[0].scratch, 0);
	assert_int_equal(c.oper[1].scratch, 1);
	assert_int_equal(c.oper[2].from, TTI_PLACE_SCRATCH);
	assert_int_equal(c.oper[2].scratch, 0);
	assert_int_equal(c.oper[3].scratch, 1);
	assert_int_equal(c.oper[4].scratch, 0);
	assert_int_equal(c.oper[4].nput, 1);
	assert_int_equal(c.oper[6].scratch, 0);
	tti_compiled_release(&c);
	refused("program reduce algorithm test n 2 root 1 chunks 1\n"
		"rank 0\n get_reduce chunk 0 from 1 final\n notify to 1\n put chunk 0 to 1\nrank "
		"1\n",
		"rank 0, step 2: chunk 0 is used after the run of steps that had it in scratch");
	refused("program reduce algorithm test n 2 root 1 chunks 1\n"
		"rank 0\n get_reduce chunk 0 from 1 final\n put chunk 0 to 1 stage 1\nrank 1\n",
		"rank 0, step 1: chunk 0 is used after the run of steps that had it in scratch");
}

/* What comes from the peer lies in place where what goes to it did, so it waits in scratch. */
static void in_place_results_wait(void **state)
{
	static const char *const format[] = { "rank 0\n", "rank 0 in_place\n" };
	struct tti_compiled c;
	char text[500];

	(void)state;
	for (int in_place = 0; in_place < 2; in_place++) {
		strcpy(text, SWAP_OF_2);
		strcat(text, format[in_place]);
		strcat(text, " wait for 1\n get chunk 2 from 1\n put chunk 1 to 1\n copy chunk 0\n"
			     " notify to 1\nrank 1\n");
		compiled(text, 0, &c);
		assert_int_equal(c.nopers, 5 + in_place);
		assert_int_equal(c.nscratch, in_place);
		assert_int_equal(c.oper[1].nget, 1);
		assert_int_equal(c.oper[1].from, TTI_PLACE_NONE);
		assert_int_equal(c.oper[1].to, in_place ? TTI_PLACE_SCRATCH : TTI_PLACE_OUTPUT);
		assert_int_equal(c.oper[2].nput, 1);
		assert_int_equal(c.oper[2].from, TTI_PLACE_INPUT);
		if (in_place) {
			assert_int_equal(c.oper[3].chunk, 2);
			assert_int_equal(c.oper[3].from, TTI_PLACE_SCRATCH);
			assert_int_equal(c.oper[3].to, TTI_PLACE_OUTPUT);
			assert_int_equal(c.step[3], -1);
		}
		tti_compiled_release(&c);
	}
	refused(SWAP_OF_2
		"rank 0 in_place\n get chunk 2 from 1\n put chunk 1 to 1 stage 1\nrank 1\n",
		"rank 0, step 1: chunk 1 is read in place after the run of steps that got chunk 2");
}

/* Whether operation b waits for a. */
static bool waits(const struct tti_compiled *c, int a, int b)
{
	for (int i = 0; i < c->oper[a].nsucc; i++)
		if (c->succs[c->oper[a].succ + i] == b)
			return true;
	return false;
}

/* The same of messages: an edge, or scratch. */
static void in_place_messages_wait(void **state)
{
	struct tti_compiled c;

	(void)state;
	compiled(SWAP_OF_2 "rank 0 in_place\n send chunk 1 to 1\n recv chunk 2 from 1\nrank 1\n", 0,
		 &c);
	assert_false(c.is_memory);
	assert_int_equal(c.nopers, 3);
	assert_true(waits(&c, 0, 1));
	assert_int_equal(c.oper[1].to, TTI_PLACE_OUTPUT);
	assert_int_equal(c.nscratch, 0);
	tti_compiled_release(&c);
	compiled(SWAP_OF_2 "rank 0 in_place\n recv chunk 2 from 1\n send chunk 1 to 1\nrank 1\n", 0,
		 &c);
	assert_int_equal(c.nopers, 4);
	assert_int_equal(c.oper[0].to, TTI_PLACE_SCRATCH);
	assert_int_equal(c.oper[2].from, TTI_PLACE_SCRATCH);
	assert_int_equal(c.oper[2].to, TTI_PLACE_OUTPUT);
	assert_true(waits(&c, 0, 2));
	assert_true(waits(&c, 1, 2));
	assert_false(waits(&c, 0, 1));
	tti_compiled_release(&c);
	/* Two buffers: nothing waits. */
	compiled(SWAP_OF_2 "rank 0\n recv chunk 2 from 1\n send chunk 1 to 1\nrank 1\n", 0, &c);
	assert_int_equal(c.nopers, 3);
	assert_int_equal(c.oper[0].nsucc, 0);
	tti_compiled_release(&c);
}

static void mistakes_are_named(void **state)
{
	(void)state;
	refused(ALL_REDUCE_OF_4 "rank 0\n notify to 0\nrank 1\nrank 2\nrank 3\n",
		"rank 0, step 0: a notify of the rank itself");
	refused(ALL_REDUCE_OF_4 "rank 0\n wait for 4\nrank 1\nrank 2\nrank 3\n",
		"rank 0, step 0 (chunk 0): peer 4 is out of range");
	refused(ALL_REDUCE_OF_4 "rank 0\n put chunk 4 to 1\nrank 1\nrank 2\nrank 3\n",
		"rank 0, step 0: chunk 4 is out of range, there are 4");
	refused(ALL_REDUCE_OF_4 "rank 0\n get chunk 0 from 0\nrank 1\nrank 2\nrank 3\n",
		"rank 0, step 0: chunk 0 goes to or comes from the rank itself");
	refused(ALL_REDUCE_OF_4 "rank 0\n put chunk 0 to 1\n put chunk 0 to 5\nrank 1\nrank 2\n"
				"rank 3\n",
		"rank 0, step 1 (chunk 0): peer 5 is out of range");
	refused(ALL_REDUCE_OF_4
		"rank 0\n notify to 1\n send chunk 0 to 1\nrank 1\nrank 2\nrank 3\n",
		"rank 0, step 1: chunk 0 is sent or received in a program that touches memory");
	refused(SWAP_OF_2 "rank 0\n put chunk 2 to 1\nrank 1\n",
		"rank 0, step 0: chunk 2 is sent before it has a value");
	refused(SWAP_OF_2 "rank 0\n get_reduce chunk 1 from 1\nrank 1\n",
		"rank 0, step 0: chunk 1 is reduced in a collective without reduction");
	refused("program reduce_scatter algorithm test n 2 root 0 chunks 2\n"
		"rank 0\n copy chunk 1\n put chunk 1 to 1\nrank 1\n",
		"rank 0, step 0: chunk 1 is copied but is not both input and output here");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reduction_is_one_operation),
		cmocka_unit_test(rows_end),
		cmocka_unit_test(scratch_is_of_one_run),
		cmocka_unit_test(in_place_results_wait),
		cmocka_unit_test(in_place_messages_wait),
		cmocka_unit_test(mistakes_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
