/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams, events, and functions of the program in the order of a stream. */
#include <stdlib.h>
#include <string.h>

#include "engine/facts.h"
#include "runtime/runtime.h"

bool tti_cudart_is_captured(struct tti_cuda_stream *stream)
{
	struct tti_cuda_capture_info info;

	tti_cuda_capture_get(stream, &info);
	return info.state != TTI_CUDA_CAPTURE_NONE;
}

/* -- Streams ------------------------------------------------------------------------------ */

int tti_cudaStreamCreateWithPriority(tti_cu_stream *out, unsigned flags, int priority)
{
	if (!out)
		return tti_cudart_null("cudaStreamCreate", "place for the stream");
	if (flags & ~TTI_CUDA_STREAM_NON_BLOCKING)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaStreamCreateWithFlags(): flags are %#x: pass "
				     "cudaStreamDefault or cudaStreamNonBlocking",
				     flags);
	/* CUDA takes the nearest priority that there is. */
	if (priority > TTI_CUDA_PRIORITY_LEAST)
		priority = TTI_CUDA_PRIORITY_LEAST;
	if (priority < TTI_CUDA_PRIORITY_GREATEST)
		priority = TTI_CUDA_PRIORITY_GREATEST;
	return tti_cuda_stream_create(flags, priority, out);
}

int tti_cudaStreamCreateWithFlags(tti_cu_stream *out, unsigned flags)
{
	return tti_cudaStreamCreateWithPriority(out, flags, 0);
}

int tti_cudaStreamCreate(tti_cu_stream *out)
{
	return tti_cudaStreamCreateWithPriority(out, 0, 0);
}

int tti_cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = TTI_CUDA_PRIORITY_LEAST;
	if (greatest)
		*greatest = TTI_CUDA_PRIORITY_GREATEST;
	return tti_cudart_check_device("cudaDeviceGetStreamPriorityRange",
				       tti_cuda_device_current());
}

int tti_cudaStreamDestroy(tti_cu_stream stream)
{
	return tti_cuda_stream_destroy(stream);
}

int tti_cudaStreamSynchronize(bool per_thread, tti_cu_stream handle)
{
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	return stream ? tti_cuda_stream_synchronize(stream) : error;
}

int tti_cudaStreamQuery(bool per_thread, tti_cu_stream handle)
{
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	return stream ? tti_cuda_stream_query(stream) : error;
}

/* The stream, and that there is a place for the answer. */
static struct tti_cuda_stream *get_for(const char *function, bool per_thread, const void *handle,
				       const void *out, int *error)
{
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, error);

	if (stream && !out) {
		*error = tti_cudart_null(function, "place for the answer");
		return NULL;
	}
	return stream;
}

int tti_cudaStreamGetPriority(bool per_thread, tti_cu_stream handle, int *out)
{
	int error = 0;
	struct tti_cuda_stream *stream =
		get_for("cudaStreamGetPriority", per_thread, handle, out, &error);

	if (stream)
		*out = tti_cuda_stream_priority(stream);
	return error;
}

int tti_cudaStreamGetFlags(bool per_thread, tti_cu_stream handle, unsigned *out)
{
	int error = 0;
	struct tti_cuda_stream *stream =
		get_for("cudaStreamGetFlags", per_thread, handle, out, &error);

	if (stream)
		error = tti_cuda_capture_refuse(stream, TTI_CUDA_ECAPTURE, "cudaStreamGetFlags()");
	if (!error)
		*out = tti_cuda_stream_flags(stream);
	return error;
}

int tti_cudaStreamGetId(bool per_thread, tti_cu_stream handle, unsigned long long *out)
{
	int error = 0;
	struct tti_cuda_stream *stream =
		get_for("cudaStreamGetId", per_thread, handle, out, &error);

	if (stream)
		error = tti_cuda_capture_refuse(stream, TTI_CUDA_ECAPTURE, "cudaStreamGetId()");
	if (!error)
		*out = tti_cuda_stream_id(stream);
	return error;
}

int tti_cudaStreamGetDevice(bool per_thread, tti_cu_stream handle, int *out)
{
	int error = 0;
	struct tti_cuda_stream *stream =
		get_for("cudaStreamGetDevice", per_thread, handle, out, &error);

	if (stream)
		*out = tti_cuda_stream_device(stream);
	return error;
}

static bool is_hint(int attribute)
{
	return attribute == TTI_CU_LAUNCH_POLICY_WINDOW || attribute == TTI_CU_LAUNCH_SYNC_POLICY ||
	       attribute == TTI_CU_LAUNCH_PRIORITY || attribute == TTI_CU_LAUNCH_DOMAIN_MAP ||
	       attribute == TTI_CU_LAUNCH_DOMAIN;
}

