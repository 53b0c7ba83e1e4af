/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/fork.h"
#include "util/log.h"
#include "util/secret.h"
#include "util/strbuf.h"

#define TRIES            (2 * TTI_IFACE_MOST)
/* The next candidate is tried after this; and after this if one is connected, but busy. */
#define STAGGER_MS       100
#define STAGGER_BUSY_MS  1000
/* The time of one try to connect, and of its handshake. */
#define CONNECT_MS       5000
#define HANDSHAKE_MS     10000
/* Between two rounds through all candidates. */
#define BACKOFF_FIRST_MS 10
#define BACKOFF_MOST_MS  1000
/* A peer that listened from the beginning and refuses for so long is gone. */
#define REFUSED_MS       100
/* A root that holds another secret for so long is not one of an earlier job that is about to end. */
#define STRANGE_MS       3000
/* Before a proven address alone is tried again. */
#define AGAIN_FIRST_MS   2
#define AGAIN_MOST_MS    500
/* The scope of a link-local address in /proc/net/if_inet6. */
#define LINK_SCOPE       0x20

enum state {
	IDLE,
	CONNECTING,
	PROVING,
	FAILED,
};

struct
try {
	struct tti_addr addr;
	enum state state;
	int fd;
	int err;    /* FAILED: why it was not connected, 0: it was, or unknown */
	bool taken; /* FAILED: another process listens there now                */
	int64_t deadline_ns;
	int64_t wait_ms, again_ns; /* FAILED and proven: when to try it once more */
	char why[112];
	struct tti_auth auth;
	struct tti_tunnel *tunnel; /* after the handshake; NULL: not yet */
};

struct tti_dial {
	struct tti_event_handler handler;
	struct tti_loop *loop;
	struct tti_dial_config config;
	size_t ntries, nstarted;
	int64_t next_ns; /* the next candidate, or round, may start */
	int64_t backoff_ms;
	int64_t refused_ns; /* since when all rounds were refused, 0: the last one was not */
	int64_t strange_ns; /* since when each round met another secret, 0: the last one did not */
	int own_err;        /* this process cannot have a socket, 0: it can */
	bool strange;       /* a process answered that does not belong to this job */
	bool other_version;
	bool other_secret; /* in this round */
	bool warned;
	struct try tries[TRIES];
};

static void handle(struct tti_event_handler *handler, uint32_t events)
{
	struct tti_dial *dial = (struct tti_dial *)handler;

	(void)events;
	if (dial->config.on_ready)
		dial->config.on_ready(dial->config.self);
}

static void add_try(struct tti_dial *dial, const struct tti_addr *addr)
{
	if (dial->ntries == TRIES)
		return;
	dial->tries[dial->ntries].addr = *addr;
	dial->tries[dial->ntries].fd = -1;
	dial->tries[dial->ntries].wait_ms = AGAIN_FIRST_MS / 2;
	dial->ntries++;
}

/* The sender of a link-local address cannot know on which of this host's links it is: any with such an
 * address may be the one. if_nameindex() would wait for the kernel, perhaps for seconds, while others make
 * or remove NICs; reading this file does not. */
static void add_scopes(struct tti_dial *dial, const struct tti_addr *addr)
{
	FILE *file = fopen("/proc/net/if_inet6", "re");
	struct tti_addr other = *addr;
	uint32_t last = addr->scope;
	unsigned scope;
	char line[128];

	while (file && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%*32s %x %*x %x", &other.scope, &scope) != 2 ||
		    scope != LINK_SCOPE || other.scope == last || other.scope == addr->scope)
			continue;
		last = other.scope;
		add_try(dial, &other);
	}
	if (file)
		(void)fclose(file);
}

tutti_status tti_dial_start(struct tti_loop *loop, const struct tti_dial_config *config,
			    struct tti_dial **out)
{
	struct tti_dial *dial = tti_secret_zalloc(sizeof(*dial));

