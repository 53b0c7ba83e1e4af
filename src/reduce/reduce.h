/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_REDUCE_REDUCE_H
#define TTI_REDUCE_REDUCE_H

/* Reduction kernels over host memory.
 *
 * A kernel reduces nsrc >= 1 arrays of `count` elements, element by element, in
 * the order of src[] and left to right ((s0 op s1) op s2 ...), so the result
 * depends on nothing but the order. It writes the result to dst and, if dst2 is
 * not NULL, there too, in one pass. dst and dst2 may be equal to any src (not
 * overlap it otherwise); no alignment is asked for.
 *
 * Integers wrap. 16-bit and 8-bit floats are accumulated in float32 and rounded
 * once, to nearest even, at the end of the pass. AVG sums (wrapping, too), then
 * the result is divided by `divisor` if that is > 0: floats before the rounding,
 * integers towards zero. A pass that is not the last one is given 0.
 *
 * Floats:
 *  - If an operand is NaN so is the result, of MIN and MAX too. Every NaN that is
 *    stored is the same: 0x7fc00000, 0x7ff8000000000000, 0x7e00, 0x7fc0, 0x7f
 *    (e4m3), 0x7e (e5m2).
 *  - MIN and MAX take -0 to be less than +0.
 *  - Too large a result is an infinity for the 16-bit and wider types. For both
 *    fp8 types it is the largest finite number, 448 or 57344, an infinite one as
 *    well: what CUDA's conversions do (__NV_SATFINITE). Only MIN and MAX of e5m2
 *    keep an infinity, as their result is always one of the operands.
 *  - Denormals count as what they are, unless the calling thread had its
 *    processor flush them; the rounding mode is taken to be the default one.
 * All instruction sets give the same bits.
 *
 * With nsrc == 1 it is a copy (to both), bit for bit, unless AVG divides by
 * more than 1.
 *
 * Pure; any thread. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/tutti.h"

typedef void (*tti_reduce_fn)(void *dst, void *dst2, const void *const *src, int nsrc, size_t count,
			      int divisor);

enum tti_isa { TTI_ISA_SCALAR, TTI_ISA_AVX2, TTI_ISA_AVX512, TTI_ISA_NEON, TTI_ISA_COUNT };

/* The best kernel of this machine; NULL if type or op is none. */
tti_reduce_fn tti_reduce_get(tutti_type type, tutti_op op);

/* The kernel of one instruction set; NULL: this machine or build does not have it, or there is no
 * version for this pair (tti_reduce_get() then falls back to scalar). */
tti_reduce_fn tti_reduce_get_isa(tutti_type type, tutti_op op, enum tti_isa isa);

const char *tti_isa_name(enum tti_isa isa);

/* Copy for the engine: through the caches in the way that is best on this processor, or, with
 * hint_large, with non-temporal stores, for data that the caches do not hold. */
void tti_copy(void *dst, const void *src, size_t nbytes, int hint_large);

/* Copy for a reader that waits on another core: each cache line is demoted to the cache that cores
 * share as soon as it is written, where the processor can do that (tti_copies_for_reader()); else
 * like memcpy(). */
void tti_copy_for_reader(void *dst, const void *src, size_t nbytes);
bool tti_copies_for_reader(void);

/* How to write to memory that another core has read before and reads next: on some processors past
 * the caches (copy.c). With `way` NULL always so, else unless the reader turns out to be near,
 * above all on this core: some copies are timed in part. Zeroed: not known yet. For one thread. */
struct tti_copy_way {
	uint8_t left; /* so many copies until one is timed */
	bool is_near;
};

void tti_copy_out(struct tti_copy_way *way, void *dst, const void *src, size_t nbytes);
/* Whether so many bytes go past the caches where `way` is NULL. */
bool tti_copies_past(size_t nbytes);
/* Whether code other than a copy may write so many bytes through the caches; false: write them
 * elsewhere and copy them out, which may be timed. */
bool tti_copy_way_through(struct tti_copy_way *way, size_t nbytes);
/* So many bytes were written through the caches in that time. */
void tti_copy_way_note(struct tti_copy_way *way, size_t nbytes, int64_t ns);

#endif
