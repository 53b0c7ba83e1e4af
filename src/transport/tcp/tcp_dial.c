/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "transport/tcp/tcp_route.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/strbuf.h"

/* After how long the next address is tried besides those under way: sooner if none of them has even
 * connected. */
#define STAGGER_NS           (100 * TTI_NS_PER_MS)
#define STAGGER_CONNECTED_NS (1000 * TTI_NS_PER_MS)
/* After all have failed: how long to wait before starting over, twice as long each time. */
#define BACKOFF_MS           50
#define BACKOFF_MOST_MS      1000
/* An attempt that is not connected after so long has failed. One that is connected is kept: the
 * peer may come late, and connections wait in the backlog of its socket. After so long the
 * addresses that failed are tried again besides, as the connection may lead to a stranger. */
#define ATTEMPT_MS           15000
/* So many rounds of nothing but refusals (some 3 s) are final. An address without a route is not
 * final: it may be the one that reaches the peer, once the route is back. */
#define ROUNDS_MOST          7

/* A rank that has not looked for so long has not tried either. */
#define AWAY_NS (1000 * TTI_NS_PER_MS)

#define NO_HANDSHAKE "connected, but it does not answer the handshake"

static tutti_status renew(struct tti_tcp_dial *dial)
{
	dial->next = 0;
	dial->winner = -1;
	if (getrandom(&dial->nonce, sizeof(dial->nonce), 0) != sizeof(dial->nonce))
		return tti_fail(TUTTI_ESYS, "getrandom: %m");
	return TUTTI_OK;
}

/* Choose the assigned NICs with the largest share; of equal ones, those that come first in the
 * order of this rank, so that links that carry little do not all begin with one NIC. */
static bool choose_assigned(const struct tti_tcp_link *link, const struct tti_tcp_card *mine,
			    const struct tti_tcp_card *theirs, const uint8_t *order,
			    struct tti_tcp_pair *out)
{
	const struct tti_tcp_assignment *assignment = link->assignment;
	struct tti_tcp_pair pair;
	double most = -1;

	for (size_t at = 0; assignment && at < mine->nnics; at++)
		for (int i = 0; i < assignment->n; i++) {
			if (!tti_tcp_assignment_nics(assignment, i, mine, theirs, &pair) ||
			    pair.mine != order[at] || assignment->shares[i].share <= most)
				continue;
			most = assignment->shares[i].share;
			*out = pair;
		}
	return most >= 0;
}

/* Choose the NIC to try first; if it does not work, nothing is lost. */
static void choose_rail(struct tti_tcp_link *link, const struct tti_tcp_card *theirs)
{
	struct tti_tcp_port *port = link->port;
	uint8_t order[TTI_TCP_NICS_MOST];
	struct tti_tcp_card mine;
	struct tti_tcp_ways ways;
	struct tti_tcp_pair pair;
	bool assigned;
	uint8_t first;
	int fd;

	if (!port->prefer.n && !link->assignment)
		return;
	tti_tcp_cards_get(&port->cards, port->base.rank, &mine);
	tti_tcp_nics_order(port, &mine, order);
	assigned = choose_assigned(link, &mine, theirs, order, &pair);
	first = assigned ? pair.mine : order[0];
	if (mine.nnics < 2 || !mine.nic[first].is.running)
		return;
	fd = tti_tcp_route_open();
	tti_tcp_ways_find(&mine, theirs, first, tti_tcp_route_leaves, &fd, &ways);
	tti_fd_close(&fd);
	assigned = assigned && ways.at[pair.mine][pair.theirs].kind != TTI_TCP_WAY_NONE;
	if (assigned || tti_tcp_pairs_add(&mine, theirs, &ways, order, &pair, 0, 1))
		tti_tcp_rail_make(&mine, theirs, &ways.at[pair.mine][pair.theirs],
				  &link->dial->rail);
}

