/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of one row. All memory has one address space, so that a copy knows by its addresses what
 * it copies; where its name says more (host to device), the engine checks that. */
#include "driver/driver.h"

/* The numbers of cudaMemcpyKind. */
enum { HOST_TO_DEVICE = 1, DEVICE_TO_HOST = 2, DEVICE_TO_DEVICE = 3, BY_ADDRESS = 4 };

static struct tti_cuda_copy row(CUdeviceptr to, CUdeviceptr from, size_t nbytes, int kind)
{
	return tti_cuda_copy_of(tti_driver_address(to), tti_driver_address(from), nbytes, kind);
}

static CUresult now(const struct tti_cuda_copy copy, CUstream stream)
{
	struct tti_cuda_stream *in;
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = tti_driver_stream(stream, &in);
	return tti_driver_result(bad ? bad : tti_cuda_copy_wait(&copy, in));
}

static CUresult later(const struct tti_cuda_copy copy, CUstream stream)
{
	struct tti_cuda_stream *in;
	const int bad = tti_driver_stream(stream, &in);

	return tti_driver_result(bad ? bad : tti_cuda_copy_queue(&copy, in));
}

/* A function and the one whose default stream is the thread's. */
#define NOW(name, params, copy)                         \
	CUresult name params                            \
	{                                               \
		return now(copy, CU_STREAM_LEGACY);     \
	}                                               \
	CUresult name##_ptds params                     \
	{                                               \
		return now(copy, CU_STREAM_PER_THREAD); \
	}
#define LATER(name, params, copy)                                  \
	CUresult name params                                       \
	{                                                          \
		return later(copy, stream);                        \
	}                                                          \
	CUresult name##_ptsz params                                \
	{                                                          \
		return later(copy, tti_driver_per_thread(stream)); \
	}

NOW(cuMemcpy, (CUdeviceptr to, CUdeviceptr from, size_t nbytes), row(to, from, nbytes, BY_ADDRESS))
NOW(cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t nbytes),
    row(to, tti_driver_pointer(from), nbytes, HOST_TO_DEVICE))
NOW(cuMemcpyDtoH_v2, (void *to, CUdeviceptr from, size_t nbytes),
    row(tti_driver_pointer(to), from, nbytes, DEVICE_TO_HOST))
NOW(cuMemcpyDtoD_v2, (CUdeviceptr to, CUdeviceptr from, size_t nbytes),
    row(to, from, nbytes, DEVICE_TO_DEVICE))
LATER(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t nbytes, CUstream stream),
      row(to, from, nbytes, BY_ADDRESS))
LATER(cuMemcpyHtoDAsync_v2, (CUdeviceptr to, const void *from, size_t nbytes, CUstream stream),
      row(to, tti_driver_pointer(from), nbytes, HOST_TO_DEVICE))
LATER(cuMemcpyDtoHAsync_v2, (void *to, CUdeviceptr from, size_t nbytes, CUstream stream),
      row(tti_driver_pointer(to), from, nbytes, DEVICE_TO_HOST))
LATER(cuMemcpyDtoDAsync_v2, (CUdeviceptr to, CUdeviceptr from, size_t nbytes, CUstream stream),
      row(to, from, nbytes, DEVICE_TO_DEVICE))

/* -- From one context to another ----------------------------------------------------------- */

static int check_contexts(CUcontext to, CUcontext from)
{
	int device;
	const int bad = tti_driver_device_of(to, &device);

	return bad ? bad : tti_driver_device_of(from, &device);
}

static CUresult peer_now(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
			 CUcontext from_context, size_t nbytes, CUstream stream)
{
	int bad = tti_driver_begin_context(NULL);

	if (!bad)
		bad = check_contexts(to_context, from_context);
	if (bad)
		return tti_driver_result(bad);
	return now(row(to, from, nbytes, DEVICE_TO_DEVICE), stream);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
		      CUcontext from_context, size_t nbytes)
{
	return peer_now(to, to_context, from, from_context, nbytes, CU_STREAM_LEGACY);
}

CUresult cuMemcpyPeer_ptds(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
			   CUcontext from_context, size_t nbytes)
{
	return peer_now(to, to_context, from, from_context, nbytes, CU_STREAM_PER_THREAD);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
			   CUcontext from_context, size_t nbytes, CUstream stream)
{
	struct tti_cuda_stream *in;
	int bad = tti_driver_begin();

	if (!bad)
		bad = check_contexts(to_context, from_context);
	if (!bad)
		bad = tti_driver_stream(stream, &in);
	if (!bad)
		bad = tti_cuda_capture_refuse(in, TTI_CUDA_ECAPTURE, __func__);
	return bad ? tti_driver_result(bad)
		   : later(row(to, from, nbytes, DEVICE_TO_DEVICE), stream);
}

/* -- Many at once -------------------------------------------------------------------------- */

/* The attributes of copies[i] are attributes[k], with starts[k] <= i < starts[k + 1]. */
struct batch {
	const CUdeviceptr *to, *from;
	const size_t *nbytes;
	size_t n;
	const CUmemcpyAttributes *attributes;
	const size_t *starts;
	size_t nattributes;
};

/* *fail_at is the copy that fails. */
static int batch(const struct batch *batch, CUstream stream, size_t *fail_at)
{
	struct tti_cuda_stream *in;
	bool waits = false;
	int rc = tti_driver_stream(stream, &in);

	*fail_at = SIZE_MAX;
	if (!rc && (!batch->to || !batch->from || !batch->nbytes || !batch->attributes))
		rc = tti_cuda_fail(TTI_CUDA_EINVAL,
				   "cuMemcpyBatchAsync: a list of addresses or attributes is NULL");
	if (!rc)
		rc = tti_cuda_batch_check("cuMemcpyBatchAsync", batch->n, batch->starts,
					  batch->nattributes, in);
	for (size_t i = 0, k = 0; !rc && i < batch->n; i++) {
		const struct tti_cuda_copy copy =
			row(batch->to[i], batch->from[i], batch->nbytes[i], BY_ADDRESS);

		k += k + 1 < batch->nattributes && batch->starts[k + 1] == i;
		waits |= batch->attributes[k].srcAccessOrder ==
			 CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
		rc = tti_cuda_copy_queue(&copy, in);
		*fail_at = rc ? i : SIZE_MAX;
	}
	return rc || !waits ? rc : tti_cuda_stream_synchronize(in);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *nbytes, size_t n,
			       CUmemcpyAttributes *attributes, size_t *starts, size_t nattributes,
			       CUstream stream)
{
	const struct batch all = { to, from, nbytes, n, attributes, starts, nattributes };
	size_t fail_at;

	return tti_driver_result(batch(&all, stream, &fail_at));
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *nbytes, size_t n,
			    CUmemcpyAttributes *attributes, size_t *starts, size_t nattributes,
			    size_t *out_fail_at, CUstream stream)
{
	const struct batch all = { to, from, nbytes, n, attributes, starts, nattributes };
	size_t fail_at;
	const int rc = batch(&all, stream, &fail_at);

	if (out_fail_at)
		*out_fail_at = fail_at;
	return tti_driver_result(rc);
}
