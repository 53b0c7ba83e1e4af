/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_ENGINE_OPERAND_H
#define TTI_ENGINE_OPERAND_H

/* Which bytes an operation works on. Internal to the engine. */

#include "engine/engine.h"

/* Where the data of an operation lies in one block. */
struct tti_operand tti_operand_at(const struct tti_job *job, const struct tti_operation *op,
				  int32_t block);

/* The same, and where the chunk lies in any input and in any output, also of a peer. */
struct tti_offsets {
	size_t from, to, input, output, count, nbytes;
};

struct tti_offsets tti_offsets_at(const struct tti_job *job, const struct tti_operation *op,
				  int32_t block);

#endif
