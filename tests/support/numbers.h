/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_NUMBERS_H
#define TESTS_SUPPORT_NUMBERS_H

/* What ranks put into a call, and what a reduction of it has to give, bit by bit, by
 * reference.h: integers are any; floats are drawn so that every subset of the ranks' values has
 * a result without rounding, whatever the operator, and what is left to round is rounded once.
 * So the result is the same in any order, but where the order is part of what is asked for.
 *
 * Element i of a rank's vector is element i % NUMBERS_PERIOD of its tile. */

#include <stddef.h>
#include <stdint.h>

#include "tutti/tutti.h"

#define NUMBERS_RANKS  33 /* at most */
#define NUMBERS_PERIOD 61

/* Operators beyond those of tutti_op. */
#define NUMBERS_REPRODUCIBLE \
	(TUTTI_OP_COUNT + 0) /* a sum of floats that do round, with TUTTI_OP_REPRODUCIBLE  */
#define NUMBERS_PREMUL \
	(TUTTI_OP_COUNT + 1) /* each rank has a scalar of its own                         */
#define NUMBERS_XOR \
	(TUTTI_OP_COUNT + 2) /* the user's, commutes                                      */
#define NUMBERS_FOLD \
	(TUTTI_OP_COUNT + 3) /* the user's: neither commutes nor is associative           */
#define NUMBERS_OPS (TUTTI_OP_COUNT + 4)

struct numbers {
	_Alignas(16) unsigned char scalars[NUMBERS_RANKS][16];
	unsigned char tiles[NUMBERS_RANKS][NUMBERS_PERIOD * 16];
	unsigned char reduced[NUMBERS_PERIOD * 16];
};

/* `op`, one of the above or a tutti_op, where the type has it; else another one. */
int numbers_op_for(tutti_type type, int op);

/* The first `columns` elements of the tiles of n ranks. `op` is one of the above, or a
 * tutti_op. */
void numbers_draw(struct numbers *out, tutti_type type, int op, int n, size_t columns,
		  uint64_t seed);
/* The same with any bits: zeros of both signs, denormals, infinities and NaNs among them, and sums
 * that are rounded at every step. */
void numbers_draw_any(struct numbers *out, tutti_type type, int op, int n, size_t columns,
		      uint64_t seed);
/* What comes out of the first kind, for calls that reduce. */
void numbers_reduce(struct numbers *numbers, tutti_type type, int op, int n, size_t columns);

/* Elements first, first + 1 ... of a vector with this tile. */
void numbers_lay(void *out, const unsigned char *tile, size_t first, size_t count, size_t size);

/* The operator for a call, made for this rank if need be; destroyed with numbers_unmake_op(). */
TUTTI_CHECKED tutti_status numbers_make_op(const struct numbers *numbers, tutti_type type, int op,
					   int rank, tutti_comm_t comm, tutti_op *out);
TUTTI_CHECKED tutti_status numbers_unmake_op(tutti_op op, tutti_comm_t comm);

/* The function of an operator that is the user's, NULL for others. */
tutti_op_fn numbers_user_op(int op);

/* "sum", "reproducible sum", "fold" ... */
const char *numbers_op_name(int op);

/* Another random number for every value. */
uint64_t numbers_mix(uint64_t value);

#endif
