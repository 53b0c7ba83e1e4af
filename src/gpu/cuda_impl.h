/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_GPU_CUDA_IMPL_H
#define TTI_GPU_CUDA_IMPL_H

/* What the files cuda*.c share. */

#include <stdatomic.h>

#include "gpu/cuda.h"
#include "gpu/cuda_abi.h"
#include "util/error.h"

struct tti_gpu_driver {
	void *library;
	char *path;
	int version, count;
	int pid; /* that opened it: CUDA does not work in children */
	bool is_host;
	struct tti_cuda_functions call;
};

struct tti_gpu {
	struct tti_gpu *next; /* of those that are open */
	struct tti_gpu_driver *driver;
	tti_cuda_device device;
	tti_cuda_context context;
	void *stream;     /* for what is waited for: one that waits for no other */
	atomic_int users; /* who opened it, and memory that outlives that */
	struct tti_gpu_facts facts;
};

/* One counter for each field of struct tti_gpu_held. */
struct tti_gpu_counts {
	atomic_int gpus, memories, maps, fds, pinned, streams, events, libraries;
};
extern struct tti_gpu_counts tti_gpu_counts;

static inline void tti_gpu_count(atomic_int *counter, int by)
{
	atomic_fetch_add_explicit(counter, by, memory_order_relaxed);
}

/* An error of `function`. The text is "WHAT: FUNCTION: NAME, TEXT; REMEDY", and for a device the
 * device comes first. tti_gpu_fail() logs it. */
TUTTI_CHECKED TUTTI_PRINTF(4, 5) tutti_status
	tti_gpu_fail(const struct tti_gpu *gpu, int rc, const char *function, const char *fmt, ...);
TUTTI_CHECKED TUTTI_PRINTF(4, 5) tutti_status
	tti_gpu_fail_quiet(const struct tti_gpu *gpu, int rc, const char *function, const char *fmt,
			   ...);
TUTTI_CHECKED TUTTI_PRINTF(4, 5) tutti_status
	tti_gpu_driver_fail(const struct tti_gpu_driver *driver, int rc, const char *function,
			    const char *fmt, ...);

/* The device's context is that of this thread from enter() to leave(), and then what was before.
 * is_relaxed: calls that a capture forbids are allowed meanwhile; what they do is not captured. */
struct tti_gpu_scope {
	tti_cuda_context before;
	int mode;
	bool is_relaxed, is_other;
};
TUTTI_CHECKED tutti_status tti_gpu_enter(const struct tti_gpu *gpu, bool is_relaxed,
					 struct tti_gpu_scope *out);
void tti_gpu_leave(const struct tti_gpu *gpu, const struct tti_gpu_scope *scope);

/* Nobody else of the process has the device open any more: free what was set aside. */
void tti_gpu_spares_free(struct tti_gpu *gpu);
/* Memory of its own, in its context: what was set aside, or cuMemAlloc(), whose error it gives. */
int tti_gpu_take(const struct tti_gpu *gpu, size_t nbytes, uint64_t *out);

/* For what releases: an error of something before is told by whatever call comes next, which has
 * done nothing then. So a call that failed is made once more, and the second error is logged. */
bool tti_gpu_enter_again(const struct tti_gpu *gpu, struct tti_gpu_scope *out);
void tti_gpu_not_released(const struct tti_gpu *gpu, int rc, const char *function);
/* The driver's `call` of that name takes an object back, or what is at an address. */
void tti_gpu_give_back(const struct tti_gpu *gpu, int (*call)(void *), void *object,
		       const char *function);
void tti_gpu_give_back_at(const struct tti_gpu *gpu, int (*call)(uint64_t), uint64_t at,
			  const char *function);

#endif
