/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ranks share memory, found out by trying.
 *
 * Every rank listens on a socket of a random name in the abstract name space from open() to the end
 * of its join(). So during join() a connect() says at once, without help, whether two ranks reach
 * each other (same kernel, same network namespace), and the credentials of the socket say whether
 * they are the same user. Both are equivalence relations, so
 *   - a rank that reaches none of its lower candidates leads a group;
 *   - its members are exactly the higher candidates that it reaches;
 *   - the lowest candidate that a member reaches is its leader.
 * No rank waits for one that will not come.
 *
 * The leader makes the segment and serves its members one after the other, over a new connection to
 * the socket of each:
 *
 *     leader                                        member
 *     handshake of boot/net/auth.h: both prove the secret
 *     offer + memfd                            ->   maps it
 *                          tries to copy from others (shm_trial.h)
 *                          writes probe into its doorbell
 *                                              <-   1 byte
 *     [1 byte                                  ->   both measure: the first member]
 *     checks probe, writes answer
 *     1 byte                                   ->   checks answer
 *
 * A member keeps a connection of its own to the socket of the leader, which never accepts it: it
 * breaks when the leader gives up. After join() peers pass their heaps to the socket
 * (shm_views.c). */
#include "transport/shm/shm.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "boot/net/auth.h"
#include "reduce/reduce.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/fd_pass.h"
#include "util/fork.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/secret.h"

#define PENDING  8  /* connections a member listens to at a time */
#define LOOK_MS  50 /* how often *stop is looked at */
#define RETRY_NS (1 * TTI_NS_PER_MS)

/* What a leader says of itself in the handshake, and what it offers then. */
struct claim {
	uint32_t leader, member;
};

struct offer {
	uint64_t nonce, total_bytes;
};

static tutti_status wait_fds(struct pollfd *fds, nfds_t n, int64_t deadline_ns,
			     const _Atomic int *stop)
{
	for (;;) {
		const int left = tti_left_ms(deadline_ns, LOOK_MS);
		const int got = poll(fds, n, left);

		if (got > 0)
			return TUTTI_OK;
		if (got < 0 && errno != EINTR)
			return tti_fail(TUTTI_ESYS, "poll: %m");
		if (stop && *stop)
			return tti_fail_quiet(TUTTI_EABORTED, "aborted");
		if (!left)
			return tti_fail_quiet(TUTTI_ETIMEOUT, "timed out");
	}
}

/* tti_shm_reach(), but patient with a socket that is overrun. */
static tutti_status reach_patiently(const struct tti_shm_port *port,
				    const struct tti_shm_card *card, int64_t deadline_ns, int *fd)
{
	for (;;) {
		const struct timespec nap = { .tv_nsec = RETRY_NS };
		const tutti_status st = tti_shm_reach(card->name, fd);

		if (st != TUTTI_AGAIN)
			return st;
		if (port->config.stop && *port->config.stop)
			return tti_fail_quiet(TUTTI_EABORTED, "aborted");
		if (tti_now_ns() >= deadline_ns)
			return tti_fail_quiet(TUTTI_ETIMEOUT, "timed out");
		nanosleep(&nap, NULL);
	}
}

/* Going on with this peer failed. When we are told to stop the peer is, too, and we may see it go
 * first. */
static tutti_status fail_with(struct tti_shm_port *port, tutti_status status, int peer,
			      const char *what)
{
	if (status == TUTTI_EPEER && port->config.stop && *port->config.stop)
		status = tti_fail_quiet(TUTTI_EABORTED, "aborted");
	port->base.failed_peer = peer;
	return tti_shm_fail(port, status, peer, what);
}

/* The leader's side with one member. Quiet errors. */
static tutti_status serve(struct tti_shm_port *port, int index, int fd, int64_t deadline_ns)
{
	const _Atomic int *const stop = port->config.stop;
	const struct claim claim = { .leader = (uint32_t)port->base.rank,
				     .member = (uint32_t)port->candidate[index] };
	struct tti_shm_doorbell *const doorbell = tti_shm_seg_doorbell(&port->seg, index);
	const uint8_t measures = 1;
	struct offer offer = { .total_bytes = port->seg.layout.total_bytes };
	struct tti_auth auth;
	tutti_status st;
	uint8_t byte = 0;

	if (getrandom(&offer.nonce, sizeof(offer.nonce), 0) != (ssize_t)sizeof(offer.nonce))
		return tti_fail_quiet(TUTTI_ESYS, "getrandom: %m");
	tti_auth_init(&auth, true, TTI_AUTH_SHM, port->config.secret, &claim, sizeof(claim));
	st = tti_auth_run(&auth, fd, deadline_ns, stop);
	tti_auth_forget(&auth);
	TTI_TRY(st);
	TTI_TRY(tti_fd_pass(fd, &offer, sizeof(offer), port->seg.fd));
	TTI_TRY(tti_fd_recv_all(fd, &byte, 1, deadline_ns, stop));
	if (atomic_load(&doorbell->probe) != tti_hash_mix(offer.nonce))
		return tti_fail_quiet(TUTTI_EPROTO,
				      "its writes to the shared memory do not arrive here");
	if (tti_shm_trial_measures(port, index)) {
		TTI_TRY(tti_fd_send_all(fd, &measures, 1, deadline_ns, stop));
		tti_shm_measure(port, index, true);
	}
	atomic_store(&doorbell->answer, tti_hash_mix(offer.nonce + 1));
	byte = 0;
	return tti_fd_send_all(fd, &byte, 1, deadline_ns, stop);
}

