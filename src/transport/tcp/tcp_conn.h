/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_CONN_H
#define TTI_TRANSPORT_TCP_CONN_H

/* One connection: its socket, its handshake, what it is sending, how fast it is.
 *
 * Owner and threads: see tcp.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/net/auth.h"
#include "transport/tcp/tcp_wire.h"
#include "tutti/status.h"

struct tcp_info;
struct tti_addr;
struct tti_tcp_link;
struct tti_tcp_port;

#define TTI_TCP_WHY 96 /* bytes of a reason, at most */

/* The payload of the handshake: which rank connects to which, and for what. */
#define TTI_TCP_PASS_BYTES 24
struct tti_tcp_pass {
	uint32_t from, to;
	uint64_t nonce;           /* of the attempt to make this link           */
	uint8_t index, total;     /* number of the lane; total is always 1      */
	uint8_t from_nic, to_nic; /* 1 + number of the NIC in the card, 0: unknown */
};

/* How fast a connection sends what it is given. */
struct tti_tcp_pace {
	uint64_t handed;       /* bytes given to the system                         */
	size_t waiting;        /* of these, not acknowledged when last looked at    */
	size_t unsent;         /* of these, not on the way then                     */
	bool queued;           /* all of these were, but some were queued at a NIC  */
	int64_t through_at;    /* when all of it should have been sent              */
	int64_t looked_at;     /* when it was last looked at                        */
	int64_t since;         /* since when it has had something to send; 0: not   */
	uint64_t acked_before; /* bytes acknowledged at that time                   */
	bool supplied;         /* since then it had something, whenever looked at   */
	bool warm;             /* a full measurement has passed since it was idle   */
	int64_t passed_over;   /* since when it has had nothing, though others had  */
	int64_t patience;      /* how long that may take before it is tried         */
	bool tried;            /* it was tried, and not looked at since             */
};

enum tti_tcp_conn_state {
	TTI_TCP_CONNECTING, /* TCP's own handshake                      */
	TTI_TCP_PROVING,    /* boot/net/auth.h                          */
	TTI_TCP_GREETING,   /* waiting for the other side's HELLO       */
	TTI_TCP_PROVEN,     /* connector: HELLO came, ours not yet sent */
	TTI_TCP_UP,
	TTI_TCP_DEAD, /* closed, waits to be freed */
};

struct tti_tcp_conn {
	int fd;
	enum tti_tcp_conn_state state;
	bool connector;
	bool blocked;              /* the socket took no more: EPOLLOUT is asked for  */
	bool ended;                /* the peer sends no more                          */
	bool broken;               /* nothing can be sent                             */
	bool shut;                 /* our end of stream is sent                       */
	bool said_end;             /* END was sent */
	bool hangup;               /* epoll said so: read until the end is seen       */
	int error;                 /* errno it ended with, 0: orderly                 */
	struct tti_tcp_link *link; /* NULL: accepted, of no link yet       */
	int64_t deadline;          /* until UP                           */

	/* Until it is up. */
	struct tti_auth *auth;
	struct tti_tcp_pass pass;
	uint8_t hello[TTI_TCP_SEALED];
	size_t nhello; /* bytes of it that came */
	int candidate; /* connector: which address */

	struct tti_seal in, out_seal; /* from when it is proven on */

	/* From then on. What is being sent: a frame, or the rest of it. */
	const uint8_t *out;
	size_t nout;
	uint64_t out_seq; /* of the message, if it is one: out_data */
	bool out_data;
	bool out_alive; /* it is of type ALIVE */
	uint64_t told;  /* the latest credit it carried           */
	struct tti_tcp_pace pace;
	uint8_t credit[TTI_TCP_SEALED];
	uint8_t *sealed;    /* where messages are sealed, NULL: they are not */
	uint64_t alive_at;  /* out_seal.number after it was last said to be alive, */
	size_t alive_bytes; /* in so many bytes since something else was sent      */
	struct tti_tcp_reader *reader;
	int64_t silent_since; /* see tti_tcp_conn_is_silent() */
	int64_t waits_since;  /* something sent again is not acknowledged */
	struct tti_tcp_conn *next_dead;
};

/* A connection in port->rising. Takes `fd`, also on failure. */
TUTTI_CHECKED tutti_status tti_tcp_conn_create(struct tti_tcp_port *port, int fd,
					       struct tti_tcp_conn **out);

/* Options of a data socket, before connecting or after accepting. */
TUTTI_CHECKED tutti_status tti_tcp_conn_tune(struct tti_tcp_port *port, int fd);

/* Whether the kernel knows that congestion control. */
TUTTI_CHECKED tutti_status tti_tcp_check_congestion(int fd, const char *name);

/* Close it; freed by reap. */
void tti_tcp_conn_drop(struct tti_tcp_port *port, struct tti_tcp_conn *conn);
void tti_tcp_conn_reap(struct tti_tcp_port *port);

/* It belongs to a link that is up, from now on. */
TUTTI_CHECKED tutti_status tti_tcp_conn_raise(struct tti_tcp_port *port, struct tti_tcp_conn *conn);

/* Ask epoll for EPOLLOUT, or stop asking. */
void tti_tcp_conn_block(struct tti_tcp_port *port, struct tti_tcp_conn *conn, bool blocked);

/* The handshake is over: its keys seal what follows. */
void tti_tcp_conn_proven(struct tti_tcp_conn *conn);

/* Send a HELLO; a fresh socket has room for it. */
TUTTI_CHECKED tutti_status tti_tcp_conn_greet(struct tti_tcp_conn *conn);

/* Read the HELLO of the other side: TUTTI_AGAIN, TUTTI_OK, TUTTI_EPROTO (another, or changed on its
 * way), TUTTI_EPEER (closed). Reads nothing behind it. Quiet. */
TUTTI_CHECKED tutti_status tti_tcp_conn_greeted(struct tti_tcp_conn *conn);

/* At the connector: go on until both sides are proven. TUTTI_OK: they are; TUTTI_AGAIN; or a quiet
 * error that says why not. */
TUTTI_CHECKED tutti_status tti_tcp_conn_step(struct tti_tcp_conn *conn, char why[TTI_TCP_WHY]);

/* The addresses of both ends; unchanged where the system does not tell them. */
void tti_tcp_conn_ends(const struct tti_tcp_conn *conn, struct tti_addr *local,
		       struct tti_addr *remote);

/* What the kernel knows of it (struct tcp_info); false: nothing. */
bool tti_tcp_conn_info(const struct tti_tcp_conn *conn, struct tcp_info *out);

/* Send an acknowledgement now, not in 40 ms: the peer waits for it before it closes. */
void tti_tcp_conn_acknowledge(struct tti_tcp_conn *conn);

/* Whether the machine of the peer has acknowledged nothing for long, though TCP kept asking. */
bool tti_tcp_conn_is_silent(struct tti_tcp_conn *conn, int64_t now);

void tti_tcp_pass_put(const struct tti_tcp_pass *pass, uint8_t bytes[TTI_TCP_PASS_BYTES]);
void tti_tcp_pass_get(const uint8_t bytes[TTI_TCP_PASS_BYTES], struct tti_tcp_pass *out);

#endif
