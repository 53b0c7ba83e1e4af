/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* Binomial trees: ceil(log2 n) hops of the whole vector, for small vectors. Ranks are counted
 * from the root on, in the order of the ring. The children of position v are v + 1, v + 2, v + 4
 * and so on, below v + (lowest set bit of v). The subtree of a child is the run of positions up to
 * the next child, so neighbours stay together. */

/* First power of two that is no distance to a child: the distance to the parent,
 * or, at the root, the first one >= n. */
static int reach(int position, int n)
{
	int distance = 1;

	while (distance < n && !(position & distance))
		distance *= 2;
	return distance;
}

void tti_binomial_broadcast(struct tti_program *prog)
{
	const struct tti_ring ring = tti_ring_first(prog);
	const int n = prog->n, root = tti_ring_place(&ring, prog->root);
	const int position = tti_wrap(ring.place - root, n);
	const int end = reach(position, n);

	prog->nchunks = 1;
	if (position)
		tti_recv(prog, 0, tti_ring_at(&ring, ring.place - end));
	/* The largest subtree first: it takes longest. */
	for (int distance = end / 2; distance; distance /= 2)
		if (position + distance < n)
			tti_send(prog, 0, tti_ring_at(&ring, ring.place + distance));
}

void tti_binomial_reduce(struct tti_program *prog)
{
	const struct tti_ring ring = tti_ring_first(prog);
	const int n = prog->n, root = tti_ring_place(&ring, prog->root);
	const int position = tti_wrap(ring.place - root, n);
	const int end = reach(position, n);

	prog->nchunks = 1;
	for (int distance = 1; distance < end && position + distance < n; distance *= 2) {
		const bool last = distance * 2 >= end || position + distance * 2 >= n;

		tti_recv_reduce(prog, 0, tti_ring_at(&ring, ring.place + distance),
				last && !position);
	}
	if (position)
		tti_send(prog, 0, tti_ring_at(&ring, ring.place - end));
}
