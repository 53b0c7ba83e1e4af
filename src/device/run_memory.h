/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_RUN_MEMORY_H
#define TTI_DEVICE_RUN_MEMORY_H

/* Memory programs (coll/program.h) on a device: operations in their order, those between two messages
 * block of data by block of data. Included by run.h.
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

#include "device/env.h"

/* Rounds of a run between two looks at the host's words: a run waits for nobody. */
#define TTI_DEV_ROUNDS_BLIND 64

/* What this block was told of the buffers of a peer. */
TTI_DEV_FN struct tti_dev_buffers *tti_dev_told(const struct tti_dev_env *env, int32_t peer)
{
	const uint64_t row = 1 + env->block;

	return TTI_DEV_AT(&env->world, struct tti_dev_buffers, env->call->buffers) +
	       row * (uint64_t)env->prog->n + (uint64_t)peer;
}

/* -- Messages -------------------------------------------------------------------------------- */

/* A message of a first meeting is one unit. */
TTI_DEV_FN void tti_dev_tell_buffers(const struct tti_dev_env *env, int32_t peer,
				     const struct tti_dev_end *out)
{
	const struct tti_dev_buffers *own =
		TTI_DEV_AT(&env->world, const struct tti_dev_buffers, env->call->buffers) + peer;
	const struct tti_dev_unit unit = { { own->input, own->output } };

	tti_dev_put(out, 0, TTI_DEV_UNIT, unit);
}

/* Whether the peer is reached. */
TTI_DEV_FN uint32_t tti_dev_hear_buffers(struct tti_dev_env *env, int32_t peer,
					 const struct tti_dev_end *in)
{
	const struct tti_dev_unit unit = tti_dev_take(env, in, 0, TTI_DEV_UNIT);
	struct tti_dev_buffers *told = tti_dev_told(env, peer);

	told->input = unit.part[0];
	told->output = unit.part[1] ? unit.part[1] - env->call->own_row : 0;
	return unit.part[0] != TTI_DEV_UNREACHED;
}

/* A NOTIFY or a WAIT; `opens`: of the first meeting. *refused: this thread has heard that a peer is
 * not reached. 0: the call ends. */
TTI_DEV_FN int tti_dev_run_sync(struct tti_dev_env *env, const struct tti_dev_operation *op,
				int opens, uint32_t *refused)
{
	struct tti_dev_head own;
	struct tti_dev_end end;

	own.tag = env->call->tag;
	own.nbytes = opens ? sizeof(struct tti_dev_buffers) : 0;
	for (int32_t i = 0; i < op->nout; i++) {
		const int32_t queue = env->queue_of[op->out + i];

		if (!tti_dev_has_lane(env, queue))
			continue;
		tti_dev_find_room(env, queue, &own, &end);
		if (opens && !env->gave_up)
			tti_dev_tell_buffers(env, env->lane_of[queue] / 2, &end);
	}
	for (int32_t i = 0; i < op->nin; i++) {
		const int32_t queue = env->queue_of[op->in + i];

		if (!tti_dev_has_lane(env, queue))
			continue;
		tti_dev_find_message(env, queue, &own, &end);
		if (opens && !env->gave_up)
			*refused |= !tti_dev_hear_buffers(env, env->lane_of[queue] / 2, &end);
	}
	/* All threads have written what the peers are told of, and all see what this one has heard
	 * of. */
	if (tti_dev_barrier_any(&env->world, env->gave_up))
		return 0;
	tti_dev_post(env, op);
	return 1;
}

/* -- Data ------------------------------------------------------------------------------------ */

TTI_DEV_FN void tti_dev_set_end(const struct tti_dev_env *env, struct tti_dev_end *out,
				uint64_t address)
{
	out->at = TTI_DEV_AT(&env->world, void, address);
	out->peer = -1;
}

