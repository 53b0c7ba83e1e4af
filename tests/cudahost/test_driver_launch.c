/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: kernels that a function of the host runs, by name. */
#include "test_driver.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>

#include "engine/device.h"
#include "engine/host_abi.h"

static const char image[] = ".version 7.0\n";

static CUlibrary library;

/* Of a registered kernel, as Tutti loads its own. */
static CUfunction function_of(const char *name)
{
	CUkernel kernel;
	CUfunction function;

	is_good(cuLibraryGetKernel(&kernel, library, name));
	is_good(cuKernelGetFunction(&function, kernel));
	return function;
}

static void add(const char *name, tti_cuda_kernel_fn run, const size_t *arg_bytes, size_t nargs)
{
	assert_int_equal(tti_cuda_kernel_register(NULL, name, run, arg_bytes, nargs), 0);
}

static CUresult launch(CUfunction function, CUstream stream, void **args)
{
	return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, args, NULL);
}

/* -- Arguments ----------------------------------------------------------------------------- */

struct odd {
	char bytes[37];
};

static struct {
	struct odd odd;
	int number;
	unsigned grid[3], block[3];
	size_t shared_bytes;
	atomic_int nruns;
} got;

static int note(void **args, const unsigned grid[3], const unsigned block[3], size_t shared_bytes)
{
	assert_int_equal((uintptr_t)args[0] % 16, 0);
	assert_int_equal((uintptr_t)args[1] % 16, 0);
	got.odd = *(struct odd *)args[0];
	got.number = *(int *)args[1];
	memcpy(got.grid, grid, sizeof(got.grid));
	memcpy(got.block, block, sizeof(got.block));
	got.shared_bytes = shared_bytes;
	got.nruns++;
	return 0;
}

static void a_launch_has_copies_of_its_arguments(void **state)
{
	static const size_t nbytes[] = { sizeof(struct odd), sizeof(int) };
	struct odd odd = { .bytes = { [36] = 'x' } };
	int number = 5;
	CUstream stream;

	(void)state;
	add("note", note, nbytes, 2);
	is_good(cuStreamCreate(&stream, 1));
	is_good(cuLaunchKernel(function_of("note"), 2, 3, 4, 5, 6, 7, 1000, stream,
			       (void *[]){ &odd, &number }, NULL));
	odd.bytes[36] = 'y';
	number = 6;
	is_good(cuStreamSynchronize(stream));
	assert_int_equal(got.odd.bytes[36], 'x');
	assert_int_equal(got.number, 5);
	assert_memory_equal(got.grid, ((unsigned[]){ 2, 3, 4 }), sizeof(got.grid));
	assert_memory_equal(got.block, ((unsigned[]){ 5, 6, 7 }), sizeof(got.block));
	assert_int_equal(got.shared_bytes, 1000);
	is_good(cuStreamDestroy_v2(stream));
}

static void a_config_launches_and_records(void **state)
{
	struct odd odd = { { 0 } };
	int number = 7;
	CUevent event;
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT };
	CUlaunchConfig config = { 9, 1, 1, 32, 1, 1, 0, NULL, &attribute, 1 };

	(void)state;
	is_good(cuEventCreate(&event, 0));
	attribute.value.launchCompletionEvent.event = event;
	is_good(cuLaunchKernelEx(&config, function_of("note"), (void *[]){ &odd, &number }, NULL));
	is_good(cuEventSynchronize(event));
	assert_int_equal(got.number, 7);
	assert_int_equal(got.grid[0], 9);
	is_good(cuEventDestroy_v2(event));
	attribute = (CUlaunchAttribute){ .id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE,
					 .value.cooperative = 1 };
	assert_int_equal(
		cuLaunchKernelEx(&config, function_of("note"), (void *[]){ &odd, &number }, NULL),
		CUDA_ERROR_NOT_SUPPORTED);
}

