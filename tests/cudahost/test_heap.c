/* SPDX-License-Identifier: BSD-3-Clause */
/* What is free of a device, against a model. */
#include "alone.h"

#include "engine/heap.h"

#define UNITS 512

static void free_units(struct tti_cuda_heap *heap, uint8_t used[UNITS],
		       struct tti_cuda_block *block)
{
	memset(used + block->offset, 0, block->nbytes);
	tti_cuda_heap_give(heap, block);
}

/* Whether the model has room: `n` units at a multiple of `alignment`. */
static bool has_room(const uint8_t used[UNITS], uint64_t n, uint64_t alignment)
{
	for (uint64_t at = 0; at + n <= UNITS; at += alignment)
		if (!memchr(used + at, 1, n))
			return true;
	return false;
}

static void heap_against_model(uint32_t seed)
{
	struct tti_cuda_block *blocks[64] = { NULL };
	uint8_t used[UNITS] = { 0 };
	struct tti_cuda_heap heap;

	CHECK(tti_cuda_heap_init(&heap, UNITS));
	for (int step = 0; step < 3000; step++) {
		struct tti_cuda_block **const slot = &blocks[alone_random(&seed) % 64];
		const uint64_t n = 1 + alone_random(&seed) % 40;
		const uint64_t alignment = 1u << alone_random(&seed) % 5;

		if (*slot) {
			free_units(&heap, used, *slot);
			*slot = NULL;
			continue;
		}
		*slot = tti_cuda_heap_take(&heap, n, alignment);
		CHECK((*slot != NULL) == has_room(used, n, alignment));
		if (!*slot)
			continue;
		CHECK((*slot)->offset % alignment == 0 && (*slot)->nbytes == n);
		CHECK((*slot)->offset + n <= UNITS && !memchr(used + (*slot)->offset, 1, n));
		memset(used + (*slot)->offset, 1, n);
	}
	for (int i = 0; i < 64; i++)
		if (blocks[i])
			free_units(&heap, used, blocks[i]);
	CHECK(tti_cuda_heap_largest(&heap) == UNITS);
	tti_cuda_heap_release(&heap);
}

static void heap_body(void *arg)
{
	(void)arg;
	for (uint32_t seed = 1; seed <= 30; seed++)
		heap_against_model(seed);
}

static void the_heap_finds_room_wherever_a_model_has_it(void **state)
{
	(void)state;
	alone_run(heap_body, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_heap_finds_room_wherever_a_model_has_it),
	};

	(void)setenv("TUTTI_CUDAHOST_MEMORY", "64M", 1);
	(void)setenv("TUTTI_CUDAHOST_GPUS", "2", 1);
	(void)unsetenv("TUTTI_CUDAHOST_GUARD");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
