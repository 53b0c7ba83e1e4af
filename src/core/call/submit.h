/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_CALL_SUBMIT_H
#define TTI_CORE_CALL_SUBMIT_H

/* From a call of the user to its place: run now, queued on a stream, or kept for the end of the
 * group. Threads: the one that makes the communicator's calls. */

#include <stddef.h>

#include "core/call/group.h"

tutti_status tti_submit(tutti_comm_t handle, const struct tti_args *args, tutti_stream_t stream);

/* Run, or queue, those of `ncalls` calls that are on that stream as one batch; none is launched. */
TUTTI_CHECKED tutti_status tti_submit_batch(const struct tti_queued_call *calls, size_t ncalls,
					    tutti_stream_t stream);

/* Say of each call whether it is launched in its stream of CUDA. If the host runs a call of a rank with
 * a device, it runs all of the group, so that their order is that of ranks without one.
 * TUTTI_EUNSUPPORTED: a stream of CUDA has ranks with and without a device. */
TUTTI_CHECKED tutti_status tti_submit_place(struct tti_queued_call *calls, size_t ncalls);
/* Launch those of all streams together, since they are of ranks of one thread, which wait for each
 * other while lanes are made. */
TUTTI_CHECKED tutti_status tti_submit_launches(const struct tti_queued_call *calls, size_t ncalls);

static inline bool tti_is_transfer(const struct tti_queued_call *call)
{
	return call->args.coll == TUTTI_SEND_RECV;
}

#endif
