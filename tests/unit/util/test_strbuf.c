/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/fault.h"
#include "util/strbuf.h"

static int no_faults(void **state)
{
	(void)state;
	tti_fault_set(NULL);
	return 0;
}

static void empty_is_the_empty_string(void **state)
{
	struct tti_strbuf buf = { 0 };
	char *text = tti_strbuf_take(&buf);

	(void)state;
	assert_string_equal(text, "");
	free(text);
	tti_strbuf_release(&buf);
}

static void grows_over_many_pieces(void **state)
{
	struct tti_strbuf buf = { 0 };
	char want[12000] = "";
	size_t len = 0;
	char *text;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		tti_strbuf_addf(&buf, "%d:", i);
		tti_strbuf_add(&buf, i % 7 ? "" : "seven ");
		len += (size_t)snprintf(want + len, sizeof(want) - len, "%d:%s", i,
					i % 7 ? "" : "seven ");
		assert_int_equal(buf.len, len);
		assert_true(buf.room > buf.len);
	}
	text = tti_strbuf_take(&buf);
	assert_string_equal(text, want);
	assert_null(buf.text);
	assert_int_equal(buf.len, 0);
	free(text);
}

static void a_piece_may_just_fit(void **state)
{
	(void)state;
	for (int len = 60; len < 70; len++) {
		struct tti_strbuf buf = { 0 };

		tti_strbuf_addf(&buf, "%*s", len, "x");
		assert_int_equal(buf.len, len);
		assert_int_equal(strlen(buf.text), len);
		tti_strbuf_add(&buf, "y");
		assert_int_equal(buf.text[len], 'y');
		tti_strbuf_release(&buf);
		assert_null(buf.text);
	}
}

static void out_of_memory_is_remembered(void **state)
{
	(void)state;
	for (int pass = 1; pass <= 3; pass++) {
		struct tti_strbuf buf = { 0 };
		char list[16];

		snprintf(list, sizeof(list), "mem:%d", pass);
		tti_fault_set(list);
		for (int i = 0; i < 50; i++)
			tti_strbuf_addf(&buf, "rank %d, ", i);
		assert_true(buf.failed);
		tti_strbuf_add(&buf, "more");
		assert_null(tti_strbuf_take(&buf));
		/* Taken, it is good again. */
		assert_false(buf.failed);
		tti_strbuf_add(&buf, "more");
		assert_string_equal(buf.text, "more");
		tti_strbuf_release(&buf);
	}
	tti_fault_set("mem:1");
	assert_null(tti_strbuf_take(&(struct tti_strbuf){ 0 }));
}

static void check_ranks(const char *want, const int *ranks, size_t n)
{
	char buf[64];

	tti_format_ranks(buf, sizeof(buf), ranks, n);
	assert_string_equal(buf, want);
}

static void ranks_as_people_write_them(void **state)
{
	(void)state;
	check_ranks("", NULL, 0);
	check_ranks("5", (int[]){ 5 }, 1);
	check_ranks("0-3, 7", (int[]){ 0, 1, 2, 3, 7 }, 5);
	check_ranks("0-1", (int[]){ 0, 1 }, 2);
	check_ranks("1, 3, 5", (int[]){ 1, 3, 5 }, 3);
	check_ranks("3, 1-2", (int[]){ 3, 1, 2 }, 3);
	check_ranks("4, 4", (int[]){ 4, 4 }, 2);
	check_ranks("-1-0, 2147483646-2147483647", (int[]){ -1, 0, INT_MAX - 1, INT_MAX }, 4);
	check_ranks("2147483647, -2147483648", (int[]){ INT_MAX, INT_MIN }, 2);
}

/* For every size: within it, and either all or a whole number of items. */
static void ranks_that_do_not_fit_are_marked(void **state)
{
	static const int ranks[] = { 0, 1, 2, 10, 100, 101, 102, 1000 };
	static const char all[] = "0-2, 10, 100-102, 1000";

	(void)state;
	for (size_t size = 1; size < 40; size++) {
		char buf[64];
		size_t len;

		memset(buf, '#', sizeof(buf));
		tti_format_ranks(buf, size, ranks, 8);
		len = strlen(buf);
		assert_true(len < size);
		assert_int_equal(buf[size], '#');
		if (size >= sizeof(all)) {
			assert_string_equal(buf, all);
		} else if (size >= sizeof("0-2, ...")) {
			assert_string_equal(buf + len - 5, ", ...");
			assert_memory_equal(buf, all, len - 3);
			assert_true(all[len - 5] == ',');
		}
	}
	tti_format_ranks(NULL, 0, ranks, 8);
}

static void lists_are_cut_between_their_parts(void **state)
{
	static const struct {
		const char *text;
		size_t most;
		const char *want;
	} tests[] = {
		{ "a: no; b: refused", 17, "a: no; b: refused" },
		{ "a: no; b: refused", 16, "a: no; ..." },
		{ "a: no; b: refused", 10, "a: no; ..." },
		{ "a: no; b: refused", 9, "a: ..." },
		{ "cannot be reached", 15, "cannot be ..." },
		{ "one; two; three; four", 18, "one; two; ..." },
		{ "onlyone", 6, "onl..." },
		{ "", 0, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++) {
		char text[32];

		tti_copy_list(text, tests[i].most + 1, tests[i].text);
		assert_string_equal(text, tests[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(empty_is_the_empty_string, no_faults),
		cmocka_unit_test_setup(grows_over_many_pieces, no_faults),
		cmocka_unit_test_setup(a_piece_may_just_fit, no_faults),
		cmocka_unit_test_setup_teardown(out_of_memory_is_remembered, no_faults, no_faults),
		cmocka_unit_test(ranks_as_people_write_them),
		cmocka_unit_test(ranks_that_do_not_fit_are_marked),
		cmocka_unit_test(lists_are_cut_between_their_parts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
