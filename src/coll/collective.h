/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_COLLECTIVE_H
#define TTI_COLL_COLLECTIVE_H

/* The properties of each collective, in one table, so that a new collective is one row. The name is
 * tutti_collective_name().
 *
 * Threads: any; the table is constant. */

#include <stdbool.h>
#include <stddef.h>

#include "tutti/types.h"

/* How the data of a call is divided. */
enum tti_row_kind {
	TTI_ROWS_NONE,  /* one vector, of any number of chunks         */
	TTI_ROWS_RANKS, /* a row for each rank, `parts` chunks each    */
	TTI_ROWS_PAIRS, /* a row for each pair of ranks, likewise      */
};

/* Which ranks have a chunk as their input, or must have it as their output. */
enum tti_holder {
	TTI_HOLDER_ALL,
	TTI_HOLDER_ROOT,
	TTI_HOLDER_OWNER,  /* the rank that the chunk's row belongs to                      */
	TTI_HOLDER_PAIR,   /* input: the first rank of the chunk's pair; output: the second */
	TTI_HOLDER_STATED, /* the program says it for each chunk (program.h)                */
};

struct tti_collective {
	enum tti_row_kind rows;
	enum tti_holder input, output;
	bool reduces;    /* values of several ranks become one                           */
	bool takes_op;   /* the call names the operator                                  */
	bool has_counts; /* the call has a count for each rank                           */
	bool by_pairs;   /* ranks cannot know each other's counts: each pair of ranks has a
			  * transfer in place of a program                               */
	/* The collective whose programs run it: one with counts that all ranks know has no
	 * programs of its own. */
	tutti_collective program;
};

/* For a value that is no collective: the properties of a vector that all ranks have. */
const struct tti_collective *tti_collective_get(tutti_collective coll);

/* Whether the call names a root. */
bool tti_collective_is_rooted(tutti_collective coll);
bool tti_collective_reduces(tutti_collective coll);
bool tti_collective_takes_op(tutti_collective coll);
bool tti_collective_is_by_rank(tutti_collective coll);
bool tti_collective_is_by_pair(tutti_collective coll);

/* Whether a rank (the root, if there is one) sends, or gets, a row for each rank, of as many
 * elements as the call's count says. */
bool tti_collective_sends_rows(tutti_collective coll);
bool tti_collective_gets_rows(tutti_collective coll);

/* Whether the calls of a collective have a count for each rank. */
bool tti_has_counts(tutti_collective coll);

/* Whether ranks cannot know each other's counts, so that each pair has a transfer of its own. */
bool tti_is_by_pairs(tutti_collective coll);

/* In place: where the receive buffer begins, counted from the send buffer, in bytes (modulo
 * the size of memory). The rank's own row lies among all rows, `own` bytes after the first one;
 * where there are no rows, both buffers are one. This matters only to ranks that have both
 * buffers: in a gather or scatter, the root. A handoff is in place where both ranges lie at their
 * places in one vector, which this function does not say. */
size_t tti_collective_in_place(tutti_collective coll, size_t own);

#endif
