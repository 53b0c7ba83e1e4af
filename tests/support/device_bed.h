/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_DEVICE_BED_H
#define TESTS_SUPPORT_DEVICE_BED_H

/* A test bed for device programs: GPUs of all ranks of a job, which are threads of the host
 * (device/host_run.h), with lanes between all of them. Ranks run in launches of some of them, and
 * each launch is on a thread of its own.
 *
 * Or all launches run on the thread that calls, in turns (device_turns.h).
 *
 * Memory of a GPU is either of the heap, so that ASan sees what is touched past an end, or it is
 * guarded: at the addresses that kernels are given there is nothing to read, and what lies between
 * two allocations is looked at in the end.
 *
 * Owner: device_bed_release(). Threads: one at a time; of beds with guarded memory there is one at a
 * time in the process. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "coll/compile/compile.h"
#include "device/flatten.h"
#include "device/host_run.h"
#include "engine/engine.h"

#define DEVICE_RANKS 33 /* at most */

/* What runs a launch. */
typedef tutti_status (*device_run_fn)(const struct tti_dev_launch *launch,
				      const struct tti_dev_host *host);

struct device_config {
	int n;
	uint32_t nblocks, nthreads; /* of a rank, of a block */
	uint32_t nslots;
	uint32_t slot_bytes; /* data of a message; device_slot_bytes() says what a call needs */
	bool words;          /* calls go by words */
	bool is_guarded;
	uint64_t carried;    /* messages that every lane has carried before */
	bool is_unwritten;   /* none of them went by words */
	int per_launch;      /* ranks; 0: as many as there can be */
	bool in_turns;       /* all threads are stacks of one (device_turns.h) */
	device_run_fn run;   /* tti_dev_host_run() if nothing is said; not in turns */
	int missing;         /* a rank that never comes, > 0; 0: all come */
	int64_t deadline_ms; /* after which a call that runs is stuck; 0: long enough for any */
};

/* The most bytes that a block has of any piece of at most `slice_bytes`. */
uint32_t device_slot_bytes(size_t slice_bytes, size_t type_size, uint32_t nblocks);

struct device_memory;

struct device_bed {
	struct device_config config;
	struct device_memory *memory;
	/* Of each rank: */
	uint64_t lanes[DEVICE_RANKS], control[DEVICE_RANKS], state[DEVICE_RANKS],
		done[DEVICE_RANKS];
	struct tti_dev_traffic traffic;
	uint64_t ncalls;               /* that were made */
	struct tti_dev_call *fallback; /* [ncalls + 1], of each call that has one: by done_value */
	int32_t noperands;             /* the most of any */
	/* Of the last run, of each rank: */
	enum tti_dev_result result[DEVICE_RANKS];
};

void device_bed_init(struct device_bed *bed, const struct device_config *config);
/* Whether nothing was written around what was allocated; NULL is fine. */
bool device_bed_is_clean(const struct device_bed *bed);
void device_bed_release(struct device_bed *bed);

/* Memory of a GPU, zeroed, aligned to 16 bytes; freed with the bed. */
uint64_t device_alloc(struct device_bed *bed, size_t nbytes);
/* Where this process reaches it. */
void *device_view(const struct device_bed *bed, uint64_t address);

/* What a rank runs: addresses are those of a GPU. */
struct device_work {
	const struct tti_compiled *prog;
	/* input and output as addresses of a GPU; extents of the host. */
	struct tti_layout layout;
	tutti_type type;
	tutti_op op; /* not of the user */
	int divisor;
	const void *scalar; /* one element; NULL: inputs are not multiplied */
	size_t slice_bytes;
	uint64_t tag;
	/* Of a memory program: what each peer is told, and what runs if that is nothing. */
	const struct tti_dev_buffers *told;
	int by_row; /* chunks of a row, if each peer is told of its own row alone */
	const struct device_work *fallback;
};

/* Add a call that was made to a launch, with the one that may run in its place. */
void device_launch_add(const struct device_bed *bed, const struct tti_dev_call *call,
		       struct tti_dev_launch *out);

/* Whether a rank has done its call, by whatever program. */
bool device_has_done(enum tti_dev_result result);

/* The call of one rank, with its program and all that it needs in memory of the GPU. */
void device_call_make(struct device_bed *bed, int rank, const struct device_work *work,
		      struct tti_dev_call *out);

enum device_end {
	DEVICE_DONE,  /* all ranks have done all their calls                                 */
	DEVICE_ENDED, /* some rank has ended otherwise, and all others were stopped           */
	DEVICE_STUCK, /* the deadline has passed; all were stopped                             */
};

/* Run call[at * n + rank], `ncalls` of each rank one after the other. A rank may begin with its next
 * one while others are at an earlier one. */
enum device_end device_run(struct device_bed *bed, const struct tti_dev_call *call, int ncalls);

/* The same, and `watch` is called again and again while they run, by the thread that called: for
 * tests that stop what runs. NULL is fine. */
enum device_end device_run_watched(struct device_bed *bed, const struct tti_dev_call *call,
				   int ncalls, void (*watch)(void *self, struct device_bed *bed),
				   void *self);
/* Every block of that rank ends soon. */
void device_stop(struct device_bed *bed, int rank);

struct tti_dev_control *device_control(const struct device_bed *bed, int rank);

/* The configuration, and where each rank stands. */
void device_bed_print(const struct device_bed *bed, FILE *out);

#endif
