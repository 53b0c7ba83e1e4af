/* SPDX-License-Identifier: BSD-3-Clause */
/* Operators whose function is the program's, on memory of devices that the host cannot touch: in
 * streams of CUDA, between kernels, in groups with them, and in a capture, which is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu.h"
#include "support/world.h"

#define COUNT 3000
#define MOST  4

static const struct place {
	int n, devices[MOST];
} places[] = {
	{ 1, { 0 } },
	{ 2, { 0, 1 } },
	{ 2, { 2, 2 } },
	{ 3, { 0, -1, 1 } },
};
#define PLACES (sizeof(places) / sizeof(places[0]))

static void add(void *inout, const void *in, size_t count, tutti_type type, void *arg)
{
	uint32_t *to = inout;
	const uint32_t *from = in;

	(void)type;
	(void)arg;
	for (size_t i = 0; i < count; i++)
		to[i] += from[i];
}

static void fill(const struct gpu_buffer *buffer)
{
	for (uint32_t i = 0; i < COUNT; i++)
		((uint32_t *)(void *)buffer->view)[i] = i + 1;
}

static bool is_filled(const struct gpu_buffer *buffer, uint32_t times)
{
	for (uint32_t i = 0; i < COUNT; i++)
		if (((const uint32_t *)(const void *)buffer->view)[i] != (i + 1) * times)
			return false;
	return true;
}

struct member {
	struct gpu_buffer buffer;
	struct gpu_stream stream;
	tutti_stream_t over; /* NULL on a rank without a device */
	tutti_comm_t comm;
	tutti_op op;
};

static void reduce(const struct member *member, tutti_op op)
{
	CHECK_OK(tutti_all_reduce(member->buffer.memory, member->buffer.memory, COUNT, TUTTI_UINT32,
				  op, member->comm, member->over));
}

/* Each call reads what the one before has written. */
static void call_all(const struct member *member)
{
	reduce(member, TUTTI_SUM);
	reduce(member, member->op);
	reduce(member, member->op);
	reduce(member, TUTTI_SUM);
	CHECK_OK(tutti_group_start());
	reduce(member, member->op);
	reduce(member, TUTTI_SUM);
	CHECK_OK(tutti_group_end());
}

static void refuse_a_capture(const struct member *member)
{
	gpu_capture_begin(&member->stream);
	CHECK(tutti_all_reduce(member->buffer.memory, member->buffer.memory, COUNT, TUTTI_UINT32,
			       member->op, member->comm, member->over) == TUTTI_EUNSUPPORTED);
	CHECK(strstr(tutti_last_error(member->comm), "is captured") != NULL);
	gpu_graph_free(gpu_capture_end(&member->stream), &member->stream);
}

static void run_rank(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int device = ((const int *)arg)[rank];
	struct member member = { .comm = comm };
	uint32_t times = 1;

	gpu_alloc(&member.buffer, device, COUNT * sizeof(uint32_t));
	if (device >= 0) {
		gpu_stream_open(&member.stream, &member.buffer);
		member.over = member.stream.tutti;
	}
	fill(&member.buffer);
	if (CHECK_OK(tutti_op_create(&member.op, add, NULL, 1, comm))) {
		call_all(&member);
		if (device >= 0) {
			gpu_stream_wait(&member.stream);
			refuse_a_capture(&member);
		}
		for (int i = 0; i < 6; i++)
			times *= (uint32_t)n;
		CHECK(is_filled(&member.buffer, times));
		/* The capture has taken no number. */
		reduce(&member, member.op);
		if (device >= 0)
			gpu_stream_wait(&member.stream);
		CHECK(is_filled(&member.buffer, times * (uint32_t)n));
		CHECK_OK(tutti_op_destroy(member.op, comm));
	}
	if (device >= 0)
		CHECK_OK(gpu_stream_close(&member.stream));
	gpu_free(&member.buffer);
}

static void functions_of_the_program_reduce_in_streams(void **state)
{
	(void)state;
	for (size_t i = 0; i < PLACES; i++) {
		const struct world world = { .n = places[i].n, .devices = places[i].devices };

		if (world_run(&world, run_rank, (void *)(uintptr_t)places[i].devices) != 0)
			fail_msg("in place %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_of_the_program_reduce_in_streams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
