/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cudahost/jobs.h"

static void jobs_run_in_order_and_are_dropped_once(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	static struct diary diary;
	static struct step steps[1000];

	(void)state;
	for (int i = 0; i < 1000; i++) {
		steps[i] = (struct step){ .diary = &diary, .number = i };
		push_step(stream, &steps[i]);
	}
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_int_equal(atomic_load(&diary.n), 1000);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(atomic_load(&diary.at[i]), i);
		assert_int_equal(atomic_load(&steps[i].nruns), 1);
		assert_int_equal(atomic_load(&steps[i].ndrops), 1);
	}
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void a_stream_is_not_ready_while_a_job_runs(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct gate gate = GATE;

	(void)state;
	assert_ok(tti_cuda_stream_query(stream));
	push_gate(stream, &gate);
	assert_error(TTI_CUDA_ENOTREADY, tti_cuda_stream_query(stream));
	gate_wait(&gate, &gate.is_reached);
	assert_error(TTI_CUDA_ENOTREADY, tti_cuda_stream_query(stream));
	gate_open(&gate);
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_ok(tti_cuda_stream_query(stream));
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void a_destroyed_stream_runs_what_it_has(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct gate gate = GATE;
	struct step step = { .number = 1 };

	(void)state;
	push_gate(stream, &gate);
	push_step(stream, &step);
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_int_equal(atomic_load(&step.nruns), 0);
	gate_open(&gate);
	assert_ok(tti_cuda_device_synchronize(0));
	assert_int_equal(atomic_load(&step.nruns), 1);
	assert_int_equal(atomic_load(&step.ndrops), 1);
}

static void the_handle_of_a_destroyed_stream_is_an_error(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	int error = 0;

	(void)state;
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_null(tti_cuda_stream_get(stream, false, &error));
	assert_int_equal(error, TTI_CUDA_EHANDLE);
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_stream_destroy(stream));
	assert_text("is no stream");
}

static void what_was_never_a_stream_is_an_error(void **state)
{
	struct tti_cuda_event *event = make_event(0);
	int error = 0;

	(void)state;
	assert_null(tti_cuda_stream_get(event, false, &error));
	assert_int_equal(error, TTI_CUDA_EHANDLE);
	assert_null(tti_cuda_stream_get((const char *)event + 1, false, &error));
	assert_int_equal(error, TTI_CUDA_EHANDLE);
	assert_null(tti_cuda_stream_get((const void *)3, false, &error));
	assert_int_equal(error, TTI_CUDA_EHANDLE);
	assert_ok(tti_cuda_event_destroy(event));
}

static void flags_that_are_none_are_an_error(void **state)
{
	struct tti_cuda_stream *stream = NULL;

	(void)state;
	assert_error(TTI_CUDA_EINVAL, tti_cuda_stream_create(2, 0, &stream));
	assert_text("0x2");
	assert_null(stream);
}

/* -- The legacy stream ---------------------------------------------------------------------- */

