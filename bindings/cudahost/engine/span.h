/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of ranges of addresses that do not overlap, searched in logarithmic time.
 *
 * A set is a pointer that is NULL at first. The first member of what is in it is a span.
 *
 * Owner: the caller has the spans. Threads: not synchronised. */
#ifndef TUTTI_CUDAHOST_ENGINE_SPAN_H
#define TUTTI_CUDAHOST_ENGINE_SPAN_H

#include <stdbool.h>
#include <stddef.h>

struct tti_cuda_span {
	char *base;
	size_t nbytes; /* at least 1 */
};

/* One that has any of these bytes, or NULL. */
void *tti_cuda_span_find(void *const *set, const void *address, size_t nbytes);
/* False: out of memory. */
bool tti_cuda_span_add(void **set, struct tti_cuda_span *span);
void tti_cuda_span_remove(void **set, const struct tti_cuda_span *span);

#endif
