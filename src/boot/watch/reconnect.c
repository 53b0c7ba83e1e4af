/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections that break are made anew. A connection of the ring runs over one pair of NICs. When it
 * breaks or falls silent, the link is made anew over any address that the peer told; only if none
 * answers is the peer dead.
 *
 *     rank (its NEXT)  ----- the link -----  rank+1 (its PREV)
 *
 * Both ends dial, since one of them may not have noticed, or not be reachable. So there may be several
 * connections at a time. The end to which the link is NEXT decides: the connection on which it got a
 * first frame last is the link, and on all others it says MOVED and closes them. The other end closes
 * none, and sends on all of them. Nothing is lost. A rank that takes a connection over says HERE, or
 * sends the failures if there are any; the first failure counts; an answer has the number of its
 * question, and a question is asked again; a goodbye is said on each connection; mail that is not
 * acknowledged goes out again.
 *
 *     the peer's kernel closed it     packets arrive, so a refusal at that address is a death, known
 *                                     in milliseconds. Else it may take CLOSED_MS, or SILENT_MS if the
 *                                     peer listens, but says nothing.
 *     ... and its process has ended   this host can tell, whoever listens there by now: the port may
 *                                     be another job's, which may not answer for long.
 *     it fell silent                  the peer may have died since, or left. A refusal counts after
 *                                     GRACE_MS, so that its goodbye can come another way; no answer
 *                                     at all counts after SILENT_MS.
 *     it could not be made (PAIR)     as if it fell silent; but a peer that refuses may have left,
 *                                     with nobody to say goodbye to.
 *     bytes are not acknowledged      the new connection is made beside the old one; if that is not
 *                                     possible, nothing follows.
 *
 * A PAIR that ends without a goodbye is made anew in the same way, by each end that sees it end, unless
 * another PAIR takes its place. If the network was gone for some seconds, the kernel of one end has given
 * up and answers the other end's next packet with a reset, though both ranks live. Only a process of
 * this host that closes a PAIR in order is dead at once, as no network is between. The first frame of
 * the peer on any other PAIR ends the reconnect; HERE at the latest. The ring finds deaths by itself, so
 * what is found out about a PAIR goes only to the subcommunicators. */
#include "boot/watch/conn.h"

#include <stdio.h>

#include "util/bitset.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/process.h"
#include "util/strbuf.h"

#define CLOSED_MS       4000
#define SILENT_MS       11000
#define GRACE_MS        1500
/* For one address, so that each of them is tried several times. */
#define CONNECT_MS      2000
#define BACKOFF_MS      4
#define BACKOFF_MOST_MS 500
/* How often to look whether the process has ended whose connection was closed. */
#define LOOK_MS         10
/* Room for the words that follow a peer's name. */
#define WHY             (sizeof(((struct tti_reconnect *)0)->why) + 128)

static struct tti_reconnect *find(struct tti_watcher *watcher, enum tti_conn_role role, int peer)
{
	struct tti_reconnect *reconnect = watcher->reconnects;

	while (reconnect && (reconnect->role != role || reconnect->peer != peer))
		reconnect = reconnect->next;
	return reconnect;
}

static void end(struct tti_reconnect *reconnect)
{
	struct tti_reconnect **link = &reconnect->watcher->reconnects;

	while (*link != reconnect)
		link = &(*link)->next;
	*link = reconnect->next;
	reconnect->watcher->reconnected = true;
	tti_dial_stop(reconnect->dial);
	tti_free(reconnect);
}

/* End it; the question that waits for the connection is given up too. */
static void give_up(struct tti_reconnect *reconnect)
{
	struct tti_watcher *watcher = reconnect->watcher;
	const bool pair = reconnect->role == TTI_CONN_PAIR;
	const int peer = reconnect->peer;

	end(reconnect);
	if (pair)
		tti_conn_no_answer(watcher, peer, false);
}

/* -- Processes of this host ---------------------------------------------------------- */

static bool is_near(const struct tti_reconnect *reconnect)
{
	return tti_process_is_here(reconnect->watcher->sock->cards[reconnect->peer].identity);
}

static bool has_ended(const struct tti_reconnect *reconnect)
{
	const struct tti_wire_card *card = &reconnect->watcher->sock->cards[reconnect->peer];

	return tti_process_has_ended(card->pid, card->identity);
}

/* -- The end of patience ------------------------------------------------------------- */

