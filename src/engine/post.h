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

/* Reserve post->slot: one slot that all links share where that pays, else the slot of the first
 * link, from which the others get copies. False: not now; reserving again gives the same room.
 * `whole`: see tti_link_ops.reserve. Inline, as most posts are to one link. */
static inline bool tti_post_reserve(struct tti_post *post, size_t nbytes, size_t whole)
{
	struct tti_link *const link = post->links[0];

	if (post->n > 1)
		return tti_post_reserve_all(post, nbytes, whole);
	post->slot = link->ops->reserve(link, nbytes, whole);
	return post->slot != NULL;
}

/* Up to here there is only one way to write a slot. */
#define TTI_LINE_BYTES 64

/* Whether a reserved slot is written for a reader that waits. A message of one cache line is not,
 * nor is a long one, which is read while it is written. */
static inline bool tti_slot_is_awaited(const struct tti_link *link, size_t nbytes)
{
	return link->is_awaited && nbytes > TTI_LINE_BYTES && nbytes <= TTI_AWAITED_BYTES;
}

/* Fill a slot of a link from memory. */
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

/* Send: post->slot is filled from `data` first, unless the data is there already. */
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