/* The member's side, after the handshake. Quiet errors. */
static tutti_status enter(struct tti_shm_port *port, int leader, int fd, int64_t deadline_ns)
{
	const _Atomic int *const stop = port->config.stop;
	struct pollfd offered = { .fd = fd, .events = POLLIN };
	struct tti_shm_doorbell *doorbell;
	struct offer offer;
	uint8_t byte = 0;
	int memfd;

	TTI_TRY(wait_fds(&offered, 1, deadline_ns, stop));
	TTI_TRY(tti_fd_take(fd, &offer, sizeof(offer), &memfd));
	TTI_TRY(tti_shm_seg_adopt(&port->seg, memfd));
	doorbell = tti_shm_seg_doorbell(&port->seg, port->self);
	tti_shm_trial_run(port);
	atomic_store(&doorbell->probe, tti_hash_mix(offer.nonce));
	TTI_TRY(tti_fd_send_all(fd, &byte, 1, deadline_ns, stop));
	TTI_TRY(tti_fd_recv_all(fd, &byte, 1, deadline_ns, stop));
	if (byte) {
		tti_shm_measure(port, tti_shm_find_candidate(port, leader), false);
		TTI_TRY(tti_fd_recv_all(fd, &byte, 1, deadline_ns, stop));
	}
	if (atomic_load(&doorbell->answer) != tti_hash_mix(offer.nonce + 1))
		return tti_fail_quiet(TUTTI_EPROTO,
				      "its answer does not arrive through the shared memory");
	return TUTTI_OK;
}

/* Serve a member over a connection that exists for that only, so that it never waits among those of
 * strangers. */
static tutti_status serve_at(struct tti_shm_port *port, int index, const struct tti_card *cards,
			     int64_t deadline_ns)
{
	const struct tti_shm_card card = tti_shm_card_get(cards, port->candidate[index]);
	tutti_status st;
	int fd;

	TTI_TRY(reach_patiently(port, &card, deadline_ns, &fd));
	if (fd < 0)
		return tti_fail_quiet(TUTTI_EPEER, "it is gone");
	st = serve(port, index, fd, deadline_ns);
	tti_fd_close(&fd);
	return st;
}

/* Find the higher candidates that can be reached: into is_member[n]. */
static tutti_status find_members(struct tti_shm_port *port, const struct tti_card *cards,
				 bool *is_member, int *nmembers)
{
	*nmembers = 0;
	for (int i = port->self + 1; i < port->n; i++) {
		const struct tti_shm_card card = tti_shm_card_get(cards, port->candidate[i]);
		int fd;
		const tutti_status st = tti_shm_reach(card.name, &fd);

		is_member[i] = st == TUTTI_AGAIN || fd >= 0;
		*nmembers += is_member[i];
		tti_fd_close(&fd);
		if (st < 0)
			return tti_shm_fail(port, st, port->candidate[i], "looking for");
	}
	return TUTTI_OK;
}

/* Lead those of the higher candidates that can be reached. */
static tutti_status lead(struct tti_shm_port *port, const struct tti_card *cards,
			 int64_t deadline_ns, int *nmembers)
{
	bool *const is_member = tti_calloc((size_t)port->n, sizeof(*is_member));
	tutti_status st;

	if (!is_member)
		return tti_fail(TUTTI_ENOMEM, "members of a group of %d: out of memory", port->n);
	st = find_members(port, cards, is_member, nmembers);
	if (st == TUTTI_OK && *nmembers) {
		st = tti_shm_seg_create(&port->seg);
		if (st != TUTTI_OK)
			st = tti_shm_fail(port, st, -1, "leading");
	}
	if (st == TUTTI_OK && *nmembers) {
		tti_shm_trial_begin(port, is_member);
		tti_shm_trial_run(port);
	}
	for (int i = port->self + 1; i < port->n && st == TUTTI_OK; i++) {
		if (!is_member[i])
			continue;
		st = serve_at(port, i, cards, deadline_ns);
		if (st != TUTTI_OK)
			st = fail_with(port, st, port->candidate[i], "leading");
	}
	tti_free(is_member);
	if (st == TUTTI_OK && *nmembers)
		tti_shm_trial_decide(port);
	return st;
}

