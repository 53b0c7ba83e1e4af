/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TUNE_H
#define TOOL_TUNE_H

/* tutti tune: how long each algorithm takes, which one is chosen, and the constants behind that, predicted or
 * measured. tune.c prints predictions. tune_measure.c starts the ranks of one phase after the other and writes
 * a tune file from their results; tune_rank.c is one rank of a phase; tune_time.c times calls; tune_check.c
 * compares times with each other. */

#include "coll.h"
#include "plan.h"
#include "ranks.h"
#include "tune_range.h"

struct tune_options {
	struct plan_source source;
	struct tutti_tune_config config;
	const char *plan; /* a plan file, read instead of a search */
	bool table, file, check, busy;
	const char *out; /* the tune file to write; NULL: in its usual place */
	int nranks;      /* of the measurement; 0: not given                        */
	size_t most;     /* bytes of a vector; 0: not said                  */
};

int tune_run(void *options);

#define TUNE_ROUNDS  5 /* of a time; it is the median */
#define TUNE_AGAIN   9 /* to be sure that a choice is better */
#define TUNE_TIMES   4096
#define TUNE_BETTERS 128
#define TUNE_SIZES   8
#define TUNE_LINES   512 /* bytes of lines "reach" */

/* Stands for an algorithm: a reduce that a broadcast of the result follows. */
#define TUNE_THEN_BROADCAST "then broadcast"

/* One measurement: so many ranks, over one transport. */
struct tune_phase {
	int nranks;
	double cores; /* shared by the ranks; 0: each has one */
	bool tcp;     /* over loopback: each rank counts as a host */
	size_t most;  /* bytes of a vector */
	bool choices; /* find algorithms better than the chosen one */
};

/* The time of one algorithm, in the units of a tune file. */
struct tune_time {
	tutti_collective coll;
	const char *algorithm; /* a string of the library, at one address in all forked processes;
				* NULL: the chosen one */
	size_t nbytes;
	int phase;
	double us, quiet_us; /* the median, and the second least */
	double rounds[TUNE_ROUNDS];
};

/* An algorithm that is faster than the chosen one. */
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

/* Lies in memory that all ranks share; rank 0 of each phase writes it. */
struct tune_results {
	struct tune_time times[TUNE_TIMES];
	int ntimes;
	struct tune_better betters[TUNE_BETTERS];
	int nbetters;
	int nunsteady;          /* times that changed from round to round */
	bool overflow;          /* more was measured than fits */
	char reach[TUNE_LINES]; /* how memory was measured to be reached, as lines; "": not yet */
};

struct tune_job {
	const struct tune_phase *phases;
	int nphases;
	int phase;    /* the current one */
	bool check;   /* measure the chosen algorithms instead of all */
	bool confirm; /* measure only those that were better */
	int reach_fd; /* a file of lines "reach" for the ranks; -1: not yet */
	struct tune_results *results;
};

/* 8, 64, 512, ... bytes. */
size_t tune_size(int i);
/* The main of struct ranks, one rank of a phase; self is a tune_job. */
int tune_rank_main(void *self, struct rank *rank);

/* Measure and write a tune file to `path`; NULL is its usual place, "-" our output. With `check` instead
 * measure the chosen algorithms and print the times that contradict each other. nranks is at least 2, or 0 for
 * as many as are useful on this machine. Returns the exit code. */
struct tune_measure {
	const char *path;
	int nranks;
	size_t most; /* bytes of a vector; 0: as many as tell something */
	bool check, json;
	bool busy; /* keep it though something else ran */
};
int tune_measure_run(const struct tune_measure *measure);

/* Print the times that contradict each other by more than noise; returns the exit code. */
int tune_check_print(const struct tune_job *job, bool json);

#endif
