/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages from and to memory of devices, which the host cannot touch, between ranks with and without
 * a device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu.h"
#include "support/world.h"
#include "util/fault.h"

#define LONGEST 200000

static const int both[] = { 0, 1 }, same[] = { 2, 2 }, mixed[] = { 0, -1 };
static const int *const pairs[] = { both, same, mixed };

static char byte_of(size_t at, size_t nbytes, int rank)
{
	return (char)(at * 7 + nbytes + (size_t)rank * 31);
}

/* What a rank sends, and around what it receives. */
static void fill(const struct gpu_buffer *buffer, size_t nbytes, int rank)
{
	for (size_t at = 0; at < nbytes; at++)
		buffer->view[at] = byte_of(at, nbytes, rank);
}

static bool is_right(const struct gpu_buffer *buffer, size_t nbytes, int source)
{
	for (size_t at = 0; at < nbytes; at++)
		if (buffer->view[at] != byte_of(at, nbytes, source))
			return false;
	return buffer->view[nbytes] == 'x';
}

/* Eager ones and those that are offered; both ranks send before they receive. */
static void exchange(tutti_channel_t channel, int rank, const struct gpu_buffer *sent,
		     const struct gpu_buffer *got)
{
	static const size_t lengths[] = { 0, 1, 4096, 16384, 16385, LONGEST };

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const size_t nbytes = lengths[i];
		tutti_message_info info = { 0 };
		tutti_request_t request;

		fill(sent, nbytes, rank);
		memset(got->view, 'x', LONGEST + 1);
		CHECK_OK(tutti_message_isend(channel, sent->memory, nbytes, 1 - rank, 5, &request));
		CHECK_OK(tutti_message_recv(channel, got->memory, LONGEST + 1, 1 - rank, 5, &info));
		CHECK_OK(tutti_message_wait(channel, request, -1, NULL));
		CHECK(info.bytes == nbytes && info.source == 1 - rank);
		CHECK(is_right(got, nbytes, 1 - rank));
	}
}

/* A receive that is too short takes nothing; one that is given up writes nothing; one that nobody
 * waits for is freed with its channel. */
static void refuse_and_cancel(tutti_channel_t channel, int rank, const struct gpu_buffer *sent,
			      const struct gpu_buffer *got)
{
	tutti_request_t request;

	fill(sent, 100, rank);
	memset(got->view, 'x', 101);
	CHECK_OK(tutti_message_send(channel, sent->memory, 100, 1 - rank, 6));
	CHECK(tutti_message_recv(channel, got->memory, 99, 1 - rank, 6, NULL) == TUTTI_EINVAL);
	CHECK(got->view[0] == 'x');
	CHECK_OK(tutti_message_recv(channel, got->memory, 100, 1 - rank, 6, NULL));
	CHECK(is_right(got, 100, 1 - rank));

	memset(got->view, 'x', 101);
	CHECK_OK(tutti_message_irecv(channel, got->memory, 100, 1 - rank, 7, &request));
	CHECK_OK(tutti_message_cancel(channel, request));
	CHECK(tutti_message_wait(channel, request, -1, NULL) == TUTTI_ECANCELED);
	CHECK(got->view[0] == 'x' && got->view[99] == 'x');
	CHECK_OK(tutti_message_irecv(channel, got->memory, 100, 1 - rank, 8, &request));
}

static void lack_memory(tutti_channel_t channel, int rank, const struct gpu_buffer *buffer)
{
	tutti_request_t request;

	if (!buffer->gpu)
		return;
	tti_fault_set("mem:1");
	CHECK(tutti_message_isend(channel, buffer->memory, 100, 1 - rank, 9, &request) ==
	      TUTTI_ENOMEM);
	tti_fault_set(NULL);
}

static void send_all(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int *devices = arg;
	struct gpu_buffer sent, got;
	tutti_channel_t channel;

	(void)n;
	gpu_alloc(&sent, devices[rank], LONGEST + 1);
	gpu_alloc(&got, devices[rank], LONGEST + 1);
	if (CHECK_OK(tutti_channel_create(comm, &channel))) {
		exchange(channel, rank, &sent, &got);
		refuse_and_cancel(channel, rank, &sent, &got);
		CHECK_OK(tutti_channel_destroy(channel));
	}
	gpu_free(&sent);
	gpu_free(&got);
}

static void messages_of_devices_arrive(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		const struct world world = { .n = 2, .devices = pairs[i] };

		if (world_run(&world, send_all, (void *)(uintptr_t)pairs[i]) != 0)
			fail_msg("ranks of devices %d and %d", pairs[i][0], pairs[i][1]);
	}
}

/* One rank, so that no other thread has the fault. */
static void send_to_itself(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct gpu_buffer buffer;
	tutti_channel_t channel;

	(void)n;
	(void)arg;
	gpu_alloc(&buffer, 0, 200);
	if (CHECK_OK(tutti_channel_create(comm, &channel))) {
		lack_memory(channel, 1 - rank, &buffer);
		fill(&buffer, 100, 0);
		CHECK_OK(tutti_message_send(channel, buffer.memory, 100, 0, 1));
		buffer.view[200 - 1] = 'x';
		CHECK_OK(tutti_message_recv(channel, buffer.memory + 99, 101, 0, 1, NULL));
		CHECK(buffer.view[99] == byte_of(0, 100, 0) && buffer.view[199] == 'x');
		CHECK_OK(tutti_channel_destroy(channel));
	}
	gpu_free(&buffer);
}

static void a_message_without_memory_is_not_made(void **state)
{
	static const int devices[] = { 0 };
	const struct world world = { .n = 1, .devices = devices };

	(void)state;
	assert_int_equal(world_run(&world, send_to_itself, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_devices_arrive),
		cmocka_unit_test(a_message_without_memory_is_not_made),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
