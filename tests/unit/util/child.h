/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_UTIL_CHILD_H
#define TEST_UTIL_CHILD_H

/* What depends on the environment is read once per process, so each such test
 * runs in a process of its own, forked before anything was read. Its stderr is
 * a socket that keeps each write() apart: messages[i] is one of them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_MESSAGES 128

/* In a child, which has no cmocka: say what does not hold. */
#define EXPECT(condition) \
	((condition) ? (void)0 : (void)dprintf(STDERR_FILENO, "FALSE: %s", #condition))

struct child {
	char messages[CHILD_MESSAGES][4600];
	int n;
	int status; /* of waitpid() */
};

/* cmocka catches faults to go on with the next test, which a child must not. */
static inline void child_die_of_faults(void)
{
	static const int faults[] = { SIGILL, SIGTRAP, SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGSYS };

	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		signal(faults[i], SIG_DFL);
}

/* Run `body` with exactly the environment `env` (ends in NULL). */
static inline void child_run(struct child *child, const char *const *env, void (*body)(void))
{
	int pair[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* A deadlock is a failure, not a hang. */
		alarm(20);
		child_die_of_faults();
		dup2(pair[1], STDERR_FILENO);
		close(pair[0]);
		close(pair[1]);
		clearenv();
		for (; *env; env++)
			if (putenv((char *)(uintptr_t)*env))
				_exit(99);
		body();
		_exit(0);
	}
	close(pair[1]);
	memset(child, 0, sizeof(*child));
	while (child->n < CHILD_MESSAGES &&
	       recv(pair[0], child->messages[child->n], sizeof(child->messages[0]) - 1, 0) > 0)
		child->n++;
	close(pair[0]);
	assert_int_equal(waitpid(pid, &child->status, 0), pid);
}

/* The number of messages that contain text. */
static inline int child_count(const struct child *child, const char *text)
{
	int count = 0;

	for (int i = 0; i < child->n; i++)
		count += strstr(child->messages[i], text) != NULL;
	return count;
}

#endif
