/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls that are wrong, groups, sends and receives, memory, windows, signals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "nccl/ranks.h"

/* -- What is wrong ------------------------------------------------------------------------- */

static void wrong_arguments(ncclComm_t comm, int rank, int n, void *arg)
{
	float in[4] = { 0 }, out[4];
	const cudaStream_t stream = (cudaStream_t)(void *)&in;
	ncclRedOp_t op;

	(void)arg;
	(void)rank;
	CHECK_REFUSED(ncclAllReduce(in, out, 1, ncclFloat32, ncclSum, NULL, NULL),
		      ncclInvalidArgument);
	CHECK_REFUSED(ncclAllReduce(NULL, out, 1, ncclFloat32, ncclSum, comm, NULL),
		      ncclInvalidArgument);
	for (int type = ncclNumTypes; type < 18; type++)
		CHECK_REFUSED(ncclAllReduce(in, out, 1, (ncclDataType_t)type, ncclSum, comm, NULL),
			      ncclInvalidArgument);
	for (int other = ncclNumOps; other < 2000; other += 7)
		CHECK_REFUSED(
			ncclAllReduce(in, out, 1, ncclFloat32, (ncclRedOp_t)other, comm, NULL),
			ncclInvalidArgument);
	CHECK_REFUSED(ncclBroadcast(in, out, 1, ncclFloat32, n, comm, NULL), ncclInvalidArgument);
	CHECK_REFUSED(ncclReduce(in, out, 1, ncclFloat32, ncclSum, -1, comm, NULL),
		      ncclInvalidArgument);
	CHECK_REFUSED(ncclSend(in, 1, ncclFloat32, n, comm, NULL), ncclInvalidArgument);
	CHECK_REFUSED(ncclRecv(NULL, 1, ncclFloat32, 0, comm, NULL), ncclInvalidArgument);
	CHECK_REFUSED(ncclAllReduce(in, out, 1, ncclFloat32, ncclSum, comm, stream),
		      ncclInvalidArgument);
	CHECK(strstr(ncclGetLastError(comm), "cudaLaunchHostFunc"));
	CHECK_OK(ncclAllReduce(in, out, 1, ncclFloat32, ncclSum, comm, (cudaStream_t)1));
	CHECK_OK(ncclAllReduce(in, out, 1, ncclFloat32, ncclSum, comm, (cudaStream_t)2));
	CHECK_REFUSED(ncclRedOpCreatePreMulSum(NULL, in, ncclFloat32, ncclScalarDevice, comm),
		      ncclInvalidArgument);
	CHECK_REFUSED(ncclRedOpCreatePreMulSum(&op, in, ncclNumTypes, ncclScalarDevice, comm),
		      ncclInvalidArgument);
	CHECK_REFUSED(ncclRedOpCreatePreMulSum(&op, in, ncclFloat32, 2, comm), ncclInvalidArgument);
	CHECK_REFUSED(ncclRedOpDestroy(ncclSum, comm), ncclInvalidArgument);
	CHECK_REFUSED(ncclRedOpDestroy(300, comm), ncclInvalidArgument);
}

/* Settings of a call. */
static void wrong_settings(ncclComm_t comm, int rank, int n, void *arg)
{
	ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
	ncclConfigExt_t ext = { NULL, { 1, 2 }, { 3 } };
	float in[4] = { 0 }, out[4];

	(void)arg;
	(void)rank;
	(void)n;
	config.magic = 3;
	CHECK_REFUSED(ncclAllReduceConfig(in, out, 1, ncclFloat32, ncclSum, comm, NULL, &config),
		      ncclInvalidArgument);
	config = (ncclCollConfig_t)NCCL_COLLCONFIG_INITIALIZER;
	config.minCTAs = 0;
	CHECK_REFUSED(ncclBroadcastConfig(in, out, 1, ncclFloat32, 0, comm, NULL, &config),
		      ncclInvalidArgument);
	config = (ncclCollConfig_t)NCCL_COLLCONFIG_INITIALIZER;
	config.ext = &ext;
	CHECK_REFUSED(ncclAllGatherConfig(in, out, 1, ncclFloat32, comm, NULL, &config),
		      ncclInvalidUsage);
	config = (ncclCollConfig_t)NCCL_COLLCONFIG_INITIALIZER;
	config.launchCompletionEvent = (cudaEvent_t)(void *)&config;
	CHECK_REFUSED(ncclAllReduceConfig(in, out, 1, ncclFloat32, ncclSum, comm, NULL, &config),
		      ncclInvalidArgument);
	config.launchCompletionEvent = NULL;
	config.algSelection = "NVLS,COLLNET_CHAIN";
	CHECK_REFUSED(ncclAllReduceConfig(in, out, 1, ncclFloat32, ncclSum, comm, NULL, &config),
		      ncclInvalidUsage);
	CHECK(strstr(ncclGetLastError(comm), "\"NVLS,COLLNET_CHAIN\""));
	config.algSelection = "TREE"; /* of reductions */
	CHECK_REFUSED(ncclAllGatherConfig(in, out, 1, ncclFloat32, comm, NULL, &config),
		      ncclInvalidUsage);
	config.forceAlgSelection = 0;
	CHECK_OK(ncclAllGatherConfig(in, out, 1, ncclFloat32, comm, NULL, &config));
	config.forceAlgSelection = 2;
	CHECK_REFUSED(ncclAllReduceConfig(in, out, 1, ncclFloat32, ncclSum, comm, NULL, &config),
		      ncclInvalidArgument);
}