/* Words that follow the peer's name. */
static void describe(const struct tti_reconnect *reconnect, char *buf, size_t size)
{
	if (reconnect->closed && reconnect->refused)
		(void)snprintf(buf, size, "closed its connection without goodbye: it died");
	else if (reconnect->fresh)
		(void)snprintf(buf, size, "cannot be reached: %s",
			       reconnect->why[0] ? reconnect->why : "no answer");
	else if (reconnect->refused)
		(void)snprintf(buf, size,
			       "died: its connection fell silent, and nobody listens where it did");
	else
		(void)snprintf(buf, size,
			       "cannot be reached any more at any of its addresses, its "
			       "connection %s: %s",
			       reconnect->closed ? "was closed without goodbye" : "fell silent",
			       reconnect->why[0] ? reconnect->why : "no answer");
}

/* Whether a confirmed connection takes the place of this one. Mail and questions go over the ring, too. */
static bool is_replaced(const struct tti_reconnect *reconnect)
{
	if (reconnect->role != TTI_CONN_PAIR)
		return tti_conn_linked(reconnect->watcher, reconnect->role, reconnect->peer);
	return tti_conn_has_pair(reconnect->watcher, reconnect->peer) ||
	       tti_conn_linked(reconnect->watcher, TTI_CONN_NEXT, reconnect->peer) ||
	       tti_conn_linked(reconnect->watcher, TTI_CONN_PREV, reconnect->peer);
}

static void lose(struct tti_reconnect *reconnect)
{
	struct tti_watcher *watcher = reconnect->watcher;
	const bool ring = reconnect->role != TTI_CONN_PAIR, is_refused = reconnect->refused;
	struct tti_failure failure;
	char name[TTI_BOOT_NAME], why[WHY];

	describe(reconnect, why, sizeof(why));
	failure = tti_failure_make(TUTTI_EPEER, reconnect->peer, watcher->sock->base.rank, "%s %s",
				   tti_sock_name(watcher->sock, reconnect->peer, name), why);
	failure.died = is_refused && !reconnect->fresh;
	end(reconnect);
	if (watcher->quitting)
		return;
	if (!watcher->lost)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "%s", failure.text);
	if (ring)
		tti_failures_learn(watcher, &failure, NULL);
	/* Outside the ring, a rank that does not answer may do so later. */
	tti_conn_mark_failed(watcher, failure.failed_rank,
			     failure.died ? TTI_DOWN_DIED : TTI_DOWN_LOST, ring || is_refused, why);
	if (!ring)
		tti_conn_no_answer(watcher, failure.failed_rank, is_refused && !failure.died);
}

static void refused(struct tti_reconnect *reconnect)
{
	reconnect->refused = true;
	if (!reconnect->broken || reconnect->watcher->quitting)
		end(reconnect); /* the old connection will show who is wrong */
	else if (reconnect->closed || reconnect->fresh)
		lose(reconnect);
	else
		reconnect->again_ns = reconnect->deadline_ns = tti_deadline(GRACE_MS);
}

static void expire(struct tti_reconnect *reconnect)
{
	const bool listens = reconnect->dial ? tti_dial_is_answered(reconnect->dial)
					     : reconnect->again_ns == reconnect->deadline_ns;

	/* The peer's machine has far too much to do. */
	if (reconnect->closed && !reconnect->answered && listens) {
		reconnect->answered = true;
		reconnect->deadline_ns += (SILENT_MS - CLOSED_MS) * TTI_NS_PER_MS;
		tti_dial_stop(reconnect->dial);
		reconnect->dial = NULL;
		reconnect->again_ns = tti_now_ns();
	} else if (reconnect->broken && (reconnect->refused || !is_replaced(reconnect)))
		lose(reconnect);
	else
		give_up(reconnect);
}

/* -- Dialing -------------------------------------------------------------------------- */

static void on_ready(void *self);

static tutti_status dial(struct tti_reconnect *reconnect)
{
	struct tti_dial_config config = {
		.addrs = &reconnect->proven,
		.deadline_ns = reconnect->deadline_ns,
		.connect_ms = CONNECT_MS,
		.on_ready = on_ready,
		.self = reconnect,
	};

	return tti_conn_dial(reconnect->watcher, reconnect->role, reconnect->peer, &config,
			     &reconnect->dial);
}

static void failed(struct tti_reconnect *reconnect)
{
	const bool is_refused = reconnect->dial && tti_dial_is_refused(reconnect->dial);

	tti_copy_list(reconnect->why, sizeof(reconnect->why), tti_error_text());
	tti_dial_stop(reconnect->dial);
	reconnect->dial = NULL;
	reconnect->again_ns = tti_deadline(reconnect->backoff_ms);
	reconnect->backoff_ms = 2 * reconnect->backoff_ms < BACKOFF_MOST_MS
					? 2 * reconnect->backoff_ms
					: BACKOFF_MOST_MS;
	if (is_refused)
		refused(reconnect);
	else if (reconnect->watcher->quitting)
		end(reconnect);
}

