/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TRANSPORT_TCP_H
#define TTI_TRANSPORT_TCP_H

/* Inside of the TCP transport. Who does what:
 *
 *     tcp_port.c   open, join, connect
 *     tcp_poll.c   events, timers, sleep
 *     tcp_dial.c   the higher rank of a pair connects (several addresses, one wins)
 *     tcp_guest.c  the lower rank accepts, and keeps what is not asked for yet
 *     tcp_lane.c   a link that is up: which further lanes there are, when to open them
 *     tcp_rail.c   opening one: bound to a NIC, and to one of the peer's
 *     tcp_nics.c   the NICs of this rank: where they listen, in which order to use them
 *     tcp_link.c   a link: its memory, its end, slots and credits
 *     tcp_recv.c   reading
 *     tcp_send.c   writing: staged messages go out on one lane or another
 *     tcp_fail.c   the end of a link that is lost, and its error
 *     tcp_sched.c  which message takes which lane
 *     tcp_share.c  the shares of lanes that were assigned, and whether they can be kept
 *     tcp_retry.c  lanes join and leave a link; what a lost one carried goes again
 *     tcp_info.c   what is known of each lane
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
 * A link that is up is made of lanes. conn[i] is the connection of lane i, NULL
 * while there is none; each message travels whole on one of them. More lanes come
 * (tti_tcp_lane_joins) once there is much to send, others go (tti_tcp_lane_leaves);
 * the last one never leaves: its end is the peer's.
 *
 *     data path                                  who opens lanes
 *     much was moved: tti_tcp_lanes_want()   ->
 *                                            <-  tti_tcp_lane_joins()
 *     a lane is lost: tti_tcp_lane_leaves()
 *                     tti_tcp_lanes_lost()   ->  connector: dials again, with backoff
 *                                            <-  tti_tcp_lane_joins()
 *
 * Owner: the port owns links and connections. A connection that ends is freed at
 * the end of progress (tti_tcp_conn_reap), as events may still name it.
 * Threads: one at a time per port. */

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

#define TTI_TCP_SOCKETS_MOST 16 /* of one pair of NICs                     */
#define TTI_TCP_LANES_MOST   16 /* of a link; index < TTI_TCP_LANES_MOST   */

/* Up to so many connections, reading the one that is asked for costs less than
 * asking epoll first, and epoll is looked at in every so many calls only. */
#define TTI_TCP_FEW  4
#define TTI_TCP_SKIP 32

/* What the parameters say; tests pass their own. */
struct tti_tcp_options {
	int sockets;            /* of each pair of NICs of a link for which this rank connects */
	int lanes;              /* of such a link, at most; 0: as many as can be */
	const char *congestion; /* NULL: the system's                         */
	int sndbuf;             /* SO_SNDBUF, 0: the system's, which grows    */
	int handshake_ms;       /* how long a stranger may take to prove itself */
	int traffic_class;      /* IP_TOS, IPV6_TCLASS; 0: the system's       */
	bool encrypt;           /* messages are sealed, not only what is beside them */
};

/* What is known of a lane, whether it is up or not. */
struct tti_tcp_lane {
	/* Of who opens lanes. Empty and 0 where unknown. */
	char local_nic[IFNAMSIZ], remote_nic[IFNAMSIZ];
	uint32_t local_mbps, remote_mbps;
	double share;     /* that was assigned to its NICs, 0: none    */
	uint64_t dealt;   /* bytes of messages, of those that were sent lately */
	bool fell_behind; /* its share, which was said */
	/* Of the data path, from here on. */
	struct tti_addr local, remote; /* of its latest connection; family 0: none yet */
	double rate;                   /* bytes per ns, 0: not measured                */
	double bytes, passed;          /* what was measured, the latest counts most    */
	int64_t rtt_ns;                /* the least seen on the connection             */
	int64_t loaded_ns;             /* what it takes while there is much to send    */
	uint64_t sent;                 /* bytes of messages                            */
	uint32_t losses;
	char trouble[128]; /* why it is not up */
};

