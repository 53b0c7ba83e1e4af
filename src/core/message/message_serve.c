/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: the threads that look after them while no call does, and what ends them. */
#include "core/message/message_serve.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "core/comm_error.h"
#include "core/message/message_move.h"
#include "core/stall.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fd.h"
#include "util/thread.h"

/* How long a server sleeps: while threads of the user poll or something waits for room; while
 * nothing comes. */
#define SHORT_NS TTI_NS_PER_MS
#define IDLE_NS  (100 * TTI_NS_PER_MS)

/* How often a server pumps before it looks for other threads. */
#define ROUNDS 16

/* -- The end ------------------------------------------------------------------ */

tutti_status tti_channel_async_error(struct tutti_channel *channel)
{
	/* The own communicator's links close with the other one, and the two errors may come in any
	 * order: that of the other one counts. */
	if (atomic_load_explicit(&channel->comm->async_error, memory_order_relaxed))
		return tti_comm_async_error(channel->comm);
	if (atomic_load_explicit(&channel->own->async_error, memory_order_relaxed))
		return tti_comm_async_error(channel->own);
	return TUTTI_OK;
}

void tti_channel_report(struct tutti_channel *channel)
{
	tutti_status failure = TUTTI_OK;

	tti_channel_lock(channel);
	for (int i = 0; i < channel->own->nports && channel->broken; i++)
		if (failure == TUTTI_OK)
			failure = channel->own->ports[i]->failure;
	pthread_mutex_unlock(&channel->lock);
	if (failure != TUTTI_OK && atomic_load(&channel->own->async_error) == 0)
		(void)tti_stall_port_failed(channel->own, channel->comm, failure);
}

/* -- The lock ------------------------------------------------------------------ */

void tti_channel_lock(struct tutti_channel *channel)
{
	if (pthread_mutex_trylock(&channel->lock) == 0)
		return;
	atomic_fetch_add(&channel->wanted, 1);
	pthread_mutex_lock(&channel->lock);
	atomic_fetch_sub(&channel->wanted, 1);
	if (atomic_load(&channel->lets_in))
		tti_futex_wake(&channel->wanted, INT32_MAX);
}

/* Let threads in that sleep for the lock: they would come too late if the server took it again at
 * once. */
static void let_in(struct tutti_channel *channel)
{
	uint32_t wanted;

	atomic_fetch_add(&channel->lets_in, 1);
	wanted = atomic_load(&channel->wanted);
	if (wanted)
		tti_futex_wait(&channel->wanted, wanted, SHORT_NS);
	atomic_fetch_sub(&channel->lets_in, 1);
}

/* -- Servers ------------------------------------------------------------------- */

void tti_channel_wake_servers(struct tutti_channel *channel)
{
	const uint64_t one = 1;

	if (atomic_load(&channel->off_duty)) {
		atomic_fetch_add(&channel->duty, 1);
		tti_futex_wake(&channel->duty, INT32_MAX);
	}
	for (int i = 0; i < TTI_ENGINE_PORTS; i++) {
		struct tti_message_server *server = &channel->servers[i];

		if (!server->is_running)
			continue;
		/* Full means that it is awake. */
		if (server->wake_fd >= 0 && write(server->wake_fd, &one, sizeof(one)) < 0)
			continue;
		/* For all else a peer wakes it. */
		if (server->wake_fd < 0 && atomic_load(&channel->has_more))
			server->port->transport->sleep->wake(server->port);
	}
}

/* Threads of the user poll: one more poller would only be in their way. */
static void be_off_duty(struct tutti_channel *channel)
{
	const uint32_t seen = atomic_load(&channel->duty);

	atomic_fetch_add(&channel->off_duty, 1);
	if (atomic_load(&channel->lookers) > 0 && !atomic_load(&channel->closing))
		tti_futex_wait(&channel->duty, seen, SHORT_NS);
	atomic_fetch_sub(&channel->off_duty, 1);
}

/* Until something comes at the port. */
static void nap(struct tti_message_server *server, bool is_busy)
{
	const struct tti_sleep_ops *sleep = server->port->transport->sleep;
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	uint64_t woken;

	if (server->wake_fd < 0) {
		sleep->wait(server->port, is_busy ? SHORT_NS : IDLE_NS);
		return;
	}
	fds[0].fd = sleep->descriptor(server->port);
	fds[1].fd = server->wake_fd;
	if (poll(fds, 2, (int)((is_busy ? SHORT_NS : IDLE_NS) / TTI_NS_PER_MS)) > 0 &&
	    fds[1].revents && read(server->wake_fd, &woken, sizeof(woken)) < 0)
		return; /* another look does no harm */
}

static void *serve(void *self)
{
	struct tti_message_server *server = self;
	struct tutti_channel *channel = server->channel;
	bool broken = false;

	tti_thread_low_latency();
	while (!atomic_load(&channel->closing) && !broken) {
		bool moved = true, is_busy;

		if (atomic_load(&channel->lookers) > 0) {
			be_off_duty(channel);
			continue;
		}
		pthread_mutex_lock(&channel->lock);
		if (server->wake_fd >= 0 && !channel->broken)
			server->port->transport->sleep->wait(server->port, 0);
		for (int i = 0; i < ROUNDS && moved && (!i || !atomic_load(&channel->wanted)); i++)
			moved = tti_message_pump(channel);
		is_busy = tti_message_is_busy(channel);
		broken = channel->broken;
		pthread_mutex_unlock(&channel->lock);
		if (moved)
			let_in(channel);
		else if (!broken)
			nap(server, is_busy);
	}
	if (broken)
		tti_channel_report(channel);
	return NULL;
}

/* One server for each port that leads to another rank. */
tutti_status tti_channel_start_servers(struct tutti_channel *channel)
{
	struct tti_comm *own = channel->own;

	for (int rank = 0; rank < own->n; rank++) {
		struct tti_message_server *server = &channel->servers[own->port_of[rank]];
		struct tti_port *port = own->ports[own->port_of[rank]];

		if (rank == own->rank || server->is_running || !port->transport->sleep)
			continue;
		*server = (struct tti_message_server){ .channel = channel,
						       .port = port,
						       .wake_fd = -1 };
		if (port->transport->sleep->descriptor) {
			server->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
			if (server->wake_fd < 0)
				return tti_fail(TUTTI_ESYS, "eventfd: %m (see ulimit -n)");
		}
		TTI_TRY(tti_thread_start(&server->thread, "tutti-message", serve, server));
		server->is_running = true;
	}
	return TUTTI_OK;
}

void tti_channel_stop_servers(struct tutti_channel *channel)
{
	atomic_store(&channel->closing, true);
	tti_channel_wake_servers(channel);
	for (int i = 0; i < TTI_ENGINE_PORTS; i++) {
		struct tti_message_server *server = &channel->servers[i];

		if (server->is_running && server->wake_fd < 0)
			server->port->transport->sleep->wake(server->port);
		if (server->is_running)
			pthread_join(server->thread, NULL);
		server->is_running = false;
		if (server->channel)
			tti_fd_close(&server->wake_fd);
	}
}
