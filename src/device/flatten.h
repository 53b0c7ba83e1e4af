/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_DEVICE_FLATTEN_H
#define TTI_DEVICE_FLATTEN_H

/* A compiled program as a kernel reads it (abi.h).
 *
 * Owner: the caller, tti_free(). Threads: any. */

#include "coll/compile/compile.h"
#include "device/abi.h"

/* TUTTI_EUNSUPPORTED: an operation has more operands than a block has room for. TUTTI_ENOMEM. */
TUTTI_CHECKED tutti_status tti_dev_flatten(const struct tti_compiled *compiled,
					   struct tti_dev_program **out);

/* How many blocks of data have scratch at a time. */
int32_t tti_dev_window(const struct tti_dev_program *program);

/* The most that a block has of a piece of up to `slice_bytes`, a multiple of 16; and with it the
 * bytes of all scratch of a call (abi.h). */
static inline uint32_t tti_dev_part_bytes(uint64_t slice_bytes, uint32_t nblocks)
{
	/* Less than 16 bytes longer than an even part. */
	return (uint32_t)((slice_bytes / nblocks + 31) / 16 * 16);
}

static inline uint64_t tti_dev_scratch_bytes(const struct tti_dev_program *program,
					     uint64_t slice_bytes, uint32_t nblocks)
{
	return (uint64_t)nblocks * (uint64_t)tti_dev_window(program) * (uint64_t)program->nscratch *
	       tti_dev_part_bytes(slice_bytes, nblocks);
}

#endif
