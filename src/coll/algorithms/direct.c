/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* Direct: rank p owns chunk p; everybody talks to everybody, one hop. As few bytes
 * as a ring, 1 latency instead of n - 1, but n - 1 links per rank: for ranks that
 * share memory, where the n-ary reduction reads all slots in one pass and the
 * fan-out writes one slot that all others read. */

void tti_send_to_others(struct tti_program *prog, int chunk)
{
	for (int offset = 1; offset < prog->n; offset++)
		tti_send(prog, chunk, tti_wrap(prog->rank + offset, prog->n));
}

void tti_reduce_from_others(struct tti_program *prog, int chunk)
{
	const int last = prog->rank == prog->n - 1 ? prog->n - 2 : prog->n - 1;

	for (int peer = 0; peer < prog->n; peer++)
		if (peer != prog->rank)
			tti_recv_reduce(prog, chunk, peer, peer == last);
}

/* Everybody sends every owner its chunk; owners reduce, in the order of ranks. */
static void scatter_and_reduce(struct tti_program *prog)
{
	for (int offset = 1; offset < prog->n; offset++) {
		const int owner = tti_wrap(prog->rank + offset, prog->n);

		tti_send(prog, owner, owner);
	}
	tti_reduce_from_others(prog, prog->rank);
}

/* Owners send their chunk to all. */
static void gather(struct tti_program *prog)
{
	tti_send_to_others(prog, prog->rank);
	for (int offset = 1; offset < prog->n; offset++) {
		const int owner = tti_wrap(prog->rank - offset, prog->n);

		tti_recv(prog, owner, owner);
	}
}

void tti_direct_all_reduce(struct tti_program *prog)
{
	prog->nchunks = prog->n;
	scatter_and_reduce(prog);
	gather(prog);
}

void tti_direct_reduce_scatter(struct tti_program *prog)
{
	prog->nchunks = prog->n;
	scatter_and_reduce(prog);
}

void tti_direct_all_gather(struct tti_program *prog)
{
	prog->nchunks = prog->n;
	gather(prog);
}
