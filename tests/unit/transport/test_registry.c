/* SPDX-License-Identifier: BSD-3-Clause */
/* The list of transports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "transport/registry.h"
#include "util/error.h"

static void check_list(const char *names, const char *expected)
{
	const struct tti_transport *list[8];
	char text[64] = "";
	int n = -1;

	assert_int_equal(tti_registry_list(names, list, &n), TUTTI_OK);
	for (int i = 0; i < n; i++) {
		const size_t len = strlen(text);

		snprintf(text + len, sizeof(text) - len, "%s%s", i ? "," : "", list[i]->name);
	}
	assert_string_equal(text, expected);
}

static void lists_keep_the_order_and_have_self(void **state)
{
	(void)state;
	check_list(NULL, "self,shm,tcp");
	check_list("", "self,shm,tcp");
	check_list("auto", "self,shm,tcp");
	check_list("shm", "self,shm");
	check_list("tcp,shm", "self,tcp,shm");
	check_list("tcp,self", "tcp,self");
	check_list("self", "self");
	check_list("shm,self,tcp", "shm,self,tcp");
}

static void what_is_unknown_is_named(void **state)
{
	static const char *const wrong[] = {
		"rdma", "shm,",     ",shm",     "shm,,tcp", "SHM",
		"sh",   "shm,auto", "shm, tcp", "shm,shm",  "selfself"
	};
	const struct tti_transport *list[8];
	int n;

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(tti_registry_list(wrong[i], list, &n), TUTTI_EINVAL);
		assert_non_null(strstr(tti_error_text(), wrong[i]));
	}
}

static void tables_are_complete(void **state)
{
	const struct tti_transport *list[8];
	int n = 0;

	(void)state;
	assert_int_equal(tti_registry_list("auto", list, &n), TUTTI_OK);
	for (int i = 0; i < n; i++) {
		assert_int_equal(list[i]->size, sizeof(struct tti_transport));
		assert_true(list[i]->open && list[i]->join && list[i]->connect);
		assert_true(list[i]->close && list[i]->shutdown);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_keep_the_order_and_have_self),
		cmocka_unit_test(what_is_unknown_is_named),
		cmocka_unit_test(tables_are_complete),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
