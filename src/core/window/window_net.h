/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_WINDOW_WINDOW_NET_H
#define TTI_CORE_WINDOW_WINDOW_NET_H

/* Windows by messages: window_net.c serves other ranks, window_net_call.c has this rank's
 * requests. The protocol is in window_net.c.
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
	/* Replies to the peer: the rest of its get, the answer to its flush. */
	uint64_t reply_at, reply_left, reply_number;
	uint64_t flushed_owed, flushed_told;
	/* Replies of the peer: the rest of the get under way, the answer to a flush. */
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
	uint8_t *room;              /* of one message, if the window is memory of a device */
	int wake_fd;
	bool leaving, closing, has_thread;
	bool has_lost; /* bytes of the window could not be copied from or to its device */
	pthread_t thread;
};

/* -- Under the lock ---------------------------------------------------------- */

/* Send a message; false: there is no room. */
bool tti_net_send(const struct tti_net_peer *peer, const struct tti_net_head *head,
		  const void *data, size_t nbytes);
/* The most bytes of a message. */
size_t tti_net_most(const struct tti_window_net *net);
/* Do all that can be done without waiting; whether that was anything. */
bool tti_net_pump(struct tti_window_net *net);
/* Whether replies wait for room. */
bool tti_net_is_busy(const struct tti_window_net *net);

/* -- Not under the lock ------------------------------------------------------ */

/* Notify the communicator if the port has failed; wake the thread. */
void tti_net_report(struct tti_window_net *net);
void tti_net_wake(struct tti_window_net *net);

/* Collective: open a port of the window's own, with links to all peers that are not reached in
 * place. */
TUTTI_CHECKED tutti_status tti_window_net_open(struct tutti_window *window);
/* This rank puts and gets no more: from now on it is no failure if a peer is gone. stay(): the
 * end of the window was refused. */
void tti_window_net_leave(struct tti_window_net *net);
void tti_window_net_stay(struct tti_window_net *net);
void tti_window_net_close(struct tti_window_net *net);

TUTTI_CHECKED tutti_status tti_window_net_put(struct tutti_window *window, int peer, size_t offset,
					      const void *src, size_t nbytes);
TUTTI_CHECKED tutti_status tti_window_net_get(struct tutti_window *window, int peer, size_t offset,
					      void *dst, size_t nbytes);
TUTTI_CHECKED tutti_status tti_window_net_signal(struct tutti_window *window, int peer, int index);
TUTTI_CHECKED tutti_status tti_window_net_flush(struct tutti_window *window, int peer);

#endif
