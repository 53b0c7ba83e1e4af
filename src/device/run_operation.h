/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_RUN_OPERATION_H
#define TTI_DEVICE_RUN_OPERATION_H

/* One operation of a program in one block of data, by all threads of a block on its own part of the
 * data (abi.h):
 *
 *     find      the threads share the lanes: each waits for the messages, and for the room, of its
 *               own ones, and says where data lies
 *     barrier
 *     pass      all threads combine the data, or copy it (reduce.h)
 *     barrier
 *     post      each tells the peers of its lanes that slots are full, or free again
 *
 * What a thread keeps of a lane no other one touches. The first barrier also says whether a thread
 * has given up, and then all leave. Words are waited for in the pass, so there the second one says
 * so as well.
 *
 * Owner: none. Threads: all functions are called by all threads of a block alike. */

#include "device/env.h"
#include "device/meeting.h"
#include "device/reduce.h"

/* -- Which data ------------------------------------------------------------------------------ */

/* The part that this block has of a block of data of a chunk: its row, its first element, counted
 * in the row (with extents: in the chunk), and how many; and those of all blocks. */
struct tti_dev_piece {
	uint64_t row, first, count, whole;
};

TTI_DEV_COLD uint64_t tti_dev_divide_long(uint64_t a, uint32_t b)
{
	return a / b;
}

/* Divides by 32 bits where that is enough, as GPUs do it in much less time. */
TTI_DEV_FN uint64_t tti_dev_divide(uint64_t a, uint32_t b)
{
	return a >> 32 ? tti_dev_divide_long(a, b) : (uint32_t)a / b;
}

/* Where the part of a block begins: abi.h. */
TTI_DEV_FN uint64_t tti_dev_edge(const struct tti_dev_env *env, uint64_t count, uint32_t block)
{
	const uint64_t even = tti_dev_divide(count * block, env->shared->nblocks);

	return block == env->shared->nblocks
		       ? count
		       : even & ~(TTI_DEV_UNIT / (uint64_t)env->shared->call->type_size - 1);
}

TTI_DEV_FN struct tti_dev_piece tti_dev_part_of(const struct tti_dev_env *env, uint64_t row,
						uint64_t first, uint64_t whole)
{
	const uint64_t edge = tti_dev_edge(env, whole, env->shared->block);
	struct tti_dev_piece piece;

	piece.row = row;
	piece.first = first + edge;
	piece.count = tti_dev_edge(env, whole, env->shared->block + 1) - edge;
	piece.whole = whole;
	return piece;
}

/* How many elements there are from `first` to `end`, but `slice` at most. */
TTI_DEV_FN uint64_t tti_dev_slice_of(uint64_t first, uint64_t end, uint64_t slice)
{
	if (first >= end)
		return 0;
	return end - first < slice ? end - first : slice;
}

/* As operands of the engine: src/engine/operand.c. A NOTIFY and a WAIT have no data. */
TTI_DEV_FN struct tti_dev_piece tti_dev_piece_at(const struct tti_dev_env *env,
						 const struct tti_dev_operation *op,
						 int32_t data_block)
{
	const struct tti_dev_call *call = env->shared->call;
	const struct tti_dev_piece none = { 0, 0, 0, 0 };
	const uint64_t at = (uint64_t)data_block;
	const int32_t chunk = op->chunk;
	uint64_t row, part, first, end;

	if (op->sync)
		return none;
	if (env->shared->extents) {
		const struct tti_dev_extent *extent = &env->shared->extents[chunk];

		first = at * extent->slice;
		return tti_dev_part_of(env, 0, first,
				       tti_dev_slice_of(first, extent->count, extent->slice));
	}
	row = (uint64_t)(chunk / call->parts);
	part = (uint64_t)(chunk % call->parts);
	first = part * call->chunk_count + at * call->slice;
	end = (part + 1) * call->chunk_count;
	if (end > call->row_count)
		end = call->row_count;
	return tti_dev_part_of(env, row, first, tti_dev_slice_of(first, end, call->slice));
}

