/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams and events: order, overlap with the caller, errors. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/queue.h"
#include "support/world.h"
#include "util/sanitizer.h"

#define COUNT 5000

/* Each call takes what the one before gave: only the right order gives the sum. */
static void chain_of_calls(tutti_comm_t comm, int rank, int n, void *arg)
{
	long long *a = malloc(COUNT * sizeof(*a));
	long long *b = malloc(COUNT * sizeof(*b));
	tutti_stream_t stream;
	long long want = 1;

	(void)arg;
	(void)rank;
	for (int i = 0; i < COUNT; i++)
		a[i] = 1;
	if (!CHECK_OK(tutti_stream_create(&stream)))
		return;
	for (int k = 0; k < 8; k++) {
		CHECK_OK(tutti_all_reduce(k % 2 ? b : a, k % 2 ? a : b, COUNT, TUTTI_INT64,
					  TUTTI_SUM, comm, stream));
		want *= n;
	}
	CHECK_OK(tutti_stream_synchronize(stream));
	CHECK(tutti_stream_query(stream) == TUTTI_OK);
	for (int i = 0; i < COUNT; i++)
		if (!CHECK(a[i] == want))
			break;
	/* A call on the NULL stream comes after what was queued before it. */
	CHECK_OK(tutti_all_reduce(a, b, COUNT, TUTTI_INT64, TUTTI_MAX, comm, stream));
	CHECK_OK(tutti_all_reduce(a, a, COUNT, TUTTI_INT64, TUTTI_SUM, comm, NULL));
	CHECK(a[0] == want * n);
	CHECK_OK(tutti_stream_destroy(stream));
	CHECK(b[COUNT - 1] == want);
	free(a);
	free(b);
}

static void order_in_a_stream(void **state)
{
	static const char *const transports[] = { "shm", "tcp" };

	(void)state;
	for (int t = 0; t < 2; t++) {
		const struct world world = { .n = 3, .transport = transports[t] };

		assert_int_equal(world_run(&world, chain_of_calls, NULL), 0);
	}
}

/* Two streams, one communicator each rank: an event carries the order over. */
static void two_streams(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_stream_t first, second;
	tutti_event_t event;
	int a = rank, b = 0, c = 0;

	(void)arg;
	if (!CHECK_OK(tutti_stream_create(&first)) || !CHECK_OK(tutti_stream_create(&second)) ||
	    !CHECK_OK(tutti_event_create(&event)))
		return;
	CHECK(tutti_event_query(event) == TUTTI_OK);
	CHECK_OK(tutti_all_reduce(&a, &b, 1, TUTTI_INT32, TUTTI_SUM, comm, first));
	CHECK_OK(tutti_event_record(event, first));
	CHECK_OK(tutti_stream_wait_event(second, event));
	CHECK_OK(tutti_all_reduce(&b, &c, 1, TUTTI_INT32, TUTTI_SUM, comm, second));
	CHECK_OK(tutti_event_synchronize(event));
	CHECK(b == n * (n - 1) / 2);
	CHECK_OK(tutti_stream_synchronize(second));
	CHECK(c == n * b);
	CHECK_OK(tutti_event_destroy(event));
	CHECK_OK(tutti_stream_destroy(first));
	CHECK_OK(tutti_stream_destroy(second));
}

static void order_across_streams(void **state)
{
	const struct world world = { .n = 4 };

	(void)state;
	for (int round = 0; round < 5; round++)
		assert_int_equal(world_run(&world, two_streams, NULL), 0);
}

/* A group on a stream. */
static void group_on_stream(tutti_comm_t comm, int rank, int n, void *arg)
{
	tutti_stream_t stream;
	int send = rank, recv = -1, sum = 0;

	(void)arg;
	if (!CHECK_OK(tutti_stream_create(&stream)))
		return;
	CHECK_OK(tutti_group_start());
	CHECK_OK(tutti_send(&send, 1, TUTTI_INT32, (rank + 1) % n, comm, stream));
	CHECK_OK(tutti_recv(&recv, 1, TUTTI_INT32, (rank + n - 1) % n, comm, stream));
	CHECK_OK(tutti_all_reduce(&send, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, stream));
	CHECK_OK(tutti_group_end());
	CHECK_OK(tutti_stream_destroy(stream));
	CHECK(recv == (rank + n - 1) % n);
	CHECK(sum == n * (n - 1) / 2);
}

static void groups_on_streams(void **state)
{
	const struct world world = { .n = 3 };

	(void)state;
	assert_int_equal(world_run(&world, group_on_stream, NULL), 0);
}

/* What the process has of the C library more than before, in bytes, when n streams have come and gone. */
static long held_for_streams(int n)
{
	const size_t before = mallinfo2().uordblks;

	for (int i = 0; i < n; i++) {
		tutti_stream_t stream;

		assert_int_equal(tutti_stream_create(&stream), TUTTI_OK);
		assert_int_equal(tutti_stream_destroy(stream), TUTTI_OK);
	}
	return (long)mallinfo2().uordblks - (long)before;
}

/* A destroyed stream keeps memory, so that a call on it is an error: little, and that of as many
 * streams as core/call/stream.c says (KEEP). */
static void destroyed_streams_hold_little(void **state)
{
	(void)state;
	if (TTI_SANITIZED)
		skip(); /* mallinfo2() is of a C library that is asked for nothing */
	assert_true(held_for_streams(512) < 512 * 256);
	(void)held_for_streams(1024);
	assert_true(held_for_streams(256) < 4096);
}

static void programs_of_before_have_fewer_fields(void **state)
{
	struct server *server = server_create(1);
	struct queue *queue = queue_create(server);
	tutti_stream_ops ops = *queue_ops(false);
	tutti_stream_t stream;

	(void)state;
	ops.size = offsetof(tutti_stream_ops, cuda);
	ops.cuda = 1; /* behind what such a program has: not looked at */
	assert_int_equal(tutti_stream_wrap(&stream, &ops, queue), TUTTI_OK);
	assert_int_equal(tutti_stream_query(stream), TUTTI_OK);
	ops.push = NULL;
	assert_int_equal(tutti_stream_wrap(&stream, &ops, NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_stream_destroy(stream), TUTTI_OK);
	queue_free(queue);
	server_free(server);
}

/* Nothing of CUDA is asked for before there is work. */
static void a_stream_of_cuda_may_have_no_push(void **state)
{
	tutti_stream_ops ops = TUTTI_STREAM_OPS_INIT;
	tutti_stream_t stream;

	(void)state;
	ops.cuda = 1;
	assert_int_equal(tutti_stream_wrap(&stream, &ops, NULL), TUTTI_OK);
	assert_int_equal(tutti_stream_synchronize(stream), TUTTI_OK);
	assert_int_equal(tutti_stream_destroy(stream), TUTTI_OK);
}

static void misuse(void **state)
{
	tutti_status st;

	(void)state;
	assert_int_equal(tutti_stream_create(NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_stream_synchronize(NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_stream_query(NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_stream_destroy(NULL), TUTTI_OK);
	assert_int_equal(tutti_event_create(NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_event_query(NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_event_destroy(NULL), TUTTI_OK);
	st = tutti_event_record(NULL, NULL);
	assert_int_equal(st, TUTTI_EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_in_a_stream),
		cmocka_unit_test(order_across_streams),
		cmocka_unit_test(groups_on_streams),
		cmocka_unit_test(destroyed_streams_hold_little),
		cmocka_unit_test(programs_of_before_have_fewer_fields),
		cmocka_unit_test(a_stream_of_cuda_may_have_no_push),
		cmocka_unit_test(misuse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
