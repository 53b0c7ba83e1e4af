/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_HANDOFF_SIDES_H
#define TTI_CORE_HANDOFF_SIDES_H

/* The sides of a handoff: a check, and a copy for a call that may be queued.
 *
 * Owner: counted; tti_sides_drop(). Threads: any may take and drop; else read only. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tutti/tutti.h"

struct tti_args;

#define TTI_SIDES_TEXT 72 /* what an error has room for */

struct tti_sides {
	_Atomic int users;
	tutti_side from, to;
	uint64_t hash; /* of ranks, their order, and who holds parts       */
	int ranks[];
};

/* TUTTI_EINVAL: a side is NULL, empty, or has a rank that is none of n, or one twice. */
TUTTI_CHECKED tutti_status tti_sides_check(const tutti_side *from, const tutti_side *to, int n);

/* The sides of a checked call become a copy, and its root their hash. */
TUTTI_CHECKED tutti_status tti_sides_keep(struct tti_args *args);
/* NULL is fine, here and there. */
struct tti_sides *tti_sides_take(struct tti_sides *sides);
void tti_sides_drop(struct tti_sides *sides);

/* "from 0-3 to parts of 4-7"; shortened where they are many, with a hash of all. NULL: "". */
void tti_sides_format(const struct tti_sides *sides, char *buf, size_t size);

bool tti_sides_equal(const struct tti_sides *a, const struct tti_sides *b);

/* Which elements of a vector a rank has on a side: none if it is not on it. */
void tti_side_range(const tutti_side *side, int rank, size_t count, size_t *first,
		    size_t *range_count);

#endif
