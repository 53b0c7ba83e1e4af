/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_RUN_H
#define TTI_DEVICE_RUN_H

/* The interpreter of compiled programs: one source, a kernel under nvcc and threads of the host
 * under a C compiler (world.h). A block of threads runs the operations of its program one after the
 * other, which never deadlocks (coll/compile/compile.h).
 *
 * A call goes in rounds, as queues of the engine do: in round r an operation of stage s works on
 * block of data r - skew * s. Calls with by_chunk go
 * otherwise (run_by_chunk.h), and so do memory programs (run_memory.h).
 *
 * Owner: none. Threads: all functions are called by all threads of a block alike. */

#include "device/run_by_chunk.h"
#include "device/run_memory.h"
#include "device/run_operation.h"

/* -- The order of operations ----------------------------------------------------------------- */

/* So many operations without a wait, and the block looks whether the call ends. */
#define TTI_DEV_UNWATCHED 64

/* What runs next, and in which block of data. */
struct tti_dev_order {
	int32_t index, data_block;
	int32_t round;
	uint32_t unwatched;
	struct tti_dev_chunks list;   /* by_chunk */
	struct tti_dev_memory memory; /* of memory programs */
};

TTI_DEV_FN void tti_dev_begin_order(struct tti_dev_env *env, struct tti_dev_order *order)
{
	order->index = -1;
	order->data_block = order->round = 0;
	order->unwatched = 0;
	if (tti_dev_goes_by_chunk(env))
		tti_dev_begin_chunks(env, &order->list);
	if (env->shared->prog->is_memory)
		tti_dev_begin_memory(env, &order->memory);
}

/* Operations in their order, round after round. */
TTI_DEV_FN enum tti_dev_next tti_dev_next_of_rounds(const struct tti_dev_env *env,
						    struct tti_dev_order *order)
{
	const struct tti_dev_program *prog = env->shared->prog;
	const int32_t nrounds = env->shared->call->nrounds;
	const int32_t end = nrounds + prog->skew * (prog->nstages - 1);

	TTI_DEV_ROLLED
	for (;;) {
		if (++order->index >= prog->noperations) {
			order->index = 0;
			order->round++;
		}
		if (order->round >= end || prog->noperations == 0)
			return TTI_DEV_NEXT_NONE;
		order->data_block =
			order->round - prog->skew * env->shared->operation[order->index].stage;
		if (order->data_block >= 0 && order->data_block < nrounds)
			return TTI_DEV_NEXT_RUNS;
	}
}

TTI_DEV_FN enum tti_dev_next tti_dev_next_of(struct tti_dev_env *env, struct tti_dev_order *order)
{
	/* Whoever never waits long has to see a stop as well. */
	if (++order->unwatched % TTI_DEV_UNWATCHED == 0 && tti_dev_tid(&env->world) == 0)
		tti_dev_look_up(env, -1, 0, 0);
	if (tti_dev_goes_by_chunk(env))
		return tti_dev_next_of_chunks(env, &order->list, &order->index, &order->data_block);
	if (env->shared->prog->is_memory)
		return tti_dev_next_of_memory(env, &order->memory, &order->index,
					      &order->data_block);
	return tti_dev_next_of_rounds(env, order);
}

/* -- One call -------------------------------------------------------------------------------- */

/* What inputs are multiplied by, as it is now, aligned or not. By one thread. */
TTI_DEV_FN void tti_dev_take_scalar(struct tti_dev_env *env, const struct tti_dev_call *call)
{
	unsigned char *to = (unsigned char *)env->shared->scalar;
	const unsigned char *from =
		call->scalar_at ? TTI_DEV_AT(&env->world, const unsigned char, call->scalar_at)
				: (const unsigned char *)call->scalar;

	TTI_DEV_ROLLED
	for (int32_t i = 0; i < call->type_size; i++)
		to[i] = from[i];
}

