/* SPDX-License-Identifier: BSD-3-Clause */
/* What is wrong with a call is said before anything moves, and says what. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "support/world.h"
#include "tutti/insight.h"

#define REFUSED(expected, fragment, call)                                                    \
	do {                                                                                 \
		assert_int_equal((call), (expected));                                        \
		if (!strstr(tutti_last_error(NULL), (fragment)))                             \
			fail_msg("\"%s\" lacks \"%s\"", tutti_last_error(NULL), (fragment)); \
	} while (0)

static void bad_calls(void **state)
{
	tutti_comm_t comm;
	float a[64], b[64];

	(void)state;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	REFUSED(TUTTI_EINVAL, "is NULL",
		tutti_all_reduce(a, b, 1, TUTTI_FLOAT32, TUTTI_SUM, NULL, NULL));
	REFUSED(TUTTI_EINVAL, "send buffer of 4 bytes is NULL",
		tutti_all_reduce(NULL, b, 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL));
	REFUSED(TUTTI_EINVAL, "receive buffer of 4 bytes is NULL",
		tutti_all_reduce(a, NULL, 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL));
	REFUSED(TUTTI_EINVAL, "type 99",
		tutti_all_reduce(a, b, 1, (tutti_type)99, TUTTI_SUM, comm, NULL));
	REFUSED(TUTTI_EINVAL, "operation 77",
		tutti_all_reduce(a, b, 1, TUTTI_FLOAT32, (tutti_op)77, comm, NULL));
	REFUSED(TUTTI_EINVAL, "overflow",
		tutti_all_reduce(a, b, SIZE_MAX / 2, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL));
	REFUSED(TUTTI_EINVAL, "overlap",
		tutti_all_reduce(a, a + 1, 4, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL));
	REFUSED(TUTTI_EINVAL, "root 1 of 1 ranks",
		tutti_broadcast(a, b, 1, TUTTI_FLOAT32, 1, comm, NULL));
	REFUSED(TUTTI_EINVAL, "root -1",
		tutti_reduce(a, b, 1, TUTTI_FLOAT32, TUTTI_SUM, -1, comm, NULL));
	REFUSED(TUTTI_EINVAL, "peer 5", tutti_send(a, 1, TUTTI_FLOAT32, 5, comm, NULL));
	REFUSED(TUTTI_EINVAL, "overlap", tutti_all_to_all(a, a + 1, 4, TUTTI_FLOAT32, comm, NULL));
	REFUSED(TUTTI_EINVAL, "root 3", tutti_gather(a, b, 1, TUTTI_FLOAT32, 3, comm, NULL));
	REFUSED(TUTTI_EINVAL, "overlap",
		tutti_send_recv(a, 4, 0, a + 3, 4, 0, TUTTI_FLOAT32, comm, NULL));
	REFUSED(TUTTI_EINVAL, "peer -2",
		tutti_send_recv(a, 4, -2, b, 4, -1, TUTTI_FLOAT32, comm, NULL));
	assert_int_equal(tutti_send_recv(a, 4, -1, b, 4, -1, TUTTI_FLOAT32, comm, NULL), TUTTI_OK);
	/* Nothing of this hurt the communicator. */
	a[0] = 3;
	assert_int_equal(tutti_all_reduce(a, b, 1, TUTTI_FLOAT32, TUTTI_AVG, comm, NULL), TUTTI_OK);
	assert_true(b[0] == 3);
	assert_int_equal(tutti_all_reduce(NULL, NULL, 0, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL),
			 TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
}

/* Of calls with a count for each rank. */
static void bad_counts(void **state)
{
	const size_t four[] = { 4 }, three[] = { 3 }, zero[] = { 0 }, most[] = { SIZE_MAX / 2 };
	tutti_comm_t comm;
	float a[64], b[64];

	(void)state;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	REFUSED(TUTTI_EINVAL, "receive counts are NULL",
		tutti_all_gather_v(a, b, NULL, zero, TUTTI_FLOAT32, comm, NULL));
	REFUSED(TUTTI_EINVAL, "send displacements are NULL",
		tutti_scatter_v(a, four, NULL, b, 4, TUTTI_FLOAT32, 0, comm, NULL));
	REFUSED(TUTTI_EINVAL, "past the end of memory",
		tutti_reduce_scatter_v(a, b, most, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL));
	REFUSED(TUTTI_EINVAL, "past the end of memory",
		tutti_all_gather_v(a, b, four, most, TUTTI_FLOAT32, comm, NULL));
	REFUSED(TUTTI_EINVAL, "sends 4 elements to itself but receives 3",
		tutti_all_to_all_v(a, four, zero, b, three, zero, TUTTI_FLOAT32, comm, NULL));
	REFUSED(TUTTI_EINVAL, "send buffer of 16 bytes is NULL",
		tutti_gather_v(NULL, 4, b, four, zero, TUTTI_FLOAT32, 0, comm, NULL));
	REFUSED(TUTTI_EINVAL, "overlap but are not in place",
		tutti_all_gather_v(a, a, four, three, TUTTI_FLOAT32, comm, NULL));
	REFUSED(TUTTI_EINVAL, "root 1",
		tutti_gather_v(a, 4, b, four, zero, TUTTI_FLOAT32, 1, comm, NULL));
	REFUSED(TUTTI_EINVAL, "type 99",
		tutti_all_gather_v(a, b, four, zero, (tutti_type)99, comm, NULL));
	/* In place, and nothing at all. */
	assert_int_equal(
		tutti_all_to_all_v(a, four, three, a, four, three, TUTTI_FLOAT32, comm, NULL),
		TUTTI_OK);
	assert_int_equal(tutti_all_gather_v(NULL, NULL, zero, zero, TUTTI_FLOAT32, comm, NULL),
			 TUTTI_OK);
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
}

