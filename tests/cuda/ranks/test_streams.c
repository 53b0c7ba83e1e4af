/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls in streams of CUDA: they wait for nobody, keep their order over streams, go in groups of
 * several ranks on one GPU, and are repeated by graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <time.h>

#include "gpu.h"
#include "support/sanitizer.h"
#include "support/world.h"
#include "util/fault.h"

#define COUNT 3000
#define CALLS 20
#define MOST  4

static const struct place {
	int n, devices[MOST];
} places[] = {
	{ 1, { 0 } }, { 2, { 0, 1 } }, { 2, { 2, 2 } }, { 3, { 0, 1, 0 } }, { 4, { 0, -1, 1, 2 } },
};
#define PLACES (sizeof(places) / sizeof(places[0]))

static void fill(const struct gpu_buffer *buffer, uint32_t value)
{
	uint32_t *at = (uint32_t *)(void *)buffer->view;

	for (size_t i = 0; i < COUNT; i++)
		at[i] = value + (uint32_t)i;
}

/* Each element is `times` what fill() has put there. */
static bool is_filled(const struct gpu_buffer *buffer, uint32_t value, uint32_t times)
{
	const uint32_t *at = (const uint32_t *)(const void *)buffer->view;
	size_t i = 0;

	while (i < COUNT && at[i] == (value + (uint32_t)i) * times)
		i++;
	return i == COUNT;
}

static uint32_t power(uint32_t base, int exponent)
{
	uint32_t result = 1;

	for (; exponent > 0; exponent--)
		result *= base;
	return result;
}

static tutti_status sum(const struct gpu_buffer *buffer, tutti_comm_t comm, tutti_stream_t stream)
{
	return tutti_all_reduce(buffer->memory, buffer->memory, COUNT, TUTTI_UINT32, TUTTI_SUM,
				comm, stream);
}

/* Once more with two ranks that do not reach each other's GPUs, so that the host moves their
 * messages. */
static void for_places(size_t nplaces, world_fn fn)
{
	for (size_t i = 0; i < 2 * nplaces; i++) {
		const struct place *place = &places[i / 2];
		const struct world world = { .n = place->n, .devices = place->devices };

		if (i % 2)
			tti_fault_set("core.reach:1");
		if (world_run(&world, fn, (void *)(uintptr_t)place->devices) != 0)
			fail_msg("in place %zu, %s", i / 2, i % 2 ? "not all reached" : "as it is");
		tti_fault_set(NULL);
	}
}

static void for_all_places(world_fn fn)
{
	for_places(PLACES, fn);
}

/* What a rank without a device does: the same calls, on the host. */
static void call_on_host(tutti_comm_t comm, int n, int calls)
{
	struct gpu_buffer buffer;

	gpu_alloc(&buffer, -1, COUNT * sizeof(uint32_t));
	fill(&buffer, 1);
	for (int i = 0; i < calls; i++)
		CHECK_OK(sum(&buffer, comm, NULL));
	CHECK(is_filled(&buffer, 1, power((uint32_t)n, calls)));
	gpu_free(&buffer);
}

/* -- Order ----------------------------------------------------------------------------- */

static void fill_a_held_stream(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int device = ((const int *)arg)[rank];
	_Atomic bool open = false;
	struct gpu_stream stream;
	struct gpu_buffer buffer;

	if (device < 0) {
		call_on_host(comm, n, CALLS + 1);
		return;
	}
	gpu_alloc(&buffer, device, COUNT * sizeof(uint32_t));
	gpu_stream_open(&stream, &buffer);
	fill(&buffer, 1);
	/* The first one makes lanes, by which ranks wait for each other. */
	CHECK_OK(sum(&buffer, comm, stream.tutti));
	gpu_stream_hold(&stream, &open);
	for (int i = 0; i < CALLS; i++)
		CHECK_OK(sum(&buffer, comm, stream.tutti));
	CHECK(tutti_stream_query(stream.tutti) == TUTTI_AGAIN);
	atomic_store(&open, true);
	gpu_stream_wait(&stream);
	CHECK(is_filled(&buffer, 1, power((uint32_t)n, CALLS + 1)));
	CHECK_OK(tutti_stream_synchronize(stream.tutti));
	CHECK_OK(tutti_stream_query(stream.tutti));
	CHECK_OK(gpu_stream_close(&stream));
	gpu_free(&buffer);
}

