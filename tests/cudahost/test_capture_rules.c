/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cudahost/captures.h"

/* `to` comes behind what `from` has. */
static void join(struct tti_cuda_stream *from, struct tti_cuda_stream *to)
{
	struct tti_cuda_event *event;

	assert_ok(tti_cuda_device_set(tti_cuda_stream_device(from)));
	event = make_event(TTI_CUDA_EVENT_NO_TIMING);
	assert_ok(tti_cuda_event_record(event, from));
	assert_ok(tti_cuda_event_await(event, to));
	assert_ok(tti_cuda_event_destroy(event));
}

/* -- What is not allowed -------------------------------------------------------------------- */

static int synchronize_device(struct tti_cuda_stream *stream)
{
	return tti_cuda_device_synchronize(tti_cuda_stream_device(stream));
}

static void waiting_for_a_captured_stream_makes_the_capture_invalid(void **state)
{
	static int (*const calls[])(struct tti_cuda_stream *) = { tti_cuda_stream_synchronize,
								  tti_cuda_stream_query,
								  synchronize_device };
	struct step step = { .number = 1 };

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct tti_cuda_stream *stream = make_stream(0);
		const struct tti_cuda_job job = step_job(&step);

		begin(stream, RELAXED);
		assert_error(TTI_CUDA_ECAPTURE, calls[i](stream));
		assert_int_equal(state_of(stream), TTI_CUDA_CAPTURE_INVALID);
		assert_error(TTI_CUDA_ECAPTURE, calls[i](stream));
		assert_error(TTI_CUDA_ECAPTURED, tti_cuda_stream_push(stream, &job));
		assert_int_equal(atomic_load(&step.ndrops), (int)i + 1);
		end_with(TTI_CUDA_ECAPTURED, stream);
		assert_text("was captured");
		assert_ok(calls[i](stream));
		assert_ok(tti_cuda_stream_destroy(stream));
	}
}

static void a_captured_event_is_no_moment_of_a_stream(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other = make_stream(0);
	struct tti_cuda_event *event = make_event(0), *never = make_event(0);
	float ms;

	(void)state;
	begin(stream, GLOBAL);
	assert_ok(tti_cuda_event_record(event, stream));
	assert_error(TTI_CUDA_ECAPTUREDEVENT, tti_cuda_event_query(event));
	assert_int_equal(state_of(stream), TTI_CUDA_CAPTURE_INVALID);
	assert_error(TTI_CUDA_ECAPTUREDEVENT, tti_cuda_event_synchronize(event));
	assert_error(TTI_CUDA_ECAPTURED, tti_cuda_event_await(event, other));
	end_with(TTI_CUDA_ECAPTURED, stream);

	begin(stream, GLOBAL);
	assert_ok(tti_cuda_event_record(event, stream));
	assert_ok(tti_cuda_event_await(never, stream));
	assert_error(TTI_CUDA_ECAPTUREDEVENT, tti_cuda_event_elapsed(event, event, &ms));
	assert_ok(tti_cuda_graph_destroy(end(stream))); /* which that left as it was */
	assert_error(TTI_CUDA_EINVAL, tti_cuda_event_elapsed(event, event, &ms));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_event_query(event));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_event_synchronize(event));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_event_await(event, other));
	assert_text("has ended");
	assert_ok(tti_cuda_event_record(event, stream));
	assert_ok(tti_cuda_event_synchronize(event));
	assert_ok(tti_cuda_event_destroy(event));
	assert_ok(tti_cuda_event_destroy(never));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
}

static void a_capture_cannot_wait_for_what_is_not_captured(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other = make_stream(0);
	struct tti_cuda_event *event = make_event(0);

	(void)state;
	assert_ok(tti_cuda_event_record(event, other));
	begin(stream, GLOBAL);
	assert_error(TTI_CUDA_EISOLATION, tti_cuda_event_await(event, stream));
	end_with(TTI_CUDA_ECAPTURED, stream);
	assert_text("waits for what is not captured");
	assert_ok(tti_cuda_event_destroy(event));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
}

static void captures_do_not_join_each_other(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other = make_stream(0);
	struct tti_cuda_event *event = make_event(0);

	(void)state;
	begin(stream, GLOBAL);
	begin(other, GLOBAL);
	assert_ok(tti_cuda_event_record(event, stream));
	assert_error(TTI_CUDA_EMERGE, tti_cuda_event_await(event, other));
	end_with(TTI_CUDA_ECAPTURED, stream);
	end_with(TTI_CUDA_ECAPTURED, other);
	assert_ok(tti_cuda_event_destroy(event));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
}