static int no_attribute(const char *function, int attribute)
{
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "%s(): streams have no attribute %d: pass one of cudaStreamAttribute*",
			     function, attribute);
}

int tti_cudaStreamGetAttribute(bool per_thread, tti_cu_stream handle, int attribute,
			       union tti_cu_launch_value *out)
{
	int error = 0;
	struct tti_cuda_stream *stream =
		get_for("cudaStreamGetAttribute", per_thread, handle, out, &error);

	if (!stream)
		return error;
	if (!is_hint(attribute))
		return no_attribute("cudaStreamGetAttribute", attribute);
	memset(out, 0, sizeof(*out));
	if (attribute == TTI_CU_LAUNCH_PRIORITY)
		out->number = tti_cuda_stream_priority(stream);
	else if (attribute == TTI_CU_LAUNCH_SYNC_POLICY)
		out->number = 1; /* cudaSyncPolicyAuto */
	return 0;
}

int tti_cudaStreamSetAttribute(bool per_thread, tti_cu_stream handle, int attribute,
			       const union tti_cu_launch_value *value)
{
	int error = 0;

	if (!get_for("cudaStreamSetAttribute", per_thread, handle, value, &error))
		return error;
	if (attribute == TTI_CU_LAUNCH_SYNC_POLICY && (value->number < 1 || value->number > 4))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaStreamSetAttribute(): there is no way %d to wait: pass "
				     "one of enum cudaSynchronizationPolicy",
				     value->number);
	return is_hint(attribute) ? 0 : no_attribute("cudaStreamSetAttribute", attribute);
}

int tti_cudaStreamCopyAttributes(bool per_thread, tti_cu_stream to, tti_cu_stream from)
{
	int error = 0;

	if (tti_cuda_stream_get(to, per_thread, &error))
		(void)tti_cuda_stream_get(from, per_thread, &error);
	return error;
}

int tti_cudaStreamAttachMemAsync(bool per_thread, tti_cu_stream handle, void *address,
				 size_t nbytes, unsigned flags)
{
	struct tti_cuda_range range;
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	if (!stream)
		return error;
	if (flags != 1 && flags != 2 && flags != 4)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaStreamAttachMemAsync(): flags are %#x: pass one of "
				     "cudaMemAttachGlobal, Host, Single",
				     flags);
	if (!tti_cuda_memory_find(address, &range) || range.type != TTI_CUDA_MANAGED)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaStreamAttachMemAsync(): %p is not managed memory: use "
				     "cudaMallocManaged()",
				     address);
	if (nbytes && nbytes != range.nbytes)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaStreamAttachMemAsync(): %zu bytes of memory of %zu: pass "
				     "all of it, or 0",
				     nbytes, range.nbytes);
	if (flags == 4 && tti_cuda_stream_is_legacy(stream))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaStreamAttachMemAsync(): no memory is of the default "
				     "stream alone: pass a stream of cudaStreamCreate()");
	return 0;
}

/* -- Functions of the program ------------------------------------------------------------- */

int tti_cudart_host_job(const char *function, const struct tti_cu_host_node *host,
			struct tti_cuda_job *out)
{
	if (!host || !host->fn)
		return tti_cudart_null(function, "function of the host");
	return tti_cuda_call_job(&(struct tti_cuda_call){ host->fn, host->arg }, out);
}

int tti_cudaLaunchHostFunc(bool per_thread, tti_cu_stream handle, tti_cu_host_fn fn, void *arg)
{
	const struct tti_cu_host_node host = { fn, arg };
	struct tti_cuda_job job;
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	if (!stream)
		return error;
	error = tti_cudart_host_job("cudaLaunchHostFunc", &host, &job);
	return error ? error : tti_cuda_stream_push(stream, &job);
}

struct callback {
	tti_cu_callback fn;
	tti_cu_stream handle; /* as the program has it */
	int device;
	void *arg;
};

/* Callbacks are called after errors, too, and get them. */
static int run_callback(void *arg)
{
	const struct callback *callback = arg;

	tti_cuda_host_begin();
	callback->fn(callback->handle, tti_cuda_device_failure(callback->device), callback->arg);
	tti_cuda_host_end();
	return 0;
}

