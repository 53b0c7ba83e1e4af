/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/window/window_net.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "boot/watch/watch.h"
#include "core/comm_error.h"
#include "core/init/setup.h"
#include "core/stall.h"
#include "core/window/window_signals.h"
#include "core/window/window_wait.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/mem.h"
#include "util/thread.h"

/* Windows by messages, over a TCP port of their own: links of collectives are FIFOs whose
 * messages belong to calls of all ranks.
 *
 * Calls use the port under a lock, and so does a thread that serves the other ranks while this
 * one makes no call. A message is handled at once and never kept: its reply (the bytes of a get,
 * the answer to a flush) is noted as numbers in the peer's struct and sent when there is room.
 * So receiving never waits for sending, and ranks that fill each other's links cannot block each
 * other.
 *
 *     PUT    offset | bytes          SIGNAL number
 *     GET    offset, nbytes    ->    DATA offset | bytes, ...     one get a peer at a time
 *     FLUSH  number            ->    FLUSHED number               all before it are there */

#define TAG     UINT64_C(0x776f646e69777474)
/* How long the thread sleeps if messages wait for room; if not. */
#define BUSY_MS 1
#define IDLE_MS 100

/* -- Under the lock ---------------------------------------------------------- */

bool tti_net_send(const struct tti_net_peer *peer, const struct tti_net_head *head,
		  const void *data, size_t nbytes)
{
	uint8_t *room = peer->link->ops->reserve(peer->link, sizeof(*head) + nbytes, 0);

	if (!room)
		return false;
	memcpy(room, head, sizeof(*head));
	if (nbytes)
		memcpy(room + sizeof(*head), data, nbytes);
	peer->link->ops->commit(peer->link, sizeof(*head) + nbytes, TAG);
	return true;
}

size_t tti_net_most(const struct tti_window_net *net)
{
	return net->port->slot_bytes - sizeof(struct tti_net_head);
}

/* The device does not copy what a peer asks for: it waits, also if this rank asks for nothing more. */
static void lose(struct tti_window_net *net, tutti_status status, int rank)
{
	net->has_lost = true;
	tti_port_fail(net->port, status, rank);
}

/* Bytes of the window as the host reaches them; NULL: the port has failed. */
static const uint8_t *look_at(struct tti_window_net *net, int rank, uint64_t offset, size_t nbytes)
{
	const uint8_t *from = net->window->base + offset;
	tutti_status st;

	if (!net->room)
		return from;
	st = tti_window_copy(net->window, net->room, from, nbytes);
	if (st == TUTTI_OK)
		return net->room;
	lose(net, st, rank);
	return NULL;
}

static void store(struct tti_window_net *net, int rank, uint64_t offset, const uint8_t *data,
		  size_t nbytes)
{
	tutti_status st = TUTTI_OK;

	if (net->room)
		st = tti_window_copy(net->window, net->window->base + offset, data, nbytes);
	else
		memcpy(net->window->base + offset, data, nbytes);
	if (st != TUTTI_OK)
		lose(net, st, rank);
}

/* Send replies, as far as there is room. */
static bool pay(struct tti_window_net *net, int rank)
{
	struct tti_net_peer *peer = &net->peers[rank];
	bool moved = false;

	while (peer->reply_left) {
		const uint64_t most = tti_net_most(net);
		const struct tti_net_head head = {
			.kind = TTI_NET_DATA,
			.nbytes = peer->reply_left < most ? peer->reply_left : most,
			.number = peer->reply_number,
		};

		const uint8_t *data = look_at(net, rank, peer->reply_at, (size_t)head.nbytes);

		if (!data || !tti_net_send(peer, &head, data, (size_t)head.nbytes))
			return moved;
		peer->reply_at += head.nbytes;
		peer->reply_left -= head.nbytes;
		moved = true;
	}
	if (peer->flushed_told < peer->flushed_owed) {
		const struct tti_net_head head = { .kind = TTI_NET_FLUSHED,
						   .number = peer->flushed_owed };

		if (!tti_net_send(peer, &head, NULL, 0))
			return moved;
		peer->flushed_told = peer->flushed_owed;
		moved = true;
	}
	return moved;
}

static bool is_inside(const struct tti_window_net *net, const struct tti_net_head *head)
{
	return head->offset <= net->window->nbytes &&
	       head->nbytes <= net->window->nbytes - head->offset;
}

