/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* Exchange: everybody gives everything to all and reduces what all gave, in the
 * order of ranks, so all get the same bits. One hop and no second phase: the
 * fastest for a few bytes between ranks that share memory, where the fan-out is one
 * write; n - 1 times the bytes of the others. */

void tti_exchange_all_reduce(struct tti_program *prog)
{
	prog->nchunks = 1;
	tti_send_to_others(prog, 0);
	tti_reduce_from_others(prog, 0);
}

void tti_exchange_barrier(struct tti_program *prog)
{
	tti_exchange_all_reduce(prog);
}
