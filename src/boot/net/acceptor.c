/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/acceptor.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/fork.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/secret.h"

/* Enough for a thousand ranks on two cores. */
#define HANDSHAKE_MS 10000
/* Without a file descriptor, or memory, for one more connection: what waits to be let in would wake the
 * loop at once, again and again. */
#define STARVED_MS   20
/* Dropped connections that are logged one by one. */
#define LOGGED       20

struct tti_pending {
	struct tti_event_handler handler;
	struct tti_acceptor *acceptor;
	struct tti_pending *older, *newer;
	int fd;
	struct tti_tunnel *tunnel; /* owns fd, once it is proven */
	int64_t deadline_ns;
	struct tti_addr addr;
	struct tti_auth auth;
};

struct listener {
	struct tti_event_handler handler;
	struct tti_acceptor *acceptor;
};

/* Forget a pending connection; its socket is the caller's. */
static void forget(struct tti_pending *pending)
{
	struct tti_acceptor *acceptor = pending->acceptor;

	*(pending->older ? &pending->older->newer : &acceptor->oldest) = pending->newer;
	*(pending->newer ? &pending->newer->older : &acceptor->newest) = pending->older;
	acceptor->n--;
	tti_auth_forget(&pending->auth);
	tti_loop_free_later(acceptor->loop, &pending->handler);
}

static void hang_up(struct tti_pending *pending)
{
	tti_loop_drop(pending->acceptor->loop, pending->fd);
	if (pending->tunnel)
		tti_tunnel_close(&pending->tunnel);
	else
		tti_fd_close(&pending->fd);
	forget(pending);
}

static void drop(struct tti_pending *pending, const char *why)
{
	struct tti_acceptor *acceptor = pending->acceptor;
	char text[TTI_ADDR_TEXT];

	acceptor->dropped++;
	if (acceptor->dropped <= LOGGED)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "dropped a connection from %s: %s",
			tti_addr_format(&pending->addr, text, sizeof(text)), why);
	hang_up(pending);
}

/* The first sealed byte says that the connector keeps this connection. */
static void join(struct tti_pending *pending)
{
	struct tti_acceptor *acceptor = pending->acceptor;
	uint8_t byte = 0;
	ssize_t n;

	if (!pending->tunnel && tti_tunnel_open(pending->fd, tti_auth_keys(&pending->auth),
						&pending->tunnel) != TUTTI_OK) {
		drop(pending, tti_error_text());
		return;
	}
	n = tti_tunnel_recv(pending->tunnel, &byte, 1);
	if (n < 0 && errno == EAGAIN)
		return;
	/* If its bytes were changed on their way, it is accepted, so that all hear of the failure. */
	if (n <= 0 && !pending->tunnel->failed) {
		hang_up(pending);
		return;
	}
	if (n > 0 && byte != TTI_JOIN) {
		drop(pending, "it proved itself, then broke the protocol");
		return;
	}

	struct tti_tunnel *tunnel = pending->tunnel;
	const enum tti_auth_kind kind = pending->auth.kind;
	struct tti_wire_who who;

	memcpy(&who, pending->auth.payload, sizeof(who));
	tti_loop_drop(acceptor->loop, tunnel->fd);
	forget(pending);
	acceptor->on_accept(acceptor->self, tunnel, kind, &who);
}

/* The process tries again and again: the log says it once for each address. */
static void warn_once(const struct tti_pending *pending, const char *why)
{
	struct tti_acceptor *acceptor = pending->acceptor;
	const struct tti_addr *from = &pending->addr;
	char text[TTI_ADDR_TEXT];

	for (size_t i = 0; i < acceptor->ntold; i++)
		if (acceptor->told[i].family == from->family &&
		    memcmp(acceptor->told[i].ip, from->ip, sizeof(from->ip)) == 0)
			return;
	if (acceptor->ntold == TTI_ACCEPTOR_TOLD)
		return;
	acceptor->told[acceptor->ntold++] = *from;
	tti_log(TTI_LOG_WARN, TTI_BOOT, "a process at %s was turned away, %s",
		tti_addr_format(from, text, sizeof(text)), why);
}

/* If that is a rank of this job, this is why it does not come. */
static void note_reason(const struct tti_pending *pending, const char *why)
{
	struct tti_acceptor *acceptor = pending->acceptor;
	const bool version = pending->auth.other_version;
	char text[sizeof(acceptor->turned_away)];

	if (!version && !pending->auth.other_secret)
		return;
	(void)snprintf(text, sizeof(text), "%s%s", why,
		       version ? ""
			       : ": pass the same id, or TUTTI_COMM_ID and TUTTI_COMM_SECRET, "
				 "to all ranks");
	warn_once(pending, text);
	if (acceptor->other_version && !version)
		return;
	acceptor->other_version = version;
	memcpy(acceptor->turned_away, text, sizeof(text));
}

static void handle_pending(struct tti_event_handler *handler, uint32_t events)
{
	struct tti_pending *pending = (struct tti_pending *)handler;
	struct tti_acceptor *acceptor = pending->acceptor;
	struct tti_wire_who who;
	tutti_status status =
		pending->tunnel ? TUTTI_OK : tti_auth_step(&pending->auth, pending->fd);

	(void)events;
	if (status == TUTTI_AGAIN && tti_auth_held(&pending->auth)) {
		memcpy(&who, pending->auth.payload, sizeof(who));

		const bool welcome = acceptor->admit(acceptor->self, pending->auth.kind, &who);

		tti_auth_admit(&pending->auth, welcome);
		status = tti_auth_step(&pending->auth, pending->fd);
		if (!welcome) {
			drop(pending, "it wanted another rank or another job");
			return;
		}
	}
	if (status < 0) {
		note_reason(pending, tti_error_text());
		drop(pending, tti_error_text());
	} else if (status == TUTTI_OK) {
		join(pending);
	}
}

