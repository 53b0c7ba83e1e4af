/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators of a group are launched in the order of their collectives, which all ranks have alike, and
 * not in that of their messages, which a rank may have alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu.h"
#include "support/world.h"

#define N     2
#define COUNT 1000

static const int devices[N] = { 0, 1 };

static int32_t *view_of(const struct gpu_buffer *buffer)
{
	return (int32_t *)(void *)buffer->view;
}

/* Calls of one type may be one kernel, those of two are not. */
static tutti_status sum(const struct gpu_buffer *buffer, tutti_type type, tutti_comm_t comm,
			tutti_stream_t stream)
{
	return tutti_all_reduce(buffer->memory, buffer->memory, COUNT, type, TUTTI_SUM, comm,
				stream);
}

/* Rank 0 has a message to itself, of the second communicator, ahead of the sums of both. */
static void make_group(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct gpu_buffer buffer[4];
	struct gpu_stream stream;
	tutti_comm_t second;

	(void)n;
	(void)arg;
	CHECK_OK(tutti_comm_dup(comm, &second, NULL));
	for (int i = 0; i < 4; i++) {
		gpu_alloc(&buffer[i], devices[rank], COUNT * sizeof(int64_t));
		for (int at = 0; at < 2 * COUNT; at++)
			view_of(&buffer[i])[at] = at + i;
	}
	gpu_stream_open(&stream, &buffer[0]);
	CHECK_OK(tutti_group_start());
	if (rank == 0) {
		CHECK_OK(tutti_send(buffer[2].memory, COUNT, TUTTI_INT32, 0, second, stream.tutti));
		CHECK_OK(tutti_recv(buffer[3].memory, COUNT, TUTTI_INT32, 0, second, stream.tutti));
	}
	CHECK_OK(sum(&buffer[0], TUTTI_INT32, comm, stream.tutti));
	CHECK_OK(sum(&buffer[1], TUTTI_INT64, second, stream.tutti));
	CHECK_OK(tutti_group_end());
	gpu_stream_wait(&stream);
	for (int at = 0; at < COUNT; at++) {
		CHECK(view_of(&buffer[0])[at] == N * at);
		CHECK(view_of(&buffer[1])[2 * at] == N * (2 * at + 1));
		CHECK(view_of(&buffer[3])[at] == at + (rank == 0 ? 2 : 3));
	}
	CHECK_OK(gpu_stream_close(&stream));
	CHECK_OK(tutti_comm_destroy(second));
	for (int i = 0; i < 4; i++)
		gpu_free(&buffer[i]);
}

static void a_message_of_one_rank_changes_no_order(void **state)
{
	const struct world world = { .n = N, .devices = devices };

	(void)state;
	assert_int_equal(world_run(&world, make_group, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_of_one_rank_changes_no_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
