/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms.h"

/* Recursive doubling: in round k a rank swaps its sum with the rank whose number
 * differs in bit k; log2 n rounds of the whole vector, so for small ones. Both
 * sides of a swap reduce in the order of ranks (compile.h) and hold the same bits.
 *
 * Any n (Thakur, Rabenseifner and Gropp, IJHPCA 2005): let p be the largest power
 * of two <= n. Of the first 2 (n - p) ranks the even ones give their input to their
 * odd neighbour, sit out, and get the result from it. The p others are renumbered
 * 0 .. p-1. */

void tti_recursive_doubling_all_reduce(struct tti_program *prog)
{
	const int rank = prog->rank, n = prog->n;
	int pow2 = 1, self;

	prog->nchunks = 1;
	while (pow2 * 2 <= n)
		pow2 *= 2;

	const int surplus = n - pow2;
	const bool folds = rank < 2 * surplus;

	if (folds && rank % 2 == 0) {
		tti_send(prog, 0, rank + 1);
		tti_recv(prog, 0, rank + 1);
		return;
	}
	self = folds ? rank / 2 : rank - surplus;
	if (folds)
		tti_recv_reduce(prog, 0, rank - 1, false);
	for (int bit = 1; bit < pow2; bit *= 2) {
		const int other = self ^ bit;
		const int peer = other < surplus ? 2 * other + 1 : other + surplus;

		tti_send(prog, 0, peer);
		tti_recv_reduce(prog, 0, peer, 2 * bit == pow2);
	}
	if (folds)
		tti_send(prog, 0, rank - 1);
}
