/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/held.h"

#include <stdatomic.h>

#include "engine/host_abi.h"

static _Atomic uint64_t counters[TTI_CUDA_HELD_KINDS];

void tti_cuda_held_add(enum tti_cuda_held_kind kind, int by)
{
	atomic_fetch_add(&counters[kind], (uint64_t)by);
}

void tti_cuda_held(struct tti_cuda_held *out)
{
#define X(name) out->name = atomic_load(&counters[TTI_CUDA_HELD_##name]);
	TTI_CUDA_HELD_MAP(X)
#undef X
}
