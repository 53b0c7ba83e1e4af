/* SPDX-License-Identifier: BSD-3-Clause */
/* Which lanes a link has besides its first one, and when they are opened. Only the side that
 * connected opens lanes; the other side accepts them (tcp_accept.c).
 *
 * A lane that does not open, or is lost, is tried again: after 50 ms, twice as long each time up to
 * 1 s, and from the 60th time on every 5 s. While its NIC has no carrier a try costs one system
 * call. A pair of NICs that fails three times in a row, and has never worked, gives way: its NICs
 * are paired anew, if possible. */
#include "transport/tcp/tcp.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/tcp/tcp_route.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"

#define BACKOFF_MS      50
#define BACKOFF_MOST_MS 1000
#define RARELY_AFTER    60
#define RARELY_MS       5000
/* Connecting over a working rail takes less than CONNECT_MS. The answer of the peer may take
 * longer, as the peer may be busy with something else for long. */
#define CONNECT_MS      1000
#define ANSWER_MS       60000
/* A lane that was up for so long has worked. */
#define WELL_MS         1000
#define FAILURES_OUT    3

/* How a lane is opened, and what has come of it. */
struct opening {
	struct tti_tcp_rail rail;
	struct tti_tcp_conn *attempt; /* under way                                     */
	int64_t next_at;              /* when to try; TTI_NEVER: it is up or under way */
	int64_t up_at;
	unsigned failures; /* since it last worked                          */
	bool was_up;
	bool extra; /* one more lane of a pair of NICs               */
	bool loose; /* another NIC of the peer receives its packets  */
	bool out;   /* given up: its NICs are paired anew            */
};

struct tti_tcp_lanes {
	int n;
	bool found; /* ways are known */
	struct tti_tcp_ways ways;
	struct opening at[TTI_TCP_LANES_MOST];
};

/* -- Which ones -------------------------------------------------------------- */

static bool is_own(const struct tti_tcp_card *mine, const struct tti_addr *addr)
{
	return tti_addr_is_loopback(addr) || tti_tcp_card_nic_of(mine, addr);
}

/* Note how to open lane 0 again, which came up with the link. */
static void begin(struct tti_tcp_link *link, const struct tti_tcp_card *mine,
		  const struct tti_tcp_card *theirs)
{
	struct opening *first = &link->lanes->at[0];
	struct tti_addr local = link->lane[0].local, remote = link->lane[0].remote;

	if (link->conn[0])
		tti_tcp_conn_ends(link->conn[0], &local, &remote);
	*first = (struct opening){ .next_at = TTI_NEVER, .was_up = true };
	link->lanes->n = 1;
	first->rail.to = remote;
	first->rail.to.port = theirs->port;
	if (is_own(mine, &remote))
		return;
	first->rail.mine = tti_tcp_card_nic_of(mine, &local);
	first->rail.theirs = tti_tcp_card_nic_of(theirs, &remote);
	if (!first->rail.mine)
		return;
	local.port = 0;
	first->rail.from = local;
	memcpy(first->rail.device, mine->nic[first->rail.mine - 1].is.name, IFNAMSIZ);
	if (first->rail.theirs && theirs->nic[first->rail.theirs - 1].port)
		first->rail.to.port = theirs->nic[first->rail.theirs - 1].port;
}

static int most_of(const struct tti_tcp_port *port)
{
	return port->options.lanes ? port->options.lanes : TTI_TCP_LANES_MOST;
}

static void push(struct tti_tcp_link *link, const struct tti_tcp_rail *rail, bool extra)
{
	struct tti_tcp_lanes *lanes = link->lanes;
	struct tti_tcp_lane *lane = &link->lane[lanes->n];

	lanes->at[lanes->n] = (struct opening){ .rail = *rail, .extra = extra };
	tti_tcp_lane_name(link, lanes->n, rail->mine, rail->theirs);
	lane->local = rail->from;
	lane->remote = rail->to;
	lanes->n++;
	if (link->nlanes < lanes->n)
		link->nlanes = lanes->n;
}

/* List the pairs of NICs that have a lane which is not given up. */
static size_t pairs_of(const struct tti_tcp_lanes *lanes, struct tti_tcp_pair *pair)
{
	size_t n = 0;

	for (int i = 0; i < lanes->n; i++) {
		const struct opening *at = &lanes->at[i];

		if (at->out || at->extra || !at->rail.mine || !at->rail.theirs)
			continue;
		pair[n++] = (struct tti_tcp_pair){ (uint8_t)(at->rail.mine - 1),
						   (uint8_t)(at->rail.theirs - 1) };
	}
	return n;
}

/* Add what was assigned to pair[0 .. n-1], up to `most` in all; returns how many there are. */
static size_t add_assigned(const struct tti_tcp_link *link, const struct tti_tcp_card *mine,
			   const struct tti_tcp_card *theirs, struct tti_tcp_pair *pair, size_t n,
			   size_t most)
{
	for (int i = 0; link->assignment && i < link->assignment->n && n < most; i++) {
		const bool known =
			tti_tcp_assignment_nics(link->assignment, i, mine, theirs, &pair[n]);
		size_t k = 0;

		if (!known || !link->lanes->ways.at[pair[n].mine][pair[n].theirs].kind)
			continue;
		while (pair[k].mine != pair[n].mine || pair[k].theirs != pair[n].theirs)
			k++;
		n += k == n;
	}
	return n;
}

