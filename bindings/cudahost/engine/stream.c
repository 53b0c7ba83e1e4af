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
#include <stdlib.h>

#include "engine/internal.h"

#define NOBODY UINT64_MAX

struct item {
	struct item *next;
	struct tti_cuda_job job;
};

struct tti_cuda_stream {
	_Atomic uint32_t holds; /* by itself while it runs, and by points */
	int device;
	unsigned flags;
	int priority;
	uint64_t id;
	enum tti_cuda_stream_role role;
	_Atomic(struct tti_cuda_capture *) capture;

	pthread_mutex_t lock;
	pthread_cond_t more, passed; /* for its thread, and for those who wait for a count */
	struct item *first, **end;
	_Atomic uint64_t queued, done;
	uint64_t wanted; /* the least count that somebody waits for, or NOBODY */
	bool has_thread;
	bool sleeps; /* the thread, until `more` */
	bool ends;

	uint64_t joined_legacy;    /* a job waits for that count of the legacy stream, or did */
	uint64_t joined_by_legacy; /* the reverse; under the device's lock */
	struct tti_cuda_stream *next, **link; /* of the device; under its lock */
};

static struct device {
	pthread_mutex_t lock; /* who has it may take a stream's */
	struct tti_cuda_stream *first;
	_Atomic(struct tti_cuda_stream *) legacy;
	_Atomic int ncaptured; /* of those that wait for the legacy stream */
} devices[TTI_CUDA_DEVICES_MOST];

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_devices(void)
{
	for (int device = 0; device < TTI_CUDA_DEVICES_MOST; device++)
		pthread_mutex_init(&devices[device].lock, NULL);
}

static bool waits_for_legacy(const struct tti_cuda_stream *stream)
{
	return stream->role != TTI_CUDA_STREAM_LEGACY &&
	       !(stream->flags & TTI_CUDA_STREAM_NON_BLOCKING);
}

static uint64_t queued(const struct tti_cuda_stream *stream)
{
	return atomic_load_explicit(&stream->queued, memory_order_acquire);
}

static uint64_t done(const struct tti_cuda_stream *stream)
{
	return atomic_load_explicit(&stream->done, memory_order_acquire);
}

/* -- Life ----------------------------------------------------------------------------------- */

struct tti_cuda_stream *tti_cuda_stream_make(int device, enum tti_cuda_stream_role role,
					     unsigned flags, int priority)
{
	static _Atomic uint64_t ids;
	struct device *of = &devices[device];
	struct tti_cuda_stream *stream = calloc(1, sizeof(*stream));

	if (!stream) {
		tti_cuda_fail(TTI_CUDA_ENOMEM, "out of memory: %zu bytes for a stream",
			      sizeof(*stream));
		return NULL;
	}
	pthread_once(&once, init_devices);
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
	struct device *of = &devices[stream->device];

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
	return atomic_load_explicit(&devices[device].legacy, memory_order_acquire);
}

bool tti_cuda_stream_set_legacy(struct tti_cuda_stream *stream)
{
	struct tti_cuda_stream *none = NULL;

	return atomic_compare_exchange_strong(&devices[stream->device].legacy, &none, stream);
}

/* -- Points --------------------------------------------------------------------------------- */

static bool is_past(const struct tti_cuda_point *point)
{
	return !point->stream || done(point->stream) >= point->number;
}

static void wait_for(struct tti_cuda_stream *stream, uint64_t number)
{
	if (done(stream) >= number)
		return;
	pthread_mutex_lock(&stream->lock);
	while (done(stream) < number) {
		if (number < stream->wanted)
			stream->wanted = number;
		pthread_cond_wait(&stream->passed, &stream->lock);
	}
	pthread_mutex_unlock(&stream->lock);
}

/* In a child of fork() nothing comes to pass any more. */
bool tti_cuda_point_is_past(const struct tti_cuda_point *point)
{
	return is_past(point);
}

void tti_cuda_point_wait(const struct tti_cuda_point *point)
{
	if (point->stream && !is_past(point) && !tti_cuda_begin())
		wait_for(point->stream, point->number);
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
	return (struct tti_cuda_point){ hold(stream), queued(stream) };
}

/* -- The thread ----------------------------------------------------------------------------- */

/* NULL: no more comes. */
static struct item *next_item(struct tti_cuda_stream *stream)
{
	struct item *item;

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
	struct item *item;

	tti_cuda_device_enter(stream->device);
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
static int append(struct tti_cuda_stream *stream, struct item *item)
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

static struct item *item_create(const struct tti_cuda_job *job)
{
	struct item *item = malloc(sizeof(*item));

