/* SPDX-License-Identifier: BSD-3-Clause */
/* An event is a point of a stream, or a moment of a capture. One with timing has the time, too: a
 * job of the stream writes it, or record() if the stream is idle.
 *
 * Owner: an event is held by the program and by the nodes of graphs that name it. What is queued
 * holds the point or the time, and not the event. */
#define _POSIX_C_SOURCE 200809L
#include "engine/event.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "engine/graph.h"
#include "engine/internal.h"
#include "engine/ipc_event.h"

#define FLAGS (1u | TTI_CUDA_EVENT_NO_TIMING | TTI_CUDA_EVENT_IPC)

/* When something came to pass, by CLOCK_MONOTONIC; each record() has one. */
struct when {
	_Atomic uint32_t holds;
	_Atomic int64_t ns;
};

/* What the last record() left. */
struct recorded {
	bool is_recorded;
	struct tti_cuda_point point;
	struct when *when;                        /* NULL: no timing */
	struct tti_cuda_capture_moment *captured; /* NULL: not captured, and the others hold */
};

struct tti_cuda_event {
	_Atomic uint32_t holds;
	unsigned flags;
	int device;
	struct tti_cuda_ipc_event *shared; /* NULL: this process has it for itself */
	pthread_mutex_t lock;
	struct recorded last; /* under the lock; of one that is shared only that it was recorded */
};

/* -- Times ---------------------------------------------------------------------------------- */

static struct when *when_hold(struct when *when)
{
	if (when)
		atomic_fetch_add(&when->holds, 1);
	return when;
}

static void when_drop(void *arg)
{
	struct when *when = arg;

	if (when && atomic_fetch_sub(&when->holds, 1) == 1)
		free(when);
}

static int when_now(void *arg)
{
	struct when *when = arg;
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	atomic_store(&when->ns, (int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
	return 0;
}

/* *out NULL: the event has no timing. */
static int when_create(const struct tti_cuda_event *event, struct when **out)
{
	*out = NULL;
	if (event->flags & TTI_CUDA_EVENT_NO_TIMING)
		return 0;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "out of memory: %zu bytes for an event",
				     sizeof(**out));
	atomic_init(&(*out)->holds, 1);
	return 0;
}

/* -- What was recorded ---------------------------------------------------------------------- */

static void recorded_release(struct recorded *recorded)
{
	tti_cuda_point_release(&recorded->point);
	when_drop(recorded->when);
	if (recorded->captured)
		tti_cuda_capture_moment_release(recorded->captured);
}

/* It is the event's from now on. */
static void set_last(struct tti_cuda_event *event, struct recorded *recorded)
{
	struct recorded before;

	recorded->is_recorded = true;
	pthread_mutex_lock(&event->lock);
	before = event->last;
	event->last = *recorded;
	pthread_mutex_unlock(&event->lock);
	recorded_release(&before);
}

static struct recorded get_last(struct tti_cuda_event *event)
{
	struct recorded last;

	pthread_mutex_lock(&event->lock);
	last = event->last;
	last.point = tti_cuda_point_share(&event->last.point);
	when_hold(last.when);
	if (last.captured)
		last.captured = tti_cuda_capture_moment_share(last.captured);
	pthread_mutex_unlock(&event->lock);
	return last;
}

/* -- Life ----------------------------------------------------------------------------------- */

static void let_go(void *arg)
{
	struct tti_cuda_event *event = arg;

	if (atomic_fetch_sub(&event->holds, 1) != 1)
		return;
	recorded_release(&event->last);
	tti_cuda_ipc_event_release(event->shared);
	pthread_mutex_destroy(&event->lock);
	free(event);
}

/* Takes `shared` over. */
static int make(unsigned flags, int device, struct tti_cuda_ipc_event *shared,
		struct tti_cuda_event **out)
{
	struct tti_cuda_event *const event = calloc(1, sizeof(*event));
	int error;

	if (!event) {
		tti_cuda_ipc_event_release(shared);
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "out of memory: %zu bytes for an event",
				     sizeof(*event));
	}
	atomic_init(&event->holds, 1);
	event->flags = flags;
	event->device = device;
	event->shared = shared;
	event->last.is_recorded = shared;
	pthread_mutex_init(&event->lock, NULL);
	error = tti_cuda_handle_add(TTI_CUDA_HANDLE_EVENT, event);
	if (error)
		let_go(event);
	else
		*out = event;
	return error;
}

int tti_cuda_event_create(unsigned flags, struct tti_cuda_event **out)
{
	struct tti_cuda_ipc_event *shared = NULL;
	int error = tti_cuda_begin();

	if (!error)
		error = tti_cuda_device_check(tti_cuda_device_current());
	if (error)
		return error;
	if (flags & ~FLAGS)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "an event with flags %#x: there are %#x",
				     flags, FLAGS);
	if (flags & TTI_CUDA_EVENT_IPC && !(flags & TTI_CUDA_EVENT_NO_TIMING))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "an event for other processes has no timing: add %#x to flags "
				     "%#x",
				     TTI_CUDA_EVENT_NO_TIMING, flags);
	if (flags & TTI_CUDA_EVENT_IPC)
		error = tti_cuda_ipc_event_create(tti_cuda_device_current(), &shared);
	return error ? error : make(flags, tti_cuda_device_current(), shared, out);
}

