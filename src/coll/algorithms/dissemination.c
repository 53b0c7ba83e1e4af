/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* Dissemination barrier (Hensgen, Finkel and Manber, IJPP 1988): in round k a rank
 * tells rank + 2^k and hears from rank - 2^k, ceil(log2 n) rounds for any n. Whom
 * it has heard of, directly or not, doubles each time; some it hears of twice,
 * which a barrier does not mind. */

void tti_dissemination_barrier(struct tti_program *prog)
{
	const int rank = prog->rank, n = prog->n;

	prog->nchunks = 1;
	for (int distance = 1; distance < n; distance *= 2) {
		tti_send(prog, 0, tti_wrap(rank + distance, n));
		tti_recv_reduce(prog, 0, tti_wrap(rank - distance, n), distance * 2 >= n);
	}
}
