/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_SPAN_H
#define TTI_UTIL_SPAN_H

/* Spans of memory by their first addresses and lengths in bytes. None wraps around the end of the
 * address space.
 *
 * Owner: none. Threads: any. */

#include <stdbool.h>
#include <stdint.h>

/* Whether nbytes at `at` have all of n bytes at `part`. */
static inline bool tti_span_covers(uint64_t at, uint64_t nbytes, uint64_t part, uint64_t n)
{
	return part >= at && n <= nbytes && part - at <= nbytes - n;
}

/* Whether na bytes at a and nb at b have some in common; neither is empty. */
static inline bool tti_spans_overlap(uint64_t a, uint64_t na, uint64_t b, uint64_t nb)
{
	return a < b + nb && b < a + na;
}

#endif
