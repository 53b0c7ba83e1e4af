/* SPDX-License-Identifier: BSD-3-Clause */
/* Pieces of memory without addresses, for piece.c and address.c. Each is a file of its own, so that
 * it can be passed on as one.
 *
 * Owner: whoever has a reference, and each place where it is mapped.
 * Threads: locked (allocation.h). */
#ifndef TUTTI_CUDAHOST_ENGINE_PIECE_H
#define TUTTI_CUDAHOST_ENGINE_PIECE_H

#include "engine/memory.h"
#include "engine/span.h"
#include "engine/view.h"

struct tti_cuda_piece {
	struct tti_cuda_span span; /* its own address: the set of all pieces is one of spans */
	struct tti_cuda_file file;
	uint64_t nrefs;
	uint64_t nmaps;
	bool is_shared;  /* see piece_share() */
	bool is_claimed; /* it counts as memory of its device: not if another process made it */
};

/* 0, or EINVAL with a text: it is none, or was released. */
int tti_cuda_piece_check(const struct tti_cuda_piece *piece, const char *what);
/* It ends if nobody has a reference and it is mapped nowhere. */
void tti_cuda_piece_drop_unused(struct tti_cuda_piece *piece);

/* In a child: close the files. */
void tti_cuda_piece_abandon(void);

#endif