/* Bytes from where the input of a rank begins, or its output, to the piece of a chunk. */
TTI_DEV_FN uint64_t tti_dev_input_at(const struct tti_dev_env *env, int32_t chunk,
				     const struct tti_dev_piece *piece)
{
	const struct tti_dev_call *call = env->shared->call;
	const uint64_t byte = piece->first * (uint64_t)call->type_size;

	if (env->shared->extents)
		return env->shared->extents[chunk].first * (uint64_t)call->type_size + byte;
	if (call->paired)
		return (uint32_t)piece->row % (uint32_t)call->paired * call->in_stride + byte;
	return piece->row * call->in_stride + byte;
}

TTI_DEV_FN uint64_t tti_dev_output_at(const struct tti_dev_env *env, int32_t chunk,
				      const struct tti_dev_piece *piece)
{
	const struct tti_dev_call *call = env->shared->call;
	const uint64_t byte = piece->first * (uint64_t)call->type_size;

	if (env->shared->extents)
		return env->shared->extents[chunk].to * (uint64_t)call->type_size + byte;
	if (call->paired)
		return (uint32_t)piece->row / (uint32_t)call->paired * call->out_stride + byte;
	return piece->row * call->out_stride + byte;
}

/* The address of the piece in a place; NONE: 0. */
TTI_DEV_FN uint64_t tti_dev_address_of(const struct tti_dev_env *env, uint32_t place,
				       const struct tti_dev_operation *op,
				       const struct tti_dev_piece *piece, int32_t data_block)
{
	const struct tti_dev_call *call = env->shared->call;

	if (place == TTI_PLACE_INPUT)
		return call->input + tti_dev_input_at(env, op->chunk, piece);
	if (place == TTI_PLACE_OUTPUT)
		return call->output + tti_dev_output_at(env, op->chunk, piece);
	if (place == TTI_PLACE_SCRATCH) {
		const uint64_t row = (uint32_t)data_block & ((uint32_t)call->window - 1);

		return env->shared->scratch +
		       (row * (uint64_t)env->shared->prog->nscratch + (uint64_t)op->scratch) *
			       call->part_bytes;
	}
	return 0;
}

/* -- Lanes ----------------------------------------------------------------------------------- */

/* Whether the lane of a queue is this thread's. */
TTI_DEV_FN int tti_dev_has_lane(const struct tti_dev_env *env, int32_t queue)
{
	const uint32_t at = (uint32_t)queue, nthreads = tti_dev_nthreads(&env->world);

	return (at < nthreads ? at : at % nthreads) == tti_dev_tid(&env->world);
}

TTI_DEV_FN struct tti_dev_lane *tti_dev_lane_at(const struct tti_dev_env *env, int32_t queue)
{
	const struct tti_dev_shared *shared = env->shared;

	return shared->kept_lane ? &shared->kept_lane[queue]
				 : &shared->lane[shared->lane_of[queue]];
}

TTI_DEV_FN uint64_t tti_dev_slot_of(const struct tti_dev_lane *lane)
{
	return lane->seq - tti_dev_divide(lane->seq, lane->nslots) * lane->nslots;
}

TTI_DEV_FN uint64_t tti_dev_words_of(const struct tti_dev_lane *lane, uint64_t slot)
{
	return lane->words + slot * 2 * lane->word_bytes;
}

/* Wait for the next message of a lane, and say where its data lies. */
TTI_DEV_FN void tti_dev_find_message(struct tti_dev_env *env, int32_t queue,
				     const struct tti_dev_head *own, struct tti_dev_end *out)
{
	const struct tti_dev_lane *lane = tti_dev_lane_at(env, queue);
	const int32_t peer = env->shared->lane_of[queue] / 2;
	const uint64_t seq = lane->seq, slot = tti_dev_slot_of(lane);
	struct tti_dev_head came;
	uint64_t full;

	if (env->shared->words) {
		const uint64_t *words =
			TTI_DEV_AT(&env->world, uint64_t, tti_dev_words_of(lane, slot));
		const struct tti_dev_unit head =
			tti_dev_await_words(env, words, 0, tti_dev_flag_after(seq), peer);

		came.tag = head.part[0];
		came.nbytes = head.part[1];
		out->at = (void *)words;
	} else if (tti_dev_wait_counter(env, TTI_DEV_AT(&env->world, uint64_t, lane->full), seq + 1,
					peer, 0, &full)) {
		came = TTI_DEV_AT(&env->world, struct tti_dev_head, lane->heads)[slot];
		out->at = TTI_DEV_AT(&env->world, void, lane->slots + slot * lane->slot_bytes);
	}
	out->flag = tti_dev_flag_after(seq);
	out->peer = env->shared->words ? peer : -1;
	if (!env->gave_up)
		tti_dev_check_head(env, peer, &came, own);
}

