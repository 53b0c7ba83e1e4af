/* SPDX-License-Identifier: BSD-3-Clause */
/* A stream has a list of jobs, and counts those that were queued and those that are done. All that
 * waits for a stream waits for such a count, so that nothing waits for what is queued later, and
 * streams cannot wait for each other in a circle: what is waited for was queued before.
 *
 *	queued  7     job 5 runs, 6 and 7 are in the list; a point of now is { stream, 7 }
 *	done    4
 *
 * A stream that waits for another has a job for that.
 *
 * Owner: a stream lives until it is destroyed (or its thread has ended) and all its jobs are done;
 * points hold its memory for longer. */
#include "engine/stream.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/stream_impl.h"

#define NOBODY  UINT64_MAX
#define HOLD_NS 2000000 /* between two questions whether it is over */

struct tti_cuda_stream_list tti_cuda_streams[TTI_CUDA_DEVICES_MOST];

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_devices(void)
{
	for (int device = 0; device < TTI_CUDA_DEVICES_MOST; device++)
		pthread_mutex_init(&tti_cuda_streams[device].lock, NULL);
}

void tti_cuda_streams_begin(void)
{
	(void)pthread_once(&once, init_devices);
}

/* -- Life ----------------------------------------------------------------------------------- */

struct tti_cuda_stream *tti_cuda_stream_make(int device, enum tti_cuda_stream_role role,
					     unsigned flags, int priority)
{
	static _Atomic uint64_t ids;
	struct tti_cuda_stream_list *of = &tti_cuda_streams[device];
	struct tti_cuda_stream *stream = calloc(1, sizeof(*stream));

	if (!stream) {
		tti_cuda_fail(TTI_CUDA_ENOMEM, "out of memory: %zu bytes for a stream",
			      sizeof(*stream));
		return NULL;
	}
	tti_cuda_streams_begin();
	atomic_init(&stream->holds, 1);
	stream->device = device;
	stream->role = role;
	stream->flags = flags;
	stream->priority = priority;
	stream->id = 1 + atomic_fetch_add(&ids, 1);
	pthread_mutex_init(&stream->lock, NULL);
	pthread_cond_init(&stream->more, NULL);
	pthread_cond_init(&stream->passed, NULL);
	stream->end = &stream->first;
	stream->wanted = NOBODY;

	pthread_mutex_lock(&of->lock);
	stream->next = of->first;
	stream->link = &of->first;
	if (of->first)
		of->first->link = &stream->next;
	of->first = stream;
	pthread_mutex_unlock(&of->lock);
	return stream;
}

static struct tti_cuda_stream *hold(struct tti_cuda_stream *stream)
{
	atomic_fetch_add_explicit(&stream->holds, 1, memory_order_relaxed);
	return stream;
}

static void let_go(struct tti_cuda_stream *stream)
{
	if (atomic_fetch_sub_explicit(&stream->holds, 1, memory_order_acq_rel) != 1)
		return;
	pthread_cond_destroy(&stream->more);
	pthread_cond_destroy(&stream->passed);
	pthread_mutex_destroy(&stream->lock);
	free(stream);
}

/* All is done, and no more comes. */
static void finish(struct tti_cuda_stream *stream)
{
	struct tti_cuda_stream_list *of = &tti_cuda_streams[stream->device];

	pthread_mutex_lock(&of->lock);
	*stream->link = stream->next;
	if (stream->next)
		stream->next->link = stream->link;
	pthread_mutex_unlock(&of->lock);
	let_go(stream);
}

void tti_cuda_stream_end(struct tti_cuda_stream *stream)
{
	bool has_thread;

	tti_cuda_capture_leave(stream);
	pthread_mutex_lock(&stream->lock);
	stream->ends = true;
	has_thread = stream->has_thread;
	pthread_cond_signal(&stream->more);
	pthread_mutex_unlock(&stream->lock);
	if (!has_thread)
		finish(stream);
}

struct tti_cuda_stream *tti_cuda_stream_legacy(int device)
{
	return atomic_load_explicit(&tti_cuda_streams[device].legacy, memory_order_acquire);
}

