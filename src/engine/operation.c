/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/operation.h"

#include "engine/rndv.h"
#include "reduce/reduce.h"

__attribute__((noinline, cold)) tutti_status
tti_operation_refuse(struct tti_job *job, const struct tti_linked *at, const struct tti_link *link,
		     const void *message, size_t nbytes, uint64_t tag)
{
	const int32_t index = (int32_t)(at - job->program.exec->linked);

	if (tti_rndv_accept(job, index, link, message, nbytes, tag))
		return TUTTI_AGAIN;
	job->mismatch_peer = link->peer;
	job->mismatch_tag = tag;
	job->mismatch_bytes = nbytes;
	return TUTTI_EMISMATCH;
}

void *tti_first_slot_of_long(const struct tti_job *job, const struct tti_post *post,
			     const void *dst, size_t nbytes)
{
	if (post->links[0]->ops->shares_slots && (dst || !job->program.reducer.scalars) &&
	    (tti_slot_is_awaited(post->links[0], nbytes) ||
	     !tti_copy_way_through(post->way, nbytes)))
		return NULL;
	return post->slot;
}

const void *tti_combine(struct tti_job *job, const struct tti_operation *op, int nsrc, void *dst,
			void *slot, size_t count)
{
	const struct tti_reducer *reducer = &job->program.reducer;
	const size_t nbytes = count * job->program.layout.type_size;
	const void **source = job->engine->sources;
	/* A user's own input, which may have to be multiplied. */
	const int input_at = op->from != TTI_PLACE_INPUT ? -1 : op->local_at;

	if (nsrc > 1 || (input_at >= 0 && reducer->scalars)) {
		void *const first = slot ? slot : dst;

		tti_reducer_run(reducer, first, slot ? dst : NULL, source, nsrc, input_at, count,
				op->final);
		return first;
	}
	if (slot)
		tti_copy(slot, source[0], nbytes, false);
	if (dst && dst != source[0])
		tti_copy(dst, slot ? slot : source[0], nbytes, job->program.is_large);
	return slot ? slot : source[0];
}
