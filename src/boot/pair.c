/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between any two ranks. A connection carries messages one way only, so
 * that two ranks that send to each other at once need not agree on one. */
#include "boot/sock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "boot/dial.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"

/* What went wrong with `peer`, as the error of all that follows. */
static tutti_status fail(struct tti_sock *sock, tutti_status status, int peer, int *fd,
			 const char *what)
{
	char name[TTI_SOCK_NAME], why[160];

	TTI_TRY(tti_sock_check(sock));
	(void)strncpy(why, tti_error_text(), sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	/* It may have said why before it closed, or somebody else knows. */
	if (status == TUTTI_EPEER)
		TTI_TRY(tti_sock_check_ring(sock, what));
	if (status == TUTTI_EPEER && fd)
		TTI_TRY(tti_sock_check_end(sock, peer, *fd, what));
	/* What was cut short must not be continued with why. */
	if (fd)
		tti_fd_close(fd);
	tti_sock_name(sock, peer, name);
	if (status == TUTTI_EABORTED)
		return tti_sock_break(sock, status, -1, "%s was aborted", what);
	return tti_sock_break(sock, status, peer, "rank %d, %s %s: %s", sock->base.rank, what, name,
			      why);
}

static tutti_status reach(struct tti_sock *sock, int peer, int64_t deadline_ns)
{
	const struct tti_wire_card *card = &sock->cards[peer];
	struct tti_addr addrs[TTI_IFACE_MOST];
	size_t n = 0;

	if (sock->out[peer] >= 0)
		return TUTTI_OK;
	if (card->addr_bytes > TTI_CARD_ADDRS)
		return tti_fail_quiet(TUTTI_EPROTO, "it sent a malformed address");
	TTI_TRY(tti_addrs_unpack(card->addrs, card->addr_bytes, card->port, addrs, TTI_IFACE_MOST,
				 &n));

	const struct tti_dial_config dial = {
		.addrs = addrs,
		.naddrs = n,
		.kind = TTI_AUTH_PEER,
		.secret = sock->base.secret,
		.who = { sock->base.rank, peer, sock->base.nranks, 0 },
		.deadline_ns = deadline_ns,
		.give_up_ns = tti_deadline(TTI_SOCK_RETRY_MS),
	};

	return tti_dial_run(&dial, sock->stop, &sock->out[peer]);
}

tutti_status tti_sock_send(struct tti_boot *boot, int peer, const void *data, size_t nbytes)
{
	struct tti_sock *sock = (struct tti_sock *)boot;
	const int64_t deadline_ns = tti_deadline(sock->timeout_ms);
	struct tti_frame head = { .type = TTI_FRAME_MESSAGE, .nbytes = nbytes };
	tutti_status status;

	TTI_TRY(tti_sock_check(sock));
	status = reach(sock, peer, deadline_ns);
	if (status == TUTTI_OK) {
		struct iovec iov[2] = { { &head, sizeof(head) },
					{ (void *)(uintptr_t)data, nbytes } };
		const struct msghdr message = { .msg_iov = iov, .msg_iovlen = nbytes ? 2 : 1 };
		ssize_t n = sendmsg(sock->out[peer], &message, MSG_NOSIGNAL | MSG_DONTWAIT);
		size_t sent = n > 0 ? (size_t)n : 0;

		/* What did not fit at once. */
		if (sent < sizeof(head)) {
			status = tti_fd_send_all(sock->out[peer], (const uint8_t *)&head + sent,
						 sizeof(head) - sent, deadline_ns, sock->stop);
			sent = sizeof(head);
		}
		if (status == TUTTI_OK && sent < sizeof(head) + nbytes)
			status = tti_fd_send_all(
				sock->out[peer], (const uint8_t *)data + (sent - sizeof(head)),
				nbytes - (sent - sizeof(head)), deadline_ns, sock->stop);
	}
	return status == TUTTI_OK ? TUTTI_OK
				  : fail(sock, status, peer, &sock->out[peer], "sending to");
}

/* Wait until `peer` has connected to us. */
static tutti_status admit(struct tti_sock *sock, int peer, int64_t deadline_ns, int *fd)
{
	struct pollfd fds[3] = { { .fd = sock->inbox_fd, .events = POLLIN },
				 { .fd = sock->prev_fd, .events = POLLRDHUP },
				 { .fd = sock->next_fd, .events = POLLRDHUP } };

	for (;;) {
		eventfd_t count;

		(void)eventfd_read(sock->inbox_fd, &count);
		pthread_mutex_lock(&sock->lock);
		*fd = sock->in[peer];
		pthread_mutex_unlock(&sock->lock);
		if (*fd >= 0)
			return TUTTI_OK;
		if (tti_boot_stopped(sock->stop))
			return tti_fail_quiet(TUTTI_EABORTED, "aborted");
		if (tti_left_ms(deadline_ns, 1) == 0)
			return tti_fail_quiet(TUTTI_ETIMEOUT,
					      "it did not connect within the time limit");
		(void)poll(fds, 3, tti_left_ms(deadline_ns, sock->stop ? TTI_BOOT_NAP_MS : 60000));
		/* Once is enough: a neighbour may have left because it has finished. */
		for (int i = 1; i < 3; i++)
			if (fds[i].revents)
				fds[i].fd = -1;
		if (fds[1].revents || fds[2].revents)
			TTI_TRY(tti_sock_check_ring(sock, "init"));
	}
}

tutti_status tti_sock_recv(struct tti_boot *boot, int peer, void *data, size_t nbytes)
{
	struct tti_sock *sock = (struct tti_sock *)boot;
	const int64_t deadline_ns = tti_deadline(sock->timeout_ms);
	struct tti_frame head;
	tutti_status status;
	int fd = -1;

	TTI_TRY(tti_sock_check(sock));
	status = admit(sock, peer, deadline_ns, &fd);
	if (status == TUTTI_OK)
		status = tti_fd_recv_all(fd, &head, sizeof(head), deadline_ns, sock->stop);
	if (status == TUTTI_OK && head.type == TTI_FRAME_NEWS)
		return tti_sock_broken_by(sock, peer, fd, &head, NULL, 0, "init");
	if (status == TUTTI_OK && head.type == TTI_FRAME_BYE)
		status = tti_fail_quiet(TUTTI_EPEER, "it left");
	if (status == TUTTI_OK && (head.type != TTI_FRAME_MESSAGE || head.nbytes != nbytes))
		status = tti_fail_quiet(TUTTI_EPROTO,
					"it sent a message of %llu bytes (type %u), %zu are wanted",
					(unsigned long long)head.nbytes, head.type, nbytes);
	if (status == TUTTI_OK)
		status = tti_fd_recv_all(fd, data, nbytes, deadline_ns, sock->stop);
	return status == TUTTI_OK ? TUTTI_OK : fail(sock, status, peer, NULL, "receiving from");
}