/* How a connection is to go: by which NIC, to which one. */
struct tti_tcp_rail {
	uint8_t mine, theirs; /* 1 + numbers of the NICs in the cards, 0: unknown */
	struct tti_addr from; /* family 0: the system's choice                    */
	struct tti_addr to;   /* with the port                                    */
	char device[IFNAMSIZ];
};

/* The higher rank's work on a link that is not up. */
struct tti_tcp_dial {
	uint64_t nonce;
	size_t naddrs, next; /* candidates; the next one to try */
	int winner;          /* the one that proved itself, -1  */
	int rounds;          /* in which all candidates failed  */
	int64_t next_at;     /* when to try the next            */
	int64_t again_at;    /* when to try again those that failed, while others are connected */
	int64_t deadline;    /* by when the machine of the peer has to be reached               */
	int64_t seen_at;     /* when the deadline was looked at last                            */
	/* Candidate 0 is this one if it has an address: the NIC that is to be used. */
	struct tti_tcp_rail rail;
	struct tti_addr addr[TTI_TCP_ADDRS_MOST + 1];
	char why[TTI_TCP_ADDRS_MOST + 1][TTI_TCP_WHY]; /* how each failed last */
	bool final[TTI_TCP_ADDRS_MOST + 1];            /* trying again is of little use */
};

/* Its header is right before its payload, so that a frame is one piece; the payload
 * begins on a cache line. */
#define TTI_TCP_STAGE_PAYLOAD 64
#define TTI_TCP_STAGE_SMALL   (TTI_TCP_STAGE_PAYLOAD + TTI_TCP_SMALL)

/* A message that is staged: what became of it. */
struct tti_tcp_out {
	uint32_t nbytes;
	uint16_t retry; /* times it had to go again                    */
	int8_t lane;    /* that it went to last, -1: none yet          */
	bool handed;    /* all of it was once given to the system      */
	bool gone;      /* what was given to the system is nowhere else */
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
	int64_t asked_at;
	struct tti_tcp_dial *dial;   /* higher rank, until up */
	struct tti_tcp_lanes *lanes; /* higher rank, once more than one is wanted */
	uint64_t nonce;
	size_t pages_bytes; /* see pages */

	/* Lanes: [i] may be NULL, always. nconns of [0 .. nlanes-1] are there and well;
	 * once the link is up, 0 says that the peer is gone: the last one to end stays
	 * in conn[], for what it brought. */
	struct tti_tcp_conn *conn[TTI_TCP_LANES_MOST];
	struct tti_tcp_lane lane[TTI_TCP_LANES_MOST];
	int nconns, nlanes;
	int only;                        /* new messages take this lane alone, -1: any  */
	const struct tti_tcp_wish *wish; /* of the port, NULL: none */
	struct tti_tcp_dealer dealer;
	uint64_t moved; /* bytes of messages, both ways                */
	bool wanted;    /* tti_tcp_lanes_want() was called             */

	/* Receiving. */
	struct tti_tcp_inbox in;
	uint64_t told;    /* of in.released, how many the peer was told */
	uint32_t tell_at; /* tell when so many more were released       */
	uint64_t untold;  /* bytes released since it was told           */
	bool credit_due;  /* it could not be told yet; in port->unsent  */
	int heard;        /* lane on which something came last          */
	uint32_t looks;   /* how often messages were looked for in vain */
	uint32_t usurped; /* of in.usurped, how many lanes have left    */