/* Wait for room in a lane, and say where it is. */
TTI_DEV_FN void tti_dev_find_room(struct tti_dev_env *env, int32_t queue,
				  const struct tti_dev_head *own, struct tti_dev_end *out)
{
	struct tti_dev_lane *lane = tti_dev_lane_at(env, queue);
	const int32_t peer = env->shared->lane_of[queue] / 2;
	const uint64_t seq = lane->seq, slot = tti_dev_slot_of(lane);

	if (lane->known + lane->nslots <= seq &&
	    !tti_dev_wait_counter(env, TTI_DEV_AT(&env->world, uint64_t, lane->freed),
				  seq + 1 - lane->nslots, peer, 1, &lane->known))
		return;
	out->flag = tti_dev_flag_after(seq);
	if (env->shared->words) {
		const struct tti_dev_unit head = { { own->tag, own->nbytes } };

		out->at = TTI_DEV_AT(&env->world, uint64_t, tti_dev_words_of(lane, slot));
		out->peer = peer;
		tti_dev_send_words((uint64_t *)out->at, 0, out->flag, head);
	} else {
		TTI_DEV_AT(&env->world, struct tti_dev_head, lane->heads)[slot] = *own;
		out->at = TTI_DEV_AT(&env->world, void, lane->slots + slot * lane->slot_bytes);
		out->peer = -1;
	}
}

/* A message is written: tell its reader. Words tell by themselves. */
TTI_DEV_FN void tti_dev_post_message(struct tti_dev_env *env, int32_t queue)
{
	struct tti_dev_lane *lane = tti_dev_lane_at(env, queue);

	lane->seq++;
	if (!env->shared->words)
		tti_dev_store_release(TTI_DEV_AT(&env->world, uint64_t, lane->full), lane->seq);
}

/* A message is read: tell its writer. */
TTI_DEV_FN void tti_dev_post_room(struct tti_dev_env *env, int32_t queue)
{
	struct tti_dev_lane *lane = tti_dev_lane_at(env, queue);

	lane->seq++;
	tti_dev_store_release(TTI_DEV_AT(&env->world, uint64_t, lane->freed), lane->seq);
}

/* -- One operation --------------------------------------------------------------------------- */

/* What an operation is in one block of data. */
struct tti_dev_act {
	struct tti_dev_operation op;
	struct tti_dev_piece piece;
	uint64_t from, to; /* addresses; 0: none */
	int32_t nsrc, ndst;
	int32_t own; /* the place of the local value among the sources; nin: there is none */
	int32_t multiplies;
};

TTI_DEV_FN void tti_dev_place(const struct tti_dev_env *env, struct tti_dev_act *act,
			      int32_t data_block)
{
	const struct tti_dev_operation *op = &act->op;
	int32_t writes;

	act->from = tti_dev_address_of(env, op->from, op, &act->piece, data_block);
	act->to = tti_dev_address_of(env, op->to, op, &act->piece, data_block);
	act->own = op->from == TTI_PLACE_NONE ? op->nin + op->nget : op->local_at;
	act->nsrc = op->nin + op->nget + (op->from != TTI_PLACE_NONE);
	act->multiplies = env->shared->call->has_scalar && op->from == TTI_PLACE_INPUT;
	/* In place a value may be where it belongs. */
	writes = op->to != TTI_PLACE_NONE &&
		 (op->nin > 0 || op->nget > 0 || act->multiplies || act->from != act->to);
	act->ndst = op->nout + op->nput + writes;
}

