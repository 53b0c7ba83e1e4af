/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks are killed one after the other, and two at once, in the middle of calls: those
 * that are left shrink the communicator, all to the same one, in under two seconds, and go
 * on. TEST_KILLS says how many random runs (12). */
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
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/crew.h"

#define MOST    8
#define ROUNDS  2
/* In which they go on, on a machine that does other things; some ms as a rule. */
#define MOST_NS INT64_C(10000000000)

struct seat {
	pid_t pid;
	_Atomic int64_t calls; /* done on the present communicator */
	_Atomic int round;     /* shrunk so many times             */
	_Atomic int64_t ns;    /* what the last one took           */
	_Atomic int left, sum; /* after the last one               */
	_Atomic int failed;
	char text[300];
};

static struct room {
	_Atomic int has_id, stop;
	tutti_unique_id id;
	int n;
	const char *transport;
	struct seat seat[MOST];
} * room;

static int fail_rank(struct seat *seat, tutti_comm_t comm, const char *what)
{
	snprintf(seat->text, sizeof(seat->text), "%s: %s", what, tutti_last_error(comm));
	seat->failed = 1;
	return 1;
}

/* Calls until one fails, or it is enough. */
static tutti_status work(struct seat *seat, tutti_comm_t comm)
{
	static float data[20000];
	int stop = 0;

	while (!stop) {
		tutti_status status =
			tutti_all_reduce(data, data, 20000, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);

		stop = room->stop;
		if (status == TUTTI_OK)
			status = tutti_all_reduce(&stop, &stop, 1, TUTTI_INT32, TUTTI_MAX, comm,
						  NULL);
		if (status != TUTTI_OK)
			return status;
		seat->calls++;
	}
	return TUTTI_OK;
}

static tutti_status shrink(struct seat *seat, int rank, tutti_comm_t *comm)
{
	const int64_t begin = crew_now_ns();
	tutti_comm_t old = *comm;
	int sum = rank, left = 0;
	tutti_status status = tutti_comm_revoke(old);

	if (status == TUTTI_OK)
		status = tutti_comm_shrink(old, NULL, 0, comm, NULL, TUTTI_SHRINK_FAILED);
	if (status != TUTTI_OK)
		return status;
	tutti_comm_destroy(old);
	status = tutti_all_reduce(&sum, &sum, 1, TUTTI_INT32, TUTTI_SUM, *comm, NULL);
	if (status != TUTTI_OK)
		return status;
	seat->ns = crew_now_ns() - begin;
	if (tutti_comm_count(*comm, &left) != TUTTI_OK)
		return TUTTI_EINTERNAL;
	seat->left = left;
	seat->sum = sum;
	seat->calls = 0;
	seat->round++;
	return TUTTI_OK;
}

static int run_rank(int rank)
{
	struct seat *seat = &room->seat[rank];
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t comm = NULL;
	tutti_status status;

	config.transport = room->transport;
	if (rank == 0 && tutti_get_unique_id(&room->id) != TUTTI_OK)
		return fail_rank(seat, NULL, "id");
	if (rank == 0)
		room->has_id = 1;
	while (!room->has_id)
		crew_nap_us(500);
	if (tutti_comm_init_rank_config(&comm, room->n, room->id, rank, &config) != TUTTI_OK)
		return fail_rank(seat, NULL, "init");
	status = work(seat, comm);
	while (status <= TUTTI_STATUS_LOST) {
		status = shrink(seat, rank, &comm);
		/* Another died meanwhile: once more. */
		if (status == TUTTI_OK)
			status = work(seat, comm);
	}
	if (status != TUTTI_OK)
		return fail_rank(seat, comm, "work");
	tutti_comm_destroy(comm);
	return 0;
}

static void start(int n, const char *transport)
{
	room = mmap(NULL, sizeof(*room), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(room != MAP_FAILED);
	room->n = n;
	room->transport = transport;
	for (int rank = 0; rank < n; rank++) {
		fflush(NULL);

		const pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			_exit(run_rank(rank));
		}
		assert_true(pid > 0);
		room->seat[rank].pid = pid;
	}
}

static bool all_live_ranks(const bool *dead, int round, bool call)
{
	for (int rank = 0; rank < room->n; rank++)
		if (!dead[rank] &&
		    (room->seat[rank].round < round || (call && room->seat[rank].calls < 3)))
			return false;
	return true;
}

