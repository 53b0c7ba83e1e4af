/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/net/sock.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "boot/init/id.h"
#include "boot/init/root_group.h"
#include "boot/net/dial.h"
#include "boot/net/loop.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/log.h"
#include "util/params.h"
#include "util/strbuf.h"

/* With fewer ranks per root all may come at once. */
#define STAGGER_FROM 256
/* At the deadline the root knows who is missing, or why a rank gave up: wait a little for its word. The time
 * counts from when this rank sees that the deadline has passed: on a machine where it is late to see that,
 * the root's thread is late, too. */
#define GRACE_MS     2000
/* When a neighbour has ended: its root knows why, and so does this rank's. */
#define ENDED_MS     1000
/* For a rank that only declines. */
#define DECLINE_MS   500
/* How long rank 0 looks for its own root at an address that its host does not have: something may forward
 * that address to here. */
#define MIRROR_MS    3000

/* A root at which this rank checks in: its own one and, if it is the first rank of a group, the one before
 * as well. */
struct contact {
	bool wanted, done;
	bool by_hand;   /* served by the first rank of its group       */
	bool misplaced; /* ... which this is, at an address of no NIC here */
	bool is_unix;   /* of a process without a network              */
	struct tti_wire_checkin checkin;
	struct tti_dial *dial;
	struct tti_tunnel *tunnel;
	struct tti_framer framer;
};

struct joiner {
	struct tti_event_handler handler; /* for all descriptors: each step looks at all */
	struct tti_sock *sock;
	struct tti_loop loop;
	int64_t deadline_ns, again_ns;
	int64_t late_ns;   /* when the deadline was seen to be over, 0: not yet */
	int64_t ended_ns;  /* when the end of a neighbour counts, 0: none has ended */
	char refused[161]; /* how the next rank refused, "": it did not */
	struct contact own, border;
	struct tti_dial *next;
	uint8_t secrets[2][TTI_SECRET_BYTES];
};

static void again(struct joiner *joiner, int64_t when)
{
	if (when < joiner->again_ns)
		joiner->again_ns = when;
}

/* -- The roots ------------------------------------------------------------------- */

/* Whether this rank serves an id by hand, of which no address is of this host. */
static bool is_misplaced(const struct tti_id *id, const struct tti_wire_checkin *checkin)
{
	const struct tti_group group =
		tti_group_make(checkin->nranks, checkin->nroots, checkin->iroot);

	if (!(id->flags & TTI_ID_BY_HAND) || group.first != checkin->rank)
		return false;
	for (size_t i = 0; i < id->naddrs; i++)
		if (id->addrs[i].scope != 0 || tti_dial_is_ours(&id->addrs[i]))
			return false;
	return true;
}

static tutti_status start_contact(struct joiner *joiner, struct contact *contact,
				  const struct tti_boot_config *config, int iroot, bool border,
				  const struct tti_wire_card *own)
{
	uint8_t *secret = joiner->secrets[border];
	struct tti_id id;

	TTI_TRY(tti_id_decode(&config->ids[iroot], &id));
	memcpy(secret, id.secret, TTI_SECRET_BYTES);
	contact->wanted = true;
	contact->by_hand = id.flags & TTI_ID_BY_HAND;
	contact->is_unix = id.addrs[0].family == TTI_ADDR_UNIX;
	contact->checkin = (struct tti_wire_checkin){ .rank = config->rank,
						      .nranks = config->nranks,
						      .iroot = iroot,
						      .nroots = config->nids,
						      .border = border,
						      .card = *own };
	contact->misplaced = is_misplaced(&id, &contact->checkin);

	const struct tti_dial_config dial = {
		.addrs = id.addrs,
		.naddrs = id.naddrs,
		.kind = TTI_AUTH_ROOT,
		.secret = secret,
		.who = { config->rank, iroot, config->nranks, config->nids },
		.deadline_ns = joiner->deadline_ns,
		.give_up_ns = contact->misplaced ? tti_deadline(MIRROR_MS) : TTI_NEVER,
		.connect_ms = contact->misplaced ? MIRROR_MS : 0,
		.listens = !contact->by_hand || contact->misplaced,
	};

	explicit_bzero(id.secret, sizeof(id.secret));
	return tti_dial_start(&joiner->loop, &dial, &contact->dial);
}

