/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_RUN_MEMORY_H
#define TTI_DEVICE_RUN_MEMORY_H

/* Memory programs (coll/program.h) on a device: operations in their order, those between two messages
 * block of data by block of data.
 *
 * Each block reads and writes its own part of every piece, also in memory of peers, and is notified
 * by, and waits for, the same block of the peers alone. That is enough:
 *
 * - Call a byte of a buffer a byte of block b, if it is in the part of block b of the piece that it
 *   is in. Which piece, and which part, follows from the chunk's length and the slice, which all
 *   ranks have alike; so a byte of a chunk is of the same block wherever the chunk lies.
 * - Two chunks share memory only in place, where the output of a chunk lies where the input of its
 *   twin does (tti_chunk_twin()), from the first byte to the last: both have one length, so they
 *   have the same pieces and parts.
 * - So block b of every rank touches bytes of block b alone, and no other block does. The blocks b of
 *   all ranks run the program over these bytes, with messages of their own, and the checker's
 *   proof for the program holds for them as it does for ranks that do not cut their data.
 * - Scratch is of one block (abi.h), and what a rank is told is kept by each.
 * - The kernel of a rank ends when all its blocks have: then no block of a peer touches its memory
 *   any more, as the program ends with a message from each that did.
 *
 * None of it holds for chunks that share memory in another way, so buffers that overlap are no
 * buffers in place; nor for ranks that cut a chunk otherwise than others, which is why slices are
 * part of what ranks compare by the tag.
 *
 * Threads: all of a block call these functions alike. */

#include "device/run_operation.h"

/* -- Messages -------------------------------------------------------------------------------- */

/* Bytes from where the output of this rank begins to the row of a rank, if each peer is told of its own
 * row alone. */
TTI_DEV_FN uint64_t tti_dev_row_of(const struct tti_dev_env *env, int32_t rank)
{
	const struct tti_dev_call *call = env->shared->call;

	return call->by_row
		       ? env->shared->extents[rank * call->by_row].to * (uint64_t)call->type_size
		       : 0;
}

/* Where a peer reaches a buffer; 0: nobody touches it. */
TTI_DEV_FN uint64_t tti_dev_reached_at(const struct tti_dev_env *env, uint64_t table, int32_t peer,
				       uint64_t shift)
{
	return table ? TTI_DEV_AT(&env->world, const uint64_t, table)[peer] + shift : 0;
}

/* A message of a first meeting is one unit. */
TTI_DEV_FN void tti_dev_tell_buffers(const struct tti_dev_env *env, int32_t peer,
				     const struct tti_dev_end *out)
{
	const struct tti_dev_call *call = env->shared->call;
	struct tti_dev_unit unit = { { TTI_DEV_UNREACHED, 0 } };

	if (call->inputs != TTI_DEV_UNREACHED) {
		unit.part[0] = tti_dev_reached_at(env, call->inputs, peer, call->input_shift);
		unit.part[1] = tti_dev_reached_at(env, call->outputs, peer,
						  call->output_shift + tti_dev_row_of(env, peer));
	}
	tti_dev_put(out, 0, TTI_DEV_UNIT, unit);
}

/* Whether the peer is reached. */
TTI_DEV_FN uint32_t tti_dev_hear_buffers(struct tti_dev_env *env, int32_t peer,
					 const struct tti_dev_end *in)
{
	const struct tti_dev_unit unit = tti_dev_take(env, in, 0, TTI_DEV_UNIT);
	struct tti_dev_buffers *told = tti_dev_told(env, peer);

	told->input = unit.part[0];
	told->output =
		unit.part[1] ? unit.part[1] - tti_dev_row_of(env, env->shared->prog->rank) : 0;
	return unit.part[0] != TTI_DEV_UNREACHED;
}

/* A NOTIFY or a WAIT; `opens`: of the first meeting. *refused: this thread has heard that a peer is
 * not reached. 0: the call ends. */
