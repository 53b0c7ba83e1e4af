/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_SEND_RECV_H
#define TTI_COLL_SEND_RECV_H

/* Programs of sends and receives that only their two ranks know of: a group of them, or a call
 * whose counts are known by pairs of ranks alone. Each rank numbers chunks for itself: the
 * k-th send to a peer is that peer's k-th receive from here, whatever their numbers.
 *
 * Pure; any thread. */

#include "coll/program.h"

/* By messages (SEND and RECV), or in memory: the sender tells the receiver where the data
 * lies; the receiver copies it and tells the sender so. Each transfer has its own two
 * notifies. Of two transfers in one direction between the same ranks, the second begins when
 * the first is over:
 *
 *     sender    notify ........................ wait
 *     receiver  ....... wait    get    notify
 *
 * A program in memory is one order of all transfers that does not deadlock, for texts and
 * proofs; there a transfer has one chunk at both its ranks. The engine runs the same steps of
 * each transfer, in any order of transfers, and by messages those whose sender says so
 * (engine/rndv.h). */

enum tti_transfer_kind { TTI_TRANSFER_SEND, TTI_TRANSFER_RECV, TTI_TRANSFER_COPY };

/* A receive into the memory of a send has that send's chunk, and comes after it in the list. */
struct tti_transfer_step {
	enum tti_transfer_kind kind;
	int32_t peer; /* may be the own rank; a copy's is */
	int32_t chunk;
};

/* The program of `rank` among `nranks`. Transfers in one direction with one peer keep the order
 * of the list. */
TUTTI_CHECKED tutti_status tti_send_recv_program(const struct tti_transfer_step *step, int32_t n,
						 int32_t nchunks, int rank, int nranks,
						 struct tti_program *out);
TUTTI_CHECKED tutti_status tti_send_recv_in_memory(const struct tti_transfer_step *step, int32_t n,
						   int32_t nchunks, int rank, int nranks,
						   struct tti_program *out);

#endif
