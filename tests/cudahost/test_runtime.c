/* SPDX-License-Identifier: BSD-3-Clause */
/* libcudart.so: devices, errors, memory, copies, streams, events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/primary.h"
#include "runtime/runtime.h"

/* -- Devices and errors ------------------------------------------------------------------- */

/* As NVIDIA's runtime initializes the driver: programs call both. */
static void who_counts_devices_may_call_the_driver(void **state)
{
	int (*count)(int *) = NULL;
	int n = -1;

	(void)state;
	assert_int_equal(cudaGetDriverEntryPoint("cuDeviceGetCount", (void **)&count, 0, NULL), 0);
	assert_non_null(count);
	assert_int_equal(count(&n), TTI_cudaErrorInitializationError);
	assert_int_equal(cudaGetDeviceCount(&n), 0);
	assert_int_equal(n, 3);
	n = -1;
	assert_int_equal(count(&n), 0);
	assert_int_equal(n, 3);
}

static void the_last_error_is_kept_until_it_is_asked_for(void **state)
{
	(void)state;
	assert_int_equal(cudaSetDevice(3), TTI_cudaErrorInvalidDevice);
	assert_int_equal(cudaSetDevice(0), 0);
	assert_int_equal(cudaPeekAtLastError(), TTI_cudaErrorInvalidDevice);
	assert_int_equal(cudaGetLastError(), TTI_cudaErrorInvalidDevice);
	assert_int_equal(cudaGetLastError(), 0);
}

static void errors_have_names_and_texts(void **state)
{
	(void)state;
	assert_string_equal(cudaGetErrorName(98), "cudaErrorInvalidDeviceFunction");
	assert_string_equal(cudaGetErrorString(0), "no error");
	assert_string_equal(cudaGetErrorString(1), "invalid argument");
	assert_string_equal(cudaGetErrorString(12345), "unrecognized error code");
	assert_string_equal(cudaGetErrorName(12345), "unrecognized error code");
}

static void what_is_refused_names_itself(void **state)
{
	(void)state;
	assert_int_equal(cudaMallocArray(), TTI_cudaErrorNotSupported);
	assert_non_null(strstr(tti_cuda_error_text(), "cudaMallocArray()"));
	assert_int_equal(cudaGetLastError(), TTI_cudaErrorNotSupported);
	assert_int_equal(cudaMemcpy3D(&(struct tti_cu_copy3d){ .from_array = &state }),
			 TTI_cudaErrorNotSupported);
}

static void a_device_has_a_bus_id_of_its_own(void **state)
{
	char first[16], second[16];
	int device = -1;

	(void)state;
	assert_int_equal(cudaDeviceGetPCIBusId(first, sizeof(first), 0), 0);
	assert_int_equal(cudaDeviceGetPCIBusId(second, sizeof(second), 1), 0);
	assert_string_not_equal(first, second);
	assert_int_equal(cudaDeviceGetByPCIBusId(&device, second), 0);
	assert_int_equal(device, 1);
}

static void the_properties_end_where_the_struct_ends(void **state)
{
	const size_t nbytes = TTI_CUDART_MAJOR == 13 ? 1008 : 1032;
	unsigned char props[1100];

	(void)state;
	memset(props, 0xa5, sizeof(props));
#if TTI_CUDART_MAJOR == 13
	assert_int_equal(cudaGetDeviceProperties(props, 0), 0);
#else
	assert_int_equal(cudaGetDeviceProperties_v2(props, 0), 0);
#endif
	for (size_t at = nbytes; at < sizeof(props); at++)
		assert_int_equal(props[at], 0xa5);
	assert_string_equal((const char *)props, "Tutti host memory");
}

static void peer_access_can_be_enabled_once(void **state)
{
	int can = -1;

	(void)state;
	assert_int_equal(cudaSetDevice(0), 0);
	assert_int_equal(cudaDeviceCanAccessPeer(&can, 0, 1), 0);
	assert_int_equal(can, 1);
	assert_int_equal(cudaDeviceEnablePeerAccess(1, 0), 0);
	assert_int_equal(cudaDeviceEnablePeerAccess(1, 0), TTI_cudaErrorPeerAccessAlreadyEnabled);
	assert_int_equal(cudaDeviceDisablePeerAccess(1), 0);
	assert_int_equal(cudaDeviceDisablePeerAccess(1), TTI_cudaErrorPeerAccessNotEnabled);
}

