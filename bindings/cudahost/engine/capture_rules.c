/* SPDX-License-Identifier: BSD-3-Clause */
/* What captured streams and events must not be used for, how events let streams join a capture, and
 * which calls wait that must not while something is captured. */
#include <stdlib.h>

#include "engine/capture_impl.h"

struct tti_cuda_capture_moment {
	_Atomic uint32_t holds;
	struct tti_cuda_capture *capture; /* held */
	struct tti_cuda_nodes tail;
};

static _Thread_local enum tti_cuda_capture_mode thread_mode;

static void lock(void)
{
	pthread_mutex_lock(&tti_cuda_graph_lock);
}

static void unlock(void)
{
	pthread_mutex_unlock(&tti_cuda_graph_lock);
}

static unsigned long long id_of(const struct tti_cuda_stream *stream)
{
	return tti_cuda_stream_id(stream);
}

/* -- Streams -------------------------------------------------------------------------------- */

/* `error` for the one that makes it invalid. From then on, what waits says ECAPTURE still, and
 * everything else ECAPTURED. */
static int refuse(struct tti_cuda_capture *capture, const struct tti_cuda_stream *stream, int error,
		  const char *what)
{
	if (capture->state == TTI_CUDA_CAPTURE_INVALID && error != TTI_CUDA_ECAPTURE)
		return tti_cuda_capture_fail_invalid(capture);
	tti_cuda_capture_invalidate(capture, "%s while stream %llu was captured", what,
				    id_of(stream));
	return tti_cuda_fail(error,
			     "%s while stream %llu is captured (capture %llu), which makes the "
			     "capture invalid: do that before it begins or after it has ended",
			     what, id_of(stream), (unsigned long long)capture->id);
}

int tti_cuda_capture_refuse(struct tti_cuda_stream *stream, int error, const char *what)
{
	struct tti_cuda_capture *capture;
	int result = 0;

	if (!tti_cuda_stream_capture(stream))
		return 0;
	lock();
	capture = tti_cuda_stream_capture(stream);
	if (capture)
		result = refuse(capture, stream, error, what);
	unlock();
	return result;
}

static bool is_blocking(const struct tti_cuda_stream *stream)
{
	return !(tti_cuda_stream_flags(stream) & TTI_CUDA_STREAM_NON_BLOCKING);
}

int tti_cuda_capture_refuse_device(int device, bool blocking_alone, int error, const char *what)
{
	int result = 0;

	if (!atomic_load(&tti_cuda_ncaptures))
		return 0;
	lock();
	for (struct tti_cuda_capture *each = tti_cuda_captures; each; each = each->next) {
		for (size_t i = 0; i < each->nmembers; i++) {
			const struct tti_cuda_stream *stream = each->members[i]->stream;

			if (!stream || tti_cuda_stream_device(stream) != device ||
			    (blocking_alone && !is_blocking(stream)))
				continue;
			result = refuse(each, stream, error, what);
			break;
		}
	}
	unlock();
	return result;
}

/* -- Events --------------------------------------------------------------------------------- */

int tti_cuda_capture_moment_take(struct tti_cuda_stream *stream,
				 struct tti_cuda_capture_moment **out)
{
	struct tti_cuda_capture_moment *moment;
	const struct tti_cuda_capture_member *member;
	struct tti_cuda_capture *capture;
	int error = 0;

	*out = NULL;
	if (!tti_cuda_stream_capture(stream))
		return 0;
	moment = calloc(1, sizeof(*moment));
	if (!moment)
		return tti_cuda_fail(TTI_CUDA_ENOMEM,
				     "out of memory: %zu bytes for an event of a capture",
				     sizeof(*moment));
	atomic_init(&moment->holds, 1);
	lock();
	capture = tti_cuda_capture_active(stream, &error);
	if (capture) {
		member = tti_cuda_capture_find_member(capture, stream);
		error = tti_cuda_capture_add_tail(&moment->tail, member->tail.at, member->tail.n);
	}
	if (capture && !error) {
		atomic_fetch_add(&capture->holds, 1);
		moment->capture = capture;
		*out = moment;
	}
	unlock();
	if (!*out) {
		tti_cuda_nodes_release(&moment->tail);
		free(moment);
	}
	return error;
}

struct tti_cuda_capture_moment *
tti_cuda_capture_moment_share(struct tti_cuda_capture_moment *moment)
{
	atomic_fetch_add(&moment->holds, 1);
	return moment;
}

void tti_cuda_capture_moment_release(struct tti_cuda_capture_moment *moment)
{
	if (atomic_fetch_sub(&moment->holds, 1) != 1)
		return;
	tti_cuda_capture_let_go(moment->capture);
	tti_cuda_nodes_release(&moment->tail);
	free(moment);
}

