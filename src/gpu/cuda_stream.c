/* SPDX-License-Identifier: BSD-3-Clause */
#include "gpu/cuda_stream.h"

#include "gpu/cuda_impl.h"
#include "util/mem.h"

/* -- Streams ----------------------------------------------------------------------- */

tutti_status tti_gpu_stream_create(struct tti_gpu *gpu, bool is_urgent, void **out)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	struct tti_gpu_scope scope;
	const char *function = "cuCtxGetStreamPriorityRange";
	int least = 0, greatest = 0, rc;

	*out = NULL;
	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = call->priorities(&least, &greatest);
	if (!rc) {
		function = "cuStreamCreateWithPriority";
		rc = call->stream_create(out, TTI_CUDA_STREAM_NON_BLOCKING,
					 is_urgent ? greatest : least);
	}
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, function, "making a stream");
	tti_gpu_count(&tti_gpu_counts.streams, 1);
	return TUTTI_OK;
}

void tti_gpu_stream_destroy(struct tti_gpu *gpu, void *stream)
{
	struct tti_gpu_scope scope;

	if (!stream)
		return;
	tti_gpu_count(&tti_gpu_counts.streams, -1);
	if (!tti_gpu_enter_again(gpu, &scope))
		return;
	tti_gpu_give_back(gpu, gpu->driver->call.stream_destroy, stream, "cuStreamDestroy");
	tti_gpu_leave(gpu, &scope);
}

tutti_status tti_gpu_stream_wait(struct tti_gpu *gpu, void *stream)
{
	struct tti_gpu_scope scope;
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = gpu->driver->call.stream_wait(stream);
	/* It may have told an error of another call, and not waited (cuda_memory.c). */
	if (rc)
		(void)gpu->driver->call.stream_wait(stream);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuStreamSynchronize", "waiting for a stream");
	return TUTTI_OK;
}

tutti_status tti_gpu_stream_query(struct tti_gpu *gpu, void *stream)
{
	struct tti_gpu_scope scope;
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = gpu->driver->call.stream_query(stream);
	tti_gpu_leave(gpu, &scope);
	if (rc == TTI_CUDA_NOT_READY)
		return TUTTI_AGAIN;
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuStreamQuery", "asking whether a stream is done");
	return TUTTI_OK;
}

tutti_status tti_gpu_stream_check(struct tti_gpu *gpu, void *stream)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	struct tti_gpu_scope scope;
	tti_cuda_context context = NULL;
	tti_cuda_device device = gpu->device;
	const char *function = "cuStreamGetCtx";
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, false, &scope));
	rc = call->stream_context(stream, &context);
	if (!rc && context != gpu->context) { /* of another device, or not the primary one */
		function = "cuCtxSetCurrent";
		rc = call->context_set(context);
		if (!rc) {
			function = "cuCtxGetDevice";
			rc = call->context_device(&device);
		}
		if (call->context_set(gpu->context))
			(void)call->context_set(gpu->context);
	}
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, function, "asking for the device of a stream");
	if (device == gpu->device)
		return TUTTI_OK;
	return tti_fail(
		TUTTI_EINVAL,
		"the stream %p is of GPU %d, the communicator of GPU %d (%s): pass a stream "
		"that was made while the latter was the current device",
		stream, (int)device, gpu->facts.ordinal, gpu->facts.name);
}

/* -- Events ------------------------------------------------------------------------ */

tutti_status tti_gpu_event_create(struct tti_gpu *gpu, void **out)
{
	struct tti_gpu_scope scope;
	int rc;

	*out = NULL;
	TTI_TRY(tti_gpu_enter(gpu, true, &scope));
	rc = gpu->driver->call.event_create(out,
					    TTI_CUDA_EVENT_WITHOUT_TIME | TTI_CUDA_EVENT_SLEEPS);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuEventCreate", "making an event");
	tti_gpu_count(&tti_gpu_counts.events, 1);
	return TUTTI_OK;
}

void tti_gpu_event_destroy(struct tti_gpu *gpu, void *event)
{
	struct tti_gpu_scope scope;

	if (!event)
		return;
	tti_gpu_count(&tti_gpu_counts.events, -1);
	if (!tti_gpu_enter_again(gpu, &scope))
		return;
	tti_gpu_give_back(gpu, gpu->driver->call.event_destroy, event, "cuEventDestroy");
	tti_gpu_leave(gpu, &scope);
}

tutti_status tti_gpu_event_record(struct tti_gpu *gpu, void *event, void *stream)
{
	struct tti_gpu_scope scope;
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, false, &scope));
	rc = gpu->driver->call.event_record(event, stream);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuEventRecord", "an event into a stream");
	return TUTTI_OK;
}

tutti_status tti_gpu_event_await(struct tti_gpu *gpu, void *event, void *stream)
{
	struct tti_gpu_scope scope;
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, false, &scope));
	rc = gpu->driver->call.event_await(stream, event, 0);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuStreamWaitEvent", "a stream waits for an event");
	return TUTTI_OK;
}

