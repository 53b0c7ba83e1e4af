/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered memory between processes: results, a rank that is killed while others read its
 * memory, what is left behind. */
#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/crew.h"
#include "tutti/inspect.h"

#define COUNT   ((size_t)1 << 18)
#define SOON_NS INT64_C(20000000000) /* it is known within milliseconds */

static int *memory; /* of this rank: the first call gets it */
static int coll_in_use;

static tutti_status get_memory(tutti_comm_t comm)
{
	if (memory)
		return TUTTI_OK;
	return tutti_mem_alloc((void **)&memory, 2 * COUNT * sizeof(int), comm);
}

static tutti_status check_way(tutti_comm_t comm)
{
	struct tutti_call_report report;
	const tutti_status st = tutti_comm_last_call(comm, &report);

	if (st != TUTTI_OK)
		return st;
	return strcmp(report.algorithm, "memory") ? TUTTI_EINTERNAL : TUTTI_OK;
}

/* A sum that everybody checks; stops after some rounds. A wrong result is an odd status. */
static tutti_status checked_call(struct crew *crew, int rank, tutti_comm_t comm)
{
	static int round;
	tutti_status st = get_memory(comm);
	int *const send = memory, *const recv = memory + COUNT;

	for (size_t i = 0; i < COUNT && st == TUTTI_OK; i++)
		send[i] = round * 3 + rank + (int)(i % 1000);
	if (st == TUTTI_OK)
		st = tutti_all_reduce(send, recv, COUNT, TUTTI_INT32, TUTTI_SUM, comm, NULL);
	if (st == TUTTI_OK)
		st = check_way(comm);
	for (size_t i = 0; i < COUNT && st == TUTTI_OK; i++)
		if (recv[i] !=
		    crew->n * (round * 3 + (int)(i % 1000)) + crew->n * (crew->n - 1) / 2)
			st = TUTTI_EINTERNAL;
	if (st == TUTTI_OK && ++round == 20)
		atomic_store(&crew->stop, 1);
	return st;
}

static void results(void **state)
{
	(void)state;
	for (int n = 2; n <= 5; n++) {
		struct crew *crew = crew_create(n, "shm", checked_call);

		assert_int_equal(crew_start(crew), 0);
		assert_int_equal(crew_wait(crew, 60000, -1), 0);
		for (int rank = 0; rank < n; rank++) {
			const int status = crew->rank[rank].status;

			/* Ranks are not stopped in the same round: some see others leave. */
			if (status != TUTTI_OK && status != TUTTI_EPEER)
				fail_msg("%d ranks, rank %d: %d, %s", n, rank, status,
					 crew->rank[rank].text);
			assert_true(crew->rank[rank].calls >= 19);
		}
		crew_free(crew);
	}
}

static tutti_status any_call(struct crew *crew, int rank, tutti_comm_t comm)
{
	const size_t part = COUNT / (size_t)crew->n;
	const tutti_status st = get_memory(comm);
	int *const send = memory, *const recv = memory + COUNT;

	(void)rank;
	if (st != TUTTI_OK)
		return st;
	switch (coll_in_use) {
	case 0:
		return tutti_all_reduce(send, recv, COUNT, TUTTI_INT32, TUTTI_SUM, comm, NULL);
	case 1:
		return tutti_broadcast(send, recv, COUNT, TUTTI_INT32, 0, comm, NULL);
	case 2:
		return tutti_all_gather(send, recv, part, TUTTI_INT32, comm, NULL);
	default:
		return tutti_reduce_scatter(send, recv, part, TUTTI_INT32, TUTTI_SUM, comm, NULL);
	}
}

/* Whoever is killed in the middle, the others end soon, with their memory. */
static void deaths(void **state)
{
	unsigned seed = (unsigned)time(NULL);

	(void)state;
	printf("seed %u\n", seed);
	for (int run = 0; run < 12; run++) {
		const int n = 2 + run % 3, victim = (int)((unsigned)rand_r(&seed) % (unsigned)n);
		struct crew *crew;
		int64_t killed_ns;
		int stuck;

		coll_in_use = run % 4;
		crew = crew_create(n, "shm", any_call);
		assert_int_equal(crew_start(crew), 0);
		crew_nap_us((int)(rand_r(&seed) % 30000));
		killed_ns = crew_now_ns();
		kill(crew->rank[victim].pid, SIGKILL);
		stuck = crew_wait(crew, 60000, victim);
		for (int rank = 0; rank < n; rank++) {
			const struct crew_rank *own = &crew->rank[rank];

			if (rank != victim && (own->status != TUTTI_EPEER ||
					       own->failed_ns - killed_ns > SOON_NS || !own->done))
				fail_msg("run %d of seed, rank %d of %d: status %d, done %d, %s",
					 run, rank, n, own->status, own->done, own->text);
		}
		assert_int_equal(stuck, 0);
		crew_free(crew);
	}
}

/* The first memory of a process begins where its heap does, and is lent from there on. In a ring,
 * by itself or as a group. */
