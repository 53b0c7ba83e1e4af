/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/thread.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "util/error.h"
#include "util/fault.h"
#include "util/sanitizer.h"

/* Sanitizers make frames several times as large. */
#if TTI_SANITIZED
#define STACK_BYTES (1024 * 1024)
#else
#define STACK_BYTES (256 * 1024)
#endif
#define MOST_STACK_BYTES (16 * 1024 * 1024)

/* Thread-local variables come out of the stack: with those of a large program
 * 256 KiB may be too little, which is EINVAL. */
static int create(pthread_t *out, void *(*run)(void *), void *self)
{
	pthread_attr_t attr;
	int error = pthread_attr_init(&attr);

	if (error)
		return error;
	for (size_t nbytes = STACK_BYTES; nbytes <= MOST_STACK_BYTES; nbytes *= 2) {
		error = pthread_attr_setstacksize(&attr, nbytes);
		if (!error)
			error = pthread_create(out, &attr, run, self);
		if (error != EINVAL)
			break;
	}
	pthread_attr_destroy(&attr);
	return error;
}

/* All signals are the program's, but those a fault raises: blocked, they would
 * end the process without its handler. */
static void fill_mask(sigset_t *mask)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS };

	sigfillset(mask);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		sigdelset(mask, faults[i]);
}

void tti_cond_init(pthread_cond_t *cond)
{
	pthread_condattr_t attr;

	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(cond, &attr);
	pthread_condattr_destroy(&attr);
}

void tti_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t until_ns)
{
	const struct timespec until = { .tv_sec = until_ns / 1000000000,
					.tv_nsec = until_ns % 1000000000 };

	(void)pthread_cond_timedwait(cond, lock, &until);
}

tutti_status tti_thread_start(pthread_t *out, const char *name, void *(*run)(void *), void *self)
{
	sigset_t mask, old;
	char shown[16];
	int error;

	if (tti_fault("thread"))
		return tti_fail(TUTTI_ESYS, "thread %s: made to fail by TUTTI_FAULT", name);
	fill_mask(&mask);
	error = pthread_sigmask(SIG_SETMASK, &mask, &old);
	if (!error) {
		error = create(out, run, self);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	if (error) {
		errno = error;
		return tti_fail(TUTTI_ESYS,
				"thread %s cannot be started: %m (is `ulimit -u` or the pids limit "
				"of the container reached?)",
				name);
	}
	snprintf(shown, sizeof(shown), "%s", name);
	pthread_setname_np(*out, shown);
	return TUTTI_OK;
}

/* What the system's header has, where it has it. */
struct schedule {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
};

#define TURN_NS (100 * 1000) /* the least that Linux takes */

void tti_thread_low_latency(void)
{
	struct schedule schedule = { 0 };

	if (syscall(SYS_sched_getattr, 0, &schedule, sizeof(schedule), 0) != 0)
		return;
	schedule.size = sizeof(schedule);
	schedule.runtime = TURN_NS;
	(void)syscall(SYS_sched_setattr, 0, &schedule, 0);
}

void tti_futex_wait(_Atomic uint32_t *word, uint32_t seen, int64_t timeout_ns)
{
	const struct timespec limit = { .tv_sec = (time_t)(timeout_ns / 1000000000),
					.tv_nsec = (long)(timeout_ns % 1000000000) };

	if (timeout_ns <= 0)
		return;
	/* Not FUTEX_PRIVATE_FLAG: the word may be in shared memory. */
	syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
}

void tti_futex_wake(_Atomic uint32_t *word, int howmany)
{
	syscall(SYS_futex, word, FUTEX_WAKE, howmany, NULL, NULL, 0);
}
