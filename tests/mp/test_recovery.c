/* SPDX-License-Identifier: BSD-3-Clause */
/* Sequences of recoveries: eight ranks that are processes call without end, seven of them are killed,
 * one after the other or close together, and each time those that are left shrink; then the last one
 * grows to eight again. All results are looked at. Over shared memory, over TCP, and over both.
 *
 *   TEST_CASES  how many sequences, spread over these three (12)
 *   TEST_SEED   of the first one; the next one's is one more (1) */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/crew.h"
#include "support/sanitizer.h"
#include "support/threads.h"

#define N           8
#define LARGE       20000
#define ENOUGH      (N + 1) /* as a number of ranks to grow to: there is nothing left to do */
#define DEADLINE_NS INT64_C(60000000000)

struct seat {
	pid_t pid;                /* 0: nobody sits here */
	_Atomic unsigned members; /* of the communicator of the last call, a bit for each seat */
	_Atomic int failed;
	char text[400];
};

static struct room {
	const char *transport; /* NULL: auto */
	bool two_hosts;
	tutti_unique_id id;
	_Atomic int nranks; /* that shall be; more than there are: grow */
	_Atomic int id_for; /* so many ranks `id` is for: 0: not made yet */
	struct seat seat[N];
} * room;

/* -- A rank --------------------------------------------------------------------- */

static int fail_rank(struct seat *seat, tutti_comm_t comm, const char *what)
{
	snprintf(seat->text, sizeof(seat->text), "%s: %s", what, tutti_last_error(comm));
	seat->failed = 1;
	return 1;
}

/* Until a call fails, or all know that there shall be more ranks: how many, or ENOUGH. */
static tutti_status work(struct seat *seat, tutti_comm_t comm, int *nranks)
{
	static float data[LARGE];
	int n = 0;
	tutti_status status = tutti_comm_count(comm, &n);

	*nranks = 0;
	while (status == TUTTI_OK && *nranks <= n) {
		int members = 1 << (seat - room->seat);

		for (int i = 0; i < LARGE; i++)
			data[i] = (float)members;
		*nranks = room->nranks;
		status =
			tutti_all_reduce(&members, &members, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL);
		if (status == TUTTI_OK)
			status = tutti_all_reduce(data, data, LARGE, TUTTI_FLOAT32, TUTTI_SUM, comm,
						  NULL);
		if (status == TUTTI_OK)
			status = tutti_all_reduce(nranks, nranks, 1, TUTTI_INT32, TUTTI_MAX, comm,
						  NULL);
		if (status != TUTTI_OK)
			break;
		for (int i = 0; i < LARGE; i++)
			if (data[i] != (float)members || __builtin_popcount((unsigned)members) != n)
				return TUTTI_EINTERNAL;
		seat->members = (unsigned)members;
	}
	return status;
}

static tutti_status shrink(tutti_comm_t *comm)
{
	tutti_comm_t old = *comm;
	tutti_status status = tutti_comm_revoke(old);

	if (status == TUTTI_OK)
		status = tutti_comm_shrink(old, NULL, 0, comm, NULL, TUTTI_SHRINK_FAILED);
	if (status == TUTTI_OK)
		status = tutti_comm_destroy(old);
	return status;
}

static tutti_status grow(tutti_comm_t *comm, int nranks)
{
	tutti_comm_t old = *comm;
	tutti_status status;
	int rank;

	status = tutti_comm_rank(old, &rank);
	if (status == TUTTI_OK && rank == 0) {
		status = tutti_get_unique_id(&room->id);
		room->id_for = nranks;
	}
	if (status == TUTTI_OK)
		status = tutti_comm_grow(old, nranks, rank == 0 ? &room->id : NULL, -1, comm, NULL);
	if (status == TUTTI_OK)
		status = tutti_comm_destroy(old);
	return status;
}

/* As rank `rank` of the first `nranks` that meet, or of those that a communicator grows to. */
static int run_rank(struct seat *seat, int rank, int nranks, bool is_first)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t comm = NULL;
	tutti_status status = TUTTI_OK;

	config.transport = room->transport;
	if (room->two_hosts)
		setenv("TUTTI_HOST_ID", (seat - room->seat) % 2 ? "odd" : "even", 1);
	if (is_first && rank == 0)
		status = tutti_get_unique_id(&room->id);
	if (is_first && rank == 0)
		room->id_for = nranks;
	while (room->id_for != nranks)
		crew_nap_us(200);
	if (status == TUTTI_OK)
		status = tutti_comm_init_rank_config(&comm, nranks, room->id, rank, &config);
	if (status != TUTTI_OK)
		return fail_rank(seat, NULL, "init");
	for (;;) {
		status = work(seat, comm, &nranks);
		if (status == TUTTI_OK && nranks == ENOUGH)
			break;
		if (status == TUTTI_OK && grow(&comm, nranks) != TUTTI_OK)
			return fail_rank(seat, comm, "grow");
		if (status > TUTTI_STATUS_LOST && status != TUTTI_OK)
			return fail_rank(seat, comm, "work");
		if (status != TUTTI_OK && status != TUTTI_EPEER && status != TUTTI_EREVOKED)
			return fail_rank(seat, comm, "work");
		if (status != TUTTI_OK && shrink(&comm) != TUTTI_OK)
			return fail_rank(seat, comm, "shrink");
	}
	tutti_comm_destroy(comm);
	return 0;
}