static void succeeded(struct tti_reconnect *reconnect, struct tti_tunnel *tunnel)
{
	struct tti_conn *conn =
		tti_conn_make(reconnect->watcher, reconnect->role, reconnect->peer, tunnel);

	tti_dial_stop(reconnect->dial);
	reconnect->dial = NULL;
	reconnect->again_ns = reconnect->deadline_ns;
	if (conn)
		tti_conn_adopt(conn);
	else
		tti_tunnel_close(&tunnel);
	if (!conn || conn->handler.freed)
		reconnect->again_ns = tti_deadline(reconnect->backoff_ms);
}

static void step(struct tti_reconnect *reconnect)
{
	const int64_t now = tti_now_ns();
	tutti_status status = TUTTI_AGAIN;
	struct tti_tunnel *tunnel = NULL;

	if (tti_bit_has(reconnect->watcher->left, (size_t)reconnect->peer)) {
		give_up(reconnect);
		return;
	}
	if (reconnect->closed &&
	    ((reconnect->ended && is_near(reconnect)) || has_ended(reconnect))) {
		refused(reconnect);
		return;
	}
	if (now >= reconnect->deadline_ns) {
		expire(reconnect);
		return;
	}
	if (!reconnect->dial && now >= reconnect->again_ns)
		status = dial(reconnect);
	if (status >= TUTTI_OK && reconnect->dial)
		status = tti_dial_step(reconnect->dial, &tunnel, &reconnect->again_ns);
	if (status == TUTTI_OK && tunnel)
		succeeded(reconnect, tunnel);
	else if (status < 0)
		failed(reconnect);
	else if (reconnect->closed && is_near(reconnect) &&
		 reconnect->again_ns > now + LOOK_MS * TTI_NS_PER_MS)
		reconnect->again_ns = now + LOOK_MS * TTI_NS_PER_MS;
}

static void on_ready(void *self)
{
	step(self);
}

int64_t tti_reconnect_step(struct tti_watcher *watcher)
{
	int64_t next_ns = TTI_NEVER;

	for (struct tti_reconnect *at = watcher->reconnects, *next; at; at = next) {
		next = at->next;
		if (at->again_ns <= tti_now_ns())
			step(at);
	}
	for (struct tti_reconnect *at = watcher->reconnects; at; at = at->next)
		if (at->again_ns < next_ns)
			next_ns = at->again_ns;
	return next_ns;
}

/* -- Beginning and ending ---------------------------------------------------------------- */

/* There is no memory to make it anew. `what` happened to it. */
static void fail_memory(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
			enum tti_reconnect_why why, const char *what)
{
	char name[TTI_BOOT_NAME];
	const struct tti_failure failure =
		tti_failure_make(TUTTI_EPEER, peer, watcher->sock->base.rank,
				 "no memory to make the connection to %s anew, which %s",
				 tti_sock_name(watcher->sock, peer, name), what);

	if (role == TTI_CONN_PAIR) {
		tti_conn_mark_failed(watcher, peer, TTI_DOWN_LOST, true,
				     "cannot be reached any more: no memory to make its "
				     "connection anew");
		tti_conn_no_answer(watcher, peer, false);
	} else if (why != TTI_RECONNECT_UNACKED && !watcher->quitting) {
		tti_failures_learn(watcher, &failure, NULL);
	}
}

static struct tti_reconnect *make(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
				  enum tti_reconnect_why why)
{
	static const char *const what[] = { "does not take what is sent", "fell silent",
					    "was closed without goodbye",
					    "was closed without goodbye", "could not be made" };
	struct tti_reconnect *reconnect = tti_zalloc(sizeof(*reconnect));
	char name[TTI_BOOT_NAME];

	if (!reconnect) {
		fail_memory(watcher, role, peer, why, what[why]);
		return NULL;
	}
	tti_log(TTI_LOG_INFO, TTI_BOOT, "the connection to %s %s: it is made anew",
		tti_sock_name(watcher->sock, peer, name), what[why]);
	*reconnect = (struct tti_reconnect){ .watcher = watcher,
					     .next = watcher->reconnects,
					     .role = role,
					     .peer = peer,
					     .deadline_ns = tti_deadline(CLOSED_MS),
					     .backoff_ms = BACKOFF_MS,
					     .fresh = why == TTI_RECONNECT_FRESH };
	watcher->reconnects = reconnect;
	return reconnect;
}

