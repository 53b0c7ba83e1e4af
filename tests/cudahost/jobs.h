/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs for tests of streams and graphs: gates that hold a stream until the test opens them, and
 * records of which jobs have run and were dropped. */
#ifndef TESTS_CUDAHOST_JOBS_H
#define TESTS_CUDAHOST_JOBS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "engine/device.h"
#include "engine/event.h"
#include "engine/graph.h"
#include "engine/stream.h"

#define assert_ok(call)           assert_int_equal(call, 0)
#define assert_error(error, call) assert_int_equal(call, error)
#define assert_text(part)         assert_non_null(strstr(tti_cuda_error_text(), part))

/* -- Gates ---------------------------------------------------------------------------------- */

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_open, is_reached;
};

#define GATE                                                                           \
	{                                                                              \
		.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER \
	}

static inline void gate_set(struct gate *gate, bool *what)
{
	pthread_mutex_lock(&gate->lock);
	*what = true;
	pthread_cond_broadcast(&gate->changed);
	pthread_mutex_unlock(&gate->lock);
}

static inline void gate_wait(struct gate *gate, const bool *what)
{
	pthread_mutex_lock(&gate->lock);
	while (!*what)
		pthread_cond_wait(&gate->changed, &gate->lock);
	pthread_mutex_unlock(&gate->lock);
}

static inline int gate_run(void *arg)
{
	struct gate *gate = arg;

	gate_set(gate, &gate->is_reached);
	gate_wait(gate, &gate->is_open);
	return 0;
}

static inline void gate_open(struct gate *gate)
{
	gate_set(gate, &gate->is_open);
}

/* The stream stands there until gate_open(). A test waits for the stream before its gates and steps
 * are gone. */
static inline void push_gate(struct tti_cuda_stream *stream, struct gate *gate)
{
	assert_ok(tti_cuda_stream_push(stream,
				       &(struct tti_cuda_job){ .run = gate_run, .arg = gate }));
}

/* -- Steps: jobs that say when they ran ----------------------------------------------------- */

#define STEPS_MOST 4096

/* Of one test: steps in the order in which they ran. */
struct diary {
	_Atomic int n;
	_Atomic int at[STEPS_MOST];
};

struct step {
	struct diary *diary;
	int number;
	int result;
	_Atomic int nruns, ndrops;
};

static inline int step_run(void *arg)
{
	struct step *step = arg;

	if (step->diary) {
		const int at = atomic_fetch_add(&step->diary->n, 1);

		if (at < STEPS_MOST)
			atomic_store(&step->diary->at[at], step->number);
	}
	atomic_fetch_add(&step->nruns, 1);
	if (step->result)
		tti_cuda_fail(step->result, "step %d was to fail", step->number);
	return step->result;
}

static inline void step_drop(void *arg)
{
	struct step *step = arg;

	atomic_fetch_add(&step->ndrops, 1);
}

static inline struct tti_cuda_job step_job(struct step *step)
{
	return (struct tti_cuda_job){
		.run = step_run, .drop = step_drop, .arg = step, .kind = TTI_CUDA_NODE_HOST
	};
}

static inline void push_step(struct tti_cuda_stream *stream, struct step *step)
{
	const struct tti_cuda_job job = step_job(step);

	assert_ok(tti_cuda_stream_push(stream, &job));
}

/* That the diary has these steps, in this order. */
static inline void assert_diary(const struct diary *diary, const int *steps, int n)
{
	assert_int_equal(atomic_load(&diary->n), n);
	for (int i = 0; i < n; i++)
		assert_int_equal(atomic_load(&diary->at[i]), steps[i]);
}

#define ASSERT_DIARY(diary, ...)                          \
	assert_diary(diary, (const int[]){ __VA_ARGS__ }, \
		     (int)(sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int)))

/* -- Streams -------------------------------------------------------------------------------- */

static inline struct tti_cuda_stream *make_stream(unsigned flags)
{
	struct tti_cuda_stream *stream = NULL;

	assert_ok(tti_cuda_stream_create(flags, 0, &stream));
	return stream;
}

static inline struct tti_cuda_stream *get_stream(uintptr_t handle)
{
	int error = -1;
	struct tti_cuda_stream *stream = tti_cuda_stream_get((const void *)handle, false, &error);

	assert_int_equal(error, 0);
	assert_non_null(stream);
	return stream;
}

static inline struct tti_cuda_event *make_event(unsigned flags)
{
	struct tti_cuda_event *event = NULL;

	assert_ok(tti_cuda_event_create(flags, &event));
	return event;
}

static inline void sleep_ms(long ms)
{
	nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 }, NULL);
}

/* Nothing of the test is queued or runs any more, and no device has failed. */
static inline int all_is_done(void **state)
{
	(void)state;
	for (int device = 0; device < tti_cuda_device_count(); device++) {
		tti_cuda_device_synchronize(device);
		tti_cuda_device_forget(device);
	}
	return tti_cuda_device_set(0);
}

#endif
