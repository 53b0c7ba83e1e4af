/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TUNE_TIME_H
#define TOOL_TUNE_TIME_H

/* What calls take, for a rank of tutti tune (tune_rank.c).
 *
 * What is compared takes turns, round after round, so that what disturbs one disturbs all. A
 * time is that of calls back to back on the slowest rank; roots go round, or else a root
 * would run ahead of the others. Of long calls each begins at a barrier, after what is sent was
 * written anew, as programs do: what a peer has copied before is copied much faster. All ranks see
 * the same times, and so decide alike. */

#include "tune.h"

#define TUNE_ALGOS 8
/* Calls of so many bytes are long: those that may take memory (TUTTI_REGISTERED_LEAST). */
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

/* One of several that take turns. */
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

/* false: it is not, and that was said. */
bool tune_is_good(struct tune_rank *r, tutti_status status, const char *what);

/* The i-th call; the status is the library's. */
tutti_status tune_call(const struct tune_rank *r, const struct tune_runner *runner, int i);
/* Of one call, on the average of so many. */
bool tune_time_calls(struct tune_rank *r, const struct tune_runner *runner, int iters, double *us);
/* All that is done only once is done, and it is known how many calls make a batch. All but the
 * first `keep` are out if they are hopeless. */
bool tune_warm_up_all(struct tune_rank *r, struct tune_runner *runners, int n, int keep);
bool tune_take_turns(struct tune_rank *r, struct tune_runner *runners, int n, int rounds);

/* The i-th least of n. */
double tune_ordered(const double *us, int n, int i);
double tune_median(const double *us, int n);
/* Whether the middle half of the rounds is near the median: else something else ran. */
bool tune_is_steady(const double *us, int n);

#endif