static void add_candidate(struct tti_tcp_dial *dial, const struct tti_addr *addr, uint32_t scope)
{
	if (dial->naddrs == sizeof(dial->addr) / sizeof(dial->addr[0]))
		return;
	dial->addr[dial->naddrs] = *addr;
	dial->addr[dial->naddrs++].scope = scope;
}

/* A link-local address is tried over each NIC of this rank that has one, too: the peer's number of
 * its NIC means nothing here. */
static void add_candidates(struct tti_tcp_dial *dial, const struct tti_tcp_card *mine,
			   const struct tti_addr *addr)
{
	const size_t before = dial->naddrs;
	bool tried[TTI_TCP_NICS_MOST] = { false };

	for (size_t i = 0; i < mine->naddrs && addr->scope; i++) {
		if (!mine->addr[i].scope || tried[mine->nic_of[i]])
			continue;
		tried[mine->nic_of[i]] = true;
		add_candidate(dial, addr, mine->addr[i].scope);
	}
	if (dial->naddrs == before)
		add_candidate(dial, addr, addr->scope);
}

tutti_status tti_tcp_dial_start(struct tti_tcp_link *link)
{
	const int peer = link->base.peer;
	struct tti_tcp_card card, mine;
	struct tti_tcp_dial *dial;
	size_t naddrs;

	tti_tcp_cards_get(&link->port->cards, peer, &card);
	naddrs = tti_tcp_card_offered(&card);
	if (!naddrs)
		return tti_fail(TUTTI_EINVAL, "rank %d has no address for TCP", peer);
	link->dial = dial = tti_zalloc(sizeof(*dial));
	if (!dial)
		return tti_fail(TUTTI_ENOMEM, "link to rank %d", peer);
	choose_rail(link, &card);
	if (dial->rail.from.family)
		dial->addr[dial->naddrs++] = dial->rail.to;
	tti_tcp_cards_get(&link->port->cards, link->port->base.rank, &mine);
	for (size_t i = 0; i < naddrs; i++)
		add_candidates(dial, &mine, &card.addr[i]);
	dial->deadline = tti_deadline(link->port->timeout_ms);
	dial->seen_at = tti_now_ns();
	dial->again_at = tti_deadline(ATTEMPT_MS);
	TTI_TRY(renew(dial));
	tti_tcp_dial_timer(link, tti_now_ns());
	return TUTTI_OK;
}

/* The attempts of this link that are under way, and how many of them are connected. */
static size_t count_attempts(const struct tti_tcp_link *link, size_t *connected)
{
	size_t n = 0;

	*connected = 0;
	for (size_t i = 0; i < link->port->rising.n; i++) {
		const struct tti_tcp_conn *conn = link->port->rising.at[i];

		if (conn->link != link)
			continue;
		n++;
		*connected += conn->state != TTI_TCP_CONNECTING;
	}
	return n;
}

static bool is_under_way(const struct tti_tcp_link *link, int candidate)
{
	for (size_t i = 0; i < link->port->rising.n; i++) {
		const struct tti_tcp_conn *conn = link->port->rising.at[i];

		if (conn->link == link && conn->candidate == candidate)
			return true;
	}
	return false;
}

static void drop_attempts(struct tti_tcp_link *link, const struct tti_tcp_conn *but)
{
	struct tti_tcp_port *port = link->port;

	for (size_t i = port->rising.n; i-- > 0;) {
		if (port->rising.at[i]->link == link && port->rising.at[i] != but)
			tti_tcp_conn_drop(port, port->rising.at[i]);
	}
}

/* Whether trying again is of little use. */
static bool is_final(int error)
{
	return error == ECONNREFUSED || error == EAFNOSUPPORT;
}

static void note(struct tti_tcp_dial *dial, int candidate, bool final, const char *why)
{
	dial->final[candidate] = final;
	snprintf(dial->why[candidate], sizeof(dial->why[candidate]), "%s", why);
}