static void after_destroy(void **state)
{
	tutti_comm_t comm;
	float a = 1, b = 0;
	int n;

	(void)state;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	assert_int_equal(tutti_comm_finalize(comm), TUTTI_OK);
	REFUSED(TUTTI_EUSAGE, "finalized",
		tutti_all_reduce(&a, &b, 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL));
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
	REFUSED(TUTTI_EUSAGE, "destroyed",
		tutti_all_reduce(&a, &b, 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL));
	REFUSED(TUTTI_EUSAGE, "destroyed", tutti_comm_count(comm, &n));
	REFUSED(TUTTI_EUSAGE, "destroyed", tutti_comm_destroy(comm));
	assert_int_equal(tutti_comm_destroy(NULL), TUTTI_OK);
}

static void bad_inits(void **state)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_unique_id id = { { 0 } };
	tutti_comm_t comm = NULL;

	(void)state;
	REFUSED(TUTTI_EINVAL, "nranks is 0", tutti_comm_init_rank(&comm, 0, id, 0));
	REFUSED(TUTTI_EINVAL, "nranks is 200000000: at most 1048576",
		tutti_comm_init_rank(&comm, 200000000, id, 0));
	REFUSED(TUTTI_EINVAL, "nranks is 2147483647: at most 1048576",
		tutti_comm_init_all(&comm, INT_MAX, NULL));
	REFUSED(TUTTI_EINVAL, "rank is 4", tutti_comm_init_rank(&comm, 4, id, 4));
	REFUSED(TUTTI_EINVAL, "out is NULL", tutti_comm_init_rank(NULL, 1, id, 0));
	REFUSED(TUTTI_EINVAL, "id", tutti_comm_init_rank(&comm, 2, id, 0));
	config.size = 3;
	REFUSED(TUTTI_EINVAL, "TUTTI_CONFIG_INIT", tutti_comm_init_all(&comm, 1, &config));
	config = (tutti_config)TUTTI_CONFIG_INIT;
	config.transport = "pigeon";
	REFUSED(TUTTI_EINVAL, "pigeon", tutti_comm_init_all(&comm, 1, &config));
	config = (tutti_config)TUTTI_CONFIG_INIT;
	config.encrypt = 2;
	REFUSED(TUTTI_EINVAL, "config.encrypt is 2: 0 or 1",
		tutti_comm_init_all(&comm, 1, &config));
	config = (tutti_config)TUTTI_CONFIG_INIT;
	config.algo = "all_reduce:nonsense";
	assert_int_equal(tutti_comm_init_all(&comm, 1, &config), TUTTI_OK);
	float a = 1, b;
	REFUSED(TUTTI_EINVAL, "nonsense",
		tutti_all_reduce(&a, &b, 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL));
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
}