static void a_device_is_no_peer_of_itself(void **state)
{
	(void)state;
	assert_int_equal(cudaDeviceEnablePeerAccess(0, 0), TTI_cudaErrorPeerAccessUnsupported);
	assert_int_equal(cudaDeviceDisablePeerAccess(0), TTI_cudaErrorPeerAccessNotEnabled);
}

static void flags_of_a_device_are_checked(void **state)
{
	unsigned flags = 0;

	(void)state;
	assert_int_equal(cudaSetDeviceFlags(3), TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaSetDeviceFlags(0x100), TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaSetDeviceFlags(4), 0);
	assert_int_equal(cudaGetDeviceFlags(&flags), 0);
	assert_int_equal(flags, 4 | 8);
	assert_int_equal(cudaSetDeviceFlags(0), 0);
}

static void what_only_asks_makes_no_context(void **state)
{
	char props[1100];
	int value;

	(void)state;
	assert_int_equal(cudaDeviceReset(), 0);
	assert_false(tti_cuda_primary_is_active(0));
	assert_int_equal(cudaGetDeviceProperties(props, 1), 0);
	assert_int_equal(cudaDeviceGetAttribute(&value, 1, 0), 0);
	assert_int_equal(cudaDeviceCanAccessPeer(&value, 0, 1), 0);
	assert_int_equal(cudaSetDevice(1), 0);
	assert_false(tti_cuda_primary_is_active(0));
	assert_true(tti_cuda_primary_is_active(1));
	assert_int_equal(cudaInitDevice(0, 0x100, 1), TTI_cudaErrorInvalidValue);
	assert_false(tti_cuda_primary_is_active(0));
	assert_int_equal(cudaInitDevice(0, 0, 2), 0);
	assert_true(tti_cuda_primary_is_active(0));
	assert_int_equal(cudaSetDevice(0), 0);
}

