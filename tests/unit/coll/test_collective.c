/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "coll/collective.h"
#include "coll/program.h"
#include "util/strbuf.h"

/* What the public headers promise of each collective, written down once more. */
static const char *const facts[] = {
	"all_reduce: reduces op",
	"broadcast: rooted",
	"reduce: rooted reduces op",
	"all_gather: by_rank gets_rows recv=-own",
	"reduce_scatter: reduces op by_rank sends_rows recv=+own",
	"barrier: reduces",
	"send_recv:",
	"handoff:",
	"all_to_all: by_pair sends_rows gets_rows",
	"gather: rooted by_rank gets_rows recv=-own",
	"scatter: rooted by_rank sends_rows recv=+own",
	"all_to_all_v: by_pair counts pairs",
	"gather_v: rooted by_rank counts pairs recv=-own",
	"scatter_v: rooted by_rank counts pairs recv=+own",
	"all_gather_v: by_rank counts recv=-own program=all_gather",
	"reduce_scatter_v: reduces op by_rank counts recv=+own program=reduce_scatter",
};

static void facts_of(tutti_collective coll, struct tti_strbuf *out)
{
	static const struct {
		const char *text;
		bool (*is)(tutti_collective coll);
	} question[] = {
		{ " rooted", tti_collective_is_rooted },
		{ " reduces", tti_collective_reduces },
		{ " op", tti_collective_takes_op },
		{ " by_rank", tti_collective_is_by_rank },
		{ " by_pair", tti_collective_is_by_pair },
		{ " sends_rows", tti_collective_sends_rows },
		{ " gets_rows", tti_collective_gets_rows },
		{ " counts", tti_has_counts },
		{ " pairs", tti_is_by_pairs },
	};
	const size_t offset = tti_collective_in_place(coll, 1000);
	const tutti_collective program = tti_collective_get(coll)->program;

	tti_strbuf_addf(out, "%s:", tutti_collective_name(coll));
	for (size_t i = 0; i < sizeof(question) / sizeof(question[0]); i++)
		if (question[i].is(coll))
			tti_strbuf_addf(out, "%s", question[i].text);
	if (offset != 0)
		tti_strbuf_addf(out, " recv=%s",
				offset == 1000       ? "+own"
				: offset + 1000 == 0 ? "-own"
						     : "?");
	if (program != coll)
		tti_strbuf_addf(out, " program=%s", tutti_collective_name(program));
}

static void each_row_says_what_is_promised(void **state)
{
	(void)state;
	assert_int_equal(sizeof(facts) / sizeof(facts[0]), TUTTI_COLLECTIVE_COUNT);
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++) {
		struct tti_strbuf text = { 0 };

		facts_of((tutti_collective)coll, &text);
		assert_string_equal(text.text, facts[coll]);
		tti_strbuf_release(&text);
	}
}

/* Values that are no collective may come, of a peer's report: nothing is true of them. */
static void what_is_no_collective_has_no_property(void **state)
{
	static const int values[] = { -1, TUTTI_COLLECTIVE_COUNT, 0xff };

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct tti_strbuf text = { 0 };

		facts_of((tutti_collective)values[i], &text);
		assert_true(strncmp(text.text, "?:", 2) == 0);
		assert_null(strchr(text.text, '+'));
		assert_null(strstr(text.text, "rooted"));
		tti_strbuf_release(&text);
	}
}

/* Which ranks of four have chunks as input and as output, root 2: a letter for each chunk,
 * '#' both, 'i', 'o', '.' none. */
static void holders_of_chunks(void **state)
{
	static const struct {
		tutti_collective coll;
		int nchunks;
		const char *want[4];
	} tests[] = {
		{ TUTTI_ALL_REDUCE, 4, { "####", "####", "####", "####" } },
		{ TUTTI_BROADCAST, 4, { "oooo", "oooo", "####", "oooo" } },
		{ TUTTI_REDUCE, 4, { "iiii", "iiii", "####", "iiii" } },
		{ TUTTI_ALL_GATHER, 4, { "#ooo", "o#oo", "oo#o", "ooo#" } },
		{ TUTTI_REDUCE_SCATTER, 8, { "##iiiiii", "ii##iiii", "iiii##ii", "iiiiii##" } },
		{ TUTTI_BARRIER, 1, { "#", "#", "#", "#" } },
		{ TUTTI_ALL_TO_ALL,
		  16,
		  { "#iiio...o...o...", ".o..i#ii.o...o..", "..o...o.ii#i..o.",
		    "...o...o...oiii#" } },
		{ TUTTI_GATHER, 4, { "i...", ".i..", "oo#o", "...i" } },
		{ TUTTI_SCATTER, 4, { "o...", ".o..", "ii#i", "...o" } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		for (int rank = 0; rank < 4; rank++) {
			const struct tti_program prog = { .coll = tests[i].coll,
							  .rank = rank,
							  .n = 4,
							  .root = 2,
							  .nchunks = tests[i].nchunks };
			char got[17] = "";

			for (int chunk = 0; chunk < prog.nchunks; chunk++)
				got[chunk] = ".io#"[tti_chunk_is_input(&prog, chunk) +
						    2 * tti_chunk_is_output(&prog, chunk)];
			assert_string_equal(got, tests[i].want[rank]);
		}
}

/* A handoff says it of each chunk, messages by their first step. */
static void holders_that_a_program_states(void **state)
{
	struct tti_program prog = { .coll = TUTTI_HANDOFF, .n = 2, .nchunks = 3 };

	(void)state;
	assert_true(tti_vec_push(&prog.ends, TTI_END_INPUT));
	assert_true(tti_vec_push(&prog.ends, TTI_END_OUTPUT));
	assert_true(tti_chunk_is_input(&prog, 0) && !tti_chunk_is_output(&prog, 0));
	assert_true(!tti_chunk_is_input(&prog, 1) && tti_chunk_is_output(&prog, 1));
	assert_true(!tti_chunk_is_input(&prog, 2) && !tti_chunk_is_output(&prog, 2));
	tti_program_release(&prog);

	prog = (struct tti_program){ .coll = TUTTI_SEND_RECV, .n = 2, .nchunks = 3 };
	tti_send(&prog, 0, 1);
	tti_recv(&prog, 1, 1);
	assert_true(tti_chunk_is_input(&prog, 0) && !tti_chunk_is_output(&prog, 0));
	assert_true(!tti_chunk_is_input(&prog, 1) && tti_chunk_is_output(&prog, 1));
	assert_true(!tti_chunk_is_input(&prog, 2) && !tti_chunk_is_output(&prog, 2));
	tti_program_release(&prog);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_row_says_what_is_promised),
		cmocka_unit_test(what_is_no_collective_has_no_property),
		cmocka_unit_test(holders_of_chunks),
		cmocka_unit_test(holders_that_a_program_states),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
