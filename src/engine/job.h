/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_JOB_H
#define TTI_ENGINE_JOB_H

/* The kinds of job and what they share. Internal to the engine. */

#include <string.h>

#include "engine/bound.h"
#include "engine/engine.h"
#include "reduce/reduce.h"

/* All of tti_job_program() but what only polling needs. */
TUTTI_CHECKED tutti_status tti_program_prepare(struct tti_job *job, struct tti_engine *engine,
					       struct tti_bound *bound,
					       const struct tti_layout *layout,
					       const struct tti_reducer *reducer,
					       size_t slice_bytes, uint64_t tag);
bool tti_program_poll(struct tti_job *job);
/* The peer that the oldest unfinished block waits for, -1: none. */
int tti_program_blame(const struct tti_job *job);

bool tti_transfers_poll(struct tti_job *job);
int tti_transfers_blame(const struct tti_job *job);

bool tti_direct_poll(struct tti_job *job);

/* Room for a post in post->slot, to be filled: one slot that all links share where that
 * pays, else that of the first link, from which the others get copies. False: not now;
 * reserving again gives the same room. */
bool tti_post_reserve(struct tti_post *post, size_t nbytes);

/* A link's slot from memory. */
static inline void tti_slot_fill(const struct tti_link *link, struct tti_copy_way *way, void *slot,
				 const void *data, size_t nbytes)
{
	if (link->ops->shares_slots)
		tti_copy_out(way, slot, data, nbytes);
	else
		memcpy(slot, data, nbytes);
}

/* One message from memory; false: not now. What is nothing may come from nowhere. */
bool tti_link_send(struct tti_link *link, const void *data, size_t nbytes, uint64_t tag);

/* Bytes of each message of a transfer of nbytes with a peer, the last one may have fewer: both
 * sides compute it. Few enough for one to be read while others are written; many enough for
 * a message's own cost to count little. */
size_t tti_transfer_piece(const struct tti_engine *engine, int peer, size_t nbytes);

/* The next message of such a transfer; false: not now. */
bool tti_link_send_piece(struct tti_link *link, const struct tti_port *port, const void *data,
			 size_t nbytes, size_t total, uint64_t tag);

/* Send it: post->slot is filled from `data` unless it is there already. */
void tti_post_commit(struct tti_post *post, const void *data, size_t nbytes, uint64_t tag);

#endif
