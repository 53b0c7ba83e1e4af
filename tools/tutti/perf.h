/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_PERF_H
#define TOOL_PERF_H

/* tutti perf in parts: cmd_perf.c reads the options and starts the ranks,
 * perf_rank.c measures on one rank, perf_data.c makes and checks the data,
 * perf_print.c prints the table of nccl-tests, or JSON. */

#include <stdatomic.h>

#include "tool.h"

struct perf_options {
	const struct args *args;
	tutti_collective coll;
	int nranks; /* 0: a launcher started us as one rank */
	size_t min_bytes;
	size_t max_bytes;
	size_t factor;
	tutti_type types[TUTTI_TYPE_COUNT];
	int ntypes;
	tutti_op ops[TUTTI_OP_COUNT];
	int nops;
	int root;
	int warmup;
	int iters; /* 0: as many as fill about 30 ms */
	bool check;
	bool threads;
	bool json;
	bool verbose;
	const char *transport; /* NULL: not said */
	const char *algorithm; /* NULL: the library chooses */
};

/* One page that all ranks see, if we started them. */
struct perf_shared {
	atomic_int id_ready; /* 1: id is good, -1: there will be none */
	tutti_unique_id id;
	atomic_ullong entered; /* barriers, by all ranks; see the check of one */
	atomic_uint said;      /* 1 << -status: what has been reported */
};

/* What a size comes to, in elements. */
struct perf_layout {
	size_t elt;
	size_t param; /* the count argument */
	size_t send;
	size_t recv;
	size_t bytes; /* the larger of both: "size" in the table */
};

struct perf_result {
	double time_us;
	double algbw;
	double busbw;
	long long wrong;
	bool valid;   /* false: there is no such case */
	bool checked; /* false: wrong says nothing */
};

struct perf_row {
	struct perf_layout layout;
	tutti_type type;
	tutti_op op;
	struct perf_result out_of_place;
	struct perf_result in_place;
	const char *algorithm;
	const char *transport;
	int channels;
};

struct perf_rank {
	const struct perf_options *options;
	struct perf_shared *shared; /* NULL: started by somebody else */
	tutti_comm_t comm;
	int rank;
	int nranks;
	void *send; /* as many bytes as the largest size needs */
	void *recv;
	char *gathered; /* nranks * PERF_BLOB bytes */
	double busbw_sum;
	int busbw_count;
	long long wrong; /* over all sizes and ranks */
	bool failed;     /* a call failed; said so */
};

#define PERF_BLOB 128

/* Does everything of one rank; the exit code of the process. */
int perf_rank_main(const struct perf_options *options, struct perf_shared *shared,
		   tutti_comm_t comm);

/* Report what failed on a rank, unless another of ours has reported the same:
 * one dead rank fails the calls of all others. */
void perf_report(const struct perf_options *options, struct perf_shared *shared, int rank,
		 const char *what, tutti_comm_t comm, tutti_status status);

/* -- Data ---------------------------------------------------------------- */

bool perf_reduces(tutti_collective coll);
bool perf_has_root(tutti_collective coll);

void perf_layout_of(tutti_collective coll, size_t bytes, size_t elt, int nranks,
		    struct perf_layout *out);

/* What identifies the data of one check; the same on all ranks. */
struct perf_pattern {
	tutti_collective coll;
	tutti_type type;
	tutti_op op;
	int nranks;
	int root;
	uint64_t seed;
	struct perf_layout layout;
};

/* false: no memory. */
bool perf_fill(const struct perf_pattern *pattern, int rank, void *send);

/* How many elements of recv are not what they should be; < 0: no memory. */
long long perf_count_wrong(const struct perf_pattern *pattern, int rank, const void *recv);

/* -- Printing ------------------------------------------------------------ */

void perf_print_start(const struct perf_options *options);
/* One "Using devices" line. */
void perf_print_rank(int rank, int pid, const char *host);
/* The plan in use, as the library writes it: lines. */
void perf_print_plan(const char *text);
void perf_print_columns(void);
bool perf_print_row(const struct perf_rank *pr, const struct perf_row *row);
void perf_print_end(const struct perf_rank *pr);

#endif
