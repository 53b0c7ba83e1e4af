/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: variables that say what devices are and can. */
#include "alone.h"

#include <stdatomic.h>
#include <time.h>

#include "driver/driver_api.h"
#include "engine/host_abi.h"
#include "engine/memory.h"

enum { NBYTES = TTI_CUDA_GRANULARITY };

struct setting {
	const char *name, *value;
};

static void begin_with(const struct setting *setting)
{
	CUcontext context;

	setenv("TUTTI_CUDAHOST_GPUS", "3", 1);
	setenv(setting->name, setting->value, 1);
	GOOD(cuInit(0));
	GOOD(cuDevicePrimaryCtxRetain(&context, 0));
	GOOD(cuCtxSetCurrent(context));
}

static void have_no_vmm(void *nothing)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;
	size_t nbytes;
	int has = 1;

	(void)nothing;
	begin_with(&(struct setting){ "TUTTI_CUDAHOST_VMM", "0" });
	GOOD(cuDeviceGetAttribute(&has, (CUdevice_attribute)102, 0));
	CHECK(!has);
	GOOD(cuDeviceGetAttribute(&has, (CUdevice_attribute)103, 0));
	CHECK(!has);
	FAILS(CUDA_ERROR_NOT_SUPPORTED, "TUTTI_CUDAHOST_VMM",
	      cuMemCreate(&handle, NBYTES, &prop, 0));
	CHECK(cuMemAddressReserve(&at, NBYTES, 0, 0, 0) == CUDA_ERROR_NOT_SUPPORTED);
	CHECK(cuMemGetAllocationGranularity(&nbytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) ==
	      CUDA_ERROR_NOT_SUPPORTED);
	CHECK(cuMemImportFromShareableHandle(&handle, NULL,
					     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) ==
	      CUDA_ERROR_NOT_SUPPORTED);
}

static void have_no_device(void *setting)
{
	const struct setting *const bad = setting;

	setenv("TUTTI_CUDAHOST_GPUS", "3", 1);
	setenv(bad->name, bad->value, 1);
	FAILS(CUDA_ERROR_NO_DEVICE, "", cuInit(0));
}

static void have_multiprocessors(void *nothing)
{
	int n;

	(void)nothing;
	begin_with(&(struct setting){ "TUTTI_CUDAHOST_SMS", "132" });
	GOOD(cuDeviceGetAttribute(&n, (CUdevice_attribute)16, 0));
	CHECK(n == 132);
}

/* -- Calls that may wait ------------------------------------------------------------------- */

static atomic_bool is_held, has_ended;

static void be_slow(void *nothing)
{
	const struct timespec nap = { .tv_nsec = 20 * 1000 * 1000 };

	(void)nothing;
	do
		nanosleep(&nap, NULL);
	while (atomic_load(&is_held));
	atomic_store(&has_ended, true);
}

/* Something that device 1 does, while the thread's context is that of device 0. */
static void begin_slow(CUstream stream)
{
	atomic_store(&has_ended, false);
	GOOD(cuLaunchHostFunc(stream, be_slow, NULL));
}