static void what_no_device_has_is_not_launched(void **state)
{
	struct odd odd = { { 0 } };
	int number = 0;
	void *args[] = { &odd, &number };
	CUfunction note_function = function_of("note");

	(void)state;
	got.nruns = 0;
	assert_int_equal(cuLaunchKernel(note_function, 1, 1, 1, 1025, 1, 1, 0, NULL, args, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(note_function, 0, 1, 1, 1, 1, 1, 0, NULL, args, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(note_function, 1, 1, 1, 1, 1, 1, 49153, NULL, args, NULL),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(launch(note_function, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuLaunchKernel(note_function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, args),
			 CUDA_ERROR_NOT_SUPPORTED);
	assert_non_null(strstr(tti_cuda_error_text(), "note"));
	is_good(cuCtxSynchronize());
	assert_int_equal(got.nruns, 0);
}

static void bad_kernels_are_not_registered(void **state)
{
	static const size_t large[] = { 32764, 1 }, none[] = { 0 };

	(void)state;
	assert_int_equal(tti_cuda_kernel_register(NULL, NULL, note, NULL, 0), 1);
	assert_int_equal(tti_cuda_kernel_register(NULL, "bad", NULL, NULL, 0), 1);
	assert_int_equal(tti_cuda_kernel_register(NULL, "bad", note, NULL, 1), 1);
	assert_int_equal(tti_cuda_kernel_register(NULL, "bad", note, none, 1), 1);
	assert_int_equal(tti_cuda_kernel_register(NULL, "bad", note, large, 2), 1);
	add("good", note, large, 1);
	assert_int_equal(launch(function_of("bad"), NULL, NULL), CUDA_ERROR_NO_BINARY_FOR_GPU);
	assert_non_null(strstr(tti_cuda_error_text(), "kernel bad"));
}

/* -- Order --------------------------------------------------------------------------------- */

static int add_one(void **args, const unsigned grid[3], const unsigned block[3], size_t nshared)
{
	(void)grid, (void)block, (void)nshared;
	++**(int **)args[0];
	return 0;
}

static int add_ten(void **args, const unsigned grid[3], const unsigned block[3], size_t nshared)
{
	(void)grid, (void)block, (void)nshared;
	**(int **)args[0] += 10;
	return 0;
}

static const size_t one_pointer[] = { sizeof(void *) };

static void the_newest_kernel_of_a_name_runs(void **state)
{
	int n = 0, *at = &n;
	CUfunction function = function_of("newest");

	(void)state;
	add("newest", add_one, one_pointer, 1);
	is_good(launch(function, NULL, (void *[]){ &at }));
	add("newest", add_ten, one_pointer, 1);
	is_good(launch(function, NULL, (void *[]){ &at }));
	is_good(launch(function_of("newest"), NULL, (void *[]){ &at }));
	is_good(cuCtxSynchronize());
	assert_int_equal(n, 21);
}

/* Each of two says that it runs, and waits for the other. */
static int meet(void **args, const unsigned grid[3], const unsigned block[3], size_t nshared)
{
	atomic_int *nthere = *(atomic_int **)args[0];

	(void)grid, (void)block, (void)nshared;
	atomic_fetch_add(nthere, 1);
	while (atomic_load(nthere) < 2)
		sched_yield();
	return 0;
}

static void kernels_of_several_streams_run_at_the_same_time(void **state)
{
	atomic_int nthere = 0, *at = &nthere;
	CUstream stream[2];

	(void)state;
	add("meet", meet, one_pointer, 1);
	for (int i = 0; i < 2; i++)
		is_good(cuStreamCreate(&stream[i], 1));
	for (int i = 0; i < 2; i++)
		is_good(launch(function_of("meet"), stream[i], (void *[]){ &at }));
	for (int i = 0; i < 2; i++) {
		is_good(cuStreamSynchronize(stream[i]));
		is_good(cuStreamDestroy_v2(stream[i]));
	}
}

/* -- Graphs -------------------------------------------------------------------------------- */

static void captured_launches_are_replayed(void **state)
{
	int n = 0, *at = &n;
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode node;
	size_t nnodes = 1;
	CUDA_KERNEL_NODE_PARAMS params;

	(void)state;
	add("add_one", add_one, one_pointer, 1);
	is_good(cuStreamCreate(&stream, 1));
	is_good(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	is_good(launch(function_of("add_one"), stream, (void *[]){ &at }));
	is_good(cuStreamEndCapture(stream, &graph));
	assert_int_equal(n, 0);
	is_good(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 100; i++)
		is_good(cuGraphLaunch(exec, stream));
	is_good(cuStreamSynchronize(stream));
	assert_int_equal(n, 100);

	is_good(cuGraphGetNodes(graph, &node, &nnodes));
	is_good(cuGraphKernelNodeGetParams_v2(node, &params));
	assert_ptr_equal(params.func, function_of("add_one"));
	assert_ptr_equal(*(int **)params.kernelParams[0], &n);
	add("add_ten", add_ten, one_pointer, 1);
	params.func = function_of("add_ten");
	is_good(cuGraphExecKernelNodeSetParams_v2(exec, node, &params));
	is_good(cuGraphLaunch(exec, stream));
	is_good(cuStreamSynchronize(stream));
	assert_int_equal(n, 110);
	is_good(cuGraphExecDestroy(exec));
	is_good(cuGraphDestroy(graph));
	is_good(cuStreamDestroy_v2(stream));
}

static void a_node_launches(void **state)
{
	int n = 0, *at = &n;
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode node;
	CUDA_KERNEL_NODE_PARAMS params = { function_of("add_one"), 1,    1,    1,   1, 1, 1, 0,
					   (void *[]){ &at },      NULL, NULL, NULL };

	(void)state;
	is_good(cuGraphCreate(&graph, 0));
	is_good(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params));
	is_good(cuGraphInstantiateWithFlags(&exec, graph, 0));
	is_good(cuGraphLaunch(exec, NULL));
	is_good(cuCtxSynchronize());
	assert_int_equal(n, 1);
	is_good(cuGraphExecDestroy(exec));
	is_good(cuGraphDestroy(graph));
}

static void count(void *counter)
{
	atomic_fetch_add((atomic_int *)counter, 1);
}

/* What a captured call keeps, as Tutti does: until the last run of the last graph is over. */
static void an_object_goes_behind_the_last_run(void **state)
{
	atomic_int nthere = 0, ngone = 0, *at = &nthere;
	CUstreamCaptureStatus status;
	cuuint64_t id;
	CUuserObject object;
	CUstream stream;
	CUgraphExec exec;
	CUgraph graph;

	(void)state;
	is_good(cuStreamCreate(&stream, 1));
	is_good(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	is_good(launch(function_of("meet"), stream, (void *[]){ &at }));
	is_good(cuUserObjectCreate(&object, &ngone, count, 1, 1));
	is_good(cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, NULL, NULL));
	is_good(cuGraphRetainUserObject(graph, object, 1, 1));
	assert_int_equal(cuUserObjectRelease(object, 2), CUDA_ERROR_INVALID_VALUE);
	is_good(cuStreamEndCapture(stream, &graph));
	is_good(cuGraphInstantiateWithFlags(&exec, graph, 0));
	is_good(cuGraphDestroy(graph));
	is_good(cuGraphLaunch(exec, stream));
	is_good(cuGraphExecDestroy(exec)); /* does not wait for the run */
	assert_int_equal(atomic_load(&ngone), 0);
	atomic_fetch_add(&nthere, 1);
	is_good(cuStreamSynchronize(stream));
	assert_int_equal(atomic_load(&ngone), 1);
	assert_int_equal(cuUserObjectRetain(object, 1), CUDA_ERROR_INVALID_VALUE);
	is_good(cuStreamDestroy_v2(stream));
}

/* -- What is asked ------------------------------------------------------------------------- */

static void a_registered_kernel_has_attributes(void **state)
{
	CUfunction function = function_of("add_one"), unknown = function_of("unknown");
	int value = 0;

	(void)state;
	is_good(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
	assert_int_equal(value, 1024);
	is_good(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_BINARY_VERSION, (CUkernel)function,
				     0));
	assert_int_equal(value, 90);
	is_good(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
				   49152));
	assert_int_equal(cuFuncSetAttribute(function,
					    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 49153),
			 CUDA_ERROR_INVALID_VALUE);
	is_good(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 512, 0));
	assert_int_equal(value, 4);
	is_good(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 32, 16384));
	assert_int_equal(value, 3);
	assert_int_equal(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, function, 0, 0),
			 CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, unknown),
			 CUDA_ERROR_NO_BINARY_FOR_GPU);
	assert_non_null(strstr(tti_cuda_error_text(), "unknown"));
}

