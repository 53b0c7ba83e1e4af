/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that processes share: one creates and records them, the other opens them, waits, and records them, too. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "alone.h"
#include "engine/event.h"
#include "engine/graph.h"

#define SHARED (TTI_CUDA_EVENT_IPC | TTI_CUDA_EVENT_NO_TIMING)

/* Between the two processes. */
struct room {
	_Atomic int gate; /* jobs wait until it is so high                     */
	_Atomic int at;   /* how far the owner is                              */
	_Atomic int told; /* what the owner is to do next                      */
	_Atomic int value;
	uint8_t handle[64];
};

static struct room *room;

static void await(_Atomic int *at, int least)
{
	while (atomic_load(at) < least)
		(void)usleep(1000);
}

struct job {
	_Atomic int *at;
	int wants, value; /* waits for the one, then sets room->value to the other */
};

static int run(void *arg)
{
	const struct job *const job = arg;

	await(job->at, job->wants);
	atomic_store(&room->value, job->value);
	return 0;
}

static void push(struct tti_cuda_stream *stream, struct job *job)
{
	const struct tti_cuda_job queued = { .run = run, .arg = job };

	GOOD(tti_cuda_stream_push(stream, &queued));
}

/* Records an event behind a job that waits for the gate, each time it is told to. */
static void owner_body(void *arg)
{
	struct tti_cuda_event *event;
	struct tti_cuda_stream *stream;

	(void)arg;
	GOOD(tti_cuda_stream_create(0, 0, &stream));
	GOOD(tti_cuda_event_create(SHARED, &event));
	GOOD(tti_cuda_event_get_handle(event, room->handle));
	atomic_store(&room->at, 1);
	for (int round = 1;; round++) {
		struct job job = { &room->gate, round, round };

		await(&room->told, round);
		if (atomic_load(&room->told) >= 1000)
			break;
		push(stream, &job);
		GOOD(tti_cuda_event_record(event, stream));
		atomic_store(&room->at, round + 1);
		GOOD(tti_cuda_stream_synchronize(stream));
	}
	GOOD(tti_cuda_event_destroy(event));
	GOOD(tti_cuda_stream_destroy(stream));
}

