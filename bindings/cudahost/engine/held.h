/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of what the process has and has not given back (host_abi.h).
 *
 * Threads: any. */
#ifndef TUTTI_CUDAHOST_ENGINE_HELD_H
#define TUTTI_CUDAHOST_ENGINE_HELD_H

/* X(name): fields of struct tti_cuda_held. */
#define TTI_CUDA_HELD_MAP(X) \
	X(allocations)       \
	X(host)              \
	X(registered)        \
	X(opened)            \
	X(pieces)            \
	X(reserved)          \
	X(maps)              \
	X(streams)           \
	X(events)            \
	X(graphs)            \
	X(execs)             \
	X(modules)           \
	X(contexts)          \
	X(objects)           \
	X(descriptors)

enum tti_cuda_held_kind {
#define X(name) TTI_CUDA_HELD_##name,
	TTI_CUDA_HELD_MAP(X)
#undef X
		TTI_CUDA_HELD_KINDS
};

#pragma GCC visibility push(default)

void tti_cuda_held_add(enum tti_cuda_held_kind kind, int by);

#pragma GCC visibility pop

#endif
