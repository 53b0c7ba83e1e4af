/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that meet through TUTTI_COMM_FILE: whichever comes first, after an earlier run that left its
 * file, and when rank 0 fails or dies. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/init/meeting.h"
#include "support/crew.h"
#include "support/port.h"
#include "util/error.h"

#define SOON_NS INT64_C(30000000000) /* where it is known within milliseconds */
#define LIMIT   "1000"               /* where it is never known               */

struct rank {
	pid_t pid;
	_Atomic int has_napped;
	tutti_status status;
	int64_t ns;
	char text[2048];
};

static struct rank *ranks; /* [2], shared */
static char folder[] = "/tmp/tutti-test-XXXXXX", path[64];
static const char *meet_at; /* NULL: at the file */

#define TIMES_MOST 5

static int own_rank = -1; /* of this process */

/* The library's, too: a rank that naps for the first time has looked for the file. */
int nanosleep(const struct timespec *nap, struct timespec *left)
{
	if (own_rank >= 0)
		ranks[own_rank].has_napped = 1;
	return (int)syscall(SYS_nanosleep, nap, left);
}

/* A program of which several parts start up for themselves. */
static tutti_status meet(int times, const tutti_config *config)
{
	tutti_comm_t comms[TIMES_MOST] = { 0 };
	tutti_status st = TUTTI_OK;

	for (int i = 0; i < times && st == TUTTI_OK; i++)
		st = tutti_comm_init_env(&comms[i], config);
	for (int i = 0; i < times && st == TUTTI_OK; i++)
		st = tutti_barrier(comms[i], NULL);
	for (int i = 0; i < times && st == TUTTI_OK; i++)
		st = tutti_comm_destroy(comms[i]);
	return st;
}

enum { BAD_CONFIG = -1 };

static void start(int rank, int times, const char *limit_ms)
{
	struct rank *own = &ranks[rank];

	memset(own, 0, sizeof(*own));
	fflush(NULL);

	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0) {
		own->pid = pid;
		return;
	}
	tutti_config config = TUTTI_CONFIG_INIT;
	const int64_t began = crew_now_ns();

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("TUTTI_RANK", rank ? "1" : "0", 1);
	setenv("TUTTI_NRANKS", "2", 1);
	setenv("TUTTI_COMM_FILE", path, 1);
	setenv("TUTTI_BOOT_TIMEOUT_MS", limit_ms, 1);
	if (meet_at) {
		setenv("TUTTI_COMM_ID", meet_at, 1);
		setenv("TUTTI_COMM_SECRET", rank ? "this is one secret" : "this is another one", 1);
	}
	if (meet_at && rank == 0)
		setenv("TUTTI_DEBUG_FILE", path, 1);
	if (times == BAD_CONFIG)
		config.timeout_ms = -7;
	own_rank = rank;
	own->status = meet(times == BAD_CONFIG ? 1 : times, &config);
	own->ns = crew_now_ns() - began;
	snprintf(own->text, sizeof(own->text), "%s", tutti_last_error(NULL));
	_exit(0);
}

static void end(int rank)
{
	assert_int_equal(waitpid(ranks[rank].pid, NULL, 0), ranks[rank].pid);
}

static void must_be(int rank, tutti_status status, const char *part)
{
	end(rank);
	if (ranks[rank].status != status || !strstr(ranks[rank].text, part))
		fail_msg("rank %d: %s: %s", rank, tutti_status_name(ranks[rank].status),
			 ranks[rank].text);
	assert_true(ranks[rank].ns < SOON_NS);
}

static bool there_is_a_file(void)
{
	return access(path, F_OK) == 0;
}

/* With an id in it. */
static void await_file(void)
{
	struct stat file;

	while (stat(path, &file) != 0 || file.st_size < TUTTI_UNIQUE_ID_BYTES)
		crew_nap_us(200);
}

/* Rank 1, until it has looked for the file: that is what it begins with. */
static void start_to_wait(void)
{
	start(1, 1, "60000");
	while (!ranks[1].has_napped)
		crew_nap_us(200);
}

