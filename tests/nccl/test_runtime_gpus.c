/* SPDX-License-Identifier: BSD-3-Clause */
/* A CUDA runtime that is not Tutti's, with memory that the host cannot touch: what is refused, with which text,
 * and what works after it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <unistd.h>

#include "nccl/fake_cudart.h"
#include "nccl/ranks.h"

#define BYTES 4096

/* Whether the last error names all of it. */
static bool tells(const char *call, const char *argument, const void *address)
{
	const char *text = ncclGetLastError(NULL);
	char number[32];

	(void)snprintf(number, sizeof(number), "%p", address);
	return strstr(text, call) && strstr(text, argument) && strstr(text, number) &&
	       strstr(text, "cudaMallocHost()");
}

#define CHECK_TOLD(call, name, argument, address) \
	CHECK((call) == ncclInvalidArgument && tells(name, argument, address))

/* One rank with a stream. */
struct alone {
	ncclComm_t comm;
	cudaStream_t stream;
};

static struct alone begin(void)
{
	struct alone alone;

	CHECK_OK(ncclCommInitAll(&alone.comm, 1, NULL));
	CHECK(cudaStreamCreate(&alone.stream) == 0);
	return alone;
}

static void end(const struct alone *alone)
{
	CHECK_OK(ncclCommDestroy(alone->comm));
	CHECK(cudaStreamDestroy(alone->stream) == 0);
}

/* A call that works. */
static bool adds_up(const struct alone *alone)
{
	int in = 7, out = -1;

	return CHECK_OK(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, alone->comm,
				      alone->stream)) &&
	       CHECK(cudaStreamSynchronize(alone->stream) == 0) && CHECK(out == 7);
}

/* -- Memory of GPUs ------------------------------------------------------------------------ */

static void collectives_refuse(ncclComm_t comm, int rank, int n, void *arg)
{
	float host[64] = { 0 };
	cudaStream_t stream;
	void *gpu = NULL;
	char *in;

	(void)n;
	(void)arg;
	CHECK(cudaStreamCreate(&stream) == 0);
	CHECK(cudaMalloc(&gpu, BYTES) == 0);
	in = (char *)gpu + 16;
	CHECK_TOLD(ncclAllReduce(in, host, 4, ncclFloat, ncclSum, comm, stream), "ncclAllReduce",
		   "sendbuff", in);
	CHECK_TOLD(ncclAllReduce(host, in, 4, ncclFloat, ncclSum, comm, stream), "ncclAllReduce",
		   "recvbuff", in);
	CHECK_TOLD(ncclAllGather(in, host, 4, ncclFloat, comm, stream), "ncclAllGather", "sendbuff",
		   in);
	CHECK_TOLD(ncclReduceScatter(host, in, 4, ncclFloat, ncclSum, comm, stream),
		   "ncclReduceScatter", "recvbuff", in);
	CHECK_TOLD(ncclAlltoAll(in, host, 4, ncclFloat, comm, stream), "ncclAlltoAll", "sendbuff",
		   in);
	CHECK_TOLD(ncclBroadcast(in, host, 4, ncclFloat, rank, comm, stream), "ncclBroadcast",
		   "sendbuff", in);
	CHECK_TOLD(ncclScatter(host, in, 4, ncclFloat, 0, comm, stream), "ncclScatter", "recvbuff",
		   in);
	CHECK_TOLD(ncclReduce(host, in, 4, ncclFloat, ncclSum, rank, comm, stream), "ncclReduce",
		   "recvbuff", in);
	CHECK_TOLD(ncclGather(in, host, 4, ncclFloat, 0, comm, stream), "ncclGather", "sendbuff",
		   in);
	CHECK_TOLD(ncclSend(in, 4, ncclFloat, 1 - rank, comm, stream), "ncclSend", "sendbuff", in);
	CHECK_TOLD(ncclRecv(in, 4, ncclFloat, 1 - rank, comm, stream), "ncclRecv", "recvbuff", in);
	CHECK_OK(ncclGroupStart());
	CHECK_TOLD(ncclAllReduce(in, host, 4, ncclFloat, ncclSum, comm, stream), "ncclAllReduce",
		   "sendbuff", in);
	CHECK(ncclGroupEnd() == ncclInvalidArgument);
	/* What is not used is not looked at. */
	CHECK_OK(ncclAllReduce(NULL, NULL, 0, ncclFloat, ncclSum, comm, stream));
	CHECK_OK(ncclAllReduce(in, in, 0, ncclFloat, ncclSum, comm, stream));
	host[0] = 5;
	CHECK_OK(ncclBroadcast(rank == 0 ? (void *)host : in, host, 1, ncclFloat, 0, comm, stream));
	CHECK_OK(ncclReduce(host, rank == 0 ? (void *)(host + 1) : in, 1, ncclFloat, ncclSum, 0,
			    comm, stream));
	CHECK(cudaStreamSynchronize(stream) == 0);
	CHECK(rank != 0 || host[1] == 10);
	CHECK(cudaFree(gpu) == 0);
	ranks_meet();
	CHECK_OK(ncclCommDestroy(comm));
	ranks_ended();
	CHECK(cudaStreamDestroy(stream) == 0);
}

