/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_ACCEPTOR_H
#define TTI_BOOT_ACCEPTOR_H

/* A listening socket where only those who hold the secret get in. Each
 * connection has its own handshake state and a short deadline, and there are at
 * most so many that have proven nothing yet: the oldest goes. So neither garbage
 * nor silence on the port delays those who belong here.
 *
 * Owner: who holds the struct. Threads: the loop's. */

#include <stdbool.h>
#include <stddef.h>

#include "boot/net/auth.h"
#include "boot/net/loop.h"
#include "boot/net/wire.h"

/* Of so many addresses the log says who was turned away. */
#define TTI_ACCEPTOR_TOLD 8

struct tti_acceptor {
	struct tti_event_handler *handler; /* of the listening socket */
	struct tti_loop *loop;
	const uint8_t *secret; /* borrowed */
	int listen_fd;         /* owned    */
	size_t most;           /* connections in their handshake */
	void *self;

	/* Whether this is the right place for it. */
	bool (*admit)(void *self, enum tti_auth_kind kind, const struct tti_wire_who *who);
	/* It is in: the tunnel is the callee's, and in no loop. It may have failed already. */
	void (*on_accept)(void *self, struct tti_tunnel *tunnel, enum tti_auth_kind kind,
			  const struct tti_wire_who *who);

	struct tti_pending *oldest, *newest;
	size_t n, dropped;
	/* What is wrong with one that came with another version of the protocol, or else with
	 * another secret; "": none did. */
	char turned_away[160];
	bool other_version; /* it is the version */
	struct tti_addr told[TTI_ACCEPTOR_TOLD];
	size_t ntold;
};

/* The fields above `oldest`, but not `handler`, are filled in; listen_fd stays the
 * caller's on failure. */
TUTTI_CHECKED tutti_status tti_acceptor_open(struct tti_acceptor *acceptor);

/* Stop listening and drop who is in the handshake. A zeroed one is fine if its
 * listen_fd is -1. */
void tti_acceptor_close(struct tti_acceptor *acceptor);

/* Drop those whose time is over; when to call again. */
int64_t tti_acceptor_expire(struct tti_acceptor *acceptor);

#endif
