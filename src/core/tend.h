/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_TEND_H
#define TTI_CORE_TEND_H

/* Links of communicators that are in no call. A message that a call has handed to a NIC may be lost with the
 * NIC after the call, and has to be sent again over another one. The rank may compute for long then, or wait
 * in a call on another communicator for a rank that waits for the message. So the watch of a family looks
 * after the links of all its communicators: once a second, and every few milliseconds while a lane is in
 * doubt, for a moment each. Where every link has one path only, the system sends again what is lost, and
 * nobody looks after anything.
 *
 *     thread of a call   waits for its turn ─▶ takes the links ─▶ ... ─▶ gives them ─▶ its call is done
 *     watch              takes the links if no call has them ─▶ tends ports ─▶ gives them
 *
 * Not so for ranks with a device, whose links belong to threads that this does not know of, nor for ranks that
 * are threads of one process, which have no watch and no NIC between them.
 *
 * Threads: functions say. */

#include "core/comm.h"

enum tti_links_user { TTI_LINKS_FREE, TTI_LINKS_CALL, TTI_LINKS_WATCH };

/* All ports are there, and the watch runs. By the thread that makes the communicator. */
void tti_tend_begin(struct tti_comm *comm);
/* The links belong to the caller from now on. Fine if it was never begun, or has ended. By the one thread that
 * uses the communicator then. */
void tti_tend_end(struct tti_comm *comm);

/* What the watch of a root does from time to time (tti_watch_events). */
int64_t tti_tend_on_tick(void *root);

/* For tti_sequence_turn(). */
void tti_tend_await_links(struct tti_comm *comm);

static inline void tti_tend_take_links(struct tti_comm *comm)
{
	uint32_t user = TTI_LINKS_FREE;

	if (comm->is_tended &&
	    !atomic_compare_exchange_strong_explicit(&comm->links_user, &user, TTI_LINKS_CALL,
						     memory_order_acquire, memory_order_relaxed))
		tti_tend_await_links(comm);
}

static inline void tti_tend_give_links(struct tti_comm *comm)
{
	if (comm->is_tended)
		atomic_store_explicit(&comm->links_user, TTI_LINKS_FREE, memory_order_release);
}

#endif
