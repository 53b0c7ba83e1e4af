/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams. */
#include "engine/stream.h"

#include <stdlib.h>

#include "driver/driver.h"
#include "engine/event.h"

/* The handles of the default streams. */
static bool is_default(CUstream handle)
{
	return !handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD;
}

int tti_driver_stream(CUstream handle, struct tti_cuda_stream **out)
{
	int bad = is_default(handle) ? tti_driver_begin_context(NULL) : tti_driver_begin();

	if (bad)
		return bad;
	*out = tti_cuda_stream_get(handle, false, &bad);
	return *out ? TTI_CUDA_OK : bad;
}

static int find(CUstream handle, const void *out, const char *what, struct tti_cuda_stream **in)
{
	const int bad = tti_driver_stream(handle, in);

	return bad ? bad : tti_driver_need(out, what);
}

CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
	struct tti_cuda_stream *stream;
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (bad)
		return tti_driver_result(bad);
	if (flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
		return tti_driver_fail(TTI_CUDA_EINVAL, "a stream with the flags 0x%x: 0 or 1",
				       flags);
	bad = tti_cuda_stream_create(flags, priority, &stream);
	if (!bad)
		*out = (CUstream)stream;
	return tti_driver_result(bad);
}

CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
	return cuStreamCreateWithPriority(out, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream handle)
{
	struct tti_cuda_stream *stream;
	int bad = tti_driver_begin();

	if (!bad && is_default(handle))
		bad = tti_cuda_fail(TTI_CUDA_EHANDLE,
				    "cuStreamDestroy: a default stream is not destroyed");
	if (!bad)
		bad = tti_driver_stream(handle, &stream);
	return tti_driver_result(bad ? bad : tti_cuda_stream_destroy(stream));
}

CUresult cuStreamDestroy(CUstream handle)
{
	return cuStreamDestroy_v2(handle);
}

CUresult cuStreamGetPriority(CUstream handle, int *out)
{
	struct tti_cuda_stream *stream;
	const int bad = find(handle, out, __func__, &stream);

	if (!bad)
		*out = tti_cuda_stream_priority(stream);
	return tti_driver_result(bad);
}

CUresult cuStreamGetFlags(CUstream handle, unsigned *out)
{
	struct tti_cuda_stream *stream;
	int bad = find(handle, out, __func__, &stream);

	if (!bad)
		bad = tti_cuda_capture_refuse(stream, TTI_CUDA_ECAPTURE, __func__);
	if (!bad)
		*out = tti_cuda_stream_flags(stream);
	return tti_driver_result(bad);
}

CUresult cuStreamGetId(CUstream handle, unsigned long long *out)
{
	struct tti_cuda_stream *stream;
	int bad = find(handle, out, __func__, &stream);

	if (!bad)
		bad = tti_cuda_capture_refuse(stream, TTI_CUDA_ECAPTURE, __func__);
	if (!bad)
		*out = tti_cuda_stream_id(stream);
	return tti_driver_result(bad);
}

CUresult cuStreamGetDevice(CUstream handle, CUdevice *out)
{
	struct tti_cuda_stream *stream;
	const int bad = find(handle, out, __func__, &stream);

	if (!bad)
		*out = tti_cuda_stream_device(stream);
	return tti_driver_result(bad);
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext *out)
{
	struct tti_cuda_stream *stream;
	const int bad = find(handle, out, __func__, &stream);

	if (bad)
		return tti_driver_result(bad);
	*out = tti_driver_context_of(tti_cuda_stream_device(stream));
	if (*out)
		return CUDA_SUCCESS;
	return tti_driver_fail(CUDA_ERROR_CONTEXT_IS_DESTROYED,
			       "cuStreamGetCtx: device %d has no context any more",
			       tti_cuda_stream_device(stream));
}

/* No stream is of a part of a device, which a green context is. */
CUresult cuStreamGetCtx_v2(CUstream handle, CUcontext *out, CUgreenCtx *out_green)
{
	const CUresult rc = cuStreamGetCtx(handle, out);

	if (!rc && out_green)
		*out_green = NULL;
	return rc;
}

CUresult cuStreamGetGreenCtx(CUstream handle, CUgreenCtx *out)
{
	struct tti_cuda_stream *stream;
	const int bad = find(handle, out, __func__, &stream);

	if (!bad)
		*out = NULL;
	return tti_driver_result(bad);
}

CUresult cuStreamQuery(CUstream handle)
{
	struct tti_cuda_stream *stream;
	const int bad = tti_driver_stream(handle, &stream);

	return tti_driver_result(bad ? bad : tti_cuda_stream_query(stream));
}

CUresult cuStreamSynchronize(CUstream handle)
{
	struct tti_cuda_stream *stream;
	const int bad = tti_driver_stream(handle, &stream);

	return tti_driver_result(bad ? bad : tti_cuda_stream_synchronize(stream));
}

/* -- Functions of the program -------------------------------------------------------------- */

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *user)
{
	const struct tti_cuda_call call = { function, user };
	struct tti_cuda_stream *stream;
	const int bad = tti_driver_stream(handle, &stream);

	return tti_driver_result(bad ? bad : tti_cuda_call_queue(&call, stream));
}

struct callback {
	CUstreamCallback function;
	CUstream handle;
	int device;
	void *user;
};

static int run_callback(void *arg)
{
	const struct callback *callback = arg;
	const int failure = tti_cuda_device_failure(callback->device);

	tti_cuda_host_begin();
	callback->function(callback->handle, tti_driver_result(failure), callback->user);
	tti_cuda_host_end();
	return TTI_CUDA_OK;
}

static int push_callback(const struct callback *model, struct tti_cuda_stream *stream)
{
	struct callback *callback = malloc(sizeof(*callback));

	if (!callback)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "no memory for a callback");
	*callback = *model;
	return tti_cuda_stream_push(stream, &(struct tti_cuda_job){ .run = run_callback,
								    .drop = free,
								    .arg = callback,
								    .kind = TTI_CUDA_NODE_HOST });
}

CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback function, void *user, unsigned flags)
{
	struct tti_cuda_stream *stream;
	int bad = tti_driver_stream(handle, &stream);

	if (!bad && (!function || flags))
		bad = tti_cuda_fail(TTI_CUDA_EINVAL,
				    "cuStreamAddCallback: function %s, flags %u, not 0",
				    function ? "given" : "NULL", flags);
	if (!bad)
		bad = tti_cuda_capture_refuse(stream, TTI_CUDA_ECAPTURE, __func__);
	if (bad)
		return tti_driver_result(bad);
	const struct callback callback = { function, handle, tti_cuda_stream_device(stream), user };

	return tti_driver_result(push_callback(&callback, stream));
}
