/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: devices, contexts, and functions by their names. */
#include "test_driver.h"

#include <pthread.h>

#define NDEVICES 4

static void nothing_is_good_before_init(void **state)
{
	int n;

	(void)state;
	assert_int_equal(cuDeviceGetCount(&n), CUDA_ERROR_NOT_INITIALIZED);
	assert_int_equal(cuInit(1), CUDA_ERROR_INVALID_VALUE);
	is_good(cuDriverGetVersion(&n));
	assert_int_equal(n, 13000);
	is_good(cuInit(0));
	is_good(cuDeviceGetCount(&n));
	assert_int_equal(n, NDEVICES);
}

static void errors_have_names_and_texts(void **state)
{
	const char *name = NULL, *text = NULL;

	(void)state;
	is_good(cuGetErrorName(CUDA_ERROR_NOT_SUPPORTED, &name));
	is_good(cuGetErrorString(CUDA_ERROR_NOT_SUPPORTED, &text));
	assert_string_equal(name, "CUDA_ERROR_NOT_SUPPORTED");
	assert_true(strlen(text) > 0);
	assert_int_equal(cuGetErrorName((CUresult)12345, &name), CUDA_ERROR_INVALID_VALUE);
	assert_null(name);
	assert_int_equal(cuGetErrorName(CUDA_SUCCESS, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void devices_are_told_apart(void **state)
{
	CUuuid uuid[2], again;
	char bus[2][16];
	CUdevice device;
	int value;

	(void)state;
	for (int i = 0; i < 2; i++) {
		is_good(cuDeviceGetUuid(&uuid[i], i));
		is_good(cuDeviceGetPCIBusId(bus[i], sizeof(bus[i]), i));
		is_good(cuDeviceGetByPCIBusId(&device, bus[i]));
		assert_int_equal(device, i);
	}
	is_good(cuDeviceGetUuid_v2(&again, 1));
	assert_memory_equal(&uuid[1], &again, sizeof(again));
	assert_memory_not_equal(&uuid[0], &uuid[1], sizeof(again));
	assert_string_not_equal(bus[0], bus[1]);
	is_good(cuDeviceGetAttribute(&value, (CUdevice_attribute)33, 1));
	assert_int_equal(value, strtol(bus[1] + 5, NULL, 16));
}

static void devices_that_are_not_there_are_errors(void **state)
{
	CUdevice device;
	char text[8];
	size_t nbytes;
	int value;

	(void)state;
	assert_int_equal(cuDeviceGet(&device, NDEVICES), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuDeviceGet(&device, -1), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuDeviceTotalMem_v2(&nbytes, 77), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuDeviceGetAttribute(&value, (CUdevice_attribute)0, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_MAX, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDeviceGetPCIBusId(text, sizeof(text), 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDeviceGetByPCIBusId(&device, "0000:7f:00.0"), CUDA_ERROR_INVALID_DEVICE);
	assert_int_equal(cuDeviceGetByPCIBusId(&device, "here"), CUDA_ERROR_INVALID_VALUE);
}

static void every_attribute_has_a_value(void **state)
{
	CUdevprop prop;
	int value;

	(void)state;
	for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; i++)
		is_good(cuDeviceGetAttribute(&value, (CUdevice_attribute)i, 0));
	is_good(cuDeviceGetProperties(&prop, 0));
	assert_int_equal(prop.SIMDWidth, 32);
	is_good(cuDeviceGetName((char[3]){ "" }, 3, 0));
	is_good(cuDeviceTotalMem_v2(&(size_t){ 0 }, 0));
}

/* -- Contexts --------------------------------------------------------------------------------- */

static void without_a_context_memory_is_an_error(void **state)
{
	CUdeviceptr pointer;
	CUcontext context;

	(void)state;
	is_good(cuCtxGetCurrent(&context));
	assert_null(context);
	assert_int_equal(cuMemAlloc_v2(&pointer, 1), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuStreamSynchronize(NULL), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuCtxPopCurrent_v2(&context), CUDA_ERROR_INVALID_CONTEXT);
}

static void contexts_are_a_stack(void **state)
{
	CUcontext first, second, got;
	CUdevice device;

	(void)state;
	is_good(cuCtxCreate_v2(&first, 0, 1));
	is_good(cuCtxCreate_v4(&second, NULL, 4, 2));
	is_good(cuCtxGetDevice(&device));
	assert_int_equal(device, 2);
	is_good(cuCtxPopCurrent_v2(&got));
	assert_ptr_equal(got, second);
	is_good(cuCtxGetDevice(&device));
	assert_int_equal(device, 1);
	is_good(cuCtxPushCurrent_v2(second));
	is_good(cuCtxSetCurrent(first)); /* in the place of the second */
	is_good(cuCtxGetDevice(&device));
	assert_int_equal(device, 1);
	is_good(cuCtxSetCurrent(NULL));
	is_good(cuCtxSetCurrent(NULL));
	is_good(cuCtxGetCurrent(&got));
	assert_null(got);
	is_good(cuCtxDestroy_v2(second));
	is_good(cuCtxDestroy_v2(first));
	assert_int_equal(cuCtxDestroy_v2(first), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	assert_int_equal(cuCtxDestroy_v2(NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuCtxPushCurrent_v2(NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuCtxCreate_v2(&got, 3, 0), CUDA_ERROR_INVALID_VALUE);
}

static void *destroy(void *context)
{
	is_good(cuCtxDestroy_v2(context));
	return NULL;
}

static void a_context_that_another_thread_destroyed_is_told(void **state)
{
	CUcontext context;
	pthread_t thread;

	(void)state;
	is_good(cuCtxCreate_v2(&context, 0, 0));
	assert_int_equal(pthread_create(&thread, NULL, destroy, context), 0);
	pthread_join(thread, NULL);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	is_good(cuCtxPopCurrent_v2(NULL));
}

static void *current(void *out)
{
	is_good(cuCtxGetCurrent(out));
	return NULL;
}

static void each_thread_has_its_own_context(void **state)
{
	CUcontext context, other = (CUcontext)&context;
	pthread_t thread;

	(void)state;
	is_good(cuCtxCreate_v2(&context, 0, 0));
	assert_int_equal(pthread_create(&thread, NULL, current, &other), 0);
	pthread_join(thread, NULL);
	assert_null(other);
	is_good(cuCtxDestroy_v2(context));
}

static void primary_contexts_are_counted(void **state)
{
	CUcontext context, again;
	unsigned flags;
	int is_active;

	(void)state;
	is_good(cuDevicePrimaryCtxGetState(3, &flags, &is_active));
	assert_false(is_active);
	is_good(cuDevicePrimaryCtxSetFlags_v2(3, 2));
	is_good(cuDevicePrimaryCtxRetain(&context, 3));
	is_good(cuDevicePrimaryCtxRetain(&again, 3));
	assert_ptr_equal(context, again);
	is_good(cuDevicePrimaryCtxRelease_v2(3));
	is_good(cuDevicePrimaryCtxGetState(3, &flags, &is_active));
	assert_true(is_active);
	assert_int_equal(flags, 2);
	is_good(cuCtxSetCurrent(context));
	assert_int_equal(cuCtxDestroy_v2(context), CUDA_ERROR_INVALID_CONTEXT);
	is_good(cuDevicePrimaryCtxRelease_v2(3));
	assert_int_equal(cuDevicePrimaryCtxRelease_v2(3), CUDA_ERROR_INVALID_CONTEXT);
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	is_good(cuCtxSetCurrent(NULL));
	is_good(cuCtxSetCurrent(context)); /* what needs it fails */
	assert_int_equal(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	is_good(cuCtxSetCurrent(NULL));
	assert_int_equal(cuDevicePrimaryCtxSetFlags_v2(3, 3), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuDevicePrimaryCtxSetFlags_v2(3, 8), CUDA_ERROR_INVALID_VALUE);
}

static void contexts_tell_of_themselves(void **state)
{
	CUcontext context;
	unsigned long long id, other;
	unsigned flags, version;
	int least, greatest;
	size_t limit;

	(void)state;
	is_good(cuCtxCreate_v2(&context, 1, 1));
	is_good(cuCtxGetFlags(&flags));
	assert_int_equal(flags, 1);
	is_good(cuCtxSetFlags(4));
	is_good(cuCtxGetFlags(&flags));
	assert_int_equal(flags, 4);
	is_good(cuCtxGetId(context, &id));
	is_good(cuCtxGetApiVersion(context, &version));
	assert_int_equal(version, 3020);
	is_good(cuCtxGetStreamPriorityRange(&least, &greatest));
	assert_true(greatest < least);
	is_good(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	is_good(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
	assert_int_equal(limit, 4096);
	is_good(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4097));
	is_good(cuCtxGetLimit(&limit, CU_LIMIT_STACK_SIZE));
	assert_int_equal(limit, 4112);
	assert_int_equal(cuCtxSetLimit(CU_LIMIT_STACK_SIZE, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
	is_good(cuCtxGetLimit(&limit, (CUlimit)5));
	is_good(cuCtxGetLimit(&limit, (CUlimit)7));
	assert_int_equal(cuCtxGetLimit(&limit, (CUlimit)3), CUDA_ERROR_UNSUPPORTED_LIMIT);
	assert_int_equal(cuCtxSetFlags(3), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuCtxEnablePeerAccess(context, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	assert_int_equal(cuCtxDisablePeerAccess(context), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	assert_int_equal(cuCtxGetLimit(&limit, CU_LIMIT_MAX), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuCtxCreate_v2(&context, 0x100, 1), CUDA_ERROR_INVALID_VALUE);
	is_good(cuCtxDestroy_v2(context));
	is_good(cuCtxCreate_v2(&context, 0, 1));
	is_good(cuCtxGetId(context, &other));
	assert_true(id != other);
	is_good(cuCtxDestroy_v2(context));
}

static void peers_are_asked_for_once(void **state)
{
	CUcontext context, peer;
	int can;

	(void)state;
	is_good(cuCtxCreate_v2(&peer, 0, 1));
	is_good(cuCtxCreate_v2(&context, 0, 0));
	is_good(cuDeviceCanAccessPeer(&can, 0, 1));
	assert_int_equal(can, 1);
	is_good(cuDeviceCanAccessPeer(&can, 0, 0));
	assert_int_equal(can, 0);
	is_good(cuCtxEnablePeerAccess(peer, 0));
	assert_int_equal(cuCtxEnablePeerAccess(peer, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
	is_good(cuCtxDisablePeerAccess(peer));
	assert_int_equal(cuCtxDisablePeerAccess(peer), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
	is_good(cuDeviceGetP2PAttribute(&can, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, 0, 1));
	assert_int_equal(can, 1);
	is_good(cuCtxDestroy_v2(context));
	is_good(cuCtxDestroy_v2(peer));
	is_good(cuCtxSetCurrent(NULL));
}

/* -- Functions by their names ------------------------------------------------------------------ */

/* What a name gives. */
static void *get(const char *name, int release, cuuint64_t flags,
		 CUdriverProcAddressQueryResult expected)
{
	CUdriverProcAddressQueryResult status;
	void *address = &status;

	is_good(cuGetProcAddress_v2(name, &address, release, flags, &status));
	assert_int_equal(status, expected);
	return address;
}

/* A function's address in a pointer to data, which C has no cast for. */
static void is_at(const void *address, void (*function)(void))
{
	assert_memory_equal(&address, &function, sizeof(function));
}

#define IS(address, function) is_at(address, (void (*)(void))(function))

static void the_newest_that_a_release_knows_is_found(void **state)
{
	void *at;

	(void)state;
	at = get("cuCtxCreate", 13000, 0, CU_GET_PROC_ADDRESS_SUCCESS);
	IS(at, cuCtxCreate_v4);
	at = get("cuCtxCreate", 12000, 0, CU_GET_PROC_ADDRESS_SUCCESS);
	IS(at, cuCtxCreate_v3);
	at = get("cuMemAlloc", 13000, 0, CU_GET_PROC_ADDRESS_SUCCESS);
	IS(at, cuMemAlloc_v2);
	at = get("cuMemcpyAsync", 13000, 1, CU_GET_PROC_ADDRESS_SUCCESS);
	IS(at, cuMemcpyAsync);
	at = get("cuMemcpyAsync", 13000, 2, CU_GET_PROC_ADDRESS_SUCCESS);
	IS(at, cuMemcpyAsync_ptsz);
	at = get("cuStreamGetCaptureInfo", 11030, 2, CU_GET_PROC_ADDRESS_SUCCESS);
	IS(at, cuStreamGetCaptureInfo_v2_ptsz);
	at = get("cuMemcpyHtoD", 13000, 2, CU_GET_PROC_ADDRESS_SUCCESS);
	IS(at, cuMemcpyHtoD_v2_ptds);
	at = get("cuInit", 13000, 2, CU_GET_PROC_ADDRESS_SUCCESS);
	IS(at, cuInit);
}

static void what_is_not_found_is_told(void **state)
{
	void *at;

	(void)state;
	assert_null(get("cuNothing", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
	assert_null(get("cuMemCreate", 9000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT));
	assert_null(get("cuMemAlloc_v2", 13000, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND));
	assert_int_equal(cuGetProcAddress("cuNothing", &at, 13000, 0), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(cuGetProcAddress_v2("cuInit", &at, 99000, 0, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGetProcAddress_v2("cuInit", &at, 13000, 8, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuGetProcAddress_v2(NULL, &at, 13000, 0, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void refused_functions_are_found_and_refuse(void **state)
{
	CUresult (*function)(void);
	void *at = get("cuArrayCreate", 13000, 0, CU_GET_PROC_ADDRESS_SUCCESS);

	(void)state;
	memcpy(&function, &at, sizeof(function));
	assert_int_equal(function(), CUDA_ERROR_NOT_SUPPORTED);
	assert_int_equal(cuMulticastCreate(), CUDA_ERROR_NOT_SUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_good_before_init),
		cmocka_unit_test(errors_have_names_and_texts),
		cmocka_unit_test(devices_are_told_apart),
		cmocka_unit_test(devices_that_are_not_there_are_errors),
		cmocka_unit_test(every_attribute_has_a_value),
		cmocka_unit_test(without_a_context_memory_is_an_error),
		cmocka_unit_test(contexts_are_a_stack),
		cmocka_unit_test(a_context_that_another_thread_destroyed_is_told),
		cmocka_unit_test(each_thread_has_its_own_context),
		cmocka_unit_test(primary_contexts_are_counted),
		cmocka_unit_test(contexts_tell_of_themselves),
		cmocka_unit_test(peers_are_asked_for_once),
		cmocka_unit_test(the_newest_that_a_release_knows_is_found),
		cmocka_unit_test(what_is_not_found_is_told),
		cmocka_unit_test(refused_functions_are_found_and_refuse),
	};

	setenv("TUTTI_CUDAHOST_GPUS", "4", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
