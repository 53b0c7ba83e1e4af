/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* Chains: along a ring from rank to rank, block after block, from the root or to it.
 * Every link carries the vector once and all work at the same time: for large vectors,
 * once there are many more blocks than ranks. Each of several rings carries its part. */

void tti_chain_broadcast(struct tti_program *prog)
{
	struct tti_ring rings[TTI_SHAPE_PARTS];
	const int n = prog->n;

	prog->nchunks = tti_rings_of(prog, rings);
	for (int part = 0; part < prog->nchunks; part++) {
		const struct tti_ring *ring = &rings[part];
		const int position = tti_wrap(ring->place - tti_ring_place(ring, prog->root), n);

		if (position > 0)
			tti_recv(prog, part, tti_ring_at(ring, ring->place - 1));
		if (position < n - 1)
			tti_send(prog, part, tti_ring_at(ring, ring->place + 1));
	}
}

void tti_chain_reduce(struct tti_program *prog)
{
	struct tti_ring rings[TTI_SHAPE_PARTS];
	const int n = prog->n;

	prog->nchunks = tti_rings_of(prog, rings);
	for (int part = 0; part < prog->nchunks; part++) {
		const struct tti_ring *ring = &rings[part];
		const int position =
			tti_wrap(ring->place - tti_ring_place(ring, prog->root) - 1, n);

		if (position > 0)
			tti_recv_reduce(prog, part, tti_ring_at(ring, ring->place - 1),
					position == n - 1);
		if (position < n - 1)
			tti_send(prog, part, tti_ring_at(ring, ring->place + 1));
	}
}