struct pending {
	int fd;
	struct tti_auth auth;
};

/* Accept a connection of the same user; the oldest pending one makes room. */
static tutti_status let_in(struct tti_shm_port *port, struct pending *pending, int *n)
{
	int fd = tti_fork_accept(port->listener, NULL, NULL);

	if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return TUTTI_OK;
	if (fd < 0)
		return tti_fail_quiet(TUTTI_ESYS, "accept: %m (see ulimit -n)");
	if (!tti_fd_is_same_user(fd)) {
		tti_log(TTI_LOG_INFO, TTI_SHM, "dropped a connection of another user");
		tti_fd_close(&fd);
		return TUTTI_OK;
	}
	if (*n == PENDING) {
		tti_fd_close(&pending[0].fd);
		memmove(pending, pending + 1, (PENDING - 1) * sizeof(*pending));
		--*n;
	}
	pending[*n].fd = fd;
	tti_auth_init(&pending[*n].auth, false, TTI_AUTH_SHM, port->config.secret, NULL,
		      sizeof(struct claim));
	++*n;
	return TUTTI_OK;
}

/* Go on with a pending connection; whether it is the leader, and proven. */
static bool hear(const struct tti_shm_port *port, int leader, struct pending *pending)
{
	const tutti_status st = tti_auth_step(&pending->auth, pending->fd);
	struct claim claim;

	if (st == TUTTI_AGAIN)
		return false;
	memcpy(&claim, pending->auth.payload, sizeof(claim));
	if (st == TUTTI_OK && claim.leader == (uint32_t)leader &&
	    claim.member == (uint32_t)port->base.rank)
		return true;
	tti_log(TTI_LOG_INFO, TTI_SHM, "dropped a connection that is not rank %d's: %s", leader,
		st == TUTTI_OK ? "it names other ranks" : tti_error_text());
	tti_fd_close(&pending->fd);
	return false;
}

/* Wait for the leader's connection. `line` is ours to the leader's socket. */
static tutti_status await(struct tti_shm_port *port, int leader, int line, int64_t deadline_ns,
			  struct pending *pending, int *out)
{
	int n = 0;
	tutti_status st = TUTTI_OK;

	*out = -1;
	while (st == TUTTI_OK && *out < 0) {
		struct pollfd fds[2 + PENDING] = { { .fd = line },
						   { .fd = port->listener, .events = POLLIN } };
		const int known = n;
		int kept = 0;

		for (int i = 0; i < n; i++)
			fds[2 + i] = (struct pollfd){ .fd = pending[i].fd, .events = POLLIN };
		st = wait_fds(fds, (nfds_t)(2 + n), deadline_ns, port->config.stop);
		for (int i = 0; i < known && st == TUTTI_OK && *out < 0; i++)
			if (fds[2 + i].revents && hear(port, leader, &pending[i])) {
				*out = pending[i].fd;
				pending[i].fd = -1;
			}
		for (int i = 0; i < n; i++)
			if (pending[i].fd >= 0)
				pending[kept++] = pending[i];
		n = kept;
		if (st == TUTTI_OK && *out < 0 && fds[1].revents)
			st = let_in(port, pending, &n);
		else if (st == TUTTI_OK && *out < 0 && fds[0].revents)
			st = tti_fail_quiet(TUTTI_EPEER, "it gave up or died");
	}
	for (int i = 0; i < n; i++)
		tti_fd_close(&pending[i].fd);
	return st;
}

static tutti_status follow(struct tti_shm_port *port, int leader, int line, int64_t deadline_ns)
{
	struct pending *const pending = tti_secret_zalloc(PENDING * sizeof(*pending));
	tutti_status st;
	int fd = -1;

	if (!pending)
		return tti_fail(TUTTI_ENOMEM, "connections of rank %d: out of memory",
				port->base.rank);
	st = await(port, leader, line, deadline_ns, pending, &fd);
	if (st == TUTTI_OK)
		st = enter(port, leader, fd, deadline_ns);
	tti_fd_close(&fd);
	tti_secret_free(pending);
	if (st == TUTTI_OK)
		return TUTTI_OK;
	return fail_with(port, st, leader, "following");
}