/* This attempt has failed (why: NULL if that is noted already): try the next address at once. */
static void failed(struct tti_tcp_conn *conn, bool final, const char *why)
{
	struct tti_tcp_link *link = conn->link;
	struct tti_tcp_dial *dial = link->dial;
	const bool won = dial->winner == conn->candidate;

	if (why)
		note(dial, conn->candidate, final, why);
	tti_tcp_conn_drop(link->port, conn);
	dial->next_at = 0;
	if (!won)
		return;
	dial->winner = -1;
	dial->next = dial->naddrs;
}

/* Begin an attempt. false: failed at once, noted. */
static bool attempt(struct tti_tcp_link *link, int candidate)
{
	struct tti_tcp_port *port = link->port;
	struct tti_tcp_dial *dial = link->dial;
	struct tti_tcp_rail rail = { 0 };
	struct tti_tcp_conn *conn;
	int fd, error;

	if (!candidate && dial->rail.from.family)
		rail = dial->rail;
	rail.to = dial->addr[candidate];
	fd = tti_tcp_rail_connect(port, &rail, dial->why[candidate], &error);
	if (fd < 0) {
		dial->final[candidate] = is_final(error);
		return false;
	}
	if (tti_tcp_conn_create(port, fd, &conn)) {
		note(dial, candidate, false, tti_error_text());
		return false;
	}
	conn->connector = true;
	conn->link = link;
	conn->candidate = candidate;
	conn->deadline = tti_deadline(ATTEMPT_MS);
	conn->pass = (struct tti_tcp_pass){
		.from = (uint32_t)port->base.rank,
		.to = (uint32_t)link->base.peer,
		.nonce = dial->nonce,
		.total = 1,
	};
	note(dial, candidate, false, "no answer");
	return true;
}

/* What became of all addresses, for a text; NULL: out of memory. The caller frees it. */
static char *tell(const struct tti_tcp_dial *dial)
{
	struct tti_strbuf text = { 0 };
	char addr[TTI_ADDR_TEXT];

	for (size_t i = 0; i < dial->naddrs; i++)
		tti_strbuf_addf(&text, "%s%s: %s", i ? "; " : "",
				tti_addr_format(&dial->addr[i], addr, sizeof(addr)),
				dial->why[i][0] ? dial->why[i] : "not tried");
	return tti_strbuf_take(&text);
}

/* Whether the time to reach the machine of the peer is over, and it is not reached. */
static bool is_overdue(struct tti_tcp_link *link, int64_t now)
{
	struct tti_tcp_dial *dial = link->dial;
	const int64_t away_ns = now - dial->seen_at;
	size_t connected;
	char *tried;

	dial->seen_at = now;
	/* A rank that was stopped, or in no call, has tried nothing meanwhile. */
	if (away_ns > AWAY_NS && dial->deadline != TTI_NEVER)
		dial->deadline += away_ns;
	if (now < dial->deadline)
		return false;
	(void)count_attempts(link, &connected);
	if (!connected)
		return true;
	dial->deadline = tti_deadline(link->port->timeout_ms);
	tried = tell(dial);
	tti_log(TTI_LOG_WARN, TTI_TCP, "rank %d still waits for rank %d to answer (%s)",
		link->port->base.rank, link->base.peer, tried ? tried : "?");
	tti_free(tried);
	return false;
}

/* All addresses were tried. */
static void round_over(struct tti_tcp_link *link, int64_t now)
{
	struct tti_tcp_dial *dial = link->dial;
	bool all_final = true;
	size_t connected;

	if (count_attempts(link, &connected) > connected || (connected && now < dial->again_at))
		return;
	dial->again_at = now + ATTEMPT_MS * TTI_NS_PER_MS;
	if (connected) {
		dial->next = 0;
		return;
	}
	for (size_t i = 0; i < dial->naddrs; i++)
		all_final &= dial->final[i];
	if (++dial->rounds >= ROUNDS_MOST && all_final) {
		tti_tcp_dial_give_up(link, TUTTI_EPEER);
		return;
	}
	if (renew(dial))
		tti_port_fail(&link->port->base, TUTTI_ESYS, link->base.peer);
	dial->next_at = BACKOFF_MS << (dial->rounds < 6 ? dial->rounds : 6);
	if (dial->next_at > BACKOFF_MOST_MS)
		dial->next_at = BACKOFF_MOST_MS;
	dial->next_at = now + dial->next_at * TTI_NS_PER_MS;
}

