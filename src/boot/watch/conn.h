/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_CONN_H
#define TTI_BOOT_CONN_H

/* What the thread of a rank consists of. Private to watcher.c (which starts,
 * stops and is told), conn.c (connections to peers and what comes in over them),
 * reach.c (making new ones), reconnect.c (making anew what broke), mails.c (what goes out by
 * way of any) and news.c (what all are to hear).
 *
 * Threads: the thread's own, but for `post`, which sock->lock covers. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "boot/net/acceptor.h"
#include "boot/net/dial.h"
#include "boot/net/loop.h"
#include "boot/net/sock.h"
#include "boot/net/wire.h"

enum tti_conn_role {
	TTI_CONN_NEXT, /* links of the ring: news pass, and its end without */
	TTI_CONN_PREV, /* goodbye is a death                                */
	TTI_CONN_PAIR,
};

/* News that this rank has had. */
struct tti_failure_node {
	struct tti_failure_node *next; /* those after them, NULL: none */
	struct tti_failure failure;
};

struct tti_conn {
	struct tti_event_handler handler;
	struct tti_watcher *watcher;
	struct tti_conn *next, **link;
	enum tti_conn_role role;
	struct tti_tunnel *tunnel;
	int peer;
	bool confirmed;          /* the peer has used it: see end() */
	bool asked;              /* it owes us an answer            */
	bool owing;              /* we owe it one: asked too early  */
	bool torn;               /* no frame can be sent on it      */
	bool suspected;          /* PAIR: another one is made in its place */
	bool tells_failures;     /* the peer gets all news, from `said` on */
	bool shut;               /* no more is sent                 */
	uint32_t question, owed; /* the numbers of what was asked */
	int64_t asked_ns;
	uint64_t ack_bytes; /* of the bytes of the tunnel, so many should be there        */
	int64_t ack_ns;     /* by then, TTI_NEVER: they are                               */
	uint32_t mail_received,
		mail_acked;     /* the number of the last mail from there; and that was said  */
	uint32_t mail_sent;     /* the number of the last mail to there */
	struct tti_addr remote; /* where the peer is, family 0: not on a network, or unknown */
	const struct tti_failure_node
		*last_failure; /* the last news that it has brought there, NULL: none */
	struct tti_framer framer;
	struct tti_outbox out;
};

/* A connection that is being made. */
struct tti_boot_reach {
	struct tti_watcher *watcher;
	struct tti_boot_reach *next;
	struct tti_conn *conn; /* what it will be */
	struct tti_dial *dial;
	int64_t again_ns;
};

/* A link of the ring, or a PAIR, that is made anew. */
struct tti_reconnect {
	struct tti_watcher *watcher;
	struct tti_reconnect *next;
	enum tti_conn_role role;
	int peer;
	struct tti_addr proven; /* where the peer was, family 0: unknown              */
	struct tti_dial *dial;  /* NULL: to be started, or there is a connection that
				    the peer has not used yet                         */
	int64_t again_ns, deadline_ns, backoff_ms;
	bool broken;   /* without a working connection; else there are but doubts  */
	bool closed;   /* the peer closed it: a live one still listens             */
	bool ended;    /* PAIR: its process did, unless the network is between us  */
	bool fresh;    /* PAIR: there was none before, so it may have left unheard */
	bool refused;  /* it does not: is its goodbye still on the way?            */
	bool answered; /* it does, but is busy: it has more time                   */
	char why[256]; /* what the last attempt met with                           */
};

/* What happened to a link. */
enum tti_reconnect_why {
	TTI_RECONNECT_UNACKED, /* what was sent does not arrive                  */
	TTI_RECONNECT_SILENT,  /* it is given up: nothing came for too long      */
	TTI_RECONNECT_CLOSED,  /* the peer's kernel closed it, so packets arrive */
	TTI_RECONNECT_ENDED,   /* the same, and it did so in order: PAIR         */
	TTI_RECONNECT_FRESH,   /* it could not be made: PAIR                     */
};

