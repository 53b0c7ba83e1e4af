/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* Flat: the root talks to everybody. Where ranks share memory a broadcast is one
 * write that all read, and a reduction one pass over all slots. */

void tti_flat_broadcast(struct tti_program *prog)
{
	prog->nchunks = 1;
	if (prog->rank == prog->root)
		tti_send_to_others(prog, 0);
	else
		tti_recv(prog, 0, prog->root);
}

void tti_flat_reduce(struct tti_program *prog)
{
	prog->nchunks = 1;
	if (prog->rank == prog->root)
		tti_reduce_from_others(prog, 0);
	else
		tti_send(prog, 0, prog->root);
}