static CUstream stream_of(int device)
{
	CUcontext context, before;
	CUstream stream;

	GOOD(cuCtxGetCurrent(&before));
	GOOD(cuDevicePrimaryCtxRetain(&context, device));
	GOOD(cuCtxSetCurrent(context));
	GOOD(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	GOOD(cuCtxSetCurrent(before));
	return stream;
}

static int do_nothing(void **args, const unsigned grid[3], const unsigned block[3],
		      size_t shared_bytes)
{
	(void)args, (void)grid, (void)block, (void)shared_bytes;
	return 0;
}

static CUresult launch(CUkernel kernel, CUstream stream)
{
	return cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
}

static void wait_to_allocate(void *nothing)
{
	CUdeviceptr at;
	CUstream busy;
	void *host;

	(void)nothing;
	begin_with(&(struct setting){ "TUTTI_CUDAHOST_WAIT", "1" });
	busy = stream_of(1);
	begin_slow(busy);
	GOOD(cuMemAlloc_v2(&at, NBYTES));
	CHECK(atomic_load(&has_ended));
	begin_slow(busy);
	GOOD(cuMemHostAlloc(&host, NBYTES, 0));
	CHECK(atomic_load(&has_ended));
	begin_slow(busy);
	GOOD(cuMemFree_v2(at));
	CHECK(atomic_load(&has_ended));
	begin_slow(busy);
	GOOD(cuMemFreeHost(host));
	CHECK(atomic_load(&has_ended));
	/* In the order of a stream nothing else is waited for. */
	atomic_store(&is_held, true);
	begin_slow(busy);
	GOOD(cuMemAllocAsync(&at, NBYTES, NULL));
	GOOD(cuMemFreeAsync(at, NULL));
	CHECK(!atomic_load(&has_ended));
	atomic_store(&is_held, false);
	GOOD(cuStreamSynchronize(busy));
}

static void wait_to_load(void *nothing)
{
	CUstream busy, streams[2];
	CUfunctionLoadingState state;
	CUlibrary library;
	CUkernel kernel;

	(void)nothing;
	begin_with(&(struct setting){ "TUTTI_CUDAHOST_WAIT", "1" });
	busy = stream_of(1);
	streams[0] = stream_of(0);
	streams[1] = stream_of(0);
	CHECK(!tti_cuda_kernel_register(NULL, "nothing", do_nothing, NULL, 0));
	GOOD(cuLibraryLoadData(&library, ".version 7.0\n", NULL, NULL, 0, NULL, NULL, 0));
	GOOD(cuLibraryGetKernel(&kernel, library, "nothing"));
	GOOD(cuFuncIsLoaded(&state, (CUfunction)kernel));
	CHECK(state == CU_FUNCTION_LOADING_STATE_UNLOADED);
	begin_slow(busy);
	GOOD(launch(kernel, streams[0]));
	CHECK(atomic_load(&has_ended));
	GOOD(cuFuncIsLoaded(&state, (CUfunction)kernel));
	CHECK(state == CU_FUNCTION_LOADING_STATE_LOADED);
	/* From then on it does not. */
	atomic_store(&is_held, true);
	begin_slow(busy);
	GOOD(launch(kernel, streams[1]));
	CHECK(!atomic_load(&has_ended));
	atomic_store(&is_held, false);
	GOOD(cuStreamSynchronize(busy));
}

static void what_may_wait_waits(void **state)
{
	(void)state;
	alone_run(wait_to_allocate, NULL);
	alone_run(wait_to_load, NULL);
}

/* -- Values -------------------------------------------------------------------------------- */

static void bad_values_leave_no_device(void **state)
{
	struct setting bad[] = {
		{ "TUTTI_CUDAHOST_NO_PEER", "0-3" }, { "TUTTI_CUDAHOST_NO_PEER", "0" },
		{ "TUTTI_CUDAHOST_NO_PEER", "1-1" }, { "TUTTI_CUDAHOST_LIE", "0-1," },
		{ "TUTTI_CUDAHOST_LIE", "0-1x" },    { "TUTTI_CUDAHOST_LIE", "0--1" },
		{ "TUTTI_CUDAHOST_VMM", "2" },       { "TUTTI_CUDAHOST_SMS", "0" },
		{ "TUTTI_CUDAHOST_SMS", "x" },       { "TUTTI_CUDAHOST_WAIT", "2" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		alone_run(have_no_device, &bad[i]);
}

static void memory_apart_from_addresses_can_be_absent(void **state)
{
	(void)state;
	alone_run(have_no_vmm, NULL);
}

static void multiprocessors_are_as_many_as_wanted(void **state)
{
	(void)state;
	alone_run(have_multiprocessors, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_apart_from_addresses_can_be_absent),
		cmocka_unit_test(multiprocessors_are_as_many_as_wanted),
		cmocka_unit_test(bad_values_leave_no_device),
		cmocka_unit_test(what_may_wait_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
