/* SPDX-License-Identifier: BSD-3-Clause */
/* Nothing that a rank does at the end of a communicator may wait for its GPU, where kernels of ranks that
 * share it wait for this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <time.h>

#include "gpu.h"
#include "ranks.h"
#include "support/world.h"

#define N     3
#define COUNT 5000
#define TIMES 5

static const int one[N] = { 0, 0, 0 };
static _Atomic int nlaunched;

/* Rank 0 is in a kernel that waits for the others, and they destroy another communicator before they
 * come to it. */
static void end_others(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct gpu_buffer buffer;
	struct gpu_stream stream;

	(void)arg;
	gpu_alloc(&buffer, 0, COUNT * sizeof(int32_t));
	gpu_stream_open(&stream, &buffer);
	/* The first call waits for the others, as it makes lanes. */
	CHECK_OK(tutti_all_reduce(buffer.memory, buffer.memory, COUNT, TUTTI_INT32, TUTTI_SUM, comm,
				  stream.tutti));
	gpu_stream_wait(&stream);
	for (int time = 1; time <= TIMES; time++) {
		int32_t *view = (int32_t *)(void *)buffer.view;
		const struct timespec nap = { .tv_nsec = 1000 * 1000 };
		tutti_comm_t other = NULL;

		CHECK_OK(tutti_comm_dup(comm, &other, NULL));
		CHECK_OK(tutti_all_reduce(buffer.memory, buffer.memory, COUNT, TUTTI_INT32,
					  TUTTI_SUM, other, stream.tutti));
		gpu_stream_wait(&stream);
		for (int i = 0; i < COUNT; i++)
			view[i] = rank + i;
		while (rank > 0 && atomic_load(&nlaunched) < time)
			nanosleep(&nap, NULL);
		if (rank > 0)
			CHECK_OK(tutti_comm_destroy(other));
		CHECK_OK(tutti_all_reduce(buffer.memory, buffer.memory, COUNT, TUTTI_INT32,
					  TUTTI_SUM, comm, stream.tutti));
		if (rank == 0) {
			atomic_store(&nlaunched, time);
			CHECK_OK(tutti_comm_destroy(other));
		}
		gpu_stream_wait(&stream);
		CHECK(view[0] == n * (n - 1) / 2 && view[COUNT - 1] == view[0] + n * (COUNT - 1));
	}
	CHECK_OK(gpu_stream_close(&stream));
	gpu_free(&buffer);
}

static void run(void)
{
	const struct world world = { .n = N, .devices = one };

	assert_int_equal(world_run(&world, end_others, NULL), 0);
	ranks_assert_nothing_held();
}

static void the_end_of_a_communicator_waits_for_no_kernel_of_others(void **state)
{
	static const char *const by_fd[] = { NULL };
	static const char *const by_ipc[] = { "TUTTI_CUDA_SHARE=ipc", NULL };

	(void)state;
	in_child(run, by_fd);
	in_child(run, by_ipc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_end_of_a_communicator_waits_for_no_kernel_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
