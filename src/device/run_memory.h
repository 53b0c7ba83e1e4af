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

/* Operations first .. end - 1 are one run: no message is between them. One that notifies, or waits, is a
 * run by itself. */
struct tti_dev_memory {
	int32_t first, end;
	uint32_t has_met;
};

TTI_DEV_FN void tti_dev_begin_memory(struct tti_dev_env *env, struct tti_dev_memory *memory)
{
	memory->first = memory->end = 0;
	memory->has_met = 0;
	env->refused = env->shared->call->inputs == TTI_DEV_UNREACHED;
}

TTI_DEV_FN int32_t tti_dev_end_of_run(const struct tti_dev_env *env, int32_t first)
{
	const struct tti_dev_operation *op = env->shared->operation;
	int32_t end = first + 1;

	TTI_DEV_ROLLED
	while (end < env->shared->prog->noperations && !op[first].sync && !op[end].sync &&
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

TTI_DEV_FN enum tti_dev_next tti_dev_begin_run(struct tti_dev_env *env,
					       struct tti_dev_memory *memory)
{
	const struct tti_dev_program *prog = env->shared->prog;

	/* All threads of all blocks of all ranks find the same. */
	if (memory->end == prog->nopening && !memory->has_met) {
		memory->has_met = 1;
		if (tti_dev_barrier_any(&env->world, env->refused))
			return TTI_DEV_NEXT_OTHER;
		if (env->shared->call->kind && tti_dev_tid(&env->world) == 0)
			*tti_dev_unused(env->shared, env->shared->call) = 0;
	}
	if (memory->end == prog->noperations)
		return TTI_DEV_NEXT_NONE;
	memory->first = memory->end;
	memory->end = tti_dev_end_of_run(env, memory->first);
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
	if (*index == 0 || env->shared->operation[memory->first].sync ||
	    ++*data_block == env->shared->call->nrounds) {
		*data_block = 0;
		next = tti_dev_begin_run(env, memory);
	}
	*index = memory->first;
	return next;
}

#endif
