/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "coll/files/text.h"
#include "insight/plan/program_print.h"
#include "tutti/insight.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/mem.h"

static void release(struct tti_program *prog, int n)
{
	for (int rank = 0; rank < n; rank++)
		tti_program_release(&prog[rank]);
	tti_free(prog);
}

static char *print_all(const struct tti_program *prog, int n)
{
	struct tti_strbuf buf = { 0 };
	char *text;

	tti_program_print_head(prog, &buf);
	for (int rank = 0; rank < n; rank++)
		tti_program_print_rank(&prog[rank], &buf);
	text = tti_strbuf_take(&buf);
	assert_non_null(text);
	return text;
}

/* What is printed is read as the same and prints as the same, and is proven. */
static void everything_comes_back(void **state)
{
	const char *name;

	(void)state;
	for (int coll = 0; coll < TUTTI_COLLECTIVE_COUNT; coll++)
		for (int i = 0; (name = tutti_algorithm_name((tutti_collective)coll, i)); i++)
			for (int n = 1; n <= 9; n++) {
				struct tti_program *prog;
				char *text, *again;
				int found;

				assert_int_equal(tutti_program_print((tutti_collective)coll, name,
								     n, n / 2, -1, 0, &text),
						 TUTTI_OK);
				assert_int_equal(tti_program_read(text, &prog, &found), TUTTI_OK);
				assert_int_equal(found, n);
				again = print_all(prog, n);
				assert_string_equal(text, again);
				assert_int_equal(tutti_program_verify(text), TUTTI_OK);
				release(prog, n);
				free(again);
				free(text);
			}
}

/* Set by --write: make the golden files instead of comparing with them. */
static bool write_golden;

/* tests/golden/coll/NAME. */
static FILE *open_golden(const char *name, const char *mode)
{
	char path[500];
	FILE *file;

	snprintf(path, sizeof(path), "%s/coll/%s", TEST_GOLDEN, name);
	file = fopen(path, mode);
	if (!file)
		fail_msg("%s is missing", path);
	return file;
}

static void check_golden(tutti_collective coll, const char *algorithm)
{
	const int root = coll == TUTTI_BROADCAST ? 1 : 0;
	char name[100], *text, *golden;
	FILE *file;

	assert_int_equal(tutti_program_print(coll, algorithm, 4, root, -1, 0, &text), TUTTI_OK);
	snprintf(name, sizeof(name), "%s-%s-4.txt", tutti_collective_name(coll), algorithm);
	if (write_golden) {
		file = open_golden(name, "w");
		fputs(text, file);
		fclose(file);
	}
	file = open_golden(name, "r");
	golden = calloc(1, 65536);
	assert_non_null(golden);
	assert_true(fread(golden, 1, 65535, file) > 0);
	fclose(file);
	assert_string_equal(text, golden);
	free(golden);
	free(text);
}

static void printouts_are_as_they_were(void **state)
{
	(void)state;
	check_golden(TUTTI_ALL_REDUCE, "exchange");
	check_golden(TUTTI_ALL_REDUCE, "direct");
	check_golden(TUTTI_ALL_REDUCE, "ring");
	check_golden(TUTTI_ALL_REDUCE, "double_tree");
	check_golden(TUTTI_BROADCAST, "binomial");
	check_golden(TUTTI_ALL_GATHER, "bruck");
}

static void one_rank_and_json(void **state)
{
	json_t *root, *ranks, *step;
	char *text;

	(void)state;
	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, "ring", 4, 0, 2, 0, &text),
			 TUTTI_OK);
	assert_non_null(strstr(text, "\nrank 2\n"));
	assert_null(strstr(text, "rank 0"));
	free(text);

	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, "ring", 4, 0, -1, 1, &text),
			 TUTTI_OK);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	assert_string_equal(json_string_value(json_object_get(root, "collective")), "all_reduce");
	assert_string_equal(json_string_value(json_object_get(root, "algorithm")), "ring");
	ranks = json_object_get(root, "ranks");
	assert_int_equal(json_array_size(ranks), 4);
	step = json_array_get(json_object_get(json_array_get(ranks, 3), "steps"), 5);
	assert_string_equal(json_string_value(json_object_get(step, "kind")), "recv_reduce");
	assert_int_equal(json_integer_value(json_object_get(step, "chunk")), 3);
	assert_int_equal(json_integer_value(json_object_get(step, "peer")), 2);
	assert_true(json_is_true(json_object_get(step, "final")));
	json_decref(root);
	free(text);
}

