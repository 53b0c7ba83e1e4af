/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_H
#define TTI_TRANSPORT_TCP_H

/* Inside of the TCP transport. Who does what:
 *
 *     tcp_port.c   open, join, connect, progress, sleep, shutdown
 *     tcp_dial.c   the higher rank of a pair connects (several addresses, one wins)
 *     tcp_guest.c  the lower rank accepts, and keeps what is not asked for yet
 *     tcp_link.c   messages: staging slots, credits, reading and writing
 *     tcp_close.c  closing: what was committed still arrives
 *     tcp_conn.c   one socket: options, registration with epoll, end
 *     tcp_wire.h   frames and the machine that reads them
 *     tcp_card.h   the card
 *
 * How a link of k connections comes to be; all in one direction, so two ranks
 * never connect twice:
 *
 *     higher rank                                lower rank
 *     connect to several of its addresses ->
 *     handshake of boot/auth.h, with struct tti_tcp_pass as payload
 *                                            <-  HELLO (it is me you mean)
 *     first HELLO wins, other attempts are dropped;
 *     k - 1 more connections to that address, the same way
 *     HELLO on each (this one is used)       ->
 *     link is up                                 link is up when k HELLOs came
 *
 * Owner: the port owns links and connections. A connection that ends is freed at
 * the end of progress (tti_tcp_conn_reap), as events may still name it.
 * Threads: one at a time per port. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/auth.h"
#include "transport/tcp_card.h"
#include "transport/tcp_wire.h"
#include "transport/transport.h"
#include "util/vec.h"

#define TTI_TCP_SOCKETS_MOST 16

/* Up to so many connections, reading the one that is asked for costs less than
 * asking epoll first, and epoll is looked at in every so many calls only. */
#define TTI_TCP_FEW  4
#define TTI_TCP_SKIP 8

/* What the parameters say; tests pass their own. */
struct tti_tcp_options {
	int sockets;            /* of a link for which this rank connects     */
	const char *congestion; /* NULL: the system's                         */
	int sndbuf;             /* SO_SNDBUF, 0: the system's, which grows    */
	int handshake_ms;       /* how long a stranger may take to prove itself */
};

/* Who connects, and for what: the payload of the handshake. */
#define TTI_TCP_PASS_BYTES 24
struct tti_tcp_pass {
	uint32_t from, to;
	uint64_t nonce; /* of the attempt to make this link */
	uint8_t index, total;
};

enum tti_tcp_conn_state {
	TTI_TCP_CONNECTING, /* TCP's own handshake                      */
	TTI_TCP_PROVING,    /* boot/auth.h                              */
	TTI_TCP_GREETING,   /* waiting for the other side's HELLO       */
	TTI_TCP_PROVEN,     /* connector: HELLO came, ours not yet sent */
	TTI_TCP_UP,
	TTI_TCP_DEAD, /* closed, waits to be freed */
};

struct tti_tcp_link;

struct tti_tcp_conn {
	int fd;
	enum tti_tcp_conn_state state;
	bool connector;
	bool blocked;              /* the socket took no more: EPOLLOUT is asked for  */
	bool ended;                /* the peer sends no more                          */
	bool broken;               /* nothing can be sent                             */
	bool shut;                 /* our end of stream is sent                            */
	bool hangup;               /* epoll said so: read until the end is seen       */
	int error;                 /* errno it ended with, 0: orderly                 */
	struct tti_tcp_link *link; /* NULL: a guest not yet assigned     */
	int64_t deadline;          /* until UP                           */

	/* Until it is up. */
	struct tti_auth *auth;
	struct tti_tcp_pass pass;
	uint8_t hello[TTI_TCP_HEADER];
	size_t nhello; /* bytes of it that came */
	int candidate; /* connector: which address */

	/* From then on. What is being sent: a frame, or the rest of it. */
	const uint8_t *out;
	size_t nout;
	uint8_t credit[TTI_TCP_HEADER];
	struct tti_tcp_reader *reader;
	int64_t silent_since; /* see tti_tcp_conn_is_silent() */
	struct tti_tcp_conn *next_dead;
};

