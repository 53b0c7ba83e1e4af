/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_ACCEPTOR_H
#define TTI_BOOT_ACCEPTOR_H

/* A listening socket that lets in only processes that hold the secret. Every pending connection has a
 * handshake state of its own and a short deadline, and their number is limited: the oldest one goes.
 * So neither garbage nor silence on the port delays the ranks that belong here.
 *
 * Owner: whoever holds the struct. Threads: the loop's. */

#include <stdbool.h>
#include <stddef.h>

#include "boot/net/auth.h"
#include "boot/net/loop.h"
#include "boot/net/wire.h"

/* The log names so many addresses of processes that were turned away. */
#define TTI_ACCEPTOR_TOLD 8

struct tti_acceptor {
	struct tti_event_handler *handler; /* of the listening socket  */
	struct tti_loop *loop;
	const uint8_t *secret; /* borrowed */
	int listen_fd;         /* owned    */
	size_t most;           /* pending connections, at most */
	void *self;

	/* Whether the process that connects means this rank. */
	bool (*admit)(void *self, enum tti_auth_kind kind, const struct tti_wire_who *who);
	/* The handshake is done: the tunnel, in no loop, is the callee's. It may have failed already. */
	void (*on_accept)(void *self, struct tti_tunnel *tunnel, enum tti_auth_kind kind,
			  const struct tti_wire_who *who);

	struct tti_pending *oldest, *newest;
	size_t n, dropped;
	int64_t again_ns; /* it does not listen until then; TTI_NEVER: it does */
	bool starved;     /* the log says why it did not listen */
	/* Why a process was turned away: its version of the protocol, or else its secret, is another
	 * one. "": none was. */
	char turned_away[160];
	bool other_version; /* it was the version */
	struct tti_addr told[TTI_ACCEPTOR_TOLD];
	size_t ntold;
};

/* The caller has filled in the fields above `oldest` except `handler`. On failure listen_fd stays the
 * caller's. */
TUTTI_CHECKED tutti_status tti_acceptor_open(struct tti_acceptor *acceptor);

/* Stop listening and drop all pending connections. A zeroed one is fine if its listen_fd is -1. */
void tti_acceptor_close(struct tti_acceptor *acceptor);

/* Drop pending connections whose time is over, and listen again after there was no file descriptor or no
 * memory for a while; when to call again. */
int64_t tti_acceptor_expire(struct tti_acceptor *acceptor);

#endif
