/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread makes the calls of a rank with a device and of ranks without one, each on a stream of its
 * own: the first handoff is planned by all of them, for which each waits for the others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gpu.h"

#define N     3
#define COUNT 3000

static const int devices[N] = { 1, -1, -1 };

static void make(tutti_comm_t *comms)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_unique_id id;

	assert_int_equal(tutti_get_unique_id(&id), TUTTI_OK);
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	for (int rank = 0; rank < N; rank++) {
		config.device = devices[rank];
		assert_int_equal(tutti_comm_init_rank_config(&comms[rank], N, id, rank, &config),
				 TUTTI_OK);
	}
	assert_int_equal(tutti_group_end(), TUTTI_OK);
}

static void a_group_has_ranks_with_and_without_a_device(void **state)
{
	const tutti_side from = { (const int[]){ 0 }, 1, 0 };
	const tutti_side to = { (const int[]){ 1, 2 }, 2, 0 };
	tutti_comm_t comms[N] = { NULL };
	struct gpu_buffer buffer[N];
	struct gpu_stream stream[N];

	(void)state;
	make(comms);
	for (int rank = 0; rank < N; rank++) {
		gpu_alloc(&buffer[rank], devices[rank], COUNT * sizeof(int32_t));
		for (int i = 0; i < COUNT; i++)
			((int32_t *)(void *)buffer[rank].view)[i] = rank + i;
		if (devices[rank] >= 0)
			gpu_stream_open(&stream[rank], &buffer[rank]);
		else
			assert_int_equal(tutti_stream_create(&stream[rank].tutti), TUTTI_OK);
	}
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	for (int rank = 0; rank < N; rank++)
		assert_int_equal(tutti_handoff(rank == 0 ? buffer[rank].memory : NULL,
					       rank == 0 ? NULL : buffer[rank].memory, COUNT,
					       TUTTI_INT32, &from, &to, comms[rank],
					       stream[rank].tutti),
				 TUTTI_OK);
	assert_int_equal(tutti_group_end(), TUTTI_OK);
	for (int rank = 0; rank < N; rank++) {
		assert_int_equal(tutti_stream_synchronize(stream[rank].tutti), TUTTI_OK);
		for (int i = 0; i < COUNT; i++)
			assert_int_equal(((int32_t *)(void *)buffer[rank].view)[i], i);
	}
	for (int rank = 0; rank < N; rank++) {
		assert_int_equal(devices[rank] >= 0 ? gpu_stream_close(&stream[rank])
						    : tutti_stream_destroy(stream[rank].tutti),
				 TUTTI_OK);
		assert_int_equal(tutti_comm_destroy(comms[rank]), TUTTI_OK);
		gpu_free(&buffer[rank]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_group_has_ranks_with_and_without_a_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
