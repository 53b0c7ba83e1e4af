/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_ROWS_H
#define TESTS_SUPPORT_ROWS_H

/* Tables of calls: a row is a product of counts, roots and ways to call, on several numbers of
 * ranks. */

#include "support/calls.h"

#define ROW_MOST    20
#define ROW_END     (-1) /* of a list */
/* Types and operators one after the other, so that over the row each is met. */
#define ROW_IN_TURN (-1)

enum row_roots { ROW_ROOT_0, ROW_ROOTS_0_1, ROW_EVERY_ROOT };

struct row {
	const char *what;
	tutti_collective coll;
	int ranks[ROW_MOST]; /* none: any */
	int counts[ROW_MOST];
	int type, op;
	/* Of calls whose ranks have the same counts: who has the least. */
	enum row_roots roots;
	enum call_spread spread;
	bool out_of_place, in_place; /* one of them at least */
	bool plans;                  /* persistent calls, too */
	const char *algo;            /* NULL: what is chosen  */
};

/* Whether a row is for so many ranks and names this algorithm; both may be NULL. */
bool row_is_for(const struct row *row, int n, const char *algo);

/* All calls of a row; false: one failed, and so do others on its communicator. */
bool row_run(const struct row *row, struct caller *caller);

/* The rows for the caller's ranks and this algorithm. */
void rows_run(const struct row *rows, size_t nrows, const char *algo, struct caller *caller);

#endif
