/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory when the process forks, when calls of the system fail, and when limits are low. */
#include "churn.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "system_faults.h"

/* -- fork() ------------------------------------------------------------------------------- */

static void child_body(void *arg)
{
	struct tti_cuda_range range;
	uint8_t handle[64];
	void *more;

	CHECK(!alone_can_access(arg, false));
	CHECK(alone_nfiles() == 0 && alone_maps() == 0);
	CHECK(!tti_cuda_memory_find(arg, &range));
	FAILS(TTI_CUDA_EINIT, "fork", tti_cuda_memory_alloc(1, &more));
	FAILS(TTI_CUDA_EINIT, "fork", tti_cuda_memory_free(arg));
	FAILS(TTI_CUDA_EINIT, "fork", tti_cuda_memory_get_handle(arg, handle));
	FAILS(TTI_CUDA_EINIT, "fork", tti_cuda_memory_check_copy(arg, arg, 1, 4));
	FAILS(TTI_CUDA_EINIT, "fork", tti_cuda_memory_check(arg, 1));
	FAILS(TTI_CUDA_EINIT, "fork", tti_cuda_memory_register(&more, 1, 0));
	CHECK(tti_cuda_memory_reach(arg) == arg);
	_exit(0);
}

static void fork_body(void *arg)
{
	char *at;
	char *host;

	(void)arg;
	GOOD(tti_cuda_memory_alloc(MIB, (void **)&at));
	GOOD(tti_cuda_memory_alloc_host(10, 0, TTI_CUDA_HOST, (void **)&host));
	memset(at, 5, MIB);
	CHECK(alone_wait(alone_start(child_body, at)) == 0);
	for (size_t i = 0; i < MIB; i++)
		CHECK(at[i] == 5);
	GOOD(tti_cuda_memory_free(at));
	GOOD(tti_cuda_memory_free_host(host));
	churn(1, 100, 100000);
}

static void a_forked_child_has_none_of_it_and_leaves_it_alone(void **state)
{
	(void)state;
	alone_run(fork_body, NULL);
}

static _Atomic bool stops;

static void *churn_until(void *arg)
{
	while (!stops)
		churn((uint32_t)(uintptr_t)arg, 50, 100000);
	return NULL;
}

static void forked_busy(void *arg)
{
	void *at;

	(void)arg;
	/* No lock of the parent's other threads is held here. */
	CHECK(tti_cuda_memory_alloc(1, &at) == TTI_CUDA_EINIT);
	CHECK(!tti_cuda_memory_find(&at, &(struct tti_cuda_range){ 0 }));
	_exit(0);
}

static void fork_busy_body(void *arg)
{
	pthread_t threads[2];

	(void)arg;
	churn(1, 1, 1);
	for (uintptr_t i = 0; i < 2; i++)
		CHECK(!pthread_create(&threads[i], NULL, churn_until, (void *)(i + 1)));
	for (int i = 0; i < 30; i++)
		CHECK(alone_wait(alone_start(forked_busy, NULL)) == 0);
	stops = true;
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

static void fork_while_others_allocate(void **state)
{
	(void)state;
	alone_run(fork_busy_body, NULL);
}

/* -- Failures of the system --------------------------------------------------------------- */

struct fault {
	unsigned call;
	unsigned at;
	unsigned mask;
	unsigned value;
	unsigned error;
	int expected;
	const char *words;
};

static const struct fault faults[] = {
	{ SYS_memfd_create, 0, 0, 0, EMFILE, TTI_CUDA_ESYS, "ulimit -n" },
	{ SYS_memfd_create, 0, 0, 0, ENOMEM, TTI_CUDA_ENOMEM, "memfd_create" },
	{ SYS_memfd_create, 0, 0, 0, ENOSYS, TTI_CUDA_ESYS, "memfd_create" },
	{ SYS_ftruncate, 0, 0, 0, EIO, TTI_CUDA_ESYS, "ftruncate" },
	{ SYS_ftruncate, 0, 0, 0, ENOSPC, TTI_CUDA_ENOMEM, "ftruncate" },
	{ SYS_fcntl, 1, ~0u, F_ADD_SEALS, EPERM, TTI_CUDA_ESYS, "sealing" },
	{ SYS_pwrite64, 0, 0, 0, ENOSPC, TTI_CUDA_ENOMEM, "trailer" },
	{ SYS_mmap, 3, MAP_SHARED | MAP_NORESERVE, MAP_SHARED | MAP_NORESERVE, ENOMEM,
	  TTI_CUDA_ENOMEM, "ulimit -v" },
	{ SYS_mmap, 3, MAP_SHARED | MAP_NORESERVE, MAP_SHARED | MAP_NORESERVE, ENODEV,
	  TTI_CUDA_ESYS, "mapping memory" },
	{ SYS_mmap, 3, MAP_PRIVATE | MAP_NORESERVE, MAP_PRIVATE | MAP_NORESERVE, ENOMEM,
	  TTI_CUDA_ENOMEM, "reserving addresses" },
	{ SYS_madvise, 2, ~0u, MADV_DONTFORK, EINVAL, TTI_CUDA_ESYS, "reserving addresses" },
	{ SYS_mprotect, 2, ~0u, PROT_READ | PROT_WRITE, ENOMEM, TTI_CUDA_ENOMEM, "access" },
};

static void fault_body(void *arg)
{
	const struct fault *const fault = arg;
	const long before = alone_address_pages();
	void *at = NULL;

	if (!system_fails(fault->call, fault->at, fault->mask, fault->value, fault->error))
		_exit(ALONE_UNTESTED);
	for (int i = 0; i < 2; i++) {
		FAILS(fault->expected, fault->words, tti_cuda_memory_alloc(100, &at));
		CHECK(!at && alone_maps() == 0 && alone_nfiles() == 0);
		CHECK((alone_address_pages() - before) * 4096 < 32 * (long)MIB);
	}
	_exit(0); /* what looks for leaks needs the calls, too */
}

static void failing_calls_leave_nothing_open(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++) {
		const struct fault fault = faults[i];

		print_message("%s, error %u\n", fault.words, fault.error);
		alone_run(fault_body, (void *)(uintptr_t)&fault);
	}
}

