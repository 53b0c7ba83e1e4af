/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators that have GPUs, those of the driver on host memory: calls are Tutti's kernels on the
 * program's streams, in memory that nothing else can touch. TUTTI_NCCL_KERNELS=1, TUTTI_CUDAHOST_GUARD=1. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "nccl/ranks.h"
#include "support/sanitizer.h"

#define RANKS    4
#define LAUNCHES 100
#define MOST     70000 /* elements of a rank */

typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

extern int cudaSetDevice(int device);
extern int cudaGetDevice(int *device);
extern int cudaMalloc(void **out, size_t nbytes);
extern int cudaFree(void *memory);
extern int cudaMallocHost(void **out, size_t nbytes);
extern int cudaFreeHost(void *memory);
extern int cudaMemcpyAsync(void *to, const void *from, size_t nbytes, int kind,
			   cudaStream_t stream);
extern int cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
extern int cudaStreamDestroy(cudaStream_t stream);
extern int cudaStreamSynchronize(cudaStream_t stream);
extern int cudaStreamBeginCapture(cudaStream_t stream, int mode);
extern int cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
extern int cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
extern int cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
extern int cudaGraphDestroy(cudaGraph_t graph);
extern int cudaGraphExecDestroy(cudaGraphExec_t graph);

#define NON_BLOCKING  1
#define BY_ADDRESS    4
#define THREAD_LOCAL  1
#define CHECK_CU(...) CHECK((__VA_ARGS__) == 0)

/* A rank on its own device, with buffers of MOST floats for each rank. */
struct at {
	ncclComm_t comm;
	int rank, n;
	cudaStream_t stream;
	float *send, *recv; /* of the device */
	float *host;        /* pinned */
};

static void take_own_device(int rank)
{
	CHECK_CU(cudaSetDevice(rank));
}

/* On the device that is current. */
static struct at begin(ncclComm_t comm, int rank, int n)
{
	const size_t nbytes = (size_t)n * MOST * sizeof(float);
	struct at at = { .comm = comm, .rank = rank, .n = n };
	void *memory;

	CHECK_CU(cudaStreamCreateWithFlags(&at.stream, NON_BLOCKING));
	CHECK_CU(cudaMalloc(&memory, nbytes));
	at.send = memory;
	CHECK_CU(cudaMalloc(&memory, nbytes));
	at.recv = memory;
	CHECK_CU(cudaMallocHost(&memory, nbytes));
	at.host = memory;
	return at;
}

static void end(const struct at *at)
{
	CHECK_CU(cudaStreamSynchronize(at->stream));
	CHECK_CU(cudaFree(at->send));
	CHECK_CU(cudaFree(at->recv));
	CHECK_CU(cudaFreeHost(at->host));
	CHECK_CU(cudaStreamDestroy(at->stream));
}

/* Element i of a rank. */
static float value(int rank, size_t i)
{
	return (float)(i % 13) + (float)rank * 2;
}

static float sum(int n, size_t i)
{
	return (float)n * (float)(i % 13) + (float)(n * (n - 1));
}

static void put(const struct at *at, float *to, size_t count)
{
	CHECK_CU(cudaStreamSynchronize(at->stream));
	for (size_t i = 0; i < count; i++)
		at->host[i] = value(at->rank, i);
	CHECK_CU(cudaMemcpyAsync(to, at->host, count * sizeof(float), BY_ADDRESS, at->stream));
}

static void get(const struct at *at, const float *from, size_t count)
{
	CHECK_CU(cudaMemcpyAsync(at->host, from, count * sizeof(float), BY_ADDRESS, at->stream));
	CHECK_CU(cudaStreamSynchronize(at->stream));
}

/* -- All collectives ------------------------------------------------------------------------- */

static void check_sums(const struct at *at, const float *from, size_t count, size_t first)
{
	get(at, from, count);
	for (size_t i = 0; i < count; i++)
		if (!CHECK(at->host[i] == sum(at->n, first + i)))
			return;
}

