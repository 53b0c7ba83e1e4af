/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "util/fault.h"
#include "util/json.h"

static void expect(struct tti_strbuf *buf, const char *want)
{
	char *text = tti_strbuf_take(buf);

	assert_string_equal(text, want);
	free(text);
}

static void commas_stand_between_values(void **state)
{
	struct tti_strbuf buf = { 0 };
	struct tti_json json = { .out = &buf };

	(void)state;
	tti_json_open(&json, NULL, "{");
	tti_json_addf(&json, "n", "%d", 3);
	tti_json_open(&json, "list", "[");
	tti_json_close(&json);
	tti_json_open(&json, "more", "[");
	tti_json_addf(&json, NULL, "null");
	tti_json_bool(&json, NULL, true);
	tti_json_close(&json);
	tti_json_real(&json, "gbps", 12, 9);
	tti_json_real(&json, "third", 1 / 3.0, 3);
	tti_json_close(&json);
	expect(&buf, "{\"n\":3,\"list\":[],\"more\":[null,true],\"gbps\":12.0,\"third\":0.333}");
}

static void strings_are_escaped(void **state)
{
	struct tti_strbuf buf = { 0 };
	struct tti_json json = { .out = &buf, .spaced = true };

	(void)state;
	tti_json_open(&json, NULL, "[");
	tti_json_text(&json, NULL, "a\"b\\\n");
	tti_json_text(&json, NULL, NULL);
	tti_json_text(&json, NULL, "\xc3\xa9");
	tti_json_text(&json, NULL, "x\xff");
	tti_json_close(&json);
	expect(&buf, "[\"a\\\"b\\\\\\n\", \"\", \"\xc3\xa9\", \"x?\"]");
}

/* Only brackets whose members have lines of their own count for the indentation. */
static void members_stand_on_lines(void **state)
{
	struct tti_strbuf buf = { 0 };
	struct tti_json json = { .out = &buf };

	(void)state;
	tti_json_open(&json, NULL, "{\n");
	tti_json_open(&json, "ring", " {");
	tti_json_open(&json, "channels", "[\n");
	tti_json_addf(&json, NULL, "1");
	tti_json_addf(&json, NULL, "2");
	tti_json_close(&json);
	tti_json_close(&json);
	tti_json_open(&json, "none", "[\n");
	tti_json_close(&json);
	tti_json_close(&json);
	expect(&buf, "{\n  \"ring\": {\"channels\":[\n    1,\n    2\n  ]},\n  \"none\":[\n  ]\n}");
}

static void no_memory_is_remembered(void **state)
{
	struct tti_strbuf buf = { 0 };
	struct tti_json json = { .out = &buf };

	(void)state;
	tti_fault_set("mem:1");
	tti_json_text(&json, NULL, "text");
	tti_fault_set(NULL);
	assert_true(buf.failed);
	tti_strbuf_release(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commas_stand_between_values),
		cmocka_unit_test(strings_are_escaped),
		cmocka_unit_test(members_stand_on_lines),
		cmocka_unit_test(no_memory_is_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
