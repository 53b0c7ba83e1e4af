/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that ranks fork: they cannot use the communicator, do not disturb it, and do not hide that
 * their rank has died. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/crew.h"

#define N       3
#define FORKS   1                    /* the rank that forks */
#define SOON_NS INT64_C(10000000000) /* a death is known within milliseconds */
#define WAIT_MS 60000

static struct shared {
	_Atomic int64_t died_ns;
	_Atomic int is_over;
	int refused;
	char text[512];
} * shared;

static void refuse(tutti_status status, tutti_comm_t comm)
{
	if (status == TUTTI_EUSAGE && strstr(tutti_last_error(comm), "was made by process"))
		shared->refused++;
	else
		snprintf(shared->text, sizeof(shared->text), "%s: %s", tutti_status_name(status),
			 tutti_last_error(comm));
}

static void use_it(tutti_comm_t comm)
{
	float a = 1, b = 0;
	int n;

	refuse(tutti_all_reduce(&a, &b, 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL), comm);
	refuse(tutti_comm_count(comm, &n), comm);
	refuse(tutti_comm_abort(comm), comm);
	refuse(tutti_comm_destroy(comm), comm);
}

static tutti_status sum(tutti_comm_t comm)
{
	float a = 1, b = 0;
	tutti_status st = tutti_all_reduce(&a, &b, 1, TUTTI_FLOAT32, TUTTI_SUM, comm, NULL);

	return st == TUTTI_OK && b != N ? TUTTI_EINTERNAL : st;
}

static tutti_status a_child_uses_it(struct crew *crew, int rank, tutti_comm_t comm)
{
	if (rank == FORKS) {
		const pid_t pid = fork();

		if (pid == 0) {
			use_it(comm);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
	for (int i = 0; i < 20; i++) {
		const tutti_status st = sum(comm);

		if (st != TUTTI_OK)
			return st;
	}
	crew->stop = 1; /* all are in their last call, or past it */
	return TUTTI_OK;
}

static void children_are_told(void **state)
{
	struct crew *crew = crew_create(N, *state, a_child_uses_it);

	memset(shared, 0, sizeof(*shared));
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, WAIT_MS, -1), 0);
	assert_string_equal(shared->text, "");
	assert_int_equal(shared->refused, 4);
	for (int rank = 0; rank < N; rank++)
		if (crew->rank[rank].status != TUTTI_OK)
			fail_msg("rank %d: %s", rank, crew->rank[rank].text);
	crew_free(crew);
}

/* The child keeps every file of its parent open until the others have noticed. */
static tutti_status die_with_a_child(struct crew *crew, int rank, tutti_comm_t comm)
{
	const int64_t limit = crew_now_ns() + (int64_t)WAIT_MS * 1000000;

	(void)crew;
	if (rank == FORKS && sum(comm) == TUTTI_OK) {
		if (fork() == 0) {
			while (!shared->is_over && crew_now_ns() < limit)
				crew_nap_us(1000);
			_exit(0);
		}
		shared->died_ns = crew_now_ns();
		kill(getpid(), SIGKILL);
	}
	return sum(comm);
}

static void children_do_not_hide_a_death(void **state)
{
	struct crew *crew = crew_create(N, *state, die_with_a_child);

	memset(shared, 0, sizeof(*shared));
	assert_int_equal(crew_start(crew), 0);
	assert_int_equal(crew_wait(crew, WAIT_MS, FORKS), 0);
	shared->is_over = 1;
	for (int rank = 0; rank < N; rank++) {
		if (rank == FORKS)
			continue;
		assert_int_equal(crew->rank[rank].status, TUTTI_EPEER);
		if (!strstr(crew->rank[rank].text, "rank 1"))
			fail_msg("rank %d: %s", rank, crew->rank[rank].text);
		assert_true(crew->rank[rank].failed_ns - shared->died_ns < SOON_NS);
	}
	crew_free(crew);
}

int main(void)
{
	static char shm[] = "shm", tcp[] = "tcp";
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(children_are_told, shm),
		cmocka_unit_test_prestate(children_are_told, tcp),
		cmocka_unit_test_prestate(children_do_not_hide_a_death, shm),
		cmocka_unit_test_prestate(children_do_not_hide_a_death, tcp),
	};

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