static void calls_wait_for_nobody(void **state)
{
	(void)state;
	for_all_places(fill_a_held_stream);
}

static void use_two_streams(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int device = ((const int *)arg)[rank];
	struct gpu_stream stream[2];
	struct gpu_buffer buffer;

	if (device < 0) {
		call_on_host(comm, n, CALLS);
		return;
	}
	gpu_alloc(&buffer, device, COUNT * sizeof(uint32_t));
	for (int i = 0; i < 2; i++)
		gpu_stream_open(&stream[i], &buffer);
	fill(&buffer, 1);
	/* Each reads what the one before has written, in the other stream or in none. */
	for (int i = 0; i < CALLS; i++)
		CHECK_OK(sum(&buffer, comm, i % 7 == 6 ? NULL : stream[i % 3 % 2].tutti));
	for (int i = 0; i < 2; i++)
		gpu_stream_wait(&stream[i]);
	CHECK(is_filled(&buffer, 1, power((uint32_t)n, CALLS)));
	for (int i = 0; i < 2; i++)
		CHECK_OK(gpu_stream_close(&stream[i]));
	gpu_free(&buffer);
}

static void calls_keep_their_order_over_streams(void **state)
{
	(void)state;
	for_all_places(use_two_streams);
}

/* -- What else a stream does --------------------------------------------------------------- */

static void note_status(tutti_status status, void *arg)
{
	atomic_store((_Atomic int *)arg, status == TUTTI_OK ? 1 : -1);
}

static void use_all_of_a_stream(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int device = ((const int *)arg)[rank];
	_Atomic int told = 0;
	struct gpu_stream stream;
	struct gpu_buffer buffer;
	tutti_persistent_t persistent;
	tutti_call call = TUTTI_CALL_INIT;
	tutti_event_t event;

	if (device < 0) {
		call_on_host(comm, n, 4);
		return;
	}
	gpu_alloc(&buffer, device, COUNT * sizeof(uint32_t));
	gpu_stream_open(&stream, &buffer);
	fill(&buffer, 1);
	CHECK_OK(sum(&buffer, comm, stream.tutti));
	CHECK_OK(tutti_stream_call(stream.tutti, note_status, &told));
	CHECK_OK(tutti_event_create(&event));
	CHECK_OK(tutti_event_record(event, stream.tutti));
	CHECK_OK(tutti_event_synchronize(event));
	CHECK(atomic_load(&told) == 1);
	CHECK(is_filled(&buffer, 1, (uint32_t)n));
	call.coll = TUTTI_ALL_REDUCE;
	call.send = call.recv = buffer.memory;
	call.count = COUNT;
	call.type = TUTTI_UINT32;
	call.op = TUTTI_SUM;
	if (CHECK_OK(tutti_persistent_create(&call, comm, &persistent))) {
		for (int i = 0; i < 2; i++) {
			CHECK_OK(tutti_persistent_start(persistent, stream.tutti));
			CHECK_OK(tutti_persistent_wait(persistent));
		}
		CHECK_OK(tutti_persistent_start(persistent, NULL));
		CHECK_OK(tutti_persistent_destroy(persistent));
	}
	CHECK(is_filled(&buffer, 1, power((uint32_t)n, 4)));
	CHECK_OK(tutti_event_destroy(event));
	CHECK_OK(gpu_stream_close(&stream));
	gpu_free(&buffer);
}

static void a_stream_does_all_that_others_do(void **state)
{
	(void)state;
	for_all_places(use_all_of_a_stream);
}

