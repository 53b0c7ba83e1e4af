/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include "util/clock.h"

/* Shorter messages are copied first: two pieces cost the system more than one. */
#define THROUGH 4096
/* How often messages that wait for a lane that is full are tried again. */
#define PUSH_NS (20 * 1000)

static uint8_t *payload_of(const struct tti_tcp_link *link, uint64_t seq, size_t nbytes)
{
	const size_t index = seq % link->in.slots;

	return TTI_TCP_STAGE_PAYLOAD + (nbytes <= TTI_TCP_SMALL
						? link->out_small + index * TTI_TCP_STAGE_SMALL
						: link->out_large + index * link->out_stride);
}

/* -- Staging --------------------------------------------------------------- */

/* Whether a lane is still sending again a message that the peer has released by now: its bytes no
 * longer matter, but the end of its frame does. */
static bool is_being_sent(const struct tti_tcp_link *link, uint64_t seq)
{
	for (int i = 0; i < link->nlanes; i++) {
		const struct tti_tcp_conn *conn = link->conn[i];

		if (conn && conn->nout && conn->out_data && conn->out_seq == seq)
			return true;
	}
	return false;
}

/* Messages that wait to be sent again, but were released by the peer meanwhile. */
static void settle_again(struct tti_tcp_link *link)
{
	const struct tti_tcp_inbox *in = &link->in;

	for (; link->first < in->credit; link->first++) {
		const size_t index = link->first % in->slots;

		if (!(link->todo & tti_tcp_bit_of(link, link->first)))
			continue;
		link->todo &= ~(tti_tcp_bit_of(link, link->first));
		link->again--;
		tti_tcp_forget(link, tti_tcp_wire_bytes(link, link->out[index].nbytes));
	}
	while (link->first < in->committed &&
	       !(link->todo & UINT64_C(1) << link->first % in->slots))
		link->first++;
}

bool tti_tcp_may_stage(struct tti_tcp_link *link)
{
	const struct tti_tcp_inbox *in = &link->in;

	if (link->state != TTI_TCP_LINK_UP || !link->nconns ||
	    in->committed - in->credit >= in->slots)
		return false;
	if (link->again)
		settle_again(link);
	return in->committed < in->slots || !link->resent ||
	       !is_being_sent(link, in->committed - in->slots);
}

void *tti_tcp_stage(struct tti_tcp_link *link, size_t nbytes)
{
	if (nbytes > link->in.slot_bytes)
		return NULL;
	link->reserved = link->reserved || tti_tcp_may_stage(link);
	return link->reserved ? payload_of(link, link->in.committed, nbytes) : NULL;
}

static void put_header(struct tti_tcp_link *link, uint64_t seq, size_t nbytes, uint64_t tag)
{
	const struct tti_tcp_frame frame = {
		.type = TTI_TCP_DATA,
		.length = (uint32_t)nbytes,
		.seq = seq,
		.tag = tag,
	};

	tti_tcp_frame_put(payload_of(link, seq, nbytes) - TTI_TCP_HEADER, &frame);
	link->out[seq % link->in.slots] =
		(struct tti_tcp_out){ .nbytes = (uint32_t)nbytes, .lane = -1 };
	link->todo |= tti_tcp_bit_of(link, seq);
}

void tti_tcp_commit(struct tti_link *base, size_t nbytes, uint64_t tag)
{
	struct tti_tcp_link *link = (struct tti_tcp_link *)base;

	link->reserved = false;
	if (link->state != TTI_TCP_LINK_UP)
		return;
	if (link->cut) {
		tti_tcp_link_lose(link, "sending to it failed", link->cut);
		return;
	}
	put_header(link, link->in.committed, nbytes, tag);
	link->in.committed++;
	tti_tcp_owe(link, tti_tcp_wire_bytes(link, nbytes));
	tti_tcp_link_count(link, nbytes);
	tti_tcp_link_push(link);
}

/* -- Writing --------------------------------------------------------------- */

/* The payload is `data`, whether it is staged or not. */
static void seal_message(struct tti_tcp_conn *conn, const uint8_t *header, const void *data,
			 size_t nbytes)
{
	uint8_t *payload = conn->sealed + TTI_TCP_SEALED;

	memcpy(conn->sealed, header, TTI_TCP_HEADER);
	tti_tcp_frame_seal(conn->sealed, &conn->out_seal);
	if (nbytes)
		tti_seal_close(&conn->out_seal, NULL, 0, data, nbytes, payload, payload + nbytes);
}

static void load_message(struct tti_tcp_link *link, struct tti_tcp_conn *conn, uint64_t seq,
			 const void *data)
{
	const struct tti_tcp_out *out = &link->out[seq % link->in.slots];
	uint8_t *header = payload_of(link, seq, out->nbytes) - TTI_TCP_HEADER;

	tti_tcp_frame_set_consumed(header, link->in.released);
	tti_tcp_frame_set_retry(header, out->retry);
	conn->out = header;
	if (conn->sealed) {
		seal_message(conn, header, data, out->nbytes);
		conn->out = conn->sealed;
	}
	conn->nout = tti_tcp_wire_bytes(link, out->nbytes);
	conn->out_seq = seq;
	conn->out_data = true;
}

