/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "engine/job.h"
#include "engine/wait.h"

/* The shortest way through an exchange: no window, no cursors. It sends and takes
 * the same messages in the same order as the general way, so ranks may mix. */

/* Room for one post: a slot of one link, or one shared by all. */
static void *reserve(const struct tti_post *post, size_t nbytes)
{
	if (post->port && nbytes > post->port->inline_bytes)
		return post->port->transport->fanout->reserve(post->port, post->links, post->n,
							      nbytes);
	return post->links[0]->ops->reserve(post->links[0], nbytes);
}

static tutti_status wait_room(struct tti_engine *engine, const struct tti_post *post, size_t nbytes,
			      void **room)
{
	struct tti_wait wait = { 0 };

	while (!(*room = reserve(post, nbytes))) {
		const tutti_status st = tti_wait_step(&wait, engine, post->links[0]->peer, true);

		if (st != TUTTI_AGAIN)
			return st;
		tti_engine_progress(engine);
	}
	return TUTTI_OK;
}

static tutti_status send_post(struct tti_engine *engine, const struct tti_post *post,
			      const void *input, size_t nbytes, uint64_t tag)
{
	void *room = reserve(post, nbytes);

	if (!room) {
		const tutti_status st = wait_room(engine, post, nbytes, &room);

		if (st != TUTTI_OK)
			return st;
	}
	if (nbytes > 0)
		memcpy(room, input, nbytes);
	if (post->port && nbytes > post->port->inline_bytes)
		post->port->transport->fanout->commit(post->port, post->links, post->n, nbytes,
						      tag);
	else
		post->links[0]->ops->commit(post->links[0], nbytes, tag);
	return TUTTI_OK;
}

/* Short messages go to each peer in a line of its own; longer ones are written once. */
static tutti_status send_to_all(struct tti_engine *engine, const struct tti_bound *bound,
				const void *input, size_t nbytes, uint64_t tag)
{
	for (int32_t i = bound->post_of[0]; i < bound->post_of[1]; i++) {
		const struct tti_post *post = &bound->post[i];
		const bool shares = post->port && nbytes > post->port->inline_bytes;

		for (int k = 0; k < (shares ? 1 : post->n); k++) {
			const struct tti_post one = { .links = post->links + k, .n = 1 };
			const tutti_status st =
				send_post(engine, shares ? post : &one, input, nbytes, tag);

			if (st != TUTTI_OK)
				return st;
		}
	}
	return TUTTI_OK;
}

static tutti_status wait_message(struct tti_engine *engine, struct tti_link *link, size_t nbytes,
				 uint64_t tag, const void **data, int *mismatch_peer)
{
	struct tti_wait wait = { 0 };
	uint64_t got_tag;
	size_t got;

	while (!(*data = link->ops->peek(link, &got, &got_tag))) {
		const tutti_status st = tti_wait_step(&wait, engine, link->peer, true);

		if (st != TUTTI_AGAIN)
			return st;
		tti_engine_progress(engine);
	}
	if (got_tag == tag && got == nbytes)
		return TUTTI_OK;
	*mismatch_peer = link->peer;
	return TUTTI_EMISMATCH;
}

bool tti_exchange_fits(const struct tti_engine *engine, const struct tti_bound *bound)
{
	return bound->prog.exchange && bound->connected && engine->nactive == 0;
}

tutti_status tti_exchange(struct tti_engine *engine, struct tti_bound *bound, const void *input,
			  void *output, size_t count, size_t type_size, tti_reduce_fn reduce,
			  int divisor, uint64_t tag, int *mismatch_peer)
{
	const struct tti_oper *recv = &bound->prog.oper[1];
	const size_t nbytes = count * type_size;
	const void **source = engine->sources;
	tutti_status st = send_to_all(engine, bound, input, nbytes, tag);

	for (int i = 0; i < recv->nin && st == TUTTI_OK; i++) {
		if (i == recv->local_at)
			*source++ = input;
		st = wait_message(engine, bound->link[bound->prog.queue_of[recv->in + i]], nbytes,
				  tag, source++, mismatch_peer);
	}
	if (st != TUTTI_OK)
		return st;
	if (recv->local_at >= recv->nin)
		*source++ = input;
	reduce(output, NULL, engine->sources, recv->nin + 1, count, divisor);
	for (int i = 0; i < recv->nin; i++) {
		struct tti_link *link = bound->link[bound->prog.queue_of[recv->in + i]];

		link->ops->release(link);
	}
	return TUTTI_OK;
}