static tutti_status add_pending(struct tti_acceptor *acceptor, struct tti_pending *pending, int fd,
				const struct sockaddr *from)
{
	const int yes = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	pending->handler =
		(struct tti_event_handler){ .handle = handle_pending, .is_secret = true };
	pending->acceptor = acceptor;
	pending->fd = fd;
	pending->deadline_ns = tti_deadline(HANDSHAKE_MS);
	if (tti_addr_from_sock(from, &pending->addr) != TUTTI_OK)
		pending->addr.family = 0;
	tti_auth_init(&pending->auth, false, TTI_AUTH_ANY, acceptor->secret, NULL,
		      sizeof(struct tti_wire_who));
	pending->auth.hold = true;

	const tutti_status status =
		tti_loop_add(acceptor->loop, fd, EPOLLIN | EPOLLOUT | EPOLLET, &pending->handler);

	if (status != TUTTI_OK)
		return status;
	pending->older = acceptor->newest;
	*(pending->older ? &pending->older->newer : &acceptor->oldest) = pending;
	acceptor->newest = pending;
	acceptor->n++;
	if (acceptor->n > acceptor->most)
		drop(acceptor->oldest, "too many others that prove nothing");
	return TUTTI_OK;
}

static void rest(struct tti_acceptor *acceptor, int error)
{
	errno = error;
	if (!acceptor->starved)
		tti_log(TTI_LOG_WARN, TTI_BOOT, "a connection cannot be let in yet: %m%s",
			error == EMFILE ? " (raise ulimit -n)" : "");
	acceptor->starved = true;
	acceptor->again_ns = tti_deadline(STARVED_MS);
	tti_loop_change(acceptor->loop, acceptor->listen_fd, 0, acceptor->handler);
}

static void handle_listener(struct tti_event_handler *handler, uint32_t events)
{
	struct tti_acceptor *acceptor = ((struct listener *)handler)->acceptor;

	(void)events;
	/* Not for ever: connections that are in have events, too. */
	for (int i = 0; i < 64; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof(from);
		struct tti_pending *pending = tti_secret_zalloc(sizeof(*pending));

		if (!pending) {
			rest(acceptor, ENOMEM);
			return;
		}

		int fd = tti_fork_accept(acceptor->listen_fd, (struct sockaddr *)&from, &len);

		if (fd >= 0 &&
		    add_pending(acceptor, pending, fd, (const struct sockaddr *)&from) == TUTTI_OK)
			continue;

		const int error = fd < 0 ? errno : 0;

		tti_fd_close(&fd);
		tti_secret_free(pending);
		if (error == 0 || error == EINTR || error == ECONNABORTED)
			continue;
		if ((error == EMFILE || error == ENFILE) && acceptor->oldest) {
			drop(acceptor->oldest, "no file descriptor is left (raise ulimit -n)");
			continue;
		}
		if (error != EAGAIN && error != EWOULDBLOCK)
			rest(acceptor, error);
		return;
	}
}

tutti_status tti_acceptor_open(struct tti_acceptor *acceptor)
{
	struct listener *listener = tti_zalloc(sizeof(*listener));

	acceptor->handler = NULL;
	acceptor->again_ns = TTI_NEVER;
	if (!listener)
		return tti_fail(TUTTI_ENOMEM, "no memory for a listening socket");
	listener->handler.handle = handle_listener;
	listener->acceptor = acceptor;

	const tutti_status status =
		tti_loop_add(acceptor->loop, acceptor->listen_fd, EPOLLIN, &listener->handler);

	if (status != TUTTI_OK) {
		tti_free(listener);
		return status;
	}
	acceptor->handler = &listener->handler;
	return TUTTI_OK;
}

void tti_acceptor_close(struct tti_acceptor *acceptor)
{
	while (acceptor->oldest)
		hang_up(acceptor->oldest);
	tti_loop_close(acceptor->loop, &acceptor->listen_fd);
	if (acceptor->handler)
		tti_loop_free_later(acceptor->loop, acceptor->handler);
	acceptor->handler = NULL;
	if (acceptor->dropped > 0)
		tti_log(TTI_LOG_INFO, TTI_BOOT,
			"%zu connections were dropped that did not belong here", acceptor->dropped);
}

int64_t tti_acceptor_expire(struct tti_acceptor *acceptor)
{
	const int64_t now = tti_now_ns();

	while (acceptor->oldest && acceptor->oldest->deadline_ns <= now)
		drop(acceptor->oldest, "it did not finish the handshake");
	if (!acceptor->handler)
		return TTI_NEVER;
	if (acceptor->again_ns <= now) {
		acceptor->again_ns = TTI_NEVER;
		tti_loop_change(acceptor->loop, acceptor->listen_fd, EPOLLIN, acceptor->handler);
	}
	return acceptor->oldest && acceptor->oldest->deadline_ns < acceptor->again_ns
		       ? acceptor->oldest->deadline_ns
		       : acceptor->again_ns;
}