static int check(const struct tti_cuda_event *event, const char *what)
{
	return tti_cuda_handle_check(TTI_CUDA_HANDLE_EVENT, event, what);
}

int tti_cuda_event_destroy(struct tti_cuda_event *event)
{
	const int error = check(event, "an event is destroyed");

	if (error)
		return error;
	if (!tti_cuda_handle_remove(TTI_CUDA_HANDLE_EVENT, event))
		return tti_cuda_fail(TTI_CUDA_EHANDLE,
				     "event %p is destroyed by two threads at once", (void *)event);
	let_go(event);
	return 0;
}

/* -- Other processes ------------------------------------------------------------------------ */

int tti_cuda_event_get_handle(struct tti_cuda_event *event, uint8_t out[64])
{
	const int error = check(event, "a handle of an event is asked for");

	if (error)
		return error;
	if (!event->shared)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "handle: the event has flags %#x: create it with %#x "
				     "(cudaEventInterprocess | cudaEventDisableTiming)",
				     event->flags, TTI_CUDA_EVENT_IPC | TTI_CUDA_EVENT_NO_TIMING);
	return tti_cuda_ipc_event_get_handle(event->shared, out);
}

int tti_cuda_event_open_handle(const uint8_t handle[64], struct tti_cuda_event **out)
{
	struct tti_cuda_ipc_event *shared;
	int error = tti_cuda_begin();
	int device;

	if (!error)
		error = tti_cuda_device_check(tti_cuda_device_current());
	if (!error)
		error = tti_cuda_ipc_event_open(handle, &shared, &device);
	if (error)
		return error;
	if (device >= tti_cuda_device_count())
		device = tti_cuda_device_current();
	return make(TTI_CUDA_EVENT_IPC | TTI_CUDA_EVENT_NO_TIMING, device, shared, out);
}

/* -- Recording ------------------------------------------------------------------------------ */

static int record_live(struct tti_cuda_event *event, struct tti_cuda_stream *stream)
{
	struct recorded recorded = { .is_recorded = true };
	struct tti_cuda_job stamp = { .run = when_now,
				      .drop = when_drop,
				      .kind = TTI_CUDA_NODE_RECORD };
	bool is_idle = false;
	int error = when_create(event, &recorded.when);

	if (error)
		return error;
	stamp.arg = when_hold(recorded.when);
	error = tti_cuda_stream_mark(stream, recorded.when ? &stamp : NULL, &recorded.point,
				     &is_idle);
	if (!error && is_idle && recorded.when)
		when_now(recorded.when);
	if (error || is_idle)
		when_drop(stamp.arg);
	if (error)
		recorded_release(&recorded);
	else
		set_last(event, &recorded);
	return error;
}

int tti_cuda_event_record(struct tti_cuda_event *event, struct tti_cuda_stream *stream)
{
	struct recorded recorded = { .is_recorded = true };
	int error = check(event, "an event is recorded");

	if (error)
		return error;
	if (event->device != tti_cuda_stream_device(stream))
		return tti_cuda_fail(TTI_CUDA_EHANDLE,
				     "an event of device %d is recorded in a stream of device %d: "
				     "create the event while device %d is current",
				     event->device, tti_cuda_stream_device(stream),
				     tti_cuda_stream_device(stream));
	if (event->shared)
		return tti_cuda_ipc_event_record(event->shared, stream);
	error = tti_cuda_capture_moment_take(stream, &recorded.captured);
	if (error)
		return error;
	if (!recorded.captured)
		return record_live(event, stream);
	set_last(event, &recorded);
	return 0;
}

static int await(struct tti_cuda_event *event, struct tti_cuda_stream *stream)
{
	struct recorded last = get_last(event);
	int error = 0;

	if (last.captured)
		error = tti_cuda_capture_moment_await(last.captured, stream);
	else if (last.is_recorded)
		error = tti_cuda_stream_await(stream, &last.point);
	recorded_release(&last);
	return error;
}

int tti_cuda_event_await(struct tti_cuda_event *event, struct tti_cuda_stream *stream)
{
	const int error = check(event, "a stream waits for an event");

	if (error)
		return error;
	return event->shared ? tti_cuda_ipc_event_await(event->shared, stream)
			     : await(event, stream);
}

/* -- Asking --------------------------------------------------------------------------------- */

/* What the event is a point of; the caller releases it. `waits`: captures forbid it. */
static int get_live(struct tti_cuda_event *event, bool waits, const char *what,
		    struct recorded *out)
{
	int error = check(event, what);

	if (error)
		return error;
	*out = get_last(event);
	if (out->captured)
		error = tti_cuda_capture_moment_refuse(out->captured, waits, what);
	else if (waits)
		error = tti_cuda_capture_forbids(what);
	if (error)
		recorded_release(out);
	return error;
}