/* CUDA tells an event of a capture that has ended by EINVAL. */
static int fail_event(const struct tti_cuda_capture *capture, const char *what)
{
	return tti_cuda_fail(
		capture->state == TTI_CUDA_CAPTURE_NONE ? TTI_CUDA_EINVAL : TTI_CUDA_ECAPTUREDEVENT,
		"%s: it was recorded last in a stream that was captured (capture %llu), "
		"so it is no moment of a stream: record it anew, or use another",
		what, (unsigned long long)capture->id);
}

/* Let a stream join the capture that is in another capture, or in none. */
static int join(struct tti_cuda_capture *capture, struct tti_cuda_stream *stream,
		const struct tti_cuda_nodes *tail)
{
	struct tti_cuda_capture *other = tti_cuda_stream_capture(stream);

	if (other) {
		tti_cuda_capture_invalidate(capture, "capture %llu was to join it",
					    (unsigned long long)other->id);
		tti_cuda_capture_invalidate(other, "it was to join capture %llu",
					    (unsigned long long)capture->id);
		return tti_cuda_fail(
			TTI_CUDA_EMERGE,
			"stream %llu of capture %llu waits for an event of capture %llu, "
			"which would join the two: both are not valid any more",
			id_of(stream), (unsigned long long)other->id,
			(unsigned long long)capture->id);
	}
	if (tti_cuda_stream_role(stream) == TTI_CUDA_STREAM_LEGACY) {
		tti_cuda_capture_invalidate(capture, "the legacy stream was to join it");
		return tti_cuda_fail(
			TTI_CUDA_EIMPLICIT,
			"the legacy default stream waits for an event of capture %llu, "
			"which it cannot join: use a stream of cudaStreamCreate()",
			(unsigned long long)capture->id);
	}
	return tti_cuda_capture_add_member(capture, stream, tail->at, tail->n);
}

int tti_cuda_capture_moment_await(struct tti_cuda_capture_moment *moment,
				  struct tti_cuda_stream *stream)
{
	struct tti_cuda_capture *capture = moment->capture;
	int error = tti_cuda_begin();

	if (error)
		return error;
	lock();
	if (capture->state == TTI_CUDA_CAPTURE_NONE)
		error = fail_event(capture,
				   "a stream waits for an event of a capture that has ended");
	else if (capture->state == TTI_CUDA_CAPTURE_INVALID)
		error = tti_cuda_capture_fail_invalid(capture);
	else if (tti_cuda_stream_capture(stream) == capture)
		error = tti_cuda_capture_add_tail(
			&tti_cuda_capture_find_member(capture, stream)->tail, moment->tail.at,
			moment->tail.n);
	else
		error = join(capture, stream, &moment->tail);
	unlock();
	return error;
}

int tti_cuda_capture_moment_refuse(struct tti_cuda_capture_moment *moment, bool spoils,
				   const char *what)
{
	int error;

	lock();
	if (spoils)
		tti_cuda_capture_invalidate(moment->capture, "%s, which was recorded in it", what);
	error = fail_event(moment->capture, what);
	unlock();
	return error;
}

/* -- Threads -------------------------------------------------------------------------------- */

enum tti_cuda_capture_mode tti_cuda_capture_exchange(enum tti_cuda_capture_mode mode)
{
	const enum tti_cuda_capture_mode before = thread_mode;

	thread_mode = mode;
	return before;
}

/* CUDA's rule: what a thread does that is not relaxed spoils its own captures that are not relaxed;
 * if the thread is global, those of other threads that are global, too. */
static bool is_spoilt(const struct tti_cuda_capture *capture)
{
	if (thread_mode == TTI_CUDA_CAPTURE_RELAXED)
		return false;
	if (capture->thread == tti_cuda_capture_thread())
		return capture->mode != TTI_CUDA_CAPTURE_RELAXED;
	return thread_mode == TTI_CUDA_CAPTURE_GLOBAL && capture->mode == TTI_CUDA_CAPTURE_GLOBAL;
}

int tti_cuda_capture_forbids(const char *what)
{
	const struct tti_cuda_capture *spoilt = NULL;
	int error = 0;

	if (!atomic_load(&tti_cuda_ncaptures))
		return 0;
	error = tti_cuda_begin();
	if (error)
		return error;
	lock();
	for (struct tti_cuda_capture *each = tti_cuda_captures; each; each = each->next) {
		if (!is_spoilt(each))
			continue;
		tti_cuda_capture_invalidate(each, "%s was called, which may wait", what);
		spoilt = each;
	}
	if (spoilt)
		error = tti_cuda_fail(
			TTI_CUDA_ECAPTURE,
			"%s is not allowed while a stream is captured (capture %llu), and "
			"makes the capture invalid: call it before, or let the thread "
			"exchange its mode to cudaStreamCaptureModeRelaxed",
			what, (unsigned long long)spoilt->id);
	unlock();
	return error;
}
