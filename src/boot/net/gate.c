/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/gate.h"

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

/* Long enough for a machine with a thousand ranks on two cores. */
#define HANDSHAKE_MS 10000
/* Dropped connections that are logged one by one. */
#define LOGGED       20

struct tti_gate_guest {
	struct tti_ear ear;
	struct tti_gate *gate;
	struct tti_gate_guest *older, *newer;
	int fd;
	struct tti_tunnel *tunnel; /* owns fd, once it is proven */
	int64_t deadline_ns;
	struct tti_addr addr;
	struct tti_auth auth;
};

struct door {
	struct tti_ear ear;
	struct tti_gate *gate;
};

/* Forget the guest; its connection is the caller's. */
static void forget(struct tti_gate_guest *guest)
{
	struct tti_gate *gate = guest->gate;

	*(guest->older ? &guest->older->newer : &gate->oldest) = guest->newer;
	*(guest->newer ? &guest->newer->older : &gate->newest) = guest->older;
	gate->n--;
	tti_auth_forget(&guest->auth);
	tti_loop_bury(gate->loop, &guest->ear);
}

static void hang_up(struct tti_gate_guest *guest)
{
	tti_loop_drop(guest->gate->loop, guest->fd);
	if (guest->tunnel)
		tti_tunnel_close(&guest->tunnel);
	else
		tti_fd_close(&guest->fd);
	forget(guest);
}

static void drop(struct tti_gate_guest *guest, const char *why)
{
	struct tti_gate *gate = guest->gate;
	char text[TTI_ADDR_TEXT];

	gate->dropped++;
	if (gate->dropped <= LOGGED)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "dropped a connection from %s: %s",
			tti_addr_format(&guest->addr, text, sizeof(text)), why);
	hang_up(guest);
}

/* The first sealed byte: of several tries the connector keeps this one. */
static void join(struct tti_gate_guest *guest)
{
	struct tti_gate *gate = guest->gate;
	uint8_t byte = 0;
	ssize_t n;

	if (!guest->tunnel &&
	    tti_tunnel_open(guest->fd, tti_auth_keys(&guest->auth), &guest->tunnel) != TUTTI_OK) {
		drop(guest, tti_error_text());
		return;
	}
	n = tti_tunnel_recv(guest->tunnel, &byte, 1);
	if (n < 0 && errno == EAGAIN)
		return;
	/* What it sent was changed on its way: it is in, so that its failure is told to all. */
	if (n <= 0 && !guest->tunnel->failed) {
		hang_up(guest);
		return;
	}
	if (n > 0 && byte != TTI_JOIN) {
		drop(guest, "it proved itself, then broke the protocol");
		return;
	}

	struct tti_tunnel *tunnel = guest->tunnel;
	const enum tti_auth_kind kind = guest->auth.kind;
	struct tti_wire_who who;

	memcpy(&who, guest->auth.payload, sizeof(who));
	tti_loop_drop(gate->loop, tunnel->fd);
	forget(guest);
	gate->enter(gate->self, tunnel, kind, &who);
}

/* It tries again and again: the log says it once for each address. */
static void warn_once(const struct tti_gate_guest *guest, const char *why)
{
	struct tti_gate *gate = guest->gate;
	const struct tti_addr *from = &guest->addr;
	char text[TTI_ADDR_TEXT];

	for (size_t i = 0; i < gate->ntold; i++)
		if (gate->told[i].family == from->family &&
		    memcmp(gate->told[i].ip, from->ip, sizeof(from->ip)) == 0)
			return;
	if (gate->ntold == TTI_GATE_TOLD)
		return;
	gate->told[gate->ntold++] = *from;
	tti_log(TTI_LOG_WARN, TTI_BOOT, "a process at %s was turned away, %s",
		tti_addr_format(from, text, sizeof(text)), why);
}

/* Of a rank that belongs here, this is why it does not come. */
static void note_reason(const struct tti_gate_guest *guest, const char *why)
{
	struct tti_gate *gate = guest->gate;
	const bool version = guest->auth.other_version;
	char text[sizeof(gate->turned_away)];

	if (!version && !guest->auth.other_secret)
		return;
	(void)snprintf(text, sizeof(text), "%s%s", why,
		       version ? ""
			       : ": pass the same id, or TUTTI_COMM_ID and TUTTI_COMM_SECRET, "
				 "to all ranks");
	warn_once(guest, text);
	if (gate->other_version && !version)
		return;
	gate->other_version = version;
	memcpy(gate->turned_away, text, sizeof(text));
}

