/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_PAIRS_H
#define TTI_CORE_PAIRS_H

/* Calls that are a transfer for each pair of ranks, without a program: those whose counts
 * only the two know, and an all to all in place, where what is sent to a rank must be out
 * before what comes from it is written.
 *
 * Owner: the communicator. Threads: the executing one's. */

#include "core/counts.h"
#include "engine/engine.h"

/* An all to all of more ranks has no program: its chunks would be too many to be numbered. */
#define TTI_PAIRED_RANKS_MAX 1024

struct tti_pairs {
	struct tti_transfer *list; /* room for one each way with every other rank */
	int32_t *heads;
	void *spare; /* what an all to all in place sends, where programs need it apart */
	size_t spare_bytes;
};

void tti_pairs_release(struct tti_pairs *pairs);

/* Start a call. `sign` is its signature; messages have message_bytes, 0: as many as fit. The
 * transfers of an all to all are the same messages as those of its program "direct". */
TUTTI_CHECKED tutti_status tti_pairs_start(struct tti_comm *comm, const struct tti_args *args,
					   uint64_t sign, size_t message_bytes,
					   struct tti_job *job);

/* What this rank has for itself; when all else is done. */
void tti_pairs_finish(const struct tti_comm *comm, const struct tti_args *args);

/* "takes 7 elements from rank 3, which sends another number": for errors. */
void tti_pairs_expect(const struct tti_comm *comm, const struct tti_args *args, int peer, char *buf,
		      size_t size);

/* A copy of what an all to all sends. */
TUTTI_CHECKED tutti_status tti_pairs_set_apart(struct tti_comm *comm, const struct tti_args *args,
					       const void **out);

#endif
