/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: variables that say what devices are and can. */
#include "alone.h"

#include "driver/driver_api.h"
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

static void bad_values_leave_no_device(void **state)
{
	struct setting bad[] = {
		{ "TUTTI_CUDAHOST_NO_PEER", "0-3" }, { "TUTTI_CUDAHOST_NO_PEER", "0" },
		{ "TUTTI_CUDAHOST_NO_PEER", "1-1" }, { "TUTTI_CUDAHOST_LIE", "0-1," },
		{ "TUTTI_CUDAHOST_LIE", "0-1x" },    { "TUTTI_CUDAHOST_LIE", "0--1" },
		{ "TUTTI_CUDAHOST_VMM", "2" },       { "TUTTI_CUDAHOST_SMS", "0" },
		{ "TUTTI_CUDAHOST_SMS", "x" },
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