/* Row r of the result is the row of rank r, from `first` on. */
static void check_rows(const struct at *at, const float *from, size_t count, size_t first)
{
	get(at, from, (size_t)at->n * count);
	for (int row = 0; row < at->n; row++)
		for (size_t i = 0; i < count; i++)
			if (!CHECK(at->host[(size_t)row * count + i] == value(row, first + i)))
				return;
}

static void check_values(const struct at *at, const float *from, size_t count, int of, size_t first)
{
	get(at, from, count);
	for (size_t i = 0; i < count; i++)
		if (!CHECK(at->host[i] == value(of, first + i)))
			return;
}

static void reductions(const struct at *at, size_t count)
{
	const size_t own = (size_t)at->rank * count;

	put(at, at->send, count);
	CHECK_OK(ncclAllReduce(at->send, at->recv, count, ncclFloat32, ncclSum, at->comm,
			       at->stream));
	check_sums(at, at->recv, count, 0);
	put(at, at->send, count);
	CHECK_OK(ncclAllReduce(at->send, at->send, count, ncclFloat32, ncclSum, at->comm,
			       at->stream));
	check_sums(at, at->send, count, 0);
	put(at, at->send, count);
	CHECK_OK(ncclReduce(at->send, at->recv, count, ncclFloat32, ncclSum, 1, at->comm,
			    at->stream));
	if (at->rank == 1)
		check_sums(at, at->recv, count, 0);
	put(at, at->send, (size_t)at->n * count);
	CHECK_OK(ncclReduceScatter(at->send, at->recv, count, ncclFloat32, ncclSum, at->comm,
				   at->stream));
	check_sums(at, at->recv, count, own);
}

static void moves(const struct at *at, size_t count)
{
	const size_t own = (size_t)at->rank * count;
	const int next = (at->rank + 1) % at->n, previous = (at->rank + at->n - 1) % at->n;

	put(at, at->send, count);
	CHECK_OK(ncclBroadcast(at->send, at->recv, count, ncclFloat32, 2, at->comm, at->stream));
	check_values(at, at->recv, count, 2, 0);
	put(at, at->send, count);
	CHECK_OK(ncclAllGather(at->send, at->recv, count, ncclFloat32, at->comm, at->stream));
	check_rows(at, at->recv, count, 0);
	put(at, at->send, (size_t)at->n * count);
	CHECK_OK(ncclAlltoAll(at->send, at->recv, count, ncclFloat32, at->comm, at->stream));
	check_rows(at, at->recv, count, own);
	put(at, at->send, (size_t)at->n * count);
	CHECK_OK(ncclScatter(at->send, at->recv, count, ncclFloat32, 3, at->comm, at->stream));
	check_values(at, at->recv, count, 3, own);
	put(at, at->send, count);
	CHECK_OK(ncclGather(at->send, at->recv, count, ncclFloat32, 0, at->comm, at->stream));
	if (at->rank == 0)
		check_rows(at, at->recv, count, 0);
	put(at, at->send, count);
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclSend(at->send, count, ncclFloat32, next, at->comm, at->stream));
	CHECK_OK(ncclRecv(at->recv, count, ncclFloat32, previous, at->comm, at->stream));
	CHECK_OK(ncclGroupEnd());
	check_values(at, at->recv, count, previous, 0);
}

static void all_of_a_rank(ncclComm_t comm, int rank, int n, void *arg)
{
	const struct at at = begin(comm, rank, n);
	uint64_t nbytes = 0;
	int device = -1;

	CHECK_OK(ncclCommCuDevice(comm, &device));
	CHECK(device == (arg ? 0 : rank));
	for (size_t count = 1; count <= (SANITIZED ? 1000 : MOST); count = count * 10 + 3) {
		reductions(&at, count);
		moves(&at, count);
	}
	CHECK_OK(ncclCommMemStats(comm, ncclStatGpuMemTotal, &nbytes));
	CHECK(nbytes > 0);
	end(&at);
}

static void collectives(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(RANKS, all_of_a_rank, NULL), 0);
}

/* Four ranks of one device. */
static void ranks_that_share(void **state)
{
	ranks_prepare(NULL);
	assert_int_equal(ranks_run(RANKS, all_of_a_rank, &state), 0);
	ranks_prepare(take_own_device);
}

