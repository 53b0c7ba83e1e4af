/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_MEM_H
#define TTI_UTIL_MEM_H

/* Heap memory; each may fail by fault injection (point "mem").
 * Threads: any. */

#include <stddef.h>

void *tti_alloc(size_t nbytes);                        /* malloc          */
void *tti_zalloc(size_t nbytes);                       /* zeroed          */
void *tti_calloc(size_t count, size_t nbytes);         /* checked product */
void *tti_realloc(void *old, size_t nbytes);           /* old stays on NULL */
void *tti_aligned_zalloc(size_t align, size_t nbytes); /* free: tti_free */
char *tti_strdup(const char *text);
void tti_free(void *memory); /* NULL is fine */

#endif
