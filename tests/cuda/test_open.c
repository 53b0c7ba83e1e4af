/* SPDX-License-Identifier: BSD-3-Clause */
/* Drivers that work, and what is said of those that do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu/cuda.h"
#include "util/error.h"

#define FAKE(kind) TEST_LIBRARIES "/libfake_cuda_" kind ".so"

static void says(const char *what)
{
	if (!strstr(tti_error_text(), what))
		fail_msg("\"%s\" is not in \"%s\"", what, tti_error_text());
}

static void refused(const char *path, tutti_status status, const char *const *texts)
{
	struct tti_gpu_driver *driver = (struct tti_gpu_driver *)&driver;

	if (tti_gpu_driver_open(path, &driver) != status)
		fail_msg("%s", tti_error_text());
	assert_null(driver);
	for (; *texts; texts++)
		says(*texts);
}

static void drivers_that_do_not_work_say_why(void **state)
{
	static const char *const missing[] = { "/nonexistent/libcuda.so", "TUTTI_CUDA_LIB", NULL };
	static const char *const none[] = { "is no driver of CUDA", "cuInit", NULL };
	static const char *const few[] = { "older than CUDA 12.0", "functions are missing",
					   "cuDeviceGet,", "525", NULL };
	static const char *const ancient[] = { "is of CUDA 11.8", "12.0 is the least", NULL };
	static const char *const broken[] = { "does not work: cuInit",
					      "CUDA_ERROR_SYSTEM_NOT_READY (802)",
					      "system not yet initialized", "nvidia-fabricmanager",
					      NULL };

	(void)state;
	refused("/nonexistent/libcuda.so", TUTTI_EINVAL, missing);
	refused(FAKE("none"), TUTTI_EINVAL, none);
	refused(FAKE("few"), TUTTI_EUNSUPPORTED, few);
	refused(FAKE("ancient"), TUTTI_EUNSUPPORTED, ancient);
	refused(FAKE("broken"), TUTTI_EUNSUPPORTED, broken);
}

static void the_driver_of_the_process_is_opened_once(void **state)
{
	struct tti_gpu_driver *driver, *again;

	(void)state;
	assert_int_equal(tti_gpu_driver(&driver), TUTTI_OK);
	assert_int_equal(tti_gpu_driver(&again), TUTTI_OK);
	assert_ptr_equal(driver, again);
	assert_int_equal(tti_gpu_driver_count(driver), 3);
	assert_true(tti_gpu_driver_version(driver) >= 12000);
	assert_true(tti_gpu_driver_is_host(driver));
	assert_string_equal(tti_gpu_driver_path(driver), getenv("TUTTI_CUDA_LIB"));
}

static void a_device_says_what_it_is(void **state)
{
	static const uint8_t nothing[16];
	const struct tti_gpu_facts *facts;
	struct tti_gpu_access access;
	struct tti_gpu_driver *driver;
	struct tti_gpu_held held;
	struct tti_gpu *gpu;

	(void)state;
	assert_int_equal(tti_gpu_open(1, &gpu), TUTTI_OK);
	driver = tti_gpu_driver_of(gpu);
	facts = tti_gpu_facts(gpu);
	assert_int_equal(tti_gpu_ordinal(gpu), 1);
	assert_int_equal(facts->ordinal, 1);
	assert_string_equal(facts->busid, "0000:02:00.0");
	assert_true(facts->capability >= 70 && facts->multiprocessors >= 1);
	assert_true(facts->has_vmm && facts->has_fd && !facts->has_fabric && !facts->has_rdma);
	assert_int_equal(facts->mode, TTI_GPU_SHARED);
	assert_memory_not_equal(facts->uuid, nothing, sizeof(nothing));
	assert_true(strlen(facts->name) > 0 && facts->memory_bytes > 0);
	assert_int_equal(tti_gpu_health(gpu), TUTTI_OK);
	assert_int_equal(tti_gpu_access_of(driver, 0, 2, &access), TUTTI_OK);
	assert_true(access.is_possible);
	assert_int_equal(tti_gpu_access_of(driver, 1, 1, &access), TUTTI_OK);
	assert_true(access.is_possible && access.has_atomic);
	assert_int_equal(tti_gpu_access_of(driver, 0, 3, &access), TUTTI_EINVAL);
	tti_gpu_held(&held);
	assert_int_equal(held.gpus, 1);
	tti_gpu_close(gpu);
	tti_gpu_close(NULL);
	tti_gpu_held(&held);
	assert_int_equal(held.gpus, 0);
}

static void devices_that_are_not_there_are_refused(void **state)
{
	struct tti_gpu *gpu = (struct tti_gpu *)&gpu;

	(void)state;
	assert_int_equal(tti_gpu_open(3, &gpu), TUTTI_EINVAL);
	assert_null(gpu);
	says("GPU 3: there are 0..2");
	says("CUDA_VISIBLE_DEVICES");
	assert_int_equal(tti_gpu_open(-1, &gpu), TUTTI_EINVAL);
}

/* What the program has made current stays so. */
static void the_context_of_the_thread_is_kept(void **state)
{
	int (*set)(void *), (*get)(void **), (*retain)(void **, int), (*release)(int);
	struct tti_gpu_driver *driver;
	void *own, *now;
	struct tti_gpu *gpu;

	(void)state;
	assert_int_equal(tti_gpu_driver(&driver), TUTTI_OK);
	*(void **)&set = tti_gpu_driver_symbol(driver, "cuCtxSetCurrent");
	*(void **)&get = tti_gpu_driver_symbol(driver, "cuCtxGetCurrent");
	*(void **)&retain = tti_gpu_driver_symbol(driver, "cuDevicePrimaryCtxRetain");
	*(void **)&release = tti_gpu_driver_symbol(driver, "cuDevicePrimaryCtxRelease_v2");
	assert_int_equal(tti_gpu_open(0, &gpu), TUTTI_OK);
	assert_int_equal(get(&now), 0);
	assert_null(now);
	assert_int_equal(retain(&own, 2), 0);
	assert_int_equal(set(own), 0);
	assert_int_equal(tti_gpu_health(gpu), TUTTI_OK);
	assert_int_equal(get(&now), 0);
	assert_ptr_equal(now, own);
	tti_gpu_close(gpu);
	assert_int_equal(get(&now), 0);
	assert_ptr_equal(now, own);
	assert_int_equal(set(NULL), 0);
	assert_int_equal(release(2), 0);
}

static void a_child_of_fork_is_told(void **state)
{
	struct tti_gpu_driver *driver;
	struct tti_gpu *gpu;
	int status;
	pid_t child;

	(void)state;
	assert_int_equal(tti_gpu_driver(&driver), TUTTI_OK);
	child = fork();
	if (!child)
		_exit(tti_gpu_open(0, &gpu) == TUTTI_EUNSUPPORTED &&
				      strstr(tti_error_text(), "fork()")
			      ? 0
			      : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(drivers_that_do_not_work_say_why),
		cmocka_unit_test(the_driver_of_the_process_is_opened_once),
		cmocka_unit_test(a_device_says_what_it_is),
		cmocka_unit_test(devices_that_are_not_there_are_refused),
		cmocka_unit_test(the_context_of_the_thread_is_kept),
		cmocka_unit_test(a_child_of_fork_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