static void what_cannot_be_printed(void **state)
{
	char *text;

	(void)state;
	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, "rign", 4, 0, -1, 0, &text),
			 TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "it has exchange, direct, ring"));
	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, NULL, 4, 0, -1, 0, &text),
			 TUTTI_EINVAL);
	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, "ring", 0, 0, -1, 0, &text),
			 TUTTI_EINVAL);
	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, "ring", 4, 4, -1, 0, &text),
			 TUTTI_EINVAL);
	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, "ring", 4, 0, 4, 0, &text),
			 TUTTI_EINVAL);
	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, "ring", 4096, 0, -1, 0, &text),
			 TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "choose a rank"));
	assert_int_equal(tutti_program_print(TUTTI_ALL_REDUCE, "ring", 4, 0, -1, 0, NULL),
			 TUTTI_EINVAL);
	assert_int_equal(tutti_program_verify(NULL), TUTTI_EINVAL);
	assert_null(tutti_algorithm_name(TUTTI_ALL_TO_ALL_V, 0));
	assert_null(tutti_algorithm_name((tutti_collective)99, 0));
	assert_null(tutti_algorithm_name(TUTTI_ALL_REDUCE, INT32_MIN));
}

static void refused(const char *text, const char *expected)
{
	struct tti_program *prog;
	int n;

	assert_int_equal(tti_program_read(text, &prog, &n), TUTTI_EINVAL);
	if (!strstr(tti_error_text(), expected))
		fail_msg("expected \"%s\", is \"%s\"", expected, tti_error_text());
}

#define HEAD "program broadcast algorithm test n 2 root 0 chunks 1\n"

static void mistakes_are_named(void **state)
{
	(void)state;
	refused("", "line 0: must be \"program");
	refused("rank 0\n", "line 1: must be \"program");
	refused("\n\nprogram broadcast\n", "line 3: must be \"program");
	refused("program bcast algorithm t n 2 root 0 chunks 1\n",
		"line 1: no collective \"bcast\"");
	refused("program broadcast algorithm \"t n 2 root 0 chunks 1\n",
		"no name for an algorithm");
	refused("program broadcast algorithm t n 0 root 0 chunks 1\n", "n 0: 1 to 4096");
	refused("program broadcast algorithm t n 4097 root 0 chunks 1\n", "n 4097: 1 to 4096");
	refused("program broadcast algorithm t n 9999999999 root 0 chunks 1\n", "must be");
	refused("program broadcast algorithm t n 2 root 2 chunks 1\n", "root 2 of 2 ranks");
	refused("program broadcast algorithm t n 2 root -1 chunks 1\n", "must be");
	refused("program broadcast algorithm t n 2 root 0 chunks 0\n", "chunks 0");
	refused("program broadcast algorithm t n 2 root 0 chunks 1048577\n", "chunks 1048577");
	refused(HEAD "send chunk 0 to 1\n", "line 2: a step before");
	refused(HEAD "rank 0\nrank 1\nrank 0\n", "line 4: rank 0 was there before");
	refused(HEAD "rank 0\nrank 2\n", "line 3: must be \"rank R [in_place]\", R below 2");
	refused(HEAD "rank 0 in place\n", "line 2: must be \"rank R [in_place]\"");
	refused(HEAD "rank 0\n wait to 1\n", "line 3: must be \"send");
	refused(HEAD "rank 0\n notify chunk 0 to 1\n", "line 3: must be \"send");
	refused(HEAD "rank 0\n put chunk 0 from 1\n", "line 3: must be \"send");
	refused(HEAD "rank 0\n get chunk 0 from 1 stage\n", "line 3: must be \"send");
	refused(HEAD "rank 0\n get chunk 0 from 1 final\n", "line 3: must be \"send");
	refused(HEAD "rank 0\n", "the text ends without rank 1");
	refused(HEAD "rank 0\n send chunk 0 from 1\n", "line 3: must be \"send");
	refused(HEAD "rank 0\n send chunk 0 to 1 final\n", "line 3: must be \"send");
	refused(HEAD "rank 0\n send chunk 0\n", "line 3: must be \"send");
	refused(HEAD "rank 0\n recv_reduce chunk 0 from 1 fina\n", "line 3: must be \"send");
	refused(HEAD "rank 0\n copy chunk 0 to 1\n", "line 3: must be \"send");
	refused(HEAD "rank 0\n 0\n", "line 3: must be \"send");
	refused(HEAD "rank 0\n 1 send chunk 0 to 1\n",
		"line 3: number 1, but it is step 0 of rank 0");
	refused(HEAD "rank 0\n a b c d e f g h i j k\n", "line 3: too many words");
}

