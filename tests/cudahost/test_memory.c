/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of devices and of the host: what is given, found, checked, and given back. */
#include "churn.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define TOTAL (64 * MIB)

/* -- Allocations -------------------------------------------------------------------------- */

static void zero_body(void *arg)
{
	void *at = &at;

	(void)arg;
	GOOD(tti_cuda_memory_alloc(0, &at));
	CHECK(!at);
	GOOD(tti_cuda_memory_free(NULL));
	at = &at;
	GOOD(tti_cuda_memory_alloc_host(0, 0, TTI_CUDA_HOST, &at));
	CHECK(!at);
	GOOD(tti_cuda_memory_free_host(NULL));
	at = &at;
	GOOD(tti_cuda_memory_alloc_host(0, 1, TTI_CUDA_MANAGED, &at));
	CHECK(!at);
}

static void no_bytes_are_no_memory(void **state)
{
	(void)state;
	alone_run(zero_body, NULL);
}

static void alignment_body(void *arg)
{
	void *at[3];

	(void)arg;
	GOOD(tti_cuda_memory_alloc(1, &at[0]));
	GOOD(tti_cuda_memory_alloc(2 * MIB, &at[1]));
	GOOD(tti_cuda_memory_alloc(4 * MIB + 1, &at[2]));
	CHECK((uintptr_t)at[0] % 4096 == 0);
	CHECK((uintptr_t)at[1] % (2 * MIB) == 0);
	CHECK((uintptr_t)at[2] % (2 * MIB) == 0);
	for (int i = 0; i < 3; i++)
		GOOD(tti_cuda_memory_free(at[i]));
}

static void large_memory_begins_where_huge_pages_do(void **state)
{
	(void)state;
	alone_run(alignment_body, NULL);
}

static void churn_body(void *arg)
{
	size_t nfree;
	size_t total;

	(void)arg;
	for (uint32_t seed = 1; seed <= 3; seed++) {
		churn(seed, 400, 20000);
		churn(seed, 80, 5 * MIB);
	}
	tti_cuda_memory_info(&nfree, &total);
	CHECK(nfree == TOTAL && total == TOTAL);
}

static void no_two_allocations_share_bytes(void **state)
{
	(void)state;
	alone_run(churn_body, NULL);
}

static void *churn_thread(void *arg)
{
	churn((uint32_t)(uintptr_t)arg, 400, 100000);
	return NULL;
}

static void threads_body(void *arg)
{
	pthread_t threads[4];
	size_t nfree;
	size_t total;

	(void)arg;
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, churn_thread, (void *)(i + 1)));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	tti_cuda_memory_info(&nfree, &total);
	CHECK(nfree == total);
}

static void threads_allocate_at_the_same_time(void **state)
{
	(void)state;
	alone_run(threads_body, NULL);
}

static void full_body(void *arg)
{
	void *at;
	void *more;
	size_t nfree;
	size_t total;

	(void)arg;
	FAILS(TTI_CUDA_ENOMEM, "67108865 bytes were asked for on device 0, which has 67108864",
	      tti_cuda_memory_alloc(TOTAL + 1, &at));
	CHECK(tti_cuda_memory_alloc(SIZE_MAX, &at) == TTI_CUDA_ENOMEM);
	GOOD(tti_cuda_memory_alloc(TOTAL - 2 * MIB + 1, &at));
	tti_cuda_memory_info(&nfree, &total);
	CHECK(total == TOTAL && nfree == 2 * MIB - 4096);
	FAILS(TTI_CUDA_ENOMEM, "of which 2093056 are free", tti_cuda_memory_alloc(2 * MIB, &more));
	GOOD(tti_cuda_memory_alloc(2 * MIB - 4096, &more));
	GOOD(tti_cuda_memory_free(more));
	GOOD(tti_cuda_memory_free(at));
	GOOD(tti_cuda_memory_alloc(TOTAL, &at));
	GOOD(tti_cuda_memory_free(at));
}

static void a_full_device_says_what_is_left(void **state)
{
	(void)state;
	alone_run(full_body, NULL);
}

