/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_WINDOW_WINDOW_H
#define TTI_CORE_WINDOW_WINDOW_H

/* Windows in parts: window.c makes them, window_call.c has the calls and moves bytes in place,
 * window_net.c and window_net_call.c move them by messages, window_signals.c has the counters of
 * signals, window_wait.c the waits.
 *
 * A signal increments a counter in memory of the rank that waits. If a rank cannot address the
 * window or the counters of another one, it sends both data and signals as messages, so that
 * they stay in order.
 *
 * Owner: the user; a communicator that ends takes back all but the struct. Threads: as
 * tutti/window.h says. */

#include "core/comm.h"
#include "tutti/window.h"

struct tti_window_peer {
	uint64_t nbytes;
	uint8_t *data; /* NULL and no signals: by messages */
	struct tti_window_signals *signals;
	bool borrowed;     /* of this process: they stay until they are dropped */
	bool is_of_device; /* data: the host does not reach it */
	uint64_t key;      /* see struct tti_window_signals */
};

struct tti_window_net;
struct tti_window_signals;

struct tutti_window {
	tutti_comm_t handle;
	int pid;                         /* of the process that made it              */
	_Atomic(struct tti_comm *) comm; /* NULL: it has taken back what it lent */
	uint8_t *base;
	size_t nbytes;
	bool is_of_device; /* base: the host does not reach it */
	int nsignals;      /* of each two ranks */
	struct tti_window_signals *signals;
	_Atomic uint64_t *taken;       /* [n * nsignals]: signals that were waited for */
	struct tti_window_peer *peers; /* [n] */
	struct tti_window_net *net;    /* NULL: all are reached in place */
	/* Calls that streams have not run yet. */
	pthread_mutex_t lock;
	pthread_cond_t ran;
	size_t queued;
};

/* How many counters of signals it has. */
static inline size_t tti_window_signal_count(const struct tutti_window *window)
{
	return (size_t)window->comm->n * (size_t)window->nsignals;
}

/* A card of each rank, [n] of nbytes: all ranks get those of all, by a call of the communicator. */
TUTTI_CHECKED tutti_status tti_window_tell_all(const struct tutti_window *window, void *cards,
					       size_t nbytes);

/* Copy to or from memory that the host does not reach, the window's or the program's. */
TUTTI_CHECKED tutti_status tti_window_copy(const struct tutti_window *window, void *to,
					   const void *from, size_t nbytes);

/* The communicator ends: take back what it lent to windows. */
void tti_windows_release(struct tti_comm *comm);

/* The window's communicator, held until tti_handle_leave(). NULL: it was destroyed; the handle
 * may be another communicator's by now. */
struct tti_comm *tti_window_find(struct tutti_window *window);

#endif