	/* Sending: message s is staged in slot s % slots, header before it, until the
	 * peer has released it. */
	uint8_t *out_small, *out_large;
	size_t out_stride;
	struct tti_tcp_out *out; /* [slots] */
	uint64_t todo;           /* bit per slot: to be handed to a lane         */
	uint64_t first;          /* none before this message is to be handed     */
	int again;               /* of those to do, how many for another time    */
	bool resent;             /* something was sent again, ever               */
	int64_t placed_at;       /* when a lane was chosen last                  */
	bool pushing;
	bool held;     /* messages wait for a lane that is full: port->nheld   */
	bool lent;     /* a slot is reserved and not committed */
	bool single;   /* there is one lane and will be no other */
	int cut;       /* errno of tti_tcp_link_cut(), 0: it was not called */
	size_t unsent; /* its part of port->unsent, and alive */
	size_t alive;  /* bytes of type ALIVE, for which no call waits */

	void *memory; /* out_small, in.small, in.slot, out */
	void *pages;  /* out_large, in.large          */
};

struct tti_tcp_port {
	struct tti_port base;
	struct tti_tcp_options options;
	uint8_t secret[32];
	/* tti_tcp_lane_leaves(), for what reads and writes, which it builds upon. */
	void (*lane_leaves)(struct tti_tcp_link *link, int index, const char *why);
	uint64_t dropped; /* connections refused                              */
	int listen_fd, epoll_fd;
	uint16_t listen_port;
	int nic_fd[TTI_TCP_NICS_MOST]; /* listens to what comes in by that NIC, -1: does not */
	TTI_VEC(char *) prefer;        /* names of NICs, those to use first */
	TTI_VEC(struct tti_tcp_wish *) wishes;
	bool starved; /* accept() fails, which was said */
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
	int64_t lanes_at; /* when something is to be done for a lane          */
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

/* Handle what happened, after at most timeout_ms. */
void tti_tcp_poll(struct tti_tcp_port *port, int timeout_ms);

/* Of struct tti_transport. */
void tti_tcp_progress(struct tti_port *port);
extern const struct tti_sleep_ops tti_tcp_sleep_ops;

/* -- tcp_close.c ------------------------------------------------------------- */

/* Of struct tti_transport. */
void tti_tcp_close(struct tti_link *link);
void tti_tcp_shutdown(struct tti_port *port);

/* -- tcp_dial.c -------------------------------------------------------------- */

/* 0, or -1 and errno. */
int tti_tcp_bind_device(int fd, const char *device);

/* A socket that connects over that rail; -1: why not, and errno where that says it, else 0. */
int tti_tcp_rail_connect(struct tti_tcp_port *port, const struct tti_tcp_rail *rail,
			 char why[TTI_TCP_WHY], int *error);

/* Start connecting to the link's peer. */
TUTTI_CHECKED tutti_status tti_tcp_dial_start(struct tti_tcp_link *link);

/* Something happened on an attempt; time has passed. */
void tti_tcp_dial_event(struct tti_tcp_conn *conn);
void tti_tcp_dial_timer(struct tti_tcp_link *link, int64_t now);

/* An attempt was not connected in time. */
void tti_tcp_dial_expire(struct tti_tcp_conn *conn);

/* It is of no use: say what was tried. */
void tti_tcp_dial_give_up(struct tti_tcp_link *link, tutti_status status);

/* -- tcp_guest.c -------------------------------------------------------------- */

void tti_tcp_guest_accept(struct tti_tcp_port *port);
void tti_tcp_guest_event(struct tti_tcp_port *port, struct tti_tcp_conn *conn);
void tti_tcp_guest_expire(struct tti_tcp_port *port, struct tti_tcp_conn *conn);

/* -- tcp_lane.c -------------------------------------------------------------- */

/* Much is moved on this link, or all its lanes were asked for: find and open those
 * that are missing. Called once per link, on both sides; the lower rank can only
 * wait. Does not block. */
void tti_tcp_lanes_want(struct tti_tcp_link *link);

/* Lane `index` has just left, others are up: the connector tries to bring it back as
 * long as the link is up (state UP, nconns > 0). */
void tti_tcp_lanes_lost(struct tti_tcp_link *link, int index);

/* Time has passed. Returns when something is to be done again. */
int64_t tti_tcp_lanes_timer(struct tti_tcp_link *link, int64_t now);

/* Something happened on an attempt to open a lane. true: both sides are proven, and the caller
 * passes the connection to tti_tcp_lane_joins() and what that returned to tti_tcp_lanes_opened(). */
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

/* Listen on each NIC by itself where there are several, and put the ports into the card. */
void tti_tcp_nics_listen(struct tti_tcp_port *port, struct tti_tcp_card *mine);
void tti_tcp_nics_release(struct tti_tcp_port *port);

/* Of struct tti_transport. */
void tti_tcp_prefer(struct tti_port *port, const char *const *nics, int n);

/* The numbers of the card's NICs in the order in which they should be used. */
void tti_tcp_nics_order(const struct tti_tcp_port *port, const struct tti_tcp_card *mine,
			uint8_t order[TTI_TCP_NICS_MOST]);

/* Whether there is one way to a peer only. */
bool tti_tcp_nics_single(const struct tti_tcp_port *port, int peer);

/* A rail between two NICs that have a way. */
void tti_tcp_rail_make(const struct tti_tcp_card *mine, const struct tti_tcp_card *theirs,
		       const struct tti_tcp_way *way, struct tti_tcp_rail *out);

/* What is known of both ends of a lane, by the numbers of their NICs (1 + .., 0: unknown). */
void tti_tcp_lane_name(struct tti_tcp_link *link, int index, uint8_t mine, uint8_t theirs);

/* -- tcp_retry.c ------------------------------------------------------------- */

/* Whether link->nconns counts it: both ways are open. */
static inline bool tti_tcp_conn_counts(const struct tti_tcp_conn *conn)
{
	return !conn->broken && !conn->ended;
}

/* Whether a link has a lane that is well besides `conn`, which is one of its own. */
static inline bool tti_tcp_has_others(const struct tti_tcp_link *link,
				      const struct tti_tcp_conn *conn)
{
	return link->nconns > tti_tcp_conn_counts(conn);
}

/* `conn`, which is proven on both sides (state PROVEN, pass set, conn->link too), is
 * lane conn->pass.index of a link that is UP from now on; one of that number that is
 * still open leaves. Takes the connection, also on failure. */
TUTTI_CHECKED tutti_status tti_tcp_lane_joins(struct tti_tcp_link *link, struct tti_tcp_conn *conn);

/* Give up a lane, one of several: close it, send again elsewhere what the peer has not released,
 * tell tti_tcp_lanes_lost() unless the peer leaves. Nothing happens to the last one. `why` is copied. */
void tti_tcp_lane_leaves(struct tti_tcp_link *link, int index, const char *why);

/* Note who is at both ends of a lane that is up. */
void tti_tcp_lane_introduce(struct tti_tcp_link *link, int index);

/* Look for lanes and machines that do not answer; looks at the clock at most. */
void tti_tcp_port_watch(struct tti_tcp_port *port, int64_t now);

/* -- tcp_fail.c -------------------------------------------------------------- */

/* The link is lost: port->failure. What is unsent stays so. `status`: of a tti_fail() just made. */
void tti_tcp_link_fail(struct tti_tcp_link *link, tutti_status status);

/* The same: the peer is gone, by what happened and errno or 0. */
void tti_tcp_link_lose(struct tti_tcp_link *link, const char *what, int error);

/* The last lane that was well is reset: nothing more can be sent. What came before stays readable,
 * and what is unsent is owed no longer. The link is lost if the peer cannot have some of it; one that
 * has left wants no credit, nor again what it may have. */
void tti_tcp_link_cut(struct tti_tcp_link *link, struct tti_tcp_conn *conn, int error);

/* -- tcp_recv.c -------------------------------------------------------------- */

/* Read what is there. */
void tti_tcp_link_pull(struct tti_tcp_link *link, struct tti_tcp_conn *conn);

/* More is wanted of the peer than is there: look whether it has come, or cannot. */
void tti_tcp_link_look(struct tti_tcp_link *link);

/* -- tcp_send.c -------------------------------------------------------------- */

/* The bytes on the wire of a message. */
static inline size_t tti_tcp_wire_bytes(const struct tti_tcp_link *link, size_t nbytes)
{
	if (!link->port->options.encrypt)
		return TTI_TCP_HEADER + nbytes;
	return TTI_TCP_SEALED + nbytes + (nbytes ? TTI_SEAL_MAC : 0);
}

/* A frame that says no more than its type and the credit is what this connection sends next. It
 * is owed. */
void tti_tcp_load_control(struct tti_tcp_link *link, struct tti_tcp_conn *conn, uint8_t type);

/* Several of type ALIVE, in the place of a message: as many as are due, or none. They are owed by
 * the link alone: a call waits for none of them, as their peer may read nothing for long. */
void tti_tcp_load_alive(struct tti_tcp_link *link, struct tti_tcp_conn *conn);

/* Bytes that are to be handed to the system, and no longer. */
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

/* The same for a part of what this connection is sending. */
static inline void tti_tcp_forget_out(struct tti_tcp_link *link, const struct tti_tcp_conn *conn,
				      size_t nbytes)
{
	link->unsent -= nbytes;
	if (conn->out_alive)
		link->alive -= nbytes;
	else
		link->port->base.unsent -= nbytes;
}

/* The same for all of the link. */
static inline void tti_tcp_forget_all(struct tti_tcp_link *link)
{
	link->port->base.unsent -= link->unsent - link->alive;
	link->unsent = link->alive = 0;
}

/* Of link->todo. */
static inline uint64_t tti_tcp_bit_of(const struct tti_tcp_link *link, uint64_t seq)
{
	return UINT64_C(1) << seq % link->in.slots;
}

/* Whether there is room for one more message. */
bool tti_tcp_may_stage(struct tti_tcp_link *link);

/* That room, NULL: there is none. */
void *tti_tcp_stage(struct tti_tcp_link *link, size_t nbytes);

/* Of struct tti_link_ops. */
void tti_tcp_commit(struct tti_link *link, size_t nbytes, uint64_t tag);

/* The same: without a copy where nothing can have to be sent again. */
bool tti_tcp_send(struct tti_link *link, const void *data, size_t nbytes, uint64_t tag);

/* Write what waits. */
void tti_tcp_link_push(struct tti_tcp_link *link);

/* The same for all links that hold something back, now and then. */
void tti_tcp_port_push(struct tti_tcp_port *port);

/* -- tcp_sched.c ------------------------------------------------------------- */

/* A lane that can take a frame now, and which message it should be. false: none can, or
 * waiting for a better one takes less time. */
bool tti_tcp_sched_next(struct tti_tcp_link *link, int *lane, uint64_t *seq);

/* The lane to tell a credit on, -1: none can now. */
int tti_tcp_sched_credit(const struct tti_tcp_link *link);

/* nbytes were given to the system. */
void tti_tcp_sched_handed(struct tti_tcp_conn *conn, size_t nbytes);

/* -- tcp_link.c -------------------------------------------------------------- */

/* A link to `peer` that is not up, in port->links and link_of. */
TUTTI_CHECKED tutti_status tti_tcp_link_create(struct tti_tcp_port *port, int peer,
					       struct tti_tcp_link **out);

/* All connections are there: get memory, go. Failures are the port's. */
void tti_tcp_link_raise(struct tti_tcp_link *link);
void tti_tcp_link_free(struct tti_tcp_link *link);

extern const struct tti_link_ops tti_tcp_link_ops;
extern const struct tti_lane_ops tti_tcp_lane_ops; /* tcp_info.c */

#endif
