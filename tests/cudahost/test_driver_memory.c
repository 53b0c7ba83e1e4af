/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: memory, copies and fills. */
#include "test_driver.h"

#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define NBYTES 10000

static CUdeviceptr alloc(size_t nbytes)
{
	CUdeviceptr at;

	is_good(cuMemAlloc_v2(&at, nbytes));
	return at;
}

static void copies_go_there_and_back(void **state)
{
	const CUdeviceptr first = alloc(NBYTES), second = alloc(NBYTES);
	unsigned char from[NBYTES], to[NBYTES] = { 0 };

	(void)state;
	for (int i = 0; i < NBYTES; i++)
		from[i] = (unsigned char)(i % 251);
	is_good(cuMemcpyHtoD_v2(first, from, NBYTES));
	is_good(cuMemcpyDtoD_v2(second, first, NBYTES));
	is_good(cuMemcpyDtoH_v2(to, second, NBYTES));
	assert_memory_equal(from, to, NBYTES);
	memset(to, 0, NBYTES);
	is_good(cuMemcpy(pointer(to), second, NBYTES));
	assert_memory_equal(from, to, NBYTES);
	memset(to, 0, NBYTES);
	is_good(cuMemcpyDtoH_v2_ptds(to, first, NBYTES));
	assert_memory_equal(from, to, NBYTES);
	is_good(cuMemFree_v2(first));
	is_good(cuMemFree_v2(second));
}

