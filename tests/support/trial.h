/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_TRIAL_H
#define TESTS_SUPPORT_TRIAL_H

/* A trial of the engine: the programs of one algorithm, bound on a test bed (bed.h), and calls
 * that run them one after the other. Each call has its own type, operator, length, layout and
 * buffers. Every byte of every buffer is compared with what the call has to leave there
 * (numbers.h): results, inputs, and what lies between and around them.
 *
 * Owner: trial_release(). Threads: not synchronised. */

#include "coll/program.h"
#include "support/bed.h"
#include "support/numbers.h"

#define TRIAL_CALLS       3
/* Bytes of a step of what runs where memory is refused. */
#define TRIAL_OTHER_SLICE 64

struct trial_config {
	const struct tti_algorithm *algo;
	int n, root;
	int shape; /* enum shape_kind, -1: ranks go by number */
	struct tti_split split;
	/* Of memory programs: some ranks say that their buffers cannot be addressed, and all run
	 * another algorithm of the collective in the end. */
	bool refuses;
	/* 1 and up: call `at` has the type and the operator of trial_pair(pair + at), or of what only
	 * moves data the type number pair + at, from the first again after the last; 0: each its own. */
	int pair;
	size_t most_blocks; /* of a call; 0: many */
	/* No operator of the user's is drawn, and inputs are any bits. So what comes out of a
	 * reduction depends on the order, and is what the engine makes of it. */
	bool has_any_bits;
	/* Of the shape and of what the calls are; the bed has its own. */
	uint64_t seed;
};

struct trial_call {
	tutti_type type;
	int op;       /* as of numbers.h                            */
	size_t count; /* of a row; of uneven rows: of the longest   */
	size_t slice_bytes, chunk_count;
	size_t stride;            /* elements from row to row, count or more        */
	size_t counts[BED_RANKS]; /* uneven: of each rank's row                     */
	size_t firsts[BED_RANKS]; /* uneven: where it begins in the vector of all   */
	size_t shift;             /* uneven: elements that outputs are said to lie further on */
	bool is_uneven;           /* all_gather and reduce_scatter: extents in place of rows */
	uint64_t tag;
	struct numbers numbers;
	struct tti_scalars scalars[BED_RANKS];
	struct tti_extent *extents; /* [nchunks]                                 */
	char *memory[BED_RANKS];    /* what the engine works on                    */
	char *before[BED_RANKS];    /* what that is at first                       */
	char *want[BED_RANKS];      /* what it has to be afterwards                */
	size_t nbytes[BED_RANKS];
	/* Bytes of it that no test knows beforehand: the results of reductions of any bits. */
	size_t unknown_at[BED_RANKS], unknown[BED_RANKS];
	/* What others touch of them, without the names. */
	struct tti_memory_buffer send[BED_RANKS], recv[BED_RANKS];
	struct tti_layout layout[BED_RANKS];
	struct tti_reducer reducer[BED_RANKS];
};

struct trial {
	struct trial_config config;
	struct bed bed;
	int nchunks;
	bool in_place[BED_RANKS]; /* drawn: programs are made for it */
	struct tti_executable *bound[BED_RANKS];
	struct tti_executable *other[BED_RANKS]; /* what runs where memory is refused */
	int other_chunks;
	int at[BED_RANKS]; /* the call that a rank is at */
	int taken;         /* calls that memory programs have run, of all ranks */
	struct trial_call call[TRIAL_CALLS];
	char wrong[256]; /* the first byte that is not what it must be, "": none */
};

/* With calls that are drawn, each different from the others. */
void trial_init(struct trial *trial, const struct trial_config *config,
		const struct bed_config *bed);
void trial_release(struct trial *trial);

/* Run all calls; false: something is wrong, and said on stderr. */
bool trial_run(struct trial *trial);
/* The same by the engine's way for short calls, each call that is short enough for it, twice as
 * the same kept call. */
bool trial_run_short(struct trial *trial);

/* Every type with every operator that it has, and pre-multiplied sums, one after the other and from
 * the beginning again; how many there are. */
int trial_pair(int index, tutti_type *type, int *op);

/* Draw a call, with its buffers, for the programs that are bound; trial_init() does so. */
void trial_make_call(struct trial *trial, struct trial_call *call, uint64_t *random);
/* Start a call in bed->job[rank]. */
void trial_start(struct trial *trial, int rank, int at);
/* Compare what a rank has after a call; false: trial->wrong says what. */
bool trial_check(struct trial *trial, int rank, int at);
/* Whether a rank says in a call that its buffers cannot be addressed. Then all run trial->other, with
 * another layout: its chunks lie in the same rows. */
bool trial_refuses(const struct trial *trial, int rank, int at);
struct tti_layout trial_other_layout(const struct trial *trial, int rank, int at);
/* What is tried, on stderr. */
void trial_print(const struct trial *trial);

#endif
