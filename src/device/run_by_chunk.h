/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_RUN_BY_CHUNK_H
#define TTI_DEVICE_RUN_BY_CHUNK_H

/* Calls in which each chunk is cut by itself and has a tag of its own: lists of sends and receives.
 * Only two ranks know of a transfer, so no order of all of them is free of deadlocks, and each goes
 * as soon as it can, as in src/engine/program.c: a queue takes all blocks of data of an operation,
 * then all of the next one.
 *
 * Again and again each thread looks at its own queues, and the next one in turn that can go is what
 * the block runs:
 *
 *     look      which of the own queues can go
 *     barrier   the one that is next in turn is chosen; none: look again
 *     run       as in run.h, and nothing waits long but for words
 *     move on   the queues of that operation
 *     barrier   where queues stand is everybody's
 *
 * Owner: none. Threads: all functions are called by all threads of a block alike, but for those
 * that look. */

#include "device/run_operation.h"

/* What all threads of a block know alike. */
struct tti_dev_chunks {
	/* Where operations without queues stand. */
	int32_t local_at, local_round;
	/* A place is a queue, or nqueues for what has none: the one that is first in turn, and the one
	 * that runs. */
	int32_t next, place;
	int32_t left;  /* operations, each as often as it has blocks of data */
	uint32_t turn; /* of shared->chosen[] */
};

/* How many blocks of data a chunk has. */
TTI_DEV_FN int32_t tti_dev_rounds_of(const struct tti_dev_env *env, int32_t index)
{
	const struct tti_dev_extent *extent =
		&env->shared->extents[env->shared->operation[index].chunk];

	return extent->count > extent->slice
		       ? (int32_t)((extent->count + extent->slice - 1) / extent->slice)
		       : 1;
}

/* -- Looking --------------------------------------------------------------------------------- */

/* The operation at which a queue stands; -1: it has ended. */
TTI_DEV_FN int32_t tti_dev_head_of(const struct tti_dev_env *env, int32_t queue)
{
	const uint32_t at = tti_dev_lane_at(env, queue)->at;

	return at < (uint32_t)(env->shared->queue[queue].first + env->shared->queue[queue].n)
		       ? env->shared->queued[at]
		       : -1;
}

/* The queue that stands for an operation. */
TTI_DEV_FN int32_t tti_dev_lead_of(const struct tti_dev_env *env, int32_t index)
{
	const struct tti_dev_operation *op = &env->shared->operation[index];

	return op->nin > 0    ? env->shared->queue_of[op->in]
	       : op->nout > 0 ? env->shared->queue_of[op->out]
			      : -1;
}

/* Whether an operation is past a block of data. */
TTI_DEV_FN int tti_dev_is_past(const struct tti_dev_env *env, const struct tti_dev_chunks *list,
			       int32_t index, int32_t round)
{
	const int32_t queue = tti_dev_lead_of(env, index);
	int32_t head, at;

	if (queue >= 0) {
		head = tti_dev_head_of(env, queue);
		at = (int32_t)tti_dev_lane_at(env, queue)->round;
	} else {
		head = list->local_at < env->shared->prog->nlocal
			       ? env->shared->local[list->local_at]
			       : -1;
		at = list->local_round;
	}
	/* Operations of a queue have the order of the program. */
	return head < 0 || head > index || (head == index && at > round);
}

/* Whether all that an operation waits for inside its rank is past a block of data. */
TTI_DEV_FN int tti_dev_is_free(const struct tti_dev_env *env, const struct tti_dev_chunks *list,
			       int32_t index, int32_t round)
{
	TTI_DEV_ROLLED
	for (int32_t i = env->shared->pred_of[index]; i < env->shared->pred_of[index + 1]; i++)
		if (!tti_dev_is_past(env, list, env->shared->pred[i], round))
			return 0;
	return 1;
}

/* Whether a queue stands at that block of data of an operation, and has its message, or room. Nothing is
 * ordered by that: the operation waits for both again (run_operation.h), and has not to wait long. */
TTI_DEV_FN int tti_dev_has_come(const struct tti_dev_env *env, int32_t queue, int32_t index,
				int32_t round)
{
	const struct tti_dev_lane *lane = tti_dev_lane_at(env, queue);
	const uint32_t flag = tti_dev_flag_after(lane->seq);
	const uint64_t *words;
	uint64_t a, b, c, d;

	if (tti_dev_head_of(env, queue) != index || lane->round != (uint32_t)round)
		return 0;
	if (env->shared->queue[queue].is_send)
		return lane->known + lane->nslots > lane->seq ||
		       tti_dev_load_64(TTI_DEV_AT(&env->world, uint64_t, lane->freed)) +
				       lane->nslots >
			       lane->seq;
	if (!env->shared->words)
		return tti_dev_load_64(TTI_DEV_AT(&env->world, uint64_t, lane->full)) > lane->seq;
	words = TTI_DEV_AT(&env->world, uint64_t, tti_dev_words_of(lane, tti_dev_slot_of(lane)));
	tti_dev_load_words(words, &a, &b);
	tti_dev_load_words(words + 2, &c, &d);
	return a >> 32 == flag && b >> 32 == flag && c >> 32 == flag && d >> 32 == flag;
}