/* Give up a peer whose machine is not reached in time; wait for one that is reached and does not
 * answer. */
void tti_tcp_dial_timer(struct tti_tcp_link *link, int64_t now)
{
	struct tti_tcp_dial *dial = link->dial;
	size_t connected;

	if (dial->winner >= 0)
		return;
	if (is_overdue(link, now)) {
		tti_tcp_dial_give_up(link, TUTTI_ETIMEOUT);
		return;
	}
	if (now < dial->next_at)
		return;
	while (dial->next < dial->naddrs) {
		const int candidate = (int)dial->next++;

		if (is_under_way(link, candidate) || !attempt(link, candidate))
			continue;
		(void)count_attempts(link, &connected);
		dial->next_at = now + (connected ? STAGGER_CONNECTED_NS : STAGGER_NS);
		return;
	}
	round_over(link, now);
}

void tti_tcp_dial_give_up(struct tti_tcp_link *link, tutti_status status)
{
	char whose[24], ifaces[256];
	char *tried = tell(link->dial);

	(void)snprintf(whose, sizeof(whose), "rank %d's", link->port->base.rank);
	status = tti_fail(status,
			  "rank %d cannot connect to rank %d (%s%s); choose interfaces with "
			  "TUTTI_SOCKET_IFNAME, or let firewalls pass these ports",
			  link->port->base.rank, link->base.peer, tried ? tried : "?",
			  tti_iface_tell(whose, ifaces, sizeof(ifaces)));
	tti_free(tried);
	drop_attempts(link, NULL);
	link->state = TTI_TCP_LINK_LOST;
	link->port->ncoming--;
	tti_free(link->dial);
	link->dial = NULL;
	tti_port_fail(&link->port->base, status, link->base.peer);
}

void tti_tcp_dial_expire(struct tti_tcp_conn *conn)
{
	failed(conn, false, NULL);
}

/* -- One attempt ----------------------------------------------------------- */

/* The HELLO of the peer came, so it is the right rank: say that this connection is used. */
static void conclude(struct tti_tcp_conn *conn)
{
	struct tti_tcp_link *link = conn->link;
	struct tti_tcp_dial *dial = link->dial;
	char addr[TTI_ADDR_TEXT];

	dial->winner = conn->candidate;
	drop_attempts(link, conn);
	if (tti_tcp_conn_greet(conn)) {
		failed(conn, false, "closed the connection");
		return;
	}
	link->conn[0] = conn;
	link->nconns = 1;
	link->nonce = dial->nonce;
	tti_log(TTI_LOG_INFO, TTI_TCP, "rank %d is reached over %s", link->base.peer,
		tti_addr_format(&dial->addr[dial->winner], addr, sizeof(addr)));
	tti_tcp_lane_name(link, 0, conn->pass.from_nic, conn->pass.to_nic);
	tti_free(dial);
	link->dial = NULL;
	tti_tcp_link_raise(link);
}

void tti_tcp_dial_event(struct tti_tcp_conn *conn)
{
	struct tti_tcp_dial *dial = conn->link->dial;
	char why[TTI_TCP_WHY];
	tutti_status status;

	status = tti_tcp_conn_step(conn, why);
	if (status == TUTTI_OK)
		conclude(conn);
	else if (status != TUTTI_AGAIN)
		failed(conn, is_final(conn->error), why);
	else if (conn->state != TTI_TCP_CONNECTING) {
		conn->deadline = TTI_NEVER;
		note(dial, conn->candidate, false, NO_HANDSHAKE);
	}
}