static void bad_copies_are_errors(void **state)
{
	const CUdeviceptr at = alloc(NBYTES);
	unsigned char host[NBYTES + 1] = { 0 };

	(void)state;
	assert_int_equal(cuMemcpyHtoD_v2(at, host, NBYTES + 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyHtoD_v2(pointer(host), host, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemcpyHtoD_v2(at, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemFree_v2(at + 1), CUDA_ERROR_INVALID_VALUE);
	is_good(cuMemFree_v2(at));
	assert_int_equal(cuMemFree_v2(at), CUDA_ERROR_INVALID_VALUE);
	is_good(cuMemFree_v2(0));
	assert_int_equal(cuMemAlloc_v2(&(CUdeviceptr){ 0 }, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemAlloc_v2(&(CUdeviceptr){ 0 }, (size_t)1 << 60),
			 CUDA_ERROR_OUT_OF_MEMORY);
}

/* A box of 5 x 3 x 2 bytes out of the middle of 16 x 5 x 3. */
static void boxes_are_copied(void **state)
{
	enum { WIDTH = 16, HEIGHT = 5, DEPTH = 3 };
	const CUdeviceptr at = alloc(WIDTH * HEIGHT * DEPTH);
	unsigned char from[WIDTH * HEIGHT * DEPTH], to[5 * 3 * 2];
	CUDA_MEMCPY3D box = { .srcXInBytes = 7,
			      .srcY = 2,
			      .srcZ = 1,
			      .srcMemoryType = CU_MEMORYTYPE_DEVICE,
			      .srcDevice = at,
			      .srcPitch = WIDTH,
			      .srcHeight = HEIGHT,
			      .dstMemoryType = CU_MEMORYTYPE_HOST,
			      .dstHost = to,
			      .dstPitch = 5,
			      .dstHeight = 3,
			      .WidthInBytes = 5,
			      .Height = 3,
			      .Depth = 2 };

	(void)state;
	for (int i = 0; i < WIDTH * HEIGHT * DEPTH; i++)
		from[i] = (unsigned char)i;
	is_good(cuMemcpyHtoD_v2(at, from, sizeof(from)));
	is_good(cuMemcpy3D_v2(&box));
	for (int i = 0; i < (int)sizeof(to); i++)
		assert_int_equal(to[i],
				 ((i / 15 + 1) * HEIGHT + (i / 5 % 3 + 2)) * WIDTH + 7 + i % 5);
	box.srcZ = 2;
	assert_int_equal(cuMemcpy3D_v2(&box), CUDA_ERROR_INVALID_VALUE);
	box.srcMemoryType = CU_MEMORYTYPE_ARRAY; /* of NULL */
	assert_int_not_equal(cuMemcpy3D_v2(&box), CUDA_SUCCESS);
	assert_int_equal(cuMemcpy3D_v2(NULL), CUDA_ERROR_INVALID_VALUE);
	is_good(cuMemFree_v2(at));
}

static void rows_are_copied(void **state)
{
	CUdeviceptr at;
	size_t pitch;
	unsigned char from[6] = "abcdef", to[6] = "";

	(void)state;
	is_good(cuMemAllocPitch_v2(&at, &pitch, 3, 2, 4));
	assert_true(pitch >= 3 && pitch % 512 == 0);
	is_good(cuMemcpy2D_v2(&(CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_HOST,
						.srcHost = from,
						.dstMemoryType = CU_MEMORYTYPE_DEVICE,
						.dstDevice = at,
						.dstPitch = pitch,
						.WidthInBytes = 3,
						.Height = 2 }));
	is_good(cuMemcpyDtoH_v2(to, at + pitch, 3));
	assert_memory_equal(to, "def", 3);
	is_good(cuMemFree_v2(at));
}

static void fills_have_words_of_all_widths(void **state)
{
	const CUdeviceptr at = alloc(64);
	uint32_t words[16];
	uint16_t halves[32];

	(void)state;
	is_good(cuMemsetD8_v2(at, 0, 64));
	is_good(cuMemsetD32_v2(at, 0xdeadbeef, 2));
	is_good(cuMemsetD2D32_v2(at + 16, 8, 7, 1, 3));
	is_good(cuMemcpyDtoH_v2(words, at, 64));
	assert_int_equal(words[0], 0xdeadbeef);
	assert_int_equal(words[1], 0xdeadbeef);
	assert_int_equal(words[2], 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(words[4 + i], i % 2 || i > 5 ? 0 : 7);
	is_good(cuMemsetD16_v2(at + 2, 0x1234, 3));
	is_good(cuMemcpyDtoH_v2(halves, at, 64));
	assert_int_equal(halves[0], 0xbeef);
	assert_int_equal(halves[3], 0x1234);
	assert_int_equal(halves[4], 0);
	assert_int_equal(cuMemsetD32_v2(at + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuMemsetD8_v2(at, 0, 65), CUDA_ERROR_INVALID_VALUE);
	is_good(cuMemFree_v2(at));
}

static void large_zeros_end_where_they_should(void **state)
{
	const size_t nbytes = 3 << 20, begin = 70001, end = (2 << 20) + 3;
	const CUdeviceptr at = alloc(nbytes);
	unsigned char *const host = malloc(nbytes);

	(void)state;
	assert_non_null(host);
	is_good(cuMemsetD8_v2(at, 0x5a, nbytes / 2));
	is_good(cuMemsetD8_v2(at + begin, 0, end - begin));
	is_good(cuMemsetD8_v2(at + end, 0xa5, nbytes - end));
	is_good(cuMemcpyDtoH_v2(host, at, nbytes));
	for (size_t i = 0; i < nbytes; i++)
		if (host[i] != (i < begin ? 0x5a : i < end ? 0 : 0xa5))
			fail_msg("byte %zu is %d", i, host[i]);
	free(host);
	is_good(cuMemFree_v2(at));
}

/* What a copy that is queued reads may change once the call is back. */
static void pageable_memory_is_read_before_a_call_is_back(void **state)
{
	const CUdeviceptr at = alloc(NBYTES);
	unsigned char host[NBYTES];
	CUstream stream;

	(void)state;
	is_good(cuStreamCreate(&stream, 1));
	for (int i = 0; i < 100; i++) {
		memset(host, 1, NBYTES);
		is_good(cuMemcpyHtoDAsync_v2(at, host, NBYTES, stream));
		memset(host, 2, NBYTES);
		is_good(cuMemcpyDtoHAsync_v2(host, at, NBYTES, stream));
		assert_int_equal(host[0], 1);
		assert_int_equal(host[NBYTES - 1], 1);
	}
	is_good(cuStreamDestroy_v2(stream));
	is_good(cuMemFree_v2(at));
}

static void many_copies_are_one_call(void **state)
{
	const CUdeviceptr at = alloc(8);
	unsigned char to[2][4] = { "", "" };
	CUdeviceptr tos[] = { pointer(to[0]), pointer(to[1]) }, froms[] = { at, at + 4 };
	size_t nbytes[] = { 4, 4 }, starts[] = { 0 }, fail_at;
	CUmemcpyAttributes attributes[] = { { .srcAccessOrder =
						      CU_MEMCPY_SRC_ACCESS_ORDER_STREAM } };
	CUstream stream;

	(void)state;
	is_good(cuStreamCreate(&stream, 0));
	is_good(cuMemsetD8Async(at, 5, 8, stream));
	is_good(cuMemcpyBatchAsync_v2(tos, froms, nbytes, 2, attributes, starts, 1, stream));
	is_good(cuStreamSynchronize(stream));
	assert_int_equal(to[0][0] + to[1][3], 10);
	nbytes[1] = 5;
	assert_int_equal(
		cuMemcpyBatchAsync(tos, froms, nbytes, 2, attributes, starts, 1, &fail_at, stream),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(fail_at, 1);
	assert_int_equal(cuMemcpyBatchAsync_v2(tos, froms, nbytes, 2, attributes, starts, 1, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	is_good(cuStreamDestroy_v2(stream));
	is_good(cuMemFree_v2(at));
}

/* -- Whose an address is ------------------------------------------------------------------------ */

static int ask(CUdeviceptr at, CUpointer_attribute attribute)
{
	int answer = -9;

	is_good(cuPointerGetAttribute(&answer, attribute, at));
	return answer;
}

static void addresses_tell_whose_they_are(void **state)
{
	const CUdeviceptr at = alloc(NBYTES);
	CUdeviceptr base, managed;
	size_t nbytes;
	unsigned flags;
	CUcontext context, current;
	void *host;
	int is_managed;

	(void)state;
	is_good(cuMemHostAlloc(&host, 100, 1));
	is_good(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
	assert_int_equal(ask(at + 5, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_DEVICE);
	assert_int_equal(ask(pointer(host), CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_HOST);
	assert_int_equal(ask(managed, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_DEVICE);
	is_good(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
	assert_int_equal(is_managed, 1); /* it writes all 4 bytes */
	assert_int_equal(ask(at, CU_POINTER_ATTRIBUTE_MAPPED), 1);
	assert_int_equal(ask(at, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL), 0);
	is_good(cuPointerGetAttribute(&context, CU_POINTER_ATTRIBUTE_CONTEXT, at));
	is_good(cuCtxGetCurrent(&current));
	assert_ptr_equal(context, current);
	is_good(cuMemGetAddressRange_v2(&base, &nbytes, at + 77));
	assert_true(base == at && nbytes == NBYTES);
	assert_int_equal(cuMemGetAddressRange_v2(&base, &nbytes, pointer(&base)),
			 CUDA_ERROR_NOT_FOUND);
	is_good(cuMemHostGetDevicePointer_v2(&base, host, 0));
	assert_true(base == pointer(host));
	is_good(cuMemHostGetFlags(&flags, host));
	assert_int_equal(flags, 3);
	is_good(cuMemFreeHost(host));
	is_good(cuMemFree_v2(managed));
	is_good(cuMemFree_v2(at));
}

static void an_unknown_address_answers_with_nothing(void **state)
{
	CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
					     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
					     CU_POINTER_ATTRIBUTE_RANGE_SIZE };
	int type = 9, ordinal = 9, here = 0;
	size_t nbytes = 9;
	void *out[] = { &type, &ordinal, &nbytes };

	(void)state;
	is_good(cuPointerGetAttributes(3, attributes, out, pointer(&here)));
	assert_int_equal(type, 0);
	assert_int_equal(ordinal, -2);
	assert_int_equal(nbytes, 9);
	assert_int_equal(
		cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer(&here)),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(
		cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer(&here)),
		CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuPointerGetAttributes(0, attributes, out, pointer(&here)),
			 CUDA_ERROR_INVALID_VALUE);
	attributes[0] = (CUpointer_attribute)22;
	assert_int_equal(cuPointerGetAttributes(3, attributes, out, pointer(&here)),
			 CUDA_ERROR_INVALID_VALUE);
}

static void host_memory_is_registered_once(void **state)
{
	void *host = aligned_alloc(4096, 8192);

	(void)state;
	is_good(cuMemHostRegister_v2(host, 8192, 0));
	assert_int_equal(cuMemHostRegister_v2(host, 8192, 0),
			 CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	assert_int_equal(cuMemHostUnregister((char *)host + 4096), CUDA_ERROR_INVALID_VALUE);
	is_good(cuMemHostUnregister(host));
	assert_int_equal(cuMemHostUnregister(host), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	free(host);
}

static void what_is_allocated_is_not_free(void **state)
{
	size_t before, after, total, whole;
	CUdeviceptr at;

	(void)state;
	is_good(cuMemGetInfo_v2(&before, &total));
	at = alloc(1 << 22);
	is_good(cuMemGetInfo_v2(&after, &total));
	assert_true(after + (1 << 22) <= before);
	is_good(cuDeviceTotalMem_v2(&whole, 0));
	assert_int_equal(total, whole);
	is_good(cuMemFree_v2(at));
}

static void a_handle_is_not_for_its_own_process(void **state)
{
	const CUdeviceptr at = alloc(NBYTES);
	CUipcMemHandle handle;
	CUipcEventHandle of_event;
	CUdeviceptr opened;
	CUevent event, other;

	(void)state;
	is_good(cuIpcGetMemHandle(&handle, at));
	assert_int_equal(cuIpcOpenMemHandle_v2(&opened, handle, 1), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuIpcOpenMemHandle_v2(&opened, handle, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_not_equal(cuIpcGetMemHandle(&handle, pointer(&handle)), CUDA_SUCCESS);
	assert_int_not_equal(cuIpcCloseMemHandle(at), CUDA_SUCCESS);
	is_good(cuMemFree_v2(at));
	is_good(cuEventCreate(&event, 2));
	assert_int_equal(cuIpcGetEventHandle(&of_event, event), CUDA_ERROR_INVALID_VALUE);
	is_good(cuEventDestroy_v2(event));
	is_good(cuEventCreate(&event, 6));
	assert_int_equal(cuIpcGetEventHandle(NULL, event), CUDA_ERROR_INVALID_VALUE);
	is_good(cuIpcGetEventHandle(&of_event, event));
	assert_int_equal(cuIpcOpenEventHandle(&other, of_event), CUDA_ERROR_INVALID_CONTEXT);
	is_good(cuEventDestroy_v2(event));
}

static void contexts_copy_to_each_other(void **state)
{
	CUcontext here, there;
	CUdeviceptr from = alloc(8), to;
	int word = 0;

	(void)state;
	is_good(cuCtxGetCurrent(&here));
	is_good(cuCtxCreate_v2(&there, 0, 1));
	to = alloc(8);
	is_good(cuCtxPopCurrent_v2(&there));
	is_good(cuMemsetD32_v2(from, 31, 2));
	is_good(cuMemcpyPeer(to, there, from, here, 8));
	is_good(cuMemcpyDtoH_v2(&word, to + 4, 4));
	assert_int_equal(word, 31);
	is_good(cuMemFree_v2(to));
	is_good(cuMemFree_v2(from));
	is_good(cuCtxDestroy_v2(there));
	assert_int_equal(cuMemcpyPeer(to, there, from, here, 8), CUDA_ERROR_INVALID_CONTEXT);
}

/* -- Memory and addresses apart ------------------------------------------------------------------- */

static void memory_is_mapped_twice_by_a_descriptor(void **state)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 1 },
	};
	const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
					 CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle, other, kept;
	CUmemAllocationProp got;
	CUdeviceptr first, second;
	unsigned long long flags;
	size_t nbytes;
	int fd, word = 0;

	(void)state;
	is_good(cuMemGetAllocationGranularity(&nbytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	is_good(cuMemCreate(&handle, nbytes, &prop, 0));
	is_good(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					     0));
	is_good(cuMemImportFromShareableHandle(&other, (void *)(intptr_t)fd,
					       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(fd);
	is_good(cuMemGetAllocationPropertiesFromHandle(&got, other));
	assert_int_equal(got.location.id, 1);
	is_good(cuMemAddressReserve(&first, nbytes, 0, 0, 0));
	is_good(cuMemAddressReserve(&second, nbytes, 0, 0, 0));
	is_good(cuMemMap(first, nbytes, 0, handle, 0));
	is_good(cuMemMap(second, nbytes, 0, other, 0));
	is_good(cuMemSetAccess(first, nbytes, &access, 1));
	is_good(cuMemSetAccess(second, nbytes, &access, 1));
	is_good(cuMemGetAccess(&flags, &access.location, first));
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	is_good(cuMemGetAccess(&flags, &prop.location, first)); /* another device */
	assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	is_good(cuMemsetD32_v2(first + 4096, 77, 1));
	is_good(cuMemcpyDtoH_v2(&word, second + 4096, 4));
	assert_int_equal(word, 77);
	is_good(cuMemRetainAllocationHandle(&kept, (void *)(uintptr_t)first));
	is_good(cuMemRelease(kept));
	is_good(cuMemUnmap(first, nbytes));
	is_good(cuMemUnmap(second, nbytes));
	is_good(cuMemAddressFree(first, nbytes));
	is_good(cuMemAddressFree(second, nbytes));
	is_good(cuMemRelease(handle));
	is_good(cuMemRelease(other));
	assert_int_equal(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
}

static void a_handle_of_a_fabric_is_refused(void **state)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemGenericAllocationHandle handle;

	(void)state;
	assert_int_not_equal(cuMemCreate(&handle, 2 << 20, &prop, 0), CUDA_SUCCESS);
}

static void what_was_not_asked_for_is_not_given(void **state)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	const CUmemAccessDesc nowhere = { { CU_MEM_LOCATION_TYPE_DEVICE, 77 },
					  CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp got;
	CUdeviceptr at;
	size_t unit;
	int fd;

	(void)state;
	is_good(cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	is_good(cuMemCreate(&handle, 2 * unit, &prop, 0));
	assert_int_equal(cuMemExportToShareableHandle(&fd, handle,
						      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			 CUDA_ERROR_INVALID_VALUE);
	is_good(cuMemGetAllocationPropertiesFromHandle(&got, handle));
	assert_int_equal(got.requestedHandleTypes, CU_MEM_HANDLE_TYPE_NONE);
	is_good(cuMemAddressReserve(&at, 4 * unit, 0, 0, 0));
	assert_int_equal(cuMemMap(at, unit, 0, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuMemMap(at, unit, unit, handle, 0), CUDA_ERROR_NOT_SUPPORTED);
	is_good(cuMemUnmap(at, unit)); /* where nothing is mapped */
	is_good(cuMemMap(at, 2 * unit, 0, handle, 0));
	assert_int_equal(cuMemSetAccess(at, 2 * unit, &nowhere, 1), CUDA_ERROR_INVALID_VALUE);
	is_good(cuMemUnmap(at, 2 * unit));
	is_good(cuMemAddressFree(at, 4 * unit));
	is_good(cuMemRelease(handle));
	assert_int_equal(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)-1,
							CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
			 CUDA_ERROR_UNKNOWN);
}

/* -- Pools ------------------------------------------------------------------------------------------ */

static void pools_give_memory_in_the_order_of_a_stream(void **state)
{
	const CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemoryPool pool, standard, now;
	CUdeviceptr at;
	CUstream stream;
	cuuint64_t used;
	int word = 0, truth[2] = { 77, 77 };

	(void)state;
	is_good(cuMemPoolCreate(&pool, &props));
	is_good(cuDeviceGetDefaultMemPool(&standard, 0));
	is_good(cuDeviceSetMemPool(0, pool));
	is_good(cuDeviceGetMemPool(&now, 0));
	assert_ptr_equal(now, pool);
	is_good(cuStreamCreate(&stream, 0));
	is_good(cuMemAllocAsync(&at, NBYTES, stream));
	is_good(cuMemsetD32Async(at, 5, NBYTES / 4, stream));
	is_good(cuMemcpyDtoHAsync_v2(&word, at, 4, stream));
	assert_int_equal(word, 5);
	is_good(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	assert_int_equal(used, NBYTES);
	is_good(cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, at));
	assert_ptr_equal(now, pool);
	is_good(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, truth));
	assert_in_range(truth[0], 0, 1);
	assert_int_equal(truth[1], 77);
	is_good(cuMemFreeAsync(at, stream));
	is_good(cuStreamSynchronize(stream));
	is_good(cuMemPoolTrimTo(pool, 0));
	is_good(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	assert_int_equal(used, 0);
	is_good(cuMemAllocFromPoolAsync(&at, 64, standard, stream));
	is_good(cuMemFreeAsync(at, stream));
	is_good(cuStreamDestroy_v2(stream));
	is_good(cuMemPoolDestroy(pool));
	assert_int_not_equal(cuMemPoolDestroy(standard), CUDA_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_go_there_and_back),
		cmocka_unit_test(bad_copies_are_errors),
		cmocka_unit_test(boxes_are_copied),
		cmocka_unit_test(rows_are_copied),
		cmocka_unit_test(fills_have_words_of_all_widths),
		cmocka_unit_test(large_zeros_end_where_they_should),
		cmocka_unit_test(pageable_memory_is_read_before_a_call_is_back),
		cmocka_unit_test(many_copies_are_one_call),
		cmocka_unit_test(addresses_tell_whose_they_are),
		cmocka_unit_test(an_unknown_address_answers_with_nothing),
		cmocka_unit_test(host_memory_is_registered_once),
		cmocka_unit_test(what_is_allocated_is_not_free),
		cmocka_unit_test(a_handle_is_not_for_its_own_process),
		cmocka_unit_test(contexts_copy_to_each_other),
		cmocka_unit_test(memory_is_mapped_twice_by_a_descriptor),
		cmocka_unit_test(a_handle_of_a_fabric_is_refused),
		cmocka_unit_test(what_was_not_asked_for_is_not_given),
		cmocka_unit_test(pools_give_memory_in_the_order_of_a_stream),
	};

	return begin_on("2") || cmocka_run_group_tests(tests, NULL, NULL);
}