static tutti_status fail_dial(struct joiner *joiner, struct contact *contact, tutti_status status)
{
	char why[201], whose[24], ifaces[256];
	const int first = tti_group_make(contact->checkin.nranks, contact->checkin.nroots,
					 contact->checkin.iroot)
				  .first;

	tti_copy_list(why, sizeof(why), tti_error_text());
	(void)snprintf(whose, sizeof(whose), "rank %d's", joiner->sock->base.rank);
	tti_iface_tell(whose, ifaces, sizeof(ifaces));
	if (status == TUTTI_EMISMATCH)
		return tti_sock_break(joiner->sock, status, -1,
				      "the root of this id is of another version of Tutti: %s",
				      why);
	if (status == TUTTI_EPROTO)
		return tti_sock_break(joiner->sock, TUTTI_EMISMATCH, -1,
				      "the root of this id holds another secret: pass the same id, "
				      "or TUTTI_COMM_ID and TUTTI_COMM_SECRET, to all ranks: %s",
				      why);
	if (status == TUTTI_ESYS)
		return tti_sock_break(joiner->sock, status, -1, "cannot connect to the root: %s",
				      why);
	if (contact->misplaced)
		return tti_sock_break(
			joiner->sock, TUTTI_EUSAGE, -1,
			"the ranks meet at rank %d, but the address given for that is "
			"none of its host's, and does not lead there: name an address "
			"of rank %d's host in TUTTI_COMM_ID (or MASTER_ADDR): %s%s",
			first, first, why, ifaces);
	if (status == TUTTI_EPEER && contact->is_unix)
		return tti_sock_break(joiner->sock, status, -1,
				      "the process that made this id had no usable network "
				      "address, so only ranks of its host reach it: bring an "
				      "interface up there; or that process has ended (%s)%s",
				      why, ifaces);
	if (status == TUTTI_EPEER && !contact->by_hand)
		return tti_sock_break(joiner->sock, status, -1,
				      "nobody listens at the addresses of this id any more: the "
				      "process that made it has ended (%s)%s",
				      why, ifaces);
	if (contact->by_hand && first != joiner->sock->base.rank)
		return tti_sock_break(joiner->sock, status, first,
				      "rank %d of %d, which serves this id, did not answer within "
				      "%lld ms: %s%s",
				      first, contact->checkin.nranks,
				      (long long)joiner->sock->timeout_ms, why, ifaces);
	return tti_sock_break(joiner->sock, status, -1,
			      "no root answered within %lld ms (is the process that made the id "
			      "still there?): %s%s",
			      (long long)joiner->sock->timeout_ms, why, ifaces);
}

static tutti_status check_in(struct joiner *joiner, struct contact *contact)
{
	int64_t when = TTI_NEVER;
	tutti_status status = tti_dial_step(contact->dial, &contact->tunnel, &when);

	if (status == TUTTI_AGAIN) {
		again(joiner, when);
		return TUTTI_OK;
	}
	if (status != TUTTI_OK)
		return fail_dial(joiner, contact, status);
	tti_dial_stop(contact->dial);
	contact->dial = NULL;
	TTI_TRY(tti_loop_add(&joiner->loop, contact->tunnel->fd, EPOLLIN, &joiner->handler));

	struct {
		struct tti_frame head;
		struct tti_wire_checkin checkin;
	} out = { { .type = TTI_FRAME_CHECKIN, .nbytes = sizeof(out.checkin) }, contact->checkin };

	out.checkin.left_ms = tti_left_ms(joiner->deadline_ns, INT32_MAX);
	status = tti_tunnel_send_all(contact->tunnel, &out, sizeof(out), joiner->deadline_ns,
				     joiner->sock->stop);
	/* A root that has closed may have said why before: hear_root() finds out. */
	if (status != TUTTI_OK && status != TUTTI_EPEER)
		return tti_sock_break(joiner->sock, status, -1, "cannot check in at the root: %s",
				      tti_error_text());
	return TUTTI_OK;
}

