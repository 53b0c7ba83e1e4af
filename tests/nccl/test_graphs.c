/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls on streams that are captured, with Tutti's CUDA runtime on host memory: each launch makes them
 * once more, in their place among what is called without a graph. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "nccl/ranks.h"

#define RANKS    4
#define LAUNCHES 50

typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

extern int cudaSetDevice(int device);
extern int cudaMalloc(void **out, size_t nbytes);
extern int cudaFree(void *memory);
extern int cudaMemcpy(void *to, const void *from, size_t nbytes, int kind);
extern int cudaMemcpyAsync(void *to, const void *from, size_t nbytes, int kind,
			   cudaStream_t stream);
extern int cudaStreamQuery(cudaStream_t stream);
extern int cudaStreamCreate(cudaStream_t *out);
extern int cudaStreamDestroy(cudaStream_t stream);
extern int cudaStreamSynchronize(cudaStream_t stream);
extern int cudaStreamBeginCapture(cudaStream_t stream, int mode);
extern int cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *out);
extern int cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long flags);
extern int cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream);
extern int cudaGraphDestroy(cudaGraph_t graph);
extern int cudaGraphExecDestroy(cudaGraphExec_t graph);

#define BY_ADDRESS     4
#define THREAD_LOCAL   1
#define NOT_READY      600
#define LAUNCH_FAILURE 719
#define CHECK_CU(...)  CHECK((__VA_ARGS__) == 0)

static int *make(int value)
{
	void *memory = NULL;

	CHECK_CU(cudaMalloc(&memory, sizeof(value)));
	CHECK_CU(cudaMemcpy(memory, &value, sizeof(value), BY_ADDRESS));
	return memory;
}

static int read_and_free(int *memory)
{
	int value = -1;

	CHECK_CU(cudaMemcpy(&value, memory, sizeof(value), BY_ADDRESS));
	CHECK_CU(cudaFree(memory));
	return value;
}

static cudaGraphExec_t end_capture(cudaStream_t stream)
{
	cudaGraphExec_t exec = NULL;
	cudaGraph_t graph = NULL;

	CHECK_CU(cudaStreamEndCapture(stream, &graph));
	CHECK_CU(cudaGraphInstantiate(&exec, graph, 0));
	CHECK_CU(cudaGraphDestroy(graph));
	return exec;
}

/* x = x + (sum of x over the ranks - x) and so on: each launch multiplies a common x by n. Calls without a
 * graph come between the launches, on the same stream and on another. */
static void launches_and_calls(ncclComm_t comm, int rank, int n, void *arg)
{
	cudaStream_t stream, other;
	cudaGraphExec_t exec;
	unsigned wanted = 1;
	int *x, *y;

	(void)arg;
	CHECK_CU(cudaSetDevice(rank));
	CHECK_CU(cudaStreamCreate(&stream));
	CHECK_CU(cudaStreamCreate(&other));
	x = make(1);
	y = make(rank);
	CHECK_CU(cudaStreamBeginCapture(stream, THREAD_LOCAL));
	CHECK_OK(ncclAllReduce(x, x, 1, ncclUint32, ncclSum, comm, stream));
	exec = end_capture(stream);
	for (int i = 0; i < LAUNCHES; i++) {
		CHECK_CU(cudaGraphLaunch(exec, stream));
		CHECK_OK(ncclAllReduce(x, x, 1, ncclUint32, ncclMax, comm, stream));
		CHECK_OK(ncclAllReduce(y, y, 1, ncclInt32, ncclMax, comm, other));
		wanted *= (unsigned)n;
	}
	CHECK_CU(cudaStreamSynchronize(stream));
	CHECK_CU(cudaStreamSynchronize(other));
	CHECK((unsigned)read_and_free(x) == wanted);
	CHECK(read_and_free(y) == n - 1);
	CHECK_CU(cudaGraphExecDestroy(exec));
	CHECK_CU(cudaStreamDestroy(stream));
	CHECK_CU(cudaStreamDestroy(other));
}

/* Sends and receives of a group are one part, or each would wait for the other. */
static void groups(ncclComm_t comm, int rank, int n, void *arg)
{
	const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
	cudaStream_t stream;
	cudaGraphExec_t exec;
	int *x, *y;

	(void)arg;
	CHECK_CU(cudaSetDevice(rank));
	CHECK_CU(cudaStreamCreate(&stream));
	x = make(rank);
	y = make(-1);
	CHECK_CU(cudaStreamBeginCapture(stream, THREAD_LOCAL));
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclSend(x, 1, ncclInt32, next, comm, stream));
	CHECK_OK(ncclRecv(y, 1, ncclInt32, previous, comm, stream));
	CHECK_OK(ncclGroupEnd());
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclSend(y, 1, ncclInt32, next, comm, stream));
	CHECK_OK(ncclRecv(x, 1, ncclInt32, previous, comm, stream));
	CHECK_OK(ncclGroupEnd());
	exec = end_capture(stream);
	for (int i = 0; i < LAUNCHES; i++)
		CHECK_CU(cudaGraphLaunch(exec, stream));
	CHECK_CU(cudaStreamSynchronize(stream));
	CHECK(read_and_free(x) == (rank + 2 * n * LAUNCHES - 2 * LAUNCHES) % n);
	CHECK(read_and_free(y) == (rank + 2 * n * LAUNCHES - 2 * LAUNCHES + 1) % n);
	CHECK_CU(cudaGraphExecDestroy(exec));
	CHECK_CU(cudaStreamDestroy(stream));
}

