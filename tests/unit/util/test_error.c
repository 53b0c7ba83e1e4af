/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "child.h"
#include "util/error.h"

static void text_is_kept_and_status_returned(void **state)
{
	(void)state;
	assert_int_equal(tti_fail_quiet(TUTTI_EINVAL, "count is %d", -7), TUTTI_EINVAL);
	assert_string_equal(tti_error_text(), "count is -7");
}

static void errno_of_before_the_call_is_shown_and_kept(void **state)
{
	(void)state;
	errno = ENOENT;
	assert_int_equal(tti_fail_quiet(TUTTI_ESYS, "open: %m"), TUTTI_ESYS);
	assert_int_equal(errno, ENOENT);
	assert_string_equal(tti_error_text(), "open: No such file or directory");
}

static void the_old_text_may_be_an_argument(void **state)
{
	(void)state;
	assert_int_equal(tti_fail_quiet(TUTTI_EPEER, "inner"), TUTTI_EPEER);
	assert_int_equal(tti_fail_quiet(TUTTI_EPEER, "outer: %s", tti_error_text()), TUTTI_EPEER);
	assert_string_equal(tti_error_text(), "outer: inner");
	tti_error_set(tti_error_text());
	assert_string_equal(tti_error_text(), "outer: inner");
}

static void long_text_is_cut_and_marked(void **state)
{
	char longest[1024];
	char longer[5000];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[1023] = '\0';
	assert_int_equal(tti_fail_quiet(TUTTI_ESYS, "%s", longest), TUTTI_ESYS);
	assert_string_equal(tti_error_text(), longest);

	memset(longer, 'b', sizeof(longer));
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(tti_fail_quiet(TUTTI_ESYS, "%s", longer), TUTTI_ESYS);
	assert_int_equal(strlen(tti_error_text()), 1023);
	assert_string_equal(tti_error_text() + 1019, "b...");
	tti_error_set(longer);
	assert_int_equal(strlen(tti_error_text()), 1023);
	assert_string_equal(tti_error_text() + 1019, "b...");
}

static void set_and_clear(void **state)
{
	(void)state;
	tti_error_set("from elsewhere");
	assert_string_equal(tti_error_text(), "from elsewhere");
	tti_error_set(NULL);
	assert_string_equal(tti_error_text(), "");
}

static void *other_thread(void *seen)
{
	snprintf(seen, 32, "%s", tti_error_text());
	tti_error_set("of the other thread");
	return NULL;
}

static void text_belongs_to_the_thread(void **state)
{
	char seen[32] = "?";
	pthread_t thread;

	(void)state;
	tti_error_set("of this thread");
	assert_int_equal(pthread_create(&thread, NULL, other_thread, seen), 0);
	pthread_join(thread, NULL);
	assert_string_equal(seen, "");
	assert_string_equal(tti_error_text(), "of this thread");
}

static void fail_loudly_and_quietly(void)
{
	errno = EACCES;
	if (tti_fail(TUTTI_ESYS, "loud: %m") != TUTTI_ESYS || errno != EACCES)
		_exit(1);
	if (tti_fail_quiet(TUTTI_ESYS, "silent") != TUTTI_ESYS)
		_exit(1);
}

static void only_fail_logs_and_once(void **state)
{
	static const char *const env[] = { NULL };
	static const char *const none[] = { "TUTTI_DEBUG=NONE", NULL };
	struct child child;

	(void)state;
	child_run(&child, env, fail_loudly_and_quietly);
	assert_int_equal(child.status, 0);
	assert_int_equal(child.n, 1);
	assert_int_equal(child_count(&child, "loud: Permission denied\n"), 1);
	assert_memory_equal(child.messages[0], "tutti WARN ", 11);
	child_run(&child, none, fail_loudly_and_quietly);
	assert_int_equal(child.status, 0);
	assert_int_equal(child.n, 0);
}

static void break_an_invariant(void)
{
	tti_assert(1 + 1 == 2);
	tti_assert(getpid() == 0);
}

static void assert_says_what_and_where_and_traps(void **state)
{
	static const char *const env[] = { NULL };
	struct child child;

	(void)state;
	child_run(&child, env, break_an_invariant);
	assert_true(WIFSIGNALED(child.status));
	assert_true(WTERMSIG(child.status) == SIGILL || WTERMSIG(child.status) == SIGTRAP);
	assert_int_equal(child.n, 1);
	assert_int_equal(child_count(&child, "test_error.c:"), 1);
	assert_int_equal(child_count(&child, "getpid() == 0"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_fail_logs_and_once),
		cmocka_unit_test(assert_says_what_and_where_and_traps),
		cmocka_unit_test(text_is_kept_and_status_returned),
		cmocka_unit_test(errno_of_before_the_call_is_shown_and_kept),
		cmocka_unit_test(the_old_text_may_be_an_argument),
		cmocka_unit_test(long_text_is_cut_and_marked),
		cmocka_unit_test(set_and_clear),
		cmocka_unit_test(text_belongs_to_the_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
