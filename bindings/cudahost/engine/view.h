/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranges of addresses into which files are mapped, and with TUTTI_CUDAHOST_GUARD=1 a second time.
 *
 * `address` is what a program gets. `reach` is where the bytes are read and written: the same, or
 * with the guard another range, of the same pages, while `address` can be neither read nor written.
 * A child of fork() has none of these mappings, and no core file holds them.
 *
 * Owner: the caller, who releases it. Threads: not synchronised. */
#ifndef TUTTI_CUDAHOST_ENGINE_VIEW_H
#define TUTTI_CUDAHOST_ENGINE_VIEW_H

#include "engine/file.h"

struct tti_cuda_view {
	char *address; /* NULL: there is none */
	char *reach;
	size_t nbytes;
};

/* The numbers of what may be done there. */
enum tti_cuda_access {
	TTI_CUDA_ACCESS_NONE = 0,
	TTI_CUDA_ACCESS_READ = 1,
	TTI_CUDA_ACCESS_BOTH = 3
};

/* Whether the guard is on; EINVAL for a value of the variable other than 0 and 1. Read once. */
int tti_cuda_view_guard(bool *out);

/* Addresses alone, at a multiple of `alignment` (a power of two), at `hint` where that is free. */
int tti_cuda_view_reserve(size_t nbytes, size_t alignment, void *hint, struct tti_cuda_view *out);
void tti_cuda_view_release(struct tti_cuda_view *view);

/* All offsets and sizes are whole pages. What is placed can't be accessed yet. */
int tti_cuda_view_place(const struct tti_cuda_view *view, size_t at, size_t nbytes,
			const struct tti_cuda_file *file, uint64_t from);
int tti_cuda_view_allow(const struct tti_cuda_view *view, size_t at, size_t nbytes,
			enum tti_cuda_access access);
/* The addresses stay reserved. */
int tti_cuda_view_clear(const struct tti_cuda_view *view, size_t at, size_t nbytes);

/* Write zeros where bytes are reached. What was never written is zero and stays without memory: a
 * page fault for each 4 KiB of a large buffer would take longer than all that is done with most of
 * it. ThreadSanitizer does not see that as a write. */
void tti_cuda_view_zero(char *reach, size_t nbytes);

/* reserve(), place(), allow() both, of a part of a file. */
int tti_cuda_view_map(const struct tti_cuda_file *file, uint64_t from, size_t nbytes,
		      size_t alignment, struct tti_cuda_view *out);

#endif
