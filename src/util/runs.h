/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_RUNS_H
#define TTI_UTIL_RUNS_H

/* An allocator of ranges of units. It hands out runs of neighbouring units, and merges a run that
 * is given back with its free neighbours. It touches only its own table, of 16 bytes for each unit
 * below the highest one that was ever in use. The table comes from the kernel, not from malloc: a
 * malloc may be built on it.
 *
 * Free runs are kept by the power of two below their length. A search takes a bounded number of
 * steps, so a run that would fit may be passed over for a longer one (segregated fit; Wilson et
 * al., Dynamic Storage Allocation, IWMM 1995). A free run is dirty if its memory was written and
 * not cleaned since.
 *
 * Owner: tti_runs_release(). Threads: not synchronised. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTI_RUNS_NONE UINT32_MAX
#define TTI_RUNS_MOST (UINT32_C(1) << 30) /* units */
#define TTI_RUNS_BINS 30

struct tti_run_tag;

struct tti_runs {
	struct tti_run_tag *tag; /* [room] */
	uint32_t room, limit;
	uint32_t top;                /* units from here on are free, clean and in no run  */
	uint32_t bin[TTI_RUNS_BINS]; /* the first free run of each length, TTI_RUNS_NONE  */
};

/* limit <= TTI_RUNS_MOST units, all free. */
void tti_runs_init(struct tti_runs *runs, uint32_t limit);
void tti_runs_release(struct tti_runs *runs);

/* A run of `units` > 0 whose first unit is a multiple of `align`, a power of two. Returns the first
 * unit; TTI_RUNS_NONE: there is no such run, or no memory for the table. */
uint32_t tti_runs_take(struct tti_runs *runs, uint32_t units, uint32_t align, bool *is_dirty);

/* How many units a run in use has that begins there; 0: none does. */
uint32_t tti_runs_units(const struct tti_runs *runs, uint32_t first);

/* Give a run back that is in use. */
void tti_runs_give(struct tti_runs *runs, uint32_t first, bool is_dirty);

/* Make a run in use longer or shorter where it is; what it loses is dirty or not. False: what
 * follows it is in use, and nothing has changed; *is_dirty: what it gained may be. */
bool tti_runs_resize(struct tti_runs *runs, uint32_t first, uint32_t units, bool *is_dirty);

/* One of the dirty free runs, which is clean from now on; TTI_RUNS_NONE: there is none. */
uint32_t tti_runs_clean(struct tti_runs *runs, uint32_t *units);

#endif
