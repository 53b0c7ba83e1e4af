/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces that are mapped. */
#ifndef TESTS_CUDAHOST_MAPPED_H
#define TESTS_CUDAHOST_MAPPED_H

#include "alone.h"
#include "engine/memory.h"

#define UNIT ((size_t)TTI_CUDA_GRANULARITY)

/* A piece mapped at new addresses, to be read and written. */
static inline char *map_new(size_t nbytes, struct tti_cuda_piece **piece)
{
	void *at;

	GOOD(tti_cuda_piece_create(nbytes, 0, piece));
	GOOD(tti_cuda_address_reserve(nbytes, 0, NULL, &at));
	GOOD(tti_cuda_address_map(at, nbytes, 0, *piece));
	GOOD(tti_cuda_address_allow(at, nbytes, 3, TTI_CUDA_ALL_DEVICES));
	return at;
}

static inline void unmap_all(void *at, size_t nbytes)
{
	GOOD(tti_cuda_address_unmap(at, nbytes));
	GOOD(tti_cuda_address_free(at, nbytes));
}

#endif