TTI_DEV_FN void tti_dev_set_end(const struct tti_dev_env *env, struct tti_dev_end *out,
				uint64_t address)
{
	out->at = TTI_DEV_AT(&env->world, void, address);
	out->peer = -1;
}

/* Say where the sources and results in memory lie: each thread some of those of peers. */
TTI_DEV_FN void tti_dev_find_memory(struct tti_dev_env *env, const struct tti_dev_act *act)
{
	const struct tti_dev_operation *op = &act->op;
	const int32_t tid = (int32_t)tti_dev_tid(&env->world);
	const int32_t nthreads = (int32_t)tti_dev_nthreads(&env->world);
	const int32_t *peer_of = env->shared->peer_of;

	if (tid == 0 && op->from != TTI_PLACE_NONE)
		tti_dev_set_end(env, &tti_dev_sources(env->shared)[act->own], act->from);
	if (tid == 0 && act->ndst > op->nout + op->nput)
		tti_dev_set_end(env, &tti_dev_results(env->shared)[act->ndst - 1], act->to);
	TTI_DEV_ROLLED
	for (int32_t i = tid; i < op->nget; i += nthreads)
		tti_dev_set_end(env, &tti_dev_sources(env->shared)[i + (i >= act->own)],
				tti_dev_told(env, peer_of[op->get + i])->input +
					tti_dev_input_at(env, op->chunk, &act->piece));
	TTI_DEV_ROLLED
	for (int32_t i = tid; i < op->nput; i += nthreads)
		tti_dev_set_end(env, &tti_dev_results(env->shared)[i],
				tti_dev_told(env, peer_of[op->put + i])->output +
					tti_dev_output_at(env, op->chunk, &act->piece));
}

/* Wait for what an operation needs, and say where all its data lies. */
TTI_DEV_FN void tti_dev_find(struct tti_dev_env *env, const struct tti_dev_act *act)
{
	const struct tti_dev_operation *op = &act->op;
	const int32_t *queue_of = env->shared->queue_of;
	const struct tti_dev_call *call = env->shared->call;
	const bool opens = op->sync && (int32_t)env->index < env->shared->prog->nopening;
	struct tti_dev_head own;

	/* A part of no elements has no place. */
	if (act->piece.count > 0)
		tti_dev_find_memory(env, act);
	own.tag = tti_dev_goes_by_chunk(env) ? env->shared->extents[op->chunk].tag : call->tag;
	own.nbytes = opens ? sizeof(struct tti_dev_buffers)
			   : act->piece.whole * (uint64_t)call->type_size;
	TTI_DEV_ROLLED
	for (int32_t i = 0; i < op->nin; i++) {
		const int32_t queue = queue_of[op->in + i];
		struct tti_dev_end *src = &tti_dev_sources(env->shared)[i + (i >= act->own)];

		if (!tti_dev_has_lane(env, queue))
			continue;
		tti_dev_find_message(env, queue, &own, src);
		if (opens && !env->gave_up)
			tti_dev_hear_buffers(env, env->shared->lane_of[queue] / 2, src);
	}
	TTI_DEV_ROLLED
	for (int32_t i = 0; i < op->nout; i++) {
		const int32_t queue = queue_of[op->out + i];
		struct tti_dev_end *dst = &tti_dev_results(env->shared)[i];

		if (!tti_dev_has_lane(env, queue))
			continue;
		tti_dev_find_room(env, queue, &own, dst);
		if (opens && !env->gave_up)
			tti_dev_tell_buffers(env, env->shared->lane_of[queue] / 2, dst);
	}
}

/* What is needed past the barrier. */
TTI_DEV_FN void tti_dev_say(const struct tti_dev_env *env, const struct tti_dev_act *act)
{
	struct tti_dev_work *work = &env->shared->work[env->turn];

	work->count = act->piece.count;
	work->nsrc = act->nsrc;
	work->ndst = act->ndst;
	work->input_at = act->multiplies ? act->own : -1;
	/* One value alone is complete already, or is one of several that are. */
	work->divisor = act->op.final && act->nsrc > 1 ? env->shared->call->divisor : 0;
	work->in = act->op.in;
	work->nin = act->op.nin;
	work->out = act->op.out;
	work->nout = act->op.nout;
}

