/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "cudahost/jobs.h"

static void an_event_that_was_never_recorded_is_past(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct tti_cuda_event *event = make_event(0);

	(void)state;
	assert_ok(tti_cuda_event_query(event));
	assert_ok(tti_cuda_event_synchronize(event));
	assert_ok(tti_cuda_event_await(event, stream));
	assert_ok(tti_cuda_stream_query(stream));
	assert_ok(tti_cuda_event_destroy(event));
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void an_event_is_past_once_the_stream_gets_there(void **state)
{
	static const unsigned flags[] = { 0, TTI_CUDA_EVENT_NO_TIMING };

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct tti_cuda_stream *stream = make_stream(0);
		struct tti_cuda_event *event = make_event(flags[i]);
		struct gate before = GATE, behind = GATE;

		push_gate(stream, &before);
		assert_ok(tti_cuda_event_record(event, stream));
		push_gate(stream, &behind);
		assert_error(TTI_CUDA_ENOTREADY, tti_cuda_event_query(event));
		gate_open(&before);
		assert_ok(tti_cuda_event_synchronize(event));
		assert_ok(tti_cuda_event_query(event));
		assert_error(TTI_CUDA_ENOTREADY, tti_cuda_stream_query(stream));
		gate_open(&behind);
		assert_ok(tti_cuda_stream_synchronize(stream));
		assert_ok(tti_cuda_event_destroy(event));
		assert_ok(tti_cuda_stream_destroy(stream));
	}
}

static void a_stream_waits_for_an_event_of_another_device(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other;
	struct tti_cuda_event *event = make_event(0);
	struct diary diary = { 0 };
	struct step first = { .diary = &diary, .number = 1 };
	struct step second = { .diary = &diary, .number = 2 };
	struct gate gate = GATE;

	(void)state;
	assert_ok(tti_cuda_device_set(1));
	other = make_stream(0);
	push_gate(stream, &gate);
	push_step(stream, &first);
	assert_ok(tti_cuda_event_record(event, stream));
	assert_ok(tti_cuda_event_await(event, other));
	push_step(other, &second);
	assert_error(TTI_CUDA_ENOTREADY, tti_cuda_stream_query(other));
	gate_open(&gate);
	assert_ok(tti_cuda_stream_synchronize(other));
	ASSERT_DIARY(&diary, 1, 2);
	assert_ok(tti_cuda_event_destroy(event));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
}

static void who_waits_waits_for_the_record_before(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other = make_stream(0);
	struct tti_cuda_event *event = make_event(0);
	struct step step = { .number = 1 };
	struct gate first = GATE, second = GATE;

	(void)state;
	push_gate(stream, &first);
	assert_ok(tti_cuda_event_record(event, stream));
	assert_ok(tti_cuda_event_await(event, other));
	push_step(other, &step);
	push_gate(stream, &second);
	assert_ok(tti_cuda_event_record(event, stream));
	gate_open(&first);
	assert_ok(tti_cuda_stream_synchronize(other));
	assert_int_equal(atomic_load(&step.nruns), 1);
	assert_error(TTI_CUDA_ENOTREADY, tti_cuda_event_query(event));
	gate_open(&second);
	assert_ok(tti_cuda_event_synchronize(event));
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_ok(tti_cuda_event_destroy(event));
	assert_ok(tti_cuda_stream_destroy(stream));
	assert_ok(tti_cuda_stream_destroy(other));
}

static void an_event_may_be_destroyed_while_it_is_queued(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0), *other = make_stream(0);
	struct tti_cuda_event *event = make_event(0);
	struct diary diary = { 0 };
	struct step first = { .diary = &diary, .number = 1 };
	struct step second = { .diary = &diary, .number = 2 };
	struct gate gate = GATE;

	(void)state;
	push_gate(stream, &gate);
	push_step(stream, &first);
	assert_ok(tti_cuda_event_record(event, stream));
	assert_ok(tti_cuda_event_await(event, other));
	push_step(other, &second);
	assert_ok(tti_cuda_event_destroy(event));
	assert_ok(tti_cuda_stream_destroy(stream));
	gate_open(&gate);
	assert_ok(tti_cuda_stream_synchronize(other));
	ASSERT_DIARY(&diary, 1, 2);
	assert_ok(tti_cuda_stream_destroy(other));
}