/* A rank 0 that is killed while it waits, and leaves its file. */
static void leave_a_file(void)
{
	unlink(path);
	start(0, 1, "60000");
	await_file();
	kill(ranks[0].pid, SIGKILL);
	end(0);
	assert_true(there_is_a_file());
}

static void run_with(int first, int delay_us, int times)
{
	start(first, times, "60000");
	crew_nap_us(delay_us);
	start(1 - first, times, "60000");
	must_be(0, TUTTI_OK, "");
	must_be(1, TUTTI_OK, "");
	assert_false(there_is_a_file());
}

static void either_may_come_first(void **state)
{
	(void)state;
	for (int first = 0; first < 2; first++)
		run_with(first, 1000000, 1);
}

static void a_program_may_do_it_several_times(void **state)
{
	(void)state;
	run_with(0, 0, TIMES_MOST);
	run_with(1, 0, TIMES_MOST);
}

static void an_old_file_is_replaced(void **state)
{
	(void)state;
	for (int first = 0; first < 2; first++) {
		leave_a_file();
		run_with(first, 200000, 1);
	}
	/* One that mktemp has made. */
	close(open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
	run_with(1, 200000, 1);
	/* And one of a rank 0 that failed. */
	start(0, BAD_CONFIG, "60000");
	end(0);
	run_with(1, 200000, 1);
}

/* A rank 0 that forks while it waits, and is killed: its file is an old one, though the child lives. */
static void children_do_not_hold_the_file(void **state)
{
	struct child {
		_Atomic int pid;
	} *child = mmap(NULL, sizeof(*child), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			-1, 0);
	pid_t pid;

	(void)state;
	assert_ptr_not_equal(child, MAP_FAILED);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct tti_meeting *meeting;
		tutti_unique_id id;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (tti_meeting_open(path, &id, &meeting) != TUTTI_OK)
			_exit(1);
		pid = fork();
		if (pid == 0) {
			alarm(100);
			child->pid = getpid();
			for (;;)
				pause();
		}
		while (!child->pid)
			crew_nap_us(200);
		raise(SIGKILL);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(child->pid > 0 && there_is_a_file());
	run_with(0, 200000, 1);
	assert_int_equal(kill(child->pid, SIGKILL), 0);
	munmap(child, sizeof(*child));
}

static void whoever_waits_hears_why_rank_0_failed(void **state)
{
	(void)state;
	start_to_wait();
	start(0, BAD_CONFIG, "60000");
	must_be(0, TUTTI_EINVAL, "config.timeout_ms is -7");
	must_be(1, TUTTI_EPEER, "config.timeout_ms is -7");
	unlink(path);
}

/* Rank 1 has read the file, and has connected, before rank 0 fails; on a busy machine it may find that
 * in the file. */
static void whoever_has_come_hears_it_too(void **state)
{
	(void)state;
	start_to_wait();

	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		struct tti_meeting *meeting;
		tutti_unique_id id;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (tti_meeting_open(path, &id, &meeting) != TUTTI_OK)
			_exit(1);
		crew_nap_us(1000000);
		if (tti_fail(TUTTI_EINVAL, "no such treble") == TUTTI_EINVAL)
			tti_meeting_close(meeting, false);
		_exit(0);
	}
	must_be(1, TUTTI_EPEER, "error: no such treble");
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	unlink(path);
}

static void whoever_comes_later_hears_it_too(void **state)
{
	(void)state;
	start(0, BAD_CONFIG, "60000");
	must_be(0, TUTTI_EINVAL, "config.timeout_ms is -7");
	start(1, 1, LIMIT);
	must_be(1, TUTTI_ETIMEOUT, "config.timeout_ms is -7");
	leave_a_file();
	start(1, 1, LIMIT);
	must_be(1, TUTTI_ETIMEOUT, "it was killed");
	unlink(path);
	start(1, 1, LIMIT);
	must_be(1, TUTTI_ETIMEOUT, "rank 0 has not written TUTTI_COMM_FILE");
}

