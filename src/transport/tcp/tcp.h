/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_H
#define TTI_TRANSPORT_TCP_H

/* The inside of the TCP transport:
 *
 *     tcp_port.c   open, join, connect
 *     tcp_poll.c   events, timers, sleep
 *     tcp_dial.c   the higher rank of a pair connects: tries several addresses, one wins
 *     tcp_accept.c the lower rank accepts, also links that it has not asked for yet
 *     tcp_lane.c   which further lanes a link has that is up, and when to open them
 *     tcp_rail.c   opening a lane between a NIC of this rank and one of the peer
 *     tcp_nics.c   the NICs of this rank: where they listen, in which order to use them
 *     tcp_link.c   a link: its memory, its end, slots and credits
 *     tcp_recv.c   reading
 *     tcp_send.c   writing: staged messages go out on one lane or another
 *     tcp_fail.c   the end of a link that is lost, and its error
 *     tcp_sched.c  which message takes which lane
 *     tcp_share.c  the shares of lanes that were assigned, and whether they can be kept
 *     tcp_retry.c  lanes join and leave a link; messages of a lost lane are sent again
 *     tcp_info.c   figures of each lane, for users
 *     tcp_close.c  closing: what was committed still arrives
 *     tcp_conn.c   one socket: options, registration with epoll, end
 *     tcp_wire.h   frames and the machine that reads them
 *     tcp_card.h   the card
 *
 * How a link comes up. Only the higher rank connects, so two ranks never connect twice:
 *
 *     higher rank                                lower rank
 *     connect to several of its addresses    ->
 *     handshake of boot/net/auth.h, with struct tti_tcp_pass as payload
 *                                            <-  HELLO (you have reached the right rank)
 *     first HELLO wins, other attempts are dropped
 *     HELLO (this connection is used)        ->
 *     link is up                                 link is up
 *
 * A link that is up is made of lanes. conn[i] is the connection of lane i, NULL while there is
 * none. Each message travels whole on one lane. Lanes join (tti_tcp_lane_joins) once there is much
 * to send, and leave (tti_tcp_lane_leaves), but for the last lane: its end is the end of the peer.
 *
 *     data path                                  connector (tcp_lane.c)
 *     much was moved: tti_tcp_lanes_want()   ->
 *                                            <-  tti_tcp_lane_joins()
 *     a lane is lost: tti_tcp_lane_leaves()
 *                     tti_tcp_lanes_lost()   ->  dials again, with backoff
 *                                            <-  tti_tcp_lane_joins()
 *
 * Owner: the port owns links and connections. A connection that ends is freed at the end of
 * progress (tti_tcp_conn_reap), as events may still name it. Threads: one at a time per port. */

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/tcp/tcp_cards.h"
#include "transport/tcp/tcp_conn.h"
#include "transport/tcp/tcp_pairs.h"
#include "transport/tcp/tcp_share.h"
#include "transport/tcp/tcp_wire.h"
#include "transport/transport.h"
#include "util/vec.h"

#define TTI_TCP_LANES_MOST 16 /* of a link; index < TTI_TCP_LANES_MOST */

/* With up to TTI_TCP_FEW connections, reading the one that is asked for costs less than asking
 * epoll first, and only one in TTI_TCP_SKIP calls of progress asks epoll. */
#define TTI_TCP_FEW  4
#define TTI_TCP_SKIP 32

/* What the parameters say; tests pass their own. */
struct tti_tcp_options {
	int sockets;            /* of each pair of NICs of a link for which this rank connects */
	int lanes;              /* of such a link, at most; 0: as many as possible */
	const char *congestion; /* NULL: the system's                         */
	int sndbuf;             /* SO_SNDBUF, 0: the system's, which grows    */
	int handshake_ms;       /* how long a stranger may take to prove itself */
	int traffic_class;      /* IP_TOS, IPV6_TCLASS; 0: the system's       */
	bool encrypt;           /* DATA is sealed like all other frames       */
};