/* False: it makes no sense. */
static bool take(struct tti_window_net *net, int rank, const struct tti_net_head *head,
		 const uint8_t *data, size_t nbytes)
{
	struct tti_net_peer *peer = &net->peers[rank];

	switch ((enum tti_net_kind)head->kind) {
	case TTI_NET_PUT:
		if (!is_inside(net, head) || head->nbytes != nbytes)
			return false;
		store(net, rank, head->offset, data, nbytes);
		return true;
	case TTI_NET_GET:
		if (!is_inside(net, head) || peer->reply_left)
			return false;
		peer->reply_at = head->offset;
		peer->reply_left = head->nbytes;
		peer->reply_number = head->number;
		return true;
	case TTI_NET_DATA:
		if (head->number != peer->get_number || !peer->into)
			return true; /* of a get that was given up */
		if (head->nbytes != nbytes || nbytes > peer->get_left)
			return false;
		memcpy(peer->into, data, nbytes);
		peer->into += nbytes;
		peer->get_left -= nbytes;
		return true;
	case TTI_NET_SIGNAL:
		return head->number < (uint64_t)net->window->nsignals &&
		       tti_signals_count(
			       net->window->signals,
			       tti_signals_at(net->window->nsignals, rank, (int)head->number),
			       net->window->peers[net->window->comm->rank].key);
	case TTI_NET_FLUSH: /* of several threads, in any order */
		if (head->number > peer->flushed_owed)
			peer->flushed_owed = head->number;
		return true;
	case TTI_NET_FLUSHED:
		peer->flushed = head->number;
		return true;
	}
	return false;
}

static bool receive(struct tti_window_net *net, int rank)
{
	struct tti_link *link = net->peers[rank].link;
	const uint8_t *data;
	struct tti_net_head head;
	bool moved = false;
	uint64_t tag;
	size_t nbytes;

	while ((data = link->ops->peek(link, &nbytes, &tag))) {
		bool good = tag == TAG && nbytes >= sizeof(head);

		if (good) {
			memcpy(&head, data, sizeof(head));
			good = take(net, rank, &head, data + sizeof(head), nbytes - sizeof(head));
		}
		if (!good) {
			tti_port_fail(net->port,
				      tti_fail(TUTTI_EPROTO,
					       "rank %d sent to a window of rank %d what cannot be",
					       rank, net->port->rank),
				      rank);
			return true;
		}
		link->ops->release(link);
		moved = true;
		/* A signal behind bytes that could not be stored is not counted. */
		if (net->port->failure != TUTTI_OK)
			return true;
	}
	return moved;
}

bool tti_net_pump(struct tti_window_net *net)
{
	bool moved = false;

	net->port->transport->progress(net->port);
	for (int rank = 0; rank < net->port->nranks && net->port->failure == TUTTI_OK; rank++)
		if (net->peers[rank].link) {
			moved |= receive(net, rank);
			moved |= pay(net, rank);
		}
	return moved;
}

bool tti_net_is_busy(const struct tti_window_net *net)
{
	for (int rank = 0; rank < net->port->nranks; rank++)
		if (net->peers[rank].reply_left ||
		    net->peers[rank].flushed_told < net->peers[rank].flushed_owed)
			return true;
	return net->port->unsent > 0;
}

/* -- The thread ---------------------------------------------------------------- */

void tti_net_report(struct tti_window_net *net)
{
	struct tti_comm *comm = net->window->comm;
	char text[TTI_FAILURE_TEXT];
	tutti_status status;
	int peer;

	pthread_mutex_lock(&net->lock);
	status = net->leaving && !net->has_lost ? TUTTI_OK : net->port->failure;
	peer = net->port->failed_peer;
	tti_stall_name_failure(comm, peer, net->port->failure_text, text, sizeof(text));
	pthread_mutex_unlock(&net->lock);
	/* A peer may have closed a connection because another rank died. */
	if (status != TUTTI_OK && !tti_stall_await_news(comm, NULL))
		tti_comm_notify_failure(comm, status <= TUTTI_STATUS_LOST ? status : TUTTI_EPEER,
					peer, text);
}

static void *serve(void *self)
{
	struct tti_window_net *net = self;
	const int port_fd = net->port->transport->sleep->descriptor(net->port);
	bool closing = false, failed = false;

	while (!closing && !failed) {
		struct pollfd fds[2] = { { .fd = port_fd, .events = POLLIN },
					 { .fd = net->wake_fd, .events = POLLIN } };
		bool busy;
		uint64_t woken;

		pthread_mutex_lock(&net->lock);
		net->port->transport->sleep->wait(net->port, 0);
		while (tti_net_pump(net))
			;
		busy = tti_net_is_busy(net);
		closing = net->closing;
		failed = net->port->failure != TUTTI_OK;
		pthread_mutex_unlock(&net->lock);
		if (closing || failed || poll(fds, 2, busy ? BUSY_MS : IDLE_MS) <= 0)
			continue;
		if (fds[1].revents && read(net->wake_fd, &woken, sizeof(woken)) < 0)
			failed = errno != EAGAIN; /* never: it is ours */
	}
	if (failed)
		tti_net_report(net);
	return NULL;
}