static void a_capture_ends_where_it_began(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other = make_stream(0);

	(void)state;
	begin(stream, GLOBAL);
	join(stream, other);
	end_with(TTI_CUDA_EUNMATCHED, other);
	end_with(TTI_CUDA_ECAPTURED, stream);
	end_with(TTI_CUDA_ESTATE, stream);
	begin(stream, GLOBAL);
	assert_error(TTI_CUDA_ESTATE, tti_cuda_capture_begin(stream, GLOBAL, NULL, NULL, 0));
	assert_text("already");
	assert_ok(tti_cuda_graph_destroy(end(stream)));
	assert_error(TTI_CUDA_EINVAL,
		     tti_cuda_capture_begin(stream, (enum tti_cuda_capture_mode)3, NULL, NULL, 0));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
}

static void the_legacy_stream_has_no_part_in_captures(void **state)
{
	struct tti_cuda_stream *legacy = get_stream(1), *stream = make_stream(0);
	struct tti_cuda_stream *free_stream = make_stream(TTI_CUDA_STREAM_NON_BLOCKING);
	struct tti_cuda_event *event = make_event(0);
	struct step step = { .number = 1 };
	const struct tti_cuda_job job = step_job(&step);
	struct tti_cuda_capture_info info;

	(void)state;
	assert_error(TTI_CUDA_ECAPTURE, tti_cuda_capture_begin(legacy, GLOBAL, NULL, NULL, 0));
	begin(stream, GLOBAL);
	assert_error(TTI_CUDA_EIMPLICIT, tti_cuda_stream_push(legacy, &job));
	assert_int_equal(atomic_load(&step.ndrops), 1);
	end_with(TTI_CUDA_ECAPTURED, stream);
	begin(stream, RELAXED);
	assert_error(TTI_CUDA_EIMPLICIT, tti_cuda_capture_ask(legacy, &info));
	assert_ok(tti_cuda_capture_ask(free_stream, &info));
	assert_error(TTI_CUDA_EIMPLICIT, tti_cuda_stream_synchronize(legacy));
	end_with(TTI_CUDA_ECAPTURED, stream);
	assert_ok(tti_cuda_capture_ask(legacy, &info));

	begin(stream, GLOBAL);
	begin(free_stream,
	      GLOBAL); /* does not wait for the legacy stream, so nothing happens to it */
	assert_error(TTI_CUDA_EIMPLICIT, tti_cuda_stream_push(legacy, &job));
	end_with(TTI_CUDA_ECAPTURED, stream);
	assert_ok(tti_cuda_graph_destroy(end(free_stream)));

	begin(free_stream, RELAXED);
	push_step(legacy, &step);
	assert_ok(tti_cuda_stream_synchronize(legacy));
	assert_int_equal(atomic_load(&step.nruns), 1);
	assert_ok(tti_cuda_event_record(event, free_stream));
	assert_error(TTI_CUDA_EIMPLICIT, tti_cuda_event_await(event, legacy));
	end_with(TTI_CUDA_ECAPTURED, free_stream);
	assert_ok(tti_cuda_event_destroy(event));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(free_stream));
}

static int synchronize_event(struct tti_cuda_stream *stream)
{
	struct tti_cuda_event *event = make_event(0);
	const int error = tti_cuda_event_synchronize(event);

	(void)stream;
	assert_ok(tti_cuda_event_destroy(event));
	return error;
}

static int query_event(struct tti_cuda_stream *stream)
{
	struct tti_cuda_event *event = make_event(0);
	const int error = tti_cuda_event_query(event);

	(void)stream;
	assert_ok(tti_cuda_event_destroy(event));
	return error;
}

