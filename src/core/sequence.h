/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_SEQUENCE_H
#define TTI_CORE_SEQUENCE_H

/* The order of the calls of a communicator. Each call takes a sequence number when the user makes
 * it, and runs when all calls before it are done. So all ranks run their calls in the order in
 * which the program made them.
 *
 * Threads: one at a time makes calls, so it alone takes numbers; any may wait. */

#include "core/comm.h"

/* Whether this thread may wait for all calls made so far. TUTTI_EUSAGE in a function of
 * tutti_stream_call() while calls are not done: they may be queued behind that function. */
TUTTI_CHECKED tutti_status tti_sequence_may_wait(const struct tti_comm *comm);

uint64_t tti_sequence_take(struct tti_comm *comm);
/* Take the last number back: its call is not made after all. By the thread that took it. */
void tti_sequence_untake(struct tti_comm *comm);
/* Wait until all calls before `seqno` are done: a number of the caller's own, or the count of calls
 * issued so far. */
void tti_sequence_wait(struct tti_comm *comm, uint64_t seqno);
/* The same for the owner of a number, who then uses the links until tti_sequence_done(). */
void tti_sequence_turn(struct tti_comm *comm, uint64_t seqno);
/* The same for a call that is launched in a stream of a device: calls before it that were launched
 * there may go on. launched(): the call `seqno` was. By the thread that takes numbers. */
void tti_sequence_wait_launched(struct tti_comm *comm, uint64_t seqno);
void tti_sequence_launched(struct tti_comm *comm, uint64_t seqno);
/* Take a number whose turn it is, as all calls are done, and use the links until tti_sequence_done(). */
void tti_sequence_take_turn(struct tti_comm *comm);
/* The call whose number is next is done. */
void tti_sequence_done(struct tti_comm *comm);

/* Whether all calls are done. For the thread that makes them: nobody else runs any then. */
static inline bool tti_sequence_is_idle(const struct tti_comm *comm)
{
	return atomic_load_explicit(&comm->done, memory_order_acquire) ==
	       atomic_load_explicit(&comm->issued, memory_order_relaxed);
}

/* Mark the begin of a call of the user's; `call` stands for it, and may begin again. False: another
 * call is under way, of another thread or around an operator's function. A plain load and store, to
 * cost nothing: it may miss a call that begins at the same time. */
static inline bool tti_sequence_begin(struct tti_comm *comm, const void *call)
{
	const void *other = atomic_load_explicit(&comm->in_call, memory_order_relaxed);

	if (other && other != call)
		return false;
	atomic_store_explicit(&comm->in_call, call, memory_order_relaxed);
	return true;
}

static inline void tti_sequence_end(struct tti_comm *comm)
{
	atomic_store_explicit(&comm->in_call, NULL, memory_order_relaxed);
}

#endif