	if (item)
		item->job = *job;
	else
		tti_cuda_fail(TTI_CUDA_ENOMEM, "out of memory: %zu bytes for a job of a stream",
			      sizeof(*item));
	return item;
}

static int await_run(void *arg)
{
	const struct tti_cuda_point *point = arg;

	wait_for(point->stream, point->number);
	return 0;
}

static void await_drop(void *arg)
{
	tti_cuda_point_release(arg);
	free(arg);
}

static struct item *await_create(struct tti_cuda_stream *target, uint64_t number)
{
	struct tti_cuda_point *point = malloc(sizeof(*point));
	struct item *item;

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
	struct item *item = await_create(target, number);
	const int error = item ? append(stream, item) : TTI_CUDA_ENOMEM;

	if (item && error) {
		tti_cuda_job_drop(&item->job);
		free(item);
	}
	return error;
}

/* The legacy stream comes behind all that the blocking streams have. */
static int join_blocking(struct device *of, struct tti_cuda_stream *legacy)
{
	for (struct tti_cuda_stream *each = of->first; each; each = each->next) {
		const uint64_t number = queued(each);
		int error;

		if (!waits_for_legacy(each) || done(each) >= number ||
		    each->joined_by_legacy >= number)
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
	const uint64_t number = legacy ? queued(legacy) : 0;
	int error;

	if (!legacy || done(legacy) >= number || stream->joined_legacy >= number)
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
		pthread_mutex_unlock(&devices[stream->device].lock);
}

/* Lock, and queue what must come before the next job: the waits for other streams. */
static int open_queue(struct tti_cuda_stream *stream)
{
	struct device *of = &devices[stream->device];
	const bool is_legacy = stream->role == TTI_CUDA_STREAM_LEGACY;
	int error = 0;

	if (is_legacy && atomic_load(&of->ncaptured))
		error = tti_cuda_capture_refuse_device(stream->device, true, TTI_CUDA_EIMPLICIT,
						       "something is queued in the legacy stream");
	if (error)
		return error;
	/* Of two threads that queue something here, both come behind all that is joined. */
	if (is_legacy)
		pthread_mutex_lock(&of->lock);
	pthread_mutex_lock(&stream->lock);
	if (is_legacy)
		error = join_blocking(of, stream);
	else if (waits_for_legacy(stream))
		error = join_legacy(stream);
	if (error)
		close_queue(stream);
	return error;
}

int tti_cuda_stream_push(struct tti_cuda_stream *stream, const struct tti_cuda_job *job)
{
	struct item *item;
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
	struct item *item = stamp ? item_create(stamp) : NULL;
	int error;

	if (stamp && !item)
		return TTI_CUDA_ENOMEM;
	error = open_queue(stream);
	if (error)
		goto out;
	*out_is_idle = done(stream) == queued(stream);
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

/* -- What it is and has -------------------------------------------------------------------- */

int tti_cuda_stream_busy(int device, struct tti_cuda_point **out, size_t *n)
{
	struct device *of = &devices[device];
	struct tti_cuda_point *points = NULL;
	size_t room = 0, count;

	pthread_once(&once, init_devices);
	for (;;) {
		count = 0;
		pthread_mutex_lock(&of->lock);
		for (struct tti_cuda_stream *each = of->first; each; each = each->next) {
			if (done(each) >= queued(each))
				continue;
			if (count < room)
				points[count] = tti_cuda_stream_point(each);
			count++;
		}
		pthread_mutex_unlock(&of->lock);
		*n = count < room ? count : room;
		*out = points;
		if (count <= room)
			return 0;
		for (size_t at = 0; at < *n; at++)
			tti_cuda_point_release(&points[at]);
		free(points);
		room = 2 * count;
		points = malloc(room * sizeof(*points));
		if (!points)
			return tti_cuda_fail(TTI_CUDA_ENOMEM,
					     "out of memory: %zu bytes to wait for %zu streams",
					     room * sizeof(*points), count);
	}
}

int tti_cuda_stream_device(const struct tti_cuda_stream *stream)
{
	return stream->device;
}

unsigned tti_cuda_stream_flags(const struct tti_cuda_stream *stream)
{
	return stream->flags;
}

int tti_cuda_stream_priority(const struct tti_cuda_stream *stream)
{
	return stream->priority;
}

uint64_t tti_cuda_stream_id(const struct tti_cuda_stream *stream)
{
	return stream->id;
}

enum tti_cuda_stream_role tti_cuda_stream_role(const struct tti_cuda_stream *stream)
{
	return stream->role;
}

struct tti_cuda_capture *tti_cuda_stream_capture(struct tti_cuda_stream *stream)
{
	return atomic_load_explicit(&stream->capture, memory_order_acquire);
}

/* Under the lock of captures. */
void tti_cuda_stream_set_capture(struct tti_cuda_stream *stream, struct tti_cuda_capture *capture)
{
	struct device *of = &devices[stream->device];
	const int more = (capture ? 1 : 0) - (tti_cuda_stream_capture(stream) ? 1 : 0);

	if (waits_for_legacy(stream))
		atomic_fetch_add(&of->ncaptured, more);
	atomic_store_explicit(&stream->capture, capture, memory_order_release);
}
