/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_REDUCE_H
#define TTI_DEVICE_REDUCE_H

/* Combine the sources of a pass (pass.h) into its results: by all threads of a block, each of which
 * has some units of 16 bytes.
 *
 * Owner: none. Threads: all of a block alike. */

#include "device/access.h"

#ifndef __CUDACC__
#include "reduce/reduce.h"

/* Combine what the sources have at one unit. */
TTI_DEV_FN struct tti_dev_unit tti_dev_reduce_unit(struct tti_dev_env *env,
						   const struct tti_dev_pass *pass, uint64_t index,
						   uint32_t nbytes)
{
	const tti_reduce_fn fn =
		tti_reduce_get_isa((tutti_type)pass->type, (tutti_op)pass->op, TTI_ISA_SCALAR);
	struct tti_dev_unit value[TTI_DEV_OPERANDS_MAX];
	const void *src[TTI_DEV_OPERANDS_MAX];

	for (int32_t s = 0; s < pass->nsrc; s++) {
		value[s] = tti_dev_take(env, &pass->src[s], index, nbytes);
		src[s] = &value[s];
		if (s == pass->input_at)
			tti_reduce_get_isa((tutti_type)pass->type, TUTTI_PROD, TTI_ISA_SCALAR)(
				&value[s], NULL, (const void *[]){ &value[s], pass->scalar }, 2, 1,
				0);
	}
	if (pass->nsrc > 1)
		fn(value, NULL, src, pass->nsrc, nbytes / (uint32_t)pass->type_size, pass->divisor);
	return value[0];
}
#endif

TTI_DEV_FN void tti_dev_reduce(struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	const uint64_t nbytes = pass->count * (uint64_t)pass->type_size;
	const uint64_t nunits = (nbytes + TTI_DEV_UNIT - 1) / TTI_DEV_UNIT;

	for (uint64_t i = tti_dev_tid(&env->world); i < nunits;
	     i += tti_dev_nthreads(&env->world)) {
		const uint64_t left = nbytes - i * TTI_DEV_UNIT;
		const uint32_t n = left < TTI_DEV_UNIT ? (uint32_t)left : TTI_DEV_UNIT;
#ifdef __CUDACC__
		const struct tti_dev_unit value = tti_dev_take(env, &pass->src[0], i, n);
#else
		const struct tti_dev_unit value = tti_dev_reduce_unit(env, pass, i, n);
#endif

		for (int32_t d = 0; d < pass->ndst; d++)
			tti_dev_put(&pass->dst[d], i, n, value);
	}
}

#endif
