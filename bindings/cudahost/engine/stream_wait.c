/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that wait for streams and devices, or ask. */
#include "engine/drain.h"
#include "engine/graph.h"
#include "engine/internal.h"

/* The last of what the stream has. For the legacy stream that is behind all that others have.
 * `forbidden` (may be NULL) is a function that captures of other streams forbid. */
static int last_point(struct tti_cuda_stream *stream, const char *what, const char *forbidden,
		      struct tti_cuda_point *out)
{
	bool is_idle;
	int error = tti_cuda_begin();

	if (!error)
		error = tti_cuda_capture_refuse(stream, TTI_CUDA_ECAPTURE, what);
	if (!error && forbidden)
		error = tti_cuda_capture_forbids(forbidden);
	if (error)
		return error;
	if (tti_cuda_stream_role(stream) == TTI_CUDA_STREAM_LEGACY)
		return tti_cuda_stream_mark(stream, NULL, out, &is_idle);
	*out = tti_cuda_stream_point(stream);
	return 0;
}

static int wait_for(struct tti_cuda_stream *stream, const char *forbidden)
{
	const int device = tti_cuda_stream_device(stream);
	struct tti_cuda_point point;
	int error = tti_cuda_device_may_wait("a stream is synchronised");

	if (!error)
		error = last_point(stream, "the stream is synchronised", forbidden, &point);
	if (error)
		return error;
	error = tti_cuda_point_wait(&point);
	tti_cuda_point_release(&point);
	return error ? error : tti_cuda_device_failure(device);
}

int tti_cuda_stream_synchronize(struct tti_cuda_stream *stream)
{
	return wait_for(stream, "cudaStreamSynchronize()");
}

int tti_cuda_stream_wait(struct tti_cuda_stream *stream)
{
	return wait_for(stream, NULL);
}

int tti_cuda_stream_query(struct tti_cuda_stream *stream)
{
	const int device = tti_cuda_stream_device(stream);
	struct tti_cuda_point point;
	const int error = last_point(stream, "the stream is queried", "cudaStreamQuery()", &point);
	bool is_done;

	if (error)
		return error;
	is_done = tti_cuda_point_is_past(&point);
	tti_cuda_point_release(&point);
	return is_done ? tti_cuda_device_failure(device) : TTI_CUDA_ENOTREADY;
}

int tti_cuda_device_synchronize(int device)
{
	int error = tti_cuda_begin();

	if (!error)
		error = tti_cuda_device_check(device);
	if (!error)
		error = tti_cuda_device_may_wait("a device is synchronised");
	if (!error)
		error = tti_cuda_capture_refuse_device(device, false, TTI_CUDA_ECAPTURE,
						       "the device is synchronised");
	if (!error)
		error = tti_cuda_device_drain(device);
	return error ? error : tti_cuda_device_failure(device);
}
