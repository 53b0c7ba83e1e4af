/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_CONN_H
#define TTI_BOOT_CONN_H

/* The state of a watcher, and the files that work on it; each uses only those above it:
 *
 *     mail_queue.c   queues of mail on its way out
 *     conn.c         connections to peers: made, listed, written to
 *     failures.c     what has failed, as far as this rank knows
 *     reconnect.c    connections that broke are made anew, or their peer is found dead
 *     reach.c        connections to peers that have none yet
 *     mail.c         mail goes out over any connection
 *     receive.c      frames that come in, ends of connections, acknowledgement timeouts
 *     watcher.c      the thread: started, told what to do, stopped
 *
 * Threads: the watcher's own, but for `post`, which sock->lock covers. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "boot/net/acceptor.h"
#include "boot/net/dial.h"
#include "boot/net/loop.h"
#include "boot/net/sock.h"
#include "boot/net/wire.h"

/* NEXT and PREV are the links of the ring: they carry failures, and if one ends without a goodbye,
 * its peer has died. */
enum tti_conn_role {
	TTI_CONN_NEXT,
	TTI_CONN_PREV,
	TTI_CONN_PAIR, /* any other connection between two ranks */
};

/* A failure that this rank knows of. */
struct tti_failure_node {
	struct tti_failure_node *next;
	struct tti_failure failure;
};

struct tti_conn {
	struct tti_event_handler handler;
	struct tti_watcher *watcher;
	struct tti_conn *next, **link;
	enum tti_conn_role role;
	struct tti_tunnel *tunnel;
	int peer;
	bool confirmed;          /* the peer has sent a frame on it                     */
	bool asked;              /* the peer owes an answer                             */
	bool owing;              /* this rank owes one: it was asked before it watched  */
	bool torn;               /* no frame can be sent on it                          */
	bool suspected;          /* PAIR: another one is made beside it                 */
	bool tells_failures;     /* it brings the peer all failures after last_failure  */
	bool shut;               /* nothing more is sent                                */
	uint32_t question, owed; /* numbers of the questions asked, and to be answered  */
	int64_t asked_ns;
	uint64_t ack_bytes;     /* the peer's kernel is to acknowledge so many bytes    */
	int64_t ack_ns;         /* ... by then; TTI_NEVER: it has                       */
	uint32_t mail_received; /* number of the last mail from the peer                */
	uint32_t mail_acked;    /* ... of the last one that this rank has acknowledged  */
	uint32_t mail_sent;     /* ... of the last one to the peer                      */
	struct tti_addr remote; /* the peer's end; family 0: no network, or unknown     */
	const struct tti_failure_node *last_failure; /* that it has brought; NULL: none */
	struct tti_framer framer;
	struct tti_outbox out;
};

/* A connection that is being made for the first time. */
struct tti_boot_reach {
	struct tti_watcher *watcher;
	struct tti_boot_reach *next;
	struct tti_conn *conn; /* without a tunnel yet */
	struct tti_dial *dial;
	int64_t again_ns;
};

/* A connection that is made anew. */
struct tti_reconnect {
	struct tti_watcher *watcher;
	struct tti_reconnect *next;
	enum tti_conn_role role;
	int peer;
	struct tti_addr proven; /* the peer's end of the old one; family 0: unknown     */
	struct tti_dial *dial;  /* NULL: to be started, or the new connection waits for
				   the peer's first frame                               */
	int64_t again_ns, deadline_ns, backoff_ms;
	bool broken;   /* the old one does not work; else bytes are late on it          */
	bool closed;   /* the peer's kernel closed it: a live peer still listens        */
	bool ended;    /* PAIR: it was closed in order: a process of this host is dead  */
	bool fresh;    /* PAIR: there was no old one, so the peer may have left unheard */
	bool refused;  /* the peer does not listen: its goodbye may still be on the way */
	bool answered; /* the peer listens, but is busy: it has more time               */
	char why[256]; /* how the last attempt failed                                   */
};

/* Why a connection is made anew. */
enum tti_reconnect_why {
	TTI_RECONNECT_UNACKED, /* what was sent is not acknowledged in time      */
	TTI_RECONNECT_SILENT,  /* nothing came for too long                      */
	TTI_RECONNECT_CLOSED,  /* the peer's kernel closed it: packets arrive    */
	TTI_RECONNECT_ENDED,   /* PAIR: the same, and in order                   */
	TTI_RECONNECT_FRESH,   /* PAIR: it could not be made in the first place  */
};

/* Mail on its way out, from its head on. */
struct tti_queued_mail {
	struct tti_queued_mail *next;
	int peer;
	const struct tti_conn *by; /* the connection that it went out by */
	uint32_t number;           /* on that connection                 */
	size_t nbytes;
	struct tti_mail mail;
};

struct tti_mail_queue {
	struct tti_queued_mail *first, **end;
};

struct tti_watcher {
	struct tti_sock *sock;
	struct tti_loop loop;
	struct tti_acceptor acceptor;
	pthread_t id;