/* By the algorithms that a config names; the ranks that name others are told. */
static void algorithms(ncclComm_t comm, int rank, int n, void *all_are_through)
{
	static const char *const names[] = {
		"RING", "tree",        "NVLS,Tree_LL128", "RING_SIMPLE", "recursive_doubling",
		"",     "direct, ring"
	};
	ncclCollConfig_t config = NCCL_COLLCONFIG_INITIALIZER;
	float in[4], out[4];
	ncclResult_t result;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (int k = 0; k < 4; k++)
			in[k] = (float)(rank + k);
		config.algSelection = names[i];
		CHECK_OK(
			ncclAllReduceConfig(in, out, 4, ncclFloat32, ncclSum, comm, NULL, &config));
		for (int k = 0; k < 4; k++)
			CHECK(out[k] == (float)(n * (n - 1) / 2 + n * k));
	}
	if (n < 3)
		return;
	/* What follows ends the communicator, as soon as two ranks have come to it. */
	pthread_barrier_wait(all_are_through);
	config.algSelection = rank == 1 ? "RING" : "TREE";
	result = ncclAllReduceConfig(in, out, 4, ncclFloat32, ncclSum, comm, NULL, &config);
	CHECK(result == ncclInvalidUsage);
	CHECK(strstr(ncclGetLastError(comm), "in different ways"));
}

/* Ranks that call different things are told, and the communicator is lost. */
static void mismatch(ncclComm_t comm, int rank, int n, void *arg)
{
	float in[4] = { 0 }, out[4];
	ncclResult_t result;

	(void)arg;
	(void)n;
	CHECK_REFUSED(ncclAllReduce(in, out, rank == 0 ? 1 : 2, ncclFloat32, ncclSum, comm, NULL),
		      ncclInvalidUsage);
	CHECK_OK(ncclCommGetAsyncError(comm, &result));
	CHECK(result == ncclInvalidUsage);
}

/* -- Groups and transfers --------------------------------------------------------------------- */

static void groups(ncclComm_t comm, int rank, int n, void *arg)
{
	ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
	const int next = (rank + 1) % n, prev = (rank + n - 1) % n;
	int sent[2] = { rank, 10 * rank }, got[2] = { -1, -1 }, sum = 0, one = 1;

	(void)arg;
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclSend(sent, 2, ncclInt32, next, comm, NULL));
	CHECK_OK(ncclRecv(got, 2, ncclInt32, prev, comm, NULL));
	CHECK_OK(ncclGroupEnd());
	CHECK_OK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL));
	CHECK(sum == 0);
	CHECK_OK(ncclGroupEnd());
	CHECK(got[0] == prev && got[1] == 10 * prev && sum == n);
	/* An empty message. */
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclSend(NULL, 0, ncclInt32, next, comm, NULL));
	CHECK_OK(ncclRecv(NULL, 0, ncclInt32, prev, comm, NULL));
	CHECK_OK(ncclGroupEnd());
	/* A call that is wrong: nothing of the group runs. */
	sum = 0;
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL));
	CHECK_REFUSED(ncclAllReduce(&one, &sum, 1, (ncclDataType_t)13, ncclSum, comm, NULL),
		      ncclInvalidArgument);
	CHECK_REFUSED(ncclGroupEnd(), ncclInvalidArgument);
	CHECK(strstr(ncclGetLastError(NULL), "13 is no type"));
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL));
	CHECK_OK(ncclGroupSimulateEnd(&info));
	CHECK(sum == 0 && info.estimatedTime > 0);
	CHECK_REFUSED(ncclGroupSimulateEnd(&info), ncclInvalidUsage);
	CHECK_REFUSED(ncclGroupEnd(), ncclInvalidUsage);
	/* One that cannot be simulated is dropped as well. */
	info.magic = 1;
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL));
	CHECK_REFUSED(ncclGroupSimulateEnd(&info), ncclInvalidArgument);
	CHECK_REFUSED(ncclGroupEnd(), ncclInvalidUsage);
	CHECK(sum == 0);
	CHECK_OK(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, comm, NULL));
	CHECK(sum == n);
}