static void all_is_found_by_name(void **state)
{
	static const char *const names[] = { "tti_cuda_kernel_register",
					     "tti_cuda_reach",
					     "tti_cuda_memory_is_guarded",
					     "tti_cuda_held",
					     "tti_cuda_calls",
					     "tti_cuda_kernel_self",
					     "tti_cuda_kernel_join",
					     "tti_cuda_fail_calls" };
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);

	(void)state;
	assert_non_null(driver);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_non_null(dlsym(driver, names[i]));
	(void)dlclose(driver);
}

/* -- Kernels that fail: the last, as the device stays lost --------------------------------- */

static int break_down(void **args, const unsigned grid[3], const unsigned block[3], size_t nshared)
{
	(void)grid, (void)block, (void)nshared;
	return *(int *)args[0];
}

static void lose_the_device(int status, CUresult expected)
{
	static const size_t nbytes[] = { sizeof(int) };
	int n = 0, *at = &n;
	CUstream stream;

	add("fail", break_down, nbytes, 1);
	is_good(cuStreamCreate(&stream, 1));
	is_good(launch(function_of("fail"), stream, (void *[]){ &status }));
	assert_int_equal(cuStreamSynchronize(stream), expected);
	assert_non_null(strstr(tti_cuda_error_text(), "kernel fail"));
	assert_int_equal(launch(function_of("add_one"), stream, (void *[]){ &at }), expected);
	assert_int_equal(cuStreamQuery(stream), expected);
	assert_int_equal(cuCtxSynchronize(), expected);
	assert_int_equal(n, 0);
	is_good(cuStreamDestroy_v2(stream));
	tti_cuda_device_forget(0);
}

