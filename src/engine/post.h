/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_POST_H
#define TTI_ENGINE_POST_H

/* Sending what an operation sends: one message to one link, or to several at once. Internal to the
 * engine. */

#include <string.h>

#include "engine/executable.h"
#include "reduce/reduce.h"

bool tti_post_reserve_all(struct tti_post *post, size_t nbytes, size_t whole);
void tti_post_commit_all(const struct tti_post *post, size_t nbytes, uint64_t tag);

/* Room for a post in post->slot, to be filled: one slot that all links share where that
 * pays, else that of the first link, from which the others get copies. False: not now;
 * reserving again gives the same room. `whole`: it is a piece of so many bytes. Inline, as most
 * are of one link. */
static inline bool tti_post_reserve(struct tti_post *post, size_t nbytes, size_t whole)
{
	struct tti_link *const link = post->links[0];

	if (post->n > 1)
		return tti_post_reserve_all(post, nbytes, whole);
	post->slot = link->ops->reserve(link, nbytes, whole);
	return post->slot != NULL;
}

/* Up to here there is but one way to write a slot. */
#define TTI_LINE_BYTES 64

/* Whether a slot that was reserved is filled for a reader that waits: what fits a line is not, and
 * what is long is read while it is written. */
static inline bool tti_slot_is_awaited(const struct tti_link *link, size_t nbytes)
{
	return link->is_awaited && nbytes > TTI_LINE_BYTES && nbytes <= TTI_AWAITED_BYTES;
}

/* A link's slot from memory. */
static inline void tti_slot_fill(const struct tti_link *link, struct tti_copy_way *way, void *slot,
				 const void *data, size_t nbytes)
{
	if (tti_slot_is_awaited(link, nbytes))
		tti_copy_for_reader(slot, data, nbytes);
	else if (link->ops->shares_slots)
		tti_copy_out(way, slot, data, nbytes);
	else
		memcpy(slot, data, nbytes);
}

/* Send it: post->slot is filled from `data` unless it is there already. */
static inline void tti_post_commit(const struct tti_post *post, const void *data, size_t nbytes,
				   uint64_t tag)
{
	struct tti_link *const link = post->links[0];

	if (nbytes > 0 && post->slot != data)
		tti_slot_fill(link, post->way, post->slot, data, nbytes);
	if (post->n > 1)
		tti_post_commit_all(post, nbytes, tag);
	else
		link->ops->commit(link, nbytes, tag);
}

#endif