/* -- Ranks of one thread ------------------------------------------------------------------ */

struct crowd {
	int n;
	tutti_comm_t comm[MOST];
	struct gpu_buffer buffer[MOST], other[MOST];
	struct gpu_stream stream[MOST];
};

/* All on one GPU. */
static void gather(struct crowd *crowd, int n)
{
	tutti_config config = TUTTI_CONFIG_INIT;

	config.device = 1;
	crowd->n = n;
	assert_int_equal(tutti_comm_init_all(crowd->comm, n, &config), TUTTI_OK);
	for (int i = 0; i < n; i++) {
		gpu_alloc(&crowd->buffer[i], 1, COUNT * sizeof(uint32_t));
		gpu_alloc(&crowd->other[i], 1, COUNT * sizeof(uint32_t));
		gpu_stream_open(&crowd->stream[i], &crowd->buffer[i]);
		fill(&crowd->buffer[i], 1);
	}
}

static void scatter(struct crowd *crowd)
{
	for (int i = 0; i < crowd->n; i++) {
		assert_int_equal(gpu_stream_close(&crowd->stream[i]), TUTTI_OK);
		assert_int_equal(tutti_comm_destroy(crowd->comm[i]), TUTTI_OK);
		gpu_free(&crowd->buffer[i]);
		gpu_free(&crowd->other[i]);
	}
}

/* `one`: the only stream, NULL: each rank has its own. */
static void sum_in_a_group(struct crowd *crowd, const tutti_stream_t *one)
{
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	for (int i = 0; i < crowd->n; i++)
		assert_int_equal(
			sum(&crowd->buffer[i], crowd->comm[i], one ? *one : crowd->stream[i].tutti),
			TUTTI_OK);
	assert_int_equal(tutti_group_end(), TUTTI_OK);
}

static void check_sums(struct crowd *crowd, int calls)
{
	for (int i = 0; i < crowd->n; i++) {
		gpu_stream_wait(&crowd->stream[i]);
		if (!is_filled(&crowd->buffer[i], 1, power((uint32_t)crowd->n, calls)))
			fail_msg("rank %d of %d after %d calls", i, crowd->n, calls);
	}
}

static void one_thread_has_several_ranks(void **state)
{
	const tutti_stream_t none = NULL;

	(void)state;
	for (int n = 1; n <= MOST; n++) {
		struct crowd crowd;

		gather(&crowd, n);
		/* One stream: a second kernel would begin once the first has ended. */
		sum_in_a_group(&crowd, &crowd.stream[0].tutti);
		check_sums(&crowd, 1);
		sum_in_a_group(&crowd, &none);
		check_sums(&crowd, 2);
		sum_in_a_group(&crowd, NULL);
		check_sums(&crowd, 3);
		/* Streams of their own need no group: nobody waits. */
		for (int i = 0; i < n; i++)
			assert_int_equal(
				sum(&crowd.buffer[i], crowd.comm[i], crowd.stream[i].tutti),
				TUTTI_OK);
		check_sums(&crowd, 4);
		scatter(&crowd);
	}
}

/* Nothing was called before: lanes are made by the group itself, for ranks that wait for each other in
 * streams of their own. All have the first stream for the first call, and take turns after that. */
static void a_group_has_ranks_on_several_streams(void **state)
{
	(void)state;
	for (int n = 2; n <= MOST; n++) {
		struct crowd crowd;

		gather(&crowd, n);
		assert_int_equal(tutti_group_start(), TUTTI_OK);
		for (int i = 0; i < n; i++)
			for (int k = 0; k < 3; k++)
				assert_int_equal(sum(&crowd.buffer[i], crowd.comm[i],
						     crowd.stream[k ? (i + k) % n : 0].tutti),
						 TUTTI_OK);
		assert_int_equal(tutti_group_end(), TUTTI_OK);
		for (int i = 0; i < n; i++)
			gpu_stream_wait(&crowd.stream[i]);
		check_sums(&crowd, 3);
		scatter(&crowd);
	}
}