/* -- Opening and closing ------------------------------------------------------- */

static tutti_status join(struct tti_window_net *net)
{
	struct tutti_window *window = net->window;
	const size_t n = (size_t)window->comm->n;
	struct tti_port_config config;
	struct tti_card *cards = tti_calloc(n, sizeof(*cards));
	uint64_t domain;
	tutti_status st;

	if (!cards)
		return tti_fail(TUTTI_ENOMEM, "window of %zu ranks: out of memory", n);
	config = tti_port_config_of(window->comm, &tti_transport_tcp);
	st = tti_transport_tcp.open(&config, &net->port, &cards[config.rank]);
	if (st == TUTTI_OK)
		st = tti_window_tell_all(window, cards, sizeof(*cards));
	if (st == TUTTI_OK)
		st = tti_transport_tcp.join(net->port, cards, &domain);
	tti_free(cards);
	return st;
}

/* Both ends ask for a link, even if one of them reaches the other in place. */
static tutti_status connect_all(struct tti_window_net *net)
{
	struct tti_window_wait wait = { 0 };
	tutti_status st = TUTTI_AGAIN;

	while (st == TUTTI_AGAIN) {
		int missing = -1;

		net->port->transport->progress(net->port);
		for (int rank = 0; rank < net->port->nranks && st >= 0; rank++) {
			if (rank == net->port->rank || net->peers[rank].link)
				continue;
			st = net->port->transport->connect(net->port, rank, &net->peers[rank].link);
			if (st == TUTTI_AGAIN)
				missing = rank;
		}
		if (st < 0)
			return st;
		if (net->port->failure != TUTTI_OK)
			return net->port->failure;
		st = missing < 0 ? TUTTI_OK : TUTTI_AGAIN;
		if (st == TUTTI_AGAIN) {
			const tutti_status waited = tti_window_backoff(net->window, &wait, missing,
								       "a link for a window");

			if (waited != TUTTI_OK)
				return waited;
			net->port->transport->sleep->wait(net->port, wait.nap_ns);
		}
	}
	return st;
}

tutti_status tti_window_net_open(struct tutti_window *window)
{
	struct tti_window_net *net = tti_zalloc(sizeof(*net));
	tutti_status st;

	if (!net)
		return tti_fail(TUTTI_ENOMEM, "window: out of memory");
	window->net = net;
	net->window = window;
	pthread_mutex_init(&net->lock, NULL);
	net->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	net->peers = tti_calloc((size_t)window->comm->n, sizeof(*net->peers));
	if (net->wake_fd < 0)
		return tti_fail(TUTTI_ESYS, "eventfd: %m (see ulimit -n)");
	if (!net->peers)
		return tti_fail(TUTTI_ENOMEM, "window: out of memory");
	TTI_TRY(join(net));
	if (window->is_of_device) {
		net->room = tti_alloc(tti_net_most(net));
		if (!net->room)
			return tti_fail(TUTTI_ENOMEM, "window: out of memory");
	}
	TTI_TRY(connect_all(net));
	st = tti_thread_start(&net->thread, "tutti-window", serve, net);
	net->has_thread = st == TUTTI_OK;
	return st;
}

void tti_net_wake(struct tti_window_net *net)
{
	const uint64_t one = 1;

	/* Full means that it is awake. */
	if (write(net->wake_fd, &one, sizeof(one)) < 0)
		return;
}

static void set_leaving(struct tti_window_net *net, bool leaving)
{
	if (!net)
		return;
	pthread_mutex_lock(&net->lock);
	net->leaving = leaving;
	net->port->parting = leaving;
	pthread_mutex_unlock(&net->lock);
}

void tti_window_net_leave(struct tti_window_net *net)
{
	set_leaving(net, true);
}

void tti_window_net_stay(struct tti_window_net *net)
{
	set_leaving(net, false);
}

void tti_window_net_close(struct tti_window_net *net)
{
	if (!net)
		return;
	if (net->has_thread) {
		pthread_mutex_lock(&net->lock);
		net->closing = true;
		pthread_mutex_unlock(&net->lock);
		tti_net_wake(net);
		pthread_join(net->thread, NULL);
	}
	for (int rank = 0; net->port && rank < net->port->nranks; rank++)
		if (net->peers[rank].link)
			net->port->transport->close(net->peers[rank].link);
	if (net->port)
		net->port->transport->shutdown(net->port);
	tti_fd_close(&net->wake_fd);
	pthread_mutex_destroy(&net->lock);
	tti_free(net->peers);
	tti_free(net->room);
	tti_free(net);
}
