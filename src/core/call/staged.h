/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CALL_STAGED_H
#define TTI_CORE_CALL_STAGED_H

/* A call of a rank with a device whose operator is a function of the program: the engine runs it on the
 * host, on all ranks. Buffers in memory of the device go through bounce buffers, around the call. In a
 * stream of CUDA all of that is one turn of the host (gpu/cuda_turn.h).
 *
 * Owner: the caller, tti_staged_close(). Threads: the one that executes the call. */

#include "tutti/status.h"

struct tti_args;
struct tti_comm;
struct tti_staged;

/* *args is what to run. *out is NULL, and nothing else is done, if the call needs no staging. */
TUTTI_CHECKED tutti_status tti_staged_open(struct tti_comm *comm, const struct tti_args **args,
					   struct tti_staged **out);
/* The call has ended with `status`: copy its result back if that is good. All ranks are notified if that
 * fails. NULL is fine. */
TUTTI_CHECKED tutti_status tti_staged_close(struct tti_staged *staged, tutti_status status);

#endif
