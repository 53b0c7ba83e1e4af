/* SPDX-License-Identifier: BSD-3-Clause */
/* Some ranks make a communicator, and one of them does not come: it calls something else, dies, or the
 * parent ends meanwhile. The others are told which rank that was. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/crew.h"

#define N       4
#define LAST    (N - 1)
#define VICTIM  2
#define WAIT_MS 60000
#define LATE_MS 4000

static struct shared {
	char text[1024];
} * shared;

static const int all[N] = { 0, 1, 2, 3 }, back[] = { 3, 2, 1 };

static void complain(int rank, const char *what, tutti_status st)
{
	snprintf(shared->text, sizeof(shared->text), "rank %d: %s: %s: %s", rank, what,
		 tutti_status_name(st), tutti_last_error(NULL));
}

static void expect(int rank, tutti_status st, tutti_status expected, const char *text)
{
	if (st != expected || !strstr(tutti_last_error(NULL), text))
		complain(rank, text, st);
}

static tutti_status sum(tutti_comm_t comm, int n)
{
	int a = 1, b = 0;
	tutti_status st = tutti_all_reduce(&a, &b, 1, TUTTI_INT32, TUTTI_SUM, comm, NULL);

	return st == TUTTI_OK && b != n ? TUTTI_EINTERNAL : st;
}

static void run(tutti_status (*call)(struct crew *, int, tutti_comm_t), char *transport, int dead)
{
	struct crew *crew = crew_create(N, transport, call);

	memset(shared, 0, sizeof(*shared));
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, WAIT_MS, dead), 0);
	for (int rank = 0; rank < N; rank++)
		if (rank != dead && crew->rank[rank].status != TUTTI_OK)
			fail_msg("rank %d: %s", rank, crew->rank[rank].text);
	assert_string_equal(shared->text, "");
	crew_free(crew);
}

/* -- It does not come ------------------------------------------------------------------- */

/* Ranks 1 and 2 wait for each other's blocks, and for the last rank's: all three name that one. Then it
 * comes with another tag, so that it and the others wait. */
static tutti_status one_is_missing(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_config config = TUTTI_CONFIG_INIT;
	tutti_comm_t out = NULL;
	tutti_status st = TUTTI_OK;

	/* So that the last one is still there when the others give up. */
	config.boot_timeout_ms = rank == LAST ? 3 * LATE_MS : LATE_MS;
	if (rank != LAST)
		expect(rank, tutti_comm_create_group(comm, all, N, 4, &out, &config),
		       TUTTI_ETIMEOUT, "rank 3 (");
	st = sum(comm, N);
	expect(rank, tutti_comm_create_group(comm, all, N, rank == LAST ? 6 : 5, &out, &config),
	       TUTTI_ETIMEOUT,
	       rank == LAST ? "has not called it" : "it is in one of these ranks with tag 6");
	if (st == TUTTI_OK)
		st = sum(comm, N);
	crew->stop = 1;
	return st;
}

static void missing_ranks_are_named(void **state)
{
	run(one_is_missing, *state, -1);
}

/* -- It dies ------------------------------------------------------------------------------ */

static int delay_us; /* until it dies, by its own hand; below 0: before it calls */

static void *die_later(void *self)
{
	(void)self;
	crew_nap_us(abs(delay_us));
	kill(getpid(), SIGKILL);
	return NULL;
}

/* Those that are left shrink their communicator, and make a group of what that gives. */
static tutti_status go_on(tutti_comm_t comm)
{
	const int order[] = { 2, 0, 1 };
	tutti_comm_t rest = NULL, group = NULL;
	tutti_status st = tutti_comm_shrink(comm, NULL, 0, &rest, NULL, TUTTI_SHRINK_FAILED);

	if (st == TUTTI_OK)
		st = tutti_comm_create_group(rest, order, 3, 0, &group, NULL);
	if (st == TUTTI_OK)
		st = sum(group, 3);
	tutti_comm_destroy(group);
	tutti_comm_destroy(rest);
	return st;
}

static tutti_status one_dies(struct crew *crew, int rank, tutti_comm_t comm)
{
	tutti_comm_t out = NULL;
	pthread_t thread;
	tutti_status st = sum(comm, N);

	if (rank == VICTIM && st == TUTTI_OK) {
		if (delay_us < 0)
			die_later(NULL);
		pthread_create(&thread, NULL, die_later, NULL);
	}
	st = tutti_comm_create_group(comm, all, N, 0, &out, NULL);
	while (st == TUTTI_OK)
		st = sum(out, N);
	expect(rank, st, TUTTI_EPEER, "rank 2");
	tutti_comm_destroy(out);
	crew->stop = 1;
	return go_on(comm);
}

static void a_death_is_named(void **state)
{
	static const int delays[] = { -100000, 0, 100, 300, 1000, 2000, 4000 };

	for (size_t i = 0; i < sizeof(delays) / sizeof(*delays); i++) {
		delay_us = delays[i];
		run(one_dies, *state, VICTIM);
	}
}

/* -- The parent ends ------------------------------------------------------------------------ */

/* Rank 0 is no member; rank 3 is, and does not come. */
static tutti_status end_the_parent(struct crew *crew, int rank, tutti_comm_t comm, bool revoke)
{
	tutti_comm_t copy = NULL, out = NULL;
	tutti_status st = tutti_comm_dup(comm, &copy, NULL);

	/* All have it. */
	if (st == TUTTI_OK)
		st = sum(comm, N);
	if (st != TUTTI_OK)
		return st;
	if (rank == 0) {
		crew_nap_us(100000);
		st = revoke ? tutti_comm_revoke(copy) : tutti_comm_abort(copy);
		copy = revoke ? copy : NULL;
	} else if (rank != LAST) {
		expect(rank, tutti_comm_create_group(copy, back, 3, 0, &out, NULL),
		       revoke ? TUTTI_EREVOKED : TUTTI_EPEER, revoke ? "revoked" : "aborted");
	}
	if (st == TUTTI_OK)
		st = sum(comm, N);
	tutti_comm_destroy(copy);
	crew->stop = 1;
	return st;
}

static tutti_status parent_is_revoked(struct crew *crew, int rank, tutti_comm_t comm)
{
	return end_the_parent(crew, rank, comm, true);
}

static tutti_status parent_is_aborted(struct crew *crew, int rank, tutti_comm_t comm)
{
	return end_the_parent(crew, rank, comm, false);
}

static void the_parents_end_is_its_end(void **state)
{
	run(parent_is_revoked, *state, -1);
	run(parent_is_aborted, *state, -1);
}

int main(void)
{
	static char shm[] = "shm", tcp[] = "tcp";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(missing_ranks_are_named, shm),
		cmocka_unit_test_prestate(a_death_is_named, shm),
		cmocka_unit_test_prestate(a_death_is_named, tcp),
		cmocka_unit_test_prestate(the_parents_end_is_its_end, shm),
		cmocka_unit_test_prestate(the_parents_end_is_its_end, tcp),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
