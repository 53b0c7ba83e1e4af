/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of libcudart.so know of each other. They are compiled twice, with
 * TTI_CUDART_MAJOR 12 and 13.
 *
 * calls.c makes the exported functions of functions.def; tti_<name>() is the body of each. */
#ifndef TUTTI_CUDAHOST_RUNTIME_RUNTIME_H
#define TUTTI_CUDAHOST_RUNTIME_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuda_abi.h"
#include "engine/copy.h"
#include "engine/device.h"
#include "engine/event.h"
#include "engine/graph.h"
#include "engine/host_abi.h"
#include "engine/memory.h"
#include "engine/object.h"
#include "engine/pool.h"
#include "engine/stream.h"

#define TTI_API __attribute__((visibility("default")))

#if TTI_CUDART_MAJOR == 13
#define TTI_CUDART_VERSION 13000
#define BOTH(...)          __VA_ARGS__
#define ONLY12(...)
#define ONLY13(...) __VA_ARGS__
#elif TTI_CUDART_MAJOR == 12
#define TTI_CUDART_VERSION 12090
#define BOTH(...)          __VA_ARGS__
#define ONLY12(...)        __VA_ARGS__
#define ONLY13(...)
#else
#error "TTI_CUDART_MAJOR is to be 12 or 13"
#endif

/* Numbers of errors by NVIDIA's names. */
enum tti_cudart_error {
#define ERROR(name, number, text) TTI_##name = (number),
#include "runtime/errors.def"
#undef ERROR
};

/* -- Prototypes --------------------------------------------------------------------------- */

#define TTI_UNPACK(...) __VA_ARGS__

#define SAFE(name, majors, params, args, text) \
	majors(int tti_##name params; TTI_API int name params;)
#define CALL(name, majors, params, args, text)  SAFE(name, majors, params, args, text)
#define ASKS(name, majors, params, args, text)  SAFE(name, majors, params, args, text)
#define WAITS(name, majors, params, args, text) SAFE(name, majors, params, args, text)
#define QUEUED(name, suffix, majors, params, args, text)                                    \
	majors(int tti_##name(bool per_thread, TTI_UNPACK params); TTI_API int name params; \
	       TTI_API int name##suffix params;)
#define PLAIN(name, majors, result, params, text) majors(TTI_API result name params;)
#define REFUSED(name, majors, remedy)             majors(TTI_API int name(void);)
#define REFUSED_QUEUED(name, suffix, majors, remedy) \
	majors(TTI_API int name(void); TTI_API int name##suffix(void);)
#include "runtime/functions.def"
#undef SAFE
#undef ASKS
#undef CALL
#undef WAITS
#undef QUEUED
#undef PLAIN
#undef REFUSED
#undef REFUSED_QUEUED

/* -- Errors ------------------------------------------------------------------------------- */

/* Keep an error as this thread's last one; returns it. */
int tti_cudart_leave(int error);

/* 0, or NOT PERMITTED where this thread runs a host function. */
int tti_cudart_enter(const char *name);

/* A text for a pointer that must not be NULL; EINVAL. */
int tti_cudart_null(const char *function, const char *what);

/* EDEVICE with a text where there is no such device. */
int tti_cudart_check_device(const char *function, int device);

/* -- Streams ------------------------------------------------------------------------------ */

bool tti_cudart_is_captured(struct tti_cuda_stream *stream);

/* A call of the program's function in the order of a stream. EINVAL, ENOMEM. */
int tti_cudart_host_job(const char *function, const struct tti_cu_host_node *host,
			struct tti_cuda_job *out);

/* 0, or INVALID MEMCPY DIRECTION. */
int tti_cudart_check_kind(const char *function, int kind);

/* A copy as cudaMemcpy3D() describes it. EINVAL with a text. */
int tti_cudart_copy3d(const char *function, const struct tti_cu_copy3d *from,
		      struct tti_cuda_copy *out);

/* -- Kernels ------------------------------------------------------------------------------ */

/* A launch of a kernel, with copies of its arguments. EFUNCTION with a text where it cannot run
 * on the host; `is_told`: the program gets the error of this call. */
int tti_cudart_kernel_job(const char *caller, const struct tti_cu_kernel_node *launch, bool is_told,
			  struct tti_cuda_job *out);

/* What a node launches. false: it is of another kind. */
bool tti_cudart_node_kernel(const struct tti_cuda_node *node, struct tti_cu_kernel_node *out);

/* -- Graphs ------------------------------------------------------------------------------- */

/* EINVAL for edges of a kind that only kernels on a GPU have. NULL: plain ones. */
int tti_cudart_check_edges(const char *function, const struct tti_cu_edge *edges, size_t n);

#endif