static void devices_body(void *arg)
{
	struct tti_cuda_range range;
	size_t nfree;
	size_t total;
	void *at[2];

	(void)arg;
	GOOD(tti_cuda_memory_alloc(TOTAL, &at[0]));
	GOOD(tti_cuda_device_set(1));
	GOOD(tti_cuda_memory_alloc(TOTAL, &at[1]));
	CHECK(tti_cuda_memory_find(at[1], &range) && range.device == 1);
	GOOD(tti_cuda_memory_free(at[0]));
	tti_cuda_memory_info(&nfree, &total);
	CHECK(nfree == 0 && total == TOTAL);
	GOOD(tti_cuda_memory_free(at[1]));
}

static void each_device_has_memory_of_its_own(void **state)
{
	(void)state;
	alone_run(devices_body, NULL);
}

static void wrong_free_body(void *arg)
{
	char *at;
	char *host;
	char *managed;
	int local;

	(void)arg;
	GOOD(tti_cuda_memory_alloc(100000, (void **)&at));
	GOOD(tti_cuda_memory_alloc_host(100, 0, TTI_CUDA_HOST, (void **)&host));
	GOOD(tti_cuda_memory_alloc_host(100, 1, TTI_CUDA_MANAGED, (void **)&managed));
	FAILS(TTI_CUDA_EINVAL, "lies inside the 100000 bytes", tti_cuda_memory_free(at + 4096));
	FAILS(TTI_CUDA_EINVAL, "nothing is allocated at", tti_cuda_memory_free(&local));
	FAILS(TTI_CUDA_EINVAL, "which cudaFreeHost() frees", tti_cuda_memory_free(host));
	FAILS(TTI_CUDA_EINVAL, "which cudaFreeHost() does not free",
	      tti_cuda_memory_free_host(managed));
	FAILS(TTI_CUDA_EINVAL, "which cudaFreeHost() does not free", tti_cuda_memory_free_host(at));
	GOOD(tti_cuda_memory_free(managed));
	GOOD(tti_cuda_memory_free(at));
	GOOD(tti_cuda_memory_free_host(host));
	FAILS(TTI_CUDA_EINVAL, "or not any more", tti_cuda_memory_free(at));
	FAILS(TTI_CUDA_EINVAL, "or not any more", tti_cuda_memory_free_host(host));
}

static void only_what_is_allocated_can_be_freed(void **state)
{
	(void)state;
	alone_run(wrong_free_body, NULL);
}

static long used_pages(void)
{
	int files[16];
	struct stat stat;

	CHECK(alone_files(files) == 1 && fstat(files[0], &stat) == 0);
	return stat.st_blocks / 8;
}

static void pages_body(void *arg)
{
	long before;
	void *at;
	void *first;

	(void)arg;
	GOOD(tti_cuda_memory_alloc(1, &first));
	before = used_pages();
	GOOD(tti_cuda_memory_alloc(16 * MIB, &at));
	CHECK(used_pages() == before);
	memset(at, 1, 16 * MIB);
	CHECK(used_pages() == before + 4096);
	GOOD(tti_cuda_memory_free(at));
	CHECK(used_pages() == before);
	GOOD(tti_cuda_memory_free(first));
}

static void freed_memory_goes_back_to_the_kernel(void **state)
{
	(void)state;
	alone_run(pages_body, NULL);
}

/* -- Host memory -------------------------------------------------------------------------- */

static void host_body(void *arg)
{
	struct tti_cuda_range range;
	char *at;

	(void)arg;
	GOOD(tti_cuda_memory_alloc_host(5000, 3, TTI_CUDA_HOST, (void **)&at));
	memset(at, 1, 5000);
	CHECK(tti_cuda_memory_find(at + 4999, &range));
	CHECK(range.type == TTI_CUDA_HOST && range.flags == 3 && range.nbytes == 5000);
	CHECK(!tti_cuda_memory_find(at + 5000, &range) && range.type == TTI_CUDA_UNREGISTERED);
	FAILS(TTI_CUDA_EINVAL, "flags 0x8",
	      tti_cuda_memory_alloc_host(1, 8, TTI_CUDA_HOST, (void **)&at));
	FAILS(TTI_CUDA_EINVAL, "2 is no type",
	      tti_cuda_memory_alloc_host(1, 0, TTI_CUDA_DEVICE, (void **)&at));
	FAILS(TTI_CUDA_ENOMEM, "of host memory cannot be had",
	      tti_cuda_memory_alloc_host(SIZE_MAX, 0, TTI_CUDA_HOST, (void **)&at));
	CHECK(tti_cuda_memory_find(range.base, &range) == false);
	GOOD(tti_cuda_memory_free_host(at));
}

