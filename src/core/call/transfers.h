/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_TRANSFERS_H
#define TTI_CORE_TRANSFERS_H

/* What one rank has for another alone: sends and receives, and calls whose counts only the two
 * know. A list of them is a program (coll/send_recv.h), kept with others (comm.h).
 *
 * Owner: the communicator. Threads: the executing one's. */

#include "coll/algorithms/send_recv.h"
#include "core/call/counts.h"
#include "engine/engine.h"

/* An all to all of more ranks has no program of its own: its chunks would be too many to be
 * numbered. */
#define TTI_PAIRED_RANKS_MAX 1024

struct tti_transfer {
	struct tti_transfer_step step; /* its chunk is known once it is in a program */
	/* Of a receive into the memory of a send to the same peer, which is before it in the list:
	 * the place of that one. -1: none. */
	int32_t after;
	struct tti_extent extent; /* in bytes from address 0 */
};

/* The list that runs, or did last. */
struct tti_transfers {
	TTI_VEC(struct tti_transfer) list;
	TTI_VEC(struct tti_transfer_step) steps;
};

void tti_transfers_release(struct tti_transfers *transfers);

/* A send or receive of the user's whose data lies at an address; it is not lent. */
void tti_transfer_of(const struct tti_comm *comm, const struct tti_args *args, uintptr_t data,
		     struct tti_transfer *out);

/* Start n sends and receives of the user's at once, each direction of each peer in its order. */
TUTTI_CHECKED tutti_status tti_transfers_start(struct tti_comm *comm, const struct tti_args *args,
					       int n, struct tti_job *job);

/* Start a call by pairs, whose signature is `sign`. */
TUTTI_CHECKED tutti_status tti_pairs_start(struct tti_comm *comm, const struct tti_args *args,
					   uint64_t sign, struct tti_job *job);

/* What a peer sends in place of what is received from it by one of n sends and receives, if a message
 * of `nbytes` with that tag is the whole of it: for errors. */
bool tti_transfers_explain(const struct tti_comm *comm, const struct tti_args *args, int n,
			   int peer, uint64_t tag, size_t nbytes, char *buf, size_t size);

/* "takes 7 elements from rank 3, which sends another number": for errors. */
void tti_pairs_expect(const struct tti_comm *comm, const struct tti_args *args, int peer, char *buf,
		      size_t size);

#endif
