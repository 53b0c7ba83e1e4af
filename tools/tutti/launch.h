/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_LAUNCH_H
#define TOOL_LAUNCH_H

/* Processes of this machine that live and die together: ranks, or remote shells to the hosts where
 * the ranks are.
 *
 * Call launch_open(), then launch_fork() once per rank, then launch_wait(), which returns when all
 * have ended. If one fails, all are ended, unless keeps_going is set. They are also ended if we get SIGINT,
 * SIGTERM, SIGHUP, SIGQUIT or SIGPIPE. They get SIGTERM, or the signal that we got, two seconds later
 * SIGKILL, and then the processes that they left behind are killed. If we die ourselves, the kernel kills
 * the ranks, but not the processes that they have started.
 *
 * A remote shell is not signalled at first. Each has a control: a socket that carries a byte with the
 * number of the signal, and whose end says that no signal will follow. A process whose standard input is a
 * control calls launch_accept_signals().
 *
 * Owner: the caller; launch_close() also after a failed open. Threads: one. The process has no other
 * children than these. */

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tag_stream;

struct launch_host {
	const char *name;
	int control; /* -1: it has none any more */
	char *text;  /* the text of launch_send() until all of it is sent, else NULL */
	size_t nbytes, nsent;
};

struct launch {
	const char *verb; /* for messages: "run" */
	int nranks;
	int nlive;
	pid_t *pids;  /* 0: not started or ended */
	int signalfd; /* receives SIGCHLD and the signals that end us */
	sigset_t old_mask;
	struct tag_stream *tags;   /* 2 per rank, NULL: output is not tagged */
	int first_rank;            /* the number of the first one */
	struct launch_host *hosts; /* the children are remote shells; NULL: ranks */
	bool accepts_signals;      /* our standard input is a control */

	int exit_code;         /* of the first that failed */
	int failed;            /* the child that is said to be the cause, -1: none */
	int failed_signal;     /* that killed it, 0: none */
	int killed_code;       /* with keeps_going: of the first that failed in any way */
	bool interrupted;      /* a signal to us was the reason */
	bool ending;           /* all are being ended */
	int64_t kill_at_ms;    /* when they get SIGKILL */
	bool quiet_on_failure; /* the ranks print their errors themselves */
	int ncpus;             /* CPUs that launch_bind() shares out, in this order; 0: none */
	int cpus[CPU_SETSIZE];
	bool keeps_going; /* a rank that fails does not end the others */
	int ngood;        /* ranks that ended with 0 */
};

/* False: it failed, and the error was printed. */
bool launch_open(struct launch *launch, const char *verb, int nranks, bool tagged);

/* Share out the cores that this process may run on among the ranks, evenly and in order. Where there are 2,
 * 3 ... times as many ranks, neighbours share a core; with any other number above that of the cores no rank
 * is bound. Call it before the first launch_fork(). */
void launch_bind(struct launch *launch);

/* Number the ranks from `first` on. Call it before the first launch_fork(). */
void launch_set_first_rank(struct launch *launch, int first);

/* The children are remote shells to `hosts`, one each. Borrows hosts. Their lines are printed without a
 * rank in front. */
void launch_set_hosts(struct launch *launch, struct launch_host *hosts);

/* Send `text` over the control of child `rank` without blocking; launch_wait() sends the rest. Takes text,
 * which malloc() has allocated, and wipes it once it is sent or the launch ends. */
void launch_send(struct launch *launch, int rank, char *text, size_t nbytes);

/* Read signals from standard input, which is a control of another launch. */
void launch_accept_signals(struct launch *launch);

/* Start rank `rank`, counted from 0. Returns 0 in the child, which execs or ends: its signal mask is the one
 * before launch_open(), and it may call launch_close(). Returns < 0 if it fails, after the error was
 * printed: then call launch_end() and launch_wait(). */
pid_t launch_fork(struct launch *launch, int rank);

/* End all with `signal`; launch_wait() will return `exit_code`. */
void launch_end(struct launch *launch, int signal, int exit_code);

/* 0, or the exit code of the first that failed, 128 + its signal, or 128 + the
 * signal that we got. With keeps_going a rank that was killed counts only if none ended with 0. */
int launch_wait(struct launch *launch);

void launch_close(struct launch *launch);

/* The signals that end a launch, and SIGCHLD. */
void launch_signals(sigset_t *out);

/* Kill all children, and the processes that they leave behind. The caller has set
 * PR_SET_CHILD_SUBREAPER. */
void launch_kill_leftovers(void);

#endif