TTI_DEV_FN void tti_dev_combine(struct tti_dev_env *env)
{
	const struct tti_dev_work *work = &env->shared->work[env->turn];
	const struct tti_dev_call *call = env->shared->call;
	struct tti_dev_pass pass;

	if (work->count == 0 || work->ndst == 0)
		return;
	pass.src = tti_dev_sources(env->shared);
	pass.dst = tti_dev_results(env->shared);
	pass.count = work->count;
	pass.scalar = env->shared->scalar;
	pass.nsrc = work->nsrc;
	pass.ndst = work->ndst;
	pass.input_at = work->input_at;
	pass.type = call->type;
	pass.op = call->op;
	pass.type_size = call->type_size;
	pass.divisor = work->divisor;
	pass.words = env->shared->words;
	tti_dev_reduce(env, &pass);
	if (tti_dev_tid(&env->world) == 0) {
		const uint64_t nbytes = work->count * (uint64_t)call->type_size;

		tti_dev_count(&env->world, (uint64_t)work->nsrc * nbytes,
			      (uint64_t)work->ndst * nbytes);
	}
}

TTI_DEV_FN void tti_dev_post(struct tti_dev_env *env, int32_t in, int32_t nin, int32_t out,
			     int32_t nout)
{
	const int32_t *queue_of = env->shared->queue_of;

	TTI_DEV_ROLLED
	for (int32_t i = 0; i < nout; i++)
		if (tti_dev_has_lane(env, queue_of[out + i]))
			tti_dev_post_message(env, queue_of[out + i]);
	TTI_DEV_ROLLED
	for (int32_t i = 0; i < nin; i++)
		if (tti_dev_has_lane(env, queue_of[in + i]))
			tti_dev_post_room(env, queue_of[in + i]);
}

/* 0: the call ends. */
TTI_DEV_FN int tti_dev_run_act(struct tti_dev_env *env, struct tti_dev_act *act, int32_t data_block)
{
	const struct tti_dev_work *work = &env->shared->work[env->turn];

	tti_dev_place(env, act, data_block);
	if (tti_dev_tid(&env->world) == 0)
		tti_dev_say(env, act);
	tti_dev_find(env, act);
	if (tti_dev_barrier_any(&env->world, env->gave_up))
		return 0;
	tti_dev_combine(env);
	if (!env->shared->words)
		tti_dev_barrier(&env->world);
	else if (tti_dev_barrier_any(&env->world, env->gave_up))
		return 0;
	tti_dev_post(env, work->in, work->nin, work->out, work->nout);
	env->turn ^= 1;
	return 1;
}

/* The halves of an operation that receives and sends on (abi.h): it receives, and then sends what it
 * has written. */
TTI_DEV_FN void tti_dev_take_half(struct tti_dev_operation *op, int32_t half)
{
	if (half == 0) {
		op->nout = 0;
		return;
	}
	op->nin = 0;
	op->from = op->to;
	op->to = TTI_PLACE_NONE;
	op->local_at = 0;
}

/* One operation in one block of data; 0: the call ends. */
TTI_DEV_FN int tti_dev_run_operation(struct tti_dev_env *env, int32_t index, int32_t data_block)
{
	const struct tti_dev_operation *op = &env->shared->operation[index];
	const int32_t halves = env->shared->splits && op->nin > 0 && op->nout > 0 ? 2 : 1;

	env->index = (uint32_t)index;
	TTI_DEV_ROLLED
	for (int32_t half = 0; half < halves; half++) {
		struct tti_dev_act act;

		act.op = *op;
		act.piece = tti_dev_piece_at(env, op, data_block);
		if (halves > 1)
			tti_dev_take_half(&act.op, half);
		else if (op->is_dropped)
			act.op.to = TTI_PLACE_NONE;
		if (!tti_dev_run_act(env, &act, data_block))
			return 0;
	}
	return 1;
}

#endif