	if (!dial)
		return tti_fail(TUTTI_ENOMEM, "no memory to connect");
	dial->handler = (struct tti_event_handler){ .handle = handle, .is_secret = true };
	dial->loop = loop;
	dial->config = *config;
	dial->config.addrs = NULL;
	dial->backoff_ms = BACKOFF_FIRST_MS;
	for (size_t i = 0; i < config->naddrs; i++)
		add_try(dial, &config->addrs[i]);
	for (size_t i = 0; i < config->naddrs; i++)
		if (config->addrs[i].scope != 0)
			add_scopes(dial, &config->addrs[i]);
	*out = dial;
	return TUTTI_OK;
}

/* Without a route to an address, nothing is known about a listener there. */
static bool has_no_way(int err)
{
	return err == ENETUNREACH || err == EHOSTUNREACH || err == EADDRNOTAVAIL ||
	       err == EAFNOSUPPORT || err == EINVAL;
}

static bool refuses(const struct try *try)
{
	return try->state == FAILED && (try->err == ECONNREFUSED || try->taken);
}

static bool is_gone(const struct tti_dial *dial)
{
	for (size_t i = 0; i < dial->config.nproven && i < dial->ntries; i++)
		if (refuses(&dial->tries[i]))
			return true;
	return false;
}

bool tti_dial_is_ours(const struct tti_addr *addr)
{
	struct tti_addr any_port = *addr;
	struct sockaddr_storage at;
	socklen_t len;
	bool ours;
	int fd;

	if (addr->family == TTI_ADDR_UNIX)
		return true;
	any_port.port = 0;
	len = tti_addr_to_sock(&any_port, &at);
	fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	ours = fd >= 0 && bind(fd, (const struct sockaddr *)&at, len) == 0;
	tti_fd_close(&fd);
	return ours;
}

/* Every host has some addresses, like 127.0.0.1: at those a peer on another host does not answer. */
static bool is_elsewhere(const struct tti_dial *dial)
{
	for (size_t i = 0; i < dial->ntries; i++)
		if (dial->tries[i].addr.scope == 0 && !tti_dial_is_ours(&dial->tries[i].addr))
			return true;
	return false;
}

bool tti_dial_is_refused(const struct tti_dial *dial)
{
	const bool elsewhere = is_elsewhere(dial);
	size_t nrefused = 0;

	if (is_gone(dial))
		return true;
	for (size_t i = 0; i < dial->ntries; i++) {
		const struct try *try = &dial->tries[i];

		if (elsewhere && tti_dial_is_ours(&try->addr))
			continue;
		if (!refuses(try) && (try->state != FAILED || !has_no_way(try->err)))
			return false;
		nrefused += refuses(try);
	}
	return nrefused > 0;
}

bool tti_dial_is_answered(const struct tti_dial *dial)
{
	for (size_t i = 0; i < dial->nstarted; i++)
		if (dial->tries[i].state == PROVING)
			return true;
	return false;
}

void tti_dial_stop(struct tti_dial *dial)
{
	if (!dial)
		return;
	for (size_t i = 0; i < dial->ntries; i++) {
		tti_loop_close(dial->loop, &dial->tries[i].fd);
		tti_auth_forget(&dial->tries[i].auth);
	}
	tti_loop_free_later(dial->loop, &dial->handler);
}

static void give_up(struct tti_dial *dial, struct try *try, const char *why)
{
	tti_loop_close(dial->loop, &try->fd);
	tti_auth_forget(&try->auth);
	try->state = FAILED;
	try->err = 0;
	try->taken = false;
	try->wait_ms = 2 * try->wait_ms < AGAIN_MOST_MS ? 2 * try->wait_ms : AGAIN_MOST_MS;
	try->again_ns = tti_deadline(try->wait_ms);
	(void)snprintf(try->why, sizeof(try->why), "%s", why);
}