bool tti_cuda_stream_set_legacy(struct tti_cuda_stream *stream)
{
	struct tti_cuda_stream *none = NULL;

	return atomic_compare_exchange_strong(&tti_cuda_streams[stream->device].legacy, &none,
					      stream);
}

/* -- Points --------------------------------------------------------------------------------- */

static bool is_past(const struct tti_cuda_point *point)
{
	return !point->stream || tti_cuda_stream_done(point->stream) >= point->number;
}

/* 0, or why the stream is held, in `why`, too. */
static int wait_for(struct tti_cuda_stream *stream, uint64_t number, char why[256])
{
	int held = 0;

	if (tti_cuda_stream_done(stream) >= number)
		return 0;
	pthread_mutex_lock(&stream->lock);
	while (tti_cuda_stream_done(stream) < number && !held) {
		held = stream->held;
		if (held)
			memcpy(why, stream->why, sizeof(stream->why));
		if (number < stream->wanted)
			stream->wanted = number;
		if (!held)
			pthread_cond_wait(&stream->passed, &stream->lock);
	}
	pthread_mutex_unlock(&stream->lock);
	return held;
}

/* In a child of fork() nothing comes to pass any more. */
bool tti_cuda_point_is_past(const struct tti_cuda_point *point)
{
	return is_past(point);
}

int tti_cuda_point_wait(const struct tti_cuda_point *point)
{
	char why[256];
	int held = point->stream && !is_past(point) ? tti_cuda_begin() : 0;

	if (held || !point->stream || is_past(point))
		return held;
	held = wait_for(point->stream, point->number, why);
	return held ? tti_cuda_fail(held, "%s", why) : 0;
}

struct tti_cuda_point tti_cuda_point_share(const struct tti_cuda_point *point)
{
	if (point->stream)
		hold(point->stream);
	return *point;
}

void tti_cuda_point_release(struct tti_cuda_point *point)
{
	if (point->stream)
		let_go(point->stream);
	point->stream = NULL;
}

struct tti_cuda_point tti_cuda_stream_point(struct tti_cuda_stream *stream)
{
	return (struct tti_cuda_point){ hold(stream), tti_cuda_stream_queued(stream) };
}

/* -- Being held ---------------------------------------------------------------------------- */

/* The stream whose thread this is. */
static _Thread_local struct tti_cuda_stream *running;

static void set_held(struct tti_cuda_stream *stream, int error, const char *why)
{
	pthread_mutex_lock(&stream->lock);
	stream->held = error;
	snprintf(stream->why, sizeof(stream->why), "%s", why);
	stream->wanted = NOBODY;
	pthread_mutex_unlock(&stream->lock);
	pthread_cond_broadcast(&stream->passed);
}

int tti_cuda_stream_hold(int error, const char *why, int (*is_over)(void *arg), void *arg)
{
	const struct timespec nap = { .tv_nsec = HOLD_NS };

	if (!running)
		return tti_cuda_fail(TTI_CUDA_EPOOL, "only a job of a stream can hold it");
	set_held(running, error, why);
	while (!is_over(arg))
		nanosleep(&nap, NULL);
	set_held(running, 0, "");
	return 0;
}

/* -- The thread ----------------------------------------------------------------------------- */

/* NULL: no more comes. */
static struct tti_cuda_item *next_item(struct tti_cuda_stream *stream)
{
	struct tti_cuda_item *item;

	pthread_mutex_lock(&stream->lock);
	while (!stream->first && !stream->ends) {
		stream->sleeps = true;
		pthread_cond_wait(&stream->more, &stream->lock);
	}
	stream->sleeps = false;
	item = stream->first;
	if (item) {
		stream->first = item->next;
		if (!stream->first)
			stream->end = &stream->first;
	}
	pthread_mutex_unlock(&stream->lock);
	return item;
}

static void pass(struct tti_cuda_stream *stream)
{
	bool is_wanted;

	pthread_mutex_lock(&stream->lock);
	is_wanted = 1 + atomic_fetch_add_explicit(&stream->done, 1, memory_order_release) >=
		    stream->wanted;
	if (is_wanted)
		stream->wanted = NOBODY; /* those for whom it is too early say so again */
	pthread_mutex_unlock(&stream->lock);
	if (is_wanted)
		pthread_cond_broadcast(&stream->passed);
}

