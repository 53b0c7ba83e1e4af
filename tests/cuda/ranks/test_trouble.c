/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on devices that cannot end: another call, a rank that does not come, an abort, a time limit.
 * Errors are those of hosts, and all kernels end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <time.h>

#include "gpu.h"
#include "gpu/cuda_memory.h"
#include "support/world.h"
#include "util/clock.h"

#define COUNT 5000
#define MOST  3

/* With and without a stream: what a rank is told by its call, or finds out later. */
struct trouble {
	const int *devices;
	bool on_stream;
	void (*call)(struct trouble *trouble, int rank);
	tutti_comm_t comm;
	struct gpu_buffer buffer;
	tutti_stream_t stream;
};

static const int both[] = { 0, 1 }, same[] = { 2, 2 }, mixed[] = { 0, -1 };
static const int *const pairs[] = { both, same, mixed };

/* The error of the communicator, once it has one. */
static tutti_status await_error(tutti_comm_t comm)
{
	const struct timespec nap = { .tv_nsec = 1000 * 1000 };
	tutti_status st = TUTTI_OK;

	for (int i = 0; i < 30000; i++) {
		if (!CHECK_OK(tutti_comm_get_async_error(comm, &st)) || st != TUTTI_OK)
			break;
		nanosleep(&nap, NULL);
	}
	return st;
}

static tutti_status sum_of(const struct trouble *trouble, tutti_type type, size_t count)
{
	const tutti_status st =
		tutti_all_reduce(trouble->buffer.memory, trouble->buffer.memory, count, type,
				 TUTTI_SUM, trouble->comm, trouble->stream);

	return st == TUTTI_OK && trouble->stream ? await_error(trouble->comm) : st;
}

static void run_rank(tutti_comm_t comm, int rank, int n, void *arg)
{
	struct trouble own = *(const struct trouble *)arg;
	const int device = own.devices[rank];
	struct gpu_stream stream = { 0 };

	(void)n;
	own.comm = comm;
	gpu_alloc(&own.buffer, device, COUNT * sizeof(double));
	if (own.on_stream && device >= 0) {
		gpu_stream_open(&stream, &own.buffer);
		own.stream = stream.tutti;
	}
	own.call(&own, rank);
	if (own.stream) {
		/* The kernel has ended, so the program's stream goes on. */
		gpu_stream_wait(&stream);
		(void)gpu_stream_close(&stream);
	}
	gpu_free(&own.buffer);
}

static void in_all_pairs(void (*call)(struct trouble *trouble, int rank))
{
	for (size_t i = 0; i < 2 * sizeof(pairs) / sizeof(pairs[0]); i++) {
		struct trouble trouble = { .devices = pairs[i / 2],
					   .on_stream = i % 2,
					   .call = call };
		const struct world world = { .n = 2, .devices = trouble.devices };

		if (world_run(&world, run_rank, &trouble) != 0)
			fail_msg("ranks of devices %d and %d, %s", trouble.devices[0],
				 trouble.devices[1], i % 2 ? "in a stream" : "in none");
	}
}

static bool says(tutti_comm_t comm, const char *what)
{
	const char *text = tutti_last_error(comm);

	return strstr(text, what) ? true : world_failed(__FILE__, __LINE__, what, text);
}

/* -- Another call ------------------------------------------------------------------------------ */

static void call_another_type(struct trouble *trouble, int rank)
{
	CHECK(sum_of(trouble, rank ? TUTTI_INT32 : TUTTI_FLOAT32, COUNT) == TUTTI_EMISMATCH);
	says(trouble->comm, "ranks called different things");
	says(trouble->comm, "int32");
	says(trouble->comm, "float32");
}

static void another_type_is_named(void **state)
{
	(void)state;
	in_all_pairs(call_another_type);
}

/* A call before it has gone well. */
static void call_another_count(struct trouble *trouble, int rank)
{
	struct trouble before = *trouble;

	before.stream = NULL;
	CHECK_OK(sum_of(&before, TUTTI_UINT8, 100));
	CHECK(sum_of(trouble, TUTTI_UINT8, COUNT - (rank == 1)) == TUTTI_EMISMATCH);
	says(trouble->comm, "4999");
	says(trouble->comm, "5000");
}

