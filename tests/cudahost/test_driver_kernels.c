/* SPDX-License-Identifier: BSD-3-Clause */
/* The driver: code of kernels can be loaded, and a launch is an error that names the kernel, which a
 * program cannot overlook. */
#include "test_driver.h"

#include <sys/wait.h>
#include <unistd.h>

static const char ptx[] = ".version 8.0\n.target sm_90\n";

static CUfunction kernel(CUmodule module)
{
	CUfunction function;

	is_good(cuModuleGetFunction(&function, module, "scale_rows"));
	return function;
}

static CUresult launch(CUfunction function)
{
	return cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static void kernels_have_names(void **state)
{
	CUmodule module, same;
	CUfunction function;
	CUfunctionLoadingState loading;
	const char *name;

	(void)state;
	is_good(cuModuleLoadData(&module, ptx));
	function = kernel(module);
	assert_ptr_equal(kernel(module), function);
	is_good(cuFuncGetName(&name, function));
	assert_string_equal(name, "scale_rows");
	is_good(cuFuncGetModule(&same, function));
	assert_ptr_equal(same, module);
	is_good(cuFuncIsLoaded(&loading, function));
	is_good(cuModuleUnload(module));
	assert_int_equal(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(cuFuncGetName(&name, function), CUDA_ERROR_INVALID_HANDLE);
	assert_int_equal(launch(function), CUDA_ERROR_INVALID_HANDLE);
}

static void libraries_have_kernels(void **state)
{
	CUlibrary library, same;
	CUmodule module;
	CUkernel found;
	CUfunction function;

	(void)state;
	is_good(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
	is_good(cuLibraryGetKernel(&found, library, "k"));
	is_good(cuKernelGetFunction(&function, found));
	is_good(cuKernelGetLibrary(&same, found));
	assert_ptr_equal(same, library);
	is_good(cuLibraryGetModule(&module, library));
	is_good(cuLibraryUnload(library));
}

static void what_is_no_code_is_not_loaded(void **state)
{
	CUmodule module;

	(void)state;
	assert_int_equal(cuModuleLoadData(&module, "hello, world"), CUDA_ERROR_INVALID_IMAGE);
	assert_int_equal(cuModuleLoadData(&module, NULL), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cuModuleLoad(&module, "/nowhere.cubin"), CUDA_ERROR_FILE_NOT_FOUND);
	assert_int_equal(cuModuleLoad(&module, "/dev/null"), CUDA_ERROR_INVALID_IMAGE);
	is_good(cuModuleLoad(&module, "/proc/self/exe")); /* an ELF file, as cubins are */
	is_good(cuModuleUnload(module));
}

static void a_launch_is_an_error(void **state)
{
	CUmodule module;
	CUgraph graph;
	CUgraphNode node;
	CUDA_KERNEL_NODE_PARAMS params = { .gridDimX = 1 };
	CUlaunchConfig config = { .gridDimX = 1 };
	const char *name;

	(void)state;
	is_good(cuModuleLoadData(&module, ptx));
	params.func = kernel(module);
	assert_int_equal(launch(params.func), CUDA_ERROR_NO_BINARY_FOR_GPU);
	assert_int_equal(cuLaunchKernelEx(&config, params.func, NULL, NULL),
			 CUDA_ERROR_NO_BINARY_FOR_GPU);
	is_good(cuGraphCreate(&graph, 0));
	assert_int_equal(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &params),
			 CUDA_ERROR_NO_BINARY_FOR_GPU);
	is_good(cuGraphDestroy(graph));
	is_good(cuGetErrorName(CUDA_ERROR_NO_BINARY_FOR_GPU, &name));
	is_good(cuModuleUnload(module));
}

/* -- A program that overlooks it, and one that does not ----------------------------------------- */

static int be_a_program(const char *how)
{
	CUmodule module;
	const char *text;

	if (begin_on("1") || cuModuleLoadData(&module, ptx))
		return 3;
	launch(kernel(module));
	if (!strcmp(how, "looks"))
		cuGetErrorString(CUDA_ERROR_NO_BINARY_FOR_GPU, &text);
	return !strcmp(how, "fails") ? 7 : 0;
}

static char said[4096];

/* The status of this program as `how`; said[] has its stderr. */
static int run(const char *how)
{
	int status = -1, fd[2];
	ssize_t n;
	size_t end = 0;

	assert_int_equal(pipe(fd), 0);
	const pid_t pid = fork();

	if (!pid) {
		dup2(fd[1], STDERR_FILENO);
		close(fd[0]);
		close(fd[1]);
		execl("/proc/self/exe", "test_driver_kernels", how, (char *)NULL);
		_exit(99);
	}
	close(fd[1]);
	while ((n = read(fd[0], said + end, sizeof(said) - 1 - end)) > 0)
		end += (size_t)n;
	said[end] = '\0';
	close(fd[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void who_overlooks_it_ends_with_1(void **state)
{
	(void)state;
	assert_int_equal(run("overlooks"), 1);
	assert_non_null(strstr(said, "scale_rows"));
}

static void who_looks_ends_as_it_likes(void **state)
{
	(void)state;
	assert_int_equal(run("looks"), 0);
	assert_int_equal(run("fails"), 7);
}

int main(int nargs, char **args)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_have_names),
		cmocka_unit_test(libraries_have_kernels),
		cmocka_unit_test(what_is_no_code_is_not_loaded),
		cmocka_unit_test(a_launch_is_an_error),
		cmocka_unit_test(who_overlooks_it_ends_with_1),
		cmocka_unit_test(who_looks_ends_as_it_likes),
	};

	if (nargs > 1)
		return be_a_program(args[1]);
	return begin_on("1") || cmocka_run_group_tests(tests, NULL, NULL);
}