/* -- Memory ------------------------------------------------------------------------------------ */

static void memory_of_a_rank(ncclComm_t comm, int rank, int n, void *arg)
{
	const struct at at = begin(comm, rank, n);
	const size_t nbytes = MOST * sizeof(float);
	void *memory[2] = { NULL, NULL }, *handle = NULL;
	ncclWindow_t windows[2] = { NULL, NULL };
	float *pageable = malloc(nbytes);

	(void)arg;
	for (int i = 0; i < 2; i++) {
		CHECK_OK(ncclMemAlloc(&memory[i], nbytes));
		CHECK_OK(ncclCommWindowRegister(comm, memory[i], nbytes, &windows[i],
						NCCL_WIN_COLL_SYMMETRIC));
	}
	CHECK_OK(ncclCommRegister(comm, at.send, nbytes, &handle));
	for (size_t count = 3; count <= MOST; count = count * 20 + 7) {
		put(&at, memory[0], count);
		CHECK_OK(ncclAllReduce(memory[0], memory[1], count, ncclFloat32, ncclSum, comm,
				       at.stream));
		check_sums(&at, memory[1], count, 0);
		/* Registered here, pinned there. */
		put(&at, at.send, count);
		CHECK_OK(ncclAllReduce(at.send, rank ? memory[1] : at.host, count, ncclFloat32,
				       ncclSum, comm, at.stream));
		check_sums(&at, rank ? memory[1] : at.host, count, 0);
	}
	/* All ranks are refused alike. */
	CHECK_REFUSED(ncclAllReduce(pageable, at.recv, 8, ncclFloat32, ncclSum, comm, at.stream),
		      ncclInvalidArgument);
	CHECK(strstr(ncclGetLastError(comm), "cudaMalloc"));
	CHECK_OK(ncclCommDeregister(comm, handle));
	for (int i = 0; i < 2; i++) {
		CHECK_OK(ncclCommWindowDeregister(comm, windows[i]));
		CHECK_OK(ncclMemFree(memory[i]));
	}
	free(pageable);
	end(&at);
}

static void memory(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(RANKS, memory_of_a_rank, NULL), 0);
}

/* -- Puts and signals ---------------------------------------------------------------------------- */

/* Into the window of the next rank, behind what the stream does before, and before what it does next. */
static void puts_of_a_rank(ncclComm_t comm, int rank, int n, void *arg)
{
	const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
	const struct at at = begin(comm, rank, n);
	ncclWaitSignalDesc_t signal = { .opCnt = 1, .peer = previous };
	ncclWindow_t window;

	(void)arg;
	CHECK_OK(ncclCommWindowRegister(comm, at.recv, MOST * sizeof(float), &window, 0));
	for (size_t count = 1; count <= MOST; count *= 41) {
		put(&at, at.send, count);
		CHECK_OK(ncclPutSignal(at.send, count, ncclFloat32, next, window, 0, 0, 0, 0, comm,
				       at.stream));
		CHECK_OK(ncclWaitSignal(1, &signal, comm, at.stream));
		get(&at, at.recv, count);
		for (size_t k = 0; k < count; k++)
			CHECK(at.host[k] == value(previous, k));
		/* The next rank puts again once this one has looked. */
		signal.peer = next;
		CHECK_OK(ncclSignal(previous, 0, 0, 0, comm, at.stream));
		CHECK_OK(ncclWaitSignal(1, &signal, comm, at.stream));
		signal.peer = previous;
	}
	CHECK_OK(ncclCommWindowDeregister(comm, window));
	end(&at);
}

static void puts_and_signals(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(RANKS, puts_of_a_rank, NULL), 0);
}

/* -- Graphs and scalars -------------------------------------------------------------------------- */

