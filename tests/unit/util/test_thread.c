/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/thread.h"

struct seen {
	_Atomic uint32_t named;
	sigset_t mask;
	size_t stack_bytes;
	char name[16];
};

static void *look_around(void *arg)
{
	struct seen *seen = arg;
	pthread_attr_t attr;

	pthread_sigmask(SIG_SETMASK, NULL, &seen->mask);
	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		pthread_attr_getstacksize(&attr, &seen->stack_bytes);
		pthread_attr_destroy(&attr);
	}
	/* The starter names it after it has started. */
	for (int i = 0; i < 60000 && !atomic_load(&seen->named); i++)
		usleep(1000);
	pthread_getname_np(pthread_self(), seen->name, sizeof(seen->name));
	return arg;
}

static void a_thread_has_name_mask_and_small_stack(void **state)
{
	struct seen seen = { 0 };
	sigset_t before, after;
	pthread_t thread;
	void *result;

	(void)state;
	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(tti_thread_start(&thread, "tutti-progress-3", look_around, &seen),
			 TUTTI_OK);
	atomic_store(&seen.named, 1);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &seen);
	assert_string_equal(seen.name, "tutti-progress-");
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	for (int signal = 1; signal < SIGRTMIN; signal++)
		assert_int_equal(sigismember(&after, signal), sigismember(&before, signal));
	assert_int_equal(sigismember(&seen.mask, SIGINT), 1);
	assert_int_equal(sigismember(&seen.mask, SIGTERM), 1);
	assert_int_equal(sigismember(&seen.mask, SIGPIPE), 1);
	assert_int_equal(sigismember(&seen.mask, SIGUSR1), 1);
	/* A blocked fault would end the process without the program's handler. */
	assert_int_equal(sigismember(&seen.mask, SIGSEGV), 0);
	assert_int_equal(sigismember(&seen.mask, SIGBUS), 0);
	assert_true(seen.stack_bytes > 0 && seen.stack_bytes <= 2 << 20);
}

static void a_start_can_be_made_to_fail(void **state)
{
	pthread_t thread;

	(void)state;
	tti_fault_set("thread:1");
	assert_int_equal(tti_thread_start(&thread, "x", look_around, NULL), TUTTI_ESYS);
	assert_non_null(strstr(tti_error_text(), "thread x"));
	tti_fault_set(NULL);
}

