/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/arena.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "util/error.h"
#include "util/mem.h"

/* The first block, and the last of those that are each twice as large as the one before:
 * many arenas hold little. */
#define BLOCK_LEAST 512
#define BLOCK_MOST  8192

struct tti_arena_block {
	struct tti_arena_block *next;
	size_t used, size;
	_Alignas(16) unsigned char bytes[];
};

/* The next free address of `block` at `align` with nbytes behind it, or NULL. */
static void *place(struct tti_arena_block *block, size_t align, size_t nbytes)
{
	const uintptr_t at = (uintptr_t)(block->bytes + block->used);
	const size_t skip = (size_t)(-at & (align - 1));

	if (skip > block->size - block->used || nbytes > block->size - block->used - skip)
		return NULL;
	block->used += skip + nbytes;
	return block->bytes + (block->used - nbytes);
}

static size_t next_size(const struct tti_arena *arena)
{
	const size_t size = arena->head ? arena->head->size : BLOCK_LEAST / 2;

	return size < BLOCK_MOST / 2 ? 2 * size : BLOCK_MOST;
}

void *tti_arena_alloc_aligned(struct tti_arena *arena, size_t align, size_t nbytes)
{
	struct tti_arena_block *block;
	size_t size = next_size(arena);
	bool is_apart;
	void *memory;

	tti_assert(align && !(align & (align - 1)));
	if (nbytes == 0)
		nbytes = 1;
	memory = arena->head ? place(arena->head, align, nbytes) : NULL;
	if (memory)
		return memory;
	if (align > SIZE_MAX / 4 || nbytes > SIZE_MAX / 4)
		return NULL;
	is_apart = nbytes + align > size;
	if (is_apart)
		size = nbytes + align;
	block = tti_zalloc(sizeof(*block) + size);
	if (!block)
		return NULL;
	block->size = size;
	if (is_apart && arena->head) {
		/* A block made for one request; the head may still have room. */
		block->next = arena->head->next;
		arena->head->next = block;
	} else {
		block->next = arena->head;
		arena->head = block;
	}
	return place(block, align, nbytes);
}

void *tti_arena_alloc(struct tti_arena *arena, size_t nbytes)
{
	return tti_arena_alloc_aligned(arena, 16, nbytes);
}

char *tti_arena_strdup(struct tti_arena *arena, const char *text)
{
	const size_t nbytes = strlen(text) + 1;
	char *copy = tti_arena_alloc_aligned(arena, 1, nbytes);

	return copy ? memcpy(copy, text, nbytes) : NULL;
}

void tti_arena_release(struct tti_arena *arena)
{
	while (arena->head) {
		struct tti_arena_block *block = arena->head;

		arena->head = block->next;
		tti_free(block);
	}
}