static void memory_of_gpus_is_refused(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(2, collectives_refuse, NULL), 0);
}

static void what_calls_keep_is_looked_at(void **state)
{
	const struct alone alone = begin();
	const int before = ranks_failures();
	void *gpu = NULL, *handle;
	ncclWindow_t window;
	ncclRedOp_t op;
	int host[16];

	(void)state;
	CHECK(cudaMalloc(&gpu, BYTES) == 0);
	CHECK_TOLD(ncclCommRegister(alone.comm, gpu, BYTES, &handle), "ncclCommRegister", "buff",
		   gpu);
	CHECK_TOLD(ncclCommWindowRegister(alone.comm, gpu, BYTES, &window, 0),
		   "ncclCommWindowRegister", "buff", gpu);
	CHECK_TOLD(ncclRedOpCreatePreMulSum(&op, gpu, ncclFloat, ncclScalarDevice, alone.comm),
		   "ncclRedOpCreatePreMulSum", "scalar", gpu);
	CHECK_OK(ncclCommWindowRegister(alone.comm, host, sizeof(host), &window, 0));
	CHECK_TOLD(
		ncclPutSignal(gpu, 4, ncclFloat, 0, window, 0, 0, 0, 0, alone.comm, alone.stream),
		"ncclPutSignal", "localbuff", gpu);
	CHECK_OK(ncclCommWindowDeregister(alone.comm, window));
	CHECK(cudaFree(gpu) == 0);
	end(&alone);
	assert_int_equal(ranks_failures(), before);
}

static void managed_memory_needs_a_gpu_that_shares_it(void **state)
{
	const struct alone alone = begin();
	const int before = ranks_failures();
	void *managed = NULL;
	int *numbers;

	(void)state;
	CHECK(cudaMallocManaged(&managed, BYTES, 1) == 0);
	numbers = managed;
	numbers[0] = 3;
	CHECK_OK(ncclAllReduce(numbers, numbers + 1, 1, ncclInt32, ncclSum, alone.comm,
			       alone.stream));
	CHECK(cudaStreamSynchronize(alone.stream) == 0);
	CHECK(numbers[1] == 3);
	fake_set_attribute(89, 0);
	CHECK_TOLD(ncclAllReduce(numbers, numbers + 1, 1, ncclInt32, ncclSum, alone.comm,
				 alone.stream),
		   "concurrentManagedAccess", "sendbuff", managed);
	fake_set_attribute(89, 1);
	CHECK(cudaFree(managed) == 0);
	end(&alone);
	assert_int_equal(ranks_failures(), before);
}

static unsigned type_of(const void *address)
{
	int attribute = 2;
	unsigned type = 0;
	void *value = &type;

	CHECK(cuPointerGetAttributes(1, &attribute, &value, (uintptr_t)address) == 0);
	return type;
}

