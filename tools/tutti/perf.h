/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_PERF_H
#define TOOL_PERF_H

/* tutti perf in parts: perf.c starts the ranks, perf_rank.c measures on one rank, perf_data.c makes and checks
 * the data, perf_types.c reads types and operations, perf_sides.c has the sides of handoffs, perf_uneven.c the counts of v-collectives, perf_print.c
 * prints the table of nccl-tests, or JSON. */

#include <stdatomic.h>

#include "cli.h"
#include "coll.h"
#include "ranks.h"

enum { PERF_FROM = 1, PERF_TO = 2 };

struct perf_types {
	tutti_type at[TUTTI_TYPE_COUNT];
	int n;
};

struct perf_ops {
	tutti_op at[TUTTI_OP_COUNT];
	int n;
};

struct perf_options {
	tutti_collective coll;
	int nranks; /* 0: a launcher started us as one rank */
	size_t min_bytes;
	size_t max_bytes;
	size_t factor;
	struct perf_types types;
	struct perf_ops ops;
	int root;
	int warmup;
	int iters; /* 0: as many as fill about 30 ms */
	int check, registered;
	bool threads;
	bool reproducible;
	bool json;
	bool verbose;
	const char *transport; /* NULL: not said */
	const char *algorithm; /* NULL: the library chooses */
	/* The sides of a handoff; n 0: not given. */
	struct cli_ranks from, to;
	int sharded; /* PERF_FROM, PERF_TO, ored */
};

/* Whether there is anything to measure. With all types and all operations some pairs have no meaning; they are
 * left out. */
bool perf_has_pair(const struct perf_options *options, tutti_type type, tutti_op op);

/* The name of a type in the table of nccl-tests: "float". */
const char *perf_nccl_name(tutti_type type);
const char *perf_type_name(const void *self, int i);
const char *perf_op_name(const void *self, int i);
/* Values of -d and -o, a name or "all", into struct perf_types and perf_ops. */
bool perf_take_type(const char *label, const char *value, void *field);
bool perf_take_op(const char *label, const char *value, void *field);
int perf_run(void *options);

/* Memory that all ranks share, if we started them. */
struct perf_shared {
	struct ranks_page page;
	atomic_ullong entered; /* barriers, by all ranks; see the check of one */
};

/* The counts for a size, in elements. */
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

/* The sides of a handoff. */
struct perf_sides {
	tutti_side from, to;
	struct cli_ranks default_from, default_to;
};

/* The counts of this rank, for calls with a count for each rank; the same both ways. */
struct perf_counts {
	size_t *counts, *displs; /* [nranks] */
	size_t own;
};

struct perf_rank {
	const struct perf_options *options;
	struct rank *base;
	struct perf_shared *shared; /* NULL: started by somebody else */
	tutti_comm_t comm;
	int rank;
	int nranks;
	void *send; /* as many bytes as the largest size needs */
	void *recv;
	char *gathered; /* nranks * PERF_BLOB bytes */
	struct perf_sides sides;
	struct perf_counts counts; /* of the size being measured */
	double busbw_sum;
	int busbw_count;
	long long wrong; /* over all sizes and ranks */
};

#define PERF_BLOB 128

/* The main of struct ranks; options is a perf_options. */
int perf_rank_main(void *options, struct rank *rank);

/* -- Data ---------------------------------------------------------------- */

void perf_layout_of(tutti_collective coll, size_t bytes, size_t elt, int nranks,
		    struct perf_layout *out);

/* Determines the data of one check; the same on all ranks. */
struct perf_pattern {
	tutti_collective coll;
	tutti_type type;
	tutti_op op;
	int nranks;
	int root;
	uint64_t seed;
	struct perf_layout layout;
	const struct perf_sides *sides;
};

/* false: no memory. */
bool perf_fill(const struct perf_pattern *pattern, int rank, void *send);

/* How many elements of recv are not what they should be; < 0: no memory. */
long long perf_count_wrong(const struct perf_pattern *pattern, int rank, const void *recv);

/* -- A count for each rank -------------------------------------------------- */

/* Those of one rank, `count` on the average; room is made once. false: no memory. */
bool perf_make_counts(tutti_collective coll, size_t count, int rank, int n,
		      struct perf_counts *counts);
void perf_free_counts(struct perf_counts *counts);

/* How many elements `rank` sends, of gathers: its own; else as many as any buffer has. */
size_t perf_uneven_sends(const struct perf_pattern *pattern, int rank);

/* What `rank` gets from `from`: `count` elements, which are those from `first` on of what
 * that rank sends (of a reduction: of the result), at `place` of the receive buffer. */
struct perf_part {
	size_t first, count, place;
};
void perf_uneven_part(const struct perf_pattern *pattern, int rank, int from,
		      struct perf_part *out);

/* -- Sides of a handoff ---------------------------------------------------- */

/* What was given, else the first half of the ranks to the second; false: no memory. */
bool perf_find_sides(const struct perf_options *options, int nranks, struct perf_sides *out);
void perf_free_sides(struct perf_sides *sides);

/* Which elements of the vector a rank has: none if it is not on the side. */
void perf_side_range(const tutti_side *side, int rank, size_t count, size_t *first, size_t *length);

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
