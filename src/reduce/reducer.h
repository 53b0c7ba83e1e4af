/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_REDUCE_REDUCER_H
#define TTI_REDUCE_REDUCER_H

/* How one call reduces: with a kernel, with a kernel after the inputs of the ranks were multiplied,
 * or with an operator of the user. Sources are combined from the left in the order of src[], and
 * nothing else influences the result. All but a kernel alone works block by block in buffers that
 * stay in the first cache.
 *
 * Owner: a value; scalars are borrowed. Threads: any. */

#include <stdbool.h>

#include "reduce/reduce.h"

#define TTI_REDUCER_BLOCK 2048

/* An element, over and over. */
struct tti_scalars {
	_Alignas(64) unsigned char bytes[TTI_REDUCER_BLOCK];
};

struct tti_reducer {
	tti_reduce_fn fn; /* NULL: the user's */
	int divisor;      /* of the pass that completes the result */
	tutti_type type;
	const struct tti_scalars
		*scalars; /* inputs are multiplied by them; NULL: taken as they are */
	tutti_op_fn user;
	void *arg;
};

/* One of TUTTI_OP_MAP, among n ranks; the type has it. */
struct tti_reducer tti_reducer_of(tutti_type type, tutti_op op, int n);

/* `scalar` is one element, not necessarily aligned. */
void tti_scalars_fill(struct tti_scalars *out, const void *scalar, tutti_type type);

/* Reduce src[0] .. src[nsrc - 1] to dst (and to dst2, unless NULL), as a kernel does (reduce.h).
 * The array src is overwritten. src[input_at] is the input of a rank as the user gave it, -1: none
 * is. `final`: the result is complete. */
void tti_reducer_run(const struct tti_reducer *reducer, void *dst, void *dst2, const void **src,
		     int nsrc, int input_at, size_t count, bool final);

#endif