/* A call that the block runs. By one thread. */
TTI_DEV_FN void tti_dev_begin_call(struct tti_dev_env *env, const struct tti_dev_call *call)
{
	const struct tti_dev_program *prog =
		TTI_DEV_AT(&env->world, const struct tti_dev_program, call->program);
	struct tti_dev_shared *to = env->shared;
	const int32_t *lane_of = (const int32_t *)((const char *)prog + prog->lane_of);
	const char *base = (const char *)prog;

	to->call = call;
	if (call->has_scalar)
		tti_dev_take_scalar(env, call);
	to->lane = TTI_DEV_AT(&env->world, struct tti_dev_lane, call->lanes) +
		   (uint64_t)to->block * 2 * (uint64_t)prog->n;
	to->extents = call->extents
			      ? TTI_DEV_AT(&env->world, const struct tti_dev_extent, call->extents)
			      : (const struct tti_dev_extent *)0;
	to->scratch = call->scratch + to->block * (uint64_t)call->window *
					      (uint64_t)prog->nscratch * call->part_bytes;
	to->splits = prog->nqueues > 0 && to->lane[lane_of[0]].nslots < 2;
	/* Words order nothing but themselves, and messages of memory programs order memory. */
	to->words = call->words && !prog->is_memory;
	to->program = (const uint64_t *)0;
	if (prog->nbytes <= TTI_DEV_KEPT_BYTES) {
		to->program = (const uint64_t *)prog;
		base = (const char *)to->kept;
	}
	to->kept_lane = prog->nqueues <= TTI_DEV_KEPT_LANES
				? (struct tti_dev_lane *)(to->kept + TTI_DEV_KEPT_BYTES / 8)
				: (struct tti_dev_lane *)0;
	to->prog = (const struct tti_dev_program *)base;
	to->operation = (const struct tti_dev_operation *)(base + prog->operations);
	to->queue_of = (const int32_t *)(base + prog->queue_of);
	to->lane_of = (const int32_t *)(base + prog->lane_of);
	to->peer_of = (const int32_t *)(base + prog->peer_of);
	to->queue = (const struct tti_queue *)(base + prog->queues);
	to->queued = (const int32_t *)(base + prog->queued);
	to->pred_of = (const int32_t *)(base + prog->pred_of);
	to->pred = (const int32_t *)(base + prog->pred);
	to->local = (const int32_t *)(base + prog->local);
}

/* Keep what a block keeps of its call, which one thread has begun. */
TTI_DEV_FN void tti_dev_keep(struct tti_dev_env *env)
{
	const struct tti_dev_shared *shared = env->shared;
	const uint32_t tid = tti_dev_tid(&env->world), nthreads = tti_dev_nthreads(&env->world);

	tti_dev_barrier(&env->world);
	if (shared->program) {
		const uint32_t nbytes = ((const struct tti_dev_program *)shared->program)->nbytes;

		TTI_DEV_ROLLED
		for (uint32_t i = tid; i < nbytes / 8; i += nthreads)
			shared->kept[i] = shared->program[i];
		tti_dev_barrier(&env->world);
	}
	if (!shared->kept_lane)
		return;
	TTI_DEV_ROLLED
	for (int32_t queue = 0; queue < shared->prog->nqueues; queue++)
		if (tti_dev_has_lane(env, queue))
			shared->kept_lane[queue] = shared->lane[shared->lane_of[queue]];
}

/* Where lanes stand is for the next call. */
TTI_DEV_FN void tti_dev_put_back(struct tti_dev_env *env)
{
	const struct tti_dev_shared *shared = env->shared;

	if (!shared->kept_lane)
		return;
	TTI_DEV_ROLLED
	for (int32_t queue = 0; queue < shared->prog->nqueues; queue++)
		if (tti_dev_has_lane(env, queue)) {
			struct tti_dev_lane *lane = &shared->lane[shared->lane_of[queue]];

			lane->seq = shared->kept_lane[queue].seq;
			lane->known = shared->kept_lane[queue].known;
		}
}

/* Never RUNS. All orders come to the one place where an operation runs, as a kernel would have its code
 * again at each. */
TTI_DEV_FN enum tti_dev_next tti_dev_run_call(struct tti_dev_env *env)
{
	struct tti_dev_order order;

	tti_dev_begin_order(env, &order);
	TTI_DEV_ROLLED
	for (;;) {
		const enum tti_dev_next next = tti_dev_next_of(env, &order);

		if (next != TTI_DEV_NEXT_RUNS)
			return next;
		env->round = (uint32_t)order.data_block;
		if (!tti_dev_run_operation(env, order.index, order.data_block))
			return TTI_DEV_NEXT_ENDS;
		if (tti_dev_goes_by_chunk(env))
			tti_dev_past_chunk(env, &order.list, order.index);
	}
}

/* Whether a call asks if all buffers are reached; if not, its fallback runs. All blocks of all ranks
 * count the same calls, and so decide alike. By one thread. */