/* An operator that is destroyed while a graph has it lives until the graph is gone. */
static void operators(ncclComm_t comm, int rank, int n, void *arg)
{
	cudaStream_t stream;
	cudaGraphExec_t exec;
	ncclRedOp_t twice;
	int two = 2, *x, *y;

	(void)arg;
	CHECK_CU(cudaSetDevice(rank));
	CHECK_CU(cudaStreamCreate(&stream));
	x = make(rank);
	y = make(-1);
	CHECK_OK(ncclRedOpCreatePreMulSum(&twice, &two, ncclInt32, ncclScalarHostImmediate, comm));
	CHECK_CU(cudaStreamBeginCapture(stream, THREAD_LOCAL));
	CHECK_OK(ncclAllReduce(x, y, 1, ncclInt32, twice, comm, stream));
	exec = end_capture(stream);
	CHECK_OK(ncclRedOpDestroy(twice, comm));
	CHECK_CU(cudaGraphLaunch(exec, stream));
	CHECK_CU(cudaGraphLaunch(exec, stream));
	CHECK_CU(cudaStreamSynchronize(stream));
	CHECK(read_and_free(y) == n * (n - 1));
	CHECK_CU(cudaFree(x));
	CHECK_CU(cudaGraphExecDestroy(exec));
	CHECK_REFUSED(ncclRedOpDestroy(twice, comm), ncclInvalidArgument);
	CHECK_CU(cudaStreamDestroy(stream));
}

/* A graph that has outlived its communicator is an error with a text. */
static void ended(ncclComm_t comm, int rank, int n, void *arg)
{
	cudaStream_t stream;
	cudaGraphExec_t exec;
	int *x;

	(void)arg;
	(void)n;
	CHECK_CU(cudaSetDevice(rank));
	CHECK_CU(cudaStreamCreate(&stream));
	x = make(1);
	CHECK_CU(cudaStreamBeginCapture(stream, THREAD_LOCAL));
	CHECK_OK(ncclAllReduce(x, x, 1, ncclUint32, ncclSum, comm, stream));
	exec = end_capture(stream);
	CHECK_OK(ncclCommDestroy(comm));
	ranks_ended();
	CHECK(cudaGraphLaunch(exec, stream) != 0);
	CHECK(strstr(ncclGetLastError(NULL), "was destroyed"));
	CHECK_CU(cudaGraphExecDestroy(exec));
	CHECK_CU(cudaFree(x));
	CHECK_CU(cudaStreamDestroy(stream));
}

/* A rank that aborts leaves the others with a stream that is held: nothing runs on what has not come, who
 * waits is told, and an abort lets it go on. */
static void peers_that_go(ncclComm_t comm, int rank, int n, void *arg)
{
	ncclResult_t failed = ncclSuccess;
	cudaStream_t stream;
	ncclComm_t others;
	int *x, *y, *z;

	(void)arg;
	CHECK_CU(cudaSetDevice(rank));
	CHECK_CU(cudaStreamCreate(&stream));
	x = make(rank);
	y = make(-1);
	z = make(1);
	CHECK_OK(ncclCommSplit(comm, rank > 0 ? 0 : NCCL_SPLIT_NOCOLOR, rank, &others, NULL));
	ranks_meet();
	/* That the group fails does not say which of the two. */
	if (rank > 0) {
		CHECK_OK(ncclGroupStart());
		CHECK_OK(ncclAllReduce(z, z, 1, ncclInt32, ncclSum, others, stream));
		CHECK_OK(ncclAllReduce(x, x, 1, ncclInt32, ncclSum, comm, stream));
		CHECK_OK(ncclGroupEnd());
		CHECK_CU(cudaMemcpyAsync(y, x, sizeof(*x), BY_ADDRESS, stream));
	}
	ranks_meet();
	if (rank > 0) {
		CHECK(cudaStreamSynchronize(stream) == LAUNCH_FAILURE);
		CHECK_OK(ncclCommGetAsyncError(comm, &failed));
		CHECK(failed == ncclRemoteError);
		CHECK(cudaStreamQuery(stream) == NOT_READY);
	}
	CHECK_OK(ncclCommAbort(comm));
	ranks_ended();
	CHECK_CU(cudaStreamSynchronize(stream));
	CHECK(read_and_free(z) == (rank > 0 ? n - 1 : 1));
	CHECK_OK(ncclCommDestroy(others));
	CHECK_CU(cudaFree(x));
	CHECK_CU(cudaFree(y));
	CHECK_CU(cudaStreamDestroy(stream));
}

static void a_rank_that_goes_holds_the_streams_of_others(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(RANKS, peers_that_go, NULL), 0);
}

static void launches_keep_the_order_of_calls(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(RANKS, launches_and_calls, NULL), 0);
}

static void a_group_is_one_part_of_a_graph(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(RANKS, groups, NULL), 0);
}

static void operators_live_as_long_as_graphs(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(RANKS, operators, NULL), 0);
}

static void a_communicator_that_ended_is_named(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(RANKS, ended, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launches_keep_the_order_of_calls),
		cmocka_unit_test(a_group_is_one_part_of_a_graph),
		cmocka_unit_test(operators_live_as_long_as_graphs),
		cmocka_unit_test(a_communicator_that_ended_is_named),
		cmocka_unit_test(a_rank_that_goes_holds_the_streams_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
