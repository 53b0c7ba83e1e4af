/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_SOCK_H
#define TTI_BOOT_SOCK_H

/* The kind of bootstrap whose ranks are connected by sockets. Private to boot/.
 *
 *     ... <--> rank-1 <--prev--> rank <--next--> rank+1 <--> ...      the ring
 *                                 |
 *                                 <--in[i]---+ any that watches already
 *
 * The thread (watcher.c) listens from the start, so that a rank can be
 * reached whatever its caller is doing; it hands over who has come through the
 * inbox. From tti_watch_start() on it owns all connections. */

#include <pthread.h>

#include "boot/base.h"
#include "boot/net/tunnel.h"
#include "boot/net/wire.h"

struct tti_watcher;

struct tti_sock {
	struct tti_boot base;
	int64_t timeout_ms;
	const _Atomic int *stop;
	struct tti_wire_card *cards;                  /* [nranks]; port 0: not known yet */
	struct tti_tunnel *prev_tunnel, *next_tunnel; /* NULL: none */
	struct tti_tunnel *root_tunnel;               /* until the ring stands; NULL: none */
	uint32_t seq;

	/* Why nothing works any more; news.status 0: all is well. What the others are told. */
	struct tti_failure broken, told;
	void (*on_broken)(void *self, struct tti_failure *failure);
	void *self;
	/* A frame, or a record, was cut short on the way to that side. */
	bool prev_torn, next_torn;

	/* Who has come. The thread's and the caller's. */
	pthread_mutex_t lock;
	int inbox_fd; /* an eventfd: something came */
	struct tti_tunnel *inbox_prev;
	struct tti_tunnel **in; /* [nranks], NULL: none */
	bool taken;             /* the thread keeps what comes */

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

/* A rank that has come listens: who still refuses after this has died. */
#define TTI_SOCK_RETRY_MS 700

/* "rank 3 (host, process 17)". */
const char *tti_sock_name(const struct tti_sock *sock, int rank, char buf[TTI_BOOT_NAME]);
const char *tti_sock_name_as(const struct tti_boot *boot, int rank, int number, char *buf);

/* Tell the other end of a tunnel, NULL: none, what all others are told. */
void tti_sock_tell(const struct tti_sock *sock, struct tti_tunnel *tunnel);

/* Check in and connect the ring (join.c). The connection to the root is kept, after a failure too:
 * ranks that have not met this one yet hear from the root how it fares. */
TUTTI_CHECKED tutti_status tti_sock_join(struct tti_sock *sock,
					 const struct tti_boot_config *config,
					 const struct tti_wire_card *own, int64_t deadline_ns);

/* Tell the first root (join.c): tti_boot_decline(). */
void tti_sock_decline(struct tti_sock *sock, const struct tti_boot_config *config);

/* Exchange over the ring (ring.c), to be over at the deadline. */
TUTTI_CHECKED tutti_status tti_sock_gather(struct tti_sock *sock, void *blobs, size_t nbytes,
					   const char *what, int64_t deadline_ns);
TUTTI_CHECKED tutti_status tti_sock_broadcast(struct tti_sock *sock, int root, void *data,
					      size_t nbytes, const char *what, int64_t deadline_ns);

/* Whether a neighbour has failed or left, between two frames, without reading
 * anything else. */
TUTTI_CHECKED tutti_status tti_sock_check_neighbour(struct tti_sock *sock, int peer,
						    struct tti_tunnel *tunnel, const char *what);

/* The same where nobody may have left yet: its end is one, whatever it said before. */
TUTTI_CHECKED tutti_status tti_sock_check_end(struct tti_sock *sock, int peer,
					      struct tti_tunnel *tunnel, const char *what);
TUTTI_CHECKED tutti_status tti_sock_check_ring(struct tti_sock *sock, const char *what);

/* Fail, and from now on: logged, remembered, the neighbours are told. */
TUTTI_CHECKED TUTTI_PRINTF(4, 5) tutti_status
	tti_sock_break(struct tti_sock *sock, tutti_status status, int failed_rank, const char *fmt,
		       ...);

/* The same for what another rank has noticed, and logged. */
TUTTI_CHECKED tutti_status tti_sock_follow(struct tti_sock *sock,
					   const struct tti_failure *failure);

/* What a peer said instead of what was expected of it: a frame of which nrest
 * bytes of the body have been read; NULL: it closed, or what it sent was changed on its way. */
TUTTI_CHECKED tutti_status tti_sock_broken_by(struct tti_sock *sock, int peer,
					      struct tti_tunnel *tunnel,
					      const struct tti_frame *frame, const void *rest,
					      size_t nrest, const char *what);

/* The error that broke it, again. */
TUTTI_CHECKED tutti_status tti_sock_check(struct tti_sock *sock);

#endif
