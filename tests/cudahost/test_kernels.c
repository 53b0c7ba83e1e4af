/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels: those that can run on the host run in the order of their stream, also in guarded memory; others
 * are errors that name them, which a program cannot miss. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "runtime/runtime.h"

static const struct tti_cu_dim3 one = { 1, 1, 1 };

/* Its address is what programs launch. */
static void scale(void)
{
}

/* With the guard `at` is another address here than in the program. */
struct scaled {
	int number;
	int *at;
};

static int run_scale(void **args, const unsigned grid[3], const unsigned block[3],
		     size_t shared_bytes)
{
	const struct scaled *scaled = args[0];
	const int *factor = args[1];

	*scaled->at = *scaled->at * *factor + (int)(grid[0] * block[0]) + (int)shared_bytes +
		      scaled->number;
	return 0;
}

static const void *address_of(void (*function)(void))
{
	return *(void **)&function;
}

/* -- Kernels of the host ------------------------------------------------------------------ */

static void a_registered_kernel_gets_copies_of_its_arguments(void **state)
{
	const size_t nbytes[] = { sizeof(struct scaled), sizeof(int) };
	struct scaled scaled = { .number = 1000 };
	tti_cu_stream stream;
	int factor = 3;
	int *memory;
	int value = 5;
	void *args[] = { &scaled, &factor };

	(void)state;
	assert_int_equal(tti_cuda_kernel_register(address_of(scale), "scale", run_scale, nbytes, 2),
			 0);
	assert_int_equal(cudaMalloc((void **)&memory, 2 * sizeof(int)), 0);
	scaled.at = ++memory;
	assert_int_equal(cudaStreamCreate(&stream), 0);
	assert_int_equal(cudaMemcpyAsync(memory, &value, sizeof(value), 4, stream), 0);
	assert_int_equal(cudaLaunchKernel(address_of(scale), (struct tti_cu_dim3){ 2, 1, 1 },
					  (struct tti_cu_dim3){ 4, 1, 1 }, args, 100, stream),
			 0);
	factor = 0;
	scaled.at = NULL;
	assert_int_equal(cudaMemcpyAsync(&value, memory, sizeof(value), 4, stream), 0);
	assert_int_equal(cudaStreamSynchronize(stream), 0);
	assert_int_equal(value, 5 * 3 + 2 * 4 + 100 + 1000);
	assert_int_equal(cudaStreamDestroy(stream), 0);
	assert_int_equal(cudaFree(memory - 1), 0);
}

static void a_registered_kernel_can_be_a_node(void **state)
{
	int factor = 2, value = 1;
	struct scaled scaled = { .number = 0 };
	void *args[] = { &scaled, &factor };
	const struct tti_cu_kernel_node kernel = {
		(void *)(uintptr_t)address_of(scale), one, one, 0, args, NULL
	};
	struct tti_cu_kernel_node got = { 0 };
	tti_cu_graph graph;
	tti_cu_exec exec;
	tti_cu_node node;

	(void)state;
	assert_int_equal(cudaMalloc((void **)&scaled.at, sizeof(int)), 0);
	assert_int_equal(cudaMemcpy(scaled.at, &value, sizeof(value), 4), 0);
	assert_int_equal(cudaGraphCreate(&graph, 0), 0);
	assert_int_equal(cudaGraphAddKernelNode(&node, graph, NULL, 0, &kernel), 0);
	assert_int_equal(cudaGraphKernelNodeGetParams(node, &got), 0);
	assert_ptr_equal(got.function, kernel.function);
	assert_ptr_equal(((struct scaled *)got.args[0])->at, scaled.at);
	assert_int_equal(*(int *)got.args[1], 2);
	assert_int_equal(cudaGraphInstantiate(&exec, graph, 0), 0);
	assert_int_equal(cudaGraphLaunch(exec, NULL), 0);
	assert_int_equal(cudaGraphLaunch(exec, NULL), 0);
	assert_int_equal(cudaMemcpy(&value, scaled.at, sizeof(value), 4), 0);
	assert_int_equal(value, (1 * 2 + 1) * 2 + 1);
	assert_int_equal(cudaGraphExecDestroy(exec), 0);
	assert_int_equal(cudaGraphDestroy(graph), 0);
	assert_int_equal(cudaFree(scaled.at), 0);
}

