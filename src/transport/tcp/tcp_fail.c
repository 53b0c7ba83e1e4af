/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <stdio.h>
#include <string.h>

#include "util/error.h"

#define TEXT_MOST 640

void tti_tcp_link_fail(struct tti_tcp_link *link, tutti_status status)
{
	struct tti_tcp_port *port = link->port;
	const bool wanted = link->state != TTI_TCP_LINK_CLOSED;

	tti_tcp_forget_all(link);
	link->todo = 0;
	link->again = 0;
	if (link->state == TTI_TCP_LINK_LOST)
		return;
	link->state = TTI_TCP_LINK_LOST;
	if (wanted)
		tti_port_fail(&port->base, status, link->base.peer);
}

/* "10.0.0.1 (eth0)" */
static const char *place_of(const struct tti_addr *addr, const char *nic, char *buf, size_t size)
{
	struct tti_addr place = *addr;
	char text[TTI_ADDR_TEXT];

	place.port = 0;
	snprintf(buf, size, nic[0] ? "%s (%s)" : "%s",
		 addr->family ? tti_addr_format(&place, text, sizeof(text)) : "?", nic);
	return buf;
}

/* What became of each lane, for the text of an error: "" or "; lane 0 (...): ...". */
static void tell(const struct tti_tcp_link *link, char *buf, size_t size)
{
	size_t len = 0;

	buf[0] = 0;
	for (int i = 0; i < link->nlanes && link->nlanes > 1 && len < size; i++) {
		const struct tti_tcp_lane *lane = &link->lane[i];
		const struct tti_tcp_conn *conn = link->conn[i];
		char from[96], to[96];
		const char *what = lane->trouble;

		if (conn && conn->error)
			what = strerror(conn->error);
		else if (conn && conn->ended)
			what = "closed by the other side";
		else if (conn)
			what = conn->waits_since ? "no answer" : "up";
		what = what[0] ? what : "not connected";
		len += (size_t)snprintf(buf + len, size - len, "; lane %d, %s to %s: %s", i,
					place_of(&lane->local, lane->local_nic, from, sizeof(from)),
					place_of(&lane->remote, lane->remote_nic, to, sizeof(to)),
					what);
	}
}

void tti_tcp_link_lose(struct tti_tcp_link *link, const char *what, int error)
{
	char lanes[TEXT_MOST];

	if (link->port->base.parting) {
		tti_tcp_link_fail(link, tti_fail_quiet(TUTTI_EPEER, "rank %d is gone: %s",
						       link->base.peer, what));
		return;
	}
	tell(link, lanes, sizeof(lanes));
	tti_tcp_link_fail(link, tti_fail(TUTTI_EPEER, "rank %d is gone: %s%s%s%s%s",
					 link->base.peer, what, error ? " (" : "",
					 error ? strerror(error) : "", error ? ")" : "", lanes));
}

/* Whether the peer's end takes away something that was never handed to the system. */
static bool is_unfinished(const struct tti_tcp_link *link, const struct tti_tcp_conn *conn)
{
	if (conn->nout && conn->out_data && !link->out[conn->out_seq % link->in.slots].handed)
		return true;
	for (uint64_t seq = link->first; seq < link->in.committed; seq++) {
		if ((link->todo & tti_tcp_bit_of(link, seq)) &&
		    !link->out[seq % link->in.slots].handed)
			return true;
	}
	return false;
}

void tti_tcp_link_cut(struct tti_tcp_link *link, struct tti_tcp_conn *conn, int error)
{
	conn->broken = true;
	link->nconns = 0;
	link->cut = error;
	if (is_unfinished(link, conn)) {
		tti_tcp_link_lose(link, "sending to it failed", error);
		return;
	}
	tti_tcp_forget_all(link);
	conn->nout = 0;
	link->todo = 0;
	link->again = 0;
	link->credit_due = false;
}
