/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks with devices as processes: what they compute, and that all others hear of one that dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <signal.h>

#include "gpu.h"
#include "support/crew.h"

#define COUNT 20000
#define NS    INT64_C(1000000000)

/* Of the process of a rank. */
static struct {
	bool is_open, on_stream;
	int device;
	struct gpu_buffer buffer;
	struct gpu_stream stream;
	uint32_t round;
} own;

static const char *device_of[8];
static bool on_stream;

static void prepare(struct crew *crew, int rank)
{
	(void)crew;
	own.device = device_of[rank] ? atoi(device_of[rank]) : -1;
	own.on_stream = on_stream && own.device >= 0;
	if (device_of[rank])
		(void)setenv("TUTTI_CUDA_DEVICE", device_of[rank], 1);
}

static void open_own(void)
{
	gpu_alloc(&own.buffer, own.device, COUNT * sizeof(uint32_t));
	if (own.on_stream)
		gpu_stream_open(&own.stream, &own.buffer);
	own.is_open = true;
}

/* One more sum; a stream is waited for as by its program, and then the communicator is asked. */
static tutti_status sum(struct crew *crew, int rank, tutti_comm_t comm)
{
	uint32_t *at;
	tutti_status st;

	if (!own.is_open)
		open_own();
	at = (uint32_t *)(void *)own.buffer.view;
	own.round++;
	for (uint32_t i = 0; i < COUNT; i++)
		at[i] = own.round * (uint32_t)(rank + 1) + i;
	st = tutti_all_reduce(own.buffer.memory, own.buffer.memory, COUNT, TUTTI_UINT32, TUTTI_SUM,
			      comm, own.on_stream ? own.stream.tutti : NULL);
	if (st == TUTTI_OK && own.on_stream) {
		tutti_status error;

		gpu_stream_wait(&own.stream);
		st = tutti_comm_get_async_error(comm, &error);
		st = st == TUTTI_OK ? error : st;
	}
	for (uint32_t i = 0; i < COUNT && st == TUTTI_OK; i++)
		if (at[i] !=
		    own.round * (uint32_t)(crew->n * (crew->n + 1) / 2) + (uint32_t)crew->n * i) {
			fprintf(stderr, "rank %d: element %u of call %u is %u\n", rank, i,
				own.round, at[i]);
			abort();
		}
	return st;
}

static void kill_one(int n, int killed)
{
	struct crew *crew = crew_create(n, NULL, sum);
	int64_t killed_ns;

	crew->prepare = prepare;
	assert_int_equal(crew_start(crew), 0);
	for (int i = 0; i < 60000 && crew->rank[killed].calls < 20; i++)
		crew_nap_us(1000);
	assert_true(crew->rank[killed].calls >= 20);
	killed_ns = crew_now_ns();
	assert_int_equal(kill(crew->rank[killed].pid, SIGKILL), 0);
	assert_int_equal(crew_wait(crew, 60000, killed), 0);
	for (int rank = 0; rank < n; rank++) {
		if (rank == killed)
			continue;
		assert_int_equal(crew->rank[rank].status, TUTTI_EPEER);
		/* Ten times what it may take. */
		assert_true(crew->rank[rank].failed_ns - killed_ns < 10 * NS);
	}
	crew_free(crew);
}

static void kill_with(const char *const *devices, int n)
{
	for (int i = 0; i < n; i++)
		device_of[i] = devices[i];
	for (int streams = 0; streams < 2; streams++) {
		on_stream = streams;
		kill_one(n, n - 1);
	}
}

static void a_death_ends_calls_on_all_devices(void **state)
{
	const char *const one_each[] = { "0", "1", "2" };
	const char *const shared[] = { "0", "0" };
	const char *const some[] = { "0", NULL, "1" };

	(void)state;
	kill_with(one_each, 3);
	kill_with(shared, 2);
	kill_with(some, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_death_ends_calls_on_all_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
