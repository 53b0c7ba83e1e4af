/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/post.h"

/* One slot for all links of a post. */
static bool shares_slot(const struct tti_post *post, size_t nbytes)
{
	return post->port && (post->port->fans_short || nbytes > post->port->inline_bytes);
}

bool tti_post_reserve_all(struct tti_post *post, size_t nbytes, size_t whole)
{
	if (shares_slot(post, nbytes)) {
		post->slot = post->port->transport->fanout->reserve(post->port, post->links,
								    post->n, nbytes);
		return post->slot != NULL;
	}
	for (int i = post->n - 1; i >= 0; i--) {
		post->slot = post->links[i]->ops->reserve(post->links[i], nbytes, whole);
		if (!post->slot)
			return false;
	}
	return true;
}

void tti_post_commit_all(const struct tti_post *post, size_t nbytes, uint64_t tag)
{
	if (shares_slot(post, nbytes)) {
		post->port->transport->fanout->commit(post->port, post->links, post->n, nbytes,
						      tag);
		return;
	}
	/* The first goes last: its room is what the others are copied from. */
	for (int i = post->n - 1; i > 0; i--) {
		struct tti_link *link = post->links[i];

		memcpy(link->ops->reserve(link, nbytes, 0), post->slot, nbytes);
		link->ops->commit(link, nbytes, tag);
	}
	post->links[0]->ops->commit(post->links[0], nbytes, tag);
}