	/* What other threads tell it. */
	struct {
		struct tti_conn *conns; /* to take over         */
		bool watch;             /* `events` are there   */
		bool quit, vanish;
		bool bye; /* say goodbye when quitting */
		bool has_failure;
		struct tti_failure failure;
		struct tti_watch_events events;
		uint64_t *asks; /* peers to ask */
		bool has_asks;
		bool ticks; /* on_tick() is to be called */
		struct tti_mail_queue mail;
	} post;

	/* The handler of connections, in receive.c. */
	void (*on_event)(struct tti_event_handler *handler, uint32_t events);
	bool watching, quitting, bye;
	struct tti_watch_events events;
	struct tti_mail_queue mail;    /* to be sent                                      */
	struct tti_mail_queue unacked; /* sent, and not acknowledged yet                  */
	bool reconnected;              /* a reconnect has ended since the last step of mail */
	int64_t mail_ack_ns;           /* when to acknowledge mail, TTI_NEVER: all is     */
	struct tti_conn *conns;
	struct tti_boot_reach *reaches;
	struct tti_reconnect *reconnects;
	uint32_t question;                    /* the number of the last one               */
	int64_t ack_ns;                       /* the first ack_ns of all connections      */
	uint64_t *asked, *left;               /* peers that owe an answer; that said goodbye */
	uint64_t *asks;                       /* scratch                                  */
	bool lost, reported;                  /* something failed; on_lost() was called   */
	struct tti_failure_node first, *last; /* the failures, if `lost`                  */
	int64_t tick_ns;                      /* when to call on_tick(), TTI_NEVER: not         */
	int64_t bypass_ns; /* when to close the gap in the ring, TTI_NEVER: none */
	int gap;           /* the rank that left it                    */
	int64_t quit_ns;   /* when a rank that quits waits no longer for its mail */
};

/* -- mail_queue.c ------------------------------------------------------------------- */

void tti_mail_queue_init(struct tti_mail_queue *queue);
void tti_mail_queue_add(struct tti_mail_queue *queue, struct tti_queued_mail *mail);
/* All of `from` goes to the end of `to`. */
void tti_mail_queue_move(struct tti_mail_queue *from, struct tti_mail_queue *to);
/* Drop what is for this peer; -1: all. */
void tti_mail_queue_drop(struct tti_mail_queue *queue, int peer);
void tti_mail_queue_forget(struct tti_watcher *watcher, int peer);
/* Whether all for this peer is news of failures, so that this rank wants nothing of it. */
bool tti_mail_queue_is_news(const struct tti_mail_queue *queue, int peer);
/* The peer has what went out by this connection, up to that number. */
void tti_mail_queue_acked(struct tti_conn *conn, uint32_t number);
/* What went out by this connection and is not acknowledged goes out again by another one. */
void tti_mail_queue_recall(const struct tti_conn *conn);

/* -- conn.c ------------------------------------------------------------------------- */

/* When a connection whose bytes are not acknowledged is looked at. A queue in a switch may hold
 * bytes nearly as long. */
#define TTI_CONN_ACK_MS 400

/* A connection that is not listed yet. NULL: out of memory, which is logged; the tunnel stays the
 * caller's. */
struct tti_conn *tti_conn_make(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
			       struct tti_tunnel *tunnel);
/* List it and listen to it. handler.freed says afterwards whether that failed. */
void tti_conn_adopt(struct tti_conn *conn);
void tti_conn_drop(struct tti_conn *conn);
/* `replacement` takes its place: tell the peer, drop it, and repeat its question over the other. */
void tti_conn_replace(struct tti_conn *conn, struct tti_conn *replacement);
/* Send the goodbye, and no more. To be called again when there is room, if there was none. */
void tti_conn_leave(struct tti_conn *conn);

/* Start to connect to a peer at the addresses that it told. The caller has filled in deadlines and
 * callbacks of the config, and as `addrs` one address that was the peer's, or NULL. */
TUTTI_CHECKED tutti_status tti_conn_dial(struct tti_watcher *watcher, enum tti_conn_role role,
					 int peer, struct tti_dial_config *config,
					 struct tti_dial **out);

/* A frame goes out after those before it and after all failures; false: there is no room. */
bool tti_conn_put(struct tti_conn *conn, enum tti_frame_type type, uint32_t seq, const void *body,
		  size_t nbytes);
/* Send what the system takes, and failures that are due. */
void tti_conn_flush(struct tti_conn *conn);
/* In so many ms, receive.c looks whether what was sent until now is acknowledged. */
void tti_conn_arm_ack_timer(struct tti_conn *conn, int64_t ms);

/* The next failure that it is to bring; NULL: the peer has all. */
const struct tti_failure_node *tti_conn_next_failure(const struct tti_conn *conn);
/* Whether such a one waits for room. */
bool tti_conn_owes_failure(const struct tti_conn *conn);
/* It brings all failures from now on, whatever its role. false: some wait for room. */
bool tti_conn_tell_failures(struct tti_conn *conn);

