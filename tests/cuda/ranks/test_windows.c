/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows on memory of devices that the host cannot touch: in place between ranks of a process, by
 * messages from and to a rank without a device, at once and in streams of CUDA. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu.h"
#include "support/world.h"

/* More than a message. */
#define NBYTES 300000
#define TIMES  3

static const int both[] = { 0, 1 }, same[] = { 2, 2 }, mixed[] = { 0, -1 },
		 none_first[] = { -1, 3 };
static const int *const pairs[] = { both, same, mixed, none_first };

struct side {
	int rank, peer;
	struct gpu_buffer base, own, got;
	struct gpu_stream stream;
	tutti_stream_t over;
	tutti_window_t window;
};

static char byte_of(int rank, int time, size_t at)
{
	return (char)((size_t)rank * 50 + (size_t)time * 7 + at * 3);
}

static bool is_right(const struct gpu_buffer *buffer, int rank, int time)
{
	for (size_t at = 0; at < NBYTES; at++)
		if (buffer->view[at] != byte_of(rank, time, at))
			return false;
	return true;
}

static void await(const struct side *side)
{
	if (side->over)
		gpu_stream_wait(&side->stream);
}

/* Each puts into the window of the other, waits for its own, and gets what it has put. */
static void swap(const struct side *side, int time)
{
	for (size_t at = 0; at < NBYTES; at++)
		side->own.view[at] = byte_of(side->rank, time, at);
	memset(side->got.view, 0, NBYTES);
	CHECK_OK(tutti_put(side->window, side->peer, 10, side->own.memory, NBYTES, side->over));
	CHECK_OK(tutti_window_flush(side->window, side->peer, side->over));
	CHECK_OK(tutti_get(side->window, side->peer, 10, side->got.memory, NBYTES, side->over));
	CHECK_OK(tutti_signal(side->window, side->peer, side->over));
	CHECK_OK(tutti_wait_signal(side->window, side->peer, 1, side->over));
	await(side);
	CHECK(is_right(&side->got, side->rank, time));
	/* The own window, read as the peer would. */
	CHECK_OK(tutti_get(side->window, side->rank, 10, side->got.memory, NBYTES, side->over));
	await(side);
	CHECK(is_right(&side->got, side->peer, time));
	CHECK(side->base.view[9] == 0 && side->base.view[NBYTES + 10] == 0);
	/* Nobody puts again before the other has looked. */
	CHECK_OK(tutti_signal(side->window, side->peer, side->over));
	CHECK_OK(tutti_wait_signal(side->window, side->peer, 1, side->over));
	await(side);
}

static void refuse_a_capture(const struct side *side)
{
	gpu_capture_begin(&side->stream);
	CHECK(tutti_signal(side->window, side->peer, side->over) == TUTTI_EUNSUPPORTED);
	CHECK(strstr(tutti_last_error(NULL), "is captured") != NULL);
	gpu_graph_free(gpu_capture_end(&side->stream), &side->stream);
}

static void run_rank(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int device = ((const int *)arg)[rank];
	struct side side = { .rank = rank, .peer = 1 - rank };

	(void)n;
	gpu_alloc(&side.base, device, NBYTES + 20);
	gpu_alloc(&side.own, device, NBYTES);
	gpu_alloc(&side.got, device, NBYTES);
	if (device >= 0)
		gpu_stream_open(&side.stream, &side.base);
	if (CHECK_OK(tutti_window_create(comm, side.base.memory, NBYTES + 20, &side.window))) {
		for (int time = 0; time < TIMES; time++) {
			side.over = time > 0 && device >= 0 ? side.stream.tutti : NULL;
			swap(&side, time);
		}
		if (side.over)
			refuse_a_capture(&side);
		CHECK_OK(tutti_window_destroy(side.window));
	}
	if (device >= 0)
		CHECK_OK(gpu_stream_close(&side.stream));
	gpu_free(&side.base);
	gpu_free(&side.own);
	gpu_free(&side.got);
}

static void windows_are_memory_of_devices(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const struct world world = { .n = 2, .devices = pairs[i] };

		if (world_run(&world, run_rank, (void *)(uintptr_t)pairs[i]) != 0)
			fail_msg("ranks of devices %d and %d", pairs[i][0], pairs[i][1]);
	}
}

/* Nothing that a rank does between calls may wait for the GPU: kernels of the others wait for it. */
static void make_windows(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct gpu_buffer base;
	tutti_window_t window;

	(void)arg;
	gpu_alloc(&base, 0, NBYTES);
	for (int time = 0; time < 50; time++) {
		memset(base.view, rank == time % n ? time : 0, NBYTES);
		CHECK_OK(tutti_window_create(comm, base.memory, NBYTES, &window));
		CHECK_OK(tutti_all_reduce(base.memory, base.memory, NBYTES, TUTTI_UINT8, TUTTI_SUM,
					  comm, NULL));
		CHECK(base.view[0] == time && base.view[NBYTES - 1] == time);
		CHECK_OK(tutti_window_destroy(window));
	}
	gpu_free(&base);
}

static void ranks_of_one_device_make_windows(void **state)
{
	static const int one[] = { 0, 0, 0, 0 };
	const struct world world = { .n = 4, .devices = one };

	(void)state;
	assert_int_equal(world_run(&world, make_windows, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_are_memory_of_devices),
		cmocka_unit_test(ranks_of_one_device_make_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
