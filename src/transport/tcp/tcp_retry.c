/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <linux/tcp.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"

/* How often lanes are looked at, and after how long a lane, one of several, is given up that gets
 * no answer to what it retransmits. TCP retransmits after 200 ms at the soonest. */
#define WATCH_NS  (50 * TTI_NS_PER_MS)
#define SILENT_NS (100 * TTI_NS_PER_MS)

/* -- What is known --------------------------------------------------------- */

void tti_tcp_lane_introduce(struct tti_tcp_link *link, int index)
{
	struct tti_tcp_lane *lane = &link->lane[index];

	tti_tcp_conn_ends(link->conn[index], &lane->local, &lane->remote);
	lane->trouble[0] = 0;
}

/* -- Sending again --------------------------------------------------------- */

static void mark(struct tti_tcp_link *link, uint64_t seq)
{
	struct tti_tcp_out *out = &link->out[seq % link->in.slots];

	out->retry++;
	out->lane = -1;
	link->todo |= UINT64_C(1) << seq % link->in.slots;
	link->again++;
	link->resent = true;
	if (seq < link->first)
		link->first = seq;
	tti_tcp_owe(link, tti_tcp_wire_bytes(link, out->nbytes));
}

/* Send again what went to this lane and is not released, since it may never have arrived, or may
 * never be read. It is still staged. false: that is not possible. */
static bool put_back(struct tti_tcp_link *link, int index)
{
	const struct tti_tcp_inbox *in = &link->in;

	for (uint64_t seq = in->credit; seq < in->committed; seq++) {
		const struct tti_tcp_out *out = &link->out[seq % in->slots];

		if (out->lane != index)
			continue;
		if (out->retry == UINT16_MAX || out->gone)
			return false;
		mark(link, seq);
	}
	return true;
}

/* Credit that this lane has sent may be lost with it. */
static void tell_again(struct tti_tcp_link *link)
{
	link->told = 0;
	for (int i = 0; i < link->nlanes; i++) {
		if (link->conn[i] && link->conn[i]->told > link->told)
			link->told = link->conn[i]->told;
	}
	if (link->credit_due || link->in.released - link->told < link->tell_at)
		return;
	link->credit_due = true;
	tti_tcp_owe(link, TTI_TCP_SEALED);
}

/* -- Joining and leaving --------------------------------------------------- */

/* Forget what was measured of an earlier connection, which carried next to nothing while it died: a
 * lane that counts as slow gets so little that its rate takes long to find out. */
static void forget_rate(struct tti_tcp_lane *lane)
{
	lane->rate = lane->bytes = lane->passed = 0;
	lane->rtt_ns = lane->loaded_ns = 0;
}

/* `conn` is lane `index` no longer. */
static void retire(struct tti_tcp_link *link, struct tti_tcp_conn *conn, int index, const char *why)
{
	struct tti_tcp_lane *lane = &link->lane[index];

	tti_tcp_reader_abandon(conn->reader);
	tti_tcp_forget_out(link, conn, conn->nout);
	link->nconns -= tti_tcp_conn_counts(conn);
	/* A credit that was sent in part does not count. */
	if (conn->nout && !conn->out_data)
		conn->told = 0;
	conn->nout = 0;
	lane->losses++;
	snprintf(lane->trouble, sizeof(lane->trouble), "%s", why);
	tti_log(TTI_LOG_INFO, TTI_TCP, "lane %d of the link to rank %d is lost: %s", index,
		link->base.peer, why);
	tti_tcp_conn_drop(link->port, conn);
	if (!put_back(link, index)) {
		tti_tcp_link_lose(link, "what a lost connection carried cannot be sent again", 0);
		return;
	}
	tell_again(link);
}

tutti_status tti_tcp_lane_joins(struct tti_tcp_link *link, struct tti_tcp_conn *conn)
{
	const int index = conn->pass.index;
	struct tti_tcp_conn *before = link->conn[index];
	tutti_status status;

	if (link->state != TTI_TCP_LINK_UP || !link->nconns)
		status = tti_fail(TUTTI_EPEER, "the link to rank %d is not up", link->base.peer);
	else
		status = tti_tcp_conn_raise(link->port, conn);
	if (status) {
		tti_tcp_conn_drop(link->port, conn);
		return status;
	}
	link->conn[index] = conn;
	link->single = false;
	link->nconns++;
	if (index >= link->nlanes)
		link->nlanes = index + 1;
	if (before)
		retire(link, before, index, "it was opened anew");
	tti_tcp_lane_introduce(link, index);
	forget_rate(&link->lane[index]);
	tti_tcp_link_pull(link, conn);
	tti_tcp_link_push(link);
	return TUTTI_OK;
}

