/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "util/error.h"
#include "util/fault.h"
#include "util/log.h"
#include "util/mem.h"

/* A staged message: the header right before the payload, so that a frame is one
 * piece; the payload on a cache line. */
#define STAGE_PAYLOAD 64
#define STAGE_HEADER  (STAGE_PAYLOAD - TTI_TCP_HEADER)
#define STAGE_SMALL   (STAGE_PAYLOAD + TTI_TCP_SMALL)
#define PAGE          4096

static struct tti_tcp_link *link_of(struct tti_link *link)
{
	return (struct tti_tcp_link *)link;
}

static size_t round_up(size_t value, size_t to)
{
	return (value + to - 1) / to * to;
}

/* Bytes that are to be handed to the system, and no longer. */
static void owe(struct tti_tcp_link *link, size_t nbytes)
{
	link->unsent += nbytes;
	link->port->base.unsent += nbytes;
}

static void forget(struct tti_tcp_link *link, size_t nbytes)
{
	link->unsent -= nbytes;
	link->port->base.unsent -= nbytes;
}

/* -- Coming and going ------------------------------------------------------ */

tutti_status tti_tcp_link_create(struct tti_tcp_port *port, int peer, struct tti_tcp_link **out)
{
	struct tti_tcp_link *link = tti_zalloc(sizeof(*link));

	if (!link || !tti_vec_push(&port->links, link)) {
		tti_free(link);
		return tti_fail(TUTTI_ENOMEM, "link to rank %d", peer);
	}
	link->base.ops = &tti_tcp_link_ops;
	link->base.peer = peer;
	link->port = port;
	port->link_of[peer] = link;
	*out = link;
	return TUTTI_OK;
}