/* What is known of a lane, whether it is up or not. */
struct tti_tcp_lane {
	/* Written by the side that opens lanes. Empty and 0 where unknown. */
	char local_nic[IFNAMSIZ], remote_nic[IFNAMSIZ];
	uint32_t local_mbps, remote_mbps;
	double share;     /* that was assigned to its NICs, 0: none           */
	uint64_t dealt;   /* bytes of the messages sent lately that it got    */
	bool fell_behind; /* behind its share, which was logged               */
	/* Written by the data path. */
	struct tti_addr local, remote; /* of its latest connection; family 0: none yet */
	double rate;                   /* bytes per ns, 0: not measured                */
	double bytes, passed;          /* the measurements, the latest count most      */
	int64_t rtt_ns;                /* the least seen on the connection             */
	int64_t loaded_ns;             /* round-trip time while there is much to send  */
	uint64_t sent;                 /* bytes of messages                            */
	uint32_t losses;
	char trouble[128]; /* why it is not up */
};

/* A connection to open: from which NIC, to which one. */
struct tti_tcp_rail {
	uint8_t mine, theirs; /* 1 + numbers of the NICs in the cards, 0: unknown */
	struct tti_addr from; /* family 0: the system's choice                    */
	struct tti_addr to;   /* with the port                                    */
	char device[IFNAMSIZ];
};

/* Connecting a link that is not up, at the higher rank. */
struct tti_tcp_dial {
	uint64_t nonce;
	size_t naddrs, next; /* candidates; the next one to try */
	int winner;          /* the one that proved itself, -1  */
	int rounds;          /* in which all candidates failed  */
	int64_t next_at;     /* when to try the next            */
	int64_t again_at;    /* when to try again those that failed, while others are connected */
	int64_t deadline;    /* by when the machine of the peer has to be reached               */
	int64_t seen_at;     /* when the deadline was looked at last                            */
	/* Candidate 0, if it has an address: over the NIC that is to be used first. */
	struct tti_tcp_rail rail;
	struct tti_addr addr[TTI_TCP_ADDRS_MOST + 1];
	char why[TTI_TCP_ADDRS_MOST + 1][TTI_TCP_WHY]; /* the last failure of each      */
	bool final[TTI_TCP_ADDRS_MOST + 1];            /* trying again is of little use */
};

/* The header of a staged message is right before its payload, so that a frame is one piece; the
 * payload begins on a cache line. */
#define TTI_TCP_STAGE_PAYLOAD 64
#define TTI_TCP_STAGE_SMALL   (TTI_TCP_STAGE_PAYLOAD + TTI_TCP_SMALL)

/* A message that is staged: what became of it. */
struct tti_tcp_out {
	uint32_t nbytes;
	uint16_t retry; /* times that it was sent again                      */
	int8_t lane;    /* the last lane it was given to, -1: none yet       */
	bool handed;    /* all of it was once given to the system            */
	bool gone;      /* not staged: the system has the only copy          */
};

enum tti_tcp_link_state {
	TTI_TCP_LINK_NEW, /* coming up                             */
	TTI_TCP_LINK_UP,
	TTI_TCP_LINK_LOST,   /* the failure was reported           */
	TTI_TCP_LINK_CLOSED, /* given back; what is unsent goes on */
};

struct tti_tcp_link {
	struct tti_link base;
	struct tti_tcp_port *port;
	enum tti_tcp_link_state state;
	bool asked; /* connect() was called: failure matters */
	int64_t asked_at;
	struct tti_tcp_dial *dial;   /* higher rank, until up */
	struct tti_tcp_lanes *lanes; /* higher rank, once more than one is wanted */
	uint64_t nonce;
	size_t pages_bytes; /* see pages */

