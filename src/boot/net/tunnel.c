/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/tunnel.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "boot/net/iface.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/secret.h"
#include "util/wire.h"

#define LENGTH 2

tutti_status tti_tunnel_open(int fd, const struct tti_seal_keys *keys, struct tti_tunnel **out)
{
	struct tti_tunnel *tunnel = tti_secret_zalloc(sizeof(*tunnel));

	if (!tunnel)
		return tti_fail(TUTTI_ENOMEM, "no memory for a connection");
	tunnel->fd = fd;
	tti_seal_init(&tunnel->in, keys->cipher, keys->in);
	tti_seal_init(&tunnel->out, keys->cipher, keys->out);
	*out = tunnel;
	return TUTTI_OK;
}

void tti_tunnel_close(struct tti_tunnel **tunnel)
{
	if (!*tunnel)
		return;
	tti_fd_close(&(*tunnel)->fd);
	tti_secret_free(*tunnel);
	*tunnel = NULL;
}

/* -- Out ---------------------------------------------------------------------------- */

/* As much as fits becomes the record to be sent. */
static void seal(struct tti_tunnel *tunnel, const struct iovec *iov, size_t n)
{
	uint8_t *head = tunnel->out_bytes, *bytes = head + TTI_TUNNEL_HEAD;
	size_t nbytes = 0;

	for (size_t i = 0; i < n && nbytes < TTI_TUNNEL_RECORD; i++) {
		const size_t left = TTI_TUNNEL_RECORD - nbytes;
		const size_t part = iov[i].iov_len < left ? iov[i].iov_len : left;

		if (part > 0)
			memcpy(bytes + nbytes, iov[i].iov_base, part);
		nbytes += part;
	}
	if (nbytes == 0)
		return;
	tti_wire_put16(head, (uint16_t)nbytes);
	tti_seal_close(&tunnel->out, NULL, 0, head, LENGTH, head, head + LENGTH);
	tti_seal_close(&tunnel->out, NULL, 0, bytes, nbytes, bytes, bytes + nbytes);
	tunnel->nplain = nbytes;
	tunnel->nout = TTI_TUNNEL_HEAD + nbytes + TTI_SEAL_MAC;
	tunnel->out_at = 0;
}

ssize_t tti_tunnel_sendv(struct tti_tunnel *tunnel, const struct iovec *iov, size_t n)
{
	if (tunnel->broken) {
		errno = EPIPE;
		return -1;
	}
	if (tunnel->nout == 0)
		seal(tunnel, iov, n);
	while (tunnel->out_at < tunnel->nout) {
		const ssize_t sent =
			send(tunnel->fd, tunnel->out_bytes + tunnel->out_at,
			     tunnel->nout - tunnel->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0) {
			tunnel->broken = errno == EAGAIN || errno == EWOULDBLOCK ? 0 : errno;
			return -1;
		}
		tunnel->out_at += (size_t)sent;
		tunnel->sent += (uint64_t)sent;
	}

	const size_t nplain = tunnel->nplain;

	tunnel->nout = tunnel->out_at = tunnel->nplain = 0;
	return (ssize_t)nplain;
}

ssize_t tti_tunnel_send(struct tti_tunnel *tunnel, const void *data, size_t nbytes)
{
	const struct iovec iov = { (void *)(uintptr_t)data, nbytes };

	return tti_tunnel_sendv(tunnel, &iov, 1);
}

/* -- In ----------------------------------------------------------------------------- */

static ssize_t failed(struct tti_tunnel *tunnel)
{
	tunnel->failed = true;
	errno = EBADMSG;
	return -1;
}

/* Read until there are `want` bytes of the record: 1, or 0 at the end, or -1 and errno. */
static ssize_t fill(struct tti_tunnel *tunnel, size_t want)
{
	while (tunnel->nin < want) {
		const ssize_t got = recv(tunnel->fd, tunnel->in_bytes + tunnel->nin,
					 want - tunnel->nin, MSG_DONTWAIT);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got;
		tunnel->nin += (size_t)got;
	}
	return 1;
}

