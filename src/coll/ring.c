/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms.h"

/* Rings: chunks travel from rank to rank + 1, n - 1 rounds. Every rank sends and
 * receives (n - 1) / n of the vector, which is the least possible (Patarasuk and
 * Yuan, JPDC 2009), over links to two neighbours only; it pays n - 1 latencies, so
 * it is for large counts.
 *
 * In every round a rank sends first: with one slot per link nobody waits for
 * somebody who waits for him. */

/* Chunk c starts at rank c + 1 and gathers contributions until it is complete at
 * rank c. */
static void reduce_scatter_rounds(struct tti_program *prog)
{
	const int rank = prog->rank, n = prog->n;

	for (int round = 0; round < n - 1; round++) {
		tti_send(prog, tti_wrap(rank - 1 - round, n), tti_wrap(rank + 1, n));
		tti_recv_reduce(prog, tti_wrap(rank - 2 - round, n), tti_wrap(rank - 1, n),
				round == n - 2);
	}
}

/* Chunk c starts at rank c. */
static void all_gather_rounds(struct tti_program *prog)
{
	const int rank = prog->rank, n = prog->n;

	for (int round = 0; round < n - 1; round++) {
		tti_send(prog, tti_wrap(rank - round, n), tti_wrap(rank + 1, n));
		tti_recv(prog, tti_wrap(rank - 1 - round, n), tti_wrap(rank - 1, n));
	}
}

void tti_ring_all_reduce(struct tti_program *prog)
{
	prog->nchunks = prog->n;
	reduce_scatter_rounds(prog);
	all_gather_rounds(prog);
}

void tti_ring_reduce_scatter(struct tti_program *prog)
{
	prog->nchunks = prog->n;
	reduce_scatter_rounds(prog);
}

void tti_ring_all_gather(struct tti_program *prog)
{
	prog->nchunks = prog->n;
	all_gather_rounds(prog);
}