static void await(const bool *dead, int round, const char *what)
{
	const int64_t deadline = crew_now_ns() + INT64_C(60000000000);

	while (!all_live_ranks(dead, round, true)) {
		for (int rank = 0; rank < room->n; rank++)
			if (room->seat[rank].failed)
				fail_msg("rank %d: %s", rank, room->seat[rank].text);
		if (crew_now_ns() > deadline) {
			for (int rank = 0; rank < room->n; rank++)
				printf("rank %d%s: shrunk %d times, %d left, %d calls since\n",
				       rank, dead[rank] ? " (dead)" : "", room->seat[rank].round,
				       room->seat[rank].left, (int)room->seat[rank].calls);
			fail_msg("%s: not all went on within 60 s", what);
		}
		crew_nap_us(500);
	}
}

static void kill_rank(int rank, bool *dead)
{
	kill(room->seat[rank].pid, SIGKILL);
	waitpid(room->seat[rank].pid, NULL, 0);
	dead[rank] = true;
}

static void check_rest(const bool *dead, int64_t most_ns)
{
	int left = 0, sum = 0;

	for (int rank = 0; rank < room->n; rank++)
		if (!dead[rank]) {
			left++;
			sum += rank;
		}
	for (int rank = 0; rank < room->n; rank++) {
		const struct seat *seat = &room->seat[rank];

		if (!dead[rank] && (seat->left != left || seat->sum != sum || seat->ns > most_ns))
			fail_msg("rank %d: %d ranks left of sum %d (%d of %d wanted), %.3f s", rank,
				 seat->left, seat->sum, left, sum, (double)seat->ns / 1e9);
	}
}

static void finish(const bool *dead)
{
	room->stop = 1;
	for (int rank = 0; rank < room->n; rank++) {
		int status = 0;

		if (dead[rank])
			continue;
		waitpid(room->seat[rank].pid, &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
			fail_msg("rank %d ended with %#x: %s", rank, (unsigned)status,
				 room->seat[rank].text);
	}
	munmap(room, sizeof(*room));
}

/* One rank a round. */
static void one_by_one(int n, const char *transport, int first, int second)
{
	const int victims[ROUNDS] = { first, second };
	bool dead[MOST] = { false };

	start(n, transport);
	await(dead, 0, "the start");
	for (int round = 0; round < ROUNDS; round++) {
		kill_rank(victims[round], dead);
		await(dead, round + 1, "a death");
		check_rest(dead, MOST_NS);
	}
	finish(dead);
}

static void in_turn(void **state)
{
	(void)state;
	one_by_one(5, NULL, 1, 3);
	one_by_one(4, NULL, 0, 1);
	one_by_one(5, "tcp", 4, 0);
}

/* A rank that is stopped while another dies has not died, though it answers nobody for longer than a rank that
 * asks it for the first time waits for most: the others shrink when it goes on, with it. */
static void a_stopped_rank_is_waited_for(void **state)
{
	bool dead[MOST] = { false };

	(void)state;
	start(6, "tcp");
	await(dead, 0, "the start");
	kill(room->seat[3].pid, SIGSTOP);
	kill_rank(5, dead);
	crew_nap_us(5000000);
	kill(room->seat[3].pid, SIGCONT);
	await(dead, 1, "a death beside a stop");
	check_rest(dead, INT64_MAX);
	finish(dead);
}

/* Two at once, neighbours or not, the speaker among them or not: they shrink once or
 * twice, but end alike. */
static void two_at_once(int n, const char *transport, int a, int b, int between_us)
{
	bool dead[MOST] = { false };

	start(n, transport);
	await(dead, 0, "the start");
	kill(room->seat[a].pid, SIGKILL);
	crew_nap_us(between_us);
	kill_rank(b, dead);
	kill_rank(a, dead);
	await(dead, 1, "two deaths");
	for (int tries = 0; tries < 30000; tries++) {
		bool same = true;

		for (int rank = 0; rank < n; rank++)
			same &= dead[rank] || room->seat[rank].left == n - 2;
		if (same)
			break;
		crew_nap_us(2000);
	}
	check_rest(dead, MOST_NS);
	finish(dead);
}

static void at_once(void **state)
{
	const char *asked = getenv("TEST_KILLS");
	const int runs = asked ? atoi(asked) : 12;
	unsigned seed = (unsigned)time(NULL);

	(void)state;
	printf("seed %u\n", seed);
	for (int run = 0; run < runs; run++) {
		const int n = 4 + rand_r(&seed) % 3, a = rand_r(&seed) % n;
		const int b = (a + 1 + rand_r(&seed) % (n - 1)) % n;

		two_at_once(n, run % 3 == 2 ? "tcp" : NULL, a, b, rand_r(&seed) % 8000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_turn),
		cmocka_unit_test(at_once),
		cmocka_unit_test(a_stopped_rank_is_waited_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