/* The other rank looks before and after, but not while rank 0 lives. */
static void a_killed_rank_0_is_known_of(void **state)
{
	(void)state;
	for (int is_old = 0; is_old < 2; is_old++) {
		if (is_old)
			leave_a_file();
		start_to_wait();
		kill(ranks[1].pid, SIGSTOP);
		leave_a_file();
		kill(ranks[1].pid, SIGCONT);
		must_be(1, TUTTI_EPEER, "it was killed");
		unlink(path);
	}
}

static void one_name_is_for_one_job(void **state)
{
	pid_t first;

	(void)state;
	start(0, 1, "60000");
	await_file();
	first = ranks[0].pid;
	start(0, 1, "60000");
	must_be(0, TUTTI_EUSAGE, "is in use by another job");
	ranks[0].pid = first;
	start(1, 1, "60000");
	must_be(1, TUTTI_OK, "");
	must_be(0, TUTTI_OK, "");
}

static void a_file_of_the_users_stays(void **state)
{
	const int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	char text[8] = "";

	(void)state;
	assert_int_equal(write(fd, "my key", 6), 6);
	for (int rank = 0; rank < 2; rank++) {
		start(rank, 1, "60000");
		must_be(rank, TUTTI_EUSAGE, "is not what rank 0 makes");
	}
	assert_int_equal(pread(fd, text, sizeof(text), 0), 6);
	assert_string_equal(text, "my key");
	assert_true(there_is_a_file());
	close(fd);
	unlink(path);
}

/* -- By an address ---------------------------------------------------------------------- */

/* What rank 0 has logged, in the place of the file. */
static void must_be_logged_once(const char *part)
{
	char text[8192], *at;
	FILE *file = fopen(path, "r");

	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	unlink(path);
	at = strstr(text, part);
	if (!at || strstr(at + 1, part))
		fail_msg("not once \"%s\" in: %s", part, text);
}

static void rank_0_logs_who_has_another_secret(void **state)
{
	char address[32];

	(void)state;
	snprintf(address, sizeof(address), "127.0.0.1:%d", port_for_later());
	meet_at = address;
	start(0, 1, "10000");
	start(1, 1, "60000");
	must_be(1, TUTTI_EMISMATCH, "the root of this id holds another secret");
	must_be(0, TUTTI_ETIMEOUT, "one was turned away, it holds another secret");
	meet_at = NULL;
	must_be_logged_once("a process at 127.0.0.1:");
}

/* Beyond its limit, as on a machine that has far too much to do: then it hears of the root all the same who
 * is missing. */
static void who_wakes_late_is_told_who_is_missing(void **state)
{
	(void)state;
	start(0, 1, "4000");
	usleep(2000000);
	kill(ranks[0].pid, SIGSTOP);
	usleep(5000000);
	kill(ranks[0].pid, SIGCONT);
	must_be(0, TUTTI_ETIMEOUT, "rank 1 of 2 did not come within");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(either_may_come_first),
		cmocka_unit_test(a_program_may_do_it_several_times),
		cmocka_unit_test(an_old_file_is_replaced),
		cmocka_unit_test(children_do_not_hold_the_file),
		cmocka_unit_test(whoever_waits_hears_why_rank_0_failed),
		cmocka_unit_test(whoever_has_come_hears_it_too),
		cmocka_unit_test(whoever_comes_later_hears_it_too),
		cmocka_unit_test(a_killed_rank_0_is_known_of),
		cmocka_unit_test(one_name_is_for_one_job),
		cmocka_unit_test(a_file_of_the_users_stays),
		cmocka_unit_test(rank_0_logs_who_has_another_secret),
		cmocka_unit_test(who_wakes_late_is_told_who_is_missing),
	};
	int failed;

	ranks = mmap(NULL, 2 * sizeof(*ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	if (ranks == MAP_FAILED || !mkdtemp(folder))
		return 1;
	snprintf(path, sizeof(path), "%s/id", folder);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	rmdir(folder);
	return failed;
}