/* A frame of this connection carries the credit, so no other frame repeats it. `besides`: the frame
 * is sent for another reason, and a CREDIT that was due need not be sent. */
static void tell(struct tti_tcp_link *link, struct tti_tcp_conn *conn, bool besides)
{
	link->told = conn->told = link->in.released;
	link->untold = 0;
	if (link->credit_due && besides)
		tti_tcp_forget(link, TTI_TCP_SEALED);
	link->credit_due = false;
}

void tti_tcp_load_control(struct tti_tcp_link *link, struct tti_tcp_conn *conn, uint8_t type)
{
	const struct tti_tcp_frame frame = {
		.type = type,
		.consumed = link->in.released,
	};

	tti_tcp_frame_put(conn->credit, &frame);
	tti_tcp_frame_seal(conn->credit, &conn->out_seal);
	conn->out = conn->credit;
	conn->nout = TTI_TCP_SEALED;
	conn->out_data = false;
	if (type != TTI_TCP_CREDIT)
		tell(link, conn, true);
}

/* A peer that waits for the rest of a record, a part of which was dropped, takes these frames for
 * it. So their number grows from time to time, until they are longer than any record. */
void tti_tcp_load_alive(struct tti_tcp_link *link, struct tti_tcp_conn *conn)
{
	const struct tti_tcp_frame frame = { .type = TTI_TCP_ALIVE, .consumed = link->in.released };
	const size_t record = tti_tcp_wire_bytes(link, link->in.slot_bytes);
	size_t nbytes = TTI_TCP_SEALED;

	if (conn->out_seal.number != conn->alive_at)
		conn->alive_bytes = 0;
	if (conn->alive_bytes > 2 * record)
		return;
	if (conn->alive_bytes)
		nbytes = 3 * conn->alive_bytes;
	nbytes -= nbytes % TTI_TCP_SEALED;
	if (nbytes > record)
		nbytes = record - record % TTI_TCP_SEALED;
	for (size_t at = 0; at < nbytes; at += TTI_TCP_SEALED) {
		tti_tcp_frame_put(conn->sealed + at, &frame);
		tti_tcp_frame_seal(conn->sealed + at, &conn->out_seal);
	}
	conn->alive_bytes += nbytes;
	conn->alive_at = conn->out_seal.number;
	conn->out = conn->sealed;
	conn->nout = nbytes;
	conn->out_data = false;
	conn->out_alive = true;
	tell(link, conn, true);
}

/* The first bytes of a frame are out: it belongs to this lane, and has sent the credit. */
static void begun(struct tti_tcp_link *link, struct tti_tcp_conn *conn)
{
	tell(link, conn, conn->out_data);
	if (conn->out_data) {
		struct tti_tcp_out *out = &link->out[conn->out_seq % link->in.slots];

		out->lane = (int8_t)conn->pass.index;
		link->lane[conn->pass.index].dealt += out->nbytes;
		link->again -= out->retry > 0;
		link->todo &= ~tti_tcp_bit_of(link, conn->out_seq);
		while (link->first < link->in.committed &&
		       !(link->todo & tti_tcp_bit_of(link, link->first)))
			link->first++;
	}
}

static void sent_some(struct tti_tcp_link *link, struct tti_tcp_conn *conn, size_t nbytes)
{
	conn->out += nbytes;
	conn->nout -= nbytes;
	tti_tcp_forget_out(link, conn, nbytes);
	tti_tcp_sched_handed(conn, nbytes);
	if (conn->nout) {
		tti_tcp_conn_block(link->port, conn, true);
		return;
	}
	conn->out_alive = false;
	if (conn->out_data) {
		struct tti_tcp_out *out = &link->out[conn->out_seq % link->in.slots];

		out->handed = true;
		link->lane[conn->pass.index].sent += out->nbytes;
	}
}

/* Nothing more can be sent on this connection; what the peer sent before stays readable. One lane
 * of several is given up. */
static void broke(struct tti_tcp_link *link, struct tti_tcp_conn *conn, int error)
{
	conn->hangup = true;
	tti_tcp_link_pull(link, conn);
	if (link->state == TTI_TCP_LINK_LOST || conn->state != TTI_TCP_UP)
		return;
	if (tti_tcp_has_others(link, conn))
		link->port->lane_leaves(link, conn->pass.index, strerror(error));
	else
		tti_tcp_link_cut(link, conn, error);
}

/* One system call. A frame stays with its connection once a byte of it is out; until then another
 * connection may take it. A sealed frame stays from the start, as it is the next record of this
 * connection. */
static void send_some(struct tti_tcp_link *link, struct tti_tcp_conn *conn, bool fresh)
{
	ssize_t sent;
	int error;

	if (fresh && (!conn->out_data || conn->sealed)) {
		begun(link, conn);
		fresh = false;
	}
	do
		sent = send(conn->fd, conn->out, conn->nout, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent > 0) {
		if (fresh)
			begun(link, conn);
		sent_some(link, conn, (size_t)sent);
		return;
	}
	error = errno;
	if (fresh)
		conn->nout = 0;
	if (error == EAGAIN || error == EWOULDBLOCK)
		tti_tcp_conn_block(link->port, conn, true);
	else
		broke(link, conn, error);
}

