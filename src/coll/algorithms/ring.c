/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* Rings: chunks travel from rank to rank, n - 1 rounds. Every rank sends and receives
 * (n - 1) / n of the vector, which is the least possible (Patarasuk and Yuan, JPDC
 * 2009), over links to two neighbours only; it pays n - 1 latencies, so it is for large
 * counts.
 *
 * A shape gives the order, and it gives several rings: each carries its part of what
 * every rank owns, all of them at once.
 *
 * In every round a rank sends first, and of the parts one after the other: with one
 * slot per link nobody waits for somebody who waits for him. The parts of a ring, where
 * there are several (struct tti_split), keep its links busy: while one is on its way the
 * others are sent. */

struct rings {
	struct tti_ring ring[TTI_SHAPE_PARTS];
	int parts, each; /* parts in all, and of each ring */
};

static const struct tti_ring *ring_of(const struct rings *rings, int part)
{
	return &rings->ring[part / rings->each];
}

/* The chunk of one part that belongs to the rank at a place. */
static int chunk_at(const struct rings *rings, int part, int place)
{
	return tti_ring_at(ring_of(rings, part), place) * rings->parts + part;
}

static struct rings start(struct tti_program *prog)
{
	struct rings rings = { .each = prog->split.parts };

	rings.parts = tti_rings_of(prog, rings.ring) * rings.each;
	prog->nchunks = prog->n * rings.parts;
	return rings;
}

/* The chunk of place p starts at place p + 1 and gathers contributions until it is
 * complete at place p. */
static void reduce_scatter_rounds(struct tti_program *prog, const struct rings *rings)
{
	const int n = prog->n;

	for (int round = 0; round < n - 1; round++)
		for (int part = 0; part < rings->parts; part++) {
			const struct tti_ring *ring = ring_of(rings, part);
			const int out = tti_wrap(ring->place - 1 - round, n);

			tti_send(prog, chunk_at(rings, part, out),
				 tti_ring_at(ring, ring->place + 1));
			tti_recv_reduce(prog, chunk_at(rings, part, out - 1),
					tti_ring_at(ring, ring->place - 1), round == n - 2);
		}
}

/* The chunk of place p starts there. */
static void all_gather_rounds(struct tti_program *prog, const struct rings *rings)
{
	const int n = prog->n;

	for (int round = 0; round < n - 1; round++)
		for (int part = 0; part < rings->parts; part++) {
			const struct tti_ring *ring = ring_of(rings, part);
			const int out = tti_wrap(ring->place - round, n);

			tti_send(prog, chunk_at(rings, part, out),
				 tti_ring_at(ring, ring->place + 1));
			tti_recv(prog, chunk_at(rings, part, out - 1),
				 tti_ring_at(ring, ring->place - 1));
		}
}

void tti_ring_all_reduce(struct tti_program *prog)
{
	const struct rings rings = start(prog);

	reduce_scatter_rounds(prog, &rings);
	all_gather_rounds(prog, &rings);
}

void tti_ring_reduce_scatter(struct tti_program *prog)
{
	const struct rings rings = start(prog);

	reduce_scatter_rounds(prog, &rings);
}

void tti_ring_all_gather(struct tti_program *prog)
{
	const struct rings rings = start(prog);

	all_gather_rounds(prog, &rings);
}
