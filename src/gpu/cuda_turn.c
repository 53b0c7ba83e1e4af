/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/cuda_turn.h"

#include <stdatomic.h>

#include "gpu/cuda_impl.h"
#include "gpu/cuda_memory.h"
#include "gpu/cuda_stream.h"
#include "util/mem.h"

struct tti_gpu_turns {
	struct tti_gpu *gpu;
	void *stream;
	_Atomic uint32_t *word; /* pinned: turns that have ended */
	uint64_t word_at;
	uint32_t nadded;
	/* Behind the last wait of the stream, which reads the word no more once this has happened. */
	void *passed;
	bool is_lost; /* the event could not be put there */
};

/* -- The device of a stream ------------------------------------------------------------- */

/* Handles that name the default streams of whatever context is current. */
static bool is_default(const void *stream)
{
	return (uintptr_t)stream <= 2;
}

static int find_device(const struct tti_cuda_functions *call, void *stream, tti_cuda_device *out,
		       const char **function)
{
	tti_cuda_context before = NULL, context = NULL;
	int rc;

	*function = "cuCtxGetCurrent";
	rc = call->context_get(&before);
	context = before;
	if (!rc && !is_default(stream)) {
		*function = "cuStreamGetCtx";
		rc = call->stream_context(stream, &context);
	}
	if (!rc && context != before) {
		*function = "cuCtxSetCurrent";
		rc = call->context_set(context);
	}
	if (rc)
		return rc;
	*function = "cuCtxGetDevice";
	rc = call->context_device(out);
	if (context != before && call->context_set(before))
		(void)call->context_set(before);
	return rc;
}

static tutti_status open_gpu(void *stream, struct tti_gpu **out)
{
	struct tti_gpu_driver *driver;
	tti_cuda_device device = -1, one = -1;
	const char *function;
	int rc, ordinal = 0;

	TTI_TRY(tti_gpu_driver(&driver));
	rc = find_device(&driver->call, stream, &device, &function);
	for (; !rc && one != device && ordinal < driver->count; ordinal++) {
		function = "cuDeviceGet";
		rc = driver->call.device_get(&one, ordinal);
	}
	if (rc)
		return tti_gpu_driver_fail(driver, rc, function, "the device of stream %p", stream);
	return tti_gpu_open(ordinal - 1, out);
}

/* -- Beginning and end ------------------------------------------------------------------ */

static tutti_status fill(struct tti_gpu_turns *turns)
{
	void *word = NULL;

	TTI_TRY(open_gpu(turns->stream, &turns->gpu));
	TTI_TRY(tti_gpu_event_create(turns->gpu, &turns->passed));
	TTI_TRY(tti_gpu_pinned_alloc(turns->gpu, sizeof(*turns->word), &word, &turns->word_at));
	turns->word = word;
	return TUTTI_OK;
}

tutti_status tti_gpu_turns_open(void *stream, struct tti_gpu_turns **out)
{
	struct tti_gpu_turns *turns = tti_zalloc(sizeof(*turns));
	tutti_status st;

	if (!turns)
		return tti_fail(TUTTI_ENOMEM, "stream %p: out of memory", stream);
	turns->stream = stream;
	st = fill(turns);
	if (st == TUTTI_OK)
		*out = turns;
	else
		tti_gpu_turns_close(turns);
	return st;
}

static tutti_status wait_for(struct tti_gpu *gpu, void *event)
{
	struct tti_gpu_scope scope;
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = gpu->driver->call.event_wait(event);
	/* It may have told an error of another call, and not waited (cuda_memory.c). */
	if (rc)
		rc = gpu->driver->call.event_wait(event);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuEventSynchronize", "waiting for a stream");
	return TUTTI_OK;
}

void tti_gpu_turns_close(struct tti_gpu_turns *turns)
{
	tutti_status st = TUTTI_OK;

	if (!turns)
		return;
	if (turns->nadded > 0)
		st = turns->is_lost ? tti_gpu_stream_wait(turns->gpu, turns->stream)
				    : wait_for(turns->gpu, turns->passed);
	/* A device that has failed reads nothing. */
	if (turns->word && st == TUTTI_OK)
		tti_gpu_pinned_set_aside(turns->gpu, (void *)turns->word, sizeof(*turns->word));
	else if (turns->word)
		tti_gpu_pinned_free(turns->gpu, (void *)turns->word);
	if (turns->gpu) {
		tti_gpu_event_destroy(turns->gpu, turns->passed);
		tti_gpu_close(turns->gpu);
	}
	tti_free(turns);
}

/* -- One turn ----------------------------------------------------------------------------- */

static tutti_status check_capture(const struct tti_gpu_turns *turns)
{
	struct tti_gpu_capture capture;

	TTI_TRY(tti_gpu_capture(turns->gpu, turns->stream, &capture));
	if (!capture.is_active)
		return TUTTI_OK;
	return tti_fail(TUTTI_EUNSUPPORTED,
			"stream %p is captured, and the host does the work of this call, which a "
			"graph cannot repeat: make the call before or after the graph",
			turns->stream);
}

tutti_status tti_gpu_turn_add(struct tti_gpu_turns *turns, void **out)
{
	void *event = NULL;
	tutti_status st;

	TTI_TRY(check_capture(turns));
	TTI_TRY(tti_gpu_event_create(turns->gpu, &event));
	st = tti_gpu_event_record(turns->gpu, event, turns->stream);
	if (st == TUTTI_OK)
		st = tti_gpu_word_await(turns->gpu, turns->word_at, turns->nadded + 1,
					turns->stream);
	if (st != TUTTI_OK) {
		tti_gpu_event_destroy(turns->gpu, event);
		return st;
	}
	turns->nadded++;
	turns->is_lost = tti_gpu_event_record(turns->gpu, turns->passed, turns->stream) != TUTTI_OK;
	*out = event;
	return TUTTI_OK;
}

tutti_status tti_gpu_turn_await(struct tti_gpu_turns *turns, void *event)
{
	const tutti_status st = wait_for(turns->gpu, event);

	tti_gpu_event_destroy(turns->gpu, event);
	return st;
}

void tti_gpu_turn_end(struct tti_gpu_turns *turns)
{
	atomic_fetch_add_explicit(turns->word, 1, memory_order_release);
}