static void another_count_is_named(void **state)
{
	(void)state;
	in_all_pairs(call_another_count);
}

static void send_another_length(struct trouble *trouble, int rank)
{
	tutti_status st = rank ? tutti_recv(trouble->buffer.memory, 70, TUTTI_INT32, 0,
					    trouble->comm, trouble->stream)
			       : tutti_send(trouble->buffer.memory, 71, TUTTI_INT32, 1,
					    trouble->comm, trouble->stream);

	/* A short send may be over before its receive is made. */
	if (st == TUTTI_OK)
		st = await_error(trouble->comm);
	CHECK(st == TUTTI_EMISMATCH);
	says(trouble->comm, "rank 0 sends 71 x int32 to rank 1, which receives 70 x int32");
}

static void another_length_is_named(void **state)
{
	(void)state;
	in_all_pairs(send_another_length);
}

/* -- Who does not come --------------------------------------------------------------------------- */

/* The limit holds from the first call on, which may take longer. */
static void do_not_come(struct trouble *trouble, int rank)
{
	struct trouble before = *trouble;
	tutti_status st;

	before.stream = NULL;
	CHECK_OK(sum_of(&before, TUTTI_UINT8, 100));
	if (rank == 0) {
		CHECK_OK(tutti_comm_set_timeout(trouble->comm, 500));
		st = sum_of(trouble, TUTTI_UINT8, 100);
		CHECK(st == TUTTI_ETIMEOUT);
		says(trouble->comm, "for rank 1, which has not come");
		says(trouble->comm, "the limit is 500 ms");
	} else {
		CHECK(await_error(trouble->comm) == TUTTI_ETIMEOUT);
	}
}

static void who_does_not_come_is_named(void **state)
{
	(void)state;
	in_all_pairs(do_not_come);
}

/* -- An abort -------------------------------------------------------------------------------------- */

/* Another thread aborts while the call waits for rank 1, which calls nothing. */
static void *abort_soon(void *comm)
{
	const struct timespec nap = { .tv_nsec = 50 * 1000 * 1000 };

	nanosleep(&nap, NULL);
	CHECK_OK(tutti_comm_revoke(comm));
	return NULL;
}

static void revoke(struct trouble *trouble, int rank)
{
	struct trouble before = *trouble;
	pthread_t thread;

	before.stream = NULL;
	CHECK_OK(sum_of(&before, TUTTI_UINT8, 100));
	if (rank == 0) {
		CHECK(pthread_create(&thread, NULL, abort_soon, trouble->comm) == 0);
		CHECK(sum_of(trouble, TUTTI_UINT8, COUNT) == TUTTI_EREVOKED);
		pthread_join(thread, NULL);
	} else {
		CHECK(await_error(trouble->comm) == TUTTI_EREVOKED);
	}
}

static void an_end_ends_kernels(void **state)
{
	(void)state;
	in_all_pairs(revoke);
}

/* Two ranks of one thread. The kernels of the first wait for the second, the last of them behind what
 * the program does in its stream. */
static void an_abort_ends_what_is_in_flight(void **state)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	struct gpu_buffer buffer[2];
	struct gpu_stream stream[2];
	tutti_comm_t comm[2];

	(void)state;
	config.device = 3;
	assert_int_equal(tutti_comm_init_all(comm, 2, &config), TUTTI_OK);
	for (int i = 0; i < 2; i++) {
		gpu_alloc(&buffer[i], 3, COUNT);
		gpu_stream_open(&stream[i], &buffer[i]);
	}
	assert_int_equal(tutti_group_start(), TUTTI_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(tutti_all_reduce(buffer[i].memory, buffer[i].memory, COUNT,
						  TUTTI_UINT8, TUTTI_SUM, comm[i], stream[i].tutti),
				 TUTTI_OK);
	assert_int_equal(tutti_group_end(), TUTTI_OK);
	for (int times = 0; times < 5; times++)
		assert_int_equal(tutti_all_reduce(buffer[0].memory, buffer[0].memory, COUNT,
						  TUTTI_UINT8, TUTTI_SUM, comm[0], stream[0].tutti),
				 TUTTI_OK);
	assert_int_equal(tutti_stream_query(stream[0].tutti), TUTTI_AGAIN);
	assert_int_equal(tutti_comm_abort(comm[0]), TUTTI_OK);
	gpu_stream_wait(&stream[0]);
	assert_int_equal(tutti_stream_synchronize(stream[0].tutti), TUTTI_EABORTED);
	assert_int_equal(await_error(comm[1]), TUTTI_EPEER);
	assert_int_equal(tutti_comm_destroy(comm[1]), TUTTI_OK);
	for (int i = 0; i < 2; i++) {
		(void)gpu_stream_close(&stream[i]);
		gpu_free(&buffer[i]);
	}
}