static void graph_of_a_rank(ncclComm_t comm, int rank, int n, void *arg)
{
	const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
	const struct at at = begin(comm, rank, n);
	cudaGraphExec_t exec;
	cudaGraph_t graph;

	(void)arg;
	CHECK_CU(cudaStreamBeginCapture(at.stream, THREAD_LOCAL));
	CHECK_OK(ncclAllReduce(at.send, at.recv, 500, ncclFloat32, ncclSum, comm, at.stream));
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclSend(at.recv, 500, ncclFloat32, next, comm, at.stream));
	CHECK_OK(ncclRecv(at.recv + MOST, 500, ncclFloat32, previous, comm, at.stream));
	CHECK_OK(ncclGroupEnd());
	CHECK_CU(cudaStreamEndCapture(at.stream, &graph));
	CHECK_CU(cudaGraphInstantiate(&exec, graph, 0));
	CHECK_CU(cudaGraphDestroy(graph));
	for (int i = 0; i < (SANITIZED ? LAUNCHES / 10 : LAUNCHES); i++) {
		CHECK_CU(cudaStreamSynchronize(at.stream));
		for (int k = 0; k < 500; k++)
			at.host[k] = (float)(i + k + rank);
		CHECK_CU(cudaMemcpyAsync(at.send, at.host, 500 * sizeof(float), BY_ADDRESS,
					 at.stream));
		CHECK_CU(cudaGraphLaunch(exec, at.stream));
		get(&at, at.recv + MOST, 500);
		for (int k = 0; k < 500; k++)
			CHECK(at.host[k] == (float)(n * (i + k) + n * (n - 1) / 2));
	}
	/* Without the graph again. */
	put(&at, at.send, 100);
	CHECK_OK(ncclAllReduce(at.send, at.recv, 100, ncclFloat32, ncclSum, comm, at.stream));
	check_sums(&at, at.recv, 100, 0);
	CHECK_CU(cudaGraphExecDestroy(exec));
	end(&at);
}

static void scalar_of_a_rank(ncclComm_t comm, int rank, int n, void *arg)
{
	const struct at at = begin(comm, rank, n);
	float *scalar = at.recv + MOST;
	cudaGraphExec_t exec;
	cudaGraph_t graph;
	ncclRedOp_t op;

	(void)arg;
	CHECK_OK(ncclRedOpCreatePreMulSum(&op, scalar, ncclFloat32, ncclScalarDevice, comm));
	for (int i = 1; i < 4; i++) {
		CHECK_CU(cudaStreamSynchronize(at.stream));
		at.host[0] = (float)i;
		CHECK_CU(cudaMemcpyAsync(scalar, at.host, sizeof(float), BY_ADDRESS, at.stream));
		put(&at, at.send, 40);
		/* What comes after the call does not change its scalar. */
		CHECK_OK(ncclAllReduce(at.send, at.recv, 40, ncclFloat32, op, comm, at.stream));
		CHECK_CU(cudaMemcpyAsync(scalar, at.send, sizeof(float), BY_ADDRESS, at.stream));
		get(&at, at.recv, 40);
		for (size_t k = 0; k < 40; k++)
			CHECK(at.host[k] == (float)i * sum(n, k));
	}
	CHECK_CU(cudaStreamBeginCapture(at.stream, THREAD_LOCAL));
	CHECK_OK(ncclAllReduce(at.send, at.recv, 40, ncclFloat32, op, comm, at.stream));
	CHECK_CU(cudaStreamEndCapture(at.stream, &graph));
	CHECK_CU(cudaGraphInstantiate(&exec, graph, 0));
	CHECK_CU(cudaGraphDestroy(graph));
	CHECK_OK(ncclRedOpDestroy(op, comm));
	for (int i = 4; i < 7; i++) {
		at.host[0] = (float)i;
		CHECK_CU(cudaMemcpyAsync(scalar, at.host, sizeof(float), BY_ADDRESS, at.stream));
		CHECK_CU(cudaGraphLaunch(exec, at.stream));
		get(&at, at.recv, 40);
		for (size_t k = 0; k < 40; k++)
			CHECK(at.host[k] == (float)i * sum(n, k));
	}
	CHECK_CU(cudaGraphExecDestroy(exec));
	end(&at);
}

static void graphs(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(RANKS, graph_of_a_rank, NULL), 0);
}

static void scalars(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(RANKS, scalar_of_a_rank, NULL), 0);
}

