/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_SOCK_H
#define TTI_BOOT_SOCK_H

/* The bootstrap whose ranks are connected by sockets. Private to boot/.
 *
 *     ... <--> rank-1 <--prev--> rank <--next--> rank+1 <--> ...      the ring
 *                                 |
 *                                 <--in[i]---+ a rank that watches already
 *
 * The watcher (watcher.c) listens from the start, so that a rank can be reached whatever its caller is
 * doing. Until tti_watch_start() it hands connections over by the inbox; from then on it owns all. */

#include <pthread.h>

#include "boot/base.h"
#include "boot/net/tunnel.h"
#include "boot/net/wire.h"

struct tti_watcher;

struct tti_sock {
	struct tti_boot base;
	int64_t timeout_ms;
	const _Atomic int *stop;
	struct tti_wire_card *cards;                  /* [nranks]; pid 0: not known yet */
	struct tti_tunnel *prev_tunnel, *next_tunnel; /* NULL: none */
	struct tti_tunnel *root_tunnel;               /* until the ring stands; NULL: none */
	uint32_t seq, ended; /* exchanges that this rank has begun, and ended */

	/* Why init failed, status 0: it did not; and what the other ranks are told of that. */
	struct tti_failure broken, told;
	void (*on_broken)(void *self, struct tti_failure *failure);
	void *self;
	/* A frame or a record to that side was sent in part. */
	bool prev_torn, next_torn;

	/* The inbox: connections that have come, for the caller. */
	pthread_mutex_t lock;
	int inbox_fd; /* an eventfd */
	struct tti_tunnel *inbox_prev;
	struct tti_tunnel **in; /* [nranks], NULL: none */
	bool taken;             /* the watcher keeps what comes */

	struct tti_watcher *watcher;
};

extern const struct tti_boot_ops tti_sock_ops;

static inline int tti_sock_prev(const struct tti_sock *sock)
{
	return (sock->base.rank + sock->base.nranks - 1) % sock->base.nranks;
}

static inline int tti_sock_next(const struct tti_sock *sock)
{
	return (sock->base.rank + 1) % sock->base.nranks;
}

/* A rank that checked in listens: if it still refuses connections after this, it has died. */
#define TTI_SOCK_RETRY_MS 700

/* "rank 3 (host, process 17)". */
const char *tti_sock_name(const struct tti_sock *sock, int rank, char buf[TTI_BOOT_NAME]);
const char *tti_sock_name_as(const struct tti_boot *boot, int rank, int number, char *buf);

/* Send what the other ranks are told of the failure. NULL is fine. */
void tti_sock_tell(const struct tti_sock *sock, struct tti_tunnel *tunnel);

/* join.c: check in and connect the ring. The connection to the root is kept, after a failure too: ranks
 * that this one has not met yet hear from the root what became of it. */
TUTTI_CHECKED tutti_status tti_sock_join(struct tti_sock *sock,
					 const struct tti_boot_config *config,
					 const struct tti_wire_card *own, int64_t deadline_ns);

/* join.c: tell that to this rank's root. */
void tti_sock_decline(const struct tti_boot_config *config, const struct tti_failure *failure);

/* ring.c: exchanges over the ring, until the deadline. */
TUTTI_CHECKED tutti_status tti_sock_gather(struct tti_sock *sock, void *blobs, size_t nbytes,
					   const char *what, int64_t deadline_ns);
TUTTI_CHECKED tutti_status tti_sock_broadcast(struct tti_sock *sock, int root, void *data,
					      size_t nbytes, const char *what, int64_t deadline_ns);

/* Fail if a neighbour has failed or left. Reads nothing but its notification, where that comes next. */
TUTTI_CHECKED tutti_status tti_sock_check_neighbour(struct tti_sock *sock, int peer,
						    struct tti_tunnel *tunnel, const char *what);

/* The same where no rank may leave yet: the end of the connection is a failure, whatever came before. */
TUTTI_CHECKED tutti_status tti_sock_check_end(struct tti_sock *sock, int peer,
					      struct tti_tunnel *tunnel, const char *what);

/* Init fails for good: that is logged and remembered, and the neighbours are told. */
TUTTI_CHECKED TUTTI_PRINTF(4, 5) tutti_status
	tti_sock_break(struct tti_sock *sock, tutti_status status, int failed_rank, const char *fmt,
		       ...);

/* boot.h's tti_boot_give_up(). */
void tti_sock_give_up(struct tti_boot *boot, const struct tti_failure *failure);

/* The same for a failure that another rank has found and logged. */
TUTTI_CHECKED tutti_status tti_sock_follow(struct tti_sock *sock,
					   const struct tti_failure *failure);

/* Fail because a peer closed its connection, or what it sent was changed on its way. */
TUTTI_CHECKED tutti_status tti_sock_closed_by(struct tti_sock *sock, int peer,
					      struct tti_tunnel *tunnel, const char *what);

/* Fail because a peer sent this frame instead of what was expected; nrest bytes of its body are at
 * `rest`. */
TUTTI_CHECKED tutti_status tti_sock_broken_by(struct tti_sock *sock, int peer,
					      struct tti_tunnel *tunnel,
					      const struct tti_frame *frame, const void *rest,
					      size_t nrest, const char *what);

/* The error of tti_sock_break() again; TUTTI_OK: there was none. */
TUTTI_CHECKED tutti_status tti_sock_check(struct tti_sock *sock);

#endif
