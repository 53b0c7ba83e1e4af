/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tutti/inspect.h"
#include "tutti/tutti.h"

static void every_status_has_a_name_and_a_text(void **state)
{
	(void)state;
#define X(name, value, text)                                                  \
	assert_string_equal(tutti_status_name(TUTTI_##name), "TUTTI_" #name); \
	assert_string_equal(tutti_status_string(TUTTI_##name), text);
	TUTTI_STATUS_MAP(X)
#undef X
	assert_string_equal(tutti_status_name((tutti_status)-4711), "TUTTI_?");
	assert_string_equal(tutti_status_string((tutti_status)-4711), "unknown status");
}

static void lost_statuses_are_at_most_minus_20(void **state)
{
	(void)state;
	assert_true(TUTTI_EINTERNAL > TUTTI_STATUS_LOST);
	assert_true(TUTTI_EPEER <= TUTTI_STATUS_LOST);
	assert_true(TUTTI_EPLAN <= TUTTI_STATUS_LOST);
}

static void types_have_sizes_and_names(void **state)
{
	(void)state;
	assert_int_equal(tutti_type_size(TUTTI_FLOAT32), 4);
	assert_int_equal(tutti_type_size(TUTTI_BFLOAT16), 2);
	assert_int_equal(tutti_type_size(TUTTI_FLOAT8_E5M2), 1);
	assert_string_equal(tutti_type_name(TUTTI_BFLOAT16), "bfloat16");
	for (int type = 0; type < TUTTI_TYPE_COUNT; type++) {
		assert_true(tutti_type_size((tutti_type)type) > 0);
		assert_string_not_equal(tutti_type_name((tutti_type)type), "?");
	}
	assert_int_equal(tutti_type_size(TUTTI_TYPE_COUNT), 0);
	assert_int_equal(tutti_type_size((tutti_type)-1), 0);
	assert_string_equal(tutti_type_name(TUTTI_TYPE_COUNT), "?");
	assert_string_equal(tutti_type_name((tutti_type)-1), "?");
}

/* i: an integer, f: a float, b: bool, c: complex. */
static void operators_take_types(void **state)
{
	static const char kinds[TUTTI_TYPE_COUNT + 1] = "iiiiiiffffffiibcc";
	static const char *const taken[TUTTI_OP_COUNT] = { "ifbc", "ifbc", "ifb", "ifb",
							   "ifc",  "ib",   "ib",  "ib",
							   "ib",   "ib",   "ib" };

	(void)state;
	for (int op = 0; op < TUTTI_OP_COUNT; op++)
		for (int type = 0; type < TUTTI_TYPE_COUNT; type++) {
			const int takes = strchr(taken[op], kinds[type]) != NULL;

			assert_int_equal(tutti_op_takes((tutti_op)op, (tutti_type)type), takes);
			assert_int_equal(tutti_op_takes(tutti_op_reproducible((tutti_op)op),
							(tutti_type)type),
					 takes);
		}
	assert_int_equal(tutti_op_takes(TUTTI_OP_COUNT, TUTTI_INT8), 0);
	assert_int_equal(tutti_op_takes((tutti_op)256, TUTTI_INT8), 0);
	assert_int_equal(tutti_op_takes((tutti_op)-1, TUTTI_INT8), 0);
	assert_int_equal(tutti_op_takes(TUTTI_SUM, TUTTI_TYPE_COUNT), 0);
	assert_int_equal(tutti_op_takes(TUTTI_SUM, (tutti_type)-1), 0);
}

static void operations_and_collectives_have_names(void **state)
{
	(void)state;
	assert_string_equal(tutti_op_name(TUTTI_SUM), "sum");
	assert_string_equal(tutti_op_name(TUTTI_AVG), "avg");
	assert_string_equal(tutti_op_name(TUTTI_OP_COUNT), "?");
	assert_string_equal(tutti_op_name(tutti_op_reproducible(TUTTI_MAX)), "max");
	assert_string_equal(tutti_op_name((tutti_op)256), "premul_sum");
	assert_string_equal(tutti_op_name((tutti_op)(1023 + TUTTI_OP_REPRODUCIBLE)), "user");
	assert_string_equal(tutti_op_name((tutti_op)255), "?");
	assert_string_equal(tutti_op_name((tutti_op)2048), "?");
	assert_string_equal(tutti_op_name((tutti_op)-1), "?");
	assert_string_equal(tutti_collective_name(TUTTI_REDUCE_SCATTER), "reduce_scatter");
	assert_string_equal(tutti_collective_name(TUTTI_SEND_RECV), "send_recv");
	assert_string_equal(tutti_collective_name(TUTTI_COLLECTIVE_COUNT), "?");
	assert_string_equal(tutti_collective_name((tutti_collective)-1), "?");
}

static void the_version_is_that_of_the_header(void **state)
{
	(void)state;
	assert_int_equal(tutti_version(), TUTTI_VERSION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_status_has_a_name_and_a_text),
		cmocka_unit_test(lost_statuses_are_at_most_minus_20),
		cmocka_unit_test(types_have_sizes_and_names),
		cmocka_unit_test(operators_take_types),
		cmocka_unit_test(operations_and_collectives_have_names),
		cmocka_unit_test(the_version_is_that_of_the_header),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
