/* SPDX-License-Identifier: BSD-3-Clause */
/* What libcuda.so.1 exports beside CUDA's functions: the rest of host_abi.h is the engine's, which
 * dlsym() finds behind this library. */
#include "engine/launch.h"

int tti_cuda_kernel_register(const void *function, const char *name, tti_cuda_kernel_fn run,
			     const size_t *arg_bytes, size_t nargs)
{
	return tti_cuda_runnable_add("tti_cuda_kernel_register", function, name, run, arg_bytes,
				     nargs);
}
