/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "topo/detect/cpuset.h"
#include "util/fault.h"

static char *text_of(const struct tti_cpuset *set)
{
	struct tti_strbuf buf = { 0 };

	tti_cpuset_format(set, &buf);
	return tti_strbuf_take(&buf);
}

static void assert_text(const struct tti_cpuset *set, const char *want)
{
	char *text = text_of(set);

	assert_string_equal(text, want);
	free(text);
}

static void maps_are_read_and_trimmed(void **state)
{
	static const struct {
		const char *text, *want;
	} good[] = {
		{ "f", "0000000f" },
		{ "0000,00000011,11111111", "00000011,11111111" },
		{ "00000000", "00000000" },
		{ "0,0", "00000000" },
		{ "0xf", "0000000f" },
		{ "ff,ff000000,00000000,00000000", "000000ff,ff000000,00000000,00000000" },
	};
	static const char *const bad[] = { "",   ",",  "f,",  ",f",   "g",   "1ffffffff",
					   "-1", "+1", "f f", "f,,f", "0-3", "f\n" };
	struct tti_cpuset set = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(tti_cpuset_parse_map(&set, good[i].text));
		assert_text(&set, good[i].want);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_false(tti_cpuset_parse_map(&set, bad[i]));
		assert_true(tti_cpuset_is_empty(&set));
	}
	tti_cpuset_release(&set);
}

static void lists_are_read(void **state)
{
	static const struct {
		const char *text, *want;
	} good[] = {
		{ "", "00000000" },          { "0", "00000001" },
		{ "0-7,16-23", "00ff00ff" }, { "31-32", "00000001,80000000" },
		{ "0,4,8,12", "00001111" },
	};
	static const char *const bad[] = { ",",  "-",         "1-",
					   "-1", "3-1",       "1 2",
					   "a",  "0-1048576", "0-99999999999999999999" };
	struct tti_cpuset set = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(tti_cpuset_parse_list(&set, good[i].text));
		assert_text(&set, good[i].want);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(tti_cpuset_parse_list(&set, bad[i]));
	assert_true(tti_cpuset_parse_list(&set, "1048575"));
	assert_true(tti_cpuset_has(&set, 1048575));
	assert_false(tti_cpuset_has(&set, 1048574));
	assert_false(tti_cpuset_has(&set, UINT64_MAX));
	tti_cpuset_release(&set);
}

static void sets_are_compared(void **state)
{
	struct tti_cpuset low = { 0 }, high = { 0 }, all = { 0 }, none = { 0 };

	(void)state;
	assert_true(tti_cpuset_parse_list(&low, "0-3"));
	assert_true(tti_cpuset_parse_list(&high, "40-43"));
	assert_true(tti_cpuset_parse_list(&all, "0-63"));
	assert_true(tti_cpuset_is_within(&low, &all) && tti_cpuset_is_within(&high, &all));
	assert_false(tti_cpuset_is_within(&all, &low));
	assert_false(tti_cpuset_is_within(&high, &low));
	assert_true(tti_cpuset_is_within(&none, &low));
	assert_true(tti_cpuset_meets(&all, &high) && tti_cpuset_meets(&high, &all));
	assert_false(tti_cpuset_meets(&low, &high) || tti_cpuset_meets(&none, &all));
	assert_int_equal(tti_cpuset_next(&high, 0), 40);
	assert_int_equal(tti_cpuset_next(&high, 44), TTI_CPUSET_MAX);
	tti_cpuset_and(&all, &high);
	assert_text(&all, "00000f00,00000000");
	tti_cpuset_and(&all, &low);
	assert_true(tti_cpuset_is_empty(&all));
	tti_cpuset_release(&low);
	tti_cpuset_release(&high);
	tti_cpuset_release(&all);
	tti_cpuset_release(&none);
}

static void out_of_memory_is_told(void **state)
{
	struct tti_cpuset set = { 0 };

	(void)state;
	tti_fault_set("mem:1");
	assert_false(tti_cpuset_parse_list(&set, "0-3") || !set.failed);
	set.failed = false;
	tti_fault_set("mem:1");
	assert_false(tti_cpuset_parse_map(&set, "f") || !set.failed);
	tti_fault_set(NULL);
	assert_true(tti_cpuset_is_empty(&set));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_are_read_and_trimmed),
		cmocka_unit_test(lists_are_read),
		cmocka_unit_test(sets_are_compared),
		cmocka_unit_test(out_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