/* -- Who kills them --------------------------------------------------------------- */

static unsigned live_seats(void)
{
	unsigned live = 0;

	for (int i = 0; i < N; i++)
		if (room->seat[i].pid)
			live |= 1u << i;
	return live;
}

static void kill_seat(int i)
{
	kill(room->seat[i].pid, SIGKILL);
	waitpid(room->seat[i].pid, NULL, 0);
	room->seat[i].pid = 0;
}

static void give_up(unsigned seed, const char *what)
{
	for (int i = 0; i < N; i++)
		if (room->seat[i].pid)
			threads_print(room->seat[i].pid);
	for (int i = 0; i < N; i++) {
		const struct seat *seat = &room->seat[i];

		if (seat->pid || seat->failed)
			fprintf(stderr, "seat %d: members %#x %s\n", i, seat->members, seat->text);
		if (seat->pid)
			kill_seat(i);
	}
	fail_msg("%s; repeat: TEST_SEED=%u TEST_CASES=1", what, seed);
}

/* All that live have called with all that live, and nobody else. */
static void await_all(unsigned seed, const char *what)
{
	const int64_t deadline = crew_now_ns() + DEADLINE_NS;
	const unsigned live = live_seats();
	bool all;

	do {
		all = true;
		for (int i = 0; i < N; i++) {
			if (room->seat[i].pid && room->seat[i].failed)
				give_up(seed, what);
			all &= !room->seat[i].pid || room->seat[i].members == live;
		}
		if (!all && crew_now_ns() > deadline)
			give_up(seed, what);
		if (!all)
			crew_nap_us(300);
	} while (!all);
}

static void start(int rank, int nranks, bool is_first)
{
	struct seat *seat = room->seat;
	pid_t pid;

	while (seat->pid)
		seat++;
	seat->members = 0;
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(run_rank(seat, rank, nranks, is_first));
	}
	seat->pid = pid;
}

static void kill_all_but_one(unsigned seed, unsigned *random)
{
	for (int left = N; left > 1; left--) {
		int victim;

		if (rand_r(random) % 2)
			await_all(seed, "not all went on after a death");
		crew_nap_us(rand_r(random) % 8000);
		do
			victim = rand_r(random) % N;
		while (!room->seat[victim].pid);
		kill_seat(victim);
	}
	await_all(seed, "the last one did not go on");
}

static void grow_to_all(unsigned seed, unsigned *random)
{
	for (int n = 1; n < N;) {
		const int more = n + 1 + rand_r(random) % (N - n);

		room->id_for = 0;
		room->nranks = more;
		while (n < more)
			start(n++, more, false);
		await_all(seed, "not all of those that there shall be work together");
	}
}

static void run_sequence(const char *transport, bool two_hosts, unsigned seed)
{
	unsigned random = seed;
	int ended = 0;

	room = mmap(NULL, sizeof(*room), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(room != MAP_FAILED);
	room->transport = transport;
	room->two_hosts = two_hosts;
	for (int rank = 0; rank < N; rank++)
		start(rank, N, true);
	await_all(seed, "not all began");
	kill_all_but_one(seed, &random);
	grow_to_all(seed, &random);
	room->nranks = ENOUGH;
	for (int i = 0; i < N; i++) {
		int status = 1;

		waitpid(room->seat[i].pid, &status, 0);
		room->seat[i].pid = 0;
		ended += status == 0;
	}
	if (ended != N)
		give_up(seed, "not all ended well");
	munmap(room, sizeof(*room));
}

static unsigned number_in(const char *name, unsigned otherwise)
{
	const char *text = getenv(name);

	return text ? (unsigned)atoi(text) : otherwise;
}

static void eight_to_one_and_back(void **state)
{
	static const struct {
		const char *transport;
		bool two_hosts;
	} worlds[] = { { "shm", false }, { "tcp", false }, { NULL, true } };
	const unsigned cases = number_in("TEST_CASES", SANITIZED ? 6 : 12),
		       first = number_in("TEST_SEED", 1);

	(void)state;
	printf("TEST_SEED=%u TEST_CASES=%u\n", first, cases);
	for (unsigned seed = first; seed < first + cases; seed++)
		run_sequence(worlds[seed % 3].transport, worlds[seed % 3].two_hosts, seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(eight_to_one_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