/* Say where the sources and results lie: each thread some of those of peers. */
TTI_DEV_FN void tti_dev_find_memory(struct tti_dev_env *env, const struct tti_dev_act *act)
{
	const struct tti_dev_operation *op = &act->op;
	const int32_t tid = (int32_t)tti_dev_tid(&env->world);
	const int32_t nthreads = (int32_t)tti_dev_nthreads(&env->world);
	const uint64_t input = tti_dev_input_at(env, op->chunk, &act->piece);
	const uint64_t output = tti_dev_output_at(env, op->chunk, &act->piece);

	if (tid == 0 && op->from != TTI_PLACE_NONE)
		tti_dev_set_end(env, &env->src[act->own], act->from);
	if (tid == 0 && act->ndst > op->nput)
		tti_dev_set_end(env, &env->dst[op->nput], act->to);
	for (int32_t i = tid; i < op->nget; i += nthreads)
		tti_dev_set_end(env, &env->src[i + (i >= act->own)],
				tti_dev_told(env, env->peer_of[op->get + i])->input + input);
	for (int32_t i = tid; i < op->nput; i += nthreads)
		tti_dev_set_end(env, &env->dst[i],
				tti_dev_told(env, env->peer_of[op->put + i])->output + output);
}

/* One operation in one block of data; 0: the call ends. */
TTI_DEV_FN int tti_dev_run_in_memory(struct tti_dev_env *env, int32_t index, int32_t data_block)
{
	struct tti_dev_act act;

	act.op = env->operation[index];
	act.piece = tti_dev_piece_at(env, act.op.chunk, data_block);
	env->index = (uint32_t)index;
	tti_dev_place(env, &act, data_block);
	/* A part of no elements has no place. */
	if (act.piece.count > 0)
		tti_dev_find_memory(env, &act);
	if (tti_dev_barrier_any(&env->world, env->gave_up))
		return 0;
	tti_dev_combine(env, &act);
	/* The next operation may read what this one has written, and has its own sources. */
	tti_dev_barrier(&env->world);
	return 1;
}

/* Operations first .. end - 1, all of one run; 0: the call ends. */
TTI_DEV_FN int tti_dev_run_run(struct tti_dev_env *env, int32_t first, int32_t end)
{
	for (int32_t round = 0; round < env->call->nrounds; round++) {
		env->round = (uint32_t)round;
		if (round % TTI_DEV_ROUNDS_BLIND == TTI_DEV_ROUNDS_BLIND - 1 &&
		    tti_dev_tid(&env->world) == 0 && tti_dev_load_32(&env->control->stop)) {
			tti_dev_raise(&env->world.shared->verdict, TTI_DEV_STOPPED);
			env->gave_up = 1;
		}
		for (int32_t i = first; i < end; i++)
			if (!tti_dev_run_in_memory(env, i, round))
				return 0;
	}
	return 1;
}

/* -- All ------------------------------------------------------------------------------------- */

TTI_DEV_FN int32_t tti_dev_end_of_run(const struct tti_dev_env *env, int32_t first)
{
	const struct tti_dev_operation *op = env->operation;
	int32_t end = first + 1;

	while (end < env->prog->noperations && !op[end].sync && op[end].stage == op[first].stage)
		end++;
	return end;
}

/* The first meeting; *refused: the buffers of some rank are not reached, as all threads of all blocks
 * of all ranks find. 0: the call ends. */
TTI_DEV_FN int tti_dev_meet(struct tti_dev_env *env, uint32_t *refused)
{
	const struct tti_dev_buffers *own =
		TTI_DEV_AT(&env->world, const struct tti_dev_buffers, env->call->buffers) +
		env->prog->rank;
	uint32_t is_refused = own->input == TTI_DEV_UNREACHED;

	for (int32_t i = 0; i < env->prog->nopening; i++) {
		env->index = (uint32_t)i;
		if (!tti_dev_run_sync(env, &env->operation[i], 1, &is_refused))
			return 0;
	}
	*refused = tti_dev_barrier_any(&env->world, is_refused);
	return 1;
}

/* What comes after that; 0: the call ends early. */
TTI_DEV_FN int tti_dev_run_memory(struct tti_dev_env *env)
{
	uint32_t unused = 0;
	int32_t end;

	for (int32_t i = env->prog->nopening; i < env->prog->noperations; i = end) {
		const struct tti_dev_operation *op = &env->operation[i];

		end = op->sync ? i + 1 : tti_dev_end_of_run(env, i);
		env->index = (uint32_t)i;
		if (!(op->sync ? tti_dev_run_sync(env, op, 0, &unused)
			       : tti_dev_run_run(env, i, end)))
			return 0;
	}
	return 1;
}

#endif
