/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TUNE_TIME_H
#define TOOL_TUNE_TIME_H

/* The time of calls, for a rank of tutti tune (tune_rank.c).
 *
 * Algorithms that are compared take turns, round after round, so that a disturbance meets all of them. A time
 * is that of calls back to back on the slowest rank. The root moves on with each call, or it would run ahead of
 * the others. A long call begins at a barrier, after the send buffer was written anew as programs do: data
 * that a peer has copied before is copied much faster. All ranks see the same times, so they decide alike. */

#include "tune.h"

#define TUNE_ALGOS 8
/* Calls of so many bytes are long: they may use registered memory (TUTTI_REGISTERED_LEAST). */
#define TUNE_LONG  ((size_t)256 << 10)

struct tune_rank {
	const struct tune_job *job;
	const struct tune_phase *phase;
	struct rank *base;
	tutti_comm_t comm;               /* as it comes */
	tutti_comm_t pinned[TUNE_ALGOS]; /* the i-th algorithm of each collective, by messages */
	tutti_comm_t messages;           /* what is taken without memory                       */
	tutti_comm_t memory;             /* where the data lies, wherever that can be          */
	int rank, n;
	float *send, *recv;
	void *mapped[2]; /* the same that peers map, of `memory` */
};

/* One of several algorithms that take turns. */
struct tune_runner {
	tutti_comm_t comm;
	tutti_collective coll;
	const char *algorithm; /* NULL: not pinned */
	size_t nbytes;
	int iters;
	bool out; /* hopeless */
	bool then_broadcast;
	void *mapped[2]; /* what is sent and received; NULL: ordinary memory */
	double us[TUNE_AGAIN];
};

/* False: the call failed, and the error was printed. */
bool tune_is_good(struct tune_rank *r, tutti_status status, const char *what);

/* Make the i-th call. */
tutti_status tune_call(const struct tune_rank *r, const struct tune_runner *runner, int i);
/* The mean time of a call, over `iters` calls. */
bool tune_time_calls(struct tune_rank *r, const struct tune_runner *runner, int iters, double *us);
/* Do the work of first calls, and find how many calls make a batch. Those behind the first `keep` drop out if
 * they are much slower than the best. */
bool tune_warm_up_all(struct tune_rank *r, struct tune_runner *runners, int n, int keep);
bool tune_take_turns(struct tune_rank *r, struct tune_runner *runners, int n, int rounds);

/* The i-th least of n. */
double tune_ordered(const double *us, int n, int i);
double tune_median(const double *us, int n);
/* Whether the middle half of the rounds is near the median. If not, other work disturbed them. */
bool tune_is_steady(const double *us, int n);

#endif