int tti_cudaStreamAddCallback(bool per_thread, tti_cu_stream handle, tti_cu_callback fn, void *arg,
			      unsigned flags)
{
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);
	struct callback *callback;

	if (!stream)
		return error;
	if (!fn || flags)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaStreamAddCallback(): function %p, flags %#x: pass a "
				     "function and 0",
				     *(void **)&fn, flags);
	error = tti_cuda_capture_refuse(stream, TTI_CUDA_ECAPTURE, "cudaStreamAddCallback()");
	if (error)
		return error;
	callback = malloc(sizeof(*callback));
	if (!callback)
		return tti_cuda_fail(TTI_CUDA_ENOMEM,
				     "cudaStreamAddCallback(): no memory for a call");
	*callback = (struct callback){ fn, handle, tti_cuda_stream_device(stream), arg };
	return tti_cuda_stream_push(stream, &(struct tti_cuda_job){ run_callback, free, callback,
								    TTI_CUDA_NODE_HOST, NULL });
}

/* -- Events ------------------------------------------------------------------------------- */

int tti_cudaEventCreateWithFlags(tti_cu_event *out, unsigned flags)
{
	if (!out)
		return tti_cudart_null("cudaEventCreate", "place for the event");
	return tti_cuda_event_create(flags, out);
}

int tti_cudaEventCreate(tti_cu_event *out)
{
	return tti_cudaEventCreateWithFlags(out, 0);
}

int tti_cudaEventDestroy(tti_cu_event event)
{
	return tti_cuda_event_destroy(event);
}

int tti_cudaIpcGetEventHandle(struct tti_cu_ipc_handle *out, tti_cu_event event)
{
	if (!out)
		return tti_cudart_null("cudaIpcGetEventHandle", "place for the handle");
	return tti_cuda_event_get_handle(event, out->bytes);
}

int tti_cudaIpcOpenEventHandle(tti_cu_event *out, struct tti_cu_ipc_handle handle)
{
	if (!out)
		return tti_cudart_null("cudaIpcOpenEventHandle", "place for the event");
	return tti_cuda_event_open_handle(handle.bytes, out);
}

int tti_cudaEventRecord(bool per_thread, tti_cu_event event, tti_cu_stream handle)
{
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	return stream ? tti_cuda_event_record(event, stream) : error;
}

static int check_external(const char *function, struct tti_cuda_stream *stream)
{
	if (tti_cudart_is_captured(stream))
		return 0;
	return tti_cuda_fail(TTI_CUDA_ESTATE,
			     "%s(): an external event is of a stream that is captured: pass flags "
			     "of 0",
			     function);
}

/* An event of a captured stream that is seen outside of the capture is a node of the graph. */
int tti_cudaEventRecordWithFlags(bool per_thread, tti_cu_event event, tti_cu_stream handle,
				 unsigned flags)
{
	struct tti_cuda_job job;
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	if (!stream)
		return error;
	if (flags > 1) /* cudaEventRecordExternal */
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaEventRecordWithFlags(): flags are %#x: pass 0 or "
				     "cudaEventRecordExternal",
				     flags);
	if (!flags)
		return tti_cuda_event_record(event, stream);
	error = check_external("cudaEventRecordWithFlags", stream);
	if (!error)
		error = tti_cuda_event_record_job(event, &job);
	return error ? error : tti_cuda_stream_push(stream, &job);
}

int tti_cudaStreamWaitEvent(bool per_thread, tti_cu_stream handle, tti_cu_event event,
			    unsigned flags)
{
	struct tti_cuda_job job;
	int error = 0;
	struct tti_cuda_stream *stream = tti_cuda_stream_get(handle, per_thread, &error);

	if (!stream)
		return error;
	if (flags > 1) /* cudaEventWaitExternal */
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "cudaStreamWaitEvent(): flags are %#x: pass 0 or "
				     "cudaEventWaitExternal",
				     flags);
	if (!flags)
		return tti_cuda_event_await(event, stream);
	error = check_external("cudaStreamWaitEvent", stream);
	if (!error)
		error = tti_cuda_event_await_job(event, &job);
	return error ? error : tti_cuda_stream_push(stream, &job);
}

int tti_cudaEventQuery(tti_cu_event event)
{
	return tti_cuda_event_query(event);
}

int tti_cudaEventSynchronize(tti_cu_event event)
{
	return tti_cuda_event_synchronize(event);
}

int tti_cudaEventElapsedTime(float *out_ms, tti_cu_event from, tti_cu_event to)
{
	if (!out_ms)
		return tti_cudart_null("cudaEventElapsedTime", "place for the time");
	return tti_cuda_event_elapsed(from, to, out_ms);
}

#if TTI_CUDART_MAJOR == 12
int tti_cudaEventElapsedTime_v2(float *out_ms, tti_cu_event from, tti_cu_event to)
{
	return tti_cudaEventElapsedTime(out_ms, from, to);
}
#endif