static void a_destroyed_event_is_an_error(void **state)
{
	struct tti_cuda_event *event = make_event(0), *other = make_event(0);
	struct tti_cuda_stream *stream = make_stream(0);
	struct tti_cuda_job job;
	float ms;

	(void)state;
	assert_ok(tti_cuda_event_destroy(event));
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_event_destroy(event));
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_event_query(event));
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_event_synchronize(event));
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_event_record(event, stream));
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_event_await(event, stream));
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_event_elapsed(other, event, &ms));
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_event_record_job(event, &job));
	assert_text("is no event");
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_event_query(NULL));
	assert_ok(tti_cuda_event_destroy(other));
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void bad_flags_and_devices_are_errors(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct tti_cuda_event *event = NULL;

	(void)state;
	assert_error(TTI_CUDA_EINVAL, tti_cuda_event_create(8, &event));
	assert_error(TTI_CUDA_EINVAL, tti_cuda_event_create(TTI_CUDA_EVENT_IPC, &event));
	assert_ok(tti_cuda_device_set(1));
	event = make_event(TTI_CUDA_EVENT_IPC | TTI_CUDA_EVENT_NO_TIMING);
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_event_record(event, stream));
	assert_text("device 1");
	assert_ok(tti_cuda_event_destroy(event));
	assert_ok(tti_cuda_stream_destroy(stream));
}

/* -- Times ---------------------------------------------------------------------------------- */

static int sleep_run(void *arg)
{
	(void)arg;
	sleep_ms(20);
	return 0;
}

static void the_time_between_events_is_that_of_the_jobs(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct tti_cuda_event *from = make_event(0), *to = make_event(0);
	struct gate gate = GATE;
	float ms = -1;

	(void)state;
	assert_ok(tti_cuda_event_record(from, stream)); /* at once: the stream is idle */
	sleep_ms(20);
	assert_ok(tti_cuda_event_record(to, stream));
	assert_ok(tti_cuda_event_elapsed(from, to, &ms));
	assert_true(ms >= 20);

	push_gate(stream, &gate);
	assert_ok(tti_cuda_event_record(from, stream));
	assert_ok(tti_cuda_stream_push(stream, &(struct tti_cuda_job){ .run = sleep_run }));
	assert_ok(tti_cuda_event_record(to, stream));
	assert_error(TTI_CUDA_ENOTREADY, tti_cuda_event_elapsed(from, to, &ms));
	gate_open(&gate);
	assert_ok(tti_cuda_event_synchronize(to));
	assert_ok(tti_cuda_event_elapsed(from, to, &ms));
	assert_true(ms >= 20);
	assert_ok(tti_cuda_event_elapsed(to, from, &ms));
	assert_true(ms <= -20);
	assert_ok(tti_cuda_event_destroy(from));
	assert_ok(tti_cuda_event_destroy(to));
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void events_without_a_time_are_an_error(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct tti_cuda_event *timed = make_event(0), *other = make_event(TTI_CUDA_EVENT_NO_TIMING);
	struct tti_cuda_event *never = make_event(0);
	float ms = -1;

	(void)state;
	assert_ok(tti_cuda_event_record(timed, stream));
	assert_ok(tti_cuda_event_record(other, stream));
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_event_elapsed(timed, other, &ms));
	assert_text("without timing");
	assert_error(TTI_CUDA_EHANDLE, tti_cuda_event_elapsed(never, timed, &ms));
	assert_text("never recorded");
	assert_ok(tti_cuda_event_elapsed(timed, timed, &ms));
	assert_true(ms >= 0 && ms <= 0);
	assert_ok(tti_cuda_event_destroy(timed));
	assert_ok(tti_cuda_event_destroy(other));
	assert_ok(tti_cuda_event_destroy(never));
	assert_ok(tti_cuda_stream_destroy(stream));
}

