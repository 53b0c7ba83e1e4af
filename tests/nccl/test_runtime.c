/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams over a CUDA runtime that is not Tutti's, here one whose host functions have one thread for all
 * streams: calls return at once and are done in the order of their streams; devices; errors of the runtime
 * and the driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "nccl/fake_cudart.h"
#include "nccl/ranks.h"

/* Holds a stream until it is let go. */
static void hold(void *gate)
{
	while (!atomic_load((_Atomic int *)gate))
		usleep(100);
}

static void calls_return_at_once(ncclComm_t comm, int rank, int n, void *arg)
{
	_Atomic int gate = 0;
	int in = 1, middle = -1, out = -1;
	cudaStream_t stream;
	cudaEvent_t event;
	ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;

	(void)arg;
	(void)rank;
	CHECK(cudaStreamCreate(&stream) == 0);
	CHECK(cudaEventCreate(&event) == 0);
	config.launchCompletionEvent = event;
	CHECK(cudaLaunchHostFunc(stream, hold, &gate) == 0);
	CHECK_OK(ncclAllReduce(&in, &middle, 1, ncclInt32, ncclSum, comm, stream));
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclAllReduceConfig(&middle, &out, 1, ncclInt32, ncclSum, comm, stream, &config));
	CHECK_OK(ncclGroupEnd());
	CHECK(middle == -1 && out == -1);
	atomic_store(&gate, 1);
	CHECK(cudaEventSynchronize(event) == 0);
	CHECK(middle == n && out == n * n);
	CHECK(cudaStreamSynchronize(stream) == 0);
	CHECK_OK(ncclCommFinalize(comm));
	CHECK_OK(ncclCommDestroy(comm));
	ranks_ended();
	CHECK(cudaStreamDestroy(stream) == 0);
	CHECK(cudaEventDestroy(event) == 0);
}

/* While a stream is held a nonblocking communicator is not finalized; then it is. */
static void finalize_in_time(ncclComm_t comm, int rank, int n, void *arg)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	_Atomic int gate = 0;
	ncclResult_t result;
	int in = 1, out = -1;
	ncclComm_t child;
	cudaStream_t stream;

	(void)arg;
	config.blocking = 0;
	CHECK(cudaStreamCreate(&stream) == 0);
	result = ncclCommSplit(comm, 0, rank, &child, &config);
	while (result == ncclInProgress)
		CHECK_OK(ncclCommGetAsyncError(child, &result));
	CHECK(cudaLaunchHostFunc(stream, hold, &gate) == 0);
	CHECK_OK(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, child, stream));
	CHECK(ncclCommFinalize(child) == ncclInProgress);
	CHECK_OK(ncclCommGetAsyncError(child, &result));
	CHECK(result == ncclInProgress);
	atomic_store(&gate, 1);
	while (result == ncclInProgress)
		CHECK_OK(ncclCommGetAsyncError(child, &result));
	CHECK(result == ncclSuccess && out == n);
	CHECK_OK(ncclCommDestroy(child));
	CHECK(cudaStreamDestroy(stream) == 0);
}

/* -- Devices and default streams --------------------------------------------------------------------- */