/* -- Memory ------------------------------------------------------------------------------------- */

#define WORDS ((size_t)1 << 17)

static void registered(ncclComm_t comm, int rank, int n, void *arg)
{
	int *send = NULL, *recv = NULL;
	void *handles[2] = { NULL, NULL }, *handle;

	(void)arg;
	CHECK_OK(ncclMemAlloc((void **)&send, WORDS * sizeof(int)));
	recv = calloc(WORDS, sizeof(int));
	if (!CHECK(send && recv))
		return;
	for (size_t i = 0; i < WORDS; i++)
		send[i] = rank + (int)(i % 5);
	CHECK_REFUSED(ncclCommRegister(comm, NULL, 5, &handle), ncclInvalidArgument);
	CHECK_OK(ncclCommRegister(comm, send, WORDS * sizeof(int), &handles[0]));
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclCommRegister(comm, recv, WORDS * sizeof(int), &handles[1]));
	CHECK(handles[1] != NULL);
	CHECK_OK(ncclGroupEnd());
	CHECK_OK(ncclAllReduce(send, recv, WORDS, ncclInt32, ncclSum, comm, NULL));
	for (size_t i = 0; i < WORDS; i++)
		if (!CHECK(recv[i] == n * (n - 1) / 2 + n * (int)(i % 5)))
			break;
	CHECK_OK(ncclCommDeregister(comm, handles[0]));
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclCommDeregister(comm, handles[1]));
	CHECK_OK(ncclGroupEnd());
	CHECK_OK(ncclCommDeregister(comm, NULL));
	CHECK_OK(ncclMemFree(send));
	free(recv);
}

/* -- Windows ------------------------------------------------------------------------------------ */

/* Each rank puts into the window of the next, which waits for the signal. */
static void put_round(ncclComm_t comm, int rank, int n, ncclWindow_t window, const int *memory,
		      bool in_group)
{
	const int next = (rank + 1) % n, prev = (rank + n - 1) % n;
	ncclWaitSignalDesc_t wait = { 2, prev, 0, 0 };
	int values[2] = { 100 + rank, 200 + rank };

	if (in_group)
		CHECK_OK(ncclGroupStart());
	/* In a group the wait may stand first. */
	if (in_group)
		CHECK_OK(ncclWaitSignal(1, &wait, comm, NULL));
	CHECK_OK(ncclPutSignal(values, 2, ncclInt32, next, window, 3 * sizeof(int), 0, 0, 0, comm,
			       NULL));
	CHECK_OK(ncclSignal(next, 0, 0, 0, comm, NULL));
	if (in_group)
		CHECK_OK(ncclGroupEnd());
	else
		CHECK_OK(ncclWaitSignal(1, &wait, comm, NULL));
	CHECK(memory[3] == 100 + prev && memory[4] == 200 + prev);
}

static void wrong_signals(ncclComm_t comm, ncclWindow_t window, const void *memory)
{
	ncclWaitSignalDesc_t wait = { 1, 0, 1, 0 };

	CHECK_REFUSED(ncclSignal(0, 1, 0, 0, comm, NULL), ncclInvalidArgument);
	CHECK_REFUSED(ncclSignal(0, 0, 1, 0, comm, NULL), ncclInvalidArgument);
	CHECK_REFUSED(ncclSignal(0, -1, 0, 0, comm, NULL), ncclInvalidArgument);
	CHECK_REFUSED(ncclSignal(0, 0, 0, 1, comm, NULL), ncclInvalidArgument);
	CHECK_REFUSED(ncclWaitSignal(1, &wait, comm, NULL), ncclInvalidArgument);
	CHECK_REFUSED(ncclWaitSignal(-1, NULL, comm, NULL), ncclInvalidArgument);
	CHECK_REFUSED(ncclPutSignal(memory, 4096, ncclInt32, 0, window, 0, 0, 0, 0, comm, NULL),
		      ncclInvalidArgument);
}