/* The higher rank's work on a link that is not up. */
struct tti_tcp_dial {
	uint64_t nonce;
	size_t naddrs, next; /* candidates; the next one to try */
	int winner;          /* the one that proved itself, -1  */
	int rounds;          /* in which all candidates failed  */
	int64_t next_at;     /* when to try the next            */
	struct tti_addr addr[TTI_TCP_ADDRS_MOST];
	char why[TTI_TCP_ADDRS_MOST][96]; /* how each failed last */
	bool final[TTI_TCP_ADDRS_MOST];   /* trying again is of little use */
};

enum tti_tcp_link_state {
	TTI_TCP_LINK_NEW, /* coming up                             */
	TTI_TCP_LINK_UP,
	TTI_TCP_LINK_LOST,   /* failure was said                   */
	TTI_TCP_LINK_CLOSED, /* given back; what is unsent goes on */
};

struct tti_tcp_link {
	struct tti_link base;
	struct tti_tcp_port *port;
	enum tti_tcp_link_state state;
	bool asked; /* connect() was called: failure matters */
	int64_t deadline;
	struct tti_tcp_dial *dial; /* higher rank, until up */
	uint64_t nonce;
	int total; /* connections it is to have, 0: not known */

	/* Connections; while the link comes up, [i] may be NULL. */
	struct tti_tcp_conn *conn[TTI_TCP_SOCKETS_MOST];
	int nconns;
	int turn;    /* connection that sends next            */
	int nended;  /* connections on which nothing comes    */
	int nfailed; /* of those, with an error              */

	/* Receiving. */
	struct tti_tcp_inbox in;
	uint64_t told;    /* of in.released, how many the peer was told */
	uint32_t tell_at; /* tell when so many more were released       */
	bool credit_due;  /* it could not be told yet; in port->unsent  */

	/* Sending: message s is staged in slot s % slots, header before it. */
	uint8_t *out_small, *out_large;
	size_t out_stride;
	uint32_t *out_nbytes; /* [slots] */
	uint64_t begun;       /* messages handed to a connection */
	bool lent;            /* a slot is reserved and not committed */
	size_t unsent;        /* its part of port->unsent        */

	void *memory; /* out_small, in.small, in.slot */
	void *pages;  /* out_large, in.large          */
	size_t pages_bytes;
};

struct tti_tcp_port {
	struct tti_port base;
	struct tti_tcp_options options;
	uint8_t secret[32];
	char congestion[16];
	int listen_fd, epoll_fd;
	uint16_t listen_port;
	bool starved; /* accept() fails, which was said */
	int slots;
	int64_t timeout_ms;

	/* The cards, packed: that of rank r is cards[card_at[r] .. card_at[r + 1]). */
	uint8_t *cards;
	uint32_t *card_at;

	struct tti_tcp_link **link_of; /* [nranks], NULL: none */
	TTI_VEC(struct tti_tcp_link *) links;
	TTI_VEC(struct tti_tcp_conn *) rising; /* connections not yet up, oldest first */
	struct tti_tcp_conn *dead;             /* to be freed                          */

	int nup;          /* connections up that are read                      */
	int nblocked;     /* connections that wait for room                    */
	int ncoming;      /* links asked for that are not up                   */
	int skipped;      /* calls of progress since epoll was looked at       */
	uint32_t ticks;   /* calls of progress, for rare work                 */
	int64_t look_at;  /* when timers are due                              */
	int64_t alive_at; /* when connections are checked for a dead machine  */
	uint64_t dropped; /* connections refused                              */
};

static inline struct tti_tcp_port *tti_tcp_port_of(struct tti_port *port)
{
	return (struct tti_tcp_port *)port;
}

/* -- tcp_port.c -------------------------------------------------------------- */

/* open() with options instead of parameters. */
TUTTI_CHECKED tutti_status tti_tcp_open(const struct tti_port_config *config,
					const struct tti_tcp_options *options,
					struct tti_port **out, struct tti_card *card);

/* Handle what happened, after at most timeout_ms. */
void tti_tcp_poll(struct tti_tcp_port *port, int timeout_ms);

/* -- tcp_close.c ------------------------------------------------------------- */

/* Of struct tti_transport. */
void tti_tcp_close(struct tti_link *link);
void tti_tcp_shutdown(struct tti_port *port);