static void nonblocking_init(void **state)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	const struct timespec nap = { .tv_nsec = 1000000 };
	tutti_comm_t comms[2];
	tutti_unique_id id;
	float a = 1, b;

	(void)state;
	config.blocking = 0;
	assert_int_equal(tutti_get_unique_id(&id), TUTTI_OK);
	assert_int_equal(tutti_comm_init_rank_config(&comms[0], 2, id, 0, &config), TUTTI_OK);
	tutti_status st;

	assert_int_equal(tutti_comm_get_async_error(comms[0], &st), TUTTI_OK);
	assert_int_equal(st, TUTTI_AGAIN);
	REFUSED(TUTTI_EUSAGE, "still being made",
		tutti_all_reduce(&a, &b, 1, TUTTI_FLOAT32, TUTTI_SUM, comms[0], NULL));
	assert_int_equal(tutti_comm_init_rank_config(&comms[1], 2, id, 1, &config), TUTTI_OK);
	for (int rank = 0; rank < 2; rank++) {
		do {
			nanosleep(&nap, NULL);
			assert_int_equal(tutti_comm_get_async_error(comms[rank], &st), TUTTI_OK);
		} while (st == TUTTI_AGAIN);
		assert_int_equal(st, TUTTI_OK);
	}
	/* One that nobody joins is given up at once. */
	tutti_comm_t lonely;

	assert_int_equal(tutti_get_unique_id(&id), TUTTI_OK);
	assert_int_equal(tutti_comm_init_rank_config(&lonely, 2, id, 0, &config), TUTTI_OK);
	assert_int_equal(tutti_comm_abort(lonely), TUTTI_OK);
	for (int rank = 0; rank < 2; rank++)
		assert_int_equal(tutti_comm_destroy(comms[rank]), TUTTI_OK);
}

/* The text of a handle is that of its last error, whichever call it was of. */
#define TOLD(call)                                                                           \
	do {                                                                                 \
		assert_int_equal(tutti_comm_split(comm, -5, 0, &other, NULL), TUTTI_EINVAL); \
		assert_true((call) < 0);                                                     \
		assert_string_equal(tutti_last_error(comm), tutti_last_error(NULL));         \
		assert_null(strstr(tutti_last_error(comm), "color is -5"));                  \
	} while (0)

static void each_error_is_told(void **state)
{
	const tutti_call calls[] = { { .coll = TUTTI_SEND_RECV } };
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t comm, other;
	tutti_persistent_t plan;
	tutti_window_t window;
	float a = 1, b = 0;
	void *memory;
	tutti_op op;

	(void)state;
	config.timeout_ms = -1;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	TOLD(tutti_broadcast(&a, &b, 1, TUTTI_FLOAT32, 99, comm, NULL));
	TOLD(tutti_comm_split(comm, -6, 0, &other, NULL));
	TOLD(tutti_comm_split(comm, 0, 0, NULL, NULL));
	TOLD(tutti_comm_dup(comm, &other, &config));
	TOLD(tutti_comm_shrink(comm, NULL, 0, NULL, NULL, 0));
	TOLD(tutti_comm_shrink(comm, NULL, 0, &other, NULL, 77));
	TOLD(tutti_comm_grow(comm, 2, NULL, 0, NULL, NULL));
	TOLD(tutti_op_create(&op, NULL, NULL, 1, comm));
	TOLD(tutti_op_create_premul_sum(&op, &a, (tutti_type)99, TUTTI_SCALAR_NOW, comm));
	TOLD(tutti_op_destroy((tutti_op)400, comm));
	TOLD(tutti_persistent_create(calls, comm, &plan));
	TOLD(tutti_mem_alloc(NULL, 1, comm));
	TOLD(tutti_mem_alloc(&memory, 0, comm));
	TOLD(tutti_register(comm, &a, 4, NULL));
	TOLD(tutti_window_create(comm, NULL, 4, &window));
	TOLD(tutti_comm_count(comm, NULL));
	TOLD(tutti_comm_rank(comm, NULL));
	TOLD(tutti_comm_get_async_error(comm, NULL));
	TOLD(tutti_comm_plan(comm, 0, NULL));
	TOLD(tutti_comm_last_call(comm, NULL));
	TOLD(tutti_comm_transport(comm, 0, NULL));
	TOLD(tutti_comm_lanes(comm, 0, NULL, 1, NULL));
	TOLD(tutti_ping(comm, 0, 0, NULL, NULL));
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
}

static void a_group_tells_its_first_error(void **state)
{
	tutti_comm_t comm;
	float a = 1, b = 0;

	(void)state;
	assert_int_equal(tutti_comm_init_all(&comm, 1, NULL), TUTTI_OK);
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	assert_int_equal(tutti_all_reduce(&a, &b, 1, (tutti_type)77, TUTTI_SUM, comm, NULL),
			 TUTTI_EINVAL);
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_EUSAGE);
	assert_non_null(strstr(tutti_last_error(comm), "inside a group"));
	REFUSED(TUTTI_EINVAL, "type 77", tutti_group_end());
	assert_int_equal(tutti_comm_destroy(comm), TUTTI_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_calls),
		cmocka_unit_test(bad_counts),
		cmocka_unit_test(after_destroy),
		cmocka_unit_test(bad_inits),
		cmocka_unit_test(nonblocking_init),
		cmocka_unit_test(each_error_is_told),
		cmocka_unit_test(a_group_tells_its_first_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
