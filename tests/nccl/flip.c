/* SPDX-License-Identifier: BSD-3-Clause */
/* A library to preload: the first byte that a call receives is changed behind the call, where guarded
 * memory is reached, or, with AS_HOST, where its address says, as no host may. It takes the functions of
 * NCCL by their first names, as profilers do. What checks results has to find that, or it finds nothing
 * (scripts/nccl_tests). */
#include <stddef.h>
#include <stdint.h>

#include "cudahost/engine/host_abi.h"
#include "nccl/nccl_device.h"

#define MOST 4096

extern int cudaLaunchHostFunc(cudaStream_t stream, void (*fn)(void *), void *arg);

#define FUNCTION(name, since, kind, text) extern __typeof__(name) p##name;
#define UNPROFILED(name, since, kind, text)
#include "nccl/functions.def"
#undef FUNCTION
#undef UNPROFILED

/* Of the group of this thread. */
static _Thread_local struct {
	int depth, n;
	struct {
		void *at;
		cudaStream_t stream;
	} calls[MOST];
} group;

static void change(void *byte)
{
#ifndef AS_HOST
	byte = tti_cuda_reach((uintptr_t)byte);
#endif
	*(unsigned char *)byte ^= 0x10;
}

static void change_later(void)
{
	for (int i = 0; i < group.n; i++)
		(void)cudaLaunchHostFunc(group.calls[i].stream, change, group.calls[i].at);
	group.n = 0;
}

static ncclResult_t received(ncclResult_t result, void *at, size_t count, cudaStream_t stream)
{
	if (result == ncclSuccess && at && count > 0 && group.n < MOST) {
		group.calls[group.n].at = at;
		group.calls[group.n++].stream = stream;
	}
	if (group.depth == 0)
		change_later();
	return result;
}

ncclResult_t ncclGroupStart(void)
{
	group.depth++;
	return pncclGroupStart();
}

ncclResult_t ncclGroupEnd(void)
{
	const ncclResult_t result = pncclGroupEnd();

	if (--group.depth == 0)
		change_later();
	return result;
}

ncclResult_t ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
			   ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return received(pncclAllReduce(send, recv, count, type, op, comm, stream), recv, count,
			stream);
}

ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count, ncclDataType_t type,
			   int root, ncclComm_t comm, cudaStream_t stream)
{
	return received(pncclBroadcast(send, recv, count, type, root, comm, stream), recv, count,
			stream);
}

ncclResult_t ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t type,
			ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream)
{
	return received(pncclReduce(send, recv, count, type, op, root, comm, stream), recv, count,
			stream);
}

ncclResult_t ncclAllGather(const void *send, void *recv, size_t count, ncclDataType_t type,
			   ncclComm_t comm, cudaStream_t stream)
{
	return received(pncclAllGather(send, recv, count, type, comm, stream), recv, count, stream);
}

ncclResult_t ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t type,
			       ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream)
{
	return received(pncclReduceScatter(send, recv, count, type, op, comm, stream), recv, count,
			stream);
}

ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
		      cudaStream_t stream)
{
	return received(pncclRecv(recv, count, type, peer, comm, stream), recv, count, stream);
}
