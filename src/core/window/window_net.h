/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_WINDOW_NET_H
#define TTI_CORE_WINDOW_NET_H

/* What the files of windows by messages share: window_net.c, which serves, and
 * window_net_call.c, which asks. See window_net.c.
 *
 * Owner: the window. Threads: any, under `lock` where it says so. */

#include "core/window/window.h"

enum tti_net_kind {
	TTI_NET_PUT = 1,
	TTI_NET_GET,
	TTI_NET_DATA,
	TTI_NET_SIGNAL,
	TTI_NET_FLUSH,
	TTI_NET_FLUSHED
};

struct tti_net_head {
	uint32_t kind, reserved;
	uint64_t offset, nbytes; /* nbytes of a TTI_NET_PUT or TTI_NET_DATA: that follow */
	uint64_t number;         /* of a get, a flush or a signal        */
};

struct tti_net_peer {
	struct tti_link *link; /* NULL: reached in place */
	/* What it is owed: the rest of a get, an answer to a flush. */
	uint64_t reply_at, reply_left, reply_number;
	uint64_t flushed_owed, flushed_told;
	/* What it owes: the rest of the get that is under way, the answer to a flush. */
	uint8_t *into;
	uint64_t get_left, get_number;
	uint64_t flushes, flushed;
	bool dirty; /* something was sent since the last flush */
};

struct tti_window_net {
	struct tutti_window *window;
	struct tti_port *port;
	pthread_mutex_t lock;       /* of the port and all below */
	struct tti_net_peer *peers; /* [n] */
	int wake_fd;
	bool leaving, closing, has_thread;
	pthread_t thread;
};

/* Under the lock. A message, if there is room; how many bytes it may have; all that can be done
 * without waiting: whether that was anything; whether something is left to do. */
bool tti_net_send(const struct tti_net_peer *peer, const struct tti_net_head *head,
		  const void *data, size_t nbytes);
size_t tti_net_most(const struct tti_window_net *net);
bool tti_net_pump(struct tti_window_net *net);
bool tti_net_is_busy(const struct tti_window_net *net);

/* Not under the lock. Tell the communicator if the port has failed; wake the thread. */
void tti_net_report(struct tti_window_net *net);
void tti_net_wake(struct tti_window_net *net);

/* -- For the calls, not under the lock --------------------------------------- */

/* Collective. A port of its own, links to all peers that are not reached in place. */
TUTTI_CHECKED tutti_status tti_window_net_open(struct tutti_window *window);
/* Nothing is put or got any more: from now on peers that are gone are no failure. */
void tti_window_net_leave(struct tti_window_net *net);
/* The end was refused. */
void tti_window_net_stay(struct tti_window_net *net);
void tti_window_net_close(struct tti_window_net *net);

TUTTI_CHECKED tutti_status tti_window_net_put(struct tutti_window *window, int peer, size_t offset,
					      const void *src, size_t nbytes);
TUTTI_CHECKED tutti_status tti_window_net_get(struct tutti_window *window, int peer, size_t offset,
					      void *dst, size_t nbytes);
TUTTI_CHECKED tutti_status tti_window_net_signal(struct tutti_window *window, int peer, int index);
TUTTI_CHECKED tutti_status tti_window_net_flush(struct tutti_window *window, int peer);

#endif
