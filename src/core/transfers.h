/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_TRANSFERS_H
#define TTI_CORE_TRANSFERS_H

/* What one rank has for another alone: sends and receives, and calls whose counts only the two
 * know. A list of them is a program (coll/send_recv.h), kept with others (comm.h).
 *
 * Owner: the communicator. Threads: the executing one's. */

#include "coll/send_recv.h"
#include "core/counts.h"
#include "engine/engine.h"

/* An all to all of more ranks has no program of its own: its chunks would be too many to be
 * numbered. */
#define TTI_PAIRED_RANKS_MAX 1024

/* One of a list. */
struct tti_transfer {
	struct tti_transfer_step step; /* its chunk is found by tti_transfers_start() */
	char *data;                    /* read only if it is a send                   */
	const char *from;              /* of a copy                                   */
	size_t nbytes;
	uint64_t tag;
	/* Of a receive into the memory of a send to the same peer, which is before it in the list:
	 * the place of that one. -1: none. */
	int32_t after;
	/* Of a send: where the data lies, for the peer to copy it from there; zeroed: it goes by
	 * messages. Not of one that a receive waits for as above: two such would wait for each
	 * other. */
	struct tti_memory_name name;
};

/* The list that runs, or did last, and by chunk what the engine is to know of it. */
struct tti_transfers {
	struct tti_transfer *list;
	struct tti_transfer_step *steps;
	struct tti_extent *extents;
	uint64_t *tags;
	struct tti_memory_name *lent;
	int32_t room; /* of each */
};

void tti_transfers_release(struct tti_transfers *transfers);

/* A send or receive of the user's whose data lies at an address. */
struct tti_transfer tti_transfer_of(const struct tti_args *args, uintptr_t data);
/* Where its chunk lies, counted in bytes from address 0, and how it is cut. */
struct tti_extent tti_transfer_extent(const struct tti_comm *comm,
				      const struct tti_transfer *transfer);

/* Room for a list of n, to be filled. */
TUTTI_CHECKED tutti_status tti_transfers_list(struct tti_comm *comm, int32_t n,
					      struct tti_transfer **out);
/* Find the ways of the sends among n of a list; of those that receives wait for: by messages. */
TUTTI_CHECKED tutti_status tti_transfers_offer(struct tti_comm *comm, struct tti_transfer *list,
					       int32_t n, bool in_place);
/* Start the first n of the list at once, each direction of each peer in its order. */
TUTTI_CHECKED tutti_status tti_transfers_start(struct tti_comm *comm, int32_t n,
					       struct tti_job *job);

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
