/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that was written with the names that version 0.2 takes away: it compiles, links and runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tutti/insight.h"
#include "tutti/plan.h"
#include "tutti/tutti.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

static void persistent_calls(void **state)
{
	const float mine = 21;
	float sum = 0;
	tutti_call call = TUTTI_CALL_INIT;
	tutti_call_plan_t plan = NULL;
	tutti_unique_id id;
	tutti_comm_t comm = NULL;

	(void)state;
	assert_int_equal(tutti_get_unique_id(&id), TUTTI_OK);
	assert_int_equal(tutti_comm_init_scalable(&comm, 1, 0, 1, &id, NULL), TUTTI_OK);
	call.send = &mine;
	call.recv = &sum;
	call.count = 1;
	assert_int_equal(tutti_plan_create(&call, comm, &plan), TUTTI_OK);
	assert_int_equal(tutti_plan_start(plan, NULL), TUTTI_OK);
	assert_int_equal(tutti_plan_wait(plan), TUTTI_OK);
	assert_true(sum == mine);
	assert_int_equal(tutti_plan_destroy(plan), TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
}

static void clusters(void **state)
{
	tutti_cluster_t cluster = NULL;

	(void)state;
	assert_int_equal(tutti_cluster_create(&cluster), TUTTI_OK);
	assert_non_null(cluster);
	tutti_cluster_free(cluster);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(persistent_calls),
		cmocka_unit_test(clusters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