static void the_legacy_stream_waits_for_blocking_streams(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *legacy = get_stream(1);
	struct diary diary = { 0 };
	struct step before = { &diary, 1, 0, 0, 0 }, legacy_step = { &diary, 2, 0, 0, 0 };
	struct gate gate = GATE;

	(void)state;
	push_gate(stream, &gate);
	push_step(stream, &before);
	push_step(legacy, &legacy_step);
	sleep_ms(20); /* so that one that does not wait is seen */
	gate_open(&gate);
	assert_ok(tti_cuda_stream_synchronize(legacy));
	ASSERT_DIARY(&diary, 1, 2);
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void blocking_streams_wait_for_the_legacy_stream(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *own = get_stream(2);
	struct tti_cuda_stream *legacy = get_stream(0);
	struct step step = { .number = 1 }, own_step = { .number = 2 };
	struct gate gate = GATE;

	(void)state;
	push_gate(legacy, &gate);
	push_step(stream, &step);
	push_step(own, &own_step);
	sleep_ms(20);
	assert_int_equal(atomic_load(&step.nruns), 0);
	assert_int_equal(atomic_load(&own_step.nruns), 0);
	gate_open(&gate);
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_ok(tti_cuda_stream_synchronize(own));
	assert_int_equal(atomic_load(&step.nruns), 1);
	assert_int_equal(atomic_load(&own_step.nruns), 1);
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void non_blocking_streams_and_the_legacy_stream_do_not_wait(void **state)
{
	struct tti_cuda_stream *stream = make_stream(TTI_CUDA_STREAM_NON_BLOCKING);
	struct tti_cuda_stream *legacy = get_stream(1);
	struct step step = { .number = 1 };
	struct gate first = GATE, second = GATE;

	(void)state;
	push_gate(legacy, &first);
	push_step(stream, &step);
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_int_equal(atomic_load(&step.nruns), 1);
	gate_open(&first);
	push_gate(stream, &second);
	push_step(legacy, &step);
	assert_ok(tti_cuda_stream_synchronize(legacy));
	assert_int_equal(atomic_load(&step.nruns), 2);
	gate_open(&second);
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void the_legacy_stream_of_another_device_does_not_wait(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other;
	struct step step = { .number = 1 };
	struct gate gate = GATE;

	(void)state;
	push_gate(stream, &gate);
	assert_ok(tti_cuda_device_set(1));
	other = get_stream(1);
	assert_int_equal(tti_cuda_stream_device(other), 1);
	push_step(other, &step);
	assert_ok(tti_cuda_device_synchronize(1));
	assert_int_equal(atomic_load(&step.nruns), 1);
	gate_open(&gate);
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void synchronising_the_legacy_stream_waits_for_blocking_streams(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *legacy = get_stream(1);
	struct gate gate = GATE;
	struct step step = { .number = 1 };

	(void)state;
	push_gate(stream, &gate);
	push_step(stream, &step);
	assert_error(TTI_CUDA_ENOTREADY, tti_cuda_stream_query(legacy));
	gate_open(&gate);
	assert_ok(tti_cuda_stream_synchronize(legacy));
	assert_int_equal(atomic_load(&step.nruns), 1);
	assert_ok(tti_cuda_stream_destroy(stream));
}

struct crowd {
	struct step *steps;
	unsigned seed;
};

static void *push_here_and_in_the_legacy_stream(void *arg)
{
	struct crowd *crowd = arg;
	struct tti_cuda_stream *streams[3] = { make_stream(0), get_stream(1), get_stream(2) };

	for (int i = 0; i < 500; i++)
		push_step(streams[rand_r(&crowd->seed) % 3], &crowd->steps[i]);
	for (int i = 0; i < 3; i++)
		assert_ok(tti_cuda_stream_synchronize(streams[i]));
	assert_ok(tti_cuda_stream_destroy(streams[0]));
	return NULL;
}

static void threads_that_use_the_legacy_stream_do_not_deadlock(void **state)
{
	static struct step steps[4][500];
	struct crowd crowd[4];
	pthread_t threads[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		crowd[i] = (struct crowd){ steps[i], i };
		pthread_create(&threads[i], NULL, push_here_and_in_the_legacy_stream, &crowd[i]);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 500; j++) {
			assert_int_equal(atomic_load(&steps[i][j].nruns), 1);
			assert_int_equal(atomic_load(&steps[i][j].ndrops), 1);
		}
}

/* -- Streams of threads --------------------------------------------------------------------- */

struct own {
	struct tti_cuda_stream *stream;
	uint64_t id;
	struct gate gate;
	struct step step;
};

static void *use_own_stream(void *arg)
{
	struct own *own = arg;

	own->stream = get_stream(2);
	own->id = tti_cuda_stream_id(own->stream);
	assert_ptr_equal(own->stream, get_stream(2));
	push_gate(own->stream, &own->gate);
	push_step(own->stream, &own->step);
	return NULL;
}

static void a_thread_has_a_stream_that_ends_with_it_and_runs_what_it_has(void **state)
{
	struct own own = { .gate = GATE };
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, use_own_stream, &own);
	pthread_join(thread, NULL);
	assert_int_not_equal(own.id, tti_cuda_stream_id(get_stream(2)));
	assert_int_equal(atomic_load(&own.step.nruns), 0);
	gate_open(&own.gate);
	assert_ok(tti_cuda_device_synchronize(0));
	assert_int_equal(atomic_load(&own.step.nruns), 1);
}

static void null_is_the_legacy_stream_or_the_threads(void **state)
{
	int error = -1;

	(void)state;
	assert_ptr_equal(tti_cuda_stream_get(NULL, false, &error), get_stream(1));
	assert_ptr_equal(tti_cuda_stream_get(NULL, true, &error), get_stream(2));
	assert_ptr_not_equal(get_stream(1), get_stream(2));
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_stream_destroy(get_stream(1)));
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_stream_destroy(get_stream(2)));
}

/* -- Points --------------------------------------------------------------------------------- */

static void a_point_outlives_its_stream(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct tti_cuda_stream *other = make_stream(TTI_CUDA_STREAM_NON_BLOCKING);
	struct gate gate = GATE;
	struct step step = { .number = 1 };
	struct tti_cuda_point point;

	(void)state;
	push_gate(stream, &gate);
	point = tti_cuda_stream_point(stream);
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_false(tti_cuda_point_is_past(&point));
	assert_ok(tti_cuda_stream_await(other, &point));
	push_step(other, &step);
	assert_int_equal(atomic_load(&step.nruns), 0);
	gate_open(&gate);
	tti_cuda_point_wait(&point);
	assert_true(tti_cuda_point_is_past(&point));
	assert_ok(tti_cuda_stream_synchronize(other));
	assert_int_equal(atomic_load(&step.nruns), 1);
	assert_ok(tti_cuda_device_synchronize(0));
	assert_true(tti_cuda_point_is_past(&point));
	tti_cuda_point_release(&point);
	assert_ok(tti_cuda_stream_destroy(other));
}

static void a_point_is_not_of_what_is_queued_later(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct step step = { .number = 1 };
	struct gate gate = GATE;
	struct tti_cuda_point point;

	(void)state;
	push_step(stream, &step);
	point = tti_cuda_stream_point(stream);
	push_gate(stream, &gate);
	tti_cuda_point_wait(&point);
	assert_int_equal(atomic_load(&step.nruns), 1);
	tti_cuda_point_release(&point);
	gate_open(&gate);
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_ok(tti_cuda_stream_destroy(stream));
}

struct waiter {
	struct tti_cuda_point point;
	const struct step *step;
	int nruns; /* of the step, when the point was past */
};

static void *wait_for_point(void *arg)
{
	struct waiter *waiter = arg;

	tti_cuda_point_wait(&waiter->point);
	waiter->nruns = atomic_load(&waiter->step->nruns);
	return NULL;
}

static void many_wait_for_different_points(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct step steps[8] = { 0 };
	struct waiter waiters[8];
	pthread_t threads[8];
	struct gate gate = GATE;

	(void)state;
	push_gate(stream, &gate);
	for (int i = 0; i < 8; i++) {
		push_step(stream, &steps[i]);
		waiters[i] = (struct waiter){ tti_cuda_stream_point(stream), &steps[i], 0 };
	}
	for (int i = 7; i >= 0; i--)
		pthread_create(&threads[i], NULL, wait_for_point, &waiters[i]);
	gate_open(&gate);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(waiters[i].nruns, 1);
		tti_cuda_point_release(&waiters[i].point);
	}
	assert_ok(tti_cuda_stream_destroy(stream));
}