static void hear_guest(struct tti_ear *ear, uint32_t events)
{
	struct tti_gate_guest *guest = (struct tti_gate_guest *)ear;
	struct tti_gate *gate = guest->gate;
	struct tti_wire_who who;
	tutti_status status = guest->tunnel ? TUTTI_OK : tti_auth_step(&guest->auth, guest->fd);

	(void)events;
	if (status == TUTTI_AGAIN && tti_auth_held(&guest->auth)) {
		memcpy(&who, guest->auth.payload, sizeof(who));

		const bool welcome = gate->admit(gate->self, guest->auth.kind, &who);

		tti_auth_admit(&guest->auth, welcome);
		status = tti_auth_step(&guest->auth, guest->fd);
		if (!welcome) {
			drop(guest, "it wanted another rank or another job");
			return;
		}
	}
	if (status < 0) {
		note_reason(guest, tti_error_text());
		drop(guest, tti_error_text());
	} else if (status == TUTTI_OK) {
		join(guest);
	}
}

static tutti_status greet(struct tti_gate *gate, int fd, const struct sockaddr *from)
{
	const int yes = 1;
	struct tti_gate_guest *guest = tti_secret_zalloc(sizeof(*guest));

	if (!guest)
		return tti_fail(TUTTI_ENOMEM, "no memory for a connection");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	guest->ear = (struct tti_ear){ .hear = hear_guest, .is_secret = true };
	guest->gate = gate;
	guest->fd = fd;
	guest->deadline_ns = tti_deadline(HANDSHAKE_MS);
	if (tti_addr_from_sock(from, &guest->addr) != TUTTI_OK)
		guest->addr.family = 0;
	tti_auth_init(&guest->auth, false, TTI_AUTH_ANY, gate->secret, NULL,
		      sizeof(struct tti_wire_who));
	guest->auth.hold = true;

	const tutti_status status =
		tti_loop_add(gate->loop, fd, EPOLLIN | EPOLLOUT | EPOLLET, &guest->ear);

	if (status != TUTTI_OK) {
		tti_secret_free(guest);
		return status;
	}
	guest->older = gate->newest;
	*(guest->older ? &guest->older->newer : &gate->oldest) = guest;
	gate->newest = guest;
	gate->n++;
	if (gate->n > gate->most)
		drop(gate->oldest, "too many others that prove nothing");
	return TUTTI_OK;
}

static void hear_door(struct tti_ear *ear, uint32_t events)
{
	struct tti_gate *gate = ((struct door *)ear)->gate;

	(void)events;
	/* Not for ever: those who are in want to be heard too. */
	for (int i = 0; i < 64; i++) {
		struct sockaddr_storage from = { 0 };
		socklen_t len = sizeof(from);
		int fd = tti_fork_accept(gate->listen_fd, (struct sockaddr *)&from, &len);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE) && gate->oldest) {
			drop(gate->oldest, "no file descriptor is left (raise ulimit -n)");
			continue;
		}
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return;
		if (greet(gate, fd, (const struct sockaddr *)&from) != TUTTI_OK)
			tti_fd_close(&fd);
	}
}

tutti_status tti_gate_open(struct tti_gate *gate)
{
	struct door *door = tti_zalloc(sizeof(*door));

	gate->ear = NULL;
	if (!door)
		return tti_fail(TUTTI_ENOMEM, "no memory for a listening socket");
	door->ear.hear = hear_door;
	door->gate = gate;

	const tutti_status status = tti_loop_add(gate->loop, gate->listen_fd, EPOLLIN, &door->ear);

	if (status != TUTTI_OK) {
		tti_free(door);
		return status;
	}
	gate->ear = &door->ear;
	return TUTTI_OK;
}

void tti_gate_close(struct tti_gate *gate)
{
	while (gate->oldest)
		hang_up(gate->oldest);
	tti_loop_close(gate->loop, &gate->listen_fd);
	if (gate->ear)
		tti_loop_bury(gate->loop, gate->ear);
	gate->ear = NULL;
	if (gate->dropped > 0)
		tti_log(TTI_LOG_INFO, TTI_BOOT,
			"%zu connections were dropped that did not belong here", gate->dropped);
}

int64_t tti_gate_expire(struct tti_gate *gate)
{
	const int64_t now = tti_now_ns();

	while (gate->oldest && gate->oldest->deadline_ns <= now)
		drop(gate->oldest, "it did not finish the handshake");
	return gate->oldest ? gate->oldest->deadline_ns : TTI_NEVER;
}