/* -- Into a stream ----------------------------------------------------------------- */

tutti_status tti_gpu_copy(struct tti_gpu *gpu, uint64_t to, uint64_t from, size_t nbytes,
			  void *stream)
{
	struct tti_gpu_scope scope;
	int rc;

	if (!nbytes)
		return TUTTI_OK;
	TTI_TRY(tti_gpu_enter(gpu, false, &scope));
	rc = gpu->driver->call.copy(to, from, nbytes, stream);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuMemcpyAsync", "copying %zu bytes in a stream",
				    nbytes);
	return TUTTI_OK;
}

tutti_status tti_gpu_word_await(struct tti_gpu *gpu, uint64_t word, uint32_t at_least, void *stream)
{
	struct tti_gpu_scope scope;
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, false, &scope));
	rc = gpu->driver->call.wait_value(stream, word, at_least, TTI_CUDA_WAIT_AT_LEAST);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuStreamWaitValue32", "a stream waits for a word");
	return TUTTI_OK;
}

tutti_status tti_gpu_call(struct tti_gpu *gpu, void (*run)(void *arg), void *arg, void *stream)
{
	struct tti_gpu_scope scope;
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, false, &scope));
	rc = gpu->driver->call.host_function(stream, run, arg);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuLaunchHostFunc", "a call of the host in a stream");
	return TUTTI_OK;
}

/* -- Capture ----------------------------------------------------------------------- */

tutti_status tti_gpu_capture(struct tti_gpu *gpu, void *stream, struct tti_gpu_capture *out)
{
	struct tti_gpu_scope scope;
	int state = TTI_CUDA_CAPTURE_NONE, rc;

	*out = (struct tti_gpu_capture){ .is_active = false };
	TTI_TRY(tti_gpu_enter(gpu, false, &scope));
	rc = gpu->driver->call.capture_info(stream, &state, &out->id, &out->graph, NULL, NULL);
	tti_gpu_leave(gpu, &scope);
	if (rc)
		return tti_gpu_fail(gpu, rc, "cuStreamGetCaptureInfo",
				    "asking whether a stream is captured");
	if (state == TTI_CUDA_CAPTURE_INVALID)
		return tti_fail(TUTTI_EINVAL,
				"the capture of stream %p has become invalid by an earlier call: "
				"end it (cudaStreamEndCapture), and see what that call returned",
				stream);
	out->is_active = state == TTI_CUDA_CAPTURE_ACTIVE;
	if (!out->is_active)
		*out = (struct tti_gpu_capture){ .is_active = false };
	return TUTTI_OK;
}

struct keep {
	void (*end)(void *arg); /* NULL: it was not kept */
	void *arg;
};

static void end_keep(void *arg)
{
	struct keep *keep = arg;

	if (keep->end)
		keep->end(keep->arg);
	tti_free(keep);
}

/* Give the graph an object that calls end_keep() with it. On errors that is done already, or the
 * memory is freed. */
static int keep_for(struct tti_gpu *gpu, void *graph, struct keep *keep, const char **function)
{
	const struct tti_cuda_functions *const call = &gpu->driver->call;
	void *object;
	int rc;

	*function = "cuUserObjectCreate";
	rc = call->object_create(&object, keep, end_keep, 1, TTI_CUDA_USER_OBJECT_NO_SYNC);
	if (rc) {
		tti_free(keep);
		return rc;
	}
	*function = "cuGraphRetainUserObject";
	rc = call->object_retain(graph, object, 1, TTI_CUDA_USER_OBJECT_MOVE);
	if (rc) {
		keep->end = NULL;
		if (call->object_release(object, 1))
			(void)call->object_release(object, 1);
	}
	return rc;
}

tutti_status tti_gpu_capture_keep(struct tti_gpu *gpu, const struct tti_gpu_capture *capture,
				  void (*end)(void *arg), void *arg)
{
	struct tti_gpu_scope scope;
	struct keep *keep;
	const char *function;
	int rc;

	TTI_TRY(tti_gpu_enter(gpu, false, &scope));
	keep = tti_alloc(sizeof(*keep));
	if (!keep) {
		tti_gpu_leave(gpu, &scope);
		return tti_fail(TUTTI_ENOMEM, "keeping memory for a graph: out of memory");
	}
	*keep = (struct keep){ .end = end, .arg = arg };
	rc = keep_for(gpu, capture->graph, keep, &function);
	tti_gpu_leave(gpu, &scope);
	if (rc == TTI_CUDA_NOT_SUPPORTED)
		return tti_fail_quiet(TUTTI_EUNSUPPORTED,
				      "the driver does not tell when a graph is gone");
	if (rc)
		return tti_gpu_fail(gpu, rc, function, "keeping memory for a graph");
	return TUTTI_OK;
}