/* Large slots are pages of their own that cost nothing until they are touched. */
static tutti_status get_memory(struct tti_tcp_link *link)
{
	const size_t slots = (size_t)link->port->slots, slot_bytes = link->port->base.slot_bytes;
	const size_t in_stride = round_up(slot_bytes, PAGE);
	const size_t out_stride = round_up(STAGE_PAYLOAD + slot_bytes, PAGE);
	uint8_t *at;

	at = link->memory =
		tti_aligned_zalloc(64, slots * (STAGE_SMALL + TTI_TCP_SMALL +
						sizeof(struct tti_tcp_slot) + sizeof(uint32_t)));
	if (!at)
		return tti_fail(TUTTI_ENOMEM, "link to rank %d: %zu slots", link->base.peer, slots);
	link->out_small = at;
	at += slots * STAGE_SMALL;
	link->in.small = at;
	at += slots * TTI_TCP_SMALL;
	link->in.slot = (struct tti_tcp_slot *)at;
	link->out_nbytes = (uint32_t *)(link->in.slot + slots);
	link->in.slots = (uint32_t)slots;
	link->in.slot_bytes = slot_bytes;
	link->in.stride = in_stride;
	link->out_stride = out_stride;
	link->tell_at = slots > 1 ? (uint32_t)slots / 2 : 1;

	link->pages_bytes = slots * (in_stride + out_stride);
	at = tti_fault("tcp.mmap") ? MAP_FAILED
				   : mmap(NULL, link->pages_bytes, PROT_READ | PROT_WRITE,
					  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return tti_fail(TUTTI_ENOMEM,
				"link to rank %d: %zu bytes for 2 * %zu slots of %zu; use fewer "
				"(TUTTI_TCP_SLOTS) or smaller ones (TUTTI_TCP_SLOT)",
				link->base.peer, link->pages_bytes, slots, slot_bytes);
	link->pages = at;
	link->out_large = at;
	link->in.large = at + slots * out_stride;
	return TUTTI_OK;
}

void tti_tcp_link_raise(struct tti_tcp_link *link)
{
	struct tti_tcp_port *port = link->port;
	tutti_status status = get_memory(link);

	for (int i = 0; i < link->nconns && !status; i++)
		status = tti_tcp_conn_raise(port, link->conn[i]);
	tti_tcp_dial_free(link);
	if (link->asked)
		port->ncoming--;
	if (status) {
		link->state = TTI_TCP_LINK_LOST;
		tti_port_fail(&port->base, status, link->base.peer);
		return;
	}
	link->state = TTI_TCP_LINK_UP;
	tti_log(TTI_LOG_INFO, TTI_TCP, "link to rank %d is up, %d sockets", link->base.peer,
		link->nconns);
	/* What came before this was not looked at. */
	for (int i = 0; i < link->nconns; i++)
		tti_tcp_link_pull(link, link->conn[i]);
}

void tti_tcp_link_free(struct tti_tcp_link *link)
{
	tti_tcp_dial_free(link);
	for (int i = 0; i < TTI_TCP_SOCKETS_MOST; i++)
		tti_tcp_conn_drop(link->port, link->conn[i]);
	if (link->pages)
		munmap(link->pages, link->pages_bytes);
	tti_free(link->memory);
	tti_free(link);
}

void tti_tcp_link_fail(struct tti_tcp_link *link, tutti_status status)
{
	struct tti_tcp_port *port = link->port;
	const bool wanted = link->state != TTI_TCP_LINK_CLOSED;

	forget(link, link->unsent);
	if (link->state == TTI_TCP_LINK_LOST)
		return;
	link->state = TTI_TCP_LINK_LOST;
	if (wanted)
		tti_port_fail(&port->base, status, link->base.peer);
}

/* -- Reading --------------------------------------------------------------- */

/* The peer sends no more on this connection: orderly (error 0) or not. */
static void end(struct tti_tcp_link *link, struct tti_tcp_conn *conn, int error)
{
	const int peer = link->base.peer;

	conn->ended = true;
	conn->error = error;
	link->port->nup--;
	link->nended++;
	if (error) {
		conn->broken = true;
		link->nfailed++;
	}
	if (!tti_tcp_reader_idle(conn->reader)) {
		errno = error ? error : ECONNRESET;
		tti_tcp_link_fail(link, tti_fail(TUTTI_EPEER,
						 "rank %d is gone: its connection ended within a "
						 "message (%m)",
						 peer));
	}
}

void tti_tcp_link_pull(struct tti_tcp_link *link, struct tti_tcp_conn *conn)
{
	while (link->state == TTI_TCP_LINK_UP && !conn->ended) {
		struct iovec iov[2];
		struct tti_tcp_fault fault;
		struct msghdr message = { .msg_iov = iov };
		size_t room;
		ssize_t got;

		message.msg_iovlen = (size_t)tti_tcp_reader_room(conn->reader, iov);
		room = iov[0].iov_len + (message.msg_iovlen > 1 ? iov[1].iov_len : 0);
		if (message.msg_iovlen == 1)
			got = recv(conn->fd, iov[0].iov_base, room, MSG_DONTWAIT);
		else
			got = recvmsg(conn->fd, &message, MSG_DONTWAIT);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return;
		if (got <= 0) {
			end(link, conn, got ? errno : 0);
			return;
		}
		if (tti_tcp_reader_feed(conn->reader, &link->in, (size_t)got, &fault)) {
			tti_tcp_link_fail(link,
					  tti_fail(TUTTI_EPROTO,
						   "rank %d sent a frame whose %s is %llu; at most "
						   "%llu is possible here",
						   link->base.peer, fault.field,
						   (unsigned long long)fault.value,
						   (unsigned long long)fault.most));
			return;
		}
		/* Less than there was room for: nothing is left, unless the end. */
		if ((size_t)got < room && !conn->hangup)
			return;
	}
}

/* More is wanted of the peer than is there: look whether it has come, or cannot. */
static void look(struct tti_tcp_link *link)
{
	if (link->state != TTI_TCP_LINK_UP || (link->port->nup > TTI_TCP_FEW && !link->nended))
		return;
	for (int i = 0; i < link->nconns; i++)
		tti_tcp_link_pull(link, link->conn[i]);
}

/* Nothing more can come of what is wanted: the link is lost. */
static void miss(struct tti_tcp_link *link)
{
	if (link->state != TTI_TCP_LINK_UP || (link->nended < link->nconns && !link->nfailed))
		return;
	for (int i = 0; i < link->nconns; i++) {
		if (link->conn[i]->error)
			errno = link->conn[i]->error;
	}
	if (link->nfailed)
		tti_tcp_link_fail(link,
				  tti_fail(TUTTI_EPEER, "rank %d is gone: %m", link->base.peer));
	else
		tti_tcp_link_fail(link,
				  tti_fail(TUTTI_EPEER,
					   "rank %d is gone: it closed the connection, and more "
					   "was expected of it",
					   link->base.peer));
}

static const void *peek(struct tti_link *base, size_t *nbytes, uint64_t *tag)
{
	struct tti_tcp_link *link = link_of(base);
	const struct tti_tcp_slot *slot = tti_tcp_inbox_oldest(&link->in);

	if (!slot) {
		look(link);
		slot = tti_tcp_inbox_oldest(&link->in);
		if (!slot) {
			if (link->nended)
				miss(link);
			return NULL;
		}
	}
	*nbytes = slot->nbytes;
	*tag = slot->tag;
	return tti_tcp_inbox_room(&link->in, link->in.released, slot->nbytes);
}

static void release(struct tti_link *base)
{
	struct tti_tcp_link *link = link_of(base);

	tti_tcp_inbox_release(&link->in);
	if (link->in.released - link->told < link->tell_at || link->credit_due ||
	    link->state != TTI_TCP_LINK_UP || link->nended)
		return;
	link->credit_due = true;
	owe(link, TTI_TCP_HEADER);
	tti_tcp_link_push(link);
}

/* -- Writing --------------------------------------------------------------- */

static uint8_t *stage(const struct tti_tcp_link *link, uint64_t seq, size_t nbytes)
{
	const size_t index = seq % link->in.slots;

	return nbytes <= TTI_TCP_SMALL ? link->out_small + index * STAGE_SMALL
				       : link->out_large + index * link->out_stride;
}

static void *reserve(struct tti_link *base, size_t nbytes)
{
	struct tti_tcp_link *link = link_of(base);

	if (nbytes > link->in.slot_bytes)
		return NULL;
	/* The same room as before, whatever has become of the link. */
	if (!link->lent) {
		if (link->nended || link->in.committed - link->in.credit >= link->in.slots) {
			look(link);
			if (link->nended)
				miss(link);
		}
		link->lent = link->state == TTI_TCP_LINK_UP &&
			     link->in.committed - link->in.credit < link->in.slots;
		if (!link->lent)
			return NULL;
	}
	return stage(link, link->in.committed, nbytes) + STAGE_PAYLOAD;
}

static void commit(struct tti_link *base, size_t nbytes, uint64_t tag)
{
	struct tti_tcp_link *link = link_of(base);
	const uint64_t seq = link->in.committed;
	const struct tti_tcp_frame frame = {
		.type = TTI_TCP_DATA,
		.length = (uint32_t)nbytes,
		.seq = seq,
		.tag = tag,
	};

	link->lent = false;
	if (link->state != TTI_TCP_LINK_UP)
		return;
	tti_tcp_frame_put(stage(link, seq, nbytes) + STAGE_HEADER, &frame);
	link->out_nbytes[seq % link->in.slots] = (uint32_t)nbytes;
	link->in.committed++;
	owe(link, TTI_TCP_HEADER + nbytes);
	tti_tcp_link_push(link);
}

/* Give an idle connection the next frame. */
static void load(struct tti_tcp_link *link, struct tti_tcp_conn *conn)
{
	const struct tti_tcp_frame frame = { .type = TTI_TCP_CREDIT };

	if (link->begun < link->in.committed) {
		const uint32_t nbytes = link->out_nbytes[link->begun % link->in.slots];
		uint8_t *header = stage(link, link->begun, nbytes) + STAGE_HEADER;

		tti_tcp_frame_set_consumed(header, link->in.released);
		conn->out = header;
		conn->nout = TTI_TCP_HEADER + (size_t)nbytes;
		link->begun++;
	} else {
		tti_tcp_frame_put(conn->credit, &frame);
		tti_tcp_frame_set_consumed(conn->credit, link->in.released);
		conn->out = conn->credit;
		conn->nout = TTI_TCP_HEADER;
	}
}

/* Some of a frame that load() gave went out: it has told the credit. */
static void told(struct tti_tcp_link *link, const struct tti_tcp_conn *conn)
{
	link->told = link->in.released;
	if (!link->credit_due)
		return;
	link->credit_due = false;
	if (conn->out == conn->credit)
		return;
	forget(link, TTI_TCP_HEADER);
}

/* Nothing more can be sent on it. Whether that matters depends on what for; what
 * the peer sent before stays readable. */
static void broke(struct tti_tcp_link *link, struct tti_tcp_conn *conn, int error)
{
	const bool credit = conn->out >= conn->credit && conn->out <= conn->credit + TTI_TCP_HEADER;

	conn->broken = true;
	conn->hangup = true;
	tti_tcp_link_pull(link, conn);
	if (link->state == TTI_TCP_LINK_LOST)
		return;
	if (link->begun < link->in.committed || (conn->nout && !credit)) {
		errno = error;
		tti_tcp_link_fail(link, tti_fail(TUTTI_EPEER,
						 "rank %d is gone: sending to it failed (%m)",
						 link->base.peer));
		return;
	}
	/* A peer that has left wants no credit. */
	forget(link, conn->nout + (link->credit_due ? TTI_TCP_HEADER : 0));
	conn->nout = 0;
	link->credit_due = false;
}

/* One call of the system. The frame stays with the connection once a byte of it
 * is out; until then another connection may take it. */
static void send_some(struct tti_tcp_link *link, struct tti_tcp_conn *conn)
{
	const bool fresh = !conn->nout;
	ssize_t sent;
	int error;

	if (fresh)
		load(link, conn);
	do
		sent = send(conn->fd, conn->out, conn->nout, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent > 0) {
		if (fresh)
			told(link, conn);
		conn->out += sent;
		conn->nout -= (size_t)sent;
		forget(link, (size_t)sent);
		if (conn->nout)
			tti_tcp_conn_block(link->port, conn, true);
		return;
	}
	error = errno;
	if (fresh) {
		link->begun -= conn->out != conn->credit;
		conn->nout = 0;
	}
	if (error == EAGAIN || error == EWOULDBLOCK)
		tti_tcp_conn_block(link->port, conn, true);
	else
		broke(link, conn, error);
}

/* The connection whose turn it is and that can take something. */
static struct tti_tcp_conn *next_conn(struct tti_tcp_link *link)
{
	const bool more = link->begun < link->in.committed || link->credit_due;

	for (int i = 0; i < link->nconns; i++) {
		struct tti_tcp_conn *conn = link->conn[link->turn];

		if (++link->turn == link->nconns)
			link->turn = 0;
		if (!conn->blocked && !conn->broken && (more || conn->nout))
			return conn;
	}
	return NULL;
}

void tti_tcp_link_push(struct tti_tcp_link *link)
{
	while (link->unsent) {
		struct tti_tcp_conn *conn = next_conn(link);

		if (!conn)
			return;
		send_some(link, conn);
	}
}

const struct tti_link_ops tti_tcp_link_ops = {
	.reserve = reserve,
	.commit = commit,
	.peek = peek,
	.release = release,
};
