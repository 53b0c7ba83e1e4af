/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_TUNE_RANGE_H
#define TOOL_TUNE_RANGE_H

/* For which sizes a line "choose" of a tune file stands.
 *
 * Calls look for such a line by their size rounded up to a power of two. Measured are 8, 64, 512, ...
 * bytes, or somewhat less where that many cannot be had alike from all ranks, 60 of 3 ranks with
 * rows of float32; such a call looks for the 64, too. */

#include <stdbool.h>
#include <stddef.h>

struct tune_range {
	size_t from, upto;
};

/* The range of a measurement of nbytes. `before` is the range of the last such line if that names the same
 * algorithm, else NULL. If that was measured at the previous size, the sizes between belong to this range. */
static inline struct tune_range tune_range_of(size_t nbytes, const struct tune_range *before)
{
	struct tune_range range = { 1, 1 };

	while (range.upto < nbytes)
		range.upto *= 2;
	range.from = range.upto / 2 + 1;
	if (before && before->upto == range.upto / 8)
		range.from = before->upto + 1;
	return range;
}

#endif
