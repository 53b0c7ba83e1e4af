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
#include "util/log.h"

static const char *const no_env[] = { NULL };

static void one_of_each(void)
{
	tti_log(TTI_LOG_WARN, TTI_COLL, "w-coll");
	tti_log(TTI_LOG_INFO, TTI_COLL, "i-coll");
	tti_log(TTI_LOG_INFO, TTI_BOOT, "i-boot");
	tti_log(TTI_LOG_TRACE, TTI_BOOT, "t-boot");
	tti_log(TTI_LOG_TRACE, TTI_ENV, "t-env");
	tti_log(TTI_LOG_NONE, TTI_CORE, "never");
}

/* Which of them are written, by level and subsystem. */
static void levels_and_subsystems(void **state)
{
	static const struct {
		const char *debug, *subsys, *want;
	} cases[] = {
		{ "X=", "X=", "w-coll" },
		{ "TUTTI_DEBUG=NONE", "X=", "" },
		{ "TUTTI_DEBUG=WARN", "TUTTI_DEBUG_SUBSYS=boot", "w-coll" },
		{ "TUTTI_DEBUG=INFO", "X=", "w-coll i-coll i-boot" },
		{ "NCCL_DEBUG=INFO", "X=", "w-coll i-coll i-boot" },
		{ "TUTTI_DEBUG=TRACE", "X=", "w-coll i-coll i-boot t-boot t-env" },
		{ "TUTTI_DEBUG=TRACE", "TUTTI_DEBUG_SUBSYS=boot", "w-coll i-boot t-boot" },
		{ "TUTTI_DEBUG=TRACE", "TUTTI_DEBUG_SUBSYS=BOOT,env",
		  "w-coll i-boot t-boot t-env" },
		{ "TUTTI_DEBUG=TRACE", "TUTTI_DEBUG_SUBSYS=^boot", "w-coll i-coll t-env" },
		{ "TUTTI_DEBUG=TRACE", "TUTTI_DEBUG_SUBSYS=^boot,coll", "w-coll t-env" },
		{ "TUTTI_DEBUG=TRACE", "TUTTI_DEBUG_SUBSYS=^boot,^coll", "w-coll t-env" },
		{ "TUTTI_DEBUG=INFO", "TUTTI_DEBUG_SUBSYS=all", "w-coll i-coll i-boot" },
		{ "TUTTI_DEBUG=INFO", "TUTTI_DEBUG_SUBSYS=^all", "w-coll" },
		{ "TUTTI_DEBUG=INFO", "TUTTI_DEBUG_SUBSYS=,,boot,", "w-coll i-boot" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const env[] = { cases[i].debug, cases[i].subsys, NULL };
		struct child child;
		char got[256] = "";

		child_run(&child, env, one_of_each);
		assert_int_equal(child.status, 0);
		for (int m = 0; m < child.n; m++) {
			char *text = strrchr(child.messages[m], ' ') + 1;

			text[strcspn(text, "\n")] = '\0';
			snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", m ? " " : "",
				 text);
		}
		assert_string_equal(got, cases[i].want);
	}
}

static void one_error_of_three_and_a_warning(void)
{
	tti_log_error("first");
	tti_log_set_errors(false);
	tti_log_error("second");
	tti_log(TTI_LOG_WARN, TTI_CORE, "warning");
	tti_log_set_errors(true);
	tti_log_error("third");
}

