/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "child.h"
#include "tutti/inspect.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/params_read.h"

static void read_twice(void)
{
	tti_params();
	tti_params();
}

/* The acceptance of a good message: variable, value, range and default. */
static void a_bad_value_is_reported_once_in_full(void **state)
{
	static const char *const env[] = { "TUTTI_SHM_SLOT=1K", "TUTTI_SOCKET_FAMILY=\xff\x1b[31m",
					   NULL };
	struct child child;

	(void)state;
	child_run(&child, env, read_twice);
	assert_int_equal(child.status, 0);
	assert_int_equal(child.n, 2);
	assert_int_equal(child_count(&child, "TUTTI_SHM_SLOT=1K"), 1);
	assert_int_equal(child_count(&child, "4K:64M"), 1);
	assert_int_equal(child_count(&child, "default 256K"), 1);
	assert_int_equal(child_count(&child, "TUTTI_SOCKET_FAMILY=\\xff\\x1b[31m"), 1);
	assert_int_equal(child_count(&child, "ANY|AF_INET|AF_INET6"), 1);
}

static void unknown_names_are_reported_with_the_nearest(void **state)
{
	static const char *const env[] = { "TUTTI_SHM_SLTO=1M",
					   "TUTTI_socket_ifnam=eth0",
					   "TUTTI_NRANK=2",
					   "TUTTI_QQQQQQQQQQQQQQQ=1",
					   "TUTTIFRUTTI=1",
					   "TUTTI_=1",
					   NULL };
	struct child child;

	(void)state;
	child_run(&child, env, read_twice);
	assert_int_equal(child.status, 0);
	assert_int_equal(child.n, 5);
	assert_int_equal(child_count(&child, "is TUTTI_SHM_SLOT meant?"), 1);
	assert_int_equal(child_count(&child, "is TUTTI_SOCKET_IFNAME meant?"), 1);
	assert_int_equal(child_count(&child, "is TUTTI_RANK or TUTTI_NRANKS meant?"), 1);
	assert_int_equal(child_count(&child, "TUTTI_QQQQQQQQQQQQQQQ is set, but there is no such "
					     "parameter; `tutti env` lists them"),
			 1);
	assert_int_equal(child_count(&child, "TUTTIFRUTTI"), 0);
}

/* A mad environment does not flood the log. */
static void reports_are_bounded(void **state)
{
	static char entries[400][40];
	const char *env[401];
	struct child child;

	(void)state;
	for (int i = 0; i < 400; i++) {
		snprintf(entries[i], sizeof(entries[i]), "TUTTI_NO_SUCH_NAME_%d=1", i);
		env[i] = entries[i];
	}
	env[400] = NULL;
	child_run(&child, env, read_twice);
	assert_int_equal(child.status, 0);
	assert_true(child.n > 5 && child.n < 100);
	assert_int_equal(child_count(&child, "more variables named TUTTI_* are wrong"), 1);
}

static void change_the_environment(void)
{
	const struct tti_param_values *params = tti_params();
	char *entry = getenv("TUTTI_TRANSPORT");

	EXPECT(!strcmp(params->transport, "tcp"));
	EXPECT(params->transport != entry);
	memset(entry, 'x', 3);
	setenv("TUTTI_RANK", "9", 1);
	clearenv();
	EXPECT(!strcmp(tti_params()->transport, "tcp"));
	EXPECT(tti_params()->rank == 2);
	EXPECT(tti_params() == params);
}

static void the_table_does_not_follow_the_environment(void **state)
{
	char transport[] = "TUTTI_TRANSPORT=tcp";
	const char *const env[] = { transport, "TUTTI_RANK=2", NULL };
	struct child child;

	(void)state;
	child_run(&child, env, change_the_environment);
	assert_int_equal(child.status, 0);
	assert_string_equal(child.messages[0], "");
}

static void no_environment_at_all(void **state)
{
	static const char *const env[] = { NULL };
	struct child child;

	(void)state;
	child_run(&child, env, read_twice);
	assert_int_equal(child.status, 0);
	assert_int_equal(child.n, 0);
}

/* Log, parameters, errors and faults need each other: whichever comes first. */
static void log_first(void)
{
	tti_log(TTI_LOG_WARN, TTI_CORE, "first");
	read_twice();
}

static void fault_first(void)
{
	EXPECT(tti_fault("mem"));
	read_twice();
}