/* Whether a queue stands for an operation that can run now. */
TTI_DEV_FN int tti_dev_can_go(const struct tti_dev_env *env, const struct tti_dev_chunks *list,
			      int32_t queue)
{
	const int32_t index = tti_dev_head_of(env, queue);
	const int32_t round = (int32_t)tti_dev_lane_at(env, queue)->round;
	const struct tti_dev_operation *op;

	if (index < 0 || tti_dev_lead_of(env, index) != queue)
		return 0;
	op = &env->shared->operation[index];
	TTI_DEV_ROLLED
	for (int32_t i = 0; i < op->nin; i++)
		if (!tti_dev_has_come(env, env->shared->queue_of[op->in + i], index, round))
			return 0;
	TTI_DEV_ROLLED
	for (int32_t i = 0; i < op->nout; i++)
		if (!tti_dev_has_come(env, env->shared->queue_of[op->out + i], index, round))
			return 0;
	return tti_dev_is_free(env, list, index, round);
}

TTI_DEV_FN int tti_dev_can_go_locally(const struct tti_dev_env *env,
				      const struct tti_dev_chunks *list)
{
	return list->local_at < env->shared->prog->nlocal &&
	       tti_dev_is_free(env, list, env->shared->local[list->local_at], list->local_round);
}

/* How soon a place has its turn: more is sooner, and 0 is never. */
TTI_DEV_FN uint32_t tti_dev_turn_of(const struct tti_dev_env *env,
				    const struct tti_dev_chunks *list, int32_t place)
{
	const int32_t nplaces = env->shared->prog->nqueues + 1;
	const int32_t after = place - list->next;

	return (uint32_t)(nplaces - (after < 0 ? after + nplaces : after));
}

/* Propose the place, of those that this thread looks at, that can go and has its turn first. */
TTI_DEV_FN void tti_dev_propose(const struct tti_dev_env *env, const struct tti_dev_chunks *list)
{
	const int32_t nthreads = (int32_t)tti_dev_nthreads(&env->world);
	const int32_t tid = (int32_t)tti_dev_tid(&env->world);
	uint32_t best = 0;

	TTI_DEV_ROLLED
	for (int32_t queue = tid; queue < env->shared->prog->nqueues; queue += nthreads) {
		const uint32_t turn = tti_dev_turn_of(env, list, queue);

		if (turn > best && tti_dev_can_go(env, list, queue))
			best = turn;
	}
	if (tid == 0 && tti_dev_can_go_locally(env, list)) {
		const uint32_t turn = tti_dev_turn_of(env, list, env->shared->prog->nqueues);

		best = turn > best ? turn : best;
	}
	if (best)
		tti_dev_raise(&env->shared->chosen[list->turn], best);
}

/* -- Waiting --------------------------------------------------------------------------------- */

/* The queue that is waited for, of those that wait for nothing inside the rank: one whose message is
 * missing, else one without room; -1: none. */
TTI_DEV_FN int32_t tti_dev_blame(const struct tti_dev_env *env, const struct tti_dev_chunks *list)
{
	int32_t blamed = -1;

	TTI_DEV_ROLLED
	for (int32_t queue = 0; queue < env->shared->prog->nqueues; queue++) {
		const int32_t index = tti_dev_head_of(env, queue);
		const int32_t round = (int32_t)tti_dev_lane_at(env, queue)->round;

		if (index < 0 || !tti_dev_is_free(env, list, index, round) ||
		    tti_dev_has_come(env, queue, index, round))
			continue;
		if (!env->shared->queue[queue].is_send)
			return queue;
		if (blamed < 0)
			blamed = queue;
	}
	return blamed;
}

/* Nothing can go. Thread 0 looks whether the call ends, and says what the block waits for. */
TTI_DEV_FN void tti_dev_idle(struct tti_dev_env *env, const struct tti_dev_chunks *list,
			     struct tti_dev_wait *wait)
{
	int32_t queue = -1;