static void a_block_of_too_many_threads_is_an_error(void **state)
{
	int factor = 2;
	struct scaled scaled = { 0 };
	void *args[] = { &scaled, &factor };

	(void)state;
	assert_int_equal(cudaLaunchKernel(address_of(scale), one,
					  (struct tti_cu_dim3){ 1025, 1, 1 }, args, 0, NULL),
			 TTI_cudaErrorInvalidConfiguration);
	assert_int_equal(cudaLaunchKernel(address_of(scale), (struct tti_cu_dim3){ 0, 1, 1 }, one,
					  args, 0, NULL),
			 TTI_cudaErrorInvalidConfiguration);
	assert_int_equal(cudaGetLastError(), TTI_cudaErrorInvalidConfiguration);
}

static void a_cooperative_launch_is_refused(void **state)
{
	int factor = 2;
	struct scaled scaled = { 0 };
	void *args[] = { &scaled, &factor };

	(void)state;
	assert_int_equal(cudaLaunchCooperativeKernel(address_of(scale), one, one, args, 0, NULL),
			 TTI_cudaErrorNotSupported);
	assert_int_equal(cudaGetLastError(), TTI_cudaErrorNotSupported);
}

/* -- Kernels of a GPU --------------------------------------------------------------------- */

static const char host_stub;

static void a_kernel_of_a_gpu_is_an_error_that_names_it(void **state)
{
	void **module = __cudaRegisterFatBinary(NULL);

	(void)state;
	__cudaRegisterFunction(module, &host_stub, NULL, "_Z7stencilPfi", -1, NULL, NULL, NULL,
			       NULL, NULL);
	assert_int_equal(cudaLaunchKernel(&host_stub, one, one, NULL, 0, NULL),
			 TTI_cudaErrorInvalidDeviceFunction);
	assert_non_null(strstr(tti_cuda_error_text(), "stencil"));
	assert_int_equal(cudaGetLastError(), TTI_cudaErrorInvalidDeviceFunction);
	assert_int_equal(cudaGetLastError(), 0);
	__cudaUnregisterFatBinary(module);
}

static void a_kernel_is_forgotten_with_its_module(void **state)
{
	void **module = __cudaRegisterFatBinary(NULL);
	tti_cu_kernel kernel = NULL;
	const char *name = NULL;

	(void)state;
	__cudaRegisterFunction(module, &host_stub, NULL, "forgotten", -1, NULL, NULL, NULL, NULL,
			       NULL);
	assert_int_equal(__cudaGetKernel(&kernel, &host_stub), 0);
	assert_int_equal(cudaFuncGetName(&name, kernel), 0);
	assert_string_equal(name, "forgotten");
	__cudaUnregisterFatBinary(module);
	assert_int_equal(__cudaGetKernel(&kernel, &host_stub), TTI_cudaErrorInvalidDeviceFunction);
	assert_int_equal(cudaGetLastError(), TTI_cudaErrorInvalidDeviceFunction);
}

static void many_kernels_are_found(void **state)
{
	enum { N = 5000 };
	static char stubs[N];
	static char names[N][16];
	void **module = __cudaRegisterFatBinary(NULL);
	const char *name;

	(void)state;
	for (int at = 0; at < N; at++) {
		(void)snprintf(names[at], sizeof(names[at]), "kernel%d", at);
		__cudaRegisterFunction(module, &stubs[at], NULL, names[at], -1, NULL, NULL, NULL,
				       NULL, NULL);
	}
	for (int at = 0; at < N; at++) {
		assert_int_equal(cudaFuncGetName(&name, &stubs[at]), 0);
		assert_ptr_equal(name, names[at]);
	}
	__cudaUnregisterFatBinary(module);
}

