/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/args.h"
#include "core/call/call.h"
#include "core/comm.h"
#include "core/handoff/sides.h"

/* -- What others may ask (stall.h) --------------------------------------------- */

void tti_call_publish(struct tti_comm *comm, uint64_t seq, uint64_t sign, uint64_t split,
		      const struct tti_args *args)
{
	const enum tti_stage stage = args->stage;

	args = args->part_of ? args->part_of : args;
	if (args->sides) {
		struct tti_sides *last;

		pthread_mutex_lock(&comm->lock);
		last = comm->current.sides;
		comm->current.sides = tti_sides_take(args->sides);
		comm->current.handoff_seq = seq;
		pthread_mutex_unlock(&comm->lock);
		tti_sides_drop(last);
	}
	tti_current_call_publish(&comm->current, &(struct tti_published_call){
							 .seq = seq,
							 .signature = sign,
							 .count = tti_args_common_count(args),
							 .packed = tti_args_pack(args),
							 .split = split,
							 .stage = stage,
						 });
}

void tti_call_begin(struct tti_comm *comm, uint64_t packed)
{
	tti_current_call_publish(
		&comm->current, &(struct tti_published_call){ .seq = comm->seq, .packed = packed });
}

void tti_call_end(struct tti_comm *comm)
{
	tti_current_call_end(&comm->current);
}

void tti_call_show(struct tti_comm *comm, const struct tti_flight_call *call)
{
	tti_call_publish(comm, call->seq, call->sign, call->split, call->args);
}