static void an_event_of_the_legacy_stream_is_behind_blocking_streams(void **state)
{
	struct tti_cuda_stream *stream = make_stream(0);
	struct tti_cuda_event *event = make_event(TTI_CUDA_EVENT_NO_TIMING);
	struct gate gate = GATE;
	struct step step = { .number = 1 };

	(void)state;
	push_gate(stream, &gate);
	push_step(stream, &step);
	assert_ok(tti_cuda_event_record(event, get_stream(1)));
	assert_error(TTI_CUDA_ENOTREADY, tti_cuda_event_query(event));
	gate_open(&gate);
	assert_ok(tti_cuda_event_synchronize(event));
	assert_int_equal(atomic_load(&step.nruns), 1);
	assert_ok(tti_cuda_event_destroy(event));
	assert_ok(tti_cuda_stream_destroy(stream));
}

/* -- Random schedules ----------------------------------------------------------------------- */

/* Streams 0 and 1 are the legacy ones of the devices, the others take turns: blocking, not. */
#define NSTREAMS 8
#define NEVENTS  6
#define NTHREADS 4
#define NOPS     400

/* How many jobs of each stream are done. */
struct clock {
	int of[NSTREAMS];
};

struct world {
	pthread_mutex_t lock;
	struct tti_cuda_stream *streams[NSTREAMS];
	struct clock before[NSTREAMS]; /* what the next job of the stream comes behind */
	struct tti_cuda_event *events[NEVENTS];
	struct clock recorded[NEVENTS];
	_Atomic int done[NSTREAMS];
	_Atomic int nwrong, nrun;
	int npushed;
};

struct work {
	struct world *world;
	int stream;
	struct clock before;
	int delay;
};

struct hand {
	struct world *world;
	unsigned seed;
};

static int device_of(int stream)
{
	return stream % 2;
}

static bool is_legacy(int stream)
{
	return stream < 2;
}

static bool is_blocking(int stream)
{
	return stream < 6;
}

static void merge(struct clock *into, const struct clock *from)
{
	for (int i = 0; i < NSTREAMS; i++)
		if (into->of[i] < from->of[i])
			into->of[i] = from->of[i];
}

/* What CUDA says of the legacy stream: it comes behind what the others have, and they behind it. */
static void merge_legacy(struct world *world, int stream)
{
	if (!is_blocking(stream))
		return;
	for (int other = 0; other < NSTREAMS; other++)
		if (is_blocking(other) && device_of(other) == device_of(stream) &&
		    is_legacy(other) != is_legacy(stream))
			merge(&world->before[stream], &world->before[other]);
}

static int work_run(void *arg)
{
	struct work *work = arg;
	struct world *world = work->world;

	for (int i = 0; i < NSTREAMS; i++)
		if (atomic_load(&world->done[i]) < work->before.of[i])
			atomic_fetch_add(&world->nwrong, 1);
	for (volatile int i = 0; i < work->delay; i++)
		;
	atomic_fetch_add(&world->done[work->stream], 1);
	atomic_fetch_add(&world->nrun, 1);
	return 0;
}

static void push_work(struct world *world, int stream, unsigned *seed)
{
	struct work *work = malloc(sizeof(*work));

	assert_non_null(work);
	merge_legacy(world, stream);
	*work = (struct work){ world, stream, world->before[stream], 0 };
	work->delay = rand_r(seed) % 8 ? 0 : rand_r(seed) % 20000;
	assert_ok(tti_cuda_stream_push(world->streams[stream],
				       &(struct tti_cuda_job){ work_run, free, work, 0, NULL }));
	world->before[stream].of[stream]++;
	world->npushed++;
}

static void do_one(struct world *world, unsigned *seed)
{
	const int stream = rand_r(seed) % NSTREAMS;
	const int event = rand_r(seed) % NEVENTS;

	switch (rand_r(seed) % 8) {
	case 0: /* an event is of one device */
		if (event % 2 != device_of(stream))
			return;
		merge_legacy(world, stream);
		assert_ok(tti_cuda_event_record(world->events[event], world->streams[stream]));
		world->recorded[event] = world->before[stream];
		return;
	case 1:
		assert_ok(tti_cuda_event_await(world->events[event], world->streams[stream]));
		merge(&world->before[stream], &world->recorded[event]);
		return;
	default:
		push_work(world, stream, seed);
	}
}

