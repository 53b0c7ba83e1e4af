/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_PREPARE_TRANSFERS_H
#define TTI_CORE_PREPARE_TRANSFERS_H

/* Data of one rank for another one alone: sends and receives, and calls whose counts only the two
 * know. A list of transfers is a program (coll/algorithms/send_recv.h), which is kept (programs.h).
 *
 * Owner: the communicator. Threads: the executing one's. */

#include "coll/algorithms/send_recv.h"
#include "core/call/counts.h"
#include "engine/engine.h"

/* An all to all of more ranks is a list of transfers: a program of its own would have more
 * chunks than there are numbers. */
#define TTI_PAIRED_RANKS_MAX 1024

struct tti_transfer {
	struct tti_transfer_step step; /* its chunk is known once it is in a program */
	/* A receive into memory that a send to the same peer reads: where that send is in the list,
	 * which is before it. -1: none. */
	int32_t after;
	struct tti_extent extent; /* in bytes from address 0 */
};

/* The list that runs, or did last. */
struct tti_transfers {
	TTI_VEC(struct tti_transfer) list;
	TTI_VEC(struct tti_transfer_step) steps;
};

void tti_transfers_release(struct tti_transfers *transfers);

/* A send or receive of the user's whose data lies at an address. */
void tti_transfer_of(const struct tti_comm *comm, const struct tti_args *args, uintptr_t data,
		     struct tti_transfer *out);

/* Start n sends and receives of the user's at once, each direction of each peer in its order. */
TUTTI_CHECKED tutti_status tti_transfers_start(struct tti_comm *comm, const struct tti_args *args,
					       int n, struct tti_job *job);

/* Start a call by pairs, whose signature is `sign`. */
TUTTI_CHECKED tutti_status tti_pairs_start(struct tti_comm *comm, const struct tti_args *args,
					   uint64_t sign, struct tti_job *job);

/* For errors: which of n receives does not fit the message that `job` did not expect, and what
 * its peer sends, if that message is all of it. */
bool tti_transfers_explain(const struct tti_comm *comm, const struct tti_args *args, int n,
			   const struct tti_job *job, char *buf, size_t size);

/* "takes 7 elements from rank 3, which sends another number": for errors. */
void tti_pairs_expect(const struct tti_comm *comm, const struct tti_args *args, int peer, char *buf,
		      size_t size);

#endif
