/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams that write words of memory, and that wait until a word has a value. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "driver/driver.h"
#include "engine/memory.h"

#define OPS_MOST   255 /* as CUDA has it */
#define NSPINS     200
#define NYIELDS    200
#define PAUSE_NS   10000
#define PAUSE_MOST 200000

/* The argument of a job. */
struct ops {
	unsigned n;
	CUstreamBatchMemOpParams op[];
};

/* -- One of them --------------------------------------------------------------------------- */

/* For types of the other width, the value is cut. */
static bool has_come(uint64_t now, uint64_t value, unsigned flags, bool is_wide)
{
	const uint64_t mask = is_wide ? UINT64_MAX : UINT32_MAX;

	switch (flags) {
	case CU_STREAM_WAIT_VALUE_GEQ: /* numbers go round */
		return is_wide ? (int64_t)(now - value) >= 0
			       : (int32_t)(uint32_t)(now - value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return ((now ^ value) & mask) == 0;
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & value & mask) != 0;
	default: /* NOR */
		return (~(now | value) & mask) != 0;
	}
}

static uint64_t load(const void *address, bool is_wide)
{
	return is_wide ? __atomic_load_n((const uint64_t *)address, __ATOMIC_ACQUIRE)
		       : __atomic_load_n((const uint32_t *)address, __ATOMIC_ACQUIRE);
}

/* Longer and longer. */
static void pause_for(unsigned *nwaits)
{
	const unsigned n = ++*nwaits;

	if (n < NSPINS)
		return;
	if (n < NSPINS + NYIELDS) {
		sched_yield();
		return;
	}
	long ns = PAUSE_NS * (long)(n - NSPINS - NYIELDS + 1);

	nanosleep(&(struct timespec){ .tv_nsec = ns < PAUSE_MOST ? ns : PAUSE_MOST }, NULL);
}

static bool is_there(const void *address)
{
	struct tti_cuda_range range;

	return tti_cuda_memory_find(address, &range);
}

static int lost(const void *address)
{
	return tti_cuda_fail(CUDA_ERROR_ILLEGAL_ADDRESS,
			     "a stream writes or awaits a word at %p, which was freed", address);
}

static int await(const CUstreamBatchMemOpParams *op, bool is_wide)
{
	const void *address = tti_driver_address(op->waitValue.address);
	const uint64_t value = is_wide ? op->waitValue.value64 : op->waitValue.value;
	unsigned nwaits = 0;

	for (;;) {
		if (!is_there(address))
			return lost(address);
		if (has_come(load(tti_cuda_memory_reach(address), is_wide), value,
			     op->waitValue.flags, is_wide))
			return TTI_CUDA_OK;
		pause_for(&nwaits);
	}
}

static int store(const CUstreamBatchMemOpParams *op, bool is_wide)
{
	void *address = tti_driver_address(op->writeValue.address);

	if (!is_there(address))
		return lost(address);
	address = tti_cuda_memory_reach(address);
	if (is_wide)
		__atomic_store_n((uint64_t *)address, op->writeValue.value64, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)address, op->writeValue.value, __ATOMIC_RELEASE);
	return TTI_CUDA_OK;
}

static int run_op(const CUstreamBatchMemOpParams *op)
{
	switch ((int)op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return await(op, op->operation == CU_STREAM_MEM_OP_WAIT_VALUE_64);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return store(op, op->operation == CU_STREAM_MEM_OP_WRITE_VALUE_64);
	default: /* CU_STREAM_MEM_OP_BARRIER */
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		return TTI_CUDA_OK;
	}
}

static int run(void *arg)
{
	const struct ops *ops = arg;
	int rc = TTI_CUDA_OK;

	for (unsigned i = 0; !rc && i < ops->n; i++)
		rc = run_op(&ops->op[i]);
	return rc;
}

/* -- Are they good? ------------------------------------------------------------------------ */

static int check_word(CUdeviceptr pointer, size_t nbytes)
{
	const void *address = tti_driver_address(pointer);

	if (pointer % nbytes)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "a word at %p, which is no multiple of %zu",
				     address, nbytes);
	if (is_there(address))
		return tti_cuda_memory_check_copy(address, address, nbytes, 4);
	return tti_cuda_fail(
		TTI_CUDA_EINVAL,
		"a word at %p, which is no memory that CUDA knows; cuMemHostRegister() "
		"makes host memory known",
		address);
}

static int no_flush(void)
{
	return tti_cuda_fail(TTI_CUDA_ENOTSUPPORTED,
			     "writes of other devices are to be flushed: device attribute 98 says "
			     "that this cannot be");
}