/* What a job of the device failed with; nothing was recorded: 0. */
static int failure(const struct recorded *recorded)
{
	const struct tti_cuda_stream *stream = recorded->point.stream;

	return stream ? tti_cuda_device_failure(tti_cuda_stream_device(stream)) : 0;
}

/* What a query of a shared event, or a wait for it, comes to. */
static int past_shared(const struct tti_cuda_event *event, int error)
{
	return error ? error : tti_cuda_device_failure(event->device);
}

int tti_cuda_event_query(struct tti_cuda_event *event)
{
	struct recorded last;
	int error = get_live(event, true, "cudaEventQuery()", &last);

	if (error)
		return error;
	if (event->shared)
		error = past_shared(event, tti_cuda_ipc_event_query(event->shared));
	else
		error = tti_cuda_point_is_past(&last.point) ? failure(&last) : TTI_CUDA_ENOTREADY;
	recorded_release(&last);
	return error;
}

int tti_cuda_event_synchronize(struct tti_cuda_event *event)
{
	struct recorded last;
	int error = tti_cuda_device_may_wait("an event is synchronised");

	if (!error)
		error = get_live(event, true, "cudaEventSynchronize()", &last);
	if (error)
		return error;
	if (event->shared) {
		error = past_shared(event, tti_cuda_ipc_event_synchronize(event->shared));
	} else {
		error = tti_cuda_point_wait(&last.point);
		if (!error)
			error = failure(&last);
	}
	recorded_release(&last);
	return error;
}

/* 0: it has a time. */
static int check_timed(const struct recorded *recorded, const char *which)
{
	if (!recorded->is_recorded)
		return tti_cuda_fail(TTI_CUDA_EHANDLE,
				     "the time between events: the %s was never recorded", which);
	if (!recorded->when)
		return tti_cuda_fail(TTI_CUDA_EHANDLE,
				     "the time between events: the %s was created without timing "
				     "(cudaEventDisableTiming)",
				     which);
	return tti_cuda_point_is_past(&recorded->point) ? failure(recorded) : TTI_CUDA_ENOTREADY;
}

int tti_cuda_event_elapsed(struct tti_cuda_event *from, struct tti_cuda_event *to, float *out_ms)
{
	static const char what[] = "the time between events is asked for";
	struct recorded first, last;
	int error = get_live(from, false, what, &first);

	if (error)
		return error;
	error = get_live(to, false, what, &last);
	if (error) {
		recorded_release(&first);
		return error;
	}
	error = check_timed(&first, "first");
	if (!error || error == TTI_CUDA_ENOTREADY) {
		const int other = check_timed(&last, "second");

		error = other ? other : error;
	}
	if (!error)
		*out_ms = (float)((double)(atomic_load(&last.when->ns) -
					   atomic_load(&first.when->ns)) /
				  1e6);
	recorded_release(&first);
	recorded_release(&last);
	return error;
}

/* -- Nodes of graphs ------------------------------------------------------------------------ */

/* What behind_launch() made has the time. */
static int record_run(void *arg)
{
	struct recorded last = get_last(arg);

	if (last.when)
		when_now(last.when);
	recorded_release(&last);
	return 0;
}

/* before_launch() did it. */
static int await_run(void *arg)
{
	(void)arg;
	return 0;
}

static int make_job(struct tti_cuda_event *event, int (*run)(void *), int kind,
		    struct tti_cuda_job *out)
{
	const int error = event ? check(event, "a node of a graph has an event")
				: tti_cuda_fail(TTI_CUDA_EINVAL, "a node of a graph has no event");

	if (error)
		return error;
	if (event->shared)
		return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
				     "a node of a graph has an event that processes share: "
				     "record it behind the launch, or await it before");
	atomic_fetch_add(&event->holds, 1);
	*out = (struct tti_cuda_job){ .run = run, .drop = let_go, .arg = event, .kind = kind };
	return 0;
}

int tti_cuda_event_record_job(struct tti_cuda_event *event, struct tti_cuda_job *out)
{
	return make_job(event, record_run, TTI_CUDA_NODE_RECORD, out);
}

int tti_cuda_event_await_job(struct tti_cuda_event *event, struct tti_cuda_job *out)
{
	return make_job(event, await_run, TTI_CUDA_NODE_AWAIT, out);
}

int tti_cuda_event_before_launch(const struct tti_cuda_job *job, struct tti_cuda_stream *stream)
{
	struct recorded last;
	int error = 0;

	if (job->run != await_run)
		return 0;
	last = get_last(job->arg);
	if (last.captured)
		error = tti_cuda_capture_moment_refuse(last.captured, true,
						       "a graph that awaits an event is launched");
	else if (last.is_recorded)
		error = tti_cuda_stream_await(stream, &last.point);
	recorded_release(&last);
	return error;
}

int tti_cuda_event_behind_launch(const struct tti_cuda_job *job, struct tti_cuda_stream *stream)
{
	struct recorded recorded = { .is_recorded = true };
	int error;

	if (job->run != record_run)
		return 0;
	error = when_create(job->arg, &recorded.when);
	if (error)
		return error;
	recorded.point = tti_cuda_stream_point(stream);
	set_last(job->arg, &recorded);
	return 0;
}
