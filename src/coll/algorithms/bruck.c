/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* Bruck's all-gather (Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997):
 * ceil(log2 n) rounds for any n. Before the round of distance d a rank holds the d
 * chunks from its own on; it sends them to rank - d and gets the next d from
 * rank + d. Chunks have names here, so nothing is rotated at the end.
 *
 * Sends and receives of a round alternate: d sends in a row would deadlock with
 * fewer than d slots. */

void tti_bruck_all_gather(struct tti_program *prog)
{
	const int rank = prog->rank, n = prog->n;

	prog->nchunks = n;
	for (int distance = 1; distance < n; distance *= 2) {
		const int count = distance < n - distance ? distance : n - distance;

		for (int i = 0; i < count; i++) {
			tti_send(prog, tti_wrap(rank + i, n), tti_wrap(rank - distance, n));
			tti_recv(prog, tti_wrap(rank + distance + i, n),
				 tti_wrap(rank + distance, n));
		}
	}
}