static tutti_status dial_next(struct joiner *joiner, const struct tti_wire_card *card)
{
	struct tti_sock *sock = joiner->sock;
	struct tti_addr addrs[TTI_IFACE_MOST];
	size_t n;
	const struct tti_dial_config dial = {
		.addrs = addrs,
		.kind = TTI_AUTH_RING,
		.secret = sock->base.secret,
		.who = { sock->base.rank, tti_sock_next(sock), sock->base.nranks, 0 },
		.deadline_ns = joiner->deadline_ns,
		.give_up_ns = tti_deadline(TTI_SOCK_RETRY_MS),
		.listens = true,
	};
	struct tti_dial_config full = dial;

	if (sock->base.nranks == 1 || joiner->next || sock->next_tunnel || *joiner->refused)
		return TUTTI_OK;
	if (card->addr_bytes > TTI_CARD_ADDRS)
		return tti_fail(TUTTI_EPROTO, "the root sent a malformed address");
	TTI_TRY(tti_addrs_unpack(card->addrs, card->addr_bytes, card->port, addrs, TTI_IFACE_MOST,
				 &n));
	full.naddrs = n;
	sock->cards[tti_sock_next(sock)] = *card;
	return tti_dial_start(&joiner->loop, &full, &joiner->next);
}

static tutti_status take_frame(struct joiner *joiner, struct contact *contact)
{
	const struct tti_framer *framer = &contact->framer;

	switch (framer->head.type) {
	case TTI_FRAME_NEXT:
		return dial_next(joiner, &framer->body.card);
	case TTI_FRAME_ALL:
		contact->done = true;
		return TUTTI_OK;
	case TTI_FRAME_FAILURE:
		return tti_sock_follow(joiner->sock, &framer->body.failure);
	default:
		return tti_sock_break(joiner->sock, TUTTI_EPROTO, -1,
				      "the root sent a frame of type %u", framer->head.type);
	}
}

static tutti_status root_is_gone(struct joiner *joiner, const struct contact *contact)
{
	const int first = tti_group_make(contact->checkin.nranks, contact->checkin.nroots,
					 contact->checkin.iroot)
				  .first;

	if (contact->by_hand)
		return tti_sock_break(joiner->sock, TUTTI_EPEER, first,
				      "rank %d, where the ranks meet, is gone (died?)", first);
	return tti_sock_break(joiner->sock, TUTTI_EPEER, -1,
			      "the root, where the ranks meet, is gone: the process that made the "
			      "id has ended");
}

static tutti_status hear_root(struct joiner *joiner, struct contact *contact)
{
	uint8_t data[TTI_TUNNEL_RECORD];
	const ssize_t n = tti_tunnel_recv(contact->tunnel, data, sizeof(data));
	char why[TTI_TUNNEL_WHY];

	if (n < 0 && errno == EAGAIN)
		return TUTTI_OK;
	if (n < 0 && contact->tunnel->failed)
		return tti_sock_break(joiner->sock, TUTTI_EPROTO, -1,
				      "init: the connection to the root %s",
				      tti_tunnel_why(contact->tunnel, why));
	if (n <= 0 && contact->done) {
		tti_tunnel_close(&contact->tunnel);
		return TUTTI_OK;
	}
	if (n <= 0)
		return root_is_gone(joiner, contact);
	for (size_t at = 0, used; at < (size_t)n; at += used) {
		const tutti_status status =
			tti_framer_feed(&contact->framer, data + at, (size_t)n - at, &used);

		if (status == TUTTI_AGAIN)
			break;
		if (status < 0)
			return tti_sock_break(joiner->sock, status, -1, "the root sent %s",
					      tti_error_text());
		TTI_TRY(take_frame(joiner, contact));
	}
	/* Nothing more comes to a border: close the connection. */
	if (contact->done && contact->checkin.border)
		tti_tunnel_close(&contact->tunnel);
	return TUTTI_OK;
}