static void add_pairs(struct tti_tcp_link *link, const struct tti_tcp_card *mine,
		      const struct tti_tcp_card *theirs)
{
	struct tti_tcp_lanes *lanes = link->lanes;
	const int sockets = link->port->options.sockets;
	const int room = (most_of(link->port) - lanes->n) / sockets;
	struct tti_tcp_pair pair[2 * TTI_TCP_LANES_MOST];
	size_t n = pairs_of(lanes, pair), all;
	uint8_t order[TTI_TCP_NICS_MOST];

	if (room <= 0)
		return;
	tti_tcp_nics_order(link->port, mine, order);
	all = add_assigned(link, mine, theirs, pair, n, n + (size_t)room);
	all = tti_tcp_pairs_add(mine, theirs, &lanes->ways, order, pair, all, n + (size_t)room);
	for (; n < all; n++) {
		struct tti_tcp_rail rail;

		tti_tcp_rail_make(mine, theirs, &lanes->ways.at[pair[n].mine][pair[n].theirs],
				  &rail);
		for (int i = 0; i < sockets; i++)
			push(link, &rail, i > 0);
	}
}

/* Add all lanes that there should be and are not there. */
static void plan(struct tti_tcp_link *link)
{
	struct tti_tcp_lanes *lanes = link->lanes;
	struct tti_tcp_card mine, theirs;
	int fd;

	tti_tcp_cards_get(&link->port->cards, link->port->base.rank, &mine);
	tti_tcp_cards_get(&link->port->cards, link->base.peer, &theirs);
	if (!lanes->n)
		begin(link, &mine, &theirs);
	if (!lanes->found) {
		lanes->found = true;
		for (int i = 1; i < link->port->options.sockets && i < most_of(link->port); i++)
			push(link, &lanes->at[0].rail, true);
		if (is_own(&mine, &lanes->at[0].rail.to))
			return;
		fd = tti_tcp_route_open();
		tti_tcp_ways_find(&mine, &theirs, -1, tti_tcp_route_leaves, &fd, &lanes->ways);
		tti_fd_close(&fd);
	}
	add_pairs(link, &mine, &theirs);
}

/* -- When -------------------------------------------------------------------- */

static void wake(struct tti_tcp_link *link, int64_t at)
{
	struct tti_tcp_port *port = link->port;

	if (at < port->lanes_at)
		port->lanes_at = at;
}

static bool prepare(struct tti_tcp_link *link)
{
	if (link->port->base.rank < link->base.peer || link->state != TTI_TCP_LINK_UP)
		return false;
	if (!link->lanes)
		link->lanes = tti_zalloc(sizeof(*link->lanes));
	/* Without memory there are no further lanes. */
	return link->lanes != NULL;
}

void tti_tcp_lanes_want(struct tti_tcp_link *link)
{
	if (!prepare(link) || link->lanes->found)
		return;
	plan(link);
	wake(link, 0);
}

static int64_t backoff(const struct opening *at)
{
	int64_t ms = BACKOFF_MS;

	for (unsigned i = 1; i < at->failures && ms < BACKOFF_MOST_MS; i++)
		ms *= 2;
	if (ms > BACKOFF_MOST_MS)
		ms = BACKOFF_MOST_MS;
	return (at->failures < RARELY_AFTER ? ms : RARELY_MS) * TTI_NS_PER_MS;
}

void tti_tcp_lanes_lost(struct tti_tcp_link *link, int index)
{
	const int64_t now = tti_now_ns();
	struct opening *at;

	if (!prepare(link))
		return;
	if (!link->lanes->n)
		plan(link);
	if (index >= link->lanes->n || link->lanes->at[index].attempt)
		return;
	at = &link->lanes->at[index];
	if (now - at->up_at > WELL_MS * TTI_NS_PER_MS)
		at->failures = 0;
	at->failures++;
	at->next_at = now + backoff(at);
	wake(link, at->next_at);
}

/* A lane did not open: note why, and when or how to try again. */
static void failed(struct tti_tcp_link *link, int index, bool refused, const char *why)
{
	struct opening *at = &link->lanes->at[index];
	struct tti_tcp_lane *lane = &link->lane[index];
	struct tti_tcp_card theirs;

	at->attempt = NULL;
	at->failures++;
	if (strncmp(lane->trouble, why, sizeof(lane->trouble) - 1) != 0)
		tti_log(TTI_LOG_INFO, TTI_TCP, "lane %d to rank %d (%s to %s) does not open: %s",
			index, link->base.peer, lane->local_nic, lane->remote_nic, why);
	snprintf(lane->trouble, sizeof(lane->trouble), "%s", why);
	at->next_at = tti_now_ns() + backoff(at);
	tti_tcp_cards_get(&link->port->cards, link->base.peer, &theirs);
	if (refused && at->rail.to.port != theirs.port) {
		/* The port is open, on that NIC alone: so another NIC received the packet. */
		at->loose = true;
		at->rail.to.port = theirs.port;
		at->next_at = 0;
	} else if (at->loose && at->rail.theirs && theirs.nic[at->rail.theirs - 1].port) {
		at->loose = false;
		at->rail.to.port = theirs.nic[at->rail.theirs - 1].port;
	}
	if (!at->was_up && !at->out && at->failures >= FAILURES_OUT && !at->extra) {
		at->out = true;
		link->lanes->ways.at[at->rail.mine - 1][at->rail.theirs - 1].kind =
			TTI_TCP_WAY_NONE;
		plan(link);
	}
	wake(link, at->next_at);
}