/* The same by another kernel, as its type is another one. */
static tutti_status sum_floats(const struct gpu_buffer *buffer, tutti_comm_t comm,
			       tutti_stream_t stream)
{
	return tutti_all_reduce(buffer->memory, buffer->memory, COUNT, TUTTI_FLOAT32, TUTTI_SUM,
				comm, stream);
}

static void fill_floats(const struct gpu_buffer *buffer, float value)
{
	for (size_t i = 0; i < COUNT; i++)
		((float *)(void *)buffer->view)[i] = value;
}

static bool has_floats(const struct gpu_buffer *buffer, float value)
{
	const float *at = (const float *)(const void *)buffer->view;
	size_t i = 0;

	while (i < COUNT && at[i] == value)
		i++;
	return i == COUNT;
}

/* Calls of two communicators by turns, in one stream: ranks of the first go together all the same. */
static void one_thread_has_several_ranks_of_two(void **state)
{
	(void)state;
	for (int n = 1; n <= MOST; n++) {
		struct crowd first, second;
		const tutti_stream_t *one = &first.stream[0].tutti;

		gather(&first, n);
		gather(&second, n);
		assert_int_equal(tutti_group_start(), TUTTI_OK);
		for (int i = 0; i < n; i++) {
			fill_floats(&second.buffer[i], 2);
			assert_int_equal(sum(&first.buffer[i], first.comm[i], *one), TUTTI_OK);
			assert_int_equal(sum_floats(&second.buffer[i], second.comm[i], *one),
					 TUTTI_OK);
		}
		assert_int_equal(tutti_group_end(), TUTTI_OK);
		check_sums(&first, 1);
		for (int i = 0; i < n; i++)
			assert_true(has_floats(&second.buffer[i], (float)(2 * n)));
		scatter(&second);
		scatter(&first);
	}
}

/* Three communicators in a group, the first and the last by one kernel. Rank 0 has all in one stream, other ranks the
 * first one in a stream of its own: so the last comes behind the second there, and must not come before it on rank 0. */
static void use_three_communicators(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int device = ((const int *)arg)[rank];
	struct gpu_stream stream, other;
	struct gpu_buffer buffer[3];
	tutti_comm_t second, third;

	CHECK_OK(tutti_comm_dup(comm, &second, NULL));
	CHECK_OK(tutti_comm_dup(comm, &third, NULL));
	for (int i = 0; i < 3; i++) {
		gpu_alloc(&buffer[i], device, COUNT * sizeof(uint32_t));
		fill(&buffer[i], 1);
	}
	gpu_stream_open(&stream, &buffer[0]);
	gpu_stream_open(&other, &buffer[0]);
	fill_floats(&buffer[1], 2);
	CHECK_OK(tutti_group_start());
	CHECK_OK(sum(&buffer[0], comm, rank == 0 ? stream.tutti : other.tutti));
	CHECK_OK(sum_floats(&buffer[1], second, stream.tutti));
	CHECK_OK(sum(&buffer[2], third, stream.tutti));
	CHECK_OK(tutti_group_end());
	gpu_stream_wait(&other);
	gpu_stream_wait(&stream);
	CHECK(is_filled(&buffer[0], 1, (uint32_t)n) && is_filled(&buffer[2], 1, (uint32_t)n));
	CHECK(has_floats(&buffer[1], (float)(2 * n)));
	CHECK_OK(gpu_stream_close(&stream));
	CHECK_OK(gpu_stream_close(&other));
	CHECK_OK(tutti_comm_destroy(third));
	CHECK_OK(tutti_comm_destroy(second));
	for (int i = 0; i < 3; i++)
		gpu_free(&buffer[i]);
}

static void a_group_keeps_the_order_of_communicators(void **state)
{
	(void)state;
	for_places(PLACES - 1, use_three_communicators);
}