static tutti_status step_contact(struct joiner *joiner, struct contact *contact)
{
	if (!contact->wanted)
		return TUTTI_OK;
	if (contact->dial)
		TTI_TRY(check_in(joiner, contact));
	return contact->tunnel ? hear_root(joiner, contact) : TUTTI_OK;
}

/* -- The ring -------------------------------------------------------------------- */

static tutti_status fail_next(struct tti_sock *sock, tutti_status status, const char *why)
{
	char name[TTI_BOOT_NAME], whose[24], ifaces[256];

	(void)snprintf(whose, sizeof(whose), "rank %d's", sock->base.rank);
	return tti_sock_break(sock, status, tti_sock_next(sock),
			      "%s came, but cannot be reached: %s%s",
			      tti_sock_name(sock, tti_sock_next(sock), name), why,
			      tti_iface_tell(whose, ifaces, sizeof(ifaces)));
}

static tutti_status step_next(struct joiner *joiner)
{
	struct tti_sock *sock = joiner->sock;
	int64_t when = TTI_NEVER;

	if (!joiner->next)
		return TUTTI_OK;

	const tutti_status status = tti_dial_step(joiner->next, &sock->next_tunnel, &when);

	if (status == TUTTI_AGAIN) {
		again(joiner, when);
		return TUTTI_OK;
	}
	if (status != TUTTI_OK) {
		tti_copy_list(joiner->refused, sizeof(joiner->refused), tti_error_text());
		/* It has ended; the root knows why, or hears of it just now. */
		if (status != TUTTI_EPEER || !tti_dial_is_refused(joiner->next) ||
		    !joiner->own.tunnel)
			return fail_next(sock, status, joiner->refused);
		if (!joiner->ended_ns)
			joiner->ended_ns = tti_deadline(ENDED_MS);
	}
	tti_dial_stop(joiner->next);
	joiner->next = NULL;
	if (status != TUTTI_OK)
		return TUTTI_OK;
	return tti_loop_add(&joiner->loop, sock->next_tunnel->fd, EPOLLIN | EPOLLRDHUP | EPOLLET,
			    &joiner->handler);
}

static tutti_status step_prev(struct joiner *joiner)
{
	struct tti_sock *sock = joiner->sock;
	eventfd_t count;

	if (sock->prev_tunnel)
		return TUTTI_OK;
	(void)eventfd_read(sock->inbox_fd, &count);
	pthread_mutex_lock(&sock->lock);
	sock->prev_tunnel = sock->inbox_prev;
	sock->inbox_prev = NULL;
	pthread_mutex_unlock(&sock->lock);
	if (!sock->prev_tunnel)
		return TUTTI_OK;
	return tti_loop_add(&joiner->loop, sock->prev_tunnel->fd, EPOLLIN | EPOLLRDHUP | EPOLLET,
			    &joiner->handler);
}

static bool has_ended(const struct tti_tunnel *tunnel)
{
	struct pollfd end = { .fd = tunnel ? tunnel->fd : -1, .events = POLLRDHUP };

	return poll(&end, 1, 0) > 0;
}

/* A neighbour that gives up may not have told this rank why. The root, which has told the neighbour the
 * reason or sees it leave, tells this rank as well. */
