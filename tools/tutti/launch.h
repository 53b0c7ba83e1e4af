/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_LAUNCH_H
#define TOOL_LAUNCH_H

/* Processes of this machine that live and die together: ranks, or remote shells to the hosts where
 * the ranks are.
 *
 * launch_open(), then launch_fork() once per rank, then launch_wait(): it
 * returns when all have ended. The first that fails, or a SIGINT, SIGTERM,
 * SIGHUP, SIGQUIT or SIGPIPE to us, ends all of them (with keeps_going only a signal does): with SIGTERM (or the signal
 * we got), with SIGKILL two seconds later, and then whatever they left behind. If
 * we die ourselves, the kernel kills them, but not what they have started.
 *
 * Remote shells are not signalled at first: each has a control, a socket over which goes a byte with
 * the number of the signal, and whose end says that there will be no more. What has a control as its standard
 * input calls launch_obey().
 *
 * Owner: the caller; launch_close() also after a failed open. One thread, and
 * no other children than these. */

#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tag_stream;

struct launch_host {
	const char *name;
	int control; /* -1: it has none any more */
	char *text;  /* what launch_tell() has not said there in full yet; else NULL */
	size_t nbytes, nsaid;
};

struct launch {
	const char *verb; /* for messages: "run" */
	int nranks;
	int nlive;
	pid_t *pids;  /* 0: not started or ended */
	int signalfd; /* SIGCHLD and what ends us */
	sigset_t old_mask;
	struct tag_stream *tags;   /* 2 per rank, NULL: output is not tagged */
	int first_rank;            /* the number of the first one */
	struct launch_host *hosts; /* they are remote shells; NULL: ranks */
	bool obeys;                /* standard input is a control */

	int exit_code;         /* of the first that failed */
	int killed_code;       /* with keeps_going: of the first that failed in any way */
	bool interrupted;      /* a signal to us was the reason */
	bool ending;           /* all are being ended */
	int64_t kill_at_ms;    /* then with SIGKILL */
	bool quiet_on_failure; /* the ranks say themselves what was wrong */
	int ncpus;             /* that launch_bind() shares out, in this order; 0: none */
	int cpus[CPU_SETSIZE];
	bool keeps_going; /* what fails is no reason to end the others */
	int ngood;        /* ranks that ended with 0 */
};

/* false: said so on stderr. */
bool launch_open(struct launch *launch, const char *verb, int nranks, bool tagged);

/* Give each rank cores of its own, if there are as many as ranks: the cores we may run
 * on, shared out evenly and in order. Before the first launch_fork(). */
void launch_bind(struct launch *launch);

/* The ranks are numbered from `first` on: before the first launch_fork(). */
void launch_number(struct launch *launch, int first);

/* They are remote shells to `hosts`, one each, borrowed; their lines come out as they are. */
void launch_name(struct launch *launch, struct launch_host *hosts);

/* Say `text` over the control of `rank`, once, as fast as it is read there: launch_wait() does what is left.
 * Takes text, which is of malloc(), and wipes it when it is said or nobody is to hear it any more. */
void launch_tell(struct launch *launch, int rank, char *text, size_t nbytes);

/* Our standard input is a control of another launch. */
void launch_obey(struct launch *launch);

/* Start rank `rank`, counted from 0: 0 in the child, which execs or ends; its signals are as
 * they were before launch_open(), and launch_close() is allowed there too. < 0:
 * failed, said so; call launch_end() and launch_wait(). */
pid_t launch_fork(struct launch *launch, int rank);

/* End all with `signal`, and say `exit_code` at the end. */
void launch_end(struct launch *launch, int signal, int exit_code);

/* 0, or the exit code of the first that failed, 128 + its signal, or 128 + the
 * signal that we got. With keeps_going a rank that was killed counts only if none ended with 0. */
int launch_wait(struct launch *launch);

void launch_close(struct launch *launch);

/* The signals that end a launch, and SIGCHLD. */
void launch_signals(sigset_t *out);

/* Kill all children, and what they leave behind: of a process that asked for it by
 * PR_SET_CHILD_SUBREAPER. */
void launch_kill_leftovers(void);

#endif