static void error_first(void)
{
	EXPECT(tti_fail(TUTTI_EINVAL, "first") == TUTTI_EINVAL);
	read_twice();
}

static void alloc_first(void)
{
	EXPECT(tti_alloc(8) == NULL);
	read_twice();
}

static void *everything(void *unused)
{
	free(tti_strdup("text"));
	tti_log(TTI_LOG_INFO, TTI_BOOT, "from a thread");
	tti_params();
	return unused;
}

static void threads_first(void)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		EXPECT(pthread_create(&threads[i], NULL, everything, NULL) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void any_order_of_first_use_works(void **state)
{
	static const char *const env[] = { "TUTTI_FAULT=mem:1,bad", "TUTTI_DEBUG=INFO",
					   "TUTTI_DEBUG_SUBSYS=boot,bad", "TUTTI_RANK=bad", NULL };
	static void (*const bodies[])(void) = { read_twice,  log_first,   fault_first,
						error_first, alloc_first, threads_first };

	(void)state;
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
		struct child child;

		child_run(&child, env, bodies[i]);
		assert_int_equal(child.status, 0);
		assert_int_equal(child_count(&child, "FALSE"), 0);
		assert_int_equal(child_count(&child, "TUTTI_RANK=bad"), 1);
		assert_int_equal(child_count(&child, "no subsystem \"bad\""), 1);
		if (bodies[i] == threads_first)
			assert_int_equal(child_count(&child, "from a thread"), 4);
	}
}

static int index_of(const char *variable)
{
	for (int i = 0; i < tti_param_count(); i++)
		if (!strcmp(tti_param_desc(i)->variable, variable))
			return i;
	return -1;
}

static void check_value(const char *variable, const char *want, bool want_set)
{
	struct tutti_param_info info;

	if (tutti_param_get(index_of(variable), &info) || strcmp(info.variable, variable) != 0 ||
	    strcmp(info.value, want) != 0 || info.is_set != want_set)
		dprintf(STDERR_FILENO, "FALSE: tutti_param_get %s", variable);
}

static void look_at_values(void)
{
	struct tutti_param_info first, again;

	check_value("TUTTI_SHM_SLOT", "1M", true);
	check_value("TUTTI_TCP_SLOT", "128K", false);
	check_value("TUTTI_RANK", "-1", false);
	check_value("TUTTI_SOCKET_FAMILY", "AF_INET", true);
	check_value("TUTTI_TRANSPORT", "auto", false);
	check_value("TUTTI_HOST_ID", "rack 7", true);
	check_value("TUTTI_DEBUG", "INFO", true);
	check_value("TUTTI_COMM_FILE", "", false);
	check_value("TUTTI_COMM_SECRET", "(set)", true);
	EXPECT(tutti_param_get(0, &first) == TUTTI_OK);
	EXPECT(tutti_param_get(0, &again) == TUTTI_OK);
	EXPECT(first.value == again.value);
	EXPECT(tutti_param_get(-1, &first) == TUTTI_EINVAL);
	EXPECT(tutti_param_get(tti_param_count(), &first) == TUTTI_EINVAL);
	EXPECT(!strcmp(tti_env_foreign("NCCL_DEBUG"), "INFO"));
	EXPECT(tti_env_foreign("SLURM_PROCID") == NULL);
}

static void values_in_force_are_shown_but_no_secret(void **state)
{
	static const char *const env[] = { "TUTTI_SHM_SLOT=1024k",
					   "TUTTI_TCP_SLOT=1",
					   "TUTTI_SOCKET_FAMILY=af_inet",
					   "TUTTI_HOST_ID=rack 7",
					   "NCCL_DEBUG=INFO",
					   "TUTTI_COMM_SECRET=hush",
					   NULL };
	struct child child;

	(void)state;
	child_run(&child, env, look_at_values);
	assert_int_equal(child.status, 0);
	assert_int_equal(child_count(&child, "hush"), 0);
	assert_int_equal(child_count(&child, "TUTTI_TCP_SLOT=1 "), 1);
	if (child.n != 1)
		fail_msg("%s", child.messages[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_bad_value_is_reported_once_in_full),
		cmocka_unit_test(unknown_names_are_reported_with_the_nearest),
		cmocka_unit_test(reports_are_bounded),
		cmocka_unit_test(the_table_does_not_follow_the_environment),
		cmocka_unit_test(no_environment_at_all),
		cmocka_unit_test(any_order_of_first_use_works),
		cmocka_unit_test(values_in_force_are_shown_but_no_secret),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