static tutti_status lend_all(struct crew *crew, int rank, tutti_comm_t comm)
{
	const int to = (rank + 1) % crew->n, from = (rank + crew->n - 1) % crew->n;
	static int round;
	const bool in_group = round++ % 2;
	tutti_status st = get_memory(comm);
	int *const send = memory, *const recv = memory + COUNT;

	for (size_t i = 0; i < COUNT && st == TUTTI_OK; i++) {
		send[i] = 7 * round + rank + (int)(i % 1000);
		recv[i] = -1;
	}
	if (st == TUTTI_OK && in_group)
		st = tutti_group_start();
	for (int turn = 0; turn < 2 && st == TUTTI_OK; turn++)
		if ((rank > 0) == (turn > 0)) {
			st = tutti_send(send, COUNT, TUTTI_INT32, to, comm, NULL);
			if (st == TUTTI_OK && !in_group)
				st = check_way(comm);
		} else {
			st = tutti_recv(recv, COUNT, TUTTI_INT32, from, comm, NULL);
		}
	if (st == TUTTI_OK && in_group) {
		st = tutti_group_end();
		if (st == TUTTI_OK)
			st = check_way(comm);
	}
	for (size_t i = 0; i < COUNT && st == TUTTI_OK; i++)
		if (recv[i] != 7 * round + from + (int)(i % 1000))
			st = TUTTI_EINTERNAL;
	if (st == TUTTI_OK && round == 8) {
		st = tutti_barrier(comm, NULL);
		atomic_store(&crew->stop, 1);
	}
	return st;
}

static void what_is_first_is_lent(void **state)
{
	struct crew *crew = crew_create(2, "shm", lend_all);

	(void)state;
	assert_int_equal(setenv("TUTTI_ALGO", "send_recv:memory", 1), 0);
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(unsetenv("TUTTI_ALGO"), 0);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < crew->n; rank++)
		if (crew->rank[rank].status != TUTTI_OK || crew->rank[rank].calls != 8)
			fail_msg("rank %d: %d, call %d, %s", rank, crew->rank[rank].status,
				 (int)crew->rank[rank].calls, crew->rank[rank].text);
	crew_free(crew);
}

/* A child that a rank forks shares the memory, and its end does not disturb anybody. */
static tutti_status forking_call(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_status st = get_memory(comm);
	pid_t child;

	if (st != TUTTI_OK)
		return st;
	memory[0] = 1;
	child = fork();
	if (child == 0) {
		memory[0] += 41 + rank;
		_exit(0);
	}
	while (child > 0 && kill(child, 0) == 0 && memory[0] == 1)
		crew_nap_us(100);
	if (memory[0] != 42 + rank)
		return TUTTI_EINTERNAL;
	st = tutti_all_reduce(memory, memory + COUNT, COUNT, TUTTI_INT32, TUTTI_MAX, comm, NULL);
	if (st == TUTTI_OK && memory[COUNT] != 41 + crew->n)
		st = TUTTI_EINTERNAL;
	if (st == TUTTI_OK)
		st = tutti_mem_free(memory, comm);
	memory = NULL;
	if (st == TUTTI_OK)
		st = tutti_barrier(comm, NULL);
	atomic_store(&crew->stop, 1);
	return st;
}

static void a_fork(void **state)
{
	struct crew *crew = crew_create(3, "shm", forking_call);

	(void)state;
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < 3; rank++) {
		const int status = crew->rank[rank].status;

		if (status != TUTTI_OK && status != TUTTI_EPEER)
			fail_msg("rank %d: %d, %s", rank, status, crew->rank[rank].text);
		assert_true(crew->rank[rank].calls >= 1);
	}
	crew_free(crew);
}

/* -- A rank that is slow to pass its heap --------------------------------------- */

static struct slow {
	_Atomic int is_between, may_go;
} * slow;
static bool is_slow, takes; /* this process */

/* Takes the place of libc's: a file that rank 2 passes comes late over its connection. */
ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t (*const real)(int, const struct msghdr *, int) =
		(ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");

	if (is_slow && message->msg_controllen) {
		is_slow = false;
		atomic_store(&slow->is_between, 1);
		while (!atomic_load(&slow->may_go))
			crew_nap_us(100);
	}
	return real(fd, message, flags);
}

/* Takes the place of libc's: rank 0 takes the heap of rank 1 while that of rank 2 is on its way. */
int accept4(int fd, struct sockaddr *from, socklen_t *len, int flags)
{
	int (*const real)(int, struct sockaddr *, socklen_t *, int) =
		(int (*)(int, struct sockaddr *, socklen_t *, int))dlsym(RTLD_NEXT, "accept4");
	const int got = real(fd, from, len, flags);

	if (takes && got < 0 && atomic_load(&slow->is_between))
		atomic_store(&slow->may_go, 1);
	return got;
}

static tutti_status pass_slowly(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_status st = get_memory(comm);

	is_slow = rank == 2;
	while (rank != 2 && !atomic_load(&slow->is_between))
		crew_nap_us(100);
	takes = rank == 0;
	if (st == TUTTI_OK)
		st = checked_call(crew, rank, comm);
	takes = false;
	atomic_store(&slow->may_go, 1); /* also if it failed */
	atomic_store(&crew->stop, 1);
	return st;
}

static void a_heap_that_comes_late_is_not_lost(void **state)
{
	struct crew *crew = crew_create(3, "shm", pass_slowly);

	(void)state;
	slow = mmap(NULL, sizeof(*slow), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(slow, MAP_FAILED);
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, 60000, -1), 0);
	for (int rank = 0; rank < 3; rank++)
		if (crew->rank[rank].status != TUTTI_OK || crew->rank[rank].calls != 1)
			fail_msg("rank %d: %d, %s", rank, crew->rank[rank].status,
				 crew->rank[rank].text);
	assert_int_equal(slow->is_between, 1);
	crew_free(crew);
	munmap(slow, sizeof(*slow));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_heap_that_comes_late_is_not_lost),
		cmocka_unit_test(results),
		cmocka_unit_test(what_is_first_is_lent),
		cmocka_unit_test(deaths),
		cmocka_unit_test(a_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