static tutti_status check_links(struct joiner *joiner)
{
	struct tti_sock *sock = joiner->sock;
	const int prev = tti_sock_prev(sock), next = tti_sock_next(sock);

	if (!joiner->ended_ns && (has_ended(sock->prev_tunnel) || has_ended(sock->next_tunnel)))
		joiner->ended_ns = tti_deadline(ENDED_MS);
	if (joiner->ended_ns && joiner->own.tunnel && tti_now_ns() < joiner->ended_ns) {
		again(joiner, joiner->ended_ns);
		return TUTTI_OK;
	}
	TTI_TRY(tti_sock_check_neighbour(sock, prev, sock->prev_tunnel, "init"));
	TTI_TRY(tti_sock_check_neighbour(sock, next, sock->next_tunnel, "init"));
	TTI_TRY(tti_sock_check_end(sock, prev, sock->prev_tunnel, "init"));
	if (*joiner->refused)
		return fail_next(sock, TUTTI_EPEER, joiner->refused);
	return tti_sock_check_end(sock, next, sock->next_tunnel, "init");
}

static bool joined(const struct joiner *joiner)
{
	const struct tti_sock *sock = joiner->sock;

	return joiner->own.done && (!joiner->border.wanted || joiner->border.done) &&
	       (sock->base.nranks == 1 || (sock->next_tunnel && sock->prev_tunnel));
}

static tutti_status fail_deadline(struct joiner *joiner)
{
	struct tti_sock *sock = joiner->sock;
	const long long ms = (long long)sock->timeout_ms;
	const int prev = tti_sock_prev(sock), next = tti_sock_next(sock);

	if (!sock->prev_tunnel && joiner->own.done)
		return tti_sock_break(sock, TUTTI_ETIMEOUT, prev,
				      "rank %d did not connect to rank %d within %lld ms", prev,
				      sock->base.rank, ms);
	if (!sock->next_tunnel)
		return tti_sock_break(sock, TUTTI_ETIMEOUT, next,
				      "the root did not say within %lld ms where rank %d is", ms,
				      next);
	return tti_sock_break(sock, TUTTI_ETIMEOUT, -1,
			      "not all ranks came within %lld ms, and the root did not say who",
			      ms);
}

/* When this rank waits no longer, or has to see that it is late. */
static int64_t end_of(const struct joiner *joiner)
{
	return joiner->late_ns && joiner->own.tunnel ? joiner->late_ns + GRACE_MS * TTI_NS_PER_MS
						     : joiner->deadline_ns;
}

static tutti_status step(struct joiner *joiner)
{
	struct tti_sock *sock = joiner->sock;
	/* Taken before the steps: one that fails at the same instant knows more of the reason. */
	const int64_t now = tti_now_ns();

	if (now >= joiner->deadline_ns && !joiner->late_ns)
		joiner->late_ns = now;
	joiner->again_ns = end_of(joiner);
	TTI_TRY(step_contact(joiner, &joiner->own));
	TTI_TRY(step_contact(joiner, &joiner->border));
	TTI_TRY(step_next(joiner));
	TTI_TRY(step_prev(joiner));
	TTI_TRY(check_links(joiner));
	if (joined(joiner))
		return TUTTI_OK;
	if (tti_boot_stopped(sock->stop))
		return tti_sock_break(sock, TUTTI_EABORTED, -1, "init was aborted");
	if (now >= end_of(joiner))
		return fail_deadline(joiner);
	tti_loop_wait(&joiner->loop,
		      tti_left_ms(joiner->again_ns, sock->stop ? TTI_BOOT_NAP_MS : 60000));
	return TUTTI_AGAIN;
}