static void memory_of_nccl_is_reached_by_kernels(void **state)
{
	const int before = ranks_failures();
	void *memory = NULL;

	(void)state;
	CHECK_OK(ncclMemAlloc(&memory, BYTES));
	CHECK(type_of(memory) == 1 && type_of((char *)memory + BYTES - 1) == 1);
	CHECK_OK(ncclMemFree(memory));
	CHECK(type_of(memory) == 0);
	fake_refuse(FAKE_REGISTER, 304);
	CHECK_REFUSED(ncclMemAlloc(&memory, BYTES), ncclUnhandledCudaError);
	CHECK(strstr(ncclGetLastError(NULL), "cudaHostRegister() gave error 304") != NULL);
	CHECK(memory == NULL && cudaGetLastError() == 0);
	fake_refuse(FAKE_REGISTER, 0);
	assert_int_equal(ranks_failures(), before);
}

/* -- Streams ------------------------------------------------------------------------------- */

/* The function is launched, and then the stream cannot be told to wait. */
static void a_wait_that_is_refused(void **state)
{
	const struct alone alone = begin();
	const int before = ranks_failures();
	int in = 1, out = -1, made = -1;
	_Atomic uint64_t gate = 0;

	(void)state;
	adds_up(&alone);
	CHECK(cuStreamWaitValue64_v2(alone.stream, (uintptr_t)&gate, 1, 0) == 0);
	fake_refuse(FAKE_WAIT, 801);
	CHECK_REFUSED(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, alone.comm, alone.stream),
		      ncclUnhandledCudaError);
	CHECK(strstr(ncclGetLastError(NULL),
		     "cuStreamWaitValue64() gave error 801, so the call was not made"));
	fake_refuse(FAKE_WAIT, 0);
	CHECK_OK(ncclAllReduce(&in, &made, 1, ncclInt32, ncclSum, alone.comm, alone.stream));
	CHECK(made == -1);
	atomic_store(&gate, 1);
	CHECK(cudaStreamSynchronize(alone.stream) == 0);
	CHECK(made == 1 && out == -1);
	/* The turn has come by then. */
	fake_refuse(FAKE_LATE_WAIT, 801);
	CHECK_REFUSED(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, alone.comm, alone.stream),
		      ncclUnhandledCudaError);
	CHECK(strstr(ncclGetLastError(NULL), "its stream does not wait for it") != NULL);
	fake_refuse(FAKE_LATE_WAIT, 0);
	adds_up(&alone);
	CHECK(out == 1);
	end(&alone);
	assert_int_equal(ranks_failures(), before);
}

static void a_gpu_that_cannot_wait(void **state)
{
	const int before = ranks_failures();
	struct alone alone = begin();
	int in = 1, out = -1;

	(void)state;
	fake_set_attribute(122, 0);
	CHECK_REFUSED(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, alone.comm, alone.stream),
		      ncclInvalidUsage);
	CHECK(strstr(ncclGetLastError(NULL), "64-bit memory operations") != NULL);
	fake_set_attribute(122, 1);
	adds_up(&alone);
	end(&alone);
	assert_int_equal(ranks_failures(), before);
}

static void calls_in_graphs_are_refused(void **state)
{
	const struct alone alone = begin();
	const int before = ranks_failures();
	int in = 1, out = -1;

	(void)state;
	fake_capture(alone.stream, 1);
	CHECK_REFUSED(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, alone.comm, alone.stream),
		      ncclInvalidUsage);
	CHECK(strstr(ncclGetLastError(NULL), "Tutti's CUDA runtime") != NULL);
	fake_capture(alone.stream, 0);
	adds_up(&alone);
	end(&alone);
	assert_int_equal(ranks_failures(), before);
}

static void streams_work_after_a_reset_of_the_device(void **state)
{
	const int before = ranks_failures();
	struct alone alone = begin();

	(void)state;
	adds_up(&alone);
	end(&alone);
	fake_forget_registrations();
	alone = begin();
	adds_up(&alone);
	end(&alone);
	assert_int_equal(ranks_failures(), before);
}