/* Send header and payload in one call. The rest of the payload that the system does not take is
 * staged. */
static bool send_through(struct tti_tcp_link *link, struct tti_tcp_conn *conn, uint64_t seq,
			 const void *data)
{
	struct tti_tcp_out *out = &link->out[seq % link->in.slots];
	struct iovec iov[2];
	const struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };
	size_t taken;
	ssize_t sent;

	load_message(link, conn, seq, data);
	iov[0] = (struct iovec){ (void *)(uintptr_t)conn->out, TTI_TCP_HEADER };
	iov[1] = (struct iovec){ (void *)(uintptr_t)data, out->nbytes };
	sent = sendmsg(conn->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent <= 0) {
		conn->nout = 0;
		return false;
	}
	taken = (size_t)sent > TTI_TCP_HEADER ? (size_t)sent - TTI_TCP_HEADER : 0;
	memcpy(payload_of(link, seq, out->nbytes) + taken, (const char *)data + taken,
	       out->nbytes - taken);
	out->gone = true;
	link->in.committed++;
	tti_tcp_owe(link, conn->nout);
	begun(link, conn);
	sent_some(link, conn, (size_t)sent);
	return true;
}

/* Seal straight from the memory of the caller. What the system does not take waits sealed. */
static void send_sealed(struct tti_tcp_link *link, struct tti_tcp_conn *conn, uint64_t seq,
			const void *data)
{
	load_message(link, conn, seq, data);
	link->out[seq % link->in.slots].gone = true;
	link->in.committed++;
	tti_tcp_owe(link, conn->nout);
	send_some(link, conn, true);
}

bool tti_tcp_send(struct tti_link *base, const void *data, size_t nbytes, uint64_t tag)
{
	struct tti_tcp_link *link = (struct tti_tcp_link *)base;
	const uint64_t seq = link->in.committed;
	struct tti_tcp_conn *conn = link->conn[0];

	if (!link->single || nbytes < THROUGH || nbytes > link->in.slot_bytes || link->unsent ||
	    link->reserved || link->nconns != 1 || !conn || conn->blocked || conn->nout ||
	    conn->broken)
		return false;
	if (!tti_tcp_may_stage(link)) {
		tti_tcp_link_look(link);
		if (!tti_tcp_may_stage(link))
			return false;
	}
	put_header(link, seq, nbytes, tag);
	if (conn->sealed) {
		send_sealed(link, conn, seq, data);
	} else if (!send_through(link, conn, seq, data)) {
		link->todo &= ~tti_tcp_bit_of(link, seq);
		return false;
	}
	tti_tcp_link_count(link, nbytes);
	return true;
}

/* A lane that is in the middle of a frame and can go on. */
static struct tti_tcp_conn *unfinished(const struct tti_tcp_link *link)
{
	for (int i = 0; i < link->nlanes; i++) {
		struct tti_tcp_conn *conn = link->conn[i];

		if (conn && conn->nout && !conn->blocked && !conn->broken)
			return conn;
	}
	return NULL;
}

/* false: nothing can be sent now. */
static bool push_one(struct tti_tcp_link *link)
{
	struct tti_tcp_conn *conn = unfinished(link);
	uint64_t seq;
	int lane;

	if (conn) {
		send_some(link, conn, false);
		return true;
	}
	if (link->todo && tti_tcp_sched_next(link, &lane, &seq)) {
		conn = link->conn[lane];
		load_message(link, conn, seq,
			     payload_of(link, seq, link->out[seq % link->in.slots].nbytes));
	} else {
		lane = link->credit_due ? tti_tcp_sched_credit(link) : -1;
		if (lane < 0)
			return false;
		conn = link->conn[lane];
		tti_tcp_load_control(link, conn, TTI_TCP_CREDIT);
	}
	send_some(link, conn, true);
	return true;
}

static void hold(struct tti_tcp_link *link, bool held)
{
	if (link->held == held)
		return;
	link->held = held;
	link->port->nheld += held ? 1 : -1;
}

void tti_tcp_link_push(struct tti_tcp_link *link)
{
	/* A lane that breaks pushes what it had: this goes on with it. */
	if (link->pushing)
		return;
	link->pushing = true;
	if (link->again)
		settle_again(link);
	while (link->unsent && push_one(link))
		;
	link->pushing = false;
	hold(link, link->todo && link->nconns > 1);
}

void tti_tcp_port_push(struct tti_tcp_port *port)
{
	const int64_t now = tti_now_ns();

	if (now - port->held_at < PUSH_NS)
		return;
	port->held_at = now;
	for (size_t i = 0; i < port->links.n && port->nheld; i++) {
		if (port->links.at[i]->held)
			tti_tcp_link_push(port->links.at[i]);
	}
}
