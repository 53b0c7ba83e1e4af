/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/watch/conn.h"

#include <stdio.h>

#include "util/bitset.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/strbuf.h"

/* A rank that does not answer for so long is silent, or left out of the ring. */
#define REACH_MS     3000
/* A question that is asked again while it is under way is sent once more after this. */
#define ASK_AGAIN_NS (1000 * TTI_NS_PER_MS)

static void end(struct tti_boot_reach *reach)
{
	struct tti_boot_reach **link = &reach->watcher->reaches;

	while (*link != reach)
		link = &(*link)->next;
	*link = reach->next;
	tti_dial_stop(reach->dial);
	tti_free(reach->conn);
	tti_free(reach);
}

/* A network that is gone for a while is no loss yet: the connection is tried for longer (reconnect.c), while
 * questions and mail wait. Once a rank is lost, that is not done: this peer may be gone with the same
 * host, and ranks that shrink the communicator ask all ranks of that host one after the other. But if
 * the peer's host takes the connection, the peer lives there, and may have far too much to do. */
static void fail_pair(struct tti_watcher *watcher, int peer, bool refused, bool answered,
		      const char *why)
{
	const struct tti_addr nowhere = { .family = 0 };

	if (tti_reconnect_has_pair(watcher, peer))
		return;                            /* which will tell */
	if (tti_conn_find(watcher, peer, false)) { /* has come meanwhile */
		if (tti_bit_has(watcher->asked, (size_t)peer))
			tti_boot_reach_ask_again(watcher, peer);
	} else if (tti_reconnect_is_on(watcher, peer)) { /* of the ring */
		tti_conn_no_answer(watcher, peer, refused);
	} else if (!refused && !watcher->quitting && (answered || !watcher->lost)) {
		tti_reconnect_begin(watcher, TTI_CONN_PAIR, peer, &nowhere,
				    tti_conn_linked(watcher, TTI_CONN_PAIR, peer)
					    ? TTI_RECONNECT_SILENT
					    : TTI_RECONNECT_FRESH);
	} else {
		/* A rank that was done may leave without a connection to say goodbye on. */
		const bool is_missed = tti_bit_has(watcher->asked, (size_t)peer) ||
				       !tti_mail_queue_is_news(&watcher->mail, peer);

		tti_conn_no_answer(watcher, peer, refused);
		/* If nobody listens there now, nobody ever will. */
		tti_conn_mark_failed(watcher, peer, is_missed ? TTI_DOWN_LOST : TTI_DOWN_LEFT,
				     refused, is_missed ? why : "left");
	}
}

static void fail(struct tti_boot_reach *reach)
{
	struct tti_watcher *watcher = reach->watcher;
	const int peer = reach->conn->peer;
	const bool ring = reach->conn->role != TTI_CONN_PAIR;
	const bool refused = reach->dial && tti_dial_is_refused(reach->dial);
	const bool answered = reach->dial && tti_dial_is_answered(reach->dial);

	char why[128];
	const int head = snprintf(why, sizeof(why), "cannot be reached: ");

	tti_copy_list(why + head, sizeof(why) - (size_t)head, tti_error_text());
	tti_log(TTI_LOG_INFO, TTI_BOOT, "rank %d %s", peer, why);
	end(reach);
	if (ring)
		tti_boot_reach_bypass(watcher, peer);
	else
		fail_pair(watcher, peer, refused, answered, why);
}

static void step(struct tti_boot_reach *reach)
{
	struct tti_conn *conn = reach->conn;
	const tutti_status status = tti_dial_step(reach->dial, &conn->tunnel, &reach->again_ns);

	if (status == TUTTI_AGAIN)
		return;
	if (status != TUTTI_OK) {
		fail(reach);
		return;
	}
	reach->conn = NULL;
	end(reach);
	tti_conn_adopt(conn);
	if (conn->role != TTI_CONN_PAIR)
		return;
	if (conn->handler.freed) /* the question is to be asked again */
		tti_conn_no_answer(conn->watcher, conn->peer, false);
	else if (tti_bit_has(conn->watcher->asked, (size_t)conn->peer))
		tti_conn_ask(conn);
}

static void on_ready(void *self)
{
	step(self);
}

