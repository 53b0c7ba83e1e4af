/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_OPERATION_H
#define TTI_ENGINE_OPERATION_H

/* Running one operation of a program: finding its sources, reserving its slots, combining and
 * sending. Both orders in which a program runs (program.c, in_order.c) use this for every
 * operation. Internal to the engine. */

#include "engine/connect.h"
#include "engine/operand.h"
#include "engine/post.h"
#include "engine/wait.h"

/* An operation does not expect this message: TUTTI_EMISMATCH, unless the message begins a
 * rendezvous. */
tutti_status tti_operation_refuse(struct tti_job *job, const struct tti_linked *at,
				  const struct tti_link *link, const void *message, size_t nbytes,
				  uint64_t tag);

void *tti_first_slot_of_long(const struct tti_job *job, const struct tti_post *post,
			     const void *dst, size_t nbytes);

/* The first slot of an operation that sends, if it is to be written in one pass with the result
 * `dst`; NULL: copying the result there afterwards, past the caches, is better. */
static inline void *tti_first_slot(const struct tti_job *job, const struct tti_post *post,
				   const void *dst, size_t nbytes)
{
	return nbytes <= TTI_LINE_BYTES ? post->slot
					: tti_first_slot_of_long(job, post, dst, nbytes);
}

/* Combine the engine's sources into memory (dst) and into a slot, in one pass; either may be NULL.
 * count > 0. Returns where the result lies, for other slots. */
const void *tti_combine(struct tti_job *job, const struct tti_operation *op, int nsrc, void *dst,
			void *slot, size_t count);

/* Wait shortly for the next message of a link; NULL: it did not come. */
static inline const void *tti_operation_await(const struct tti_job *job, struct tti_link *link,
					      size_t *nbytes, uint64_t *tag, struct tti_wait *wait)
{
	while (tti_wait_briefly(wait, job->engine)) {
		const void *data = link->ops->peek(link, nbytes, tag);

		if (data) {
			*wait = (struct tti_wait){ 0 };
			return data;
		}
	}
	return NULL;
}

/* Put the messages of an operation and the own value, in the order of ranks, into the engine's
 * sources. *found: how many messages are there already. TUTTI_AGAIN: the next one is not there yet.
 * `wait`: nothing else can be done, so wait here for a message that is about to come; NULL: do not
 * wait. */
static inline tutti_status tti_operation_sources(struct tti_job *job, const struct tti_linked *at,
						 const struct tti_operand *operand, int32_t *found,
						 struct tti_wait *wait)
{
	const struct tti_operation *op = at->op;
	const int32_t nin = op->nin, own = op->from == TTI_PLACE_NONE ? nin : op->local_at;
	const void **source = job->engine->sources;

	source[own] = (const void *)(job->program.at[op->from] + operand->from);
	for (int32_t i = *found; i < nin; i++) {
		struct tti_link *link = at->in[i];
		const void *data;
		uint64_t tag;
		size_t got;

		data = link->ops->peek(link, &got, &tag);
		if (!data && wait)
			data = tti_operation_await(job, link, &got, &tag, wait);
		if (!data) {
			tti_job_awaits(job, link->peer);
			*found = i;
			return TUTTI_AGAIN;
		}
		if (tag != tti_job_tag(job, op) || got != operand->nbytes)
			return tti_operation_refuse(job, at, link, data, got, tag);
		source[i + (i >= own)] = data;
	}
	*found = nin;
	return TUTTI_OK;
}

/* The bytes of the message that this one is a piece of: where each chunk is cut by itself, as much
 * of the chunk as one message could have; else nbytes, since messages are whole. */
static inline size_t tti_operation_whole(const struct tti_job *job, const struct tti_operation *op,
					 const struct tti_post *post, size_t nbytes)
{
	const struct tti_layout *layout = &job->program.layout;
	size_t whole, most;

	if (!layout->by_chunk)
		return nbytes;
	whole = layout->extents[op->chunk].count * layout->type_size;
	most = tti_engine_port(job->engine, post->links[0]->peer)->slot_bytes;
	return whole < most ? whole : most;
}

/* Reserve slots for what an operation sends. TUTTI_AGAIN: there is no room yet; slots that were
 * reserved are given again the next time. */
static inline tutti_status tti_operation_reserve(struct tti_job *job, const struct tti_linked *at,
						 size_t nbytes)
{
	for (struct tti_post *post = at->post; post < at->end; post++)
		if (!tti_post_reserve(post, nbytes,
				      tti_operation_whole(job, at->op, post, nbytes))) {
			job->no_room = post;
			return TUTTI_AGAIN;
		}
	return TUTTI_OK;
}

/* Fill the slots that do not hold the result yet from `data`, and send all. */
static inline void tti_operation_commit(struct tti_job *job, const struct tti_linked *at,
					const void *data, size_t nbytes)
{
	const uint64_t tag = tti_job_tag(job, at->op);

	for (struct tti_post *post = at->post; post < at->end; post++)
		tti_post_commit(post, data, nbytes, tag);
}

/* Run an operation whose sources are found and whose slots are reserved. `sender`, whose slots are
 * reserved too, sends on what this operation writes and is run with it; NULL: none. */
static inline void tti_operation_run(struct tti_job *job, const struct tti_linked *at,
				     const struct tti_operand *operand,
				     const struct tti_linked *sender)
{
	const struct tti_operation *op = at->op;
	const struct tti_linked *sends = op->nout > 0 ? at : sender;
	const int nsrc = op->nin + (op->from != TTI_PLACE_NONE);
	void *dst =
		op->to == TTI_PLACE_NONE ? NULL : (void *)(job->program.at[op->to] + operand->to);
	void *slot = sends ? tti_first_slot(job, sends->post, dst, operand->nbytes) : NULL;
	const void *result =
		operand->count > 0 ? tti_combine(job, op, nsrc, dst, slot, operand->count) : slot;

	if (sends)
		tti_operation_commit(job, sends, result, operand->nbytes);
	for (int i = 0; i < op->nin; i++)
		at->in[i]->ops->release(at->in[i]);
}

#endif