static void *run_stream(void *arg)
{
	struct tti_cuda_stream *stream = arg;
	struct tti_cuda_item *item;

	tti_cuda_device_enter(stream->device);
	running = stream;
	while ((item = next_item(stream))) {
		tti_cuda_job_run(stream->device, &item->job);
		tti_cuda_job_drop(&item->job);
		free(item);
		pass(stream);
	}
	finish(stream);
	return NULL;
}

/* Signals are for the program's threads. */
static int start_thread(struct tti_cuda_stream *stream)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_t thread;
	int error;

	sigfillset(&all);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&thread, &attr, run_stream, stream);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (error) {
		errno = error;
		return tti_cuda_fail(
			TTI_CUDA_ESYS,
			"cannot start the thread of a stream (pthread_create: %m): "
			"fewer streams, or a higher limit of threads (ulimit -u) help");
	}
	stream->has_thread = true;
	return 0;
}

/* -- Queueing ------------------------------------------------------------------------------- */

/* Under the lock. The item is the list's, or still the caller's if that fails. */
static int append(struct tti_cuda_stream *stream, struct tti_cuda_item *item)
{
	const int error = stream->has_thread ? 0 : start_thread(stream);

	if (error)
		return error;
	item->next = NULL;
	*stream->end = item;
	stream->end = &item->next;
	atomic_fetch_add_explicit(&stream->queued, 1, memory_order_release);
	return 0;
}

static struct tti_cuda_item *item_create(const struct tti_cuda_job *job)
{
	struct tti_cuda_item *item = malloc(sizeof(*item));

	if (item)
		item->job = *job;
	else
		tti_cuda_fail(TTI_CUDA_ENOMEM, "out of memory: %zu bytes for a job of a stream",
			      sizeof(*item));
	return item;
}

/* Whether the stream that is waited for is not held. */
static int is_free(void *arg)
{
	struct tti_cuda_stream *stream = arg;
	bool free;

	pthread_mutex_lock(&stream->lock);
	free = !stream->held;
	pthread_mutex_unlock(&stream->lock);
	return free;
}

/* Who waits for a stream that is held is held, too. */
static int await_run(void *arg)
{
	const struct tti_cuda_point *point = arg;
	char why[256];
	int held;

	while ((held = wait_for(point->stream, point->number, why)))
		tti_cuda_stream_hold(held, why, is_free, point->stream);
	return 0;
}

static void await_drop(void *arg)
{
	tti_cuda_point_release(arg);
	free(arg);
}

static struct tti_cuda_item *await_create(struct tti_cuda_stream *target, uint64_t number)
{
	struct tti_cuda_point *point = malloc(sizeof(*point));
	struct tti_cuda_item *item;

	if (!point) {
		tti_cuda_fail(TTI_CUDA_ENOMEM, "out of memory: %zu bytes to wait for a stream",
			      sizeof(*point));
		return NULL;
	}
	*point = (struct tti_cuda_point){ hold(target), number };
	item = item_create(
		&(struct tti_cuda_job){ .run = await_run, .drop = await_drop, .arg = point });
	if (!item)
		await_drop(point);
	return item;
}

/* Under the lock. */
static int append_await(struct tti_cuda_stream *stream, struct tti_cuda_stream *target,
			uint64_t number)
{
	struct tti_cuda_item *item = await_create(target, number);
	const int error = item ? append(stream, item) : TTI_CUDA_ENOMEM;

	if (item && error) {
		tti_cuda_job_drop(&item->job);
		free(item);
	}
	return error;
}

/* The legacy stream comes behind all that the blocking streams have. */
static int join_blocking(struct tti_cuda_stream_list *of, struct tti_cuda_stream *legacy)
{
	for (struct tti_cuda_stream *each = of->first; each; each = each->next) {
		const uint64_t number = tti_cuda_stream_queued(each);
		int error;

		if (!tti_cuda_stream_waits_for_legacy(each) ||
		    tti_cuda_stream_done(each) >= number || each->joined_by_legacy >= number)
			continue;
		error = append_await(legacy, each, number);
		if (error)
			return error;
		each->joined_by_legacy = number;
	}
	return 0;
}

