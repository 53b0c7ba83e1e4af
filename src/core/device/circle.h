/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_DEVICE_CIRCLE_H
#define TTI_CORE_DEVICE_CIRCLE_H

/* Kernels of ranks of this process that wait for each other for ever, as the GPU does not run all of them, or one
 * is behind another in a stream:
 *
 *     stream of GPU 0     kernel of rank 0 │ kernel of rank 1
 *                              └── waits for a message of ──▲
 *
 * Whoever waits long follows from rank to rank what each waits for: a message, or its stream.
 *
 * Owner: the communicator, from tti_circle_join() to tti_circle_leave(). Threads: any. */

#include <stdint.h>

#include "tutti/status.h"

struct tti_comm;
struct tti_flight;

/* Its ranks may be found: before its first flight is let go. */
void tti_circle_join(struct tti_comm *comm);
/* Not any more; never joined is fine. */
void tti_circle_leave(struct tti_comm *comm);

/* The kernel of the flight waits at one place for so long. TUTTI_EUSAGE: it will for ever. From TUTTI_STALL_MS on
 * a warning, once, if kernels of the process have more blocks than the GPU runs at a time. */
TUTTI_CHECKED tutti_status tti_circle_check(const struct tti_flight *flight, int64_t waited_ns);

#endif