static void a_device_that_was_reset_is_used_again(void **state)
{
	tti_cu_stream stream;

	(void)state;
	assert_int_equal(cudaStreamCreate(&stream), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
	assert_int_equal(cudaDeviceReset(), 0);
	assert_false(tti_cuda_primary_is_active(0));
	assert_int_equal(cudaStreamCreate(&stream), 0);
	assert_true(tti_cuda_primary_is_active(0));
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

static void a_limit_is_kept_until_the_device_is_reset(void **state)
{
	size_t before, value;

	(void)state;
	assert_int_equal(cudaDeviceGetLimit(&before, 0), 0);
	assert_int_equal(cudaDeviceSetLimit(0, before + 1), 0);
	assert_int_equal(cudaDeviceGetLimit(&value, 0), 0);
	assert_int_equal(value, before + 16); /* a multiple of it */
	assert_int_equal(cudaDeviceReset(), 0);
	assert_int_equal(cudaDeviceGetLimit(&value, 0), 0);
	assert_int_equal(value, before);
	assert_int_equal(cudaDeviceGetLimit(&value, 3), TTI_cudaErrorUnsupportedLimit);
	assert_int_equal(cudaDeviceGetLimit(&value, 7), 0);
	assert_int_equal(cudaDeviceSetLimit(7, value), TTI_cudaErrorNotPermitted);
	assert_int_equal(cudaDeviceGetLimit(&value, 10), TTI_cudaErrorInvalidValue);
}

/* -- Memory ------------------------------------------------------------------------------- */

static void pointers_say_whose_they_are(void **state)
{
	struct tti_cu_pointer_attributes of;
	void *device, *host;
	int own = 0;

	(void)state;
	assert_int_equal(cudaSetDevice(1), 0);
	assert_int_equal(cudaMalloc(&device, 100), 0);
	assert_int_equal(cudaMallocHost(&host, 100), 0);
	assert_int_equal(cudaPointerGetAttributes(&of, (char *)device + 50), 0);
	assert_int_equal(of.type, TTI_CUDA_DEVICE);
	assert_int_equal(of.device, 1);
	assert_ptr_equal(of.device_pointer, (char *)device + 50);
	assert_null(of.host_pointer);
	assert_int_equal(cudaPointerGetAttributes(&of, host), 0);
	assert_int_equal(of.type, TTI_CUDA_HOST);
	assert_ptr_equal(of.host_pointer, host);
	assert_int_equal(cudaPointerGetAttributes(&of, &own), 0);
	assert_int_equal(of.type, TTI_CUDA_UNREGISTERED);
	assert_int_equal(cudaFree(device), 0);
	assert_int_equal(cudaFreeHost(host), 0);
	assert_int_equal(cudaSetDevice(0), 0);
}

static void freed_memory_cannot_be_freed_again(void **state)
{
	void *memory;

	(void)state;
	assert_int_equal(cudaMalloc(&memory, 10), 0);
	assert_int_equal(cudaFree(memory), 0);
	assert_int_equal(cudaFree(memory), TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaFree(NULL), 0);
}

static void bytes_come_back_as_they_were_copied(void **state)
{
	char from[1000], to[1000];
	void *first, *second;

	(void)state;
	for (size_t at = 0; at < sizeof(from); at++)
		from[at] = (char)(at * 7);
	assert_int_equal(cudaMalloc(&first, sizeof(from)), 0);
	assert_int_equal(cudaMalloc(&second, sizeof(from)), 0);
	assert_int_equal(cudaMemcpy(first, from, sizeof(from), 1), 0);
	assert_int_equal(cudaMemcpy(second, first, sizeof(from), 3), 0);
	assert_int_equal(cudaMemcpy(to, second, sizeof(from), 2), 0);
	assert_memory_equal(from, to, sizeof(from));
	assert_int_equal(cudaMemcpy(to, second, sizeof(from), 9),
			 TTI_cudaErrorInvalidMemcpyDirection);
	assert_int_equal(cudaMemcpy(to, second, 0, 9), 0);
	assert_int_equal(cudaFree(first), 0);
	assert_int_equal(cudaFree(second), 0);
}

static void a_copy_over_the_end_is_an_error(void **state)
{
	char to[5000];
	void *memory;

	(void)state;
	assert_int_equal(cudaMalloc(&memory, 10), 0);
	assert_int_equal(cudaMemcpy(to, memory, 5000, 4), TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaFree(memory), 0);
}

static void rows_are_copied_and_what_is_between_them_is_not(void **state)
{
	char host[4][8], back[4][8];
	size_t pitch;
	void *memory;

	(void)state;
	memset(host, 'x', sizeof(host));
	memset(back, '.', sizeof(back));
	assert_int_equal(cudaMallocPitch(&memory, &pitch, 5, 4), 0);
	assert_int_equal(pitch % 512, 0);
	assert_int_equal(cudaMemset2D(memory, pitch, 'y', 5, 4), 0);
	assert_int_equal(cudaMemcpy2D(memory, pitch, host, 8, 3, 4, 1), 0);
	assert_int_equal(cudaMemcpy2D(back, 8, memory, pitch, 5, 4, 2), 0);
	for (int row = 0; row < 4; row++)
		assert_memory_equal(back[row], "xxxyy...", 8);
	assert_int_equal(cudaMemcpy2D(back, 8, memory, pitch, 9, 4, 2),
			 TTI_cudaErrorInvalidPitchValue);
	assert_int_equal(cudaFree(memory), 0);
}

static void a_box_is_copied_from_where_it_begins(void **state)
{
	struct tti_cu_copy3d copy = { .extent = { 2, 2, 2 }, .kind = 4 };
	char from[3][3][4], to[2][2][2];

	(void)state;
	for (int at = 0; at < 36; at++)
		(&from[0][0][0])[at] = (char)at;
	copy.from = (struct tti_cu_pitched){ from, 4, 4, 3 };
	copy.from_pos = (struct tti_cu_pos){ 1, 1, 1 };
	copy.to = (struct tti_cu_pitched){ to, 2, 2, 2 };
	assert_int_equal(cudaMemcpy3D(&copy), 0);
	for (int z = 0; z < 2; z++)
		for (int y = 0; y < 2; y++)
			for (int x = 0; x < 2; x++)
				assert_int_equal(to[z][y][x], from[z + 1][y + 1][x + 1]);
	copy.to.pitch = 1;
	assert_int_equal(cudaMemcpy3D(&copy), TTI_cudaErrorInvalidPitchValue);
	copy.to = (struct tti_cu_pitched){ to, 2, 2, 1 };
	assert_int_equal(cudaMemcpy3D(&copy), TTI_cudaErrorInvalidPitchValue);
}

static void a_batch_copies_all(void **state)
{
	int from[3] = { 1, 2, 3 }, to[3] = { 0 };
	void *targets[] = { &to[2], &to[1], &to[0] };
	const void *sources[] = { &from[0], &from[1], &from[2] };
	const size_t nbytes[] = { 4, 4, 4 };
	struct tti_cu_copy_attributes attributes = { .from_order = TTI_CU_ORDER_STREAM };
	size_t first = 0;
	tti_cu_stream stream;

	(void)state;
	assert_int_equal(cudaStreamCreate(&stream), 0);
#if TTI_CUDART_MAJOR == 12
	size_t failed = 0;

	assert_int_equal(cudaMemcpyBatchAsync(targets, sources, nbytes, 3, &attributes, &first, 1,
					      &failed, stream),
			 0);
	assert_int_equal(failed, SIZE_MAX);
#else
	assert_int_equal(
		cudaMemcpyBatchAsync(targets, sources, nbytes, 3, &attributes, &first, 1, stream),
		0);
#endif
	assert_int_equal(cudaStreamSynchronize(stream), 0);
	assert_memory_equal(to, ((int[]){ 3, 2, 1 }), sizeof(to));
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

static void a_batch_has_to_be_in_order(void **state)
{
	int from[2] = { 1, 2 }, to[2] = { 0 };
	void *targets[] = { &to[0], &to[1] };
	const void *sources[] = { &from[0], &from[1] };
	const size_t nbytes[] = { 4, 4 };
	struct tti_cu_copy_attributes attributes[2] = { { .from_order = TTI_CU_ORDER_STREAM },
							{ .from_order = TTI_CU_ORDER_STREAM } };
	struct {
		size_t n, first[2], nattributes;
		bool is_legacy;
	} wrong[] = {
		{ 2, { 1 }, 1, false },    { 0, { 0 }, 1, false },    { 2, { 0, 0 }, 2, false },
		{ 2, { 0, 2 }, 2, false }, { 2, { 0, 1 }, 0, false }, { 2, { 0, 1 }, 2, true },
	};
	tti_cu_stream stream;

	(void)state;
	assert_int_equal(cudaStreamCreate(&stream), 0);
	for (size_t at = 0; at < sizeof(wrong) / sizeof(wrong[0]); at++) {
#if TTI_CUDART_MAJOR == 12
		const int error = cudaMemcpyBatchAsync(
			targets, sources, nbytes, wrong[at].n, attributes, wrong[at].first,
			wrong[at].nattributes, NULL, wrong[at].is_legacy ? NULL : stream);
#else
		const int error = cudaMemcpyBatchAsync(
			targets, sources, nbytes, wrong[at].n, attributes, wrong[at].first,
			wrong[at].nattributes, wrong[at].is_legacy ? NULL : stream);
#endif
		assert_int_equal(error, TTI_cudaErrorInvalidValue);
	}
	assert_int_equal(cudaStreamSynchronize(stream), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
	assert_memory_equal(to, ((int[]){ 0, 0 }), sizeof(to));
}

/* Of cudaMemPoolAttr. */
enum { RELEASE_THRESHOLD = 4, RESERVED_NOW = 5 };

static void a_pool_gives_back_what_it_keeps(void **state)
{
	uint64_t keep = UINT64_MAX, reserved = 0;
	tti_cu_stream stream;
	tti_cu_pool pool;
	void *memory;

	(void)state;
	assert_int_equal(cudaStreamCreate(&stream), 0);
	assert_int_equal(cudaDeviceGetDefaultMemPool(&pool, 0), 0);
	assert_int_equal(cudaMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &keep), 0);
	assert_int_equal(cudaMallocFromPoolAsync(&memory, 1 << 20, pool, stream), 0);
	assert_int_equal(cudaFreeAsync(memory, stream), 0);
	assert_int_equal(cudaStreamSynchronize(stream), 0);
	assert_int_equal(cudaMemPoolGetAttribute(pool, RESERVED_NOW, &reserved), 0);
	assert_true(reserved >= 1 << 20);
	assert_int_equal(cudaMemPoolTrimTo(pool, 0), 0);
	assert_int_equal(cudaMemPoolGetAttribute(pool, RESERVED_NOW, &reserved), 0);
	assert_int_equal(reserved, 0);
	keep = 0;
	assert_int_equal(cudaMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &keep), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

/* -- Streams ------------------------------------------------------------------------------ */

static atomic_int gate, was_called;

static void wait_at_gate(void *arg)
{
	while (!atomic_load(&gate))
		usleep(100);
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void host_functions_run_in_the_order_of_the_stream(void **state)
{
	tti_cu_stream stream;

	(void)state;
	atomic_store(&gate, 0);
	atomic_store(&was_called, 0);
	assert_int_equal(cudaStreamCreateWithFlags(&stream, 1), 0);
	assert_int_equal(cudaLaunchHostFunc(stream, wait_at_gate, &was_called), 0);
	assert_int_equal(cudaLaunchHostFunc(stream, wait_at_gate, &was_called), 0);
	(void)cudaGetLastError();
	assert_int_equal(cudaStreamQuery(stream), TTI_cudaErrorNotReady);
	assert_int_equal(cudaGetLastError(), 0); /* an answer, and no error */
	assert_int_equal(atomic_load(&was_called), 0);
	atomic_store(&gate, 1);
	assert_int_equal(cudaStreamSynchronize(stream), 0);
	assert_int_equal(atomic_load(&was_called), 2);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

static void call_cuda(void *out)
{
	void *memory;

	*(int *)out = cudaMalloc(&memory, 1);
}

static void ask_cuda(void *out)
{
	int *errors = out;

	errors[0] = cudaGetDeviceCount(&errors[4]);
	errors[1] = cudaGetDevice(&errors[4]);
	errors[2] = cudaPeekAtLastError();
}

static void host_functions_may_not_call_cuda(void **state)
{
	int error = 0, errors[5] = { 9, 9, 9, 9, 9 };

	(void)state;
	assert_int_equal(cudaLaunchHostFunc(NULL, call_cuda, &error), 0);
	assert_int_equal(cudaStreamSynchronize(NULL), 0);
	assert_int_equal(error, TTI_cudaErrorNotPermitted);
	assert_int_equal(cudaLaunchHostFunc(NULL, ask_cuda, errors), 0);
	assert_int_equal(cudaStreamSynchronize(NULL), 0);
	assert_int_equal(errors[0], 0);
	assert_int_equal(errors[1], TTI_cudaErrorNotPermitted);
	assert_int_equal(errors[2], TTI_cudaErrorNotPermitted);
}

static void note_callback(tti_cu_stream stream, int status, void *arg)
{
	*(tti_cu_stream *)arg = status ? NULL : stream;
}

static void a_callback_gets_its_stream(void **state)
{
	tti_cu_stream stream, seen = NULL;

	(void)state;
	assert_int_equal(cudaStreamCreate(&stream), 0);
	assert_int_equal(cudaStreamAddCallback(stream, note_callback, &seen, 0), 0);
	assert_int_equal(cudaStreamSynchronize(stream), 0);
	assert_ptr_equal(seen, stream);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

static void the_thread_has_a_null_stream_of_its_own(void **state)
{
	unsigned long long legacy, own;

	(void)state;
	assert_int_equal(cudaStreamGetId(NULL, &legacy), 0);
	assert_int_equal(cudaStreamGetId_ptsz(NULL, &own), 0);
	assert_true(legacy != own);
	assert_int_equal(cudaStreamGetId((tti_cu_stream)(uintptr_t)2, &own), 0);
	assert_true(legacy != own);
}

static void a_copy_waits_for_what_is_queued(void **state)
{
	tti_cu_stream stream;
	void *memory;
	char byte = 0;

	(void)state;
	atomic_store(&gate, 1);
	assert_int_equal(cudaMalloc(&memory, 1), 0);
	assert_int_equal(cudaStreamCreate(&stream), 0);
	assert_int_equal(cudaLaunchHostFunc(stream, wait_at_gate, &was_called), 0);
	assert_int_equal(cudaMemsetAsync(memory, 5, 1, stream), 0);
	assert_int_equal(cudaMemcpy(&byte, memory, 1, 2), 0);
	assert_int_equal(byte, 5);
	assert_int_equal(cudaStreamDestroy(stream), 0);
	assert_int_equal(cudaFree(memory), 0);
}

static void an_event_is_past_behind_what_it_recorded(void **state)
{
	tti_cu_stream stream;
	tti_cu_event first, second;
	float ms = -1;

	(void)state;
	atomic_store(&gate, 0);
	assert_int_equal(cudaStreamCreate(&stream), 0);
	assert_int_equal(cudaEventCreate(&first), 0);
	assert_int_equal(cudaEventCreateWithFlags(&second, 0), 0);
	assert_int_equal(cudaEventRecord(first, stream), 0);
	assert_int_equal(cudaLaunchHostFunc(stream, wait_at_gate, &was_called), 0);
	assert_int_equal(cudaEventRecord(second, stream), 0);
	assert_int_equal(cudaEventQuery(second), TTI_cudaErrorNotReady);
	atomic_store(&gate, 1);
	assert_int_equal(cudaEventSynchronize(second), 0);
	assert_int_equal(cudaEventElapsedTime(&ms, first, second), 0);
	assert_true(ms >= 0);
	assert_int_equal(cudaEventDestroy(first), 0);
	assert_int_equal(cudaEventDestroy(second), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
}

static void a_handle_of_an_event_is_for_other_processes(void **state)
{
	struct tti_cu_ipc_handle handle;
	tti_cu_event event, other;

	(void)state;
	assert_int_equal(cudaEventCreateWithFlags(&event, 4), TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaEventCreateWithFlags(&event, 6), 0);
	assert_int_equal(cudaIpcGetEventHandle(NULL, event), TTI_cudaErrorInvalidValue);
	assert_int_equal(cudaIpcGetEventHandle(&handle, event), 0);
	assert_int_equal(cudaIpcOpenEventHandle(&other, handle), TTI_cudaErrorDeviceUninitialized);
	assert_int_equal(cudaEventDestroy(event), 0);
}

static void a_stream_that_is_gone_is_an_error(void **state)
{
	tti_cu_stream stream;

	(void)state;
	assert_int_equal(cudaStreamCreate(&stream), 0);
	assert_int_equal(cudaStreamDestroy(stream), 0);
	assert_int_equal(cudaStreamSynchronize(stream), TTI_cudaErrorInvalidResourceHandle);
}

static void versions_are_those_of_the_major(void **state)
{
	int version = 0;

	(void)state;
	assert_int_equal(cudaRuntimeGetVersion(&version), 0);
	assert_int_equal(version / 1000, TTI_CUDART_MAJOR);
	assert_int_equal(cudaDriverGetVersion(&version), 0);
	assert_true(version >= 12000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_counts_devices_may_call_the_driver),
		cmocka_unit_test(the_last_error_is_kept_until_it_is_asked_for),
		cmocka_unit_test(errors_have_names_and_texts),
		cmocka_unit_test(what_is_refused_names_itself),
		cmocka_unit_test(a_device_has_a_bus_id_of_its_own),
		cmocka_unit_test(the_properties_end_where_the_struct_ends),
		cmocka_unit_test(peer_access_can_be_enabled_once),
		cmocka_unit_test(a_device_is_no_peer_of_itself),
		cmocka_unit_test(flags_of_a_device_are_checked),
		cmocka_unit_test(what_only_asks_makes_no_context),
		cmocka_unit_test(a_device_that_was_reset_is_used_again),
		cmocka_unit_test(a_limit_is_kept_until_the_device_is_reset),
		cmocka_unit_test(pointers_say_whose_they_are),
		cmocka_unit_test(freed_memory_cannot_be_freed_again),
		cmocka_unit_test(bytes_come_back_as_they_were_copied),
		cmocka_unit_test(a_copy_over_the_end_is_an_error),
		cmocka_unit_test(rows_are_copied_and_what_is_between_them_is_not),
		cmocka_unit_test(a_box_is_copied_from_where_it_begins),
		cmocka_unit_test(a_batch_copies_all),
		cmocka_unit_test(a_batch_has_to_be_in_order),
		cmocka_unit_test(a_pool_gives_back_what_it_keeps),
		cmocka_unit_test(host_functions_run_in_the_order_of_the_stream),
		cmocka_unit_test(host_functions_may_not_call_cuda),
		cmocka_unit_test(a_callback_gets_its_stream),
		cmocka_unit_test(the_thread_has_a_null_stream_of_its_own),
		cmocka_unit_test(a_copy_waits_for_what_is_queued),
		cmocka_unit_test(an_event_is_past_behind_what_it_recorded),
		cmocka_unit_test(a_handle_of_an_event_is_for_other_processes),
		cmocka_unit_test(a_stream_that_is_gone_is_an_error),
		cmocka_unit_test(versions_are_those_of_the_major),
	};

	(void)setenv("TUTTI_CUDAHOST_GPUS", "3", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