static int join_legacy(struct tti_cuda_stream *stream)
{
	struct tti_cuda_stream *legacy = tti_cuda_stream_legacy(stream->device);
	const uint64_t number = legacy ? tti_cuda_stream_queued(legacy) : 0;
	int error;

	if (!legacy || tti_cuda_stream_done(legacy) >= number || stream->joined_legacy >= number)
		return 0;
	error = append_await(stream, legacy, number);
	if (!error)
		stream->joined_legacy = number;
	return error;
}

/* Wake the thread if there is something for it, and unlock. */
static void close_queue(struct tti_cuda_stream *stream)
{
	const bool wakes = stream->sleeps && stream->first;

	if (wakes)
		stream->sleeps = false; /* once is enough */
	pthread_mutex_unlock(&stream->lock);
	if (wakes)
		pthread_cond_signal(&stream->more);
	if (stream->role == TTI_CUDA_STREAM_LEGACY)
		pthread_mutex_unlock(&tti_cuda_streams[stream->device].lock);
}

/* Lock, and queue what must come before the next job: the waits for other streams. */
static int open_queue(struct tti_cuda_stream *stream)
{
	struct tti_cuda_stream_list *of = &tti_cuda_streams[stream->device];
	const bool is_legacy = stream->role == TTI_CUDA_STREAM_LEGACY;
	int error = 0;

	if (is_legacy && atomic_load(&of->ncaptured))
		error = tti_cuda_capture_refuse_device(stream->device, true, TTI_CUDA_EIMPLICIT,
						       "something is queued in the legacy stream");
	if (error)
		return error;
	/* If two threads queue something here, both come behind all that is joined. */
	if (is_legacy)
		pthread_mutex_lock(&of->lock);
	pthread_mutex_lock(&stream->lock);
	if (is_legacy)
		error = join_blocking(of, stream);
	else if (tti_cuda_stream_waits_for_legacy(stream))
		error = join_legacy(stream);
	if (error)
		close_queue(stream);
	return error;
}

int tti_cuda_stream_push(struct tti_cuda_stream *stream, const struct tti_cuda_job *job)
{
	struct tti_cuda_item *item;
	bool is_captured = false;
	int error = tti_cuda_begin();

	if (!error && tti_cuda_stream_capture(stream)) {
		error = tti_cuda_capture_push(stream, job, &is_captured);
		if (is_captured)
			return error;
	}
	item = error ? NULL : item_create(job);
	if (!error)
		error = item ? open_queue(stream) : TTI_CUDA_ENOMEM;
	if (!error) {
		error = append(stream, item);
		close_queue(stream);
	}
	if (error) {
		free(item);
		tti_cuda_job_drop(job);
	}
	return error;
}

int tti_cuda_stream_mark(struct tti_cuda_stream *stream, const struct tti_cuda_job *stamp,
			 struct tti_cuda_point *out, bool *out_is_idle)
{
	struct tti_cuda_item *item = stamp ? item_create(stamp) : NULL;
	int error;

	if (stamp && !item)
		return TTI_CUDA_ENOMEM;
	error = open_queue(stream);
	if (error)
		goto out;
	*out_is_idle = tti_cuda_stream_done(stream) == tti_cuda_stream_queued(stream);
	if (item && !*out_is_idle) {
		error = append(stream, item);
		if (!error)
			item = NULL;
	}
	if (!error)
		*out = tti_cuda_stream_point(stream);
	close_queue(stream);
out:
	free(item);
	return error;
}

int tti_cuda_stream_await(struct tti_cuda_stream *stream, const struct tti_cuda_point *point)
{
	int error = tti_cuda_begin();

	if (!error)
		error = tti_cuda_capture_refuse(stream, TTI_CUDA_EISOLATION,
						"waits for what is not captured");
	if (error || is_past(point) || point->stream == stream)
		return error;
	error = open_queue(stream);
	if (error)
		return error;
	error = append_await(stream, point->stream, point->number);
	close_queue(stream);
	return error;
}
