/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/sock.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/error.h"

/* The root hears of a death when the neighbours do. If a rank has said goodbye to the root and dies while
 * others are still on their way, the root says nothing: then all of this time passes. */
#define ROOT_MS 500

const char *tti_sock_name_as(const struct tti_boot *boot, int rank, int number, char *buf)
{
	return tti_wire_name(&((const struct tti_sock *)boot)->cards[rank], number, buf,
			     TTI_BOOT_NAME);
}

const char *tti_sock_name(const struct tti_sock *sock, int rank, char buf[TTI_BOOT_NAME])
{
	return tti_sock_name_as(&sock->base, rank, rank, buf);
}

/* -- Failing ------------------------------------------------------------------- */

static void tell(const struct tti_sock *sock, struct tti_tunnel *tunnel, bool torn)
{
	struct {
		struct tti_frame head;
		struct tti_failure failure;
	} out = { { .type = TTI_FRAME_FAILURE, .seq = sock->ended, .nbytes = sizeof(out.failure) },
		  sock->told };

	if (tunnel && !torn && !tti_tunnel_is_torn(tunnel))
		(void)tti_tunnel_send(tunnel, &out, sizeof(out));
}

void tti_sock_tell(const struct tti_sock *sock, struct tti_tunnel *tunnel)
{
	tell(sock, tunnel, false);
}

/* After this the connections are useless, and every rank that waits for this one must see it. */
static void break_off(struct tti_sock *sock)
{
	struct tti_failure out = sock->broken;
	char name[TTI_BOOT_NAME];

	if (sock->on_broken)
		sock->on_broken(sock->self, &out);
	/* An abort of this rank is a lost peer to the others. */
	if (out.status == TUTTI_EABORTED) {
		out.status = TUTTI_EPEER;
		(void)snprintf(out.text, sizeof(out.text), "rank %d gave up during init",
			       sock->base.rank);
	}
	if (out.status > TUTTI_STATUS_LOST)
		out = tti_failure_of(sock->base.rank, tti_sock_name(sock, sock->base.rank, name),
				     out.text);
	sock->told = out;
	tell(sock, sock->prev_tunnel, sock->prev_torn);
	tell(sock, sock->next_tunnel, sock->next_torn);
	sock->prev_torn = sock->next_torn = true;
	pthread_mutex_lock(&sock->lock);
	tell(sock, sock->inbox_prev, false);
	for (int i = 0; sock->in && i < sock->base.nranks; i++)
		tell(sock, sock->in[i], false);
	pthread_mutex_unlock(&sock->lock);
}

tutti_status tti_sock_break(struct tti_sock *sock, tutti_status status, int failed_rank,
			    const char *fmt, ...)
{
	va_list args;

	if (sock->broken.status == 0) {
		va_start(args, fmt);
		sock->broken = tti_failure_vmake(status, failed_rank, sock->base.rank, fmt, args);
		va_end(args);
		break_off(sock);
	}
	return tti_fail((tutti_status)sock->broken.status, "%s", sock->broken.text);
}

tutti_status tti_sock_follow(struct tti_sock *sock, const struct tti_failure *failure)
{
	if (sock->broken.status == 0) {
		sock->broken = *failure;
		sock->broken.origin = sock->base.rank;
		break_off(sock);
	}
	return tti_sock_check(sock);
}

void tti_sock_give_up(struct tti_boot *boot, const struct tti_failure *failure)
{
	struct tti_sock *sock = (struct tti_sock *)boot;

	if (sock->broken.status != 0)
		return;
	sock->broken = *failure;
	break_off(sock);
}

tutti_status tti_sock_check(struct tti_sock *sock)
{
	if (sock->broken.status == 0)
		return TUTTI_OK;
	return tti_fail_quiet((tutti_status)sock->broken.status, "%s", sock->broken.text);
}

/* The next failure in bytes of frames. TUTTI_AGAIN: there is none among them. */
static tutti_status find_failure(struct tti_framer *framer, const uint8_t *data, size_t nbytes)
{
	for (size_t at = 0, used; at < nbytes; at += used) {
		const tutti_status status = tti_framer_feed(framer, data + at, nbytes - at, &used);

		if (status < 0 || (status == TUTTI_OK && framer->head.type == TTI_FRAME_FAILURE))
			return status;
	}
	return TUTTI_AGAIN;
}

/* A neighbour that has closed its connection may have had no time to say why. The root has told it the
 * reason, or sees it leave: whether the root says something soon. */
static bool ask_root(struct tti_sock *sock, struct tti_failure *out)
{
	const int64_t deadline_ns = tti_deadline(ROOT_MS);
	struct pollfd ready = { .fd = sock->root_tunnel ? sock->root_tunnel->fd : -1,
				.events = POLLIN };
	struct tti_framer framer = { 0 };
	uint8_t data[TTI_TUNNEL_RECORD];
	tutti_status status = TUTTI_AGAIN;

	while (status == TUTTI_AGAIN && sock->root_tunnel &&
	       poll(&ready, 1, tti_left_ms(deadline_ns, ROOT_MS)) > 0) {
		const ssize_t n = tti_tunnel_recv(sock->root_tunnel, data, sizeof(data));

		if (n < 0 && errno == EAGAIN)
			continue;
		if (n <= 0)
			return false;
		status = find_failure(&framer, data, (size_t)n);
	}
	*out = framer.body.failure;
	return status == TUTTI_OK;
}

