/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions whose default stream is the calling thread's own: each is the plain function with
 * that stream. Those of copies and fills are where these are. */
#include "driver/driver.h"

#define mine tti_driver_per_thread(stream)

#define PER_THREAD(name, params, args) \
	CUresult name##_ptsz params    \
	{                              \
		return name args;      \
	}

PER_THREAD(cuEventRecordWithFlags, (CUevent a, CUstream stream, unsigned b), (a, mine, b))
PER_THREAD(cuEventRecord, (CUevent a, CUstream stream), (a, mine))
PER_THREAD(cuGraphInstantiateWithParams,
	   (CUgraphExec * a, CUgraph b, CUDA_GRAPH_INSTANTIATE_PARAMS *c), (a, b, c))
PER_THREAD(cuGraphLaunch, (CUgraphExec a, CUstream stream), (a, mine))
PER_THREAD(cuGraphUpload, (CUgraphExec a, CUstream stream), (a, mine))
PER_THREAD(cuLaunchCooperativeKernel,
	   (CUfunction a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g,
	    unsigned h, CUstream stream, void **i),
	   (a, b, c, d, e, f, g, h, mine, i))
PER_THREAD(cuLaunchHostFunc, (CUstream stream, CUhostFn a, void *b), (mine, a, b))
PER_THREAD(cuLaunchKernel,
	   (CUfunction a, unsigned b, unsigned c, unsigned d, unsigned e, unsigned f, unsigned g,
	    unsigned h, CUstream stream, void **i, void **j),
	   (a, b, c, d, e, f, g, h, mine, i, j))
PER_THREAD(cuMemAllocAsync, (CUdeviceptr * a, size_t b, CUstream stream), (a, b, mine))
PER_THREAD(cuMemAllocFromPoolAsync, (CUdeviceptr * a, size_t b, CUmemoryPool c, CUstream stream),
	   (a, b, c, mine))
PER_THREAD(cuMemFreeAsync, (CUdeviceptr a, CUstream stream), (a, mine))
PER_THREAD(cuMemPrefetchAsync, (CUdeviceptr a, size_t b, CUdevice c, CUstream stream),
	   (a, b, c, mine))
PER_THREAD(cuMemPrefetchAsync_v2,
	   (CUdeviceptr a, size_t b, CUmemLocation c, unsigned d, CUstream stream),
	   (a, b, c, d, mine))
PER_THREAD(cuMemcpy2DAsync_v2, (const CUDA_MEMCPY2D *a, CUstream stream), (a, mine))
PER_THREAD(cuMemcpy3DAsync_v2, (const CUDA_MEMCPY3D *a, CUstream stream), (a, mine))
PER_THREAD(cuMemcpy3DPeerAsync, (const CUDA_MEMCPY3D_PEER *a, CUstream stream), (a, mine))
PER_THREAD(cuMemcpyBatchAsync,
	   (CUdeviceptr * a, CUdeviceptr *b, size_t *c, size_t d, CUmemcpyAttributes *e, size_t *f,
	    size_t g, size_t *h, CUstream stream),
	   (a, b, c, d, e, f, g, h, mine))
PER_THREAD(cuMemcpyBatchAsync_v2,
	   (CUdeviceptr * a, CUdeviceptr *b, size_t *c, size_t d, CUmemcpyAttributes *e, size_t *f,
	    size_t g, CUstream stream),
	   (a, b, c, d, e, f, g, mine))
PER_THREAD(cuMemcpyPeerAsync,
	   (CUdeviceptr a, CUcontext b, CUdeviceptr c, CUcontext d, size_t e, CUstream stream),
	   (a, b, c, d, e, mine))
PER_THREAD(cuStreamAddCallback, (CUstream stream, CUstreamCallback a, void *b, unsigned c),
	   (mine, a, b, c))
PER_THREAD(cuStreamAttachMemAsync, (CUstream stream, CUdeviceptr a, size_t b, unsigned c),
	   (mine, a, b, c))
PER_THREAD(cuStreamBatchMemOp,
	   (CUstream stream, unsigned a, CUstreamBatchMemOpParams *b, unsigned c), (mine, a, b, c))
