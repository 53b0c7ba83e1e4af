/* SPDX-License-Identifier: BSD-3-Clause */
/* A program whose CUDA runtime is linked into it: Tutti sees the driver alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "nccl/fake_libcuda.h"
#include "nccl/ranks.h"

static void a_driver_that_nobody_uses_changes_nothing(void **state)
{
	int in = 7, out = 0;
	ncclComm_t comm;

	(void)state;
	fake_cuda_is_used = 0;
	assert_int_equal(ncclCommInitAll(&comm, 1, NULL), ncclSuccess);
	assert_int_equal(ncclAllReduce(&in, &out, 1, ncclInt32, ncclSum, comm, NULL), ncclSuccess);
	assert_int_equal(out, 7);
	assert_int_equal(ncclCommDestroy(comm), ncclSuccess);
}

static void a_gpu_in_use_without_a_runtime_in_sight_is_refused(void **state)
{
	ncclUniqueId id;
	ncclComm_t comm;

	(void)state;
	fake_cuda_is_used = 1;
	assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
	assert_int_equal(ncclCommInitAll(&comm, 1, NULL), ncclInvalidUsage);
	assert_non_null(strstr(ncclGetLastError(NULL), "nvcc -cudart shared"));
	assert_int_equal(ncclCommInitRank(&comm, 1, id, 0), ncclInvalidUsage);
	fake_cuda_is_used = 0;
	assert_int_equal(ncclCommInitRank(&comm, 1, id, 0), ncclSuccess);
	assert_int_equal(ncclCommDestroy(comm), ncclSuccess);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_driver_that_nobody_uses_changes_nothing),
		cmocka_unit_test(a_gpu_in_use_without_a_runtime_in_sight_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
