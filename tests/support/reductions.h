/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_REDUCTIONS_H
#define TESTS_SUPPORT_REDUCTIONS_H

/* Reductions of which every bit is known: inputs are drawn, values of very different sizes
 * among floats, and combined one after the other in the order of ranks. */

#include <stdbool.h>
#include <stdint.h>

#include "tutti/inspect.h"

struct reduction {
	tutti_collective coll; /* one that reduces */
	tutti_type type;
	tutti_op op;
	size_t count;
	int root;
	bool in_place;
	bool quiet; /* wrong bits are not told */
	uint64_t seed;
	/* out[i] from the inputs of all n ranks, i < count. */
	void (*expect)(const struct reduction *r, void *out, const void *const *inputs, int n,
		       size_t count);
	const void *scalars; /* [n], of expect_premul() */
};

/* By the kernels, from the left, in one pass. */
void expect_kernel(const struct reduction *r, void *out, const void *const *inputs, int n,
		   size_t count);
/* Each input times its rank's scalar, then the sum. */
void expect_premul(const struct reduction *r, void *out, const void *const *inputs, int n,
		   size_t count);
/* Call it with buffers of its own. false: it failed, or a bit is wrong; said on stderr. */
bool reduction_run(const struct reduction *r, tutti_comm_t comm, int rank, int n,
		   tutti_stream_t stream);

#endif
