/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* Recursive doubling: in round k a rank swaps its sum with the rank whose place
 * differs in bit k; log2 n rounds of the whole vector, so for small ones. Places are
 * those of the ring: the first rounds are among neighbours. Both sides of a swap reduce
 * in the order of ranks (compile.h) and hold the same bits.
 *
 * Any n (Thakur, Rabenseifner and Gropp, IJHPCA 2005): let p be the largest power
 * of two <= n. Of the first 2 (n - p) places the even ones give their input to their
 * odd neighbour, sit out, and get the result from it. The p others are renumbered
 * 0 .. p-1. */

void tti_double_recursively(struct tti_program *prog, const struct tti_ring *ring, int chunk)
{
	const int place = ring->place;
	int pow2 = 1, self;

	while (pow2 * 2 <= ring->n)
		pow2 *= 2;

	const int surplus = ring->n - pow2;
	const bool folds = place < 2 * surplus;

	if (folds && place % 2 == 0) {
		tti_send(prog, chunk, tti_ring_at(ring, place + 1));
		tti_recv(prog, chunk, tti_ring_at(ring, place + 1));
		return;
	}
	self = folds ? place / 2 : place - surplus;
	if (folds)
		tti_recv_reduce(prog, chunk, tti_ring_at(ring, place - 1), false);
	for (int bit = 1; bit < pow2; bit *= 2) {
		const int other = self ^ bit;
		const int peer =
			tti_ring_at(ring, other < surplus ? 2 * other + 1 : other + surplus);

		tti_send(prog, chunk, peer);
		tti_recv_reduce(prog, chunk, peer, 2 * bit == pow2);
	}
	if (folds)
		tti_send(prog, chunk, tti_ring_at(ring, place - 1));
}

void tti_recursive_doubling_all_reduce(struct tti_program *prog)
{
	const struct tti_ring ring = tti_ring_first(prog);

	prog->nchunks = 1;
	tti_double_recursively(prog, &ring, 0);
}