TTI_DEV_FN int tti_dev_run_sync(struct tti_dev_env *env, const struct tti_dev_operation *op,
				int opens, uint32_t *refused)
{
	struct tti_dev_head own;
	struct tti_dev_end end = { 0, 0, 0 };

	own.tag = env->shared->call->tag;
	own.nbytes = opens ? sizeof(struct tti_dev_buffers) : 0;
	TTI_DEV_ROLLED
	for (int32_t i = 0; i < op->nout; i++) {
		const int32_t queue = env->shared->queue_of[op->out + i];

		if (!tti_dev_has_lane(env, queue))
			continue;
		tti_dev_find_room(env, queue, &own, &end);
		if (opens && !env->gave_up)
			tti_dev_tell_buffers(env, env->shared->lane_of[queue] / 2, &end);
	}
	TTI_DEV_ROLLED
	for (int32_t i = 0; i < op->nin; i++) {
		const int32_t queue = env->shared->queue_of[op->in + i];

		if (!tti_dev_has_lane(env, queue))
			continue;
		tti_dev_find_message(env, queue, &own, &end);
		if (opens && !env->gave_up)
			*refused |=
				!tti_dev_hear_buffers(env, env->shared->lane_of[queue] / 2, &end);
	}
	/* All threads have written what the peers are told of, and all see what this one has heard
	 * of. */
	if (tti_dev_barrier_any(&env->world, env->gave_up))
		return 0;
	tti_dev_post(env, op->in, op->nin, op->out, op->nout);
	return 1;
}

/* -- Order ----------------------------------------------------------------------------------- */

/* Operations first .. end - 1 are one run: no message is between them. */
struct tti_dev_memory {
	int32_t first, end;
	uint32_t has_met, refused;
};

TTI_DEV_FN void tti_dev_begin_memory(const struct tti_dev_env *env, struct tti_dev_memory *memory)
{
	memory->first = memory->end = 0;
	memory->has_met = 0;
	memory->refused = env->shared->call->inputs == TTI_DEV_UNREACHED;
}

TTI_DEV_FN int32_t tti_dev_end_of_run(const struct tti_dev_env *env, int32_t first)
{
	const struct tti_dev_operation *op = env->shared->operation;
	int32_t end = first + 1;

	TTI_DEV_ROLLED
	while (end < env->shared->prog->noperations && !op[end].sync &&
	       op[end].stage == op[first].stage)
		end++;
	return end;
}

/* Calls of this kind whose buffers were not reached, by one thread; 0: they were now. */
TTI_DEV_FN uint32_t *tti_dev_unused(const struct tti_dev_shared *shared,
				    const struct tti_dev_call *call)
{
	return &shared->state->unused[shared->block][call->kind - 1];
}

/* Send and await messages up to the next run. */
TTI_DEV_FN enum tti_dev_next tti_dev_begin_run(struct tti_dev_env *env,
					       struct tti_dev_memory *memory)
{
	const struct tti_dev_program *prog = env->shared->prog;
	int32_t at = memory->end;

	TTI_DEV_ROLLED
	for (;; at++) {
		/* All threads of all blocks of all ranks find the same. */
		if (at == prog->nopening && !memory->has_met) {
			memory->has_met = 1;
			if (tti_dev_barrier_any(&env->world, memory->refused))
				return TTI_DEV_NEXT_OTHER;
			if (env->shared->call->kind && tti_dev_tid(&env->world) == 0)
				*tti_dev_unused(env->shared, env->shared->call) = 0;
		}
		if (at == prog->noperations)
			return TTI_DEV_NEXT_NONE;
		if (!env->shared->operation[at].sync)
			break;
		env->index = (uint32_t)at;
		if (!tti_dev_run_sync(env, &env->shared->operation[at], !memory->has_met,
				      &memory->refused))
			return TTI_DEV_NEXT_ENDS;
	}
	memory->first = at;
	memory->end = tti_dev_end_of_run(env, at);
	return TTI_DEV_NEXT_RUNS;
}

/* What runs after operation *index in *data_block; at first *index is -1. */
TTI_DEV_FN enum tti_dev_next tti_dev_next_of_memory(struct tti_dev_env *env,
						    struct tti_dev_memory *memory, int32_t *index,
						    int32_t *data_block)
{
	enum tti_dev_next next = TTI_DEV_NEXT_RUNS;

	if (++*index < memory->end)
		return next;
	if (*index == 0 || ++*data_block == env->shared->call->nrounds) {
		*data_block = 0;
		next = tti_dev_begin_run(env, memory);
	}
	*index = memory->first;
	return next;
}

#endif
