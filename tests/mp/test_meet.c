/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that cannot meet know it when it is known, not after TUTTI_BOOT_TIMEOUT_MS. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/crew.h"

/* A second is needed, and what a busy machine adds. */
#define SOON_NS INT64_C(30000000000)

static struct room {
	_Atomic int has_id;
	tutti_unique_id id;
	tutti_status status;
	int64_t ns;
	char text[1024];
} * room;

static pid_t start(void (*body)(int limit), int limit)
{
	fflush(NULL);

	const pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("TUTTI_BOOT_TIMEOUT_MS", "60000", 1);
		body(limit);
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void make_id(int limit)
{
	(void)limit;
	if (tutti_get_unique_id(&room->id) == TUTTI_OK)
		room->has_id = 1;
}

/* The process that made the id, which waits in it. */
static void be_rank_0(int limit)
{
	tutti_comm_t comm;

	make_id(limit);
	if (room->has_id && tutti_comm_init_rank(&comm, 2, room->id, 0) == TUTTI_OK)
		tutti_comm_destroy(comm);
}

/* With room for so many more files; 0: as many as there may be. */
static void be_rank_1(int limit)
{
	const int64_t began = crew_now_ns();
	tutti_comm_t comm;

	if (limit) {
		const int next = open("/dev/null", O_RDONLY);
		const struct rlimit files = { (rlim_t)(next + limit), (rlim_t)(next + limit) };

		close(next);
		setrlimit(RLIMIT_NOFILE, &files);
	}
	room->status = tutti_comm_init_rank(&comm, 2, room->id, 1);
	room->ns = crew_now_ns() - began;
	if (room->status == TUTTI_OK)
		tutti_comm_destroy(comm);
	else
		snprintf(room->text, sizeof(room->text), "%s", tutti_last_error(NULL));
}

static void reset(void)
{
	memset(room, 0, sizeof(*room));
}

static void must_have_been_soon(const char *part)
{
	if (room->ns > SOON_NS || !strstr(room->text, part))
		fail_msg("after %.1f s: %s", (double)room->ns / 1e9, room->text);
}

static void who_made_the_id_is_gone(void **state)
{
	(void)state;
	/* The port is free again: somebody else may listen there by now, but hardly every time. */
	for (int tries = 0; tries < 5 && room->status != TUTTI_EPEER; tries++) {
		reset();
		waitpid(start(make_id, 0), NULL, 0);
		assert_int_equal(room->has_id, 1);
		waitpid(start(be_rank_1, 0), NULL, 0);
	}
	assert_int_equal(room->status, TUTTI_EPEER);
	must_have_been_soon("the process that made it has ended");
}

/* However many files are missing, and wherever the first one is. */
static void no_more_files(void **state)
{
	int failed = 0;

	(void)state;
	for (int limit = 1; limit <= 8; limit++) {
		reset();

		const pid_t root = start(be_rank_0, 0);

		while (!room->has_id)
			crew_nap_us(500);
		waitpid(start(be_rank_1, limit), NULL, 0);
		kill(root, SIGKILL);
		waitpid(root, NULL, 0);
		if (room->status == TUTTI_OK)
			continue;
		/* Who cannot accept a connection is told so by the other rank. */
		if (room->status != TUTTI_ESYS && room->status != TUTTI_EPEER)
			fail_msg("room for %d files: %s: %s", limit,
				 tutti_status_name(room->status), room->text);
		failed += room->status == TUTTI_ESYS;
		must_have_been_soon(room->status == TUTTI_ESYS ? "Too many open files" : "rank 1");
	}
	assert_true(failed > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_made_the_id_is_gone),
		cmocka_unit_test(no_more_files),
	};

	room = mmap(NULL, sizeof(*room), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (room == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