/* List the ranks of this host by their cards. The smallest slots of all are taken. */
static tutti_status find_candidates(struct tti_shm_port *port, const struct tti_card *cards)
{
	const struct tti_shm_card own = tti_shm_card_get(cards, port->base.rank);
	size_t slot_bytes = port->config.slot_bytes;
	uint64_t heap_bytes = own.heap_bytes;
	uint32_t slots = (uint32_t)port->config.slots, cores = own.cores;

	port->candidate = tti_calloc((size_t)port->base.nranks, sizeof(*port->candidate));
	port->process = tti_calloc((size_t)port->base.nranks, sizeof(*port->process));
	if (!port->candidate || !port->process)
		return tti_fail(TUTTI_ENOMEM, "list of %d ranks: out of memory", port->base.nranks);
	port->one_process = true;
	for (int rank = 0; rank < port->base.nranks; rank++) {
		const struct tti_shm_card card = tti_shm_card_get(cards, rank);

		if (card.magic != TTI_SHM_CARD_MAGIC || card.version != TTI_SHM_CARD_VERSION ||
		    card.boot_hash != own.boot_hash || card.host_hash != own.host_hash)
			continue;
		if (!card.slots || card.slots > TTI_SHM_SLOTS || !card.slot_bytes ||
		    card.slot_bytes > TTI_SHM_LONGEST)
			return tti_fail(TUTTI_EPROTO, "rank %d's card for shared memory is broken",
					rank);
		if (rank == port->base.rank)
			port->self = port->n;
		port->process[port->n] = (struct tti_shm_process){ .pid = card.pid,
								   .pid_ns = card.pid_ns,
								   .number = card.process,
								   .number_at = card.process_at,
								   .key = card.heap_key };
		memcpy(port->process[port->n].name, card.name, sizeof(card.name));
		port->candidate[port->n++] = rank;
		slot_bytes = card.slot_bytes < slot_bytes ? card.slot_bytes : slot_bytes;
		slots = card.slots < slots ? card.slots : slots;
		cores = card.cores < cores ? card.cores : cores;
		heap_bytes = card.heap_bytes < heap_bytes ? card.heap_bytes : heap_bytes;
		port->one_process &= card.process == own.process && card.pid == own.pid;
	}
	port->base.slot_bytes = slot_bytes;
	port->cores = (int)cores;
	/* Known to gain where ranks share cores only. */
	port->base.fans_short = port->n > 2 && cores < (uint32_t)port->n;
	port->has_cores = cores >= (uint32_t)port->n;
	port->demotes = port->has_cores && tti_copies_for_reader();
	if (tti_shm_layout_init(&port->seg.layout, port->n, slot_bytes, (int)slots) != TUTTI_OK)
		return tti_shm_fail(port, TUTTI_EINVAL, -1, "joining");
	port->reach_bytes = port->one_process ? 0 : tti_shm_reach_bytes(heap_bytes, port->n);
	return TUTTI_OK;
}

/* Find the lowest candidate that can be reached, and connect to it (-1: it is overrun); our own
 * place: there is none below us. */
static tutti_status find_leader(const struct tti_shm_port *port, const struct tti_card *cards,
				int *index, int *fd)
{
	*fd = -1;
	for (*index = 0; *index < port->self; ++*index) {
		const int rank = port->candidate[*index];
		const struct tti_shm_card card = tti_shm_card_get(cards, rank);
		const tutti_status st = tti_shm_reach(card.name, fd);

		if (st == TUTTI_AGAIN || *fd >= 0)
			return TUTTI_OK;
		if (st != TUTTI_OK)
			return tti_shm_fail(port, st, rank, "looking for");
		tti_log(TTI_LOG_INFO, TTI_SHM,
			"rank %d is on this host, but not to be reached: user %u, process %u, "
			"network namespace %llu",
			rank, card.uid, card.pid, (unsigned long long)card.netns);
	}
	return TUTTI_OK;
}

tutti_status tti_shm_join(struct tti_port *base, const struct tti_card *cards, uint64_t *domain)
{
	struct tti_shm_port *const port = (struct tti_shm_port *)base;
	const int64_t deadline_ns = tti_deadline(port->config.timeout_ms);
	int leader = 0, line = -1, nmembers = 1;
	tutti_status st;

	*domain = 0;
	st = find_candidates(port, cards);
	if (st == TUTTI_OK)
		st = find_leader(port, cards, &leader, &line);
	if (st == TUTTI_OK && leader < port->self)
		st = follow(port, port->candidate[leader], line, deadline_ns);
	else if (st == TUTTI_OK)
		st = lead(port, cards, deadline_ns, &nmembers);
	tti_fd_close(&line);
	if (st != TUTTI_OK || !nmembers || !port->reach_bytes)
		tti_fd_close(&port->listener);
	if (st != TUTTI_OK || !nmembers)
		return st;
	tti_shm_views_begin(port);
	*domain = 1 + (uint64_t)port->candidate[leader];
	return TUTTI_OK;
}