/* -- Failures ------------------------------------------------------------------------------- */

static void what_a_job_fails_with_stays_for_the_device(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other = make_stream(0);
	struct tti_cuda_event *event = make_event(0);
	struct step step = { .number = 7, .result = 719 }, next = { .number = 8, .result = 98 };

	(void)state;
	push_step(stream, &step);
	push_step(stream, &next);
	assert_ok(tti_cuda_event_record(event, stream));
	assert_error(719, tti_cuda_stream_synchronize(stream));
	assert_text("step 7 was to fail");
	assert_int_equal(atomic_load(&next.nruns), 1);
	assert_error(719, tti_cuda_stream_synchronize(other));
	assert_error(719, tti_cuda_stream_query(other));
	assert_error(719, tti_cuda_device_synchronize(0));
	assert_error(719, tti_cuda_event_synchronize(event));
	assert_error(719, tti_cuda_event_query(event));
	assert_ok(tti_cuda_device_synchronize(1));
	tti_cuda_device_forget(0);
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_ok(tti_cuda_event_destroy(event));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
}

struct answers {
	struct tti_cuda_stream *stream;
	struct tti_cuda_event *event;
	int stream_error, device_error, event_error, device;
};

static int wait_in_a_job(void *arg)
{
	struct answers *answers = arg;

	answers->stream_error = tti_cuda_stream_synchronize(answers->stream);
	answers->device_error = tti_cuda_device_synchronize(0);
	answers->event_error = tti_cuda_event_synchronize(answers->event);
	answers->device = tti_cuda_device_current();
	return 0;
}