static tutti_status dial(struct tti_boot_reach *reach)
{
	struct tti_dial_config config = {
		.deadline_ns = tti_deadline(REACH_MS),
		.on_ready = on_ready,
		.self = reach,
	};

	return tti_conn_dial(reach->watcher, reach->conn->role, reach->conn->peer, &config,
			     &reach->dial);
}

static void start(struct tti_watcher *watcher, enum tti_conn_role role, int peer)
{
	struct tti_boot_reach *reach = tti_zalloc(sizeof(*reach));
	struct tti_conn *conn = tti_conn_make(watcher, role, peer, NULL);

	if (!reach || !conn) {
		tti_free(reach);
		tti_free(conn);
		if (role == TTI_CONN_PAIR)
			tti_conn_no_answer(watcher, peer, false);
		return;
	}
	reach->watcher = watcher;
	reach->conn = conn;
	reach->next = watcher->reaches;
	watcher->reaches = reach;
	/* The loop does the first step: it may fail at once, and so may the next rank after it, as deep
	 * as there are ranks. */
	if (dial(reach) == TUTTI_OK)
		reach->again_ns = tti_now_ns();
	else
		fail(reach);
}

static bool is_reaching(const struct tti_watcher *watcher, int peer)
{
	const struct tti_boot_reach *at = watcher->reaches;

	while (at && !(at->conn->role == TTI_CONN_PAIR && at->conn->peer == peer))
		at = at->next;
	return at;
}

bool tti_boot_reach_peer(struct tti_watcher *watcher, int peer)
{
	if (tti_reconnect_has_pair(watcher, peer))
		return true;
	if (!is_reaching(watcher, peer))
		start(watcher, TTI_CONN_PAIR, peer);
	return is_reaching(watcher, peer) || tti_reconnect_is_on(watcher, peer);
}

/* The answer may be lost with its connection; the bytes sent now show whether it works. */
static void ask_once_more(struct tti_watcher *watcher, int peer)
{
	for (struct tti_conn *conn = watcher->conns; conn; conn = conn->next) {
		if (conn->peer != peer || !conn->asked)
			continue;
		if (tti_now_ns() - conn->asked_ns >= ASK_AGAIN_NS)
			tti_conn_ask_once_more(conn);
		return;
	}
}

void tti_boot_reach_ask(struct tti_watcher *watcher, int peer)
{
	if (tti_bit_has(watcher->asked, (size_t)peer)) {
		ask_once_more(watcher, peer);
		return;
	}
	tti_bit_set(watcher->asked, (size_t)peer);
	tti_boot_reach_ask_again(watcher, peer);
}

void tti_boot_reach_ask_again(struct tti_watcher *watcher, int peer)
{
	struct tti_conn *conn = tti_conn_find(watcher, peer, false);

	if (tti_bit_has(watcher->left, (size_t)peer))
		tti_conn_no_answer(watcher, peer, false);
	else if (conn)
		tti_conn_ask(conn);
	else
		(void)tti_boot_reach_peer(watcher, peer);
}

void tti_boot_reach_bypass(struct tti_watcher *watcher, int gap)
{
	const int n = watcher->sock->base.nranks;
	int peer = (gap + 1) % n;

	while (peer != watcher->sock->base.rank && tti_bit_has(watcher->left, (size_t)peer))
		peer = (peer + 1) % n;
	/* No other rank is left, or the ring is closed already. */
	if (peer == watcher->sock->base.rank || tti_conn_find(watcher, peer, true))
		return;
	start(watcher, TTI_CONN_NEXT, peer);
}

int64_t tti_boot_reach_step(struct tti_watcher *watcher)
{
	const int64_t now = tti_now_ns();
	int64_t next_ns = TTI_NEVER;

	for (struct tti_boot_reach *at = watcher->reaches, *next; at; at = next) {
		next = at->next;
		if (at->again_ns <= now)
			step(at);
	}
	for (struct tti_boot_reach *at = watcher->reaches; at; at = at->next)
		if (at->again_ns < next_ns)
			next_ns = at->again_ns;
	return next_ns;
}

void tti_boot_reach_stop(struct tti_watcher *watcher)
{
	while (watcher->reaches)
		end(watcher->reaches);
}