TTI_DEV_FN uint32_t tti_dev_asks(const struct tti_dev_shared *shared,
				 const struct tti_dev_call *call)
{
	uint32_t unused;

	if (!call->kind)
		return 1;
	unused = (*tti_dev_unused(shared, call))++;
	return unused < TTI_DEV_ASK_ALWAYS || unused % TTI_DEV_ASK_EVERY == 0;
}

/* A block of a graph says that it runs. Once its communicator ends, no peer reaches what a memory program
 * would tell it of: then it ends before its first message. By one thread. */
TTI_DEV_FN void tti_dev_say_that_it_runs(struct tti_dev_env *env, const struct tti_dev_call *call)
{
	struct tti_dev_shared *shared = env->shared;
	uint32_t *runs = &shared->control->runs[shared->block];

	if (!call->has_fallback) {
		tti_dev_store_32(runs, 1);
	} else if (tti_dev_store_and_load_32(runs, 1, &shared->control->stop)) {
		tti_dev_raise(&shared->verdict, TTI_DEV_STOPPED);
		env->gave_up = 1;
	}
}

/* Begin a block of `call`; gives the call that runs. By one thread. */
TTI_DEV_FN const struct tti_dev_call *tti_dev_begin(struct tti_dev_env *env,
						    const struct tti_dev_launch *launch,
						    const struct tti_dev_call *call, uint32_t block)
{
	struct tti_dev_shared *to = env->shared;

	to->block = block % launch->nblocks;
	to->nblocks = launch->nblocks;
	to->noperands = launch->noperands;
	to->kept = (uint64_t *)(tti_dev_results(to) + launch->noperands);
	to->control = TTI_DEV_AT(&env->world, struct tti_dev_control, call->control);
	to->state = TTI_DEV_AT(&env->world, struct tti_dev_state, call->state);
	to->verdict = TTI_DEV_RUNS;
	to->shown = 0;
	to->chosen[0] = to->chosen[1] = to->chosen[2] = 0;
	if (!call->done)
		tti_dev_say_that_it_runs(env, call);
	return tti_dev_asks(to, call) ? call : call + TTI_DEV_CALLS_MAX;
}

/* A block has ended: the last one of its rank says so. By one thread. */
TTI_DEV_FN void tti_dev_end(struct tti_dev_env *env, const struct tti_dev_call *call,
			    uint32_t result)
{
	struct tti_dev_state *state = env->shared->state;

	if (!call->done)
		tti_dev_store_release_32(&env->shared->control->runs[env->shared->block], 0);
	tti_dev_raise(&state->result, result);
	if (tti_dev_add_ordered(&state->ended, 1) + 1 != env->shared->nblocks)
		return;
	result = tti_dev_raise(&state->result, 0);
	state->ended = 0;
	state->result = 0;
	state->reported = 0;
	if (call->done)
		tti_dev_store_release(TTI_DEV_AT(&env->world, uint64_t, call->done),
				      call->done_value << 8 | result);
}

/* All threads of block `block` of a launch. env->world is set up, and env->shared is memory of the
 * block, tti_dev_shared_bytes(), aligned to 16. */
TTI_DEV_FN void tti_dev_run(struct tti_dev_env *env, const struct tti_dev_launch *launch,
			    uint32_t block)
{
	const struct tti_dev_call *first = &launch->call[block / launch->nblocks], *call = first;
	enum tti_dev_next next;

	env->gave_up = env->index = env->round = env->turn = 0;
	if (tti_dev_tid(&env->world) == 0)
		call = tti_dev_begin(env, launch, first, block);
	TTI_DEV_ROLLED
	do {
		if (tti_dev_tid(&env->world) == 0)
			tti_dev_begin_call(env, call);
		tti_dev_keep(env);
		next = tti_dev_run_call(env);
		tti_dev_put_back(env);
		/* All threads have posted what they had to. */
		tti_dev_barrier(&env->world);
		call = first + TTI_DEV_CALLS_MAX;
	} while (next == TTI_DEV_NEXT_OTHER);
	if (tti_dev_tid(&env->world) == 0)
		tti_dev_end(env, first,
			    next == TTI_DEV_NEXT_ENDS ? tti_dev_load_shared(&env->shared->verdict)
			    : env->shared->prog->is_memory ? TTI_DEV_DIRECT
							   : TTI_DEV_DONE);
}

#endif
