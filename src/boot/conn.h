/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_BOOT_CONN_H
#define TTI_BOOT_CONN_H

/* What the thread of a rank consists of. Private to thread.c (which starts,
 * stops and is told), conn.c (connections to peers and what comes in over them)
 * and reach.c (making new ones).
 *
 * Threads: the thread's own, but for `post`, which sock->lock covers. */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "boot/dial.h"
#include "boot/gate.h"
#include "boot/loop.h"
#include "boot/sock.h"
#include "boot/wire.h"

enum tti_conn_role {
	TTI_CONN_NEXT, /* links of the ring: news pass, and its end without */
	TTI_CONN_PREV, /* goodbye is a death                                */
	TTI_CONN_PAIR,
};

struct tti_conn {
	struct tti_ear ear;
	struct tti_thread *thread;
	struct tti_conn *next, **link;
	enum tti_conn_role role;
	int fd, peer;
	bool met;   /* the peer has used it: see end() */
	bool asked; /* it owes us an answer            */
	bool owing; /* we owe it one: asked too early  */
	bool torn;  /* no frame can be sent on it      */
	bool shut;  /* no more is sent                 */
	struct tti_framer framer;
	struct tti_outbox out;
};

/* A connection that is being made. */
struct tti_reach {
	struct tti_thread *thread;
	struct tti_reach *next;
	struct tti_conn *conn; /* what it will be */
	struct tti_dial *dial;
	int64_t again_ns;
};

struct tti_thread {
	struct tti_sock *sock;
	struct tti_loop loop;
	struct tti_gate gate;
	struct tti_ear *waker;
	int wake_fd;
	pthread_t id;

	/* What the thread is told. */
	struct {
		struct tti_conn *conns; /* to take over         */
		bool watch;             /* `events` are there   */
		bool quit, vanish;
		bool bye; /* say goodbye when quitting */
		bool has_news;
		struct tti_news news;
		struct tti_watch_events events;
		uint64_t *asks; /* peers to ask */
		bool has_asks;
	} post;

	bool watching, quitting, bye;
	struct tti_watch_events events;
	struct tti_conn *conns;
	struct tti_reach *reaches;
	uint64_t *asked, *gone; /* peers: an answer is due; goodbye was said */
	uint64_t *asks;         /* scratch */
	bool lost, told;        /* there are news; on_lost() was called */
	struct tti_news news;
	int64_t bypass_ns; /* when to close the gap in the ring, TTI_NEVER: none */
	int gap;           /* the rank that left it */
};

/* A connection to be; NULL: out of memory, said. fd is not taken then. */
struct tti_conn *tti_conn_make(struct tti_thread *thread, enum tti_conn_role role, int peer,
			       int fd);

/* Listen to it, from the thread. */
void tti_conn_adopt(struct tti_conn *conn);
void tti_conn_drop(struct tti_conn *conn);

/* The answer, or that the peer has left, is on_answer()'s. */
void tti_conn_ask(struct tti_conn *conn);

/* The caller watches from now on: answer, and tell, what came before. */
void tti_thread_catch_up(struct tti_thread *thread);

/* Send BYE and no more. */
void tti_conn_leave(struct tti_conn *conn);

/* The first one to this peer, NULL: none. */
struct tti_conn *tti_conn_find(struct tti_thread *thread, int peer, bool ring);

/* These are the news, which came over `from` (NULL: from here). */
void tti_thread_learn(struct tti_thread *thread, const struct tti_news *news,
		      const struct tti_conn *from);

/* What is asked of that peer will not be answered. on_answer() hears of it only if
 * the peer is known to have left, by its goodbye or because nobody listens where it
 * did: else it is merely silent, and may be asked again. */
void tti_thread_no_answer(struct tti_thread *thread, int peer, bool refused);

/* Ask over a connection there is or is to be (reach.c). */
void tti_reach_ask(struct tti_thread *thread, int peer);

/* Connect to the first rank behind the gap that is still there. */
void tti_reach_bypass(struct tti_thread *thread, int gap);

/* Go on with all that is due; when to call again. */
int64_t tti_reach_step(struct tti_thread *thread);
void tti_reach_stop(struct tti_thread *thread);

#endif
