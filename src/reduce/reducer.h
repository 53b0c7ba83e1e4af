/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_REDUCE_REDUCER_H
#define TTI_REDUCE_REDUCER_H

/* How one call reduces: by a kernel, by a kernel after the ranks' inputs were multiplied, or
 * by the user's operator. Whichever it is, sources are combined from the left in the order of
 * src[], and nothing else has an influence on the result.
 *
 * What is no kernel alone goes block by block through buffers that stay in the first cache.
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

/* dst (and dst2, unless NULL) from src[0] to src[nsrc - 1], which are as for a kernel
 * (reduce.h); the array itself is used up. src[input_at] is a rank's input as the user gave
 * it, -1: none is. `final`: the result is complete. */
void tti_reducer_run(const struct tti_reducer *reducer, void *dst, void *dst2, const void **src,
		     int nsrc, int input_at, size_t count, bool final);

#endif