static void not_connected(struct tti_dial *dial, struct try *try, int err)
{
	give_up(dial, try, strerror(err));
	try->err = err;
}

static void start_try(struct tti_dial *dial, struct try *try)
{
	const int yes = 1;
	struct sockaddr_storage to;
	const socklen_t len = tti_addr_to_sock(&try->addr, &to);

	try->fd = tti_fork_socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK);
	if (try->fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS)
			dial->own_err = errno;
		give_up(dial, try, strerror(errno));
		return;
	}
	(void)setsockopt(try->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	try->state = CONNECTING;
	try->deadline_ns =
		tti_deadline(dial->config.connect_ms ? dial->config.connect_ms : CONNECT_MS);
	if (connect(try->fd, (const struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS) {
		not_connected(dial, try, errno);
		return;
	}
	if (tti_loop_add(dial->loop, try->fd, EPOLLIN | EPOLLOUT | EPOLLET, &dial->handler) !=
	    TUTTI_OK)
		give_up(dial, try, tti_error_text());
}

/* A connection from a free port to the same port reaches itself. */
static bool is_mirror(int fd)
{
	struct sockaddr_storage self = { 0 }, peer = { 0 };
	socklen_t self_len = sizeof(self), peer_len = sizeof(peer);
	struct tti_addr a, b;

	if (getsockname(fd, (struct sockaddr *)&self, &self_len) < 0 ||
	    getpeername(fd, (struct sockaddr *)&peer, &peer_len) < 0 ||
	    tti_addr_from_sock((struct sockaddr *)&self, &a) != TUTTI_OK ||
	    tti_addr_from_sock((struct sockaddr *)&peer, &b) != TUTTI_OK)
		return false;
	return memcmp(&a, &b, sizeof(a)) == 0;
}

static void step_connect(struct tti_dial *dial, struct try *try)
{
	struct pollfd ready = { .fd = try->fd, .events = POLLOUT };
	int error = 0;
	socklen_t len = sizeof(error);

	if (poll(&ready, 1, 0) <= 0)
		return;
	if (getsockopt(try->fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		error = errno;
	if (error != 0) {
		not_connected(dial, try, error);
		return;
	}
	if (is_mirror(try->fd)) {
		not_connected(dial, try, ECONNREFUSED);
		return;
	}
	try->state = PROVING;
	try->deadline_ns = tti_deadline(HANDSHAKE_MS);
	tti_auth_init(&try->auth, true, dial->config.kind, dial->config.secret, &dial->config.who,
		      sizeof(dial->config.who));
}

/* Whether another process has the port at which the peer listened before it told anybody. A port that was
 * closed may be given to any process, of the same job too. */
static bool is_taken(const struct tti_dial *dial, const struct try *try)
{
	return (dial->config.listens || dial->config.kind != TTI_AUTH_ROOT) &&
	       (try->auth.other_secret || try->auth.other_rank);
}

/* The handshake is done. The first sealed byte says that this connection is kept. */
static tutti_status enter(struct tti_dial *dial, struct try *try)
{
	static const uint8_t join = TTI_JOIN;

	TTI_TRY(tti_tunnel_open(try->fd, tti_auth_keys(&try->auth), &try->tunnel));
	tti_loop_drop(dial->loop, try->fd);
	try->fd = -1;
	if (tti_tunnel_send(try->tunnel, &join, 1) == 1)
		return TUTTI_OK;
	tti_tunnel_close(&try->tunnel);
	return tti_fail_quiet(TUTTI_EPEER, "it closed after the handshake");
}

/* TUTTI_OK: this one is it. */
static tutti_status step_try(struct tti_dial *dial, struct try *try, int64_t now)
{
	tutti_status status = TUTTI_AGAIN;

	if (try->state == CONNECTING)
		step_connect(dial, try);
	if (try->state == PROVING)
		status = tti_auth_step(&try->auth, try->fd);
	if (status == TUTTI_OK)
		status = enter(dial, try);
	if (status == TUTTI_OK)
		return TUTTI_OK;
	if (status != TUTTI_AGAIN) {
		const bool taken = is_taken(dial, try);

		dial->strange |= status == TUTTI_EPROTO && !taken;
		dial->other_version |= try->auth.other_version;
		dial->other_secret |= try->auth.other_secret && !taken;
		give_up(dial, try, tti_error_text());
		try->taken = taken;
	} else if (try->state != FAILED && now >= try->deadline_ns) {
		give_up(dial, try,
			try->state == CONNECTING ? "no answer" : "connected, but no handshake");
	}
	return TUTTI_AGAIN;
}

static tutti_status describe(struct tti_dial *dial, tutti_status status)
{
	struct tti_strbuf buf = { 0 };

	for (size_t i = 0; i < dial->ntries; i++) {
		const struct try *try = &dial->tries[i];
		char text[TTI_ADDR_TEXT];

		if (try->state != IDLE || try->why[0])
			tti_strbuf_addf(&buf, "%s%s: %s", buf.len ? "; " : "",
					tti_addr_format(&try->addr, text, sizeof(text)),
					try->why[0] ? try->why : "no answer yet");
	}
	status = tti_fail_quiet(status, "%s", buf.text ? buf.text : "no address");
	tti_strbuf_release(&buf);
	return status;
}

static void log_success(struct tti_dial *dial, const struct try *best)
{
	char text[TTI_ADDR_TEXT];

	if (!tti_log_enabled(TTI_LOG_INFO, TTI_BOOT))
		return;
	for (size_t i = 0; i < dial->ntries; i++)
		if (dial->tries[i].state == FAILED)
			tti_log(TTI_LOG_INFO, TTI_BOOT, "%s is not reachable: %s",
				tti_addr_format(&dial->tries[i].addr, text, sizeof(text)),
				dial->tries[i].why);
	tti_log(TTI_LOG_INFO, TTI_BOOT, "connected to %s %d at %s",
		dial->config.kind == TTI_AUTH_ROOT ? "root" : "rank", dial->config.who.to,
		tti_addr_format(&best->addr, text, sizeof(text)));
}

/* Whether the peer listened, and all candidates have refused for long enough. */
static bool has_ended(struct tti_dial *dial, int64_t now)
{
	if (!dial->config.listens || !tti_dial_is_refused(dial)) {
		dial->refused_ns = 0;
		return false;
	}
	if (dial->refused_ns == 0)
		dial->refused_ns = now;
	return now - dial->refused_ns >= REFUSED_MS * TTI_NS_PER_MS;
}

/* Whether the root has held another secret for long enough. */
static bool is_strange(struct tti_dial *dial, int64_t now)
{
	if (!dial->other_secret)
		dial->strange_ns = 0;
	else if (dial->strange_ns == 0)
		dial->strange_ns = now;
	dial->other_secret = false;
	return dial->strange_ns && dial->config.kind == TTI_AUTH_ROOT &&
	       now - dial->strange_ns >= STRANGE_MS * TTI_NS_PER_MS;
}

static tutti_status fail_own(const struct tti_dial *dial)
{
	const bool files = dial->own_err == EMFILE || dial->own_err == ENFILE;

	return tti_fail_quiet(TUTTI_ESYS, "a socket to connect with: %s%s", strerror(dial->own_err),
			      files ? "; allow more (ulimit -n)" : "");
}

/* All candidates have failed: once more, later. */
static tutti_status end_round(struct tti_dial *dial, int64_t now)
{
	/* A version does not change. */
	if (dial->other_version && dial->config.kind == TTI_AUTH_ROOT)
		return describe(dial, TUTTI_EMISMATCH);
	if (is_strange(dial, now))
		return describe(dial, TUTTI_EPROTO);
	if (dial->strange && !dial->warned && dial->config.kind == TTI_AUTH_ROOT) {
		(void)describe(dial, TUTTI_EPROTO);
		tti_log(TTI_LOG_WARN, TTI_BOOT, "the root does not accept this rank yet: %s",
			tti_error_text());
		dial->warned = true;
	}
	if (is_gone(dial) || has_ended(dial, now) || now >= dial->config.give_up_ns)
		return describe(dial, TUTTI_EPEER);
	dial->next_ns = now + dial->backoff_ms * (TTI_NS_PER_MS / 1000) *
				      (500 + (int64_t)randombytes_uniform(500));
	if (dial->refused_ns && dial->next_ns > dial->refused_ns + REFUSED_MS * TTI_NS_PER_MS)
		dial->next_ns = dial->refused_ns + REFUSED_MS * TTI_NS_PER_MS;
	dial->backoff_ms =
		dial->backoff_ms * 2 < BACKOFF_MOST_MS ? dial->backoff_ms * 2 : BACKOFF_MOST_MS;
	for (size_t i = 0; i < dial->ntries; i++)
		dial->tries[i].state = IDLE;
	dial->nstarted = 0;
	return TUTTI_AGAIN;
}

/* When the next candidate is tried. */
static int64_t next_start(const struct tti_dial *dial, bool is_connected)
{
	return dial->next_ns + (is_connected ? (STAGGER_BUSY_MS - STAGGER_MS) * TTI_NS_PER_MS : 0);
}

/* Start what is due. */
static tutti_status start_tries(struct tti_dial *dial, int64_t now)
{
	for (;;) {
		size_t running = 0, connected = 0;

		for (size_t i = 0; i < dial->nstarted; i++) {
			running += dial->tries[i].state != FAILED;
			connected += dial->tries[i].state == PROVING;
		}
		if (dial->nstarted > 0 && dial->nstarted == dial->ntries)
			return running > 0 ? TUTTI_AGAIN : end_round(dial, now);
		if (now < next_start(dial, connected > 0) && (running > 0 || dial->nstarted == 0))
			return TUTTI_AGAIN;
		if (dial->nstarted == dial->ntries)
			return end_round(dial, now);
		start_try(dial, &dial->tries[dial->nstarted++]);
		dial->next_ns = now + STAGGER_MS * TTI_NS_PER_MS;
	}
}

static int64_t earliest(const struct tti_dial *dial)
{
	int64_t when = dial->config.deadline_ns;
	bool connected = false;

	for (size_t i = 0; i < dial->nstarted; i++) {
		const struct try *try = &dial->tries[i];

		if (try->state != FAILED && try->deadline_ns < when)
			when = try->deadline_ns;
		if (try->state == FAILED && i < dial->config.nproven && try->again_ns < when)
			when = try->again_ns;
		connected |= try->state == PROVING;
	}

	const int64_t next = next_start(dial, connected);

	return dial->nstarted < dial->ntries && next < when ? next : when;
}

tutti_status tti_dial_step(struct tti_dial *dial, struct tti_tunnel **out, int64_t *again_ns)
{
	const int64_t now = tti_now_ns();
	tutti_status status;

	for (size_t i = 0; i < dial->nstarted; i++) {
		struct try *try = &dial->tries[i];

		if (try->state == FAILED && i < dial->config.nproven && now >= try->again_ns)
			start_try(dial, try);
		if (try->state == FAILED || step_try(dial, try, now) != TUTTI_OK)
			continue;
		log_success(dial, try);
		*out = try->tunnel;
		try->tunnel = NULL;
		return TUTTI_OK;
	}
	if (now >= dial->config.deadline_ns)
		return describe(dial, TUTTI_ETIMEOUT);
	status = start_tries(dial, now);
	if (dial->own_err)
		return fail_own(dial);
	if (status != TUTTI_AGAIN)
		return status;
	if (is_gone(dial))
		return describe(dial, TUTTI_EPEER);
	*again_ns = earliest(dial);
	return TUTTI_AGAIN;
}