/* What a program shows itself is not logged as well, unless the log was asked for. */
static void errors_may_be_left_to_the_program(void **state)
{
	static const struct {
		const char *debug;
		int n;
	} cases[] = { { "X=", 3 }, { "TUTTI_DEBUG=INFO", 4 }, { "TUTTI_DEBUG=NONE", 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const env[] = { cases[i].debug, NULL };
		struct child child;

		child_run(&child, env, one_error_of_three_and_a_warning);
		assert_int_equal(child.status, 0);
		assert_int_equal(child.n, cases[i].n);
		if (cases[i].n == 3)
			assert_non_null(strstr(child.messages[1], "warning"));
	}
}

static void unknown_subsystem_is_reported(void **state)
{
	static const char *const env[] = { "TUTTI_DEBUG=INFO", "TUTTI_DEBUG_SUBSYS=bot,boot",
					   NULL };
	struct child child;

	(void)state;
	child_run(&child, env, one_of_each);
	assert_int_equal(child_count(&child, "no subsystem \"bot\""), 1);
	assert_int_equal(child_count(&child, "i-boot"), 1);
	assert_int_equal(child_count(&child, "i-coll"), 0);
}

static void with_rank(void)
{
	tti_log(TTI_LOG_WARN, TTI_SHM, "before");
	tti_log_set_rank(12);
	tti_log(TTI_LOG_WARN, TTI_SHM, "within");
	tti_log(TTI_LOG_INFO, TTI_SHM, "info");
	tti_log_set_rank(-1);
	tti_log(TTI_LOG_WARN, TTI_SHM, "after");
	dprintf(STDERR_FILENO, "%d", (int)getpid());
}

static void a_line_says_level_place_and_rank(void **state)
{
	static const char *const env[] = { "TUTTI_DEBUG=INFO", NULL };
	static const char *const form[] = { "tutti WARN %s:%s before\n",
					    "tutti WARN %s:%s[12] within\n",
					    "tutti INFO shm %s:%s[12] info\n",
					    "tutti WARN %s:%s after\n" };
	struct child child;
	char host[64] = "";

	(void)state;
	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	child_run(&child, env, with_rank);
	assert_int_equal(child.n, 5);
	for (int i = 0; i < 4; i++) {
		char want[200];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(want, sizeof(want), form[i], host, child.messages[4]);
#pragma GCC diagnostic pop
		assert_string_equal(child.messages[i], want);
	}
}

static void odd_texts(void)
{
	char big[10000];

	tti_log(TTI_LOG_WARN, TTI_CORE, "two\nlines\tand \x1b[31m red \x7f \xc3\xa9");
	memset(big, 'x', sizeof(big));
	big[sizeof(big) - 1] = '\0';
	tti_log(TTI_LOG_WARN, TTI_CORE, "%s", big);
	for (size_t len = 4000; len < 4100; len++)
		tti_log(TTI_LOG_WARN, TTI_CORE, "%.*s", (int)len, big);
}

/* A message of the socket is one write(). */
static void each_line_is_one_write(void **state)
{
	struct child child;
	bool cut = false, whole = false;

	(void)state;
	child_run(&child, no_env, odd_texts);
	assert_int_equal(child.status, 0);
	assert_int_equal(child.n, 102);
	assert_non_null(strstr(child.messages[0], "two lines and ?[31m red ? \xc3\xa9\n"));
	for (int i = 0; i < child.n; i++) {
		const size_t len = strlen(child.messages[i]);

		assert_true(len <= 4096);
		assert_true(strchr(child.messages[i], '\n') == child.messages[i] + len - 1);
		if (!strcmp(child.messages[i] + len - 5, "x...\n"))
			cut = true;
		if (!strcmp(child.messages[i] + len - 5, "xxxx\n"))
			whole = true;
	}
	assert_true(cut && whole);
}

static void *chatter(void *rank)
{
	tti_log_set_rank((int)(intptr_t)rank);
	for (int i = 0; i < 20; i++)
		tti_log(TTI_LOG_WARN, TTI_CORE, "chat %d of %d", i, (int)(intptr_t)rank);
	return NULL;
}

static void many_threads(void)
{
	pthread_t threads[5];

	for (intptr_t i = 0; i < 5; i++)
		if (pthread_create(&threads[i], NULL, chatter, (void *)i))
			_exit(1);
	for (int i = 0; i < 5; i++)
		pthread_join(threads[i], NULL);
}

static void lines_of_threads_do_not_mix(void **state)
{
	struct child child;

	(void)state;
	child_run(&child, no_env, many_threads);
	assert_int_equal(child.status, 0);
	assert_int_equal(child.n, 100);
	for (int rank = 0; rank < 5; rank++)
		for (int i = 0; i < 20; i++) {
			char want[64];

			snprintf(want, sizeof(want), "[%d] chat %d of %d\n", rank, i, rank);
			assert_int_equal(child_count(&child, want), 1);
		}
}

static void keeps_errno(void)
{
	errno = ENOTTY;
	tti_log(TTI_LOG_WARN, TTI_CORE, "%m");
	if (errno != ENOTTY)
		_exit(1);
	close(STDERR_FILENO);
	tti_log(TTI_LOG_WARN, TTI_CORE, "into nothing");
	if (errno != ENOTTY)
		_exit(2);
}

static void errno_is_shown_and_kept(void **state)
{
	struct child child;

	(void)state;
	child_run(&child, no_env, keeps_errno);
	assert_int_equal(child.status, 0);
	assert_int_equal(child.n, 1);
	assert_int_equal(child_count(&child, "Inappropriate ioctl"), 1);
}

static char dir[] = "/tmp/tutti-log-XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

static void warn_and_name_pid(void)
{
	dprintf(STDERR_FILENO, "%d", (int)getpid());
	tti_log(TTI_LOG_WARN, TTI_CORE, "into the file");
}

static void the_file_is_named_by_host_and_process(void **state)
{
	char entry[200], path[300], line[200] = "", host[64] = "";
	const char *const env[] = { entry, NULL };
	struct child child;
	FILE *file;

	(void)state;
	gethostname(host, sizeof(host) - 1);
	host[strcspn(host, ".")] = '\0';
	snprintf(entry, sizeof(entry), "TUTTI_DEBUG_FILE=%s/%%h-%%p-100%%%%", dir);
	child_run(&child, env, warn_and_name_pid);
	assert_int_equal(child.status, 0);
	assert_int_equal(child.n, 1);
	snprintf(path, sizeof(path), "%s/%s-%.20s-100%%", dir, host, child.messages[0]);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	assert_non_null(strstr(line, "into the file\n"));
	fclose(file);
	unlink(path);
}

static void a_file_that_cannot_be_opened_is_reported(void **state)
{
	static char pattern_too_long[2000];
	const char *const entries[] = { "TUTTI_DEBUG_FILE=/nonexistent/dir/log",
					"TUTTI_DEBUG_FILE=/tmp/%d", "TUTTI_DEBUG_FILE=/tmp/x%",
					pattern_too_long };

	(void)state;
	memset(pattern_too_long, '/', sizeof(pattern_too_long) - 1);
	memcpy(pattern_too_long, "TUTTI_DEBUG_FILE=", 17);
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		const char *const env[] = { entries[i], NULL };
		struct child child;

		child_run(&child, env, one_of_each);
		assert_int_equal(child.status, 0);
		assert_int_equal(child.n, 2);
		assert_int_equal(child_count(&child, "logging to stderr"), 1);
		assert_int_equal(child_count(&child, "w-coll"), 1);
	}
}

