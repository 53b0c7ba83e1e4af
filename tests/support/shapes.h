/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_SHAPES_H
#define TESTS_SUPPORT_SHAPES_H

/* Shapes that a plan might give, or a stranger one. */

#include "coll/shape.h"

enum shape_kind {
	SHAPE_GROUPS, /* groups of any sizes, and what tti_shape_of_groups() makes of them */
	SHAPE_EVEN,   /* groups of one size, or nearly                                   */
	SHAPE_ONES,   /* every rank a group                                             */
	SHAPE_ANY,    /* rings in any order, any trees, any shares, any groups            */
};
#define SHAPE_KINDS 4

/* The same for the same seed. */
struct tti_shape *shape_draw(int n, enum shape_kind kind, uint64_t seed);

#endif
