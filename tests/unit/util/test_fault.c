/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>

#include "child.h"
#include "util/fault.h"

static void from_the_environment(void)
{
	EXPECT(!tti_fault("tcp.connect"));
	EXPECT(tti_fault("shm.memfd"));
	EXPECT(!tti_fault("shm.memfd"));
	EXPECT(tti_fault("tcp.connect"));
	EXPECT(!tti_fault("tcp.connect"));
	EXPECT(!tti_fault("elsewhere"));
}

static void the_list_of_the_environment_is_used(void **state)
{
	static const char *const env[] = { "TUTTI_FAULT=shm.memfd:1,tcp.connect:2", NULL };
	struct child child;

	(void)state;
	child_run(&child, env, from_the_environment);
	assert_int_equal(child.status, 0);
	assert_int_equal(child.n, 0);
}

static void set_first(void)
{
	tti_fault_set(NULL);
	EXPECT(!tti_fault("shm.memfd"));
}

static void a_list_that_was_set_wins(void **state)
{
	static const char *const env[] = { "TUTTI_FAULT=shm.memfd:1", NULL };
	struct child child;

	(void)state;
	child_run(&child, env, set_first);
	assert_int_equal(child.status, 0);
	assert_int_equal(child.n, 0);
}

static void bad_lists(void)
{
	tti_fault_set("mem,mem:,mem:x,:1,mem:0,mem:-1,mem:1 ,mem:99999999999999999999,"
		      "a.name.that.is.longer.than.any.point:1,good:1");
	EXPECT(tti_fault("good"));
	EXPECT(!tti_fault("mem"));
	tti_fault_set(",,");
	EXPECT(!tti_fault("mem"));
}

static void bad_items_are_reported_and_the_rest_used(void **state)
{
	static const char *const env[] = { NULL };
	struct child child;

	(void)state;
	child_run(&child, env, bad_lists);
	assert_int_equal(child.status, 0);
	assert_int_equal(child_count(&child, "FALSE"), 0);
	assert_int_equal(child.n, 9);
	assert_int_equal(child_count(&child, "TUTTI_FAULT: \"mem:x\" ignored"), 1);
}

static void too_many(void)
{
	tti_fault_set("p:1,p:2,p:3,p:4,p:5,p:6,p:7,p:8,p:9,p:10,p:11,p:12,p:13,p:14,p:15,p:16,"
		      "p:17");
	for (int i = 1; i <= 16; i++)
		EXPECT(tti_fault("p"));
	EXPECT(!tti_fault("p"));
}

static void more_than_16_are_reported(void **state)
{
	static const char *const env[] = { NULL };
	struct child child;

	(void)state;
	child_run(&child, env, too_many);
	assert_int_equal(child.status, 0);
	assert_int_equal(child.n, 1);
	assert_int_equal(child_count(&child, "\"p:17\" ignored"), 1);
}

static void several_passes_of_one_point(void **state)
{
	(void)state;
	tti_fault_set("mem:2,mem:4");
	for (int pass = 1; pass <= 6; pass++)
		assert_int_equal(tti_fault("mem"), pass == 2 || pass == 4);
	tti_fault_set("mem:1");
	assert_true(tti_fault("mem"));
	tti_fault_set(NULL);
	assert_false(tti_fault("mem"));
}

static atomic_int failures;

static void *pass_often(void *unused)
{
	for (int i = 0; i < 1000; i++)
		if (tti_fault("shared"))
			atomic_fetch_add(&failures, 1);
	return unused;
}

/* Of 4000 passes exactly the second, the 3999th and the 4000th fail. */
static void threads_share_the_count(void **state)
{
	pthread_t threads[4];

	(void)state;
	tti_fault_set("shared:2,shared:3999,shared:4000,shared:4001");
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, pass_often, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(failures, 3);
	assert_true(tti_fault("shared"));
	tti_fault_set(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_list_of_the_environment_is_used),
		cmocka_unit_test(a_list_that_was_set_wins),
		cmocka_unit_test(bad_items_are_reported_and_the_rest_used),
		cmocka_unit_test(more_than_16_are_reported),
		cmocka_unit_test(several_passes_of_one_point),
		cmocka_unit_test(threads_share_the_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
