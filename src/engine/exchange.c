/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/job.h"
#include "engine/wait.h"

/* The shortest way through an exchange: no window, no cursors. It sends and takes
 * the same messages in the same order as the general way, so ranks may mix. */

static tutti_status wait_room(struct tti_engine *engine, struct tti_post *post, size_t nbytes)
{
	struct tti_wait wait = { 0 };

	while (!tti_post_reserve(post, nbytes)) {
		const tutti_status st = tti_wait_step(&wait, engine, post->links[0]->peer, true);

		if (st != TUTTI_AGAIN)
			return st;
		tti_engine_progress(engine);
	}
	return TUTTI_OK;
}

static tutti_status send_to_all(struct tti_engine *engine, struct tti_bound *bound,
				const void *input, size_t nbytes, uint64_t tag)
{
	for (int32_t i = bound->post_of[0]; i < bound->post_of[1]; i++) {
		struct tti_post *post = &bound->post[i];
		const tutti_status st = wait_room(engine, post, nbytes);

		if (st != TUTTI_OK)
			return st;
		tti_post_commit(post, input, nbytes, tag);
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

/* What was committed is on its way only once the system has it. */
static tutti_status wait_until_sent(struct tti_engine *engine)
{
	struct tti_wait wait = { 0 };

	for (int i = 0; i < engine->nactive; i++)
		while (engine->active[i]->unsent > 0) {
			const tutti_status st = tti_wait_step(&wait, engine, -1, true);

			if (st != TUTTI_AGAIN)
				return st;
			tti_engine_progress(engine);
		}
	return TUTTI_OK;
}

bool tti_exchange_fits(const struct tti_bound *bound)
{
	return bound->prog.exchange && bound->connected;
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
	return wait_until_sent(engine);
}