/* The first connection to this peer that works; NULL: none. */
struct tti_conn *tti_conn_find(struct tti_watcher *watcher, int peer, bool ring);
/* Whether there is a confirmed one of this role. */
bool tti_conn_linked(const struct tti_watcher *watcher, enum tti_conn_role role, int peer);
/* Whether there is a confirmed PAIR that is not suspected. */
bool tti_conn_has_pair(const struct tti_watcher *watcher, int peer);

/* Ask the peer; on_answer() gets the answer, or hears that the peer has left. */
void tti_conn_ask(struct tti_conn *conn);
/* The same question again: an answer to the first one is as good. */
void tti_conn_ask_once_more(struct tti_conn *conn);
/* The question to that peer will not be answered. on_answer() hears of it only if the peer has left
 * for sure, by its goodbye or because nobody listens where it did: otherwise it is merely silent,
 * and may be asked again. */
void tti_conn_no_answer(struct tti_watcher *watcher, int peer, bool refused);

/* Nothing more goes to this peer. The communicators whose mail this bootstrap carries hear so, and
 * `why`: words that follow the peer's name. for_good: it will not come back. */
void tti_conn_mark_failed(struct tti_watcher *watcher, int peer, enum tti_down how, bool for_good,
			  const char *why);

/* -- failures.c --------------------------------------------------------------------- */

/* A failure came over `from`; NULL: this rank has found it. */
void tti_failures_learn(struct tti_watcher *watcher, const struct tti_failure *failure,
			struct tti_conn *from);
/* Before this rank leaves, or says what else has happened: its neighbours hear of a death that it
 * knows and the ring does not. */
void tti_failures_tell_dead(struct tti_watcher *watcher);
/* Call on_lost(), once, if something failed and the caller watches. */
void tti_failures_report(struct tti_watcher *watcher);
void tti_failures_release(struct tti_watcher *watcher);

/* -- reconnect.c -------------------------------------------------------------------- */

/* Something is wrong with this connection: make it anew, or find that the peer is dead. `remote` is
 * where the peer was. There is one at a time for a role and a peer. */
void tti_reconnect_begin(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
			 const struct tti_addr *remote, enum tti_reconnect_why why);
/* A connection that the peer has not confirmed has ended. Whether it was made by a reconnect, which
 * then makes another one. */
bool tti_reconnect_goes_on(struct tti_watcher *watcher, enum tti_conn_role role, int peer);
/* The peer confirms this connection, which is the link from now on. */
void tti_reconnect_done(struct tti_conn *conn);
/* Whether a connection to the peer does not work and is being made anew; whether a PAIR is. */
bool tti_reconnect_is_on(const struct tti_watcher *watcher, int peer);
bool tti_reconnect_has_pair(struct tti_watcher *watcher, int peer);
/* The peer has left, or knows that this rank leaves: end the reconnect and drop the connection. */
void tti_reconnect_end(struct tti_watcher *watcher, enum tti_conn_role role, int peer);
/* Another connection has brought the peer's goodbye: give up its PAIR and the question on it. */
void tti_reconnect_cancel_pair(struct tti_watcher *watcher, int peer);
/* This rank leaves. Only connections on which a peer waits for its goodbye are still made anew, and
 * none without `bye`. */
void tti_reconnect_leave(struct tti_watcher *watcher, bool bye);
/* Go on with all that are due; when to call again. */
int64_t tti_reconnect_step(struct tti_watcher *watcher);

/* -- reach.c ------------------------------------------------------------------------ */

/* Ask over the connection to the peer, or make one. */
void tti_boot_reach_ask(struct tti_watcher *watcher, int peer);
/* The same for a question that a connection has not brought there. */
void tti_boot_reach_ask_again(struct tti_watcher *watcher, int peer);
/* Connect to a peer to which there is no connection. false: that has failed, and everybody knows. */
bool tti_boot_reach_peer(struct tti_watcher *watcher, int peer);
/* Connect to the first rank after the gap that is still there. */
void tti_boot_reach_bypass(struct tti_watcher *watcher, int gap);
/* Go on with all that are due; when to call again. */
int64_t tti_boot_reach_step(struct tti_watcher *watcher);
void tti_boot_reach_stop(struct tti_watcher *watcher);

/* -- mail.c ------------------------------------------------------------------------- */

/* Hand to connections what they have room for, and make the connections that are missing. */
void tti_mail_step(struct tti_watcher *watcher);
/* Mail came and is to be acknowledged soon. */
void tti_mail_received(struct tti_conn *conn, uint32_t number);
/* Acknowledge where that is due; when to call again. */
int64_t tti_mail_send_acks(struct tti_watcher *watcher);

/* -- receive.c ---------------------------------------------------------------------- */

void tti_receive_handle(struct tti_event_handler *handler, uint32_t events);
/* The caller watches from now on: report failures, and answer questions, that came before. */
void tti_receive_catch_up(struct tti_watcher *watcher);
/* Look at connections whose bytes should be acknowledged by now; when to call again. */
int64_t tti_receive_check_acks(struct tti_watcher *watcher);

#endif
