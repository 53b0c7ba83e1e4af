/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_ARENA_H
#define TTI_UTIL_ARENA_H

/* Memory that is freed all at once.
 * Owner: who holds the struct; tti_arena_release() frees all of it.
 * Threads: not synchronised. */

#include <stddef.h>

struct tti_arena {
	struct tti_arena_block *head;
};

/* A zeroed struct is an empty arena. Memory is zeroed and aligned to 16, or to
 * `align` (a power of two). NULL: out of memory. */
void *tti_arena_alloc(struct tti_arena *arena, size_t nbytes);
void *tti_arena_alloc_aligned(struct tti_arena *arena, size_t align, size_t nbytes);
char *tti_arena_strdup(struct tti_arena *arena, const char *text);
void tti_arena_release(struct tti_arena *arena);

#endif