static int set_device(void *arg)
{
	return tti_cuda_device_set(*(const int *)arg);
}

static int get_device(void *arg)
{
	*(int *)arg = tti_cuda_device_current();
	return 0;
}

static void a_job_has_the_device_of_its_stream(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	int other = 1, device = -1;

	(void)state;
	assert_ok(tti_cuda_stream_push(stream,
				       &(struct tti_cuda_job){ .run = set_device, .arg = &other }));
	assert_ok(tti_cuda_stream_push(
		stream, &(struct tti_cuda_job){ .run = get_device, .arg = &device }));
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_int_equal(device, 0);
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void a_job_that_waits_for_streams_is_an_error(void **state)
{
	struct answers answers = { .event = make_event(0) };

	(void)state;
	assert_ok(tti_cuda_device_set(1));
	answers.stream = make_stream(0);
	assert_ok(tti_cuda_stream_push(
		answers.stream, &(struct tti_cuda_job){ .run = wait_in_a_job, .arg = &answers }));
	assert_ok(tti_cuda_stream_synchronize(answers.stream));
	assert_int_equal(answers.stream_error, TTI_CUDA_EPOOL);
	assert_int_equal(answers.device_error, TTI_CUDA_EPOOL);
	assert_int_equal(answers.event_error, TTI_CUDA_EPOOL);
	assert_int_equal(answers.device, 1);
	assert_ok(tti_cuda_stream_destroy(answers.stream));
	assert_ok(tti_cuda_event_destroy(answers.event));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, all_is_done)
		TEST(jobs_run_in_order_and_are_dropped_once),
		TEST(a_stream_is_not_ready_while_a_job_runs),
		TEST(a_destroyed_stream_runs_what_it_has),
		TEST(the_handle_of_a_destroyed_stream_is_an_error),
		TEST(what_was_never_a_stream_is_an_error),
		TEST(flags_that_are_none_are_an_error),
		TEST(the_legacy_stream_waits_for_blocking_streams),
		TEST(blocking_streams_wait_for_the_legacy_stream),
		TEST(non_blocking_streams_and_the_legacy_stream_do_not_wait),
		TEST(the_legacy_stream_of_another_device_does_not_wait),
		TEST(synchronising_the_legacy_stream_waits_for_blocking_streams),
		TEST(threads_that_use_the_legacy_stream_do_not_deadlock),
		TEST(a_thread_has_a_stream_that_ends_with_it_and_runs_what_it_has),
		TEST(null_is_the_legacy_stream_or_the_threads),
		TEST(a_point_outlives_its_stream),
		TEST(a_point_is_not_of_what_is_queued_later),
		TEST(many_wait_for_different_points),
		TEST(what_a_job_fails_with_stays_for_the_device),
		TEST(a_job_has_the_device_of_its_stream),
		TEST(a_job_that_waits_for_streams_is_an_error),
#undef TEST
	};

	setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