	if (tti_dev_tid(&env->world) != 0) {
		tti_dev_relax(&env->world, ++wait->looks);
		return;
	}
	if ((wait->looks + 1) % TTI_DEV_LOOKS == 0)
		queue = tti_dev_blame(env, list);
	if (queue >= 0) {
		const int32_t index = tti_dev_head_of(env, queue);

		env->index = (uint32_t)index;
		env->round = tti_dev_lane_at(env, queue)->round;
	}
	tti_dev_wait_on(env, wait, queue < 0 ? -1 : env->shared->queue[queue].peer,
			queue < 0 ? 0 : (uint32_t)env->shared->queue[queue].is_send);
}

/* -- Running --------------------------------------------------------------------------------- */

TTI_DEV_FN void tti_dev_begin_chunks(struct tti_dev_env *env, struct tti_dev_chunks *list)
{
	const struct tti_dev_program *prog = env->shared->prog;

	list->local_at = list->local_round = list->next = list->left = 0;
	list->turn = 0;
	TTI_DEV_ROLLED
	for (int32_t i = 0; i < prog->noperations; i++)
		list->left += tti_dev_rounds_of(env, i);
	TTI_DEV_ROLLED
	for (int32_t queue = 0; queue < prog->nqueues; queue++)
		if (tti_dev_has_lane(env, queue)) {
			tti_dev_lane_at(env, queue)->at = (uint32_t)env->shared->queue[queue].first;
			tti_dev_lane_at(env, queue)->round = 0;
		}
	tti_dev_barrier(&env->world);
}

/* The place that is chosen; -1: none can go. */
TTI_DEV_FN int32_t tti_dev_choose(struct tti_dev_env *env, struct tti_dev_chunks *list)
{
	struct tti_dev_shared *shared = env->shared;
	const int32_t nplaces = env->shared->prog->nqueues + 1;
	const int32_t turn = (int32_t)tti_dev_load_shared(&shared->chosen[list->turn]);
	int32_t place;

	/* All have read what was chosen the time before, and nobody writes there before the next
	 * barrier. */
	list->turn = (list->turn + 1) % 3;
	if (tti_dev_tid(&env->world) == 0)
		tti_dev_store_shared(&shared->chosen[(list->turn + 1) % 3], 0);
	if (turn == 0)
		return -1;
	place = list->next + nplaces - turn;
	return place < nplaces ? place : place - nplaces;
}

/* Wait until an operation can go. */
TTI_DEV_FN enum tti_dev_next tti_dev_next_of_chunks(struct tti_dev_env *env,
						    struct tti_dev_chunks *list, int32_t *index,
						    int32_t *data_block)
{
	struct tti_dev_wait wait = { 0, 0 };

	if (list->left == 0)
		return TTI_DEV_NEXT_NONE;
	TTI_DEV_ROLLED
	for (;;) {
		tti_dev_propose(env, list);
		if (tti_dev_barrier_any(&env->world, env->gave_up))
			return TTI_DEV_NEXT_ENDS;
		list->place = tti_dev_choose(env, list);
		if (list->place >= 0)
			break;
		tti_dev_idle(env, list, &wait);
	}
	tti_dev_wait_over(env, &wait);
	if (list->place == env->shared->prog->nqueues) {
		*index = env->shared->local[list->local_at];
		*data_block = list->local_round;
	} else {
		*index = tti_dev_head_of(env, list->place);
		*data_block = (int32_t)tti_dev_lane_at(env, list->place)->round;
	}
	return TTI_DEV_NEXT_RUNS;
}

/* A queue is past a block of data: on to the next one, or to the next operation. */
TTI_DEV_FN void tti_dev_leave(struct tti_dev_env *env, int32_t queue, int32_t nrounds)
{
	struct tti_dev_lane *lane;

	if (!tti_dev_has_lane(env, queue))
		return;
	lane = tti_dev_lane_at(env, queue);
	if (++lane->round >= (uint32_t)nrounds) {
		lane->round = 0;
		lane->at++;
	}
}

/* That operation has run. */
TTI_DEV_FN void tti_dev_past_chunk(struct tti_dev_env *env, struct tti_dev_chunks *list,
				   int32_t index)
{
	const struct tti_dev_operation *op = &env->shared->operation[index];
	const int32_t nrounds = tti_dev_rounds_of(env, index);

	TTI_DEV_ROLLED
	for (int32_t i = 0; i < op->nin; i++)
		tti_dev_leave(env, env->shared->queue_of[op->in + i], nrounds);
	TTI_DEV_ROLLED
	for (int32_t i = 0; i < op->nout; i++)
		tti_dev_leave(env, env->shared->queue_of[op->out + i], nrounds);
	if (list->place == env->shared->prog->nqueues && ++list->local_round == nrounds) {
		list->local_round = 0;
		list->local_at++;
	}
	list->next = list->place == env->shared->prog->nqueues ? 0 : list->place + 1;
	list->left--;
	tti_dev_barrier(&env->world);
}

#endif
