/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/sequence.h"

#include "core/call/stream.h"
#include "core/comm_error.h"
#include "core/tend.h"
#include "util/error.h"
#include "util/thread.h"

tutti_status tti_sequence_may_wait(const struct tti_comm *comm)
{
	if (!tti_stream_is_calling() || tti_sequence_is_idle(comm))
		return TUTTI_OK;
	return tti_fail(
		TUTTI_EUSAGE,
		"this thread runs a function of tutti_stream_call(), and %llu calls on the "
		"communicator are not done, which may be queued behind it: queue this one, "
		"too, or make it on another thread",
		(unsigned long long)(atomic_load(&comm->issued) - atomic_load(&comm->done)));
}

uint64_t tti_sequence_take(struct tti_comm *comm)
{
	/* One thread at a time makes calls, so this needs no locked addition. */
	const uint64_t seqno = atomic_load_explicit(&comm->issued, memory_order_relaxed);

	atomic_store_explicit(&comm->issued, seqno + 1, memory_order_relaxed);
	return seqno;
}

void tti_sequence_untake(struct tti_comm *comm)
{
	atomic_store_explicit(&comm->issued,
			      atomic_load_explicit(&comm->issued, memory_order_relaxed) - 1,
			      memory_order_relaxed);
}

/* tti_sequence_done() looks for waiters before it counts its call, so one that comes in
 * between is not woken: it looks again after this long. */
#define NAP_NS (1000 * 1000)

/* The owner of the number finds exactly the calls before it done; a thread that waits for the calls
 * of another one may find more. */
static bool is_due(const struct tti_comm *comm, uint64_t seqno)
{
	return atomic_load_explicit(&comm->done, memory_order_acquire) >= seqno;
}

void tti_sequence_wait(struct tti_comm *comm, uint64_t seqno)
{
	if (is_due(comm, seqno))
		return;
	atomic_fetch_add(&comm->sequence_waiters, 1);
	for (;;) {
		const uint32_t seen = atomic_load(&comm->sequence_word);

		/* A number that was taken back never comes: then all are done. */
		if (is_due(comm, seqno) || tti_sequence_is_idle(comm))
			break;
		tti_futex_wait(&comm->sequence_word, seen, NAP_NS);
		/* Queued calls end soon after that. */
		(void)tti_comm_interrupted(comm);
	}
	atomic_fetch_sub(&comm->sequence_waiters, 1);
}

void tti_sequence_turn(struct tti_comm *comm, uint64_t seqno)
{
	tti_sequence_wait(comm, seqno);
	tti_tend_take_links(comm);
}

void tti_sequence_take_turn(struct tti_comm *comm)
{
	(void)tti_sequence_take(comm);
	tti_tend_take_links(comm);
}

void tti_sequence_wait_launched(struct tti_comm *comm, uint64_t seqno)
{
	if (comm->launched != seqno)
		tti_sequence_wait(comm, seqno);
}

void tti_sequence_launched(struct tti_comm *comm, uint64_t seqno)
{
	comm->launched = seqno + 1;
}

void tti_sequence_done(struct tti_comm *comm)
{
	/* Another thread may wait for this call to free the communicator: after the count it is
	 * not looked at any more, unless there are waiters. */
	const bool wake = atomic_load_explicit(&comm->sequence_waiters, memory_order_relaxed) != 0;

	tti_tend_give_links(comm);
	if (wake)
		pthread_mutex_lock(&comm->lock);
	atomic_store_explicit(&comm->done,
			      atomic_load_explicit(&comm->done, memory_order_relaxed) + 1,
			      memory_order_release);
	if (!wake)
		return;
	atomic_fetch_add(&comm->sequence_word, 1);
	tti_futex_wake(&comm->sequence_word, INT32_MAX);
	pthread_mutex_unlock(&comm->lock);
}
