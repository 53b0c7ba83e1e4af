/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that are processes let others join: one is killed at any moment on the way, one
 * never comes, one is late, they meet at an address given by hand. Whatever becomes of
 * what is new, the parent works. TEST_KILLS says how many are killed (6). */
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
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/crew.h"
#include "support/port.h"

#define MOST 4

/* How long those that grow wait for others: what never comes costs this much. */
#define TIMEOUT_MS      4000
/* How long they would wait where nobody waits. */
#define LONG_TIMEOUT_MS 60000

enum fate {
	FATE_NONE, /* the new rank works until all have had enough */
	FATE_KILLED,
	FATE_MISSING,
	FATE_OLD_DIES,      /* rank 1, when all have said what they want and none has met another */
	FATE_OLD_DIES_LATE, /* ..., while the others and the new one wait for it              */
	FATE_OLD_DIES_SOON, /* before it has said what it wants: nobody goes to meet the new one */
	FATE_UNLIKE,        /* rank 1 wants another number of ranks: the old ones go back         */
};

/* Until then all others have come to where they meet, and wait. */
#define LATE_US 2000000

static struct room {
	int n;
	const char *transport, *address;
	enum fate fate;
	_Atomic int has_id, has_new_id, about_to_join, stop;
	tutti_unique_id id, new_id;
	struct seat {
		pid_t pid;
		_Atomic int done, status; /* of growing */
		_Atomic int in_use;       /* of the first call on what has grown that failed */
		char text[300], failed[300];
	} seat[MOST + 1]; /* the last one is new */
} * room;

static int fail_rank(struct seat *seat, tutti_comm_t comm, const char *what)
{
	snprintf(seat->failed, sizeof(seat->failed), "%s: %s", what, tutti_last_error(comm));
	return 1;
}

/* A sum over all is right; or the status. */
static tutti_status count_all(tutti_comm_t comm, int n)
{
	int one = 1;
	const tutti_status status =
		tutti_all_reduce(&one, &one, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL);

	return status == TUTTI_OK && one != n ? TUTTI_EINTERNAL : status;
}

/* With the new one; until it is dead, or as often as all say. */
static tutti_status use(tutti_comm_t comm, int n)
{
	tutti_status status = TUTTI_OK;
	int calls = 0;

	while (status == TUTTI_OK && (room->fate == FATE_KILLED || calls++ < 100))
		status = count_all(comm, n);
	return status;
}

static tutti_status join(tutti_comm_t comm, struct seat *seat, int rank, tutti_comm_t *out)
{
	const int n = room->n + 1 + (room->fate == FATE_UNLIKE && rank == 1);
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_unique_id *id = !comm || rank == 0 ? &room->new_id : NULL;
	tutti_status status;

	config.transport = room->transport;
	config.boot_timeout_ms = room->fate == FATE_KILLED || room->fate == FATE_MISSING
					 ? TIMEOUT_MS
					 : LONG_TIMEOUT_MS;
	status = tutti_comm_grow(comm, n, id, comm ? -1 : rank, out, &config);
	snprintf(seat->text, sizeof(seat->text), "%s", tutti_last_error(comm));
	seat->status = status;
	if (status == TUTTI_OK)
		seat->in_use = use(*out, n);
	return status;
}

static bool loses_old(enum fate fate)
{
	return fate == FATE_OLD_DIES || fate == FATE_OLD_DIES_LATE || fate == FATE_OLD_DIES_SOON;
}