static int check_wait(const CUstreamBatchMemOpParams *op, size_t nbytes)
{
	if (op->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
		return no_flush();
	if (op->waitValue.flags > CU_STREAM_WAIT_VALUE_NOR)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "a wait with the flags 0x%x: 0..3",
				     op->waitValue.flags);
	return check_word(op->waitValue.address, nbytes);
}

static int check_write(const CUstreamBatchMemOpParams *op, size_t nbytes)
{
	/* NO_MEMORY_BARRIER is of the first version alone, which needed a setting of the driver. */
	if (op->writeValue.flags)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "a write with the flags 0x%x: 0",
				     op->writeValue.flags);
	return check_word(op->writeValue.address, nbytes);
}

static int check(const CUstreamBatchMemOpParams *op)
{
	switch ((int)op->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		return check_wait(op, 4);
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		return check_wait(op, 8);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		return check_write(op, 4);
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		return check_write(op, 8);
	case CU_STREAM_MEM_OP_BARRIER:
		return TTI_CUDA_OK;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return no_flush();
	default:
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "operation %d on memory: waits 1, 4, writes 2, 5, barrier 6",
				     (int)op->operation);
	}
}

int tti_driver_memory_ops(const CUstreamBatchMemOpParams *op, unsigned n, unsigned flags,
			  struct tti_cuda_job *out)
{
	struct ops *ops;

	if (!op || !n || n > OPS_MOST || flags)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "%u operations on memory, flags %u: 1..%d, and flags 0", n,
				     flags, OPS_MOST);
	for (unsigned i = 0; i < n; i++) {
		const int bad = check(&op[i]);

		if (bad)
			return bad;
	}
	ops = malloc(sizeof(*ops) + n * sizeof(*op));
	if (!ops)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "no memory for %u operations of a stream", n);
	ops->n = n;
	memcpy(ops->op, op, n * sizeof(*op));
	*out = (struct tti_cuda_job){
		.run = run, .drop = free, .arg = ops, .kind = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP
	};
	return TTI_CUDA_OK;
}

const CUstreamBatchMemOpParams *tti_driver_memory_ops_of(const struct tti_cuda_node *node,
							 unsigned *out_n)
{
	const struct ops *ops = tti_cuda_node_arg(node);

	if (tti_cuda_node_kind(node) != CU_GRAPH_NODE_TYPE_BATCH_MEM_OP) {
		*out_n = 0;
		return NULL;
	}
	*out_n = ops->n;
	return ops->op;
}

/* -- The functions ------------------------------------------------------------------------- */

CUresult cuStreamBatchMemOp_v2(CUstream handle, unsigned n, CUstreamBatchMemOpParams *op,
			       unsigned flags)
{
	struct tti_cuda_stream *stream;
	struct tti_cuda_job job;
	int rc = tti_driver_stream(handle, &stream);

	if (rc || !n)
		return tti_driver_result(rc);
	rc = tti_driver_memory_ops(op, n, flags, &job);
	return tti_driver_result(rc ? rc : tti_cuda_stream_push(stream, &job));
}

static CUresult one(CUstream handle, CUstreamBatchMemOpParams op)
{
	return cuStreamBatchMemOp_v2(handle, 1, &op, 0);
}

static CUstreamBatchMemOpParams wait_op(CUstreamBatchMemOpType type, CUdeviceptr address,
					cuuint64_t value, unsigned flags)
{
	return (CUstreamBatchMemOpParams){ .waitValue = { .operation = type,
							  .address = address,
							  .value64 = value,
							  .flags = flags } };
}

static CUstreamBatchMemOpParams write_op(CUstreamBatchMemOpType type, CUdeviceptr address,
					 cuuint64_t value, unsigned flags)
{
	return (CUstreamBatchMemOpParams){ .writeValue = { .operation = type,
							   .address = address,
							   .value64 = value,
							   .flags = flags } };
}

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
				unsigned flags)
{
	return one(stream, wait_op(CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags));
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
				unsigned flags)
{
	return one(stream, wait_op(CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags));
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
				 unsigned flags)
{
	return one(stream, write_op(CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags));
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
				 unsigned flags)
{
	return one(stream, write_op(CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags));
}

/* The first versions, which a setting of the driver had to allow. */

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	return cuStreamWaitValue32_v2(stream, address, value, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags)
{
	return cuStreamWaitValue64_v2(stream, address, value, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
			      unsigned flags)
{
	return cuStreamWriteValue32_v2(stream, address, value, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
			      unsigned flags)
{
	return cuStreamWriteValue64_v2(stream, address, value, flags);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned n, CUstreamBatchMemOpParams *op,
			    unsigned flags)
{
	return cuStreamBatchMemOp_v2(stream, n, op, flags);
}
