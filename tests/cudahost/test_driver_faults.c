/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: calls are counted and can be let fail, and what is held is counted. */
#include "test_driver.h"

#include <sys/wait.h>
#include <unistd.h>

#include "engine/device.h"
#include "engine/host_abi.h"
#include "engine/memory.h"

static const char image[] = ".version 7.0\n";

/* -- Calls --------------------------------------------------------------------------------- */

static void each_call_counts_once(void **state)
{
	CUresult (*get)(int *) = NULL;
	uint64_t before;
	CUmodule module;
	CUgraph graph;
	CUgraphExec exec;
	int n;

	(void)state;
	is_good(cuGraphCreate(&graph, 0));
	before = tti_cuda_calls();
	is_good(cuModuleLoadDataEx(&module, image, 0, NULL, NULL)); /* by another function */
	assert_int_equal(tti_cuda_calls(), before + 1);
	is_good(cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0));
	assert_int_equal(tti_cuda_calls(), before + 2);
	is_good(cuGetProcAddress_v2("cuDeviceGetCount", (void **)&get, 12000, 0, NULL));
	is_good(get(&n));
	assert_int_equal(tti_cuda_calls(), before + 4);
	is_good(cuStreamSynchronize_ptsz(NULL));
	assert_int_equal(tti_cuda_calls(), before + 5);
	assert_int_equal(cuDeviceGet(NULL, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(tti_cuda_calls(), before + 6);
	is_good(cuGraphExecDestroy(exec));
	is_good(cuGraphDestroy(graph));
	is_good(cuModuleUnload(module));
}

static void chosen_calls_fail_and_do_nothing(void **state)
{
	struct tti_cuda_held before, after;
	CUdeviceptr memory[4] = { 0 };
	char call[32];

	(void)state;
	is_good(cuMemAlloc_v2(&memory[0], 1 << 20));
	tti_cuda_held(&before);
	(void)snprintf(call, sizeof(call), "call %llu ", (unsigned long long)tti_cuda_calls() + 2);
	tti_cuda_fail_calls(1, 2, CUDA_ERROR_OUT_OF_MEMORY);
	is_good(cuMemAlloc_v2(&memory[1], 1 << 20));
	assert_int_equal(cuMemAlloc_v2(&memory[2], 1 << 20), CUDA_ERROR_OUT_OF_MEMORY);
	assert_non_null(strstr(tti_cuda_error_text(), "cuMemAlloc_v2()"));
	assert_non_null(strstr(tti_cuda_error_text(), call));
	assert_int_equal(memory[2], 0);
	assert_int_equal(cuMemFree_v2(memory[0]), CUDA_ERROR_OUT_OF_MEMORY);
	is_good(cuMemAlloc_v2(&memory[3], 1 << 20));
	tti_cuda_held(&after);
	assert_int_equal(after.allocations, before.allocations + 2);
	is_good(cuMemFree_v2(memory[0]));
	is_good(cuMemFree_v2(memory[1]));
	is_good(cuMemFree_v2(memory[3]));

	tti_cuda_fail_calls(0, UINT64_MAX, 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(cuMemFree_v2(0), CUDA_ERROR_UNKNOWN);
	tti_cuda_fail_calls(0, 0, 0);
	is_good(cuMemFree_v2(0));
}

/* -- What is held -------------------------------------------------------------------------- */

struct things {
	CUdeviceptr memory, pool, address;
	CUmemGenericAllocationHandle piece;
	void *host;
	CUstream stream;
	CUevent event;
	CUgraph graph;
	CUgraphExec exec;
	CUmodule module;
	CUuserObject object;
	CUcontext context;
	int fd;
	bool has_map, is_registered, is_retained;
};

static char program_memory[4096];

static void nothing(void *arg)
{
	(void)arg;
}

static CUresult make_memory(struct things *out)
{
	const CUmemAllocationProp prop = {
		.type = CU_MEM_ALLOCATION_TYPE_PINNED,
		.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
		.location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 },
	};
	CUresult rc = cuMemAlloc_v2(&out->memory, 100);

	if (!rc)
		rc = cuMemHostAlloc(&out->host, 100, 0);
	if (!rc)
		rc = cuMemHostRegister_v2(program_memory, sizeof(program_memory), 0);
	out->is_registered = !rc;
	if (!rc)
		rc = cuMemCreate(&out->piece, TTI_CUDA_GRANULARITY, &prop, 0);
	if (!rc)
		rc = cuMemExportToShareableHandle(&out->fd, out->piece,
						  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (!rc)
		rc = cuMemAddressReserve(&out->address, TTI_CUDA_GRANULARITY, 0, 0, 0);
	if (!rc)
		rc = cuMemMap(out->address, TTI_CUDA_GRANULARITY, 0, out->piece, 0);
	out->has_map = !rc;
	return rc;
}

static CUresult make(struct things *out)
{
	CUresult rc;

	*out = (struct things){ .fd = -1 };
	rc = cuDevicePrimaryCtxRetain(&out->context, 0);
	out->is_retained = !rc;
	if (!rc)
		rc = make_memory(out);
	if (!rc)
		rc = cuStreamCreate(&out->stream, 1);
	if (!rc)
		rc = cuMemAllocAsync(&out->pool, 100, out->stream);
	if (!rc)
		rc = cuEventCreate(&out->event, 0);
	if (!rc)
		rc = cuGraphCreate(&out->graph, 0);
	if (!rc)
		rc = cuGraphInstantiateWithFlags(&out->exec, out->graph, 0);
	if (!rc)
		rc = cuModuleLoadData(&out->module, image);
	return rc ? rc : cuUserObjectCreate(&out->object, NULL, nothing, 1, 1);
}

static void release(struct things *all)
{
	if (all->object)
		is_good(cuUserObjectRelease(all->object, 1));
	if (all->module)
		is_good(cuModuleUnload(all->module));
	if (all->exec)
		is_good(cuGraphExecDestroy(all->exec));
	if (all->graph)
		is_good(cuGraphDestroy(all->graph));
	if (all->event)
		is_good(cuEventDestroy_v2(all->event));
	if (all->pool)
		is_good(cuMemFree_v2(all->pool));
	if (all->stream)
		is_good(cuStreamDestroy_v2(all->stream));
	if (all->has_map)
		is_good(cuMemUnmap(all->address, TTI_CUDA_GRANULARITY));
	if (all->address)
		is_good(cuMemAddressFree(all->address, TTI_CUDA_GRANULARITY));
	if (all->fd >= 0)
		assert_int_equal(close(all->fd), 0);
	if (all->piece)
		is_good(cuMemRelease(all->piece));
	if (all->is_registered)
		is_good(cuMemHostUnregister(program_memory));
	if (all->host)
		is_good(cuMemFreeHost(all->host));
	if (all->memory)
		is_good(cuMemFree_v2(all->memory));
	if (all->is_retained)
		is_good(cuDevicePrimaryCtxRelease_v2(0));
}

static void what_is_held_is_counted(void **state)
{
	struct tti_cuda_held before, now;
	struct things all;

	(void)state;
	is_good(make(&all)); /* what stays is there: the device's file */
	release(&all);
	tti_cuda_held(&before);
	is_good(make(&all));
	tti_cuda_held(&now);
	assert_int_equal(now.allocations, before.allocations + 2);
	assert_int_equal(now.host, before.host + 1);
	assert_int_equal(now.registered, before.registered + 1);
	assert_int_equal(now.opened, before.opened);
	assert_int_equal(now.pieces, before.pieces + 1);
	assert_int_equal(now.reserved, before.reserved + 1);
	assert_int_equal(now.maps, before.maps + 1);
	assert_int_equal(now.streams, before.streams + 1);
	assert_int_equal(now.events, before.events + 1);
	assert_int_equal(now.graphs, before.graphs + 2);
	assert_int_equal(now.execs, before.execs + 1);
	assert_int_equal(now.modules, before.modules + 1);
	assert_int_equal(now.contexts, before.contexts + 1);
	assert_int_equal(now.objects, before.objects + 1);
	assert_int_equal(now.descriptors, before.descriptors + 1);
	release(&all);
	tti_cuda_held(&now);
	assert_memory_equal(&now, &before, sizeof(now));
}

/* As a test of leaks does: each call in turn. */
static void every_call_of_a_sequence_can_fail(void **state)
{
	struct tti_cuda_held before, now;
	struct things all;
	uint64_t at = 0;
	CUresult rc;

	(void)state;
	tti_cuda_held(&before);
	do {
		tti_cuda_fail_calls(at, 1, CUDA_ERROR_LAUNCH_FAILED);
		rc = make(&all);
		tti_cuda_fail_calls(0, 0, 0);
		assert_true(rc == CUDA_SUCCESS || rc == CUDA_ERROR_LAUNCH_FAILED);
		release(&all);
		tti_cuda_held(&now);
		assert_memory_equal(&now, &before, sizeof(now));
		at++;
	} while (rc);
	assert_int_equal(at, 16); /* 15 calls */
}

/* -- The variable -------------------------------------------------------------------------- */

/* What this program does as another one: the first call that fails, with its error. */
static int be_a_program(void)
{
	CUdevice device;
	int n;
	const CUresult rc[] = { cuInit(0), cuDeviceGetCount(&n), cuDeviceGet(&device, 0) };

	for (int i = 0; i < 3; i++)
		if (rc[i])
			return 10 * (i + 1) + (rc[i] == CUDA_ERROR_OUT_OF_MEMORY ? 2
					       : rc[i] == CUDA_ERROR_UNKNOWN     ? 9
					       : rc[i] == CUDA_ERROR_NO_DEVICE   ? 1
										 : 0);
	return 0;
}

static int end_with(const char *value)
{
	const pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		setenv("TUTTI_CUDAHOST_FAIL", value, 1);
		(void)execl("/proc/self/exe", "test", "program", (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void the_variable_names_a_call(void **state)
{
	static const char *const wrong[] = { "0", "x", "2:", "2:0", "2:x", "-1", "2x", "2:1000" };

	(void)state;
	assert_int_equal(end_with("1:2"), 12);
	assert_int_equal(end_with("3:2"), 32);
	assert_int_equal(end_with("2"), 29);
	assert_int_equal(end_with("100"), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(end_with(wrong[i]), 11);
}

static int begin(void **state)
{
	(void)state;
	return begin_on("2");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_counts_once),
		cmocka_unit_test(chosen_calls_fail_and_do_nothing),
		cmocka_unit_test(what_is_held_is_counted),
		cmocka_unit_test(every_call_of_a_sequence_can_fail),
		cmocka_unit_test(the_variable_names_a_call),
	};

	(void)argv;
	if (argc > 1)
		return be_a_program();
	return cmocka_run_group_tests(tests, begin, NULL);
}