/* One at a time, so that the model knows the order; what runs is not in the way. */
static void *do_many(void *arg)
{
	struct hand *hand = arg;

	for (int i = 0; i < NOPS; i++) {
		pthread_mutex_lock(&hand->world->lock);
		do_one(hand->world, &hand->seed);
		pthread_mutex_unlock(&hand->world->lock);
	}
	return NULL;
}

static void make_world(struct world *world)
{
	pthread_mutex_init(&world->lock, NULL);
	for (int i = 0; i < NSTREAMS; i++) {
		assert_ok(tti_cuda_device_set(device_of(i)));
		world->streams[i] =
			is_legacy(i)
				? get_stream(1)
				: make_stream(is_blocking(i) ? 0 : TTI_CUDA_STREAM_NON_BLOCKING);
	}
	for (int i = 0; i < NEVENTS; i++) {
		assert_ok(tti_cuda_device_set(i % 2));
		world->events[i] = make_event(i < 3 ? 0 : TTI_CUDA_EVENT_NO_TIMING);
	}
}

static void random_schedules_keep_the_order(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 5; round++) {
		struct world *world = calloc(1, sizeof(*world));
		struct hand hands[NTHREADS];
		pthread_t threads[NTHREADS];

		make_world(world);
		for (unsigned i = 0; i < NTHREADS; i++) {
			hands[i] = (struct hand){ world, round * NTHREADS + i };
			pthread_create(&threads[i], NULL, do_many, &hands[i]);
		}
		for (int i = 0; i < NTHREADS; i++)
			pthread_join(threads[i], NULL);
		for (int i = 2; i < NSTREAMS; i++)
			assert_ok(tti_cuda_stream_destroy(world->streams[i]));
		for (int i = 0; i < NEVENTS; i++)
			assert_ok(tti_cuda_event_destroy(world->events[i]));
		assert_ok(tti_cuda_device_synchronize(0));
		assert_ok(tti_cuda_device_synchronize(1));
		assert_int_equal(atomic_load(&world->nrun), world->npushed);
		assert_int_equal(atomic_load(&world->nwrong), 0);
		pthread_mutex_destroy(&world->lock);
		free(world);
	}
}

/* -- Threads -------------------------------------------------------------------------------- */

static void *record_and_wait(void *arg)
{
	struct tti_cuda_event **events = arg;
	struct tti_cuda_stream *stream = make_stream(TTI_CUDA_STREAM_NON_BLOCKING);
	struct step step = { .number = 1 };

	for (int i = 0; i < 300; i++) {
		push_step(stream, &step);
		assert_ok(tti_cuda_event_record(events[i % 2], stream));
		assert_ok(tti_cuda_event_await(events[(i + 1) % 2], stream));
		if (i % 16 == 0)
			assert_ok(tti_cuda_event_synchronize(events[i % 2]));
	}
	assert_ok(tti_cuda_stream_synchronize(stream));
	assert_int_equal(atomic_load(&step.nruns), 300);
	assert_ok(tti_cuda_stream_destroy(stream));
	return NULL;
}

static void threads_may_share_events(void **state)
{
	struct tti_cuda_event *events[2] = { make_event(0), make_event(TTI_CUDA_EVENT_NO_TIMING) };
	pthread_t threads[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, record_and_wait, events);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_ok(tti_cuda_event_destroy(events[0]));
	assert_ok(tti_cuda_event_destroy(events[1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_teardown(name, all_is_done)
		TEST(an_event_that_was_never_recorded_is_past),
		TEST(an_event_is_past_once_the_stream_gets_there),
		TEST(a_stream_waits_for_an_event_of_another_device),
		TEST(who_waits_waits_for_the_record_before),
		TEST(an_event_may_be_destroyed_while_it_is_queued),
		TEST(a_destroyed_event_is_an_error),
		TEST(bad_flags_and_devices_are_errors),
		TEST(the_time_between_events_is_that_of_the_jobs),
		TEST(events_without_a_time_are_an_error),
		TEST(an_event_of_the_legacy_stream_is_behind_blocking_streams),
		TEST(random_schedules_keep_the_order),
		TEST(threads_may_share_events),
#undef TEST
	};

	setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