/* -- Buffers ----------------------------------------------------------------------- */

static void pass_what_kernels_do_not_reach(struct trouble *trouble, int rank)
{
	static char pageable[64];

	if (trouble->devices[rank] >= 0) {
		CHECK(tutti_all_reduce(pageable, pageable, 4, TUTTI_INT32, TUTTI_SUM, trouble->comm,
				       trouble->stream) == TUTTI_EINVAL);
		says(trouble->comm, "the send buffer of all_reduce");
	}
	if (trouble->devices[rank] >= 0) {
		tutti_reg_t reg;

		/* To register it means nothing, and is allowed. */
		if (CHECK_OK(tutti_register(trouble->comm, trouble->buffer.memory, 64, &reg)))
			CHECK_OK(tutti_deregister(trouble->comm, reg));
	}
	/* None of that has taken a number. */
	CHECK_OK(tutti_all_reduce(trouble->buffer.memory, trouble->buffer.memory, 4, TUTTI_INT32,
				  TUTTI_SUM, trouble->comm, trouble->stream));
}

/* Nobody waits for the call: it has taken no number. */
static void use_a_stream_of_another_gpu(struct trouble *trouble, int rank)
{
	const int device = trouble->devices[rank];
	struct gpu_buffer elsewhere;
	struct gpu_stream stream;

	if (device >= 0) {
		gpu_alloc(&elsewhere, 3, 64);
		gpu_stream_open(&stream, &elsewhere);
		CHECK(tutti_all_reduce(trouble->buffer.memory, trouble->buffer.memory, 4,
				       TUTTI_INT32, TUTTI_SUM, trouble->comm,
				       stream.tutti) == TUTTI_EINVAL);
		says(trouble->comm, "is of GPU 3, the communicator of GPU");
		CHECK_OK(gpu_stream_close(&stream));
		gpu_free(&elsewhere);
	}
	CHECK_OK(tutti_all_reduce(trouble->buffer.memory, trouble->buffer.memory, 4, TUTTI_INT32,
				  TUTTI_SUM, trouble->comm, trouble->stream));
}

static void a_stream_of_another_gpu_is_refused(void **state)
{
	(void)state;
	in_all_pairs(use_a_stream_of_another_gpu);
}

static void what_kernels_do_not_reach_is_refused(void **state)
{
	(void)state;
	in_all_pairs(pass_what_kernels_do_not_reach);
}

static void pinned_memory_is_reached(struct trouble *trouble, int rank)
{
	const int device = trouble->devices[rank];
	struct gpu_buffer pinned;
	int32_t *at;

	if (device < 0)
		gpu_alloc(&pinned, -1, 64);
	else
		gpu_alloc_pinned(&pinned, device, 64);
	at = (int32_t *)(void *)pinned.view;
	*at = rank + 5;
	CHECK_OK(tutti_all_reduce(pinned.memory, pinned.memory, 1, TUTTI_INT32, TUTTI_SUM,
				  trouble->comm, NULL));
	CHECK(*at == 11);
	gpu_free(&pinned);
}

static void pinned_memory_of_the_host_is_reached(void **state)
{
	(void)state;
	in_all_pairs(pinned_memory_is_reached);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_type_is_named),
		cmocka_unit_test(another_count_is_named),
		cmocka_unit_test(another_length_is_named),
		cmocka_unit_test(who_does_not_come_is_named),
		cmocka_unit_test(an_end_ends_kernels),
		cmocka_unit_test(an_abort_ends_what_is_in_flight),
		cmocka_unit_test(what_kernels_do_not_reach_is_refused),
		cmocka_unit_test(a_stream_of_another_gpu_is_refused),
		cmocka_unit_test(pinned_memory_of_the_host_is_reached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