static void limit(int resource, rlim_t most)
{
	const struct rlimit value = { most, most };

	CHECK(setrlimit((__rlimit_resource_t)resource, &value) == 0);
}

static void few_files_body(void *arg)
{
	void *at;

	(void)arg;
	limit(RLIMIT_NOFILE, 3);
	FAILS(TTI_CUDA_ESYS, "ulimit -n", tti_cuda_memory_alloc(100, &at));
	CHECK(alone_can_access(&at, true));
	_exit(0);
}

static void few_addresses_body(void *arg)
{
	void *at;

	(void)arg;
	if (TTI_SANITIZED)
		_exit(ALONE_UNTESTED); /* they need more addresses than there would be */
	limit(RLIMIT_AS, 32 * MIB);
	FAILS(TTI_CUDA_ENOMEM, "ulimit -v", tti_cuda_memory_alloc(100, &at));
	FAILS(TTI_CUDA_ENOMEM, "ulimit -v",
	      tti_cuda_memory_alloc_host(64 * MIB, 0, TTI_CUDA_HOST, &at));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
}

static void small_files_body(void *arg)
{
	void *at;

	(void)arg;
	limit(RLIMIT_FSIZE, MIB);
	FAILS(TTI_CUDA_ENOMEM, "ulimit -f", tti_cuda_memory_alloc(100, &at));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
}

static void a_limit_on_open_files_is_named(void **state)
{
	(void)state;
	alone_run(few_files_body, NULL);
}

static void a_limit_on_addresses_is_named(void **state)
{
	(void)state;
	alone_run(few_addresses_body, NULL);
}

static void a_limit_on_files_is_named_and_kills_nobody(void **state)
{
	(void)state;
	alone_run(small_files_body, NULL);
}

static void closed_body(void *arg)
{
	char path[] = "/tmp/tutti_test_memory_XXXXXX";
	const int own = mkstemp(path);
	uint8_t handle[64];
	char text[6] = "";
	int files[16];
	void *at;

	(void)arg;
	CHECK(own >= 0 && unlink(path) == 0);
	CHECK(pwrite(own, "mine", 5, 0) == 5 && ftruncate(own, 64 * (off_t)MIB) == 0);
	GOOD(tti_cuda_memory_alloc(MIB, &at));
	CHECK(alone_files(files) == 1 && dup2(own, files[0]) == files[0]);
	memset(at, 1, MIB);
	FAILS(TTI_CUDA_EINVAL, "has closed file descriptor",
	      tti_cuda_memory_get_handle(at, handle));
	GOOD(tti_cuda_memory_free(at));
	CHECK(pread(own, text, 5, 0) == 5 && strcmp(text, "mine") == 0);
	churn(1, 100, 100000);
	close(files[0]);
	close(own);
}

static void a_program_that_closes_all_files_keeps_its_own(void **state)
{
	(void)state;
	alone_run(closed_body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forked_child_has_none_of_it_and_leaves_it_alone),
		cmocka_unit_test(fork_while_others_allocate),
		cmocka_unit_test(failing_calls_leave_nothing_open),
		cmocka_unit_test(a_limit_on_open_files_is_named),
		cmocka_unit_test(a_limit_on_addresses_is_named),
		cmocka_unit_test(a_limit_on_files_is_named_and_kills_nobody),
		cmocka_unit_test(a_program_that_closes_all_files_keeps_its_own),
	};

	(void)setenv("TUTTI_CUDAHOST_MEMORY", "64M", 1);
	(void)setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	(void)unsetenv("TUTTI_CUDAHOST_GUARD");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