/* What is queued would never come. */
static void abort_on_a_failed_gpu(ncclComm_t comm, int rank, int n, void *arg)
{
	const uintptr_t gate = (uintptr_t)arg;
	int in = 1, out[2] = { -1, -1 };
	cudaStream_t stream;

	(void)n;
	CHECK(cudaStreamCreate(&stream) == 0);
	CHECK(cuStreamWaitValue64_v2(stream, gate, 1, 0) == 0);
	for (int i = 0; i < 2; i++)
		CHECK_OK(ncclAllReduce(&in, &out[i], 1, ncclInt32, ncclSum, comm, stream));
	ranks_meet();
	if (rank == 0)
		fake_fail(700);
	ranks_meet();
	CHECK(cudaStreamSynchronize(stream) == 700);
	CHECK_OK(ncclCommAbort(comm));
	ranks_ended();
	CHECK(out[0] == -1 && out[1] == -1);
	ranks_meet();
	/* It comes all the same, too late. */
	if (rank == 0) {
		fake_fail(0);
		atomic_store((_Atomic uint64_t *)gate, 1);
	}
	ranks_meet();
	CHECK(cudaStreamDestroy(stream) == 0);
	CHECK(out[0] == -1 && out[1] == -1);
}

static void nothing_waits_for_a_gpu_that_has_failed(void **state)
{
	_Atomic uint64_t gate = 0;

	(void)state;
	assert_int_equal(ranks_run(2, abort_on_a_failed_gpu, &gate), 0);
}

static void *fail_soon(void *unused)
{
	(void)unused;
	usleep(100000);
	fake_fail(700);
	return NULL;
}

/* While it is waited for what is queued there. Another communicator that uses the stream has its call ended,
 * too, with an error. */
static void abort_while_a_gpu_fails(ncclComm_t comm, int rank, int n, void *arg)
{
	const uintptr_t gate = (uintptr_t)arg;
	int in = 1, out[2] = { -1, -1 };
	cudaStream_t stream;
	pthread_t thread;
	ncclComm_t other;

	(void)n;
	CHECK_OK(ncclCommSplit(comm, 0, rank, &other, NULL));
	CHECK(cudaStreamCreate(&stream) == 0);
	CHECK(cuStreamWaitValue64_v2(stream, gate, 1, 0) == 0);
	CHECK_OK(ncclAllReduce(&in, &out[0], 1, ncclInt32, ncclSum, comm, stream));
	CHECK_OK(ncclAllReduce(&in, &out[1], 1, ncclInt32, ncclSum, other, stream));
	ranks_meet();
	if (rank == 0)
		CHECK(pthread_create(&thread, NULL, fail_soon, NULL) == 0);
	CHECK_OK(ncclCommAbort(comm));
	ranks_ended();
	CHECK_OK(ncclCommAbort(other));
	CHECK(out[0] == -1 && out[1] == -1);
	if (rank == 0)
		pthread_join(thread, NULL);
	ranks_meet();
	if (rank == 0) {
		fake_fail(0);
		atomic_store((_Atomic uint64_t *)gate, 1);
	}
	ranks_meet();
	CHECK(cudaStreamDestroy(stream) == 0);
	CHECK(out[0] == -1 && out[1] == -1);
}

static void a_gpu_may_fail_while_a_communicator_ends(void **state)
{
	_Atomic uint64_t gate = 0;

	(void)state;
	assert_int_equal(ranks_run(2, abort_while_a_gpu_fails, &gate), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_of_gpus_is_refused),
		cmocka_unit_test(what_calls_keep_is_looked_at),
		cmocka_unit_test(managed_memory_needs_a_gpu_that_shares_it),
		cmocka_unit_test(memory_of_nccl_is_reached_by_kernels),
		cmocka_unit_test(a_wait_that_is_refused),
		cmocka_unit_test(a_gpu_that_cannot_wait),
		cmocka_unit_test(calls_in_graphs_are_refused),
		cmocka_unit_test(streams_work_after_a_reset_of_the_device),
		cmocka_unit_test(nothing_waits_for_a_gpu_that_has_failed),
		cmocka_unit_test(a_gpu_may_fail_while_a_communicator_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