PER_THREAD(cuStreamBatchMemOp_v2,
	   (CUstream stream, unsigned a, CUstreamBatchMemOpParams *b, unsigned c), (mine, a, b, c))
PER_THREAD(cuStreamBeginCaptureToGraph,
	   (CUstream stream, CUgraph a, const CUgraphNode *b, const CUgraphEdgeData *c, size_t d,
	    CUstreamCaptureMode e),
	   (mine, a, b, c, d, e))
PER_THREAD(cuStreamBeginCapture, (CUstream stream), (mine))
PER_THREAD(cuStreamBeginCapture_v2, (CUstream stream, CUstreamCaptureMode a), (mine, a))
PER_THREAD(cuStreamEndCapture, (CUstream stream, CUgraph *a), (mine, a))
PER_THREAD(cuStreamGetCaptureInfo, (CUstream stream, CUstreamCaptureStatus *a, cuuint64_t *b),
	   (mine, a, b))
PER_THREAD(cuStreamGetCaptureInfo_v2,
	   (CUstream stream, CUstreamCaptureStatus *a, cuuint64_t *b, CUgraph *c,
	    const CUgraphNode **d, size_t *e),
	   (mine, a, b, c, d, e))
PER_THREAD(cuStreamGetCaptureInfo_v3,
	   (CUstream stream, CUstreamCaptureStatus *a, cuuint64_t *b, CUgraph *c,
	    const CUgraphNode **d, const CUgraphEdgeData **e, size_t *f),
	   (mine, a, b, c, d, e, f))
PER_THREAD(cuStreamGetCtx, (CUstream stream, CUcontext *a), (mine, a))
PER_THREAD(cuStreamGetCtx_v2, (CUstream stream, CUcontext *a, CUgreenCtx *b), (mine, a, b))
PER_THREAD(cuStreamGetDevice, (CUstream stream, CUdevice *a), (mine, a))
PER_THREAD(cuStreamGetFlags, (CUstream stream, unsigned *a), (mine, a))
PER_THREAD(cuStreamGetId, (CUstream stream, unsigned long long *a), (mine, a))
PER_THREAD(cuStreamGetPriority, (CUstream stream, int *a), (mine, a))
PER_THREAD(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *a), (mine, a))
PER_THREAD(cuStreamQuery, (CUstream stream), (mine))
PER_THREAD(cuStreamSynchronize, (CUstream stream), (mine))
PER_THREAD(cuStreamUpdateCaptureDependencies,
	   (CUstream stream, CUgraphNode *a, size_t b, unsigned c), (mine, a, b, c))
PER_THREAD(cuStreamUpdateCaptureDependencies_v2,
	   (CUstream stream, CUgraphNode *a, const CUgraphEdgeData *b, size_t c, unsigned d),
	   (mine, a, b, c, d))
PER_THREAD(cuStreamWaitEvent, (CUstream stream, CUevent a, unsigned b), (mine, a, b))
PER_THREAD(cuStreamWaitValue32, (CUstream stream, CUdeviceptr a, cuuint32_t b, unsigned c),
	   (mine, a, b, c))
PER_THREAD(cuStreamWaitValue32_v2, (CUstream stream, CUdeviceptr a, cuuint32_t b, unsigned c),
	   (mine, a, b, c))
PER_THREAD(cuStreamWaitValue64, (CUstream stream, CUdeviceptr a, cuuint64_t b, unsigned c),
	   (mine, a, b, c))
PER_THREAD(cuStreamWaitValue64_v2, (CUstream stream, CUdeviceptr a, cuuint64_t b, unsigned c),
	   (mine, a, b, c))
PER_THREAD(cuStreamWriteValue32, (CUstream stream, CUdeviceptr a, cuuint32_t b, unsigned c),
	   (mine, a, b, c))
PER_THREAD(cuStreamWriteValue32_v2, (CUstream stream, CUdeviceptr a, cuuint32_t b, unsigned c),
	   (mine, a, b, c))
PER_THREAD(cuStreamWriteValue64, (CUstream stream, CUdeviceptr a, cuuint64_t b, unsigned c),
	   (mine, a, b, c))
PER_THREAD(cuStreamWriteValue64_v2, (CUstream stream, CUdeviceptr a, cuuint64_t b, unsigned c),
	   (mine, a, b, c))
