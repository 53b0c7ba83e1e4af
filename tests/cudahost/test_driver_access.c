/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: with the guard, kernels reach memory that their device has access to, and no other. */
#include "alone.h"

#include <pthread.h>

#include "driver/driver_api.h"
#include "engine/host_abi.h"
#include "engine/memory.h"

enum { NBYTES = TTI_CUDA_GRANULARITY };

static CUcontext contexts[2];
static CUfunction ask_function;

/* What a kernel was told: 1 for itself, 2 for a thread that it started. */
struct question {
	CUdeviceptr at;
	int self, reached, is_of_thread;
};

static void *ask_in_thread(void *arg)
{
	struct question *question = arg;

	tti_cuda_kernel_join(question->self);
	question->is_of_thread = tti_cuda_kernel_self() == question->self;
	question->reached += 2 * (tti_cuda_reach(question->at) != (void *)(uintptr_t)question->at);
	return NULL;
}

static int ask(void **args, const unsigned grid[3], const unsigned block[3], size_t shared_bytes)
{
	struct question *question = *(struct question **)args[0];
	pthread_t thread;

	(void)grid, (void)block, (void)shared_bytes;
	question->self = tti_cuda_kernel_self();
	question->reached = tti_cuda_reach(question->at) != (void *)(uintptr_t)question->at;
	CHECK(pthread_create(&thread, NULL, ask_in_thread, question) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	return 0;
}

/* Whether a kernel of that device reaches the memory. */
static bool reaches(int device, CUdeviceptr at)
{
	struct question question = { .at = at }, *address = &question;

	GOOD(cuCtxSetCurrent(contexts[device]));
	GOOD(cuLaunchKernel(ask_function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &address }, NULL));
	GOOD(cuCtxSynchronize());
	CHECK(question.self == device + 1 && question.is_of_thread);
	CHECK(question.reached == 0 || question.reached == 3);
	return question.reached;
}

static void begin(void)
{
	static const size_t nbytes = sizeof(void *);
	CUmodule module;

	setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	setenv("TUTTI_CUDAHOST_GUARD", "1", 1);
	GOOD(cuInit(0));
	for (int i = 0; i < 2; i++)
		GOOD(cuDevicePrimaryCtxRetain(&contexts[i], i));
	GOOD(cuCtxSetCurrent(contexts[0]));
	GOOD(tti_cuda_kernel_register(NULL, "ask", ask, &nbytes, 1));
	GOOD(cuModuleLoadData(&module, ".version 7.0\n"));
	GOOD(cuModuleGetFunction(&ask_function, module, "ask"));
}

static void use_plain_memory(void *nothing)
{
	CUdeviceptr at;

	(void)nothing;
	begin();
	GOOD(cuMemAlloc_v2(&at, NBYTES));
	CHECK(reaches(0, at));
	CHECK(!reaches(1, at));
	GOOD(cuCtxSetCurrent(contexts[1]));
	GOOD(cuCtxEnablePeerAccess(contexts[0], 0));
	CHECK(reaches(1, at) && reaches(1, at + NBYTES - 1));
	GOOD(cuCtxSetCurrent(contexts[1]));
	GOOD(cuCtxDisablePeerAccess(contexts[0]));
	CHECK(!reaches(1, at));
	CHECK(tti_cuda_reach(at) != (void *)(uintptr_t)at); /* this is no kernel */
	GOOD(cuMemFree_v2(at));
}

static void allow(CUdeviceptr at, int device, CUmemAccess_flags flags)
{
	const CUmemAccessDesc access = { { CU_MEM_LOCATION_TYPE_DEVICE, device }, flags };
	unsigned long long now;

	GOOD(cuMemSetAccess(at, NBYTES, &access, 1));
	GOOD(cuMemGetAccess(&now, &access.location, at));
	CHECK(now == (unsigned long long)flags);
}

/* Each mapping has its own access, of each device; also the one whose memory it is. */
static void use_mapped_memory(void *nothing)
{
	const CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at[2];

	(void)nothing;
	begin();
	GOOD(cuMemCreate(&handle, NBYTES, &prop, 0));
	for (int i = 0; i < 2; i++) {
		GOOD(cuMemAddressReserve(&at[i], NBYTES, 0, 0, 0));
		GOOD(cuMemMap(at[i], NBYTES, 0, handle, 0));
		allow(at[i], i, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	}
	CHECK(reaches(0, at[0]) && reaches(1, at[1]));
	CHECK(!reaches(1, at[0]) && !reaches(0, at[1]));
	allow(at[0], 1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CHECK(reaches(0, at[0]) && reaches(1, at[0]));
	allow(at[0], 0, CU_MEM_ACCESS_FLAGS_PROT_NONE);
	CHECK(!reaches(0, at[0]) && reaches(1, at[0]));
	for (int i = 0; i < 2; i++) {
		GOOD(cuMemUnmap(at[i], NBYTES));
		CHECK(!reaches(i, at[i]));
		GOOD(cuMemAddressFree(at[i], NBYTES));
	}
	GOOD(cuMemRelease(handle));
}

static void use_host_memory(void *nothing)
{
	struct question question = { 0 }, *address = &question;
	void *host;

	(void)nothing;
	begin();
	GOOD(cuMemHostAlloc(&host, NBYTES, 0));
	question.at = (CUdeviceptr)(uintptr_t)host;
	GOOD(cuLaunchKernel(ask_function, 1, 1, 1, 1, 1, 1, 0, NULL, (void *[]){ &address }, NULL));
	GOOD(cuCtxSynchronize());
	CHECK(question.reached == 0); /* it is where it says */
	GOOD(cuMemFreeHost(host));
}

static void plain_memory_needs_peer_access(void **state)
{
	(void)state;
	alone_run(use_plain_memory, NULL);
}

static void mapped_memory_needs_access_of_its_own(void **state)
{
	(void)state;
	alone_run(use_mapped_memory, NULL);
}

static void host_memory_is_everybodys(void **state)
{
	(void)state;
	alone_run(use_host_memory, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_memory_needs_peer_access),
		cmocka_unit_test(mapped_memory_needs_access_of_its_own),
		cmocka_unit_test(host_memory_is_everybodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