static void cpus_are_at_most_the_affinity(void **state)
{
	cpu_set_t old, one;
	size_t first = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
	assert_true(tti_cpu_count() >= 1);
	assert_true(tti_cpu_count() <= CPU_COUNT(&old));
	while (!CPU_ISSET(first, &old))
		first++;
	CPU_ZERO(&one);
	CPU_SET(first, &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(tti_cpu_count(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
}

static char root[] = "/tmp/tutti-cpus-XXXXXX";

/* Write a file below root, with the directories above it. */
static void put(const char *path, const char *text)
{
	char full[400];
	FILE *file;

	snprintf(full, sizeof(full), "%s/%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	file = fopen(full, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int make_root(void **state)
{
	(void)state;
	memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	char command[100];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

static void quota_v2(void **state)
{
	(void)state;
	assert_int_equal(tti_cpu_quota(root), 0);
	put("proc/self/cgroup", "0::/job/step\n");
	assert_int_equal(tti_cpu_quota(root), 0);
	put("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
	assert_int_equal(tti_cpu_quota(root), 0);
	put("sys/fs/cgroup/job/step/cpu.max", "400000 100000\n");
	assert_int_equal(tti_cpu_quota(root), 4);
	put("sys/fs/cgroup/job/step/cpu.max", "400001 100000\n");
	assert_int_equal(tti_cpu_quota(root), 5);
	/* The group above allows less. */
	put("sys/fs/cgroup/job/cpu.max", "50000 100000\n");
	assert_int_equal(tti_cpu_quota(root), 1);
	/* A container sees its own group as the root of the tree. */
	put("proc/self/cgroup", "0::/not/visible/here\n");
	put("sys/fs/cgroup/cpu.max", "300000 100000\n");
	assert_int_equal(tti_cpu_quota(root), 3);
}

static void quota_v1(void **state)
{
	(void)state;
	put("proc/self/cgroup", "12:cpuset:/a\n4:cpu,cpuacct:/b/c\n1:name=systemd:/d\n");
	put("sys/fs/cgroup/cpuset/a/cpu.cfs_quota_us", "100000\n");
	put("sys/fs/cgroup/cpuset/a/cpu.cfs_period_us", "100000\n");
	assert_int_equal(tti_cpu_quota(root), 0);
	put("sys/fs/cgroup/cpu,cpuacct/b/c/cpu.cfs_quota_us", "-1\n");
	put("sys/fs/cgroup/cpu,cpuacct/b/c/cpu.cfs_period_us", "100000\n");
	assert_int_equal(tti_cpu_quota(root), 0);
	put("sys/fs/cgroup/cpu,cpuacct/b/c/cpu.cfs_quota_us", "250000\n");
	assert_int_equal(tti_cpu_quota(root), 3);
	put("sys/fs/cgroup/cpu/b/cpu.cfs_quota_us", "200000\n");
	assert_int_equal(tti_cpu_quota(root), 3);
	put("sys/fs/cgroup/cpu/b/cpu.cfs_period_us", "100000\n");
	assert_int_equal(tti_cpu_quota(root), 2);
}

static void odd_files_are_no_quota(void **state)
{
	char deep[5000];

	(void)state;
	put("proc/self/cgroup", "garbage\n:\n::\n0:\n0::\n");
	assert_int_equal(tti_cpu_quota(root), 0);
	put("proc/self/cgroup", "0::/\n");
	put("sys/fs/cgroup/cpu.max", "");
	assert_int_equal(tti_cpu_quota(root), 0);
	put("sys/fs/cgroup/cpu.max", "100000 0\n");
	assert_int_equal(tti_cpu_quota(root), 0);
	put("sys/fs/cgroup/cpu.max", "99999999999999999999 1\n");
	assert_int_equal(tti_cpu_quota(root), 0);
	memset(deep, 'd', sizeof(deep));
	memcpy(deep, "0::/", 4);
	deep[sizeof(deep) - 1] = '\0';
	put("proc/self/cgroup", deep);
	assert_int_equal(tti_cpu_quota(root), 0);
}

static void futex_does_not_sleep_in_vain(void **state)
{
	_Atomic uint32_t word = 5;
	int64_t start = tti_now_ns();

	(void)state;
	tti_futex_wait(&word, 4, 60000 * TTI_NS_PER_MS);
	tti_futex_wait(&word, 5, 0);
	tti_futex_wait(&word, 5, -1);
	tti_futex_wake(&word, 1);
	assert_true(tti_now_ns() - start < 10000 * TTI_NS_PER_MS);
	start = tti_now_ns();
	while (tti_now_ns() - start < 50 * TTI_NS_PER_MS)
		tti_futex_wait(&word, 5, 20 * TTI_NS_PER_MS);
	tti_cpu_relax();
}

static void *wake(void *arg)
{
	_Atomic uint32_t *word = arg;

	usleep(50000);
	atomic_store(word, 1);
	tti_futex_wake(word, INT32_MAX);
	return NULL;
}

static void futex_wakes_a_thread(void **state)
{
	const int64_t start = tti_now_ns();
	_Atomic uint32_t word = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(tti_thread_start(&thread, "waker", wake, &word), TUTTI_OK);
	while (atomic_load(&word) == 0)
		tti_futex_wait(&word, 0, 60000 * TTI_NS_PER_MS);
	assert_true(tti_now_ns() - start < 30000 * TTI_NS_PER_MS);
	pthread_join(thread, NULL);
}

static void futex_wakes_another_process(void **state)
{
	const int64_t start = tti_now_ns();
	_Atomic uint32_t *word =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t pid;

	(void)state;
	assert_true(word != MAP_FAILED);
	pid = fork();
	if (pid == 0) {
		wake(word);
		_exit(0);
	}
	while (atomic_load(word) == 0)
		tti_futex_wait(word, 0, 60000 * TTI_NS_PER_MS);
	assert_true(tti_now_ns() - start < 30000 * TTI_NS_PER_MS);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	munmap((void *)word, 4096);
}

#define WITH_ROOT(test) cmocka_unit_test_setup_teardown(test, make_root, remove_root)

static void *become_low_latency(void *arg)
{
	int *const kept = arg;
	const int priority = getpriority(PRIO_PROCESS, 0), policy = sched_getscheduler(0);

	tti_thread_low_latency();
	*kept = getpriority(PRIO_PROCESS, 0) == priority && sched_getscheduler(0) == policy;
	return NULL;
}

static void a_low_latency_thread_keeps_its_priority(void **state)
{
	pthread_t thread;
	int kept = 0;

	(void)state;
	assert_int_equal(tti_thread_start(&thread, "prompt", become_low_latency, &kept), TUTTI_OK);
	pthread_join(thread, NULL);
	assert_true(kept);
}

static void the_threads_of_a_core_have_its_number(void **state)
{
	(void)state;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		const int core = tti_cpu_core(cpu);

		assert_true(core >= 0 && core <= cpu);
		assert_int_equal(tti_cpu_core(core), core);
	}
	assert_int_equal(tti_cpu_core(99999), 99999); /* is not there */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_has_name_mask_and_small_stack),
		cmocka_unit_test(a_start_can_be_made_to_fail),
		cmocka_unit_test(a_low_latency_thread_keeps_its_priority),
		cmocka_unit_test(cpus_are_at_most_the_affinity),
		WITH_ROOT(quota_v2),
		WITH_ROOT(quota_v1),
		WITH_ROOT(odd_files_are_no_quota),
		cmocka_unit_test(futex_does_not_sleep_in_vain),
		cmocka_unit_test(futex_wakes_a_thread),
		cmocka_unit_test(futex_wakes_another_process),
		cmocka_unit_test(the_threads_of_a_core_have_its_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
