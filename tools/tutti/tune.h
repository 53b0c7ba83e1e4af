/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TUNE_H
#define TOOL_TUNE_H

/* tutti tune: how long each algorithm takes, which is taken, and the constants behind it: as predicted,
 * or as this machine has it. That is measured in parts: tune_measure.c starts the ranks of one phase after the
 * other and makes a tune file of what they found; tune_rank.c is one rank of a phase;
 * tune_check.c looks whether times make sense beside each other. */

#include "coll.h"
#include "plan.h"
#include "ranks.h"
#include "tune_range.h"

struct tune_options {
	struct plan_source source;
	struct tutti_tune_config config;
	const char *plan; /* a file, in place of a search */
	bool table, file, check, busy;
	const char *out; /* where what is measured goes; NULL: to its place */
	int nranks;      /* that measure; 0: not said                       */
	size_t most;     /* bytes of a vector; 0: not said                  */
};

int tune_run(void *options);

#define TUNE_ROUNDS  5 /* of a time; it is the median */
#define TUNE_AGAIN   9 /* to be sure that a choice is better */
#define TUNE_TIMES   4096
#define TUNE_BETTERS 128
#define TUNE_SIZES   8
#define TUNE_LINES   512 /* bytes of lines "reach" */

/* In place of an algorithm: a broadcast of the result comes behind. */
#define TUNE_THEN_BROADCAST "then broadcast"

/* Ranks of one number, which reach each other in one way. */
struct tune_phase {
	int nranks;
	double cores; /* that they share; 0: one for each */
	bool tcp;     /* over loopback: each counts as a host of its own */
	size_t most;  /* bytes of a vector */
	bool choices; /* whether others would be better than what is taken */
};

/* Of one algorithm; in the units of a tune file. */
struct tune_time {
	tutti_collective coll;
	const char *algorithm; /* the library's: alike in all processes that were forked; NULL:
				* what is taken */
	size_t nbytes;
	int phase;
	double us, quiet_us; /* the median, and the second least */
	double rounds[TUNE_ROUNDS];
};

/* One that is faster than what is taken. */
struct tune_better {
	tutti_collective coll;
	const char *taken, *better;
	const char *reach; /* of a tune file: how the buffers are reached; NULL: by messages */
	size_t nbytes;     /* as it was measured */
	struct tune_range range;
	int nranks;
	double taken_us, better_us;
	bool dropped; /* it was not better in other processes */
};

/* In memory that all ranks have; rank 0 of each phase writes. */
struct tune_results {
	struct tune_time times[TUNE_TIMES];
	int ntimes;
	struct tune_better betters[TUNE_BETTERS];
	int nbetters;
	int nunsteady;          /* times that were not the same from round to round */
	bool overflow;          /* there was more than fits */
	char reach[TUNE_LINES]; /* how memory was measured to be reached, as lines; "": not yet */
};

struct tune_job {
	const struct tune_phase *phases;
	int nphases;
	int phase;    /* that is under way */
	bool check;   /* what is taken, in place of each algorithm */
	bool confirm; /* those that were better, and nothing else */
	int reach_fd; /* a file of lines "reach", that ranks go by; -1: not yet */
	struct tune_results *results;
};

/* 8, 64, 512, ... bytes. */
size_t tune_size(int i);
/* Everything of one rank of a phase: struct ranks's main; self is a tune_job. */
int tune_rank_main(void *self, struct rank *rank);

/* Measure, and write a tune file to `path`: NULL: to its place, "-": to the output. Or, with
 * `check`, measure what is taken and say what makes no sense. nranks: 2 and more, 0: as many as
 * tell something here. The exit code. */
struct tune_measure {
	const char *path;
	int nranks;
	size_t most; /* bytes of a vector; 0: as many as tell something */
	bool check, json;
	bool busy; /* keep it though something else ran */
};
int tune_measure_run(const struct tune_measure *measure);

/* What makes no sense beyond noise, as text; the exit code. */
int tune_check_print(const struct tune_job *job, bool json);

#endif