/* The next record; the results of fill(). No byte behind it is read, so poll() tells of more. */
static ssize_t open_record(struct tti_tunnel *tunnel)
{
	uint8_t *head = tunnel->in_bytes, *bytes = head + TTI_TUNNEL_HEAD;
	const bool begun = tunnel->nin >= TTI_TUNNEL_HEAD;
	ssize_t got;
	size_t nbytes;

	if (tunnel->failed)
		return failed(tunnel);
	got = fill(tunnel, TTI_TUNNEL_HEAD);
	if (got <= 0)
		return got;
	if (!begun && tti_seal_open(&tunnel->in, NULL, 0, head, LENGTH, head + LENGTH, head))
		return failed(tunnel);
	nbytes = tti_wire_get16(head);
	if (nbytes == 0 || nbytes > TTI_TUNNEL_RECORD)
		return failed(tunnel);
	got = fill(tunnel, TTI_TUNNEL_HEAD + nbytes + TTI_SEAL_MAC);
	if (got <= 0)
		return got;
	if (tti_seal_open(&tunnel->in, NULL, 0, bytes, nbytes, bytes + nbytes, bytes))
		return failed(tunnel);
	tunnel->nin = tunnel->taken = 0;
	tunnel->nopen = nbytes;
	return 1;
}

ssize_t tti_tunnel_peek(struct tti_tunnel *tunnel, void *data, size_t nbytes)
{
	const ssize_t got = tunnel->taken < tunnel->nopen ? 1 : open_record(tunnel);
	size_t n;

	if (got <= 0)
		return got;
	n = tunnel->nopen - tunnel->taken;
	n = n < nbytes ? n : nbytes;
	memcpy(data, tunnel->in_bytes + TTI_TUNNEL_HEAD + tunnel->taken, n);
	return (ssize_t)n;
}

ssize_t tti_tunnel_recv(struct tti_tunnel *tunnel, void *data, size_t nbytes)
{
	const ssize_t n = tti_tunnel_peek(tunnel, data, nbytes);

	if (n > 0)
		tunnel->taken += (size_t)n;
	return n;
}

/* -- Blocking ------------------------------------------------------------------------- */

/* After a call that moved n bytes: 0 or -1. */
static tutti_status wait_for(struct tti_tunnel *tunnel, ssize_t n, short events,
			     int64_t deadline_ns, const _Atomic int *stop)
{
	struct pollfd ready = { .fd = tunnel->fd, .events = events };
	char why[TTI_TUNNEL_WHY];

	if (n == 0)
		return tti_fail_quiet(TUTTI_EPEER, "the peer closed the connection");
	if (errno == EBADMSG)
		return tti_fail_quiet(TUTTI_EPROTO, "the connection %s",
				      tti_tunnel_why(tunnel, why));
	if (errno != EAGAIN)
		return tti_fail_quiet(TUTTI_EPEER, "the connection broke: %m");
	if (stop && *stop)
		return tti_fail_quiet(TUTTI_EABORTED, "stopped while talking to a peer");
	if (tti_left_ms(deadline_ns, 1) == 0)
		return tti_fail_quiet(TUTTI_ETIMEOUT, "no %s within the time limit",
				      events == POLLIN ? "data came" : "data was taken");
	(void)poll(&ready, 1, tti_left_ms(deadline_ns, stop ? 20 : 1000));
	return TUTTI_OK;
}

tutti_status tti_tunnel_send_all(struct tti_tunnel *tunnel, const void *data, size_t nbytes,
				 int64_t deadline_ns, const _Atomic int *stop)
{
	for (size_t at = 0; at < nbytes;) {
		const ssize_t n = tti_tunnel_send(tunnel, (const uint8_t *)data + at, nbytes - at);

		if (n > 0)
			at += (size_t)n;
		else
			TTI_TRY(wait_for(tunnel, n, POLLOUT, deadline_ns, stop));
	}
	return TUTTI_OK;
}

tutti_status tti_tunnel_recv_all(struct tti_tunnel *tunnel, void *data, size_t nbytes,
				 int64_t deadline_ns, const _Atomic int *stop)
{
	for (size_t at = 0; at < nbytes;) {
		const ssize_t n = tti_tunnel_recv(tunnel, (uint8_t *)data + at, nbytes - at);

		if (n > 0)
			at += (size_t)n;
		else
			TTI_TRY(wait_for(tunnel, n, POLLIN, deadline_ns, stop));
	}
	return TUTTI_OK;
}

const char *tti_tunnel_why(const struct tti_tunnel *tunnel, char why[TTI_TUNNEL_WHY])
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	struct tti_addr addr;
	char text[TTI_ADDR_TEXT] = "an unknown address";

	if (getpeername(tunnel->fd, (struct sockaddr *)&name, &len) == 0 &&
	    tti_addr_from_sock((const struct sockaddr *)&name, &addr) == TUTTI_OK)
		tti_addr_format(&addr, text, sizeof(text));
	(void)snprintf(why, TTI_TUNNEL_WHY,
		       "at %s brought what the other side did not send: somebody on the network "
		       "changed, left out, repeated or made it up",
		       text);
	return why;
}
