/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_COLL_H
#define TOOL_COLL_H

/* Properties of each collective, as the public headers describe it. */

#include <stdbool.h>

#include "tutti/types.h"

enum coll_fact {
	COLL_ROOTED = 1,   /* the call names a root                                          */
	COLL_REDUCES = 2,  /* the call names an operator                                     */
	COLL_GATHERS = 4,  /* a rank sends one row; all rows are received, by all or the root */
	COLL_SCATTERS = 8, /* the other way round                                            */
	COLL_PAIRS = 16,   /* a row for each rank is sent, and received                      */
	COLL_COUNTS = 32,  /* rows are as long as the call's counts say                      */

	COLL_SENDS_ROWS = COLL_SCATTERS | COLL_PAIRS,
	COLL_GETS_ROWS = COLL_GATHERS | COLL_PAIRS,
	COLL_HAS_ROWS = COLL_SENDS_ROWS | COLL_GETS_ROWS,
};

/* Whether one of some facts is true of it. */
bool coll_is(tutti_collective coll, unsigned facts);

/* The name of the i-th collective, NULL behind the last; self is nothing. */
const char *coll_name(const void *self, int i);
/* Whether a collective has an algorithm. False: it has not, and the error lists those there are. */
bool coll_find_algorithm(tutti_collective coll, const char *name);

#endif
