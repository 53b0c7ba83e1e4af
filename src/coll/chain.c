/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms.h"

/* Chains: from rank to rank, block after block. Every link carries the vector once
 * and all work at the same time: for large vectors, once there are many more
 * blocks than ranks. */

void tti_chain_broadcast(struct tti_program *prog)
{
	const int n = prog->n, position = tti_wrap(prog->rank - prog->root, n);

	prog->nchunks = 1;
	if (position > 0)
		tti_recv(prog, 0, tti_wrap(prog->rank - 1, n));
	if (position < n - 1)
		tti_send(prog, 0, tti_wrap(prog->rank + 1, n));
}

void tti_chain_reduce(struct tti_program *prog)
{
	const int n = prog->n, position = tti_wrap(prog->rank - prog->root, n);

	prog->nchunks = 1;
	if (position < n - 1)
		tti_recv_reduce(prog, 0, tti_wrap(prog->rank + 1, n), position == 0);
	if (position > 0)
		tti_send(prog, 0, tti_wrap(prog->rank - 1, n));
}