static void waiting_for_another_stream_spoils_a_global_capture(void **state)
{
	static int (*const calls[])(struct tti_cuda_stream *) = { tti_cuda_stream_synchronize,
								  tti_cuda_stream_query,
								  synchronize_event, query_event };
	struct tti_cuda_stream *stream = make_stream(0), *other = make_stream(0);

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		begin(stream, GLOBAL);
		assert_error(TTI_CUDA_ECAPTURE, calls[i](other));
		end_with(TTI_CUDA_ECAPTURED, stream);
		begin(stream, THREAD);
		assert_error(TTI_CUDA_ECAPTURE, calls[i](other));
		end_with(TTI_CUDA_ECAPTURED, stream);
		begin(stream, RELAXED);
		assert_ok(calls[i](other));
		assert_ok(tti_cuda_graph_destroy(end(stream)));
	}
	begin(stream, RELAXED);
	assert_ok(tti_cuda_capture_end(stream, NULL));
	end_with(TTI_CUDA_ESTATE, stream);
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
}

/* -- Threads and modes ---------------------------------------------------------------------- */

struct call {
	struct tti_cuda_stream *stream;
	enum tti_cuda_capture_mode mode;
	int error;
	struct tti_cuda_graph *graph;
};

static void *end_elsewhere(void *arg)
{
	struct call *call = arg;

	call->error = tti_cuda_capture_end(call->stream, &call->graph);
	return NULL;
}

static void *forbid_elsewhere(void *arg)
{
	struct call *call = arg;

	tti_cuda_capture_exchange(call->mode);
	call->error = tti_cuda_capture_forbids("cudaMalloc()");
	return NULL;
}

static void in_a_thread(void *(*run)(void *), struct call *call)
{
	pthread_t thread;

	pthread_create(&thread, NULL, run, call);
	pthread_join(thread, NULL);
}

static void only_a_relaxed_capture_ends_in_another_thread(void **state)
{
	struct call call = { .stream = make_stream(0) };

	(void)state;
	begin(call.stream, THREAD);
	in_a_thread(end_elsewhere, &call);
	assert_int_equal(call.error, TTI_CUDA_ETHREAD);
	assert_null(call.graph);
	end_with(TTI_CUDA_ESTATE, call.stream);
	begin(call.stream, RELAXED);
	in_a_thread(end_elsewhere, &call);
	assert_ok(call.error);
	assert_ok(tti_cuda_graph_destroy(call.graph));
	assert_ok(tti_cuda_stream_destroy(call.stream));
}

static void modes_say_which_calls_spoil_a_capture(void **state)
{
	/* modes of the capture and of the calling thread; whether its own, whether another's */
	static const struct {
		enum tti_cuda_capture_mode capture, thread;
		bool own, other;
	} rules[] = {
		{ GLOBAL, GLOBAL, true, true },    { GLOBAL, THREAD, true, false },
		{ GLOBAL, RELAXED, false, false }, { THREAD, GLOBAL, true, false },
		{ THREAD, THREAD, true, false },   { THREAD, RELAXED, false, false },
		{ RELAXED, GLOBAL, false, false }, { RELAXED, THREAD, false, false },
	};
	struct tti_cuda_stream *stream = make_stream(0);

	(void)state;
	assert_ok(tti_cuda_capture_forbids("cudaMalloc()"));
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		for (int other = 0; other < 2; other++) {
			const bool spoils = other ? rules[i].other : rules[i].own;
			struct call call = { .mode = rules[i].thread };

			begin(stream, rules[i].capture);
			if (other) {
				in_a_thread(forbid_elsewhere, &call);
			} else {
				assert_int_equal(tti_cuda_capture_exchange(rules[i].thread),
						 GLOBAL);
				call.error = tti_cuda_capture_forbids("cudaMalloc()");
				assert_int_equal(tti_cuda_capture_exchange(GLOBAL),
						 rules[i].thread);
			}
			assert_int_equal(call.error, spoils ? TTI_CUDA_ECAPTURE : 0);
			if (spoils)
				end_with(TTI_CUDA_ECAPTURED, stream);
			else
				assert_ok(tti_cuda_graph_destroy(end(stream)));
		}
	}
	assert_ok(tti_cuda_stream_destroy(stream));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, all_is_done)
		TEST(waiting_for_a_captured_stream_makes_the_capture_invalid),
		TEST(a_captured_event_is_no_moment_of_a_stream),
		TEST(a_capture_cannot_wait_for_what_is_not_captured),
		TEST(captures_do_not_join_each_other),
		TEST(a_capture_ends_where_it_began),
		TEST(the_legacy_stream_has_no_part_in_captures),
		TEST(waiting_for_another_stream_spoils_a_global_capture),
		TEST(only_a_relaxed_capture_ends_in_another_thread),
		TEST(modes_say_which_calls_spoil_a_capture),
#undef TEST
	};

	setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