static void default_streams_are_of_devices(void **state)
{
	static const int devices[] = { 2, 5 };
	ncclComm_t comms[2];
	int in = 3, out[2] = { 0 }, device = -1;
	ncclComm_t alone;
	ncclUniqueId id;

	(void)state;
	assert_int_equal(ncclCommInitAll(comms, 2, devices), ncclSuccess);
	assert_int_equal(cudaSetDevice(1), 0);
	for (int i = 0; i < 3; i++) {
		const cudaStream_t stream = (cudaStream_t)(uintptr_t)i;

		memset(out, 0, sizeof(out));
		assert_int_equal(ncclGroupStart(), ncclSuccess);
		for (int rank = 0; rank < 2; rank++)
			assert_int_equal(ncclAllReduce(&in, &out[rank], 1, ncclInt32, ncclSum,
						       comms[rank], stream),
					 ncclSuccess);
		assert_int_equal(ncclGroupEnd(), ncclSuccess);
		for (int rank = 0; rank < 2; rank++) {
			assert_int_equal(cudaSetDevice(devices[rank]), 0);
			assert_int_equal(cudaStreamSynchronize(stream), 0);
			assert_int_equal(out[rank], 6);
		}
		assert_int_equal(cudaSetDevice(1), 0);
	}
	assert_true(fake_called(2) > 0 && fake_called(5) > 0);
	assert_int_equal(fake_called(1), 0);
	assert_int_equal(cudaGetDevice(&device), 0);
	assert_int_equal(device, 1);
	for (int rank = 0; rank < 2; rank++)
		assert_int_equal(ncclCommDestroy(comms[rank]), ncclSuccess);
	assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
	assert_int_equal(ncclCommInitRank(&alone, 1, id, 0), ncclSuccess);
	assert_int_equal(ncclCommCuDevice(alone, &device), ncclSuccess);
	assert_int_equal(device, 1);
	assert_int_equal(ncclCommDestroy(alone), ncclSuccess);
}

/* The stream of a communicator that ended is not looked at any more, and one at the same place is new. */
static void streams_come_and_go(ncclComm_t comm, int rank, int n, void *arg)
{
	int in = 1, out;

	(void)arg;
	for (int i = 0; i < 10; i++) {
		cudaStream_t stream;
		ncclComm_t child;

		CHECK(cudaStreamCreate(&stream) == 0);
		CHECK_OK(ncclCommSplit(comm, 0, rank, &child, NULL));
		CHECK_OK(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, child, stream));
		if (i % 2 == 0)
			CHECK_OK(ncclCommDestroy(child));
		CHECK(cudaStreamSynchronize(stream) == 0);
		CHECK(out == n);
		CHECK(cudaStreamDestroy(stream) == 0);
		if (i % 2 == 1)
			CHECK_OK(ncclCommDestroy(child));
	}
}

static void an_error_of_the_runtime_is_told(void **state)
{
	ncclComm_t comm;
	cudaStream_t stream;
	int in = 1, out = 0;

	(void)state;
	assert_int_equal(ncclCommInitAll(&comm, 1, NULL), ncclSuccess);
	assert_int_equal(cudaStreamCreate(&stream), 0);
	assert_int_equal(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, stream),
			 ncclSuccess);
	fake_refuse(FAKE_LAUNCH, 719);
	assert_int_equal(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, stream),
			 ncclUnhandledCudaError);
	assert_non_null(strstr(ncclGetLastError(comm), "719"));
	fake_refuse(FAKE_LAUNCH, 0);
	assert_int_equal(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, stream),
			 ncclSuccess);
	assert_int_equal(ncclCommDestroy(comm), ncclSuccess);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

/* Calls that are queued end with an error where a rank gives up. */
static void abort_releases_streams(ncclComm_t comm, int rank, int n, void *arg)
{
	int in = 1, out = -1;
	ncclResult_t result = ncclSuccess;
	cudaStream_t stream;

	(void)arg;
	(void)n;
	CHECK(cudaStreamCreate(&stream) == 0);
	if (rank > 0)
		CHECK_OK(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, stream));
	ranks_meet();
	if (rank > 0) {
		while (result == ncclSuccess)
			CHECK_OK(ncclCommGetAsyncError(comm, &result));
		CHECK(result == ncclRemoteError);
		CHECK(cudaStreamSynchronize(stream) == 0);
	}
	CHECK_OK(ncclCommAbort(comm));
	ranks_ended();
	CHECK(cudaStreamDestroy(stream) == 0);
}

static void order_of_streams(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(3, calls_return_at_once, NULL), 0);
	assert_int_equal(ranks_run(2, finalize_in_time, NULL), 0);
	assert_int_equal(ranks_run(3, streams_come_and_go, NULL), 0);
	assert_int_equal(ranks_run(3, abort_releases_streams, NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_of_streams),
		cmocka_unit_test(default_streams_are_of_devices),
		cmocka_unit_test(an_error_of_the_runtime_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
