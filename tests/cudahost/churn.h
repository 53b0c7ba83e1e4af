/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocations that come and go, each with bytes of its own. */
#ifndef TESTS_CUDAHOST_CHURN_H
#define TESTS_CUDAHOST_CHURN_H

#include "alone.h"
#include "engine/memory.h"

struct piece {
	char *at;
	size_t nbytes;
	char byte;
};

static inline void check_filled(const struct piece *piece)
{
	struct tti_cuda_range range;

	CHECK(piece->at[0] == piece->byte && piece->at[piece->nbytes / 2] == piece->byte &&
	      piece->at[piece->nbytes - 1] == piece->byte);
	CHECK(tti_cuda_memory_find(piece->at + piece->nbytes / 2, &range));
	CHECK(range.base == piece->at && range.nbytes == piece->nbytes);
	CHECK(range.type == TTI_CUDA_DEVICE);
	GOOD(tti_cuda_memory_check(piece->at, piece->nbytes));
	CHECK(tti_cuda_memory_check(piece->at, piece->nbytes + 1) == TTI_CUDA_EINVAL);
}

static inline void churn(uint32_t seed, int steps, size_t most)
{
	struct piece pieces[40] = { 0 };

	for (int step = 0; step < steps; step++) {
		struct piece *const piece = &pieces[alone_random(&seed) % 40];
		struct tti_cuda_range range;

		if (piece->at) {
			check_filled(piece);
			GOOD(tti_cuda_memory_free(piece->at));
			piece->at = NULL;
			continue;
		}
		piece->nbytes = 1 + alone_random(&seed) % most;
		piece->byte = (char)alone_random(&seed);
		if (tti_cuda_memory_alloc(piece->nbytes, (void **)&piece->at)) {
			CHECK(strstr(tti_cuda_error_text(), "were asked for on device"));
			piece->at = NULL;
			continue;
		}
		CHECK(tti_cuda_memory_find(piece->at, &range) && range.id);
		memset(piece->at, piece->byte, piece->nbytes);
	}
	for (int i = 0; i < 40; i++)
		if (pieces[i].at) {
			check_filled(&pieces[i]);
			GOOD(tti_cuda_memory_free(pieces[i].at));
		}
}

#endif