/* Mail on its way out, from its head on. */
struct tti_queued_mail {
	struct tti_queued_mail *next;
	int peer;
	const struct tti_conn *by; /* the connection that it went out by */
	uint32_t number;           /* there                              */
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

	/* What the thread is told. */
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
		struct tti_mail_queue mail;
	} post;

	bool watching, quitting, bye;
	struct tti_watch_events events;
	struct tti_mail_queue mail;    /* to be sent                       */
	struct tti_mail_queue unacked; /* of which nobody said yet that it has come */
	bool reconnected;              /* a mend has ended since `mails` was looked at */
	int64_t mail_ack_ns; /* when to say what mail has come, TTI_NEVER: nothing is new */
	struct tti_conn *conns;
	struct tti_boot_reach *reaches;
	struct tti_reconnect *reconnects;
	uint32_t question;                    /* the number of the last one */
	int64_t ack_ns;                       /* when to look at the connections' doubt_ns */
	uint64_t *asked, *left;               /* peers: an answer is due; goodbye was said */
	uint64_t *asks;                       /* scratch */
	bool lost, reported;                  /* there are news; on_lost() was called */
	struct tti_failure_node first, *last; /* the news, if there are any */
	int64_t bypass_ns; /* when to close the gap in the ring, TTI_NEVER: none */
	int gap;           /* the rank that left it */
	int64_t quit_ns;   /* when to wait for mail no longer */
};

/* A connection to be; NULL: out of memory, said. The tunnel is not taken then. */
struct tti_conn *tti_conn_make(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
			       struct tti_tunnel *tunnel);

/* Listen to it, from the thread. */
void tti_conn_adopt(struct tti_conn *conn);
void tti_conn_drop(struct tti_conn *conn);

/* The answer, or that the peer has left, is on_answer()'s. */
void tti_conn_ask(struct tti_conn *conn);
/* The same question, as an answer to the first one is as good. */
void tti_conn_ask_once_more(struct tti_conn *conn);

/* Communicators that live on mail hear that a peer is gone for good, and why: words that follow its
 * name. */
void tti_conn_mark_failed(struct tti_watcher *watcher, int peer, enum tti_down how,
			  const char *why);

/* A frame goes out behind those before it, and behind all news; false: there is no room. */
bool tti_conn_put(struct tti_conn *conn, enum tti_frame_type type, uint32_t seq, const void *body,
		  size_t nbytes);
/* Send what the system takes, news that are due among it. */
void tti_conn_flush(struct tti_conn *conn);

/* The caller watches from now on: answer, and tell, what came before. */
void tti_receive_catch_up(struct tti_watcher *watcher);

/* Send BYE and no more; to be called again when there is room, if there was none. */
void tti_conn_leave(struct tti_conn *conn);

/* `heir` takes its place: tell the peer, drop it, and ask again what it was asked. */
void tti_conn_replace(struct tti_conn *conn, struct tti_conn *replacement);

/* Look at those whose bytes should have arrived by now; when to call again. */
int64_t tti_receive_check_acks(struct tti_watcher *watcher);

/* The first one to this peer, NULL: none. */
struct tti_conn *tti_conn_find(struct tti_watcher *watcher, int peer, bool ring);

/* Whether there is a connection for this link of the ring that the peer has used. */
bool tti_conn_linked(const struct tti_watcher *watcher, enum tti_conn_role role, int peer);
/* Whether the peer has used a PAIR, and nothing speaks against that one. */
bool tti_conn_has_pair(const struct tti_watcher *watcher, int peer);

/* What is asked of that peer will not be answered. on_answer() hears of it only if
 * the peer is known to have left, by its goodbye or because nobody listens where it
 * did: else it is merely silent, and may be asked again. */
void tti_conn_no_answer(struct tti_watcher *watcher, int peer, bool refused);

/* Ask over a connection there is or is to be (reach.c). */
void tti_boot_reach_ask(struct tti_watcher *watcher, int peer);

/* The same, for a question that a connection has not brought there. */
void tti_boot_reach_ask_again(struct tti_watcher *watcher, int peer);

