/* SPDX-License-Identifier: BSD-3-Clause */
/* One rank fails while a communicator is made, at each allocation, start of a thread and system call
 * in turn. All ranks get an error soon, which names that rank, or none does; and the communicator that
 * it was made of works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include "support/crew.h"
#include "util/fault.h"

#define N       3
/* Ten times what is needed; TUTTI_BOOT_TIMEOUT_MS is 120 s. */
#define SOON_NS INT64_C(10000000000)
#define WAIT_MS 120000

/* What is made of the crew's communicator, or beside it. */
enum kind { INIT, SPLIT, GROUP, SHRINK, GROW };

static struct shared {
	tutti_unique_id id;
	_Atomic int status[N];
	_Atomic bool is_over;     /* the last fault was not reached any more */
	_Atomic int nfailed, pid; /* the victim's */
	char text[N][512];
	char fault[64];
} * shared;

/* What the test is about. */
static struct {
	enum kind kind;
	int victim;
	/* Of tti_fault(); "system": system calls; "argument": the first call has a wrong one. */
	const char *transport, *point;
} plan;

/* -- System calls that fail ------------------------------------------------------------- */

/* By functions of their names that come before the C library's. They are counted together, on all
 * threads. */

static atomic_int left; /* calls until one fails, 0: none does */
static _Atomic(const char *) failed;

/* The call of that number from now on (1: the next) fails; 0: none does. */
static void system_calls_fail(int number)
{
	atomic_store(&failed, NULL);
	atomic_store(&left, number);
}

/* Which one failed last since then; NULL: none did. */
static const char *system_calls_failed(void)
{
	return atomic_load(&failed);
}

static bool fails(const char *name, int error)
{
	int now = atomic_load(&left);

	while (now > 1 && !atomic_compare_exchange_weak(&left, &now, now - 1))
		;
	if (now != 1 || !atomic_compare_exchange_strong(&left, &now, 0))
		return false;
	atomic_store(&failed, name);
	errno = error;
	return true;
}