/* Rank 0 sends to rank 1 in one stream and to rank 2 in another: what is second there is first for
 * rank 2. */
static void a_group_has_transfers_on_several_streams(void **state)
{
	const size_t nbytes = COUNT * sizeof(uint32_t);
	struct crowd crowd;

	(void)state;
	gather(&crowd, 3);
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	for (int peer = 1; peer < 3; peer++) {
		assert_int_equal(tutti_send(crowd.buffer[0].memory, nbytes, TUTTI_UINT8, peer,
					    crowd.comm[0], crowd.stream[peer - 1].tutti),
				 TUTTI_OK);
		assert_int_equal(tutti_recv(crowd.other[peer].memory, nbytes, TUTTI_UINT8, 0,
					    crowd.comm[peer], crowd.stream[peer - 1].tutti),
				 TUTTI_OK);
	}
	assert_int_equal(tutti_group_end(), TUTTI_OK);
	for (int i = 0; i < 2; i++)
		gpu_stream_wait(&crowd.stream[i]);
	for (int peer = 1; peer < 3; peer++)
		assert_true(is_filled(&crowd.other[peer], 1, 1));
	scatter(&crowd);
}

/* Sends and receives of all ranks, to themselves too, and two collectives of each. */
static void a_group_has_calls_of_all_kinds(void **state)
{
	struct crowd crowd;

	(void)state;
	gather(&crowd, MOST);
	for (int times = 0; times < 3; times++) {
		assert_int_equal(tutti_group_start(), TUTTI_OK);
		for (int i = 0; i < MOST; i++) {
			const tutti_stream_t stream = crowd.stream[0].tutti;
			const size_t part = COUNT / MOST;

			for (int peer = 0; peer < MOST; peer++) {
				uint32_t *from = (uint32_t *)(void *)crowd.buffer[i].memory;
				uint32_t *to = (uint32_t *)(void *)crowd.other[i].memory;

				assert_int_equal(tutti_send(from + part * (size_t)peer, part,
							    TUTTI_UINT32, peer, crowd.comm[i],
							    stream),
						 TUTTI_OK);
				assert_int_equal(tutti_recv(to + part * (size_t)peer, part,
							    TUTTI_UINT32, peer, crowd.comm[i],
							    stream),
						 TUTTI_OK);
			}
			assert_int_equal(sum(&crowd.buffer[i], crowd.comm[i], stream), TUTTI_OK);
			assert_int_equal(sum(&crowd.buffer[i], crowd.comm[i], stream), TUTTI_OK);
		}
		assert_int_equal(tutti_group_end(), TUTTI_OK);
	}
	gpu_stream_wait(&crowd.stream[0]);
	check_sums(&crowd, 6);
	for (int i = 0; i < MOST; i++)
		for (size_t at = 0; at < COUNT / MOST * MOST; at++) {
			const size_t part = COUNT / MOST;
			const uint32_t *got = (const uint32_t *)(const void *)crowd.other[i].view;
			/* What all had there before the last sums. */
			const size_t from = at % part + part * (size_t)i;

			assert_int_equal(got[at], (uint32_t)(1 + from) * power(MOST, 4));
		}
	scatter(&crowd);
}

/* -- Graphs ------------------------------------------------------------------------------- */

#define REPEATS (SANITIZED ? 25 : 100)