/* Connect to a peer to which there is no connection, unless it is being made. false: that
 * failed already, and everybody was told. */
bool tti_boot_reach_peer(struct tti_watcher *watcher, int peer);

/* Connect to the first rank behind the gap that is still there. */
void tti_boot_reach_bypass(struct tti_watcher *watcher, int gap);

/* Go on with all that is due; when to call again. */
int64_t tti_boot_reach_step(struct tti_watcher *watcher);
void tti_boot_reach_stop(struct tti_watcher *watcher);

/* Something is wrong with this link: make it anew, or find that the peer is dead
 * (reconnect.c). `remote` is where the peer was. Once per link at a time. */
void tti_reconnect_begin(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
			 const struct tti_addr *remote, enum tti_reconnect_why why);

/* This connection was not used by the peer, and has ended: whether it was one that
 * mends a link, and another is made. */
bool tti_reconnect_goes_on(struct tti_watcher *watcher, enum tti_conn_role role, int peer);

/* The peer uses it: it is the link from now on. */
void tti_reconnect_done(struct tti_conn *conn);

/* Whether a connection to it is broken and being made anew; and one that is not of the ring. */
bool tti_reconnect_is_on(const struct tti_watcher *watcher, int peer);
bool tti_reconnect_has_pair(struct tti_watcher *watcher, int peer);

/* The peer has left, or knows that we do: nothing is left to mend. */
void tti_reconnect_end(struct tti_watcher *watcher, enum tti_conn_role role, int peer);

/* Go on with all that is due; when to call again. */
/* The same of a PAIR, heard on another connection: what waits for it waits in vain. */
void tti_reconnect_cancel_pair(struct tti_watcher *watcher, int peer);

/* This rank leaves: nothing is mended but to say goodbye to who has known the connection, if to anybody. */
void tti_reconnect_leave(struct tti_watcher *watcher, bool bye);

int64_t tti_reconnect_step(struct tti_watcher *watcher);

/* -- news.c ----------------------------------------------------------------------- */

/* These are the news, which came over `from` (NULL: from here). */
void tti_failures_learn(struct tti_watcher *watcher, const struct tti_failure *failure,
			struct tti_conn *from);
/* Before this rank leaves, or says what else has happened: whom it knows to have died, and the
 * ring does not yet, its neighbours hear of. */
void tti_failures_tell_dead(struct tti_watcher *watcher);
/* on_lost(), unless it was called, or nobody watches yet. */
void tti_failures_report(struct tti_watcher *watcher);
/* This connection brings all news from now on, whatever its role. false: some wait for room. */
bool tti_conn_tell_failures(struct tti_conn *conn);
/* Whether there are news that wait for room there; put the next ones into its outbox. */
bool tti_conn_owes_failure(const struct tti_conn *conn);
bool tti_failures_put(struct tti_conn *conn);
/* Give back their memory. */
void tti_failures_release(struct tti_watcher *watcher);

/* -- mails.c ---------------------------------------------------------------------- */

void tti_mail_queue_init(struct tti_mail_queue *mails);
/* All of `from` behind those of `to`. */
void tti_mail_queue_move(struct tti_mail_queue *from, struct tti_mail_queue *to);
/* Hand to connections what they have room for, make those that are missing. */
void tti_mail_step(struct tti_watcher *watcher);
/* Forget what is for this peer; -1: all. */
void tti_mail_queue_drop(struct tti_mail_queue *mails, int peer);
void tti_mail_queue_forget(struct tti_watcher *watcher, int peer);

/* The peer has what went out by this connection, up to that number. */
void tti_mail_queue_acked(struct tti_conn *conn, uint32_t number);
/* What it may not have goes out again by another one. */
void tti_mail_queue_recall(const struct tti_conn *conn);
/* Mail came: say so soon. */
void tti_mail_received(struct tti_conn *conn, uint32_t number);
/* Say so where it is due; when to call again. */
int64_t tti_mail_send_acks(struct tti_watcher *watcher);

#endif