static void a_kernel_that_fails_loses_the_device(void **state)
{
	(void)state;
	lose_the_device(CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_ILLEGAL_ADDRESS);
	lose_the_device(-5, CUDA_ERROR_LAUNCH_FAILED);
}

static int begin(void **state)
{
	(void)state;
	return begin_on("2") || cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0);
}

static int end(void **state)
{
	const char *name;

	(void)state; /* who asks what the error means has seen it */
	return cuGetErrorName(CUDA_ERROR_NO_BINARY_FOR_GPU, &name) || cuLibraryUnload(library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_launch_has_copies_of_its_arguments),
		cmocka_unit_test(a_config_launches_and_records),
		cmocka_unit_test(what_no_device_has_is_not_launched),
		cmocka_unit_test(bad_kernels_are_not_registered),
		cmocka_unit_test(the_newest_kernel_of_a_name_runs),
		cmocka_unit_test(kernels_of_several_streams_run_at_the_same_time),
		cmocka_unit_test(captured_launches_are_replayed),
		cmocka_unit_test(a_node_launches),
		cmocka_unit_test(an_object_goes_behind_the_last_run),
		cmocka_unit_test(a_registered_kernel_has_attributes),
		cmocka_unit_test(all_is_found_by_name),
		cmocka_unit_test(a_kernel_that_fails_loses_the_device),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