void tti_tcp_lane_leaves(struct tti_tcp_link *link, int index, const char *why)
{
	struct tti_tcp_conn *conn = link->conn[index];

	if (!conn || !tti_tcp_has_others(link, conn))
		return;
	link->conn[index] = NULL;
	retire(link, conn, index, why);
	if (link->state == TTI_TCP_LINK_UP && !link->in.ended)
		tti_tcp_lanes_lost(link, index);
	tti_tcp_link_push(link);
}

/* -- Silence --------------------------------------------------------------- */

enum mood { WELL, WAITING, SILENT };

/* A lane is silent if it had to retransmit, and that was not answered for a while either. The
 * system probes where it could not even send, as the NIC is down; probes of a closed window are
 * answered. */
static enum mood mood_of(struct tti_tcp_conn *conn, int64_t now)
{
	struct tcp_info info;

	if (!tti_tcp_conn_info(conn, &info) ||
	    ((!info.tcpi_unacked || !info.tcpi_retransmits) && !info.tcpi_probes)) {
		conn->waits_since = 0;
		return WELL;
	}
	if (!conn->waits_since)
		conn->waits_since = now;
	return now - conn->waits_since >= SILENT_NS ? SILENT : WAITING;
}

/* Give up silent lanes, if some lane works. A link of one lane, which has carried too little to get
 * others, gets them now. */
static void watch_lanes(struct tti_tcp_link *link, int64_t now)
{
	enum mood mood[TTI_TCP_LANES_MOST];
	int well = 0;

	for (int i = 0; i < link->nlanes; i++) {
		if (!link->conn[i])
			continue;
		mood[i] = mood_of(link->conn[i], now);
		well += mood[i] == WELL;
	}
	for (int i = 0; i < link->nlanes && well; i++) {
		if (link->conn[i] && mood[i] == SILENT)
			tti_tcp_lane_leaves(link, i, "the other side does not answer on it");
	}
	if (!well && link->nconns == 1 && !link->wanted && link->state == TTI_TCP_LINK_UP) {
		link->wanted = true;
		tti_tcp_lanes_want(link);
	}
}

/* Notice a machine that died without a word: while data is in flight to it, nothing else would
 * report that for a quarter of an hour. */
static void watch_machine(struct tti_tcp_link *link, int64_t now)
{
	for (int i = 0; i < link->nlanes && link->state == TTI_TCP_LINK_UP; i++) {
		struct tti_tcp_conn *conn = link->conn[i];

		if (conn && !conn->ended && tti_tcp_conn_is_silent(conn, now))
			tti_tcp_link_lose(link, "its machine has not answered for 15 s", 0);
	}
}

/* An attacker may have dropped the last record that either side waits for: say that there is no
 * more. */
static void say_alive(struct tti_tcp_link *link)
{
	for (int i = 0; i < link->nlanes; i++) {
		struct tti_tcp_conn *conn = link->conn[i];

		if (!conn || conn->nout || conn->blocked || !tti_tcp_conn_counts(conn))
			continue;
		tti_tcp_load_alive(link, conn);
		link->unsent += conn->nout;
		link->alive += conn->nout;
	}
	tti_tcp_link_push(link);
}

bool tti_tcp_port_doubts(const struct tti_tcp_port *port)
{
	for (size_t i = 0; i < port->links.n; i++) {
		const struct tti_tcp_link *link = port->links.at[i];

		for (int k = 0; k < link->nlanes; k++)
			if (link->conn[k] && link->conn[k]->waits_since)
				return true;
	}
	return false;
}

void tti_tcp_port_watch(struct tti_tcp_port *port, int64_t now)
{
	const bool all = now >= port->alive_at;

	if (now < port->watch_at)
		return;
	port->watch_at = now + WATCH_NS;
	if (all)
		port->alive_at = now + 1000 * TTI_NS_PER_MS;
	for (size_t i = 0; i < port->links.n; i++) {
		struct tti_tcp_link *link = port->links.at[i];

		if (link->state != TTI_TCP_LINK_UP && link->state != TTI_TCP_LINK_CLOSED)
			continue;
		if (link->nconns > 1 || all)
			watch_lanes(link, now);
		if (all)
			watch_machine(link, now);
		if (all && port->options.encrypt && link->state == TTI_TCP_LINK_UP)
			say_alive(link);
	}
}
