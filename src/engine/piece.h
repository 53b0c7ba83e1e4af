/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_PIECE_H
#define TTI_ENGINE_PIECE_H

/* What one operation of a program works on, and what it makes of it. Internal to the engine;
 * of jobs that run a program. */

#include "engine/engine.h"

/* A slice of a chunk. */
struct tti_piece {
	int32_t block, scratch;
	size_t row, first; /* its first element, counted in the row */
	size_t count;
};

struct tti_piece tti_piece_at(const struct tti_job *job, const struct tti_oper *op, int32_t block);

/* Where it lies, in bytes from where its place begins; 0: nowhere. */
size_t tti_piece_offset(const struct tti_job *job, uint8_t place, const struct tti_piece *piece);
/* Where it lies; NULL: nowhere. */
void *tti_piece_memory(const struct tti_job *job, uint8_t place, const struct tti_piece *piece);

/* The first slot of an operation that sends, to be written with its result `dst` in one pass.
 * NULL: that is better copied there from where the result lies, past the caches. */
void *tti_first_slot(const struct tti_job *job, int32_t index, const void *dst, size_t nbytes);

/* The engine's sources to memory (dst) and to a slot, each of which may be NULL, in one pass.
 * Returns where the result lies, for other slots. */
const void *tti_combine(struct tti_job *job, const struct tti_oper *op, int nsrc, void *dst,
			void *slot, size_t count);

#endif