	/* Lanes: conn[i] may always be NULL. nconns of lanes 0 .. nlanes-1 are up. Once the link is
	 * up, nconns 0 says that the peer is gone: the last connection stays in conn[], for what it
	 * has received. */
	struct tti_tcp_conn *conn[TTI_TCP_LANES_MOST];
	struct tti_tcp_lane lane[TTI_TCP_LANES_MOST];
	int nconns, nlanes;
	int only; /* new messages take this lane alone, -1: any  */
	const struct tti_tcp_assignment *assignment; /* of the port, NULL: none */
	struct tti_tcp_dealer dealer;
	uint64_t moved; /* bytes of messages, both ways                */
	bool wanted;    /* tti_tcp_lanes_want() was called             */

	/* Receiving. */
	struct tti_tcp_inbox in;
	uint64_t told;    /* the credit that the peer has, of in.released  */
	uint32_t tell_at; /* send credit once so many more are released    */
	uint64_t untold;  /* bytes released since the last credit          */
	bool credit_due;  /* credit waits to be sent; in port->unsent      */
	int heard;        /* lane on which something came last             */
	uint32_t looks;   /* how often messages were looked for in vain    */
	uint32_t usurped; /* of in.usurped, how many lanes have left       */

	/* Sending: message s stays staged in slot s % slots, behind its header, until the peer has
	 * released it. */
	uint8_t *out_small, *out_large;
	size_t out_stride;
	struct tti_tcp_out *out; /* [slots] */
	uint64_t todo;           /* a bit per slot: to be given to a lane        */
	uint64_t first;          /* no message before this one is in todo        */
	int again;               /* messages in todo that are sent again         */
	bool resent;             /* some message was ever sent again             */
	int64_t placed_at;       /* when a lane was chosen last                  */
	bool pushing;
	bool held;     /* messages wait for a lane that is full: port->nheld   */
	bool reserved; /* a slot is reserved and not committed  */
	bool single;   /* there is one lane, and never another */
	int cut;       /* errno of tti_tcp_link_cut(), 0: it was not called */
	size_t unsent; /* its part of port->unsent, plus alive */
	size_t alive;  /* bytes of type ALIVE, for which no call waits */

	void *memory; /* out_small, in.small, in.slot, out */
	void *pages;  /* out_large, in.large          */
};

struct tti_tcp_port {
	struct tti_port base;
	struct tti_tcp_options options;
	uint8_t secret[32];
	/* tti_tcp_lane_leaves(), for reading and writing, which it calls itself. */
	void (*lane_leaves)(struct tti_tcp_link *link, int index, const char *why);
	uint64_t dropped; /* connections refused                              */
	int listen_fd, epoll_fd;
	uint16_t listen_port;
	int nic_fd[TTI_TCP_NICS_MOST]; /* listens on that NIC alone, -1: none */
	TTI_VEC(char *) prefer;        /* names of the NICs to use first      */
	TTI_VEC(struct tti_tcp_assignment *) assignments;
	int64_t accept_at; /* when to accept what was left in a backlog; TTI_NEVER: nothing was */
	bool starved;      /* accept() fails, which was logged */
	bool spares;       /* some link may have a second lane */
	int slots;
	int64_t timeout_ms; /* see struct tti_port_config */

	struct tti_tcp_cards cards; /* of all ranks, from join() on */

	struct tti_tcp_link **link_of; /* [nranks], NULL: none */
	TTI_VEC(struct tti_tcp_link *) links;
	TTI_VEC(struct tti_tcp_conn *) rising; /* connections not yet up, oldest first */
	struct tti_tcp_conn *dead;             /* to be freed                          */