/* The function in place of the system's: its arguments with types, and their names. */
#define FAIL(name, error, types, names)                       \
	int name types;                                       \
	int name types                                        \
	{                                                     \
		int(*real) types;                             \
                                                              \
		*(void **)&real = dlsym(RTLD_NEXT, #name);    \
		return fails(#name, error) ? -1 : real names; \
	}

FAIL(socket, EMFILE, (int family, int type, int protocol), (family, type, protocol))
FAIL(bind, EADDRINUSE, (int fd, const struct sockaddr *at, socklen_t size), (fd, at, size))
FAIL(listen, EADDRINUSE, (int fd, int most), (fd, most))
FAIL(connect, ENOBUFS, (int fd, const struct sockaddr *to, socklen_t size), (fd, to, size))
FAIL(accept4, EMFILE, (int fd, struct sockaddr *from, socklen_t *size, int flags),
     (fd, from, size, flags))
FAIL(epoll_create1, EMFILE, (int flags), (flags))
FAIL(eventfd, EMFILE, (unsigned int count, int flags), (count, flags))
FAIL(memfd_create, EMFILE, (const char *name, unsigned int flags), (name, flags))
FAIL(ftruncate, ENOSPC, (int fd, off_t size), (fd, size))

int epoll_ctl(int epoll, int what, int fd, struct epoll_event *event)
{
	int (*real)(int, int, int, struct epoll_event *);

	*(void **)&real = dlsym(RTLD_NEXT, "epoll_ctl");
	return what == EPOLL_CTL_ADD && fails("epoll_ctl", ENOSPC) ? -1
								   : real(epoll, what, fd, event);
}

/* -- Making one ------------------------------------------------------------------------ */

static tutti_status make(tutti_comm_t comm, int rank, bool is_mistaken, tutti_comm_t *out)
{
	static const int ranks[] = { 2, 0, 1 };
	tutti_config config = TUTTI_CONFIG_INIT;
	const int none[] = { 0 };

	is_mistaken &= rank == plan.victim && !strcmp(plan.point, "argument");
	if (is_mistaken && plan.kind != SPLIT)
		config.traffic_class = 256;
	config.transport = plan.transport;
	switch (plan.kind) {
	case INIT:
		return tutti_comm_init_rank_config(out, N, shared->id, rank, &config);
	case SPLIT:
		return tutti_comm_split(comm, is_mistaken ? -7 : 0, -rank, out, &config);
	case GROUP:
		return tutti_comm_create_group(comm, ranks, N, 1, out, &config);
	case SHRINK:
		return tutti_comm_shrink(comm, none, 0, out, &config, TUTTI_SHRINK_DEFAULT);
	case GROW:
		/* Rank 2 is new. */
		return rank < 2 ? tutti_comm_grow(comm, N, rank == 0 ? &shared->id : NULL, -1, out,
						  &config)
				: tutti_comm_init_rank_config(out, N, shared->id, rank, &config);
	}
	return TUTTI_EINTERNAL;
}

static void arm(int number)
{
	char list[64];

	(void)snprintf(list, sizeof(list), "%s:%d", plan.point, number);
	(void)snprintf(shared->fault, sizeof(shared->fault), "%s", list);
	if (strcmp(plan.point, "argument") == 0)
		return;
	if (strcmp(plan.point, "system") == 0)
		system_calls_fail(number);
	else
		tti_fault_set(list);
}

/* Whether it failed. */
static bool disarm(void)
{
	const char *call = system_calls_failed();
	const bool has_failed = tti_fault_set(NULL) || call;

	system_calls_fail(0);
	if (call)
		(void)snprintf(shared->fault + strlen(shared->fault), 32, " (%s)", call);
	return has_failed;
}

static tutti_status sum_up(tutti_comm_t comm, int n)
{
	int one = 1, sum = 0;
	const tutti_status st = tutti_all_reduce(&one, &sum, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL);

	return st == TUTTI_OK && sum != n ? TUTTI_EINTERNAL : st;
}

static tutti_status complain(int rank, const char *what)
{
	fprintf(stderr, "%s on rank %d, rank %d: %s\n", shared->fault, plan.victim, rank, what);
	for (int at = 0; at < N; at++)
		fprintf(stderr, "  rank %d: %s: %s\n", at,
			tutti_status_name((tutti_status)atomic_load(&shared->status[at])),
			shared->text[at]);
	return TUTTI_EINTERNAL;
}

/* All have tried. */
static tutti_status judge(int rank, int64_t took_ns, tutti_comm_t made)
{
	char name[32], process[32];
	int nfailed = 0;

	for (int at = 0; at < N; at++)
		nfailed += atomic_load(&shared->status[at]) != TUTTI_OK;
	if (took_ns > SOON_NS)
		return complain(rank, "it took too long");
	if (nfailed == 0)
		return sum_up(made, N) == TUTTI_OK ? TUTTI_OK : complain(rank, "of no use");
	/* It failed when this rank was through. */
	if (made && sum_up(made, N) != TUTTI_EPEER)
		return complain(rank, "only some failed");
	if (made)
		(void)snprintf(shared->text[rank], sizeof(shared->text[rank]), "%s",
			       tutti_last_error(made));
	(void)snprintf(name, sizeof(name), "rank %d", plan.victim);
	(void)snprintf(process, sizeof(process), "process %d", atomic_load(&shared->pid));
	if (rank != plan.victim && !strstr(shared->text[rank], name) &&
	    !strstr(shared->text[rank], process))
		return complain(rank, "it does not name the rank");
	if (rank == 0)
		atomic_fetch_add(&shared->nfailed, 1);
	return TUTTI_OK;
}

static tutti_status try(tutti_comm_t all, tutti_comm_t comm, int rank, int number)
{
	tutti_comm_t made = NULL;
	tutti_status st = TUTTI_OK;

	if (rank == 0 && (plan.kind == INIT || plan.kind == GROW))
		st = tutti_get_unique_id(&shared->id);
	if (st == TUTTI_OK)
		st = sum_up(all, N);
	if (st != TUTTI_OK)
		return complain(rank, tutti_last_error(all));
	if (rank == plan.victim && number > 0)
		arm(number);

	const int64_t begin_ns = crew_now_ns();

	st = make(comm, rank, number == 1, &made);

	const int64_t took_ns = crew_now_ns() - begin_ns;

	if (rank == plan.victim && !disarm() && number > 0)
		atomic_store(&shared->is_over, true);
	(void)snprintf(shared->text[rank], sizeof(shared->text[rank]), "%s",
		       st == TUTTI_OK ? "" : tutti_last_error(NULL));
	atomic_store(&shared->status[rank], st);
	st = sum_up(all, N);
	if (st == TUTTI_OK && comm)
		st = sum_up(comm, plan.kind == GROW ? 2 : N);
	if (st != TUTTI_OK)
		return complain(rank, tutti_last_error(comm));
	st = judge(rank, took_ns, made);
	tutti_comm_destroy(made);
	return sum_up(all, N) == TUTTI_OK ? st : TUTTI_EINTERNAL;
}

static tutti_status each_in_turn(struct crew *crew, int rank, tutti_comm_t all)
{
	tutti_comm_t parent = NULL;
	tutti_status st = TUTTI_OK;
	/* After each failure a rank of a child waits half a second for news of the parent: all take a
	 * minute. */
	const bool takes_long = plan.kind != INIT && !strcmp(plan.point, "mem");
	const int step = takes_long && !getenv("TEST_ALL") ? 5 : 1;
	int number = 1;

	if (rank == plan.victim)
		atomic_store(&shared->pid, getpid());
	/* Not the crew's own: a child takes nothing of it. */
	if (plan.kind != INIT)
		st = tutti_comm_split(all, plan.kind == GROW && rank == 2 ? TUTTI_NOCOLOR : 0, 0,
				      &parent, NULL);
	/* What is kept of a first one does not count. */
	if (st == TUTTI_OK)
		st = try(all, parent, rank, 0);
	for (; st == TUTTI_OK && !atomic_load(&shared->is_over); number += step)
		st = try(all, parent, rank, number);
	if (rank == 0)
		fprintf(stderr, "%s: up to %d, %d failed\n", plan.point, number,
			atomic_load(&shared->nfailed));
	tutti_comm_destroy(parent);
	crew->stop = 1;
	return st;
}

static void run(enum kind kind, int victim, const char *transport, const char *point)
{
	struct crew *crew = crew_create(N, transport, each_in_turn);

	plan.kind = kind;
	plan.victim = victim;
	plan.transport = transport;
	plan.point = point;
	memset(shared, 0, sizeof(*shared));
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, WAIT_MS, -1), 0);
	for (int rank = 0; rank < N; rank++)
		if (crew->rank[rank].status != TUTTI_OK)
			fail_msg("rank %d: %s: %s", rank,
				 tutti_status_name((tutti_status)crew->rank[rank].status),
				 crew->rank[rank].text);
	assert_true(atomic_load(&shared->nfailed) > 0);
	crew_free(crew);
}

static void an_init(void **state)
{
	(void)state;
	run(INIT, 1, "shm,self", "mem");
	run(INIT, 1, "tcp,self", "mem");
	run(INIT, 1, "shm,self", "thread");
	run(INIT, 1, "tcp,self", "system");
	run(INIT, 1, "shm,self", "shm.mmap");
	run(INIT, 1, "shm,self", "core.setup");
	run(INIT, 1, "shm,self", "argument");
}

static void a_rank_that_serves_the_id(void **state)
{
	(void)state;
	run(INIT, 0, "tcp,self", "thread");
	run(INIT, 0, "shm,self", "shm.memfd");
}

static void children(void **state)
{
	(void)state;
	run(SPLIT, 1, "tcp,self", "system");
	run(SPLIT, 1, "shm,self", "shm.mmap");
	run(SPLIT, 0, "shm,self", "core.child");
	run(SPLIT, 1, "shm,self", "argument");
	run(GROUP, 1, "shm,self", "mem");
	run(SHRINK, 1, "shm,self", "mem");
	run(GROW, 1, "tcp,self", "system");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_init),
		cmocka_unit_test(a_rank_that_serves_the_id),
		cmocka_unit_test(children),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