static void repeat_a_graph(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int device = ((const int *)arg)[rank];
	struct gpu_buffer buffer, other;
	struct gpu_stream stream[2];
	void *graph;

	gpu_alloc(&buffer, device, COUNT * sizeof(uint32_t));
	gpu_alloc(&other, device, COUNT * sizeof(uint32_t));
	for (int i = 0; i < 2; i++)
		gpu_stream_open(&stream[i], &buffer);
	fill(&buffer, 1);
	/* A call before it, three in it of which one is in another stream, and others after it. */
	CHECK_OK(sum(&buffer, comm, stream[1].tutti));
	gpu_capture_begin(&stream[0]);
	CHECK_OK(sum(&buffer, comm, stream[0].tutti));
	gpu_stream_join(&stream[0], &stream[1]);
	CHECK_OK(sum(&buffer, comm, stream[1].tutti));
	gpu_stream_join(&stream[1], &stream[0]);
	CHECK_OK(tutti_all_to_all(buffer.memory, other.memory, COUNT / (size_t)n, TUTTI_UINT32,
				  comm, stream[0].tutti));
	graph = gpu_capture_end(&stream[0]);
	gpu_stream_wait(&stream[1]);
	CHECK(is_filled(&buffer, 1, (uint32_t)n)); /* recorded is not run */
	for (int i = 0; i < REPEATS; i++)
		gpu_graph_launch(graph, &stream[0]);
	/* Behind all of that, though made now. */
	CHECK_OK(sum(&buffer, comm, stream[0].tutti));
	gpu_stream_wait(&stream[0]);
	CHECK(is_filled(&buffer, 1, power((uint32_t)n, 2 + 2 * REPEATS)));
	gpu_graph_launch(graph, &stream[0]);
	gpu_stream_wait(&stream[0]);
	CHECK_OK(sum(&buffer, comm, NULL));
	CHECK(is_filled(&buffer, 1, power((uint32_t)n, 5 + 2 * REPEATS)));
	gpu_graph_free(graph, &stream[0]);
	for (int i = 0; i < 2; i++)
		CHECK_OK(gpu_stream_close(&stream[i]));
	gpu_free(&buffer);
	gpu_free(&other);
}

static void graphs_are_repeated(void **state)
{
	(void)state;
	/* All ranks have devices: hosts record nothing. */
	for_places(PLACES - 1, repeat_a_graph);
}

/* Of the rank without a device nothing would be repeated. Nobody waits for a call that is refused. */
static void capture_with_a_host(tutti_comm_t comm, int rank, int n, void *arg)
{
	const int device = ((const int *)arg)[rank];
	struct gpu_buffer buffer;
	struct gpu_stream stream;

	if (device < 0) {
		call_on_host(comm, n, 2);
		return;
	}
	gpu_alloc(&buffer, device, COUNT * sizeof(uint32_t));
	gpu_stream_open(&stream, &buffer);
	fill(&buffer, 1);
	for (int i = 0; i < 2; i++) {
		gpu_capture_begin(&stream);
		CHECK(sum(&buffer, comm, stream.tutti) == TUTTI_EUNSUPPORTED);
		CHECK(strstr(tutti_last_error(NULL), "whose rank 1 has no device"));
		gpu_graph_free(gpu_capture_end(&stream), &stream);
		CHECK_OK(sum(&buffer, comm, stream.tutti));
	}
	gpu_stream_wait(&stream);
	CHECK(is_filled(&buffer, 1, power((uint32_t)n, 2)));
	CHECK_OK(gpu_stream_close(&stream));
	gpu_free(&buffer);
}

static void no_graph_has_calls_of_hosts(void **state)
{
	const struct place *place = &places[PLACES - 1];
	const struct world world = { .n = place->n, .devices = place->devices };

	(void)state;
	assert_int_equal(world_run(&world, capture_with_a_host, (void *)(uintptr_t)place->devices),
			 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_wait_for_nobody),
		cmocka_unit_test(calls_keep_their_order_over_streams),
		cmocka_unit_test(a_stream_does_all_that_others_do),
		cmocka_unit_test(one_thread_has_several_ranks),
		cmocka_unit_test(one_thread_has_several_ranks_of_two),
		cmocka_unit_test(a_group_keeps_the_order_of_communicators),
		cmocka_unit_test(a_group_has_ranks_on_several_streams),
		cmocka_unit_test(a_group_has_transfers_on_several_streams),
		cmocka_unit_test(a_group_has_calls_of_all_kinds),
		cmocka_unit_test(graphs_are_repeated),
		cmocka_unit_test(no_graph_has_calls_of_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