static int run_old(struct seat *seat, int rank)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t comm = NULL, grown = NULL;

	config.transport = room->transport;
	if (rank == 0 && tutti_get_unique_id(&room->id) != TUTTI_OK)
		return fail_rank(seat, NULL, "id");
	if (rank == 0)
		room->has_id = 1;
	while (!room->has_id)
		crew_nap_us(500);
	if (tutti_comm_init_rank_config(&comm, room->n, room->id, rank, &config) != TUTTI_OK)
		return fail_rank(seat, NULL, "init");
	if (rank == 0 && tutti_get_unique_id(&room->new_id) != TUTTI_OK)
		return fail_rank(seat, NULL, "new id");
	if (rank == 0)
		room->has_new_id = 1;
	/* Once all are through their init. */
	if (room->fate == FATE_OLD_DIES_SOON && count_all(comm, room->n) == TUTTI_OK && rank == 1)
		raise(SIGKILL);
	if (join(comm, seat, rank, &grown) == TUTTI_OK)
		tutti_comm_destroy(grown);
	/* The new one may come later, and finds the id of a process that lives. */
	if (room->fate == FATE_UNLIKE || (room->fate == FATE_OLD_DIES_SOON && rank == 0))
		for (int ms = 0; ms < LONG_TIMEOUT_MS && !room->seat[room->n].done; ms++)
			crew_nap_us(1000);
	if (room->fate == FATE_OLD_DIES_LATE && rank == 1)
		crew_nap_us(LATE_US);
	if (loses_old(room->fate) && rank == 1)
		raise(SIGKILL);
	if (loses_old(room->fate))
		return 0;
	/* Whatever came of it. */
	for (int i = 0; i < 10; i++)
		if (count_all(comm, room->n) != TUTTI_OK)
			return fail_rank(seat, comm, "the parent");
	tutti_comm_destroy(comm);
	return 0;
}

static int run_new(struct seat *seat, int rank)
{
	tutti_comm_t comm = NULL;

	while (!room->has_new_id)
		crew_nap_us(500);
	room->about_to_join = 1;
	if (join(NULL, seat, rank, &comm) != TUTTI_OK)
		return fail_rank(seat, NULL, "join");
	tutti_comm_destroy(comm);
	return 0;
}

static void start(int rank)
{
	struct seat *seat = &room->seat[rank];
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid > 0) {
		seat->pid = pid;
		return;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (loses_old(room->fate) && rank == 1)
		setenv("TUTTI_FAULT", "core.grow:1", 1);
	if (room->address) {
		setenv("TUTTI_COMM_ID", room->address, 1);
		setenv("TUTTI_COMM_SECRET", "the secret of this test", 1);
	}
	seat->done = rank < room->n ? run_old(seat, rank) : run_new(seat, rank);
	_exit(seat->done);
}

static bool is_new_there(enum fate fate)
{
	return fate != FATE_MISSING && fate != FATE_OLD_DIES;
}