void tti_reconnect_begin(struct tti_watcher *watcher, enum tti_conn_role role, int peer,
			 const struct tti_addr *remote, enum tti_reconnect_why why)
{
	struct tti_reconnect *reconnect = find(watcher, role, peer);

	if (!reconnect)
		reconnect = make(watcher, role, peer, why);
	if (!reconnect)
		return;
	if (remote->family != 0)
		reconnect->proven = *remote;
	if (!reconnect->broken && why != TTI_RECONNECT_UNACKED) {
		reconnect->broken = true;
		reconnect->closed = why == TTI_RECONNECT_CLOSED || why == TTI_RECONNECT_ENDED;
		reconnect->deadline_ns = tti_deadline(reconnect->closed ? CLOSED_MS : SILENT_MS);
	}
	/* It fell silent before, and is closed now: packets arrive. */
	if (!reconnect->closed && (why == TTI_RECONNECT_CLOSED || why == TTI_RECONNECT_ENDED)) {
		const int64_t deadline_ns = tti_deadline(CLOSED_MS);

		reconnect->closed = true;
		if (deadline_ns < reconnect->deadline_ns)
			reconnect->deadline_ns = deadline_ns;
		if (reconnect->refused)
			reconnect->again_ns = tti_now_ns();
	}
	reconnect->ended |= why == TTI_RECONNECT_ENDED;
	reconnect->fresh &= why == TTI_RECONNECT_FRESH;
	if (reconnect->ended || (!reconnect->dial && !reconnect->refused))
		reconnect->again_ns = tti_now_ns();
}

bool tti_reconnect_goes_on(struct tti_watcher *watcher, enum tti_conn_role role, int peer)
{
	struct tti_reconnect *reconnect = find(watcher, role, peer);

	if (reconnect && !reconnect->dial && !reconnect->refused)
		reconnect->again_ns = tti_deadline(reconnect->backoff_ms);
	return reconnect != NULL;
}

void tti_reconnect_done(struct tti_conn *conn)
{
	struct tti_reconnect *reconnect = find(conn->watcher, conn->role, conn->peer);
	const bool pair = conn->role == TTI_CONN_PAIR;
	const bool ask = reconnect && pair && tti_bit_has(conn->watcher->asked, (size_t)conn->peer);
	char name[TTI_BOOT_NAME], addr[TTI_ADDR_TEXT];

	if (reconnect) {
		tti_log(TTI_LOG_INFO, TTI_BOOT, "the connection to %s is made anew, to %s",
			tti_sock_name(conn->watcher->sock, conn->peer, name),
			tti_addr_format(&conn->remote, addr, sizeof(addr)));
		end(reconnect);
	}
	if (ask)
		tti_conn_ask(conn);
	if (pair)
		return;
	for (struct tti_conn *at = conn->watcher->conns, *next; at; at = next) {
		next = at->next;
		if (at == conn || at->role != conn->role || at->peer != conn->peer)
			continue;
		if (conn->role == TTI_CONN_NEXT)
			tti_conn_replace(at, conn);
		else
			tti_mail_queue_recall(at); /* the peer's MOVED may never come */
	}
}

bool tti_reconnect_has_pair(struct tti_watcher *watcher, int peer)
{
	return find(watcher, TTI_CONN_PAIR, peer);
}

bool tti_reconnect_is_on(const struct tti_watcher *watcher, int peer)
{
	const struct tti_reconnect *reconnect = watcher->reconnects;

	while (reconnect && !(reconnect->peer == peer && reconnect->broken))
		reconnect = reconnect->next;
	return reconnect;
}

void tti_reconnect_end(struct tti_watcher *watcher, enum tti_conn_role role, int peer)
{
	struct tti_reconnect *reconnect = find(watcher, role, peer);

	if (reconnect)
		end(reconnect);
	for (struct tti_conn *at = watcher->conns, *next; at; at = next) {
		next = at->next;
		if (at->role == role && at->peer == peer)
			tti_conn_drop(at);
	}
}

void tti_reconnect_cancel_pair(struct tti_watcher *watcher, int peer)
{
	struct tti_reconnect *reconnect = find(watcher, TTI_CONN_PAIR, peer);

	if (reconnect)
		give_up(reconnect);
}

void tti_reconnect_leave(struct tti_watcher *watcher, bool bye)
{
	for (struct tti_reconnect *at = watcher->reconnects, *next; at; at = next) {
		next = at->next;
		if (!bye || at->fresh || at->refused)
			end(at);
	}
}
