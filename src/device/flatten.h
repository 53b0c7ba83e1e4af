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

/* How many blocks of data have scratch at a time, and the bytes of all, for steps of `slice_bytes`. */
int32_t tti_dev_window(const struct tti_dev_program *program);
uint64_t tti_dev_scratch_bytes(const struct tti_dev_program *program, uint64_t slice_bytes);

#endif
