/* SPDX-License-Identifier: BSD-3-Clause */
/* Events. */
#include "engine/event.h"

#include <string.h>

#include "driver/driver.h"

static struct tti_cuda_event *event_of(CUevent handle)
{
	return (struct tti_cuda_event *)handle;
}

static int begin(CUevent handle, const char *what)
{
	const int bad = tti_driver_begin();

	if (bad || handle)
		return bad;
	return tti_cuda_fail(TTI_CUDA_EHANDLE, "%s: the event is NULL", what);
}

CUresult cuEventCreate(CUevent *out, unsigned flags)
{
	struct tti_cuda_event *event;
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (bad)
		return tti_driver_result(bad);
	if (flags & ~7u || ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
		return tti_driver_fail(
			TTI_CUDA_EINVAL,
			"cuEventCreate: flags 0x%x of 7; with 4 (other processes), 2 (no "
			"timing) is needed, too",
			flags);
	bad = tti_cuda_event_create(flags, &event);
	if (!bad)
		*out = (CUevent)event;
	return tti_driver_result(bad);
}

CUresult cuEventDestroy_v2(CUevent event)
{
	const int bad = begin(event, __func__);

	return tti_driver_result(bad ? bad : tti_cuda_event_destroy(event_of(event)));
}

CUresult cuEventDestroy(CUevent event)
{
	return cuEventDestroy_v2(event);
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *out, CUevent event)
{
	uint8_t handle[sizeof(out->reserved)];
	int bad = begin(event, __func__);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	if (!bad)
		bad = tti_cuda_event_get_handle(event_of(event), handle);
	if (!bad)
		memcpy(out->reserved, handle, sizeof(handle));
	return tti_driver_result(bad);
}

CUresult cuIpcOpenEventHandle(CUevent *out, CUipcEventHandle handle)
{
	struct tti_cuda_event *event;
	uint8_t bytes[sizeof(handle.reserved)];
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = tti_driver_need(out, __func__);
	memcpy(bytes, handle.reserved, sizeof(bytes));
	if (!bad)
		bad = tti_cuda_event_open_handle(bytes, &event);
	if (!bad)
		*out = (CUevent)event;
	return tti_driver_result(bad);
}

CUresult cuEventQuery(CUevent event)
{
	const int bad = tti_driver_begin_in_host();

	return tti_driver_result(bad ? bad : tti_cuda_event_query(event_of(event)));
}

CUresult cuEventSynchronize(CUevent event)
{
	const int bad = begin(event, __func__);

	return tti_driver_result(bad ? bad : tti_cuda_event_synchronize(event_of(event)));
}

CUresult cuEventElapsedTime_v2(float *out_ms, CUevent from, CUevent to)
{
	int bad = begin(from, __func__);

	if (!bad)
		bad = begin(to, __func__);
	if (!bad)
		bad = tti_driver_need(out_ms, __func__);
	return tti_driver_result(
		bad ? bad : tti_cuda_event_elapsed(event_of(from), event_of(to), out_ms));
}

CUresult cuEventElapsedTime(float *out_ms, CUevent from, CUevent to)
{
	return cuEventElapsedTime_v2(out_ms, from, to);
}

/* With "external", an event of a capture is a node of the graph: others wait for it when the graph
 * runs, and not the nodes behind it. */
typedef int job_maker(struct tti_cuda_event *event, struct tti_cuda_job *out);

static int push_external(CUevent event, struct tti_cuda_stream *stream, job_maker *make,
			 const char *what)
{
	struct tti_cuda_job job;
	int rc;

	if (!tti_cuda_stream_capture(stream))
		return tti_cuda_fail(TTI_CUDA_ESTATE,
				     "%s: flag 1 (external) is for streams that are captured",
				     what);
	rc = make(event_of(event), &job);
	return rc ? rc : tti_cuda_stream_push(stream, &job);
}

static int check_flags(unsigned flags, const char *what)
{
	if (flags <= 1)
		return TTI_CUDA_OK;
	return tti_cuda_fail(TTI_CUDA_EINVAL, "%s: flags %u: 0, or 1 (external)", what, flags);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream handle, unsigned flags)
{
	struct tti_cuda_stream *stream;
	int bad = begin(event, __func__);

	if (!bad)
		bad = check_flags(flags, __func__);
	if (!bad)
		bad = tti_driver_stream(handle, &stream);
	if (bad)
		return tti_driver_result(bad);
	if (flags)
		return tti_driver_result(
			push_external(event, stream, tti_cuda_event_record_job, __func__));
	return tti_driver_result(tti_cuda_event_record(event_of(event), stream));
}

CUresult cuEventRecord(CUevent event, CUstream handle)
{
	return cuEventRecordWithFlags(event, handle, 0);
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event, unsigned flags)
{
	struct tti_cuda_stream *stream;
	int bad = begin(event, __func__);

	if (!bad)
		bad = check_flags(flags, __func__);
	if (!bad)
		bad = tti_driver_stream(handle, &stream);
	if (bad)
		return tti_driver_result(bad);
	if (flags)
		return tti_driver_result(
			push_external(event, stream, tti_cuda_event_await_job, __func__));
	return tti_driver_result(tti_cuda_event_await(event_of(event), stream));
}