/* A flood of connections at one instant would overflow the root's backlog. */
static tutti_status stagger(struct tti_sock *sock, const struct tti_group *group)
{
	const int64_t per_s = tti_params()->boot_stagger;
	int64_t until;

	if (per_s == 0 || group->size < STAGGER_FROM)
		return TUTTI_OK;
	until = tti_now_ns() + (sock->base.rank - group->first) * INT64_C(1000000000) / per_s;
	while (tti_now_ns() < until) {
		const int64_t left = until - tti_now_ns();
		const int64_t nap = TTI_BOOT_NAP_MS * TTI_NS_PER_MS;
		const struct timespec time = { .tv_nsec = left < 0 ? 0 : left < nap ? left : nap };

		if (tti_boot_stopped(sock->stop))
			return tti_sock_break(sock, TUTTI_EABORTED, -1, "init was aborted");
		(void)nanosleep(&time, NULL);
	}
	return TUTTI_OK;
}

static tutti_status run(struct joiner *joiner, const struct tti_boot_config *config,
			const struct tti_wire_card *own)
{
	const int iroot = tti_group_of(config->nranks, config->nids, config->rank);
	const struct tti_group group = tti_group_make(config->nranks, config->nids, iroot);
	tutti_status status = TUTTI_AGAIN;

	TTI_TRY(stagger(joiner->sock, &group));
	TTI_TRY(tti_loop_add(&joiner->loop, joiner->sock->inbox_fd, EPOLLIN, &joiner->handler));
	TTI_TRY(start_contact(joiner, &joiner->own, config, iroot, false, own));
	if (config->nids > 1 && group.first == config->rank)
		TTI_TRY(start_contact(joiner, &joiner->border, config,
				      (iroot + config->nids - 1) % config->nids, true, own));
	while (status == TUTTI_AGAIN)
		status = step(joiner);
	return status;
}

tutti_status tti_sock_join(struct tti_sock *sock, const struct tti_boot_config *config,
			   const struct tti_wire_card *own, int64_t deadline_ns)
{
	struct joiner joiner = { .sock = sock, .deadline_ns = deadline_ns };
	const int64_t start_ns = tti_now_ns();
	tutti_status status = tti_loop_init(&joiner.loop);

	if (status == TUTTI_OK)
		status = run(&joiner, config, own);
	tti_dial_stop(joiner.own.dial);
	tti_dial_stop(joiner.border.dial);
	tti_dial_stop(joiner.next);
	sock->root_tunnel = joiner.own.tunnel;
	tti_tunnel_close(&joiner.border.tunnel);
	tti_loop_release(&joiner.loop);
	explicit_bzero(joiner.secrets, sizeof(joiner.secrets));
	if (status == TUTTI_OK)
		tti_log(TTI_LOG_INFO, TTI_BOOT, "rank %d of %d: ring connected within %lld ms",
			config->rank, config->nranks,
			(long long)((tti_now_ns() - start_ns) / TTI_NS_PER_MS));
	return status;
}

void tti_sock_decline(const struct tti_boot_config *config, const struct tti_failure *failure)
{
	const struct tti_sock sock = { .told = *failure };
	struct joiner joiner = { .deadline_ns = tti_deadline(DECLINE_MS) };
	const int iroot = tti_group_of(config->nranks, config->nids, config->rank);
	const struct tti_wire_card nowhere = { .port = 0 };
	tutti_status status = tti_loop_init(&joiner.loop);

	if (status == TUTTI_OK)
		status = start_contact(&joiner, &joiner.own, config, iroot, false, &nowhere);
	while (status == TUTTI_OK && !joiner.own.tunnel) {
		status = tti_dial_step(joiner.own.dial, &joiner.own.tunnel, &joiner.again_ns);
		if (status == TUTTI_AGAIN) {
			tti_loop_wait(&joiner.loop, tti_left_ms(joiner.again_ns, DECLINE_MS));
			status = TUTTI_OK;
		}
	}
	tti_sock_tell(&sock, joiner.own.tunnel);
	tti_dial_stop(joiner.own.dial);
	tti_tunnel_close(&joiner.own.tunnel);
	tti_loop_release(&joiner.loop);
	explicit_bzero(joiner.secrets, sizeof(joiner.secrets));
}
