/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_STREAM_H
#define TTI_CORE_STREAM_H

/* Host streams: a queue of work and a thread that does it in order.
 *
 * Owner: the user's handle; tutti_stream_destroy() waits for what is queued. Its memory is never given
 * back to the heap, as that of the handle of a communicator is not (comm.h).
 * Threads: any may push; work runs on the stream's thread. */

#include "core/comm.h"

/* Append work that the stream then owns: `run` is called once, in order, on the
 * stream's thread; what it returns is the stream's error if it is the first. `run`
 * frees `work`. */
TUTTI_CHECKED tutti_status tti_stream_push(tutti_stream_t stream, tutti_status (*run)(void *work),
					   void *work);

/* How many threads of the user's sleep until a stream has got on, and so compute nothing
 * meanwhile: its thread then waits as theirs would. It outlives the stream for those who
 * count themselves in it. */
struct tti_awaited {
	_Atomic int now, users;
};

/* One more user of the stream's; NULL: it was destroyed. */
struct tti_awaited *tti_stream_awaited(tutti_stream_t stream);
/* NULL is fine. */
void tti_awaited_drop(struct tti_awaited *awaited);

#endif