static void try_one(struct tti_tcp_link *link, int index)
{
	struct opening *at = &link->lanes->at[index];
	char why[TTI_TCP_WHY];
	struct tti_tcp_conn *conn;
	int error;
	int fd = tti_tcp_rail_connect(link->port, &at->rail, why, &error);

	if (fd < 0) {
		failed(link, index, false, why);
		return;
	}
	if (tti_tcp_conn_create(link->port, fd, &conn)) {
		failed(link, index, false, tti_error_text());
		return;
	}
	conn->connector = true;
	conn->link = link;
	conn->deadline = tti_deadline(CONNECT_MS);
	conn->pass = (struct tti_tcp_pass){
		.from = (uint32_t)link->port->base.rank,
		.to = (uint32_t)link->base.peer,
		.nonce = link->nonce,
		.index = (uint8_t)index,
		.total = 1,
		.from_nic = at->rail.mine,
		.to_nic = at->rail.theirs,
	};
	at->attempt = conn;
	at->next_at = TTI_NEVER;
}

int64_t tti_tcp_lanes_timer(struct tti_tcp_link *link, int64_t now)
{
	int64_t next = TTI_NEVER;

	if (link->state != TTI_TCP_LINK_UP) {
		tti_tcp_lanes_free(link);
		return next;
	}
	for (int i = 0; i < link->lanes->n; i++) {
		struct opening *at = &link->lanes->at[i];

		if (at->next_at <= now)
			try_one(link, i);
		if (at->next_at < next)
			next = at->next_at;
	}
	return next;
}

void tti_tcp_lanes_free(struct tti_tcp_link *link)
{
	for (int i = 0; link->lanes && i < link->lanes->n; i++)
		tti_tcp_conn_drop(link->port, link->lanes->at[i].attempt);
	tti_free(link->lanes);
	link->lanes = NULL;
}

/* -- What becomes of an attempt ---------------------------------------------- */

static void note_opened(struct tti_tcp_link *link, int index)
{
	struct opening *at = &link->lanes->at[index];

	at->attempt = NULL;
	at->up_at = tti_now_ns();
	at->was_up = true;
	tti_log(TTI_LOG_INFO, TTI_TCP, "lane %d to rank %d is up: %s to %s", index, link->base.peer,
		link->lane[index].local_nic, link->lane[index].remote_nic);
}

void tti_tcp_lanes_opened(struct tti_tcp_conn *conn, tutti_status joined)
{
	struct tti_tcp_link *link = conn->link;
	const int index = conn->pass.index;
	struct opening *at = &link->lanes->at[index];
	struct tti_tcp_lane *lane = &link->lane[index];

	if (joined) {
		failed(link, index, false, tti_error_text());
		return;
	}
	if (at->loose && link->conn[index] == conn)
		snprintf(lane->trouble, sizeof(lane->trouble),
			 "what is sent to that NIC of rank %d comes in by another one: see "
			 "arp_ignore in docs/network.md",
			 link->base.peer);
}

bool tti_tcp_lanes_event(struct tti_tcp_conn *conn)
{
	struct tti_tcp_link *link = conn->link;
	const enum tti_tcp_conn_state before = conn->state;
	const int index = conn->pass.index;
	char why[TTI_TCP_WHY];
	bool refused;
	const tutti_status status = tti_tcp_conn_step(conn, why);

	if (!link->lanes || link->state != TTI_TCP_LINK_UP)
		return false;
	if (status == TUTTI_OK && !tti_tcp_conn_greet(conn)) {
		note_opened(link, index);
		return true;
	}
	if (status == TUTTI_AGAIN) {
		if (before == TTI_TCP_CONNECTING && conn->state != before)
			conn->deadline = tti_deadline(ANSWER_MS);
		return false;
	}
	refused = conn->error == ECONNREFUSED;
	tti_tcp_conn_drop(link->port, conn);
	failed(link, index, refused, status ? why : "it was closed");
	return false;
}

void tti_tcp_lanes_expire(struct tti_tcp_conn *conn)
{
	struct tti_tcp_link *link = conn->link;
	const int index = conn->pass.index;
	const char *why = conn->state == TTI_TCP_CONNECTING
				  ? "no answer"
				  : "connected, but it does not answer the handshake";

	tti_tcp_conn_drop(link->port, conn);
	if (link->lanes && link->state == TTI_TCP_LINK_UP)
		failed(link, index, false, why);
}