static void addresses(ncclWindow_t window, void *memory, int rank, int n)
{
	void *at = NULL;

	CHECK_OK(ncclGetPeerDevicePointer(window, 8, rank, &at));
	CHECK(at == (char *)memory + 8);
	CHECK_OK(ncclGetPeerDevicePointer(window, 8, (rank + 1) % n, &at));
	CHECK(n == 1 || at == NULL);
	CHECK_REFUSED(ncclGetPeerDevicePointer(window, 8, n, &at), ncclInvalidArgument);
	CHECK_REFUSED(ncclGetPeerDevicePointer(window, 5000, rank, &at), ncclInvalidArgument);
	CHECK_OK(ncclGetLsaDevicePointer(window, 0, 0, &at));
	CHECK(at == memory);
	CHECK_OK(ncclGetLsaMultimemDevicePointer(window, 0, &at));
	CHECK(at == NULL);
}

static void windows(ncclComm_t comm, int rank, int n, void *arg)
{
	const bool has_own = arg != NULL;
	ncclWindow_t window = NULL, second = NULL;
	void *memory = NULL, *at = NULL;

	if (has_own)
		memory = calloc(1, 8192);
	else
		CHECK_OK(ncclMemAlloc(&memory, 8192));
	if (!CHECK(memory != NULL))
		return;
	CHECK_REFUSED(ncclSignal(0, 0, 0, 0, comm, NULL), ncclInvalidUsage);
	CHECK_REFUSED(ncclCommWindowRegister(comm, memory, 4096, &window, NCCL_WIN_GIN_ONLY),
		      ncclInvalidUsage);
	CHECK_REFUSED(ncclCommWindowRegister(comm, memory, 4096, &window, 64), ncclInvalidArgument);
	CHECK_REFUSED(ncclCommWindowRegister(comm, NULL, 4096, &window, 0), ncclInvalidArgument);
	CHECK_OK(ncclCommWindowRegister(comm, memory, 4096, &window, NCCL_WIN_COLL_SYMMETRIC));
	CHECK_OK(ncclGroupStart());
	CHECK_OK(ncclCommWindowRegister(comm, (char *)memory + 4096, 4096, &second, 0));
	CHECK_OK(ncclGroupEnd());
	CHECK_OK(ncclWinGetUserPtr(comm, second, &at));
	CHECK(at == (char *)memory + 4096);
	for (int i = 0; i < 3; i++) {
		put_round(comm, rank, n, window, memory, false);
		ranks_meet();
		memset(memory, 0, 8192);
		ranks_meet();
		put_round(comm, rank, n, second, at, true);
		ranks_meet();
		memset(memory, 0, 8192);
		ranks_meet();
	}
	wrong_signals(comm, window, memory);
	addresses(window, memory, rank, n);
	CHECK_OK(ncclCommWindowDeregister(comm, window));
	CHECK_REFUSED(ncclCommWindowDeregister(comm, window), ncclInvalidArgument);
	CHECK_REFUSED(ncclWinGetUserPtr(comm, window, &at), ncclInvalidArgument);
	ranks_meet();
	CHECK_OK(ncclCommDestroy(comm));
	ranks_ended();
	ranks_meet();
	if (has_own)
		free(memory);
	else
		CHECK_OK(ncclMemFree(memory));
}

/* In one thread, where a registration that waited for others would wait for ever. */
static void windows_of_one_thread(void **state)
{
	static int memory[3][1024];
	ncclWaitSignalDesc_t wait = { 1, 0, 0, 0 };
	ncclComm_t comms[3];
	ncclWindow_t made[3];
	int value = 77;

	(void)state;
	assert_int_equal(ncclCommInitAll(comms, 3, NULL), ncclSuccess);
	assert_int_equal(ncclGroupStart(), ncclSuccess);
	for (int i = 0; i < 3; i++)
		assert_int_equal(
			ncclCommWindowRegister(comms[i], memory[i], sizeof(memory[i]), &made[i], 0),
			ncclSuccess);
	assert_int_equal(ncclGroupEnd(), ncclSuccess);
	assert_int_equal(
		ncclPutSignal(&value, 1, ncclInt32, 2, made[0], 16, 0, 0, 0, comms[0], NULL),
		ncclSuccess);
	assert_int_equal(ncclWaitSignal(1, &wait, comms[2], NULL), ncclSuccess);
	assert_int_equal(memory[2][4], 77);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(ncclCommWindowDeregister(comms[i], made[i]), ncclSuccess);
		assert_int_equal(ncclCommDestroy(comms[i]), ncclSuccess);
	}
}

