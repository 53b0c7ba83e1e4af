/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/heap.h"

#include <stdlib.h>

static uint32_t next_random(struct tti_cuda_heap *heap)
{
	/* xorshift32 (Marsaglia, 2003) */
	heap->seed ^= heap->seed << 13;
	heap->seed ^= heap->seed >> 17;
	heap->seed ^= heap->seed << 5;
	return heap->seed;
}

static void measure(struct tti_cuda_block *top)
{
	top->most = top->nbytes;
	if (top->left && top->left->most > top->most)
		top->most = top->left->most;
	if (top->right && top->right->most > top->most)
		top->most = top->right->most;
}

/* Blocks below `offset` go to *low, the others to *high. */
static void split(struct tti_cuda_block *top, uint64_t offset, struct tti_cuda_block **low,
		  struct tti_cuda_block **high)
{
	if (!top) {
		*low = *high = NULL;
	} else if (top->offset < offset) {
		split(top->right, offset, &top->right, high);
		*low = top;
		measure(top);
	} else {
		split(top->left, offset, low, &top->left);
		*high = top;
		measure(top);
	}
}

/* All of `low` lies before all of `high`. */
static struct tti_cuda_block *join(struct tti_cuda_block *low, struct tti_cuda_block *high)
{
	if (!low || !high)
		return low ? low : high;
	if (low->priority > high->priority) {
		low->right = join(low->right, high);
		measure(low);
		return low;
	}
	high->left = join(low, high->left);
	measure(high);
	return high;
}

static void insert(struct tti_cuda_heap *heap, struct tti_cuda_block *block)
{
	struct tti_cuda_block *low;
	struct tti_cuda_block *high;

	block->left = block->right = NULL;
	block->priority = next_random(heap);
	measure(block);
	split(heap->free, block->offset, &low, &high);
	heap->free = join(join(low, block), high);
}

static void take_out(struct tti_cuda_heap *heap, const struct tti_cuda_block *block)
{
	struct tti_cuda_block *low;
	struct tti_cuda_block *self;
	struct tti_cuda_block *high;

	split(heap->free, block->offset, &low, &high);
	split(high, block->offset + 1, &self, &high);
	heap->free = join(low, high);
}

/* The block that begins last below `offset`, or first at or behind it. */
static struct tti_cuda_block *neighbour(struct tti_cuda_block *top, uint64_t offset, bool below)
{
	struct tti_cuda_block *best = NULL;

	while (top) {
		const bool is_below = top->offset < offset;

		if (is_below == below)
			best = top;
		top = is_below ? top->right : top->left;
	}
	return best;
}

static uint64_t begin_in(const struct tti_cuda_block *block, uint64_t alignment)
{
	const uint64_t rest = block->offset % alignment;

	return rest ? block->offset + alignment - rest : block->offset;
}

static struct tti_cuda_block *first_fit(struct tti_cuda_block *top, uint64_t nbytes,
					uint64_t alignment)
{
	struct tti_cuda_block *found;
	uint64_t lost;

	if (!top || top->most < nbytes)
		return NULL;
	found = first_fit(top->left, nbytes, alignment);
	if (found)
		return found;
	lost = begin_in(top, alignment) - top->offset;
	if (lost <= top->nbytes && top->nbytes - lost >= nbytes)
		return top;
	return first_fit(top->right, nbytes, alignment);
}

bool tti_cuda_heap_init(struct tti_cuda_heap *heap, uint64_t nbytes)
{
	struct tti_cuda_block *all;

	*heap = (struct tti_cuda_heap){ .seed = 2463534242u };
	if (!nbytes)
		return true;
	all = calloc(1, sizeof(*all));
	if (!all)
		return false;
	all->nbytes = nbytes;
	insert(heap, all);
	return true;
}

static void free_all(struct tti_cuda_block *top)
{
	if (!top)
		return;
	free_all(top->left);
	free_all(top->right);
	free(top);
}

void tti_cuda_heap_release(struct tti_cuda_heap *heap)
{
	free_all(heap->free);
	heap->free = NULL;
}

struct tti_cuda_block *tti_cuda_heap_take(struct tti_cuda_heap *heap, uint64_t nbytes,
					  uint64_t alignment)
{
	struct tti_cuda_block *const found = first_fit(heap->free, nbytes, alignment);
	struct tti_cuda_block *head = NULL;
	struct tti_cuda_block *tail = NULL;
	uint64_t begin;
	uint64_t end;

	if (!found)
		return NULL;
	begin = begin_in(found, alignment);
	end = found->offset + found->nbytes;
	if (begin > found->offset)
		head = calloc(1, sizeof(*head));
	if (begin + nbytes < end)
		tail = calloc(1, sizeof(*tail));
	if ((begin > found->offset && !head) || (begin + nbytes < end && !tail)) {
		free(head);
		free(tail);
		return NULL;
	}
	take_out(heap, found);
	if (head) {
		head->offset = found->offset;
		head->nbytes = begin - found->offset;
		insert(heap, head);
	}
	if (tail) {
		tail->offset = begin + nbytes;
		tail->nbytes = end - tail->offset;
		insert(heap, tail);
	}
	found->offset = begin;
	found->nbytes = nbytes;
	return found;
}

void tti_cuda_heap_give(struct tti_cuda_heap *heap, struct tti_cuda_block *block)
{
	struct tti_cuda_block *const before = neighbour(heap->free, block->offset, true);
	struct tti_cuda_block *const behind = neighbour(heap->free, block->offset, false);

	if (before && before->offset + before->nbytes == block->offset) {
		take_out(heap, before);
		block->offset = before->offset;
		block->nbytes += before->nbytes;
		free(before);
	}
	if (behind && block->offset + block->nbytes == behind->offset) {
		take_out(heap, behind);
		block->nbytes += behind->nbytes;
		free(behind);
	}
	insert(heap, block);
}

uint64_t tti_cuda_heap_largest(const struct tti_cuda_heap *heap)
{
	return heap->free ? heap->free->most : 0;
}