static void lines_have_the_time_if_asked(void **state)
{
	static const char *const env[] = { "TUTTI_DEBUG_TIME=1", NULL };
	int year, month, day, hour, minute, second, micros, len = 0;
	struct child child;

	(void)state;
	child_run(&child, env, one_of_each);
	assert_int_equal(child.n, 1);
	assert_int_equal(sscanf(child.messages[0], "%4d-%2d-%2dT%2d:%2d:%2d.%6dZ tutti WARN %n",
				&year, &month, &day, &hour, &minute, &second, &micros, &len),
			 7);
	assert_true(year >= 2020 && month <= 12 && day <= 31 && hour < 24 && minute < 60);
	assert_int_equal(len, strlen("2026-11-23T14:00:49.123456Z tutti WARN "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(levels_and_subsystems),
		cmocka_unit_test(errors_may_be_left_to_the_program),
		cmocka_unit_test(unknown_subsystem_is_reported),
		cmocka_unit_test(a_line_says_level_place_and_rank),
		cmocka_unit_test(lines_have_the_time_if_asked),
		cmocka_unit_test(each_line_is_one_write),
		cmocka_unit_test(lines_of_threads_do_not_mix),
		cmocka_unit_test(errno_is_shown_and_kept),
		cmocka_unit_test(the_file_is_named_by_host_and_process),
		cmocka_unit_test(a_file_that_cannot_be_opened_is_reported),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