/* How long after it is about to join the new rank is killed. */
static void run(int n, const char *transport, const char *address, enum fate fate, int after_us)
{
	room = mmap(NULL, sizeof(*room), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(room != MAP_FAILED);
	room->n = n;
	room->transport = transport;
	room->address = address;
	room->fate = fate;
	for (int rank = 0; rank < n + is_new_there(fate); rank++)
		start(rank);
	if (fate == FATE_KILLED) {
		while (!room->about_to_join)
			crew_nap_us(100);
		crew_nap_us(after_us);
		kill(room->seat[n].pid, SIGKILL);
	}
	for (int rank = 0; rank < n + is_new_there(fate); rank++) {
		int status = 0;

		waitpid(room->seat[rank].pid, &status, 0);
		if ((rank == n && fate == FATE_KILLED) || (rank == 1 && loses_old(fate)))
			assert_true(WIFSIGNALED(status));
		else if (status != 0 && !(rank == n && (loses_old(fate) || fate == FATE_UNLIKE)))
			fail_msg("rank %d ended with %#x: %s", rank, (unsigned)status,
				 room->seat[rank].failed);
	}
}

static void forget(void)
{
	munmap(room, sizeof(*room));
}

static void all_join(int n, const char *transport, const char *address)
{
	run(n, transport, address, FATE_NONE, 0);
	for (int rank = 0; rank <= n; rank++)
		if (room->seat[rank].status != TUTTI_OK || room->seat[rank].in_use != TUTTI_OK)
			fail_msg("rank %d: %s, then %s", rank, room->seat[rank].text,
				 tutti_status_name((tutti_status)room->seat[rank].in_use));
	forget();
}

static void one_joins(void **state)
{
	(void)state;
	all_join(1, NULL, NULL);
	all_join(3, NULL, NULL);
	all_join(2, "tcp", NULL);
}

/* An id that is an address is good for one after the other. */
static void by_hand(void **state)
{
	char address[32];

	(void)state;
	snprintf(address, sizeof(address), "127.0.0.1:%d", port_for_later());
	all_join(2, NULL, address);
}

static void one_is_missing(void **state)
{
	(void)state;
	run(2, NULL, NULL, FATE_MISSING, 0);
	for (int rank = 0; rank < 2; rank++) {
		assert_int_equal(room->seat[rank].status, TUTTI_ETIMEOUT);
		if (!strstr(room->seat[rank].text, "rank 2 of 3 did not come"))
			fail_msg("rank %d says: %s", rank, room->seat[rank].text);
	}
	forget();
}

/* Before it has come it is missing, later it is dead; or what has grown ends with it. */
static void check_killed(int n, int after_us)
{
	for (int rank = 0; rank < n; rank++) {
		const struct seat *seat = &room->seat[rank];

		if (seat->status == TUTTI_OK
			    ? seat->in_use != TUTTI_EPEER
			    : seat->status != TUTTI_EPEER && seat->status != TUTTI_ETIMEOUT)
			fail_msg("rank %d of %d, after %d us: %s, then %s", rank, n, after_us,
				 seat->text, tutti_status_name((tutti_status)seat->in_use));
	}
}

static void one_is_killed(void **state)
{
	const char *asked = getenv("TEST_KILLS");
	const int runs = asked ? atoi(asked) : 6;
	unsigned seed = (unsigned)time(NULL);

	(void)state;
	printf("seed %u\n", seed);
	for (int i = 0; i < runs; i++) {
		const int n = 1 + rand_r(&seed) % 3, after_us = 1500 + rand_r(&seed) % 9000;

		run(n, i % 2 ? "tcp" : NULL, NULL, FATE_KILLED, after_us);
		check_killed(n, after_us);
		forget();
	}
}

/* Between what old ranks say to each other and where they meet the new one, which is not there
 * yet, nobody listens for anybody: it is the parent that hears of the death. */
static void an_old_one_dies(void **state)
{
	const time_t begin = time(NULL);

	(void)state;
	run(3, NULL, NULL, FATE_OLD_DIES, 0);
	for (int rank = 0; rank < 3; rank += 2)
		if (room->seat[rank].status != TUTTI_EPEER)
			fail_msg("rank %d says: %s", rank, room->seat[rank].text);
	assert_true(time(NULL) - begin < 30);
	forget();
}

/* A new rank has no parent that tells who died: those that give up for it say so. */
static void the_new_one_hears_who_died(void **state)
{
	char process[32];

	(void)state;
	run(3, NULL, NULL, FATE_OLD_DIES_LATE, 0);
	snprintf(process, sizeof(process), "process %d)", (int)room->seat[1].pid);
	for (int rank = 0; rank <= 3; rank++)
		if (rank != 1 && (room->seat[rank].status != TUTTI_EPEER ||
				  !strstr(room->seat[rank].text, "rank 1 (") ||
				  !strstr(room->seat[rank].text, process)))
			fail_msg("rank %d says: %s", rank, room->seat[rank].text);
	forget();
}

/* Old ranks that do not even begin to meet the new one tell it so. */
static void the_new_one_hears_that_nobody_comes(void **state)
{
	const time_t begin = time(NULL);
	char process[32];

	(void)state;
	run(3, NULL, NULL, FATE_OLD_DIES_SOON, 0);
	snprintf(process, sizeof(process), "process %d)", (int)room->seat[1].pid);
	if (room->seat[3].status != TUTTI_EPEER || !strstr(room->seat[3].text, process))
		fail_msg("the new one says: %s", room->seat[3].text);
	forget();
	run(3, NULL, NULL, FATE_UNLIKE, 0);
	for (int rank = 0; rank <= 3; rank++)
		if (room->seat[rank].status != (rank == 3 ? TUTTI_EPEER : TUTTI_EINVAL) ||
		    !strstr(room->seat[rank].text, "rank 0 wants 4 ranks and rank 1 wants 5"))
			fail_msg("rank %d says: %s", rank, room->seat[rank].text);
	forget();
	assert_true(time(NULL) - begin < 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_joins),
		cmocka_unit_test(by_hand),
		cmocka_unit_test(one_is_missing),
		cmocka_unit_test(one_is_killed),
		cmocka_unit_test(an_old_one_dies),
		cmocka_unit_test(the_new_one_hears_who_died),
		cmocka_unit_test(the_new_one_hears_that_nobody_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
