/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows by messages: this rank's requests. A thread that waits serves other ranks meanwhile. */
#include <time.h>

#include "core/window/window_net.h"
#include "core/window/window_wait.h"
#include "util/error.h"

/* Nothing moved: let others in, and look whether to go on. */
static tutti_status give_way(struct tti_window_net *net, struct tti_window_wait *wait, int peer,
			     const char *what)
{
	tutti_status st;
	bool failed;

	if (tti_net_pump(net)) {
		*wait = (struct tti_window_wait){ 0 };
		return TUTTI_OK;
	}
	failed = net->port->failure != TUTTI_OK;
	pthread_mutex_unlock(&net->lock);
	if (failed)
		tti_net_report(net);
	st = tti_window_backoff(net->window, wait, peer, what);
	if (st == TUTTI_OK && wait->nap_ns) {
		const struct timespec nap = { .tv_nsec = (long)(wait->nap_ns / 8) };

		nanosleep(&nap, NULL);
	}
	pthread_mutex_lock(&net->lock);
	return st;
}

static tutti_status send_patiently(struct tti_window_net *net, int rank,
				   const struct tti_net_head *head, const void *data, size_t nbytes)
{
	struct tti_window_wait wait = { 0 };
	tutti_status st = TUTTI_OK;

	while (st == TUTTI_OK && !tti_net_send(&net->peers[rank], head, data, nbytes))
		st = give_way(net, &wait, rank, "room for a message to a window");
	return st;
}

/* Wake the thread if messages are left: they go out even if this rank makes no call any more. */
static tutti_status end(struct tti_window_net *net, tutti_status status)
{
	bool busy;

	(void)tti_net_pump(net);
	busy = tti_net_is_busy(net);
	pthread_mutex_unlock(&net->lock);
	if (busy)
		tti_net_wake(net);
	return status;
}

tutti_status tti_window_net_put(struct tutti_window *window, int peer, size_t offset,
				const void *src, size_t nbytes)
{
	struct tti_window_net *net = window->net;
	const size_t most = tti_net_most(net);
	tutti_status st = TUTTI_OK;
	size_t done = 0;

	pthread_mutex_lock(&net->lock);
	while (st == TUTTI_OK && done < nbytes) {
		const size_t count = nbytes - done < most ? nbytes - done : most;
		const struct tti_net_head head = { .kind = TTI_NET_PUT,
						   .offset = offset + done,
						   .nbytes = count };

		st = send_patiently(net, peer, &head, (const uint8_t *)src + done, count);
		/* Another thread may have flushed while this one had no room. */
		net->peers[peer].dirty = true;
		done += count;
	}
	return end(net, st);
}

tutti_status tti_window_net_signal(struct tutti_window *window, int peer, int index)
{
	struct tti_window_net *net = window->net;
	const struct tti_net_head head = { .kind = TTI_NET_SIGNAL, .number = (uint64_t)index };
	tutti_status st;

	pthread_mutex_lock(&net->lock);
	st = send_patiently(net, peer, &head, NULL, 0);
	net->peers[peer].dirty = true;
	return end(net, st);
}

tutti_status tti_window_net_get(struct tutti_window *window, int rank, size_t offset, void *dst,
				size_t nbytes)
{
	struct tti_window_net *net = window->net;
	struct tti_net_peer *peer = &net->peers[rank];
	struct tti_net_head head = { .kind = TTI_NET_GET, .offset = offset, .nbytes = nbytes };
	struct tti_window_wait wait = { 0 };
	tutti_status st = TUTTI_OK;

	if (!nbytes)
		return TUTTI_OK;
	pthread_mutex_lock(&net->lock);
	while (st == TUTTI_OK && peer->into) /* another thread's */
		st = give_way(net, &wait, rank, "a get from a window");
	if (st != TUTTI_OK)
		return end(net, st);
	peer->into = dst;
	peer->get_left = nbytes;
	head.number = ++peer->get_number;
	st = send_patiently(net, rank, &head, NULL, 0);
	wait = (struct tti_window_wait){ 0 };
	while (st == TUTTI_OK && peer->get_left)
		st = give_way(net, &wait, rank, "a get from a window");
	peer->into = NULL;
	peer->get_left = 0;
	return end(net, st);
}

/* Another thread may have flushed this thread's messages already: then wait for that flush. */
static tutti_status flush_one(struct tti_window_net *net, int rank)
{
	struct tti_net_peer *peer = &net->peers[rank];
	struct tti_window_wait wait = { 0 };
	struct tti_net_head head = { .kind = TTI_NET_FLUSH, .number = peer->flushes };
	tutti_status st = TUTTI_OK;

	if (peer->dirty) {
		peer->dirty = false;
		head.number = ++peer->flushes;
		st = send_patiently(net, rank, &head, NULL, 0);
	}
	while (st == TUTTI_OK && peer->flushed < head.number)
		st = give_way(net, &wait, rank, "a flush of a window");
	return st;
}

tutti_status tti_window_net_flush(struct tutti_window *window, int peer)
{
	struct tti_window_net *net = window->net;
	tutti_status st = TUTTI_OK;

	pthread_mutex_lock(&net->lock);
	for (int rank = 0; rank < net->port->nranks && st == TUTTI_OK; rank++)
		if ((peer == rank || peer < 0) && net->peers[rank].link)
			st = flush_one(net, rank);
	return end(net, st);
}