/* -- tcp_conn.c -------------------------------------------------------------- */

/* A connection over `fd`, which it takes (also on failure), in port->rising. */
TUTTI_CHECKED tutti_status tti_tcp_conn_create(struct tti_tcp_port *port, int fd,
					       struct tti_tcp_conn **out);

/* Options of a data socket, before connecting or after accepting. */
TUTTI_CHECKED tutti_status tti_tcp_conn_tune(struct tti_tcp_port *port, int fd);

/* Whether the kernel knows that congestion control. */
TUTTI_CHECKED tutti_status tti_tcp_check_congestion(int fd, const char *name);

/* Close it; freed by reap. */
void tti_tcp_conn_drop(struct tti_tcp_port *port, struct tti_tcp_conn *conn);
void tti_tcp_conn_reap(struct tti_tcp_port *port);

/* It belongs to a link that is up from now on. */
TUTTI_CHECKED tutti_status tti_tcp_conn_raise(struct tti_tcp_port *port, struct tti_tcp_conn *conn);

/* Ask epoll for room to write, or no more. */
void tti_tcp_conn_block(struct tti_tcp_port *port, struct tti_tcp_conn *conn, bool blocked);

/* Send a HELLO; a fresh socket has room for it. */
TUTTI_CHECKED tutti_status tti_tcp_conn_greet(struct tti_tcp_conn *conn);

/* Read the other side's: TUTTI_AGAIN, TUTTI_OK, TUTTI_EPROTO (not what it should
 * be), TUTTI_EPEER (it closed). Nothing behind it is read. Quiet. */
TUTTI_CHECKED tutti_status tti_tcp_conn_greeted(struct tti_tcp_conn *conn);

/* Whether something sent was not acknowledged by the peer's machine for long,
 * though TCP kept asking. */
bool tti_tcp_conn_is_silent(struct tti_tcp_conn *conn, int64_t now);

void tti_tcp_pass_put(const struct tti_tcp_pass *pass, uint8_t bytes[TTI_TCP_PASS_BYTES]);
void tti_tcp_pass_get(const uint8_t bytes[TTI_TCP_PASS_BYTES], struct tti_tcp_pass *out);

/* -- tcp_dial.c -------------------------------------------------------------- */

/* Start connecting to the link's peer. */
TUTTI_CHECKED tutti_status tti_tcp_dial_start(struct tti_tcp_link *link);

/* Something happened on an attempt; time has passed. */
void tti_tcp_dial_event(struct tti_tcp_conn *conn);
void tti_tcp_dial_timer(struct tti_tcp_link *link, int64_t now);

/* An attempt took too long. */
void tti_tcp_dial_expire(struct tti_tcp_conn *conn);

/* It is of no use: say what was tried. */
void tti_tcp_dial_give_up(struct tti_tcp_link *link, tutti_status status);

void tti_tcp_dial_free(struct tti_tcp_link *link);

/* -- tcp_guest.c -------------------------------------------------------------- */

void tti_tcp_guest_accept(struct tti_tcp_port *port);
void tti_tcp_guest_event(struct tti_tcp_port *port, struct tti_tcp_conn *conn);
void tti_tcp_guest_expire(struct tti_tcp_port *port, struct tti_tcp_conn *conn);

/* -- tcp_link.c -------------------------------------------------------------- */

/* A link to `peer` that is not up, in port->links and link_of. */
TUTTI_CHECKED tutti_status tti_tcp_link_create(struct tti_tcp_port *port, int peer,
					       struct tti_tcp_link **out);

/* All connections are there: get memory, go. Failures are the port's. */
void tti_tcp_link_raise(struct tti_tcp_link *link);

void tti_tcp_link_free(struct tti_tcp_link *link);

/* Read what is there; write what waits. */
void tti_tcp_link_pull(struct tti_tcp_link *link, struct tti_tcp_conn *conn);
void tti_tcp_link_push(struct tti_tcp_link *link);

/* The link is lost: port->failure, and what is unsent stays so. `status` is that
 * of a tti_fail() just made. */
void tti_tcp_link_fail(struct tti_tcp_link *link, tutti_status status);

extern const struct tti_link_ops tti_tcp_link_ops;

#endif