static pid_t start(void)
{
	pid_t owner;

	room = mmap(NULL, sizeof(*room), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(room != MAP_FAILED);
	owner = alone_start(owner_body, NULL);
	await(&room->at, 1);
	return owner;
}

static void record(int round)
{
	atomic_store(&room->told, round);
	await(&room->at, round + 1);
}

static void end(pid_t owner)
{
	atomic_store(&room->told, 1000);
	CHECK(alone_wait(owner) == 0);
	CHECK(munmap(room, sizeof(*room)) == 0);
}

/* An owner, and here its event and a stream. */
struct sides {
	pid_t owner;
	struct tti_cuda_event *event;
	struct tti_cuda_stream *stream;
};

static struct sides open_both(void)
{
	struct sides sides = { .owner = start() };

	GOOD(tti_cuda_stream_create(0, 0, &sides.stream));
	GOOD(tti_cuda_event_open_handle(room->handle, &sides.event));
	return sides;
}

static void close_own(const struct sides *sides)
{
	GOOD(tti_cuda_event_destroy(sides->event));
	GOOD(tti_cuda_stream_destroy(sides->stream));
}

static int saw;

static int look(void *arg)
{
	(void)arg;
	saw = atomic_load(&room->value);
	return 0;
}

static void wait_body(void *arg)
{
	const struct tti_cuda_job looks = { .run = look };
	const struct sides sides = open_both();
	struct tti_cuda_event *const event = sides.event;
	struct tti_cuda_stream *const stream = sides.stream;

	(void)arg;
	/* Never recorded: past. */
	GOOD(tti_cuda_event_query(event));
	GOOD(tti_cuda_event_synchronize(event));
	GOOD(tti_cuda_event_await(event, stream));
	for (int round = 1; round < 200; round++) {
		record(round);
		CHECK(tti_cuda_event_query(event) == TTI_CUDA_ENOTREADY);
		GOOD(tti_cuda_event_await(event, stream));
		GOOD(tti_cuda_stream_push(stream, &looks));
		CHECK(tti_cuda_stream_query(stream) == TTI_CUDA_ENOTREADY);
		atomic_store(&room->gate, round);
		if (round % 2)
			GOOD(tti_cuda_event_synchronize(event));
		GOOD(tti_cuda_stream_synchronize(stream));
		CHECK(saw == round);
		GOOD(tti_cuda_event_query(event));
	}
	close_own(&sides);
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
	end(sides.owner);
}

static void others_wait_for_a_record(void **state)
{
	(void)state;
	alone_run(wait_body, NULL);
}

/* What this process records of it is what counts then, here and there. */
static void both_body(void *arg)
{
	const struct sides sides = open_both();
	struct tti_cuda_event *const event = sides.event;
	struct tti_cuda_stream *const stream = sides.stream;
	_Atomic int own_gate = 0;
	struct job job = { &own_gate, 1, 5 };

	(void)arg;
	record(1);
	atomic_store(&room->gate, 1);
	GOOD(tti_cuda_event_synchronize(event));
	push(stream, &job);
	GOOD(tti_cuda_event_record(event, stream));
	CHECK(tti_cuda_event_query(event) == TTI_CUDA_ENOTREADY);
	atomic_store(&own_gate, 1);
	GOOD(tti_cuda_event_synchronize(event));
	CHECK(atomic_load(&room->value) == 5);
	/* An idle stream is past its record at once. */
	GOOD(tti_cuda_stream_synchronize(stream));
	GOOD(tti_cuda_event_record(event, stream));
	GOOD(tti_cuda_event_query(event));
	/* It outlives its owner. */
	end(sides.owner);
	GOOD(tti_cuda_event_query(event));
	close_own(&sides);
}

static void both_record_it(void **state)
{
	(void)state;
	alone_run(both_body, NULL);
}

/* The process that recorded it is killed before that came to pass: who waits is told. */
static void killed_body(void *arg)
{
	const struct sides sides = open_both();
	struct tti_cuda_event *const event = sides.event;
	struct tti_cuda_stream *const stream = sides.stream;

	(void)arg;
	record(1);
	GOOD(tti_cuda_event_await(event, stream));
	CHECK(kill(sides.owner, SIGKILL) == 0 && alone_wait(sides.owner) == 128 + SIGKILL);
	FAILS(TTI_CUDA_ELAUNCH, "ended before", tti_cuda_event_synchronize(event));
	FAILS(TTI_CUDA_ELAUNCH, "ended before", tti_cuda_event_query(event));
	CHECK(tti_cuda_stream_synchronize(stream) == TTI_CUDA_ELAUNCH);
	close_own(&sides);
}

static void a_killed_process_ends_waits(void **state)
{
	(void)state;
	alone_run(killed_body, NULL);
}

static void wrong_body(void *arg)
{
	struct tti_cuda_event *plain, *event, *other;
	struct tti_cuda_stream *stream;
	struct tti_cuda_job job;
	uint8_t handle[64] = { 0 };
	float ms;
	pid_t owner;

	(void)arg;
	owner = start();
	GOOD(tti_cuda_event_open_handle(room->handle, &event));
	FAILS(TTI_CUDA_EINVAL, "process that created it", tti_cuda_event_get_handle(event, handle));
	FAILS(TTI_CUDA_EHANDLE, "without timing", tti_cuda_event_elapsed(event, event, &ms));
	FAILS(TTI_CUDA_ENOTSUPPORTED, "node of a graph", tti_cuda_event_record_job(event, &job));
	FAILS(TTI_CUDA_ENOTSUPPORTED, "node of a graph", tti_cuda_event_await_job(event, &job));
	GOOD(tti_cuda_event_destroy(event));
	FAILS(TTI_CUDA_EHANDLE, "no event", tti_cuda_event_get_handle(event, handle));
	memcpy(handle, room->handle, sizeof(handle));
	end(owner);
	FAILS(TTI_CUDA_EHANDLE, "has ended", tti_cuda_event_open_handle(handle, &event));
	for (size_t bit = 0; bit < 8 * sizeof(handle); bit++) {
		uint8_t changed[64];

		memcpy(changed, handle, sizeof(changed));
		changed[bit / 8] ^= (uint8_t)(1u << bit % 8);
		FAILS(TTI_CUDA_EINVAL, "no handle of event",
		      tti_cuda_event_open_handle(changed, &event));
	}
	GOOD(tti_cuda_event_create(TTI_CUDA_EVENT_NO_TIMING, &plain));
	FAILS(TTI_CUDA_EINVAL, "cudaEventInterprocess", tti_cuda_event_get_handle(plain, handle));
	GOOD(tti_cuda_event_create(SHARED, &event));
	GOOD(tti_cuda_event_get_handle(event, handle));
	FAILS(TTI_CUDA_ECONTEXT, "has the event already",
	      tti_cuda_event_open_handle(handle, &other));
	/* Not in a capture, which that ends. */
	GOOD(tti_cuda_stream_create(TTI_CUDA_STREAM_NON_BLOCKING, 0, &stream));
	for (int records = 0; records < 2; records++) {
		struct tti_cuda_graph *graph;

		GOOD(tti_cuda_capture_begin(stream, TTI_CUDA_CAPTURE_RELAXED, NULL, NULL, 0));
		if (records)
			FAILS(TTI_CUDA_ECAPTURE, "share is recorded",
			      tti_cuda_event_record(event, stream));
		else
			FAILS(TTI_CUDA_EISOLATION, "processes share",
			      tti_cuda_event_await(event, stream));
		CHECK(tti_cuda_capture_end(stream, &graph) == TTI_CUDA_ECAPTURED);
	}
	GOOD(tti_cuda_stream_destroy(stream));
	GOOD(tti_cuda_event_destroy(event));
	GOOD(tti_cuda_event_destroy(plain));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
}

static void what_is_wrong_is_said(void **state)
{
	(void)state;
	alone_run(wrong_body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(others_wait_for_a_record),
		cmocka_unit_test(both_record_it),
		cmocka_unit_test(a_killed_process_ends_waits),
		cmocka_unit_test(what_is_wrong_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