static void host_memory_is_known_as_such(void **state)
{
	(void)state;
	alone_run(host_body, NULL);
}

static void register_body(void *arg)
{
	char *const at = malloc(10000);
	struct tti_cuda_range range;
	void *device;

	(void)arg;
	CHECK(at);
	GOOD(tti_cuda_memory_register(at + 1, 5000, 1));
	CHECK(!tti_cuda_memory_find(at, &range));
	CHECK(tti_cuda_memory_find(at + 5000, &range) && range.base == at + 1);
	CHECK(range.type == TTI_CUDA_HOST);
	FAILS(TTI_CUDA_EREGISTERED, "overlap", tti_cuda_memory_register(at, 10000, 0));
	FAILS(TTI_CUDA_EREGISTERED, "overlap", tti_cuda_memory_register(at + 5000, 1, 0));
	GOOD(tti_cuda_memory_register(at + 5001, 100, 0));
	CHECK(range.flags == 3); /* it is mapped in any case */
	FAILS(TTI_CUDA_EINVAL, "lies inside", tti_cuda_memory_unregister(at + 2));
	FAILS(TTI_CUDA_EINVAL, "nothing is allocated", tti_cuda_memory_unregister(NULL));
	GOOD(tti_cuda_memory_unregister(at + 1));
	FAILS(TTI_CUDA_EUNREGISTERED, "or not any more", tti_cuda_memory_unregister(at + 1));
	GOOD(tti_cuda_memory_unregister(at + 5001));
	FAILS(TTI_CUDA_EINVAL, "are no memory", tti_cuda_memory_register(NULL, 1, 0));
	FAILS(TTI_CUDA_EINVAL, "are no memory", tti_cuda_memory_register(at, 0, 0));
	FAILS(TTI_CUDA_EINVAL, "are no memory", tti_cuda_memory_register(at, SIZE_MAX, 0));
	FAILS(TTI_CUDA_EINVAL, "not all of", tti_cuda_memory_register((void *)4096, 1, 0));
	FAILS(TTI_CUDA_EINVAL, "0x10", tti_cuda_memory_register(at, 1, 16));
	FAILS(TTI_CUDA_EINVAL, "other hardware", tti_cuda_memory_register(at, 1, 4));
	GOOD(tti_cuda_memory_register(at, 1, 8)); /* for reading alone, which it does not tell */
	CHECK(tti_cuda_memory_find(at, &range) && range.flags == 2);
	GOOD(tti_cuda_memory_unregister(at));
	GOOD(tti_cuda_memory_alloc_host(10, 0, TTI_CUDA_HOST, &device));
	CHECK(tti_cuda_memory_find(device, &range) && range.flags == 2);
	FAILS(TTI_CUDA_EINVAL, "knows already", tti_cuda_memory_register(device, 1, 0));
	FAILS(TTI_CUDA_EINVAL, "was not registered", tti_cuda_memory_unregister(device));
	GOOD(tti_cuda_memory_free_host(device));
	GOOD(tti_cuda_memory_alloc(1, &device));
	FAILS(TTI_CUDA_EINVAL, "knows already", tti_cuda_memory_register(device, 1, 0));
	FAILS(TTI_CUDA_EINVAL, "was not registered", tti_cuda_memory_unregister(device));
	GOOD(tti_cuda_memory_free(device));
	free(at);
}

static void host_memory_is_registered_once(void **state)
{
	(void)state;
	alone_run(register_body, NULL);
}

