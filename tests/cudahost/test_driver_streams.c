/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: streams, events, words of memory. */
#include "test_driver.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

static CUstream make_stream(void)
{
	CUstream stream;

	is_good(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

static void streams_tell_of_themselves(void **state)
{
	CUstream stream;
	CUcontext context, current;
	CUgreenCtx green = (CUgreenCtx)&green;
	CUdevice device;
	unsigned flags;
	unsigned long long id, other;
	int priority;

	(void)state;
	is_good(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -2));
	is_good(cuStreamGetPriority(stream, &priority));
	assert_int_equal(priority, -2);
	is_good(cuStreamGetFlags(stream, &flags));
	assert_int_equal(flags, CU_STREAM_NON_BLOCKING);
	is_good(cuStreamGetDevice(stream, &device));
	assert_int_equal(device, 0);
	is_good(cuStreamGetCtx_v2(stream, &context, &green));
	is_good(cuCtxGetCurrent(&current));
	assert_ptr_equal(context, current);
	assert_null(green);
	is_good(cuStreamGetId(stream, &id));
	is_good(cuStreamGetId(NULL, &other));
	assert_true(id != other);
	is_good(cuStreamGetId_ptsz(NULL, &id));
	assert_true(id != other);
	is_good(cuStreamGetId(CU_STREAM_PER_THREAD, &other));
	assert_true(id == other);
	is_good(cuStreamQuery(stream));
	is_good(cuStreamDestroy_v2(stream));
}

static void bad_streams_are_errors(void **state)
{
	CUstream stream = make_stream();

	(void)state;
	is_good(cuStreamDestroy_v2(stream));
	assert_int_equal(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuStreamDestroy_v2(stream), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuStreamDestroy_v2(NULL), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuStreamCreate(&stream, 2), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuStreamCreate(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchHostFunc(NULL, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void add_one(void *n)
{
	atomic_fetch_add((atomic_int *)n, 1);
}

static void called_back(CUstream stream, CUresult status, void *n)
{
	if (stream && !status)
		add_one(n);
}

static void try_to_allocate(void *out)
{
	CUdeviceptr at;

	*(CUresult *)out = cuMemAlloc_v2(&at, 1);
}

static void functions_may_not_call_the_driver(void **state)
{
	CUstream stream = make_stream();
	CUresult result = CUDA_SUCCESS;

	(void)state;
	is_good(cuLaunchHostFunc(stream, try_to_allocate, &result));
	is_good(cuStreamSynchronize(stream));
	assert_int_equal(result, CUDA_ERROR_NOT_PERMITTED);
	is_good(cuStreamDestroy_v2(stream));
}

static void functions_run_in_order(void **state)
{
	CUstream stream = make_stream();
	atomic_int n = 0;

	(void)state;
	is_good(cuLaunchHostFunc(stream, add_one, &n));
	is_good(cuStreamAddCallback(stream, called_back, &n, 0));
	is_good(cuLaunchHostFunc_ptsz(NULL, add_one, &n));
	is_good(cuStreamSynchronize(stream));
	is_good(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	assert_int_equal(n, 3);
	is_good(cuStreamDestroy_v2(stream));
}

static void events_order_streams(void **state)
{
	CUstream first = make_stream(), second = make_stream();
	CUevent event, end;
	CUdeviceptr word;
	int value = 0;
	float ms = -1;

	(void)state;
	is_good(cuMemAlloc_v2(&word, 8));
	is_good(cuMemsetD32_v2(word, 0, 2));
	is_good(cuStreamSynchronize(NULL)); /* for which other streams do not wait */
	is_good(cuEventCreate(&event, 0));
	is_good(cuEventCreate(&end, 0));
	is_good(cuEventQuery(event)); /* was never recorded */
	is_good(cuStreamWaitValue32_v2(first, word, 1, CU_STREAM_WAIT_VALUE_EQ));
	is_good(cuMemsetD32Async(word + 4, 9, 1, first));
	is_good(cuEventRecord(event, first));
	is_good(cuStreamWaitEvent(second, event, 0));
	is_good(cuEventRecord(end, second));
	assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
	assert_int_equal(cuEventElapsedTime(&ms, event, end), CUDA_ERROR_NOT_READY);
	is_good(cuStreamWriteValue32_v2(CU_STREAM_PER_THREAD, word, 1, 0));
	is_good(cuStreamSynchronize(second));
	is_good(cuMemcpyDtoH_v2(&value, word + 4, 4));
	assert_int_equal(value, 9);
	is_good(cuEventElapsedTime_v2(&ms, event, end));
	assert_true(ms >= 0);
	is_good(cuEventDestroy_v2(event));
	is_good(cuEventDestroy_v2(end));
	assert_int_equal(cuEventQuery(NULL), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuEventCreate(&event, 8), CUDA_ERROR_INVALID_VALUE);
	is_good(cuStreamDestroy_v2(first));
	is_good(cuStreamDestroy_v2(second));
	is_good(cuMemFree_v2(word));
}

/* -- Words ---------------------------------------------------------------------------------------- */

/* Whether a stream goes on where the word is `now`: else it has to wait until it is `then`. */
static bool goes_on(uint64_t *word, uint64_t now, uint64_t value, unsigned flags, bool is_wide,
		    uint64_t then)
{
	CUstream stream = make_stream();
	CUresult rc;

	__atomic_store_n(word, now, __ATOMIC_SEQ_CST);
	if (is_wide)
		is_good(cuStreamWaitValue64_v2(stream, pointer(word), value, flags));
	else
		is_good(cuStreamWaitValue32_v2(stream, pointer(word), (cuuint32_t)value, flags));
	for (int i = 0; i < 20 && (rc = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY; i++)
		usleep(1000);
	__atomic_store_n(word, then, __ATOMIC_SEQ_CST);
	is_good(cuStreamSynchronize(stream));
	is_good(cuStreamDestroy_v2(stream));
	return rc == CUDA_SUCCESS;
}

static void streams_wait_for_words(void **state)
{
	void *word;

	(void)state;
	is_good(cuMemHostAlloc(&word, 8, 0));
	assert_false(goes_on(word, 4, 5, CU_STREAM_WAIT_VALUE_GEQ, false, 5));
	assert_false(goes_on(word, 0xfffffff0, 5, CU_STREAM_WAIT_VALUE_GEQ, false, 6));
	assert_false(goes_on(word, 1, 0, CU_STREAM_WAIT_VALUE_EQ, true, 0));
	assert_false(goes_on(word, 2, 1, CU_STREAM_WAIT_VALUE_AND, false, 3));
	assert_false(goes_on(word, 0xfffffffe, 1, CU_STREAM_WAIT_VALUE_NOR, false, 0));
	assert_false(goes_on(word, 5, (uint64_t)1 << 40, CU_STREAM_WAIT_VALUE_GEQ, true,
			     (uint64_t)1 << 41));
	is_good(cuMemFreeHost(word));
}

static void streams_write_words_of_two_widths(void **state)
{
	CUstream stream = make_stream();
	void *memory;
	uint64_t *word;

	(void)state;
	is_good(cuMemHostAlloc(&memory, 8, 0));
	word = memory;
	*word = 0;
	is_good(cuStreamWriteValue64_v2(stream, pointer(word), UINT64_MAX, 0));
	is_good(cuStreamWriteValue32_v2(stream, pointer(word), 7, 0));
	assert_int_equal(cuStreamWriteValue32_v2(stream, pointer(word), 8, 1),
			 CUDA_ERROR_INVALID_VALUE);
	is_good(cuStreamSynchronize(stream));
	assert_true(*word == 0xffffffff00000007);
	is_good(cuStreamDestroy_v2(stream));
	is_good(cuMemFreeHost(memory));
}

static void operations_on_words_are_done_in_order(void **state)
{
	CUstream stream = make_stream();
	CUstreamBatchMemOpParams op[3] = {
		{ .writeValue = { .operation = CU_STREAM_MEM_OP_WRITE_VALUE_32, .value = 3 } },
		{ .operation = CU_STREAM_MEM_OP_BARRIER },
		{ .waitValue = { .operation = CU_STREAM_MEM_OP_WAIT_VALUE_32, .value = 3 } },
	};
	void *word;

	(void)state;
	is_good(cuMemHostAlloc(&word, 8, 0));
	op[0].writeValue.address = op[2].waitValue.address = pointer(word);
	is_good(cuStreamBatchMemOp_v2(stream, 3, op, 0));
	is_good(cuStreamSynchronize(stream));
	assert_int_equal(*(int *)word, 3);
	is_good(cuStreamBatchMemOp_v2(stream, 0, NULL, 0));
	op[1].operation = (CUstreamBatchMemOpType)99;
	assert_int_equal(cuStreamBatchMemOp_v2(stream, 3, op, 0), CUDA_ERROR_INVALID_VALUE);
	op[1].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
	assert_int_equal(cuStreamBatchMemOp_v2(stream, 3, op, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuStreamWaitValue32_v2(stream, pointer(word) + 2, 0, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuStreamWaitValue32_v2(stream, pointer(op), 0, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuStreamWaitValue32_v2(stream, pointer(word), 0, 9),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuStreamWriteValue32_v2(stream, pointer(word), 0, 2),
			 CUDA_ERROR_INVALID_VALUE);
	is_good(cuStreamDestroy_v2(stream));
	is_good(cuMemFreeHost(word));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_tell_of_themselves),
		cmocka_unit_test(bad_streams_are_errors),
		cmocka_unit_test(functions_run_in_order),
		cmocka_unit_test(functions_may_not_call_the_driver),
		cmocka_unit_test(events_order_streams),
		cmocka_unit_test(streams_wait_for_words),
		cmocka_unit_test(streams_write_words_of_two_widths),
		cmocka_unit_test(operations_on_words_are_done_in_order),
	};

	return begin_on("1") || cmocka_run_group_tests(tests, NULL, NULL);
}
