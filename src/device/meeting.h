/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_MEETING_H
#define TTI_DEVICE_MEETING_H

/* The first meeting of a memory program (run_memory.h): ranks tell each other where their buffers lie, in
 * messages of one unit.
 *
 * Owner: none. Threads: the one that has the lane of a message. */

#include "device/access.h"

/* What this block was told of the buffers of a peer. */
TTI_DEV_FN struct tti_dev_buffers *tti_dev_told(const struct tti_dev_env *env, int32_t peer)
{
	return TTI_DEV_AT(&env->world, struct tti_dev_buffers, env->shared->call->told) +
	       env->shared->block * (uint64_t)env->shared->prog->n + (uint64_t)peer;
}

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
	tti_dev_store(tti_dev_place_of(out), &unit, TTI_DEV_UNIT);
}

/* Notes whether the peer is reached. */
TTI_DEV_FN void tti_dev_hear_buffers(struct tti_dev_env *env, int32_t peer,
				     const struct tti_dev_end *in)
{
	struct tti_dev_buffers *told = tti_dev_told(env, peer);
	struct tti_dev_unit unit;

	tti_dev_load(&unit, tti_dev_place_of(in), TTI_DEV_UNIT);
	told->input = unit.part[0];
	told->output =
		unit.part[1] ? unit.part[1] - tti_dev_row_of(env, env->shared->prog->rank) : 0;
	env->refused |= unit.part[0] == TTI_DEV_UNREACHED;
}

#endif