/* Signals of several contexts are counted apart. */
static void signals_by_index(void **state)
{
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	const ncclWaitSignalDesc_t first = { 1, 0, 0, 0 };
	ncclWaitSignalDesc_t waits[] = { { 2, 0, 2, 1 }, { 1, 0, 1, 0 } };
	ncclComm_t comms[2], parent;
	ncclUniqueId id;
	ncclWindow_t made[2];
	int value = 5, memory[2] = { 0 };

	(void)state;
	config.numRmaSig = 3;
	config.numRmaCtx = 400;
	assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
	assert_int_equal(ncclCommInitRankConfig(&parent, 1, id, 0, &config), ncclInvalidArgument);
	config.numRmaCtx = 2;
	assert_int_equal(ncclGroupStart(), ncclSuccess);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ncclCommInitRankConfig(&comms[i], 2, id, i, &config), ncclSuccess);
	assert_int_equal(ncclGroupEnd(), ncclSuccess);
	assert_int_equal(ncclGroupStart(), ncclSuccess);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ncclCommWindowRegister(comms[i], &memory[i], sizeof(memory[i]),
							&made[i], 0),
				 ncclSuccess);
	assert_int_equal(ncclGroupEnd(), ncclSuccess);
	assert_int_equal(ncclSignal(1, 2, 1, 0, comms[0], NULL), ncclSuccess);
	assert_int_equal(ncclSignal(1, 1, 0, 0, comms[0], NULL), ncclSuccess);
	assert_int_equal(
		ncclPutSignal(&value, 1, ncclInt32, 1, made[0], 0, 2, 1, 0, comms[0], NULL),
		ncclSuccess);
	assert_int_equal(ncclWaitSignal(2, waits, comms[1], NULL), ncclSuccess);
	assert_int_equal(memory[1], 5);
	assert_int_equal(ncclSignal(1, 0, 0, 0, comms[0], NULL), ncclSuccess);
	waits[0] = first;
	assert_int_equal(ncclWaitSignal(1, waits, comms[1], NULL), ncclSuccess);
	assert_int_equal(ncclSignal(1, 3, 0, 0, comms[0], NULL), ncclInvalidArgument);
	assert_int_equal(ncclSignal(1, 0, 2, 0, comms[0], NULL), ncclInvalidArgument);
	waits[1].ctx = 2;
	/* Nothing is waited for, not the first of them either. */
	assert_int_equal(ncclWaitSignal(2, waits, comms[1], NULL), ncclInvalidArgument);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ncclCommDestroy(comms[i]), ncclSuccess);
}

static void what_is_wrong_is_said(void **state)
{
	pthread_barrier_t all_are_through;

	(void)state;
	assert_int_equal(ranks_run(2, wrong_arguments, NULL), 0);
	assert_int_equal(ranks_run(2, wrong_settings, NULL), 0);
	assert_int_equal(ranks_run(2, mismatch, NULL), 0);
	assert_int_equal(pthread_barrier_init(&all_are_through, NULL, 4), 0);
	assert_int_equal(ranks_run(4, algorithms, &all_are_through), 0);
	assert_int_equal(pthread_barrier_destroy(&all_are_through), 0);
	assert_int_equal(ranks_run(1, algorithms, NULL), 0);
}

static void groups_and_transfers(void **state)
{
	(void)state;
	assert_int_equal(ranks_run(4, groups, NULL), 0);
}

static void memory_and_windows(void **state)
{
	static int own;

	(void)state;
	assert_int_equal(ranks_run(4, registered, NULL), 0);
	assert_int_equal(ranks_run(3, windows, NULL), 0);
	assert_int_equal(ranks_run(3, windows, &own), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_said), cmocka_unit_test(groups_and_transfers),
		cmocka_unit_test(memory_and_windows),    cmocka_unit_test(windows_of_one_thread),
		cmocka_unit_test(signals_by_index),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