static void comments_and_numbers_are_optional(void **state)
{
	struct tti_program *prog;
	int n;

	(void)state;
	assert_int_equal(tti_program_read("# a program\n\n" HEAD "rank 1 # first\r\n"
					  "\trecv chunk 0 from 0\r\n\nrank 0\n"
					  "0 send chunk 0 to 1 # no newline",
					  &prog, &n),
			 TUTTI_OK);
	assert_int_equal(n, 2);
	assert_string_equal(prog[1].algorithm, "test");
	assert_int_equal(prog[1].rank, 1);
	assert_int_equal(prog[1].steps.n, 1);
	assert_int_equal(prog[1].steps.at[0].kind, TTI_RECV);
	assert_int_equal(prog[0].steps.at[0].peer, 1);
	release(prog, n);
}

/* Every step that only memory programs have, a rank in place, a stage. */
static void memory_programs_come_back(void **state)
{
	static const char *const text = "program all_reduce algorithm test n 2 root 0 chunks 2\n"
					"rank 0 in_place\n"
					"  0 notify to 1\n"
					"  1 wait for 1\n"
					"  2 get_reduce chunk 0 from 1 final\n"
					"  3 put chunk 0 to 1\n"
					"  4 copy chunk 1 stage 1\n"
					"rank 1\n"
					"  0 get chunk 0 from 0\n";
	struct tti_program *prog;
	struct tti_strbuf json = { 0 };
	json_t *root, *steps;
	char *again;
	int n;

	(void)state;
	assert_int_equal(tti_program_read(text, &prog, &n), TUTTI_OK);
	assert_true(prog[0].in_place);
	assert_false(prog[1].in_place);
	assert_int_equal(prog[0].steps.at[1].kind, TTI_WAIT);
	assert_int_equal(prog[0].steps.at[1].peer, 1);
	assert_true(prog[0].steps.at[2].final);
	assert_int_equal(prog[0].steps.at[4].stage, 1);
	again = print_all(prog, n);
	assert_string_equal(text, again);
	free(again);
	assert_int_equal(tti_program_print_json(prog, n, &json), TUTTI_OK);
	root = json_loads(json.text, 0, NULL);
	assert_non_null(root);
	assert_true(json_is_true(
		json_object_get(json_array_get(json_object_get(root, "ranks"), 0), "in_place")));
	steps = json_object_get(json_array_get(json_object_get(root, "ranks"), 0), "steps");
	assert_string_equal(json_string_value(json_object_get(json_array_get(steps, 0), "kind")),
			    "notify");
	assert_null(json_object_get(json_array_get(steps, 0), "chunk"));
	assert_int_equal(json_integer_value(json_object_get(json_array_get(steps, 4), "stage")), 1);
	json_decref(root);
	tti_strbuf_release(&json);
	release(prog, n);
}

/* Whichever allocation fails, it is said, and nothing leaks (under sanitizers). */
static void memory_may_run_out(void **state)
{
	char *text = NULL, fault[32];
	tutti_status st = TUTTI_ENOMEM;
	int passes = 0;

	(void)state;
	for (int which = 0; which < 2; which++) {
		for (int k = 1; k < 100000; k++, passes++) {
			snprintf(fault, sizeof(fault), "mem:%d", k);
			tti_fault_set(fault);
			st = which ? tutti_program_verify(text)
				   : tutti_program_print(TUTTI_ALL_REDUCE, "direct", 6, 0, -1,
							 k % 2, &text);
			tti_fault_set(NULL);
			if (st == TUTTI_OK)
				break;
			assert_int_equal(st, TUTTI_ENOMEM);
		}
		assert_int_equal(st, TUTTI_OK);
		if (!which) {
			free(text);
			assert_int_equal(
				tutti_program_print(TUTTI_ALL_REDUCE, "direct", 6, 0, -1, 0, &text),
				TUTTI_OK);
		}
	}
	assert_true(passes > 100);
	free(text);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everything_comes_back),
		cmocka_unit_test(printouts_are_as_they_were),
		cmocka_unit_test(one_rank_and_json),
		cmocka_unit_test(what_cannot_be_printed),
		cmocka_unit_test(mistakes_are_named),
		cmocka_unit_test(comments_and_numbers_are_optional),
		cmocka_unit_test(memory_programs_come_back),
		cmocka_unit_test(memory_may_run_out),
	};

	write_golden = argc > 1 && strcmp(argv[1], "--write") == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