tutti_status tti_sock_closed_by(struct tti_sock *sock, int peer, struct tti_tunnel *tunnel,
				const char *what)
{
	struct tti_failure failure;
	char name[TTI_BOOT_NAME], why[TTI_TUNNEL_WHY];

	tti_sock_name(sock, peer, name);
	if (tunnel->failed)
		return tti_sock_break(sock, TUTTI_EPROTO, peer, "%s: the connection to %s %s", what,
				      name, tti_tunnel_why(tunnel, why));
	if (ask_root(sock, &failure))
		return tti_sock_follow(sock, &failure);
	return tti_sock_break(sock, TUTTI_EPEER, peer, "%s closed its connection during %s (died?)",
			      name, what);
}

tutti_status tti_sock_broken_by(struct tti_sock *sock, int peer, struct tti_tunnel *tunnel,
				const struct tti_frame *frame, const void *rest, size_t nrest,
				const char *what)
{
	struct tti_failure failure;
	char name[TTI_BOOT_NAME];

	tti_sock_name(sock, peer, name);
	/* A rank that has ended its init took this connection over while it left: the reason is in the
	 * next frame. */
	if (frame->type == TTI_FRAME_HERE && frame->nbytes == 0) {
		struct tti_frame next = { 0 };
		const size_t have = nrest < sizeof(next) ? nrest : sizeof(next);

		if (have > 0)
			memcpy(&next, rest, have);
		if (tti_tunnel_recv_all(tunnel, (uint8_t *)&next + have, sizeof(next) - have,
					tti_deadline(1000), NULL) != TUTTI_OK)
			return tti_sock_closed_by(sock, peer, tunnel, what);
		if (next.type != TTI_FRAME_HERE)
			return tti_sock_broken_by(sock, peer, tunnel, &next,
						  have > 0 ? (const uint8_t *)rest + have : NULL,
						  nrest - have, what);
	}
	if (frame->type == TTI_FRAME_MOVED)
		return tti_sock_break(sock, TUTTI_EPEER, peer,
				      "the connection to %s broke during %s", name, what);
	if (frame->type == TTI_FRAME_BYE)
		return tti_sock_break(sock, TUTTI_EPEER, peer, "%s left before %s", name, what);
	nrest = nrest < sizeof(failure) ? nrest : sizeof(failure);
	if (nrest > 0)
		memcpy(&failure, rest, nrest);
	if (frame->type == TTI_FRAME_FAILURE && frame->nbytes == sizeof(failure) &&
	    tti_tunnel_recv_all(tunnel, (uint8_t *)&failure + nrest, sizeof(failure) - nrest,
				tti_deadline(1000), NULL) == TUTTI_OK) {
		tti_wire_clean(failure.text, sizeof(failure.text));
		if (failure.status <= TUTTI_STATUS_LOST && failure.status >= TUTTI_EREVOKED)
			return tti_sock_follow(sock, &failure);
	}
	return tti_sock_break(sock, TUTTI_EPROTO, peer,
			      "%s and rank %d do different things: %s got a frame of type %u, "
			      "number %u, %llu bytes",
			      name, sock->base.rank, what, frame->type, frame->seq,
			      (unsigned long long)frame->nbytes);
}

tutti_status tti_sock_check_neighbour(struct tti_sock *sock, int peer, struct tti_tunnel *tunnel,
				      const char *what)
{
	struct {
		struct tti_frame head;
		struct tti_failure failure;
	} said;
	ssize_t n;

	if (!tunnel)
		return TUTTI_OK;
	n = tti_tunnel_peek(tunnel, &said, sizeof(said));
	if (n < 0 && errno == EAGAIN)
		return TUTTI_OK;
	if (n <= 0)
		return tti_sock_closed_by(sock, peer, tunnel, what);
	if ((size_t)n < sizeof(said.head) || said.head.type != TTI_FRAME_FAILURE)
		return TUTTI_OK;
	/* A rank that has ended this exchange has sent all that others need for it. The next one, or the
	 * watch, reads what it says. */
	if (sock->seq > 0 && said.head.seq >= sock->seq)
		return TUTTI_OK;
	/* A rank that revokes has ended its init, and so all exchanges. */
	if ((size_t)n == sizeof(said) && said.failure.status == TUTTI_EREVOKED)
		return TUTTI_OK;
	(void)tti_tunnel_recv(tunnel, &said.head, sizeof(said.head));
	return tti_sock_broken_by(sock, peer, tunnel, &said.head, NULL, 0, what);
}

tutti_status tti_sock_check_end(struct tti_sock *sock, int peer, struct tti_tunnel *tunnel,
				const char *what)
{
	struct pollfd end = { .fd = tunnel ? tunnel->fd : -1, .events = POLLRDHUP };
	struct tti_framer framer = { 0 };
	uint8_t data[1024];
	ssize_t n;

	if (poll(&end, 1, 0) <= 0)
		return TUTTI_OK;
	/* All that the peer will ever send is here: blocks, and perhaps a failure. */
	while ((n = tti_tunnel_recv(tunnel, data, sizeof(data))) > 0) {
		const tutti_status status = find_failure(&framer, data, (size_t)n);

		if (status < 0)
			return tti_sock_break(sock, status, peer, "rank %d sent %s", peer,
					      tti_error_text());
		if (status == TUTTI_OK)
			return tti_sock_broken_by(sock, peer, tunnel, &framer.head,
						  framer.body.bytes, sizeof(framer.body.failure),
						  what);
	}
	return tti_sock_closed_by(sock, peer, tunnel, what);
}