static void configurations_are_given_back_in_reverse(void **state)
{
	struct tti_cu_dim3 grid, block;
	tti_cu_stream stream = NULL;
	size_t shared_bytes;

	(void)state;
	assert_int_equal(__cudaPushCallConfiguration((struct tti_cu_dim3){ 7, 1, 1 }, one, 1, NULL),
			 0);
	assert_int_equal(__cudaPushCallConfiguration(one, (struct tti_cu_dim3){ 8, 1, 1 }, 2,
						     (tti_cu_stream)(uintptr_t)1),
			 0);
	assert_int_equal(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream), 0);
	assert_int_equal(block.x, 8);
	assert_ptr_equal(stream, (void *)(uintptr_t)1);
	assert_int_equal(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream), 0);
	assert_int_equal(grid.x, 7);
	assert_int_equal(__cudaPopCallConfiguration(&grid, &block, &shared_bytes, &stream),
			 TTI_cudaErrorMissingConfiguration);
	assert_int_equal(cudaGetLastError(), TTI_cudaErrorMissingConfiguration);
}

/* -- The end of a program ----------------------------------------------------------------- */

/* What the program that this file also is does, and ends with. */
static int be_a_program(const char *what)
{
	void **module = __cudaRegisterFatBinary(NULL);

	__cudaRegisterFunction(module, &host_stub, NULL, "_Z7stencilPfi", -1, NULL, NULL, NULL,
			       NULL, NULL);
	(void)printf("result");
	(void)cudaLaunchKernel(&host_stub, one, one, NULL, 0, NULL);
	(void)cudaLaunchKernel(&host_stub, one, one, NULL, 0, NULL);
	__cudaUnregisterFatBinary(module);
	if (strcmp(what, "asks") == 0)
		return cudaGetLastError() == TTI_cudaErrorInvalidDeviceFunction ? 0 : 3;
	return strcmp(what, "fails") == 0 ? 7 : 0;
}

/* Returns the status; *out: what it wrote. */
static int end_of(const char *what, char out[4096])
{
	size_t nbytes = 0;
	ssize_t more;
	int ends[2], status;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)dup2(ends[1], STDERR_FILENO);
		(void)close(ends[0]);
		(void)close(ends[1]);
		(void)execl("/proc/self/exe", "test", what, (char *)NULL);
		_exit(127);
	}
	(void)close(ends[1]);
	while (nbytes < 4095 && (more = read(ends[0], out + nbytes, 4095 - nbytes)) > 0)
		nbytes += (size_t)more;
	out[nbytes] = 0;
	(void)close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int times(const char *text, const char *word)
{
	int n = 0;

	while ((text = strstr(text, word))) {
		text += strlen(word);
		n++;
	}
	return n;
}

static void a_program_that_never_asks_ends_with_status_1(void **state)
{
	char out[4096];

	(void)state;
	assert_int_equal(end_of("never", out), 1);
	assert_non_null(strstr(out, "result"));
	assert_non_null(strstr(out, "never asked for the error"));
	assert_int_equal(times(out, "stencil"), 2); /* the launch, the end */
}

static void a_program_that_asks_ends_as_it_wants(void **state)
{
	char out[4096];

	(void)state;
	assert_int_equal(end_of("asks", out), 0);
	assert_int_equal(times(out, "stencil"), 1);
}

static void a_program_that_fails_keeps_its_status(void **state)
{
	char out[4096];

	(void)state;
	assert_int_equal(end_of("fails", out), 7);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_registered_kernel_gets_copies_of_its_arguments),
		cmocka_unit_test(a_registered_kernel_can_be_a_node),
		cmocka_unit_test(a_block_of_too_many_threads_is_an_error),
		cmocka_unit_test(a_cooperative_launch_is_refused),
		cmocka_unit_test(a_kernel_of_a_gpu_is_an_error_that_names_it),
		cmocka_unit_test(a_kernel_is_forgotten_with_its_module),
		cmocka_unit_test(many_kernels_are_found),
		cmocka_unit_test(configurations_are_given_back_in_reverse),
		cmocka_unit_test(a_program_that_never_asks_ends_with_status_1),
		cmocka_unit_test(a_program_that_asks_ends_as_it_wants),
		cmocka_unit_test(a_program_that_fails_keeps_its_status),
	};

	if (argc > 1)
		return be_a_program(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
