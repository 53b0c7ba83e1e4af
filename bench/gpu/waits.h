/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BENCH_GPU_WAITS_H
#define BENCH_GPU_WAITS_H

/* Which calls of CUDA's driver wait for a kernel that runs: the calls that are tried, and what they
 * act on. They are made one after another in the order of the table, so that each has what earlier
 * ones have made.
 *
 * Owner: waits_open() to the end of the process. Threads: one call at a time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpu/cuda_impl.h"

/* Functions that Tutti does not use: X(field, symbol, arguments). */
#define WAITS_MORE_MAP(X)                                                   \
	X(peer_end, cuCtxDisablePeerAccess, (void *context))                \
	X(module_load, cuModuleLoadData, (void **out, const void *image))   \
	X(module_unload, cuModuleUnload, (void *module))                    \
	X(event_query, cuEventQuery, (void *event))                         \
	X(capture_begin, cuStreamBeginCapture_v2, (void *stream, int mode)) \
	X(capture_end, cuStreamEndCapture, (void *stream, void **graph))    \
	X(graph_make, cuGraphInstantiateWithFlags,                          \
	  (void **out, void *graph, unsigned long long flags))              \
	X(graph_launch, cuGraphLaunch, (void *exec, void *stream))          \
	X(exec_end, cuGraphExecDestroy, (void *exec))                       \
	X(graph_end, cuGraphDestroy, (void *graph))

struct waits {
	const struct tti_cuda_functions *call;
	struct {
#define X(field, symbol, arguments) int(*field) arguments;
		WAITS_MORE_MAP(X)
#undef X
	} more;
	struct tti_gpu *gpu;      /* of all calls */
	struct tti_gpu *other;    /* NULL: there is none that gpu reaches */
	void *image;              /* code with the kernels below */
	void *stream;             /* the kernel that runs is in none of this device's */
	struct tti_cuda_ipc lent; /* memory of another process */

	void *pages; /* memory of malloc */
	void *made_stream, *event, *module, *library, *kernel, *first, *graph, *exec;
	void *host;
	uint64_t at, pool_at, map_at, ipc_at;
	tti_cuda_handle handle, imported;
	size_t map_bytes;
	uint64_t words_at; /* zeroed, of the device */
	int fd;
};

/* Kernels without code of this program: the first takes the address of a word, and runs until that
 * is not 0; the others do nothing. */
#define WAITS_SPIN    "waits_spin"
#define WAITS_NOTHING "waits_nothing"
#define WAITS_FIRST   "waits_first"
#define WAITS_BYTES   ((size_t)4 << 20)

struct waits_call {
	const char *name;
	const char
		*tutti; /* what Tutti makes it for while kernels of peers may run; "-": nothing */
	int (*make)(struct waits *w); /* what the driver returns */
	bool in_stream;               /* what it has put into `stream` is waited for, too */
	bool needs_other;             /* a second GPU */
};

extern const struct waits_call waits_calls[];
extern const size_t waits_ncalls;

/* All that the calls need, with the context of the GPU on this thread. */
void waits_open(struct waits *w);

#endif
