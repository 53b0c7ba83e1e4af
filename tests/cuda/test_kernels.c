/* SPDX-License-Identifier: BSD-3-Clause */
/* How kernels are found and launched, with some that run nothing (fake_kernels.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/fake_kernels.h"
#include "device/families.h"
#include "device/kernels.h"
#include "device/pass.h"
#include "gpu/cuda_memory.h"
#include "gpu/cuda_stream.h"
#include "tutti/types.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

static struct tti_gpu *gpu;

static int begin(void **state)
{
	(void)state;
	return tti_gpu_open(0, &gpu) != TUTTI_OK;
}

static int end(void **state)
{
	(void)state;
	tti_gpu_close(gpu);
	return 0;
}

static void each_type_has_its_kernel(void **state)
{
	static const char *const families[TUTTI_TYPE_COUNT] = {
#define X(name, family) [TUTTI_##name] = #family,
		TTI_DEV_TYPE_MAP(X)
#undef X
	};
	struct tti_kernels *kernels, *again;
	struct tti_dev_launch launch = { .ncalls = 2, .nblocks = 3, .noperands = 5 };
	struct fake_launch *told;
	uint32_t resident;
	uint64_t told_at;
	void *stream, *host;

	(void)state;
	assert_int_equal(tti_kernels_get(gpu, &kernels), TUTTI_OK);
	assert_int_equal(tti_kernels_get(gpu, &again), TUTTI_OK);
	assert_ptr_equal(kernels, again);
	assert_int_equal(tti_kernels_resident(kernels, gpu, 512, &resident), TUTTI_OK);
	assert_true(resident >= TTI_DEV_BLOCKS_MAX);
	assert_int_equal(tti_gpu_stream_create(gpu, false, &stream), TUTTI_OK);
	assert_int_equal(tti_gpu_pinned_alloc(gpu, sizeof(*told), &host, &told_at), TUTTI_OK);
	told = host;
	launch.call[0].done = told_at;
	for (int type = -1; type < TUTTI_TYPE_COUNT; type++) {
		launch.call[1].tag = 1000 + (uint64_t)(type + 1);
		assert_int_equal(tti_kernels_launch(kernels, gpu, type, &launch, 64, stream),
				 TUTTI_OK);
		/* It is copied at the launch. */
		launch.call[1].tag = 0;
		assert_int_equal(tti_gpu_stream_wait(gpu, stream), TUTTI_OK);
		assert_string_equal(told->kernel, type < 0 ? "copy" : families[type]);
		assert_int_equal(told->nblocks, 6);
		assert_int_equal(told->nthreads, 64);
		assert_int_equal(told->shared_bytes, tti_dev_shared_bytes(5));
		assert_true(told->tag == 1000 + (uint64_t)(type + 1));
	}
	tti_gpu_pinned_free(gpu, host);
	tti_gpu_stream_destroy(gpu, stream);
}

/* The path is read from the environment once, so a process for each. */
static void refused(const char *path, const char *text)
{
	int status;
	pid_t child = fork();

	if (!child) {
		setenv("TUTTI_CUDA_KERNELS", path, 1);
		execl("/proc/self/exe", "test_kernels", text, (char *)NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static int expect_refusal(const char *text)
{
	struct tti_kernels *kernels;
	struct tti_gpu *own;

	if (tti_gpu_open(1, &own) != TUTTI_OK || tti_kernels_get(own, &kernels) == TUTTI_OK ||
	    kernels)
		return 1;
	if (!strstr(tti_error_text(), text)) {
		fprintf(stderr, "not \"%s\"\n", text);
		return 2;
	}
	tti_gpu_close(own);
	return 0;
}

static void libraries_without_kernels_are_refused(void **state)
{
	(void)state;
	refused("/nonexistent/libtutti_kernels_host.so", "TUTTI_CUDA_KERNELS");
	refused(TEST_LIBRARIES "/libfake_cuda_none.so", "it is no library of kernels");
	refused(TEST_LIBRARIES "/libfake_kernels_none.so", "error 2 of CUDA");
}

static void the_usual_place_is_beside_the_library(void **state)
{
	char *path;

	(void)state;
	assert_int_equal(tti_kernels_path(true, &path), TUTTI_OK);
	assert_string_equal(path, tti_params()->cuda_kernels);
	tti_free(path);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_has_its_kernel),
		cmocka_unit_test(libraries_without_kernels_are_refused),
		cmocka_unit_test(the_usual_place_is_beside_the_library),
	};

	if (argc > 1)
		return expect_refusal(argv[1]);
	return cmocka_run_group_tests(tests, begin, end);
}
