/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "util/process.h"

static void end_it(pid_t pid)
{
	siginfo_t info;

	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

static void an_end_is_seen(void **state)
{
	const pid_t pid = fork();
	uint64_t identity;

	(void)state;
	if (pid == 0)
		for (;;)
			pause();
	identity = tti_process_identity(pid);
	assert_true(identity != 0);
	assert_true(identity == tti_process_identity(pid));
	assert_false(tti_process_has_ended(pid, identity));
	end_it(pid); /* and nobody has waited */
	assert_true(tti_process_identity(pid) == 0);
	assert_true(tti_process_has_ended(pid, identity));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(tti_process_has_ended(pid, identity));
}

static void a_number_that_is_anothers_tells(void **state)
{
	const uint64_t identity = tti_process_identity(getpid());

	(void)state;
	assert_false(tti_process_has_ended(getpid(), identity));
	assert_true(tti_process_has_ended(getpid(), identity + 2));
	assert_true(tti_process_has_ended(getpid(), identity - 2));
}

static void *live_on(void *self)
{
	while (pause() == -1)
		continue;
	return self;
}

/* Of another machine or container: its number means nothing here. */
static void an_end_elsewhere_is_not_seen(void **state)
{
	const uint64_t here = tti_process_identity(getpid());
	const uint64_t elsewhere = here ^ (uint64_t)1 << 40;

	(void)state;
	assert_true(tti_process_is_here(here));
	assert_false(tti_process_is_here(elsewhere));
	assert_false(tti_process_is_here(0));
	assert_true(tti_process_has_ended(INT_MAX, here));
	assert_false(tti_process_has_ended(INT_MAX, elsewhere));
	assert_false(tti_process_has_ended(INT_MAX, 0));
}

/* The first thread has ended, the process has not. */
static void a_thread_is_not_the_process(void **state)
{
	const pid_t pid = fork();
	uint64_t identity;

	(void)state;
	if (pid == 0) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, live_on, NULL) == 0)
			pthread_exit(NULL);
		_exit(1);
	}
	identity = tti_process_identity(pid);
	/* Long enough for it to have ended, on most machines. */
	for (int i = 0; i < 50; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 4000000 }, NULL);
		assert_false(tti_process_has_ended(pid, identity));
	}
	end_it(pid);
	assert_true(tti_process_has_ended(pid, identity));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_end_is_seen),
		cmocka_unit_test(a_number_that_is_anothers_tells),
		cmocka_unit_test(an_end_elsewhere_is_not_seen),
		cmocka_unit_test(a_thread_is_not_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
