/* SPDX-License-Identifier: BSD-3-Clause */
/* One kernel of a GPU: the interpreter with the passes of one family, K_FAMILY. Each has the functions
 * of the interpreter in a namespace of its own, as a compiler would not put a pass that is called by
 * its address where it is called. */

#undef TTI_DEVICE_MEETING_H
#undef TTI_DEVICE_RUN_H
#undef TTI_DEVICE_RUN_BY_CHUNK_H
#undef TTI_DEVICE_RUN_MEMORY_H
#undef TTI_DEVICE_RUN_OPERATION_H

#define K_JOIN_(a, b) a##b
#define K_JOIN(a, b)  K_JOIN_(a, b)
#define K_SPACE       K_JOIN(tutti_, K_FAMILY)
/* Whether it runs calls with by_chunk, which reduce nothing. */
#define K_LISTS_copy  1
#if K_JOIN(K_LISTS_, K_FAMILY)
#define K_LISTS 1
#else
#define K_LISTS 0
#endif

namespace K_SPACE
{

TTI_DEV_FN void tti_dev_reduce(struct tti_dev_env *env, const struct tti_dev_pass *pass)
{
	K_JOIN(tti_dev_pass_, K_FAMILY)(env, pass);
}

TTI_DEV_FN bool tti_dev_goes_by_chunk(const struct tti_dev_env *env)
{
	return K_LISTS && env->shared->call->by_chunk;
}

#include "device/run.h"

} // namespace K_SPACE

/* The block's shared memory: tti_dev_shared_bytes(). */
extern "C" __global__ void __launch_bounds__(TTI_DEV_THREADS_MAX, 1)
	K_JOIN(tutti_run_, K_FAMILY)(const __grid_constant__ struct tti_dev_launch launch)
{
	extern __shared__ __align__(16) unsigned char shared[];
	struct tti_dev_env env;

	env.shared = (struct tti_dev_shared *)shared;
	K_SPACE::tti_dev_run(&env, &launch, blockIdx.x);
}

#undef K_SPACE
#undef K_LISTS_copy
#undef K_LISTS
#undef K_JOIN_
#undef K_JOIN
#undef K_FAMILY
