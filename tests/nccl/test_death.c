/* SPDX-License-Identifier: BSD-3-Clause */
/* kill -9 of a rank while all are in ncclAllReduce(): each other rank gets ncclRemoteError, and a thread
 * that asks ncclCommGetAsyncError() sees it in time. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "nccl/nccl.h"

#define RANKS   3
#define COUNT   100000
#define LATE_MS 10000 /* ten times what is promised */

/* Shared by the processes. */
struct job {
	ncclUniqueId id;
	_Atomic int has_id;
	struct {
		_Atomic int calls;
		_Atomic int result;   /* of the call that failed */
		_Atomic int64_t told; /* when the error was seen, in ms */
		char text[256];
	} rank[RANKS];
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct watcher {
	struct job *job;
	int rank;
	ncclComm_t comm;
};

static void *watch(void *arg)
{
	struct watcher *watcher = arg;
	ncclResult_t result = ncclSuccess;

	while (ncclCommGetAsyncError(watcher->comm, &result) == ncclSuccess &&
	       result == ncclSuccess)
		usleep(1000);
	if (result == ncclRemoteError)
		atomic_store(&watcher->job->rank[watcher->rank].told, now_ms());
	return NULL;
}

/* Its exit status. */
static int run_rank(struct job *job, int rank)
{
	static float send[COUNT], recv[COUNT];
	struct watcher watcher = { job, rank, NULL };
	ncclResult_t result = ncclSuccess;
	pthread_t thread;

	if (rank == 0) {
		if (ncclGetUniqueId(&job->id) != ncclSuccess)
			return 1;
		atomic_store(&job->has_id, 1);
	}
	while (!atomic_load(&job->has_id))
		usleep(1000);
	if (ncclCommInitRank(&watcher.comm, RANKS, job->id, rank) != ncclSuccess ||
	    pthread_create(&thread, NULL, watch, &watcher) != 0)
		return 2;
	while (result == ncclSuccess) {
		result = ncclAllReduce(send, recv, COUNT, ncclFloat32, ncclSum, watcher.comm, NULL);
		atomic_fetch_add(&job->rank[rank].calls, 1);
	}
	(void)snprintf(job->rank[rank].text, sizeof(job->rank[rank].text), "%s",
		       ncclGetLastError(watcher.comm));
	atomic_store(&job->rank[rank].result, (int)result);
	pthread_join(thread, NULL);
	return ncclCommAbort(watcher.comm) == ncclSuccess ? 0 : 3;
}

static void a_killed_rank_is_an_error_of_the_others(void **state)
{
	struct job *job =
		mmap(NULL, sizeof(*job), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const int victim = 1;
	pid_t pids[RANKS];
	int64_t killed;

	(void)state;
	assert_true(job != MAP_FAILED);
	for (int rank = 0; rank < RANKS; rank++) {
		pids[rank] = fork();
		assert_true(pids[rank] >= 0);
		if (pids[rank] == 0)
			_exit(run_rank(job, rank));
	}
	for (int rank = 0; rank < RANKS; rank++)
		for (int ms = 0; ms < 60000 && atomic_load(&job->rank[rank].calls) < 20; ms++)
			usleep(1000);
	killed = now_ms();
	kill(pids[victim], SIGKILL);
	for (int rank = 0; rank < RANKS; rank++) {
		int status = -1;

		assert_int_equal(waitpid(pids[rank], &status, 0), pids[rank]);
		if (rank == victim)
			continue;
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		assert_int_equal(atomic_load(&job->rank[rank].result), ncclRemoteError);
		assert_true(job->rank[rank].text[0] != '\0');
		print_message("rank %d was told after %d ms: %s\n", rank,
			      (int)(atomic_load(&job->rank[rank].told) - killed),
			      job->rank[rank].text);
		assert_true(atomic_load(&job->rank[rank].told) >= killed);
		assert_true(atomic_load(&job->rank[rank].told) - killed < LATE_MS);
	}
	munmap(job, sizeof(*job));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_rank_is_an_error_of_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