static void stale_body(void *arg)
{
	const size_t nbytes = 8 * MIB;
	char *const mine = mmap(NULL, nbytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct tti_cuda_range range;
	char *at[64];
	int n = 0;

	(void)arg;
	GOOD(tti_cuda_memory_register(mine, nbytes, 0));
	CHECK(munmap(mine, nbytes) == 0);
	/* Until some of it lies where the registered memory was. */
	do {
		GOOD(tti_cuda_memory_alloc_host(MIB, 0, TTI_CUDA_HOST, (void **)&at[n]));
		CHECK(tti_cuda_memory_find(at[n], &range) && range.base == at[n]);
		n++;
	} while (n < 64);
	while (n-- > 0)
		GOOD(tti_cuda_memory_free_host(at[n]));
	if (tti_cuda_memory_find(mine, &range))
		GOOD(tti_cuda_memory_unregister(mine));
}

static void registered_memory_that_was_unmapped_is_in_nobodys_way(void **state)
{
	(void)state;
	alone_run(stale_body, NULL);
}

/* -- Copies ------------------------------------------------------------------------------- */

static void copies_body(void *arg)
{
	char *const plain = malloc(1000);
	char *host;
	char *a;
	char *b;

	(void)arg;
	GOOD(tti_cuda_memory_alloc(1000, (void **)&a));
	GOOD(tti_cuda_memory_alloc(1000, (void **)&b));
	GOOD(tti_cuda_memory_alloc_host(1000, 0, TTI_CUDA_HOST, (void **)&host));
	GOOD(tti_cuda_memory_check_copy(a, plain, 1000, 1));
	GOOD(tti_cuda_memory_check_copy(plain, a, 1000, 2));
	GOOD(tti_cuda_memory_check_copy(a, b, 1000, 3));
	GOOD(tti_cuda_memory_check_copy(plain, plain, 1000, 0));
	GOOD(tti_cuda_memory_check_copy(host, a, 1000, 3));
	for (int kind = 0; kind <= 4; kind++)
		GOOD(tti_cuda_memory_check_copy(NULL, NULL, 0, kind));
	GOOD(tti_cuda_memory_check_copy(a, plain, 1000, 4));
	GOOD(tti_cuda_memory_check_copy(plain, plain + 500, 500, 4));
	GOOD(tti_cuda_memory_check_copy(a + 999, b + 999, 1, 4));
	FAILS(TTI_CUDA_EINVAL, "reach 1 bytes beyond the 1000 bytes",
	      tti_cuda_memory_check_copy(a, plain, 1001, 4));
	FAILS(TTI_CUDA_EINVAL, "reach 1 bytes beyond",
	      tti_cuda_memory_check_copy(plain, a + 1, 1000, 2));
	FAILS(TTI_CUDA_EINVAL, "reach 1 bytes beyond the 1000 bytes of host memory",
	      tti_cuda_memory_check_copy(a, host + 1, 1000, 1));
	FAILS(TTI_CUDA_EINVAL, "not a device's", tti_cuda_memory_check_copy(plain, a, 10, 1));
	FAILS(TTI_CUDA_EINVAL, "not a device's", tti_cuda_memory_check_copy(a, plain, 10, 2));
	FAILS(TTI_CUDA_EINVAL, "not a device's", tti_cuda_memory_check_copy(a, plain, 10, 3));
	FAILS(TTI_CUDA_EINVAL, "5 is no kind", tti_cuda_memory_check_copy(a, plain, 10, 5));
	FAILS(TTI_CUDA_EINVAL, "-1 is no kind", tti_cuda_memory_check_copy(a, plain, 0, -1));
	FAILS(TTI_CUDA_EINVAL, "are no memory", tti_cuda_memory_check_copy(NULL, a, 10, 4));
	FAILS(TTI_CUDA_EINVAL, "are no memory", tti_cuda_memory_check_copy(a, plain, SIZE_MAX, 4));
	FAILS(TTI_CUDA_EINVAL, "begin outside", tti_cuda_memory_check_copy(plain, a - 10, 20, 0));
	FAILS(TTI_CUDA_EINVAL, "not a device's", tti_cuda_memory_check(plain, 10));
	GOOD(tti_cuda_memory_free(b));
	FAILS(TTI_CUDA_EINVAL, "not a device's", tti_cuda_memory_check_copy(a, b, 10, 3));
	GOOD(tti_cuda_memory_free(a));
	GOOD(tti_cuda_memory_free_host(host));
	free(plain);
}

static void copies_that_cannot_be_are_refused(void **state)
{
	(void)state;
	alone_run(copies_body, NULL);
}

/* -- The guard ---------------------------------------------------------------------------- */

static void guard_body(void *arg)
{
	char *at;
	char *reach;
	char *host;

	(void)arg;
	CHECK(setenv("TUTTI_CUDAHOST_GUARD", "1", 1) == 0);
	GOOD(tti_cuda_memory_alloc(10000, (void **)&at));
	CHECK(!alone_can_access(at, false) && !alone_can_access(at + 9999, true));
	reach = tti_cuda_memory_reach(at + 100);
	CHECK(reach != at + 100);
	memset(reach, 7, 9900);
	CHECK(*(char *)tti_cuda_memory_reach(at + 9999) == 7);
	GOOD(tti_cuda_memory_alloc_host(10, 0, TTI_CUDA_HOST, (void **)&host));
	CHECK(tti_cuda_memory_reach(host) == host && alone_can_access(host, true));
	GOOD(tti_cuda_memory_free_host(host));
	GOOD(tti_cuda_memory_alloc_host(10, 1, TTI_CUDA_MANAGED, (void **)&host));
	CHECK(tti_cuda_memory_reach(host) == host && alone_can_access(host, true));
	GOOD(tti_cuda_memory_free(host));
	CHECK(tti_cuda_memory_reach(&reach) == &reach && !tti_cuda_memory_reach(NULL));
	GOOD(tti_cuda_memory_free(at));
}

static void guarded_memory_faults_but_where_it_is_reached(void **state)
{
	(void)state;
	alone_run(guard_body, NULL);
}

static void no_guard_body(void *arg)
{
	char *at;

	(void)arg;
	GOOD(tti_cuda_memory_alloc(10000, (void **)&at));
	CHECK(tti_cuda_memory_reach(at + 5) == at + 5 && alone_can_access(at, true));
	GOOD(tti_cuda_memory_free(at));
}

static void without_the_guard_memory_is_plain(void **state)
{
	(void)state;
	alone_run(no_guard_body, NULL);
}

static void wrong_guard_body(void *arg)
{
	void *at;

	(void)arg;
	CHECK(setenv("TUTTI_CUDAHOST_GUARD", "yes", 1) == 0);
	FAILS(TTI_CUDA_EINVAL, "TUTTI_CUDAHOST_GUARD is \"yes\": it must be 0 or 1",
	      tti_cuda_memory_alloc(1, &at));
	CHECK(alone_maps() == 0 && alone_nfiles() == 0);
}

static void the_guard_is_0_or_1(void **state)
{
	(void)state;
	alone_run(wrong_guard_body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_bytes_are_no_memory),
		cmocka_unit_test(large_memory_begins_where_huge_pages_do),
		cmocka_unit_test(no_two_allocations_share_bytes),
		cmocka_unit_test(threads_allocate_at_the_same_time),
		cmocka_unit_test(a_full_device_says_what_is_left),
		cmocka_unit_test(each_device_has_memory_of_its_own),
		cmocka_unit_test(only_what_is_allocated_can_be_freed),
		cmocka_unit_test(freed_memory_goes_back_to_the_kernel),
		cmocka_unit_test(host_memory_is_known_as_such),
		cmocka_unit_test(host_memory_is_registered_once),
		cmocka_unit_test(registered_memory_that_was_unmapped_is_in_nobodys_way),
		cmocka_unit_test(copies_that_cannot_be_are_refused),
		cmocka_unit_test(guarded_memory_faults_but_where_it_is_reached),
		cmocka_unit_test(without_the_guard_memory_is_plain),
		cmocka_unit_test(the_guard_is_0_or_1),
	};

	(void)setenv("TUTTI_CUDAHOST_MEMORY", "64M", 1);
	(void)setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	(void)unsetenv("TUTTI_CUDAHOST_GUARD");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