/* -- One thread with all ranks ------------------------------------------------------------------- */

/* Two ranks of each device, and a call of all of them in a group. */
static void one_thread_has_all_ranks(void **state)
{
	static const int devices[] = { 0, 0, 1, 1 };
	ncclComm_t comms[RANKS];
	struct at at[RANKS];
	int before = -1;

	(void)state;
	assert_int_equal(cudaSetDevice(2), 0);
	assert_int_equal(ncclCommInitAll(comms, RANKS, devices), ncclInvalidUsage);
	setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
	assert_int_equal(ncclCommInitAll(comms, RANKS, devices), ncclSuccess);
	unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
	assert_int_equal(cudaGetDevice(&before), 0);
	assert_int_equal(before, 2);
	for (int rank = 0; rank < RANKS; rank++) {
		CHECK_CU(cudaSetDevice(devices[rank]));
		at[rank] = begin(comms[rank], rank, RANKS);
		put(&at[rank], at[rank].send, 2000);
	}
	for (int round = 0; round < 3; round++) {
		CHECK_OK(ncclGroupStart());
		for (int rank = 0; rank < RANKS; rank++)
			CHECK_OK(ncclAllReduce(at[rank].send, at[rank].recv, 2000, ncclFloat32,
					       ncclSum, comms[rank], at[rank].stream));
		CHECK_OK(ncclGroupEnd());
		for (int rank = 0; rank < RANKS; rank++)
			check_sums(&at[rank], at[rank].recv, 2000, 0);
	}
	for (int rank = 0; rank < RANKS; rank++) {
		CHECK_CU(cudaSetDevice(devices[rank]));
		end(&at[rank]);
		CHECK_OK(ncclCommDestroy(comms[rank]));
	}
	assert_int_equal(ranks_failures(), 0);
}

/* -- Errors --------------------------------------------------------------------------------------- */

static ncclResult_t await_error(ncclComm_t comm)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	ncclResult_t found = ncclSuccess;

	for (int i = 0; i < 60000 && found == ncclSuccess; i++) {
		CHECK_OK(ncclCommGetAsyncError(comm, &found));
		(void)nanosleep(&nap, NULL);
	}
	return found;
}

static void mismatch_of_a_rank(ncclComm_t comm, int rank, int n, void *arg)
{
	const struct at at = begin(comm, rank, n);

	(void)arg;
	put(&at, at.send, 100);
	CHECK_OK(ncclAllReduce(at.send, at.recv, rank ? 100 : 90, ncclFloat32, ncclSum, comm,
			       at.stream));
	CHECK(await_error(comm) == ncclInvalidUsage);
	CHECK(strstr(ncclGetLastError(comm), "90") && strstr(ncclGetLastError(comm), "100"));
	CHECK_OK(ncclCommAbort(comm));
	ranks_ended();
	end(&at);
}

/* Rank 0 does not come to the second call: the kernels of the others end with the communicator. */
static void abort_of_a_rank(ncclComm_t comm, int rank, int n, void *arg)
{
	const struct at at = begin(comm, rank, n);

	(void)arg;
	put(&at, at.send, 100);
	/* The first call meets the others. */
	CHECK_OK(ncclAllReduce(at.send, at.recv, 100, ncclFloat32, ncclSum, comm, at.stream));
	if (rank)
		CHECK_OK(ncclAllReduce(at.send, at.recv, 100, ncclFloat32, ncclSum, comm,
				       at.stream));
	ranks_meet();
	CHECK_OK(ncclCommAbort(comm));
	ranks_ended();
	end(&at);
}

static void errors(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(RANKS, mismatch_of_a_rank, NULL), 0);
	assert_int_equal(ranks_run(RANKS, abort_of_a_rank, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collectives), cmocka_unit_test(ranks_that_share),
		cmocka_unit_test(memory),      cmocka_unit_test(graphs),
		cmocka_unit_test(scalars),     cmocka_unit_test(puts_and_signals),
		cmocka_unit_test(errors),      cmocka_unit_test(one_thread_has_all_ranks),
	};

	ranks_prepare(take_own_device);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