	int nup;          /* connections up that are read                      */
	int nheld;        /* links whose messages wait for a lane that is full */
	int64_t held_at;  /* when these were tried last                      */
	int64_t watch_at; /* when lanes are looked at for silence            */
	int nblocked;     /* connections that wait for room                    */
	int ncoming;      /* links asked for that are not up                   */
	int skipped;      /* calls of progress since epoll was looked at       */
	uint32_t ticks;   /* calls of progress, for rare work                 */
	int64_t look_at;  /* when timers are due                              */
	int64_t lanes_at; /* when a lane needs attention                      */
	int64_t alive_at; /* when connections are checked for a dead machine  */
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

/* -- tcp_poll.c -------------------------------------------------------------- */

/* Handle events, waiting for the first at most timeout_ms. */
void tti_tcp_poll(struct tti_tcp_port *port, int timeout_ms);

/* Entries of struct tti_transport. */
void tti_tcp_progress(struct tti_port *port);
int64_t tti_tcp_tend(struct tti_port *port);
extern const struct tti_sleep_ops tti_tcp_sleep_ops;

/* -- tcp_close.c ------------------------------------------------------------- */

/* Entries of struct tti_transport. */
void tti_tcp_close(struct tti_link *link);
void tti_tcp_shutdown(struct tti_port *port);

/* -- tcp_dial.c -------------------------------------------------------------- */

/* 0, or -1 and errno. */
int tti_tcp_bind_device(int fd, const char *device);

/* A socket that connects over that rail; -1: failed, with the reason, and its errno or 0. */
int tti_tcp_rail_connect(struct tti_tcp_port *port, const struct tti_tcp_rail *rail,
			 char why[TTI_TCP_WHY], int *error);

/* Start connecting to the link's peer. */
TUTTI_CHECKED tutti_status tti_tcp_dial_start(struct tti_tcp_link *link);

/* Something happened on an attempt; time has passed. */
void tti_tcp_dial_event(struct tti_tcp_conn *conn);
void tti_tcp_dial_timer(struct tti_tcp_link *link, int64_t now);

/* An attempt was not connected in time. */
void tti_tcp_dial_expire(struct tti_tcp_conn *conn);

/* Give up connecting: the link is lost, with an error that says what was tried. */
void tti_tcp_dial_give_up(struct tti_tcp_link *link, tutti_status status);

/* -- tcp_accept.c -------------------------------------------------------------- */

/* How a listening socket is looked at: what accept() cannot take is told of once. */
#define TTI_TCP_LISTENS (EPOLLIN | EPOLLET)

/* All that wait in the backlogs. What has to be left there sets port->accept_at. */
void tti_tcp_accept(struct tti_tcp_port *port);
void tti_tcp_accept_event(struct tti_tcp_port *port, struct tti_tcp_conn *conn);
void tti_tcp_accept_expire(struct tti_tcp_port *port, struct tti_tcp_conn *conn);

/* -- tcp_lane.c -------------------------------------------------------------- */

/* Find and open the lanes that are missing. Called once per link, on both sides, when much is moved
 * or all lanes are asked for; the lower rank can only wait. Does not block. */
void tti_tcp_lanes_want(struct tti_tcp_link *link);

/* Lane `index` has just left, others are up: the connector opens it again, as long as the link is
 * up. */
void tti_tcp_lanes_lost(struct tti_tcp_link *link, int index);

/* Time has passed. Returns when to call this again. */
int64_t tti_tcp_lanes_timer(struct tti_tcp_link *link, int64_t now);

/* Something happened on an attempt to open a lane. true: both sides are proven, and the caller
 * passes the connection to tti_tcp_lane_joins() and what that returned to
 * tti_tcp_lanes_opened(). */
bool tti_tcp_lanes_event(struct tti_tcp_conn *conn);
void tti_tcp_lanes_opened(struct tti_tcp_conn *conn, tutti_status joined);

/* The attempt took too long. */
void tti_tcp_lanes_expire(struct tti_tcp_conn *conn);

/* No more attempts. */
void tti_tcp_lanes_free(struct tti_tcp_link *link);

#define TTI_TCP_WANT_LANES (256 * 1024) /* more lanes are opened once a link has moved so much */

/* nbytes of messages were moved, one way or the other. */
static inline void tti_tcp_link_count(struct tti_tcp_link *link, size_t nbytes)
{
	link->moved += nbytes;
	if (link->moved <= TTI_TCP_WANT_LANES || link->wanted || link->state != TTI_TCP_LINK_UP)
		return;
	link->wanted = true;
	tti_tcp_lanes_want(link);
}

/* -- tcp_nics.c -------------------------------------------------------------- */

/* Listen on each NIC alone where there are several, and put the ports into the card. */
void tti_tcp_nics_listen(struct tti_tcp_port *port, struct tti_tcp_card *mine);
void tti_tcp_nics_release(struct tti_tcp_port *port);

/* Entries of struct tti_transport. */
void tti_tcp_prefer(struct tti_port *port, const char *const *nics, int n);

/* The numbers of the NICs in the card, in the order in which to use them. */
void tti_tcp_nics_order(const struct tti_tcp_port *port, const struct tti_tcp_card *mine,
			uint8_t order[TTI_TCP_NICS_MOST]);

/* Whether there is only one path to a peer; whether a card has several NICs, so that there may be
 * more. */
bool tti_tcp_nics_single(const struct tti_tcp_port *port, int peer);
bool tti_tcp_nics_several(const struct tti_tcp_card *card);

/* The rail between two NICs that have a path. */
void tti_tcp_rail_make(const struct tti_tcp_card *mine, const struct tti_tcp_card *theirs,
		       const struct tti_tcp_way *way, struct tti_tcp_rail *out);

/* Name both ends of a lane, by the numbers of their NICs (1 + number, 0: unknown). */
void tti_tcp_lane_name(struct tti_tcp_link *link, int index, uint8_t mine, uint8_t theirs);

/* -- tcp_retry.c ------------------------------------------------------------- */

/* Whether link->nconns counts it: both directions are open. */
static inline bool tti_tcp_conn_counts(const struct tti_tcp_conn *conn)
{
	return !conn->broken && !conn->ended;
}

/* Whether a link has a working lane other than `conn`, which is one of its own. */
static inline bool tti_tcp_has_others(const struct tti_tcp_link *link,
				      const struct tti_tcp_conn *conn)
{
	return link->nconns > tti_tcp_conn_counts(conn);
}

/* Make `conn`, which both sides have proven (state PROVEN, pass and link set), lane
 * conn->pass.index of a link that is UP. An open lane of that number leaves. Takes the connection,
 * also on failure. */
TUTTI_CHECKED tutti_status tti_tcp_lane_joins(struct tti_tcp_link *link, struct tti_tcp_conn *conn);

/* Give up one lane of several: close it, send again on other lanes what the peer has not released,
 * call tti_tcp_lanes_lost() unless the peer leaves. Nothing happens to the last lane. `why` is
 * copied. */
void tti_tcp_lane_leaves(struct tti_tcp_link *link, int index, const char *why);

/* Note the addresses at both ends of a lane that is up. */
void tti_tcp_lane_introduce(struct tti_tcp_link *link, int index);

/* Look for lanes and machines that do not answer, if it is time for that. */
void tti_tcp_port_watch(struct tti_tcp_port *port, int64_t now);

/* Whether some lane did not answer at the last look, so that the next one is to follow soon. */
bool tti_tcp_port_doubts(const struct tti_tcp_port *port);

/* -- tcp_fail.c -------------------------------------------------------------- */

/* The link is lost, and so the port has failed. What is unsent stays unsent. `status` is that of
 * the last tti_fail(). */
void tti_tcp_link_fail(struct tti_tcp_link *link, tutti_status status);

/* The same, as the peer is gone: `what` happened, and `error` is an errno or 0. */
void tti_tcp_link_lose(struct tti_tcp_link *link, const char *what, int error);

/* The last working lane is reset: nothing more can be sent, but what came before stays readable.
 * The link is lost if the peer cannot have some message. Otherwise what is unsent is dropped: a
 * peer that has left needs no credit, and nothing again that it may have. */
void tti_tcp_link_cut(struct tti_tcp_link *link, struct tti_tcp_conn *conn, int error);

/* -- tcp_recv.c -------------------------------------------------------------- */

/* Read what is there. */
void tti_tcp_link_pull(struct tti_tcp_link *link, struct tti_tcp_conn *conn);

/* A message is wanted that is not there: read what has come. */
void tti_tcp_link_look(struct tti_tcp_link *link);

/* -- tcp_send.c -------------------------------------------------------------- */

/* The bytes of a message on the wire. */
static inline size_t tti_tcp_wire_bytes(const struct tti_tcp_link *link, size_t nbytes)
{
	if (!link->port->options.encrypt)
		return TTI_TCP_HEADER + nbytes;
	return TTI_TCP_SEALED + nbytes + (nbytes ? TTI_SEAL_MAC : 0);
}

/* Make a frame with nothing but its type and the credit what this connection sends next; it is
 * owed. */
void tti_tcp_load_control(struct tti_tcp_link *link, struct tti_tcp_conn *conn, uint8_t type);

/* The same for as many frames of type ALIVE as are due, maybe none, in the place of a message. The
 * link alone owes them: no call waits for them, as the peer may read nothing for long. */
void tti_tcp_load_alive(struct tti_tcp_link *link, struct tti_tcp_conn *conn);

/* Owe bytes, which are to be handed to the system; and forget owed bytes. */
static inline void tti_tcp_owe(struct tti_tcp_link *link, size_t nbytes)
{
	link->unsent += nbytes;
	link->port->base.unsent += nbytes;
}

static inline void tti_tcp_forget(struct tti_tcp_link *link, size_t nbytes)
{
	link->unsent -= nbytes;
	link->port->base.unsent -= nbytes;
}

/* Forget a part of what this connection is sending. */
static inline void tti_tcp_forget_out(struct tti_tcp_link *link, const struct tti_tcp_conn *conn,
				      size_t nbytes)
{
	link->unsent -= nbytes;
	if (conn->out_alive)
		link->alive -= nbytes;
	else
		link->port->base.unsent -= nbytes;
}

/* Forget all that the link owes. */
static inline void tti_tcp_forget_all(struct tti_tcp_link *link)
{
	link->port->base.unsent -= link->unsent - link->alive;
	link->unsent = link->alive = 0;
}

/* The bit of a message in link->todo. */
static inline uint64_t tti_tcp_bit_of(const struct tti_tcp_link *link, uint64_t seq)
{
	return UINT64_C(1) << seq % link->in.slots;
}

/* Whether there is room for one more message. */
bool tti_tcp_may_stage(struct tti_tcp_link *link);

/* That room, NULL: there is none. */
void *tti_tcp_stage(struct tti_tcp_link *link, size_t nbytes);

/* An entry of struct tti_link_ops. */
void tti_tcp_commit(struct tti_link *link, size_t nbytes, uint64_t tag);

/* The same, without a copy where nothing may have to be sent again. */
bool tti_tcp_send(struct tti_link *link, const void *data, size_t nbytes, uint64_t tag);

/* Write what waits. */
void tti_tcp_link_push(struct tti_tcp_link *link);

/* The same for all links that hold something back, if it is time for that. */
void tti_tcp_port_push(struct tti_tcp_port *port);

/* -- tcp_sched.c ------------------------------------------------------------- */

/* Choose a lane that can take a frame now, and the message for it. false: none can, or waiting for
 * a better lane takes less time. */
bool tti_tcp_sched_next(struct tti_tcp_link *link, int *lane, uint64_t *seq);

/* The lane to send credit on, -1: none can now. */
int tti_tcp_sched_credit(const struct tti_tcp_link *link);

/* nbytes were given to the system. */
void tti_tcp_sched_handed(struct tti_tcp_conn *conn, size_t nbytes);

/* -- tcp_link.c -------------------------------------------------------------- */

/* A link to `peer` that is not up, in port->links and link_of. */
TUTTI_CHECKED tutti_status tti_tcp_link_create(struct tti_tcp_port *port, int peer,
					       struct tti_tcp_link **out);

/* The first connection is there: allocate memory and go UP. Failures go to the port. */
void tti_tcp_link_raise(struct tti_tcp_link *link);
void tti_tcp_link_free(struct tti_tcp_link *link);

extern const struct tti_link_ops tti_tcp_link_ops;
extern const struct tti_lane_ops tti_tcp_lane_ops; /* tcp_info.c */

#endif
