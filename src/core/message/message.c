/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: making and ending them. */
#include "core/message/message.h"

#include <stdio.h>
#include <time.h>

#include "boot/watch/watch.h"
#include "core/call/group.h"
#include "core/comm_error.h"
#include "core/handle.h"
#include "core/message/message_move.h"
#include "core/message/message_request.h"
#include "core/message/message_serve.h"
#include "core/message/message_wait.h"
#include "core/tend.h"
#include "engine/connect.h"
#include "engine/wait.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/fork.h"
#include "util/interrupt.h"
#include "util/mem.h"

/* How long the end of a communicator waits for a peer that takes no messages. */
#define LEAVE_NS (1000 * TTI_NS_PER_MS)

static tutti_status connect_all(struct tutti_channel *channel)
{
	struct tti_engine *engine = &channel->own->engine;
	struct tti_wait wait = { 0 };

	for (;;) {
		int missing = -1;

		tti_engine_progress(engine);
		for (int rank = 0; rank < channel->own->n; rank++) {
			const tutti_status st = tti_engine_connect(engine, rank);

			if (st < 0)
				return st;
			if (st == TUTTI_AGAIN)
				missing = rank;
			channel->peers[rank].link = engine->links[rank];
		}
		if (missing < 0)
			return TUTTI_OK;

		const tutti_status waited = tti_wait_step(&wait, engine, missing, true);

		if (waited != TUTTI_AGAIN)
			return waited;
	}
}

static void free_requests(struct tutti_channel *channel)
{
	for (size_t i = 0; i < channel->requests.n; i++)
		if (channel->requests.at[i])
			tti_request_free(channel, channel->requests.at[i]);
	tti_vec_release(&channel->requests);
	tti_vec_release(&channel->unused);
}

/* Take back what the communicator lent, and destroy the channel's own communicator. */
static void take_back(struct tutti_channel *channel)
{
	tti_channel_stop_servers(channel);
	tti_message_drop_kept(channel);
	free_requests(channel);
	(void)tutti_comm_destroy(channel->own_handle);
	channel->own_handle = NULL;
	channel->own = NULL;
	/* This comes last: see tti_handle_await_end(). */
	atomic_store(&channel->comm, NULL);
}

static void free_channel(struct tutti_channel *channel)
{
	if (!channel)
		return;
	pthread_mutex_destroy(&channel->lock);
	tti_free(channel->peers);
	tti_free(channel);
}

/* Drop what this rank has not received, and leave. If the channel is lost, do not tell that this
 * rank leaves, as that is not the reason. */
static void say_leave(struct tutti_channel *channel)
{
	const bool is_lost =
		atomic_load(&channel->own->async_error) || atomic_load(&channel->comm->async_error);

	tti_channel_lock(channel);
	for (size_t i = 0; i < channel->requests.n; i++)
		if (channel->requests.at[i])
			(void)tti_message_take_back(channel, channel->requests.at[i]);
	for (int rank = 0; rank < channel->own->n; rank++)
		channel->peers[rank].leaves = !is_lost;
	(void)tti_message_pump(channel);
	pthread_mutex_unlock(&channel->lock);
}

/* Whether all ranks are told, or cannot be told any more. */
static bool is_told(struct tutti_channel *channel, bool *moved)
{
	bool told = true;

	tti_channel_lock(channel);
	*moved = tti_message_pump(channel);
	for (int rank = 0; rank < channel->own->n; rank++)
		told &= channel->peers[rank].told_leave;
	told |= channel->broken;
	pthread_mutex_unlock(&channel->lock);
	return told || atomic_load(&channel->own->async_error) ||
	       atomic_load(&channel->comm->async_error);
}

/* Tell ranks that wait for this one that it has left, behind its messages. Do not wait for a rank
 * that takes nothing for LEAVE_NS. */
static void leave_alone(struct tutti_channel *channel)
{
	const struct timespec nap = { .tv_nsec = 50 * 1000 };
	int64_t moved_ns = tti_now_ns();
	bool moved;

	say_leave(channel);
	/* From now on only this thread moves anything. */
	tti_channel_stop_servers(channel);
	while (!is_told(channel, &moved) && !tti_interrupted()) {
		if (moved)
			moved_ns = tti_now_ns();
		else if (tti_now_ns() - moved_ns < LEAVE_NS)
			nanosleep(&nap, NULL);
		else
			break;
	}
}

void tti_channels_release(struct tti_comm *comm)
{
	for (size_t i = 0; i < comm->channels.n; i++) {
		leave_alone(comm->channels.at[i]);
		take_back(comm->channels.at[i]);
	}
	tti_vec_release(&comm->channels);
}

static tutti_status remember(struct tutti_channel *channel)
{
	struct tti_comm *comm = channel->comm;
	bool kept;

	pthread_mutex_lock(&comm->lock);
	kept = !tti_fault("core.channel") && tti_vec_push(&comm->channels, channel);
	pthread_mutex_unlock(&comm->lock);
	return kept ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "a channel: out of memory");
}

static void forget(struct tutti_channel *channel)
{
	struct tti_comm *comm = channel->comm;

	pthread_mutex_lock(&comm->lock);
	for (size_t i = 0; i < comm->channels.n; i++)
		if (comm->channels.at[i] == channel)
			comm->channels.at[i] = comm->channels.at[--comm->channels.n];
	pthread_mutex_unlock(&comm->lock);
}

static tutti_status set_up(struct tutti_channel *channel)
{
	const int n = channel->own->n;

	channel->peers = tti_calloc((size_t)n, sizeof(*channel->peers));
	if (!channel->peers)
		return tti_fail(TUTTI_ENOMEM, "a channel of %d ranks: out of memory", n);
	TTI_TRY(connect_all(channel));
	TTI_TRY(tti_channel_start_servers(channel));
	return remember(channel);
}

/* The others have a channel on `own`, or wait for this rank: notify them, unless this rank failed
 * because they did. */
static tutti_status tell_failure(struct tti_comm *own, tutti_status status)
{
	char text[TTI_FAILURE_TEXT];

	if (atomic_load(&own->async_error))
		return tti_comm_async_error(own);
	(void)snprintf(text, sizeof(text), "rank %d could not make its channel: %.400s", own->rank,
		       tti_error_text());
	tti_comm_notify_failure(own, TUTTI_EPEER, own->rank, text);
	return tti_fail_quiet(status, "%s", text);
}

static tutti_status create(struct tti_comm *comm, tutti_comm_t handle, tutti_channel_t *out)
{
	struct tutti_channel *channel =
		tti_fault("core.channel") ? NULL : tti_zalloc(sizeof(*channel));
	char text[TTI_ERROR_TEXT];
	tutti_comm_t own;
	tutti_status st = tutti_comm_dup(handle, &own, NULL);

	if (st != TUTTI_OK) {
		tti_free(channel);
		return st;
	}
	if (!channel) {
		st = tell_failure(atomic_load(&own->comm),
				  tti_fail(TUTTI_ENOMEM, "a channel: out of memory"));
		(void)tutti_comm_destroy(own);
		return st;
	}
	*channel = (struct tutti_channel){ .handle = handle,
					   .pid = handle->pid,
					   .comm = comm,
					   .own_handle = own,
					   .own = atomic_load(&own->comm) };
	/* Threads of the channel use its links from now on. */
	tti_tend_end(channel->own);
	pthread_mutex_init(&channel->lock, NULL);
	tti_match_init(&channel->match);
	st = set_up(channel);
	if (st == TUTTI_OK) {
		*out = channel;
		return st;
	}
	st = tell_failure(channel->own, st);
	(void)snprintf(text, sizeof(text), "%s", tti_error_text());
	take_back(channel);
	free_channel(channel);
	/* Errors of taking back are not the reason. */
	return tti_fail_quiet(st, "%s", text);
}

tutti_status tutti_channel_create(tutti_comm_t handle, tutti_channel_t *out)
{
	struct tti_comm *comm;
	tutti_status st;

	TTI_TRY(tti_handle_check_out(handle, out, "a tutti_channel_t"));
	TTI_TRY(tti_group_refuse(handle, "tutti_channel_create"));
	TTI_TRY(tti_handle_enter(handle, &comm));
	st = tti_comm_usable(comm);
	if (st == TUTTI_OK)
		st = create(comm, handle, out);
	return tti_handle_end(handle, comm, st);
}

/* A rank that has not left, or was not told; -1: there is none. */
static int find_missing(struct tutti_channel *channel)
{
	int missing = -1;

	tti_channel_lock(channel);
	(void)tti_message_pump(channel);
	for (int rank = 0; rank < channel->own->n && missing < 0; rank++)
		if (!channel->peers[rank].has_left || !channel->peers[rank].told_leave)
			missing = rank;
	pthread_mutex_unlock(&channel->lock);
	return missing;
}

/* Once all ranks have left the links are empty, so a barrier can use them; behind it nobody needs
 * them any more. */
static tutti_status leave(struct tutti_channel *channel)
{
	struct tti_message_wait wait = { .timeout_ms = -1 };
	tutti_status st = tti_channel_async_error(channel);
	int gone = -1;

	say_leave(channel);
	atomic_fetch_add(&channel->probers, 1);
	while (st == TUTTI_OK) {
		const uint32_t seen = atomic_load(&channel->arrivals);
		const int missing = find_missing(channel);

		if (missing < 0)
			break;
		if (missing == gone) {
			st = tti_message_lose_to_gone(channel, gone, "waits in the end for");
			continue;
		}
		st = tti_message_backoff(channel, &wait, &channel->arrivals, seen,
					 "all ranks to destroy their channel");
		if (st == TUTTI_AGAIN) {
			tti_comm_abort(channel->own, "was interrupted in the end of a channel");
			st = tti_comm_async_error(channel->own);
		}
		gone = tti_message_is_gone(channel, &wait, missing) ? missing : -1;
	}
	tti_message_wait_end(channel, &wait);
	tti_channel_stop_servers(channel);
	return st == TUTTI_OK ? tutti_barrier(channel->own_handle, NULL) : st;
}

tutti_status tutti_channel_destroy(tutti_channel_t channel)
{
	struct tti_comm *comm;
	tutti_status st;

	if (!channel)
		return TUTTI_OK;
	st = tti_fork_check("channel", channel, channel->pid);
	if (st != TUTTI_OK) {
		tti_free(channel->peers);
		tti_free(channel);
		return st;
	}
	TTI_TRY(tti_group_refuse(channel->handle, "tutti_channel_destroy"));
	comm = tti_handle_find(channel->handle);
	if (comm && comm == atomic_load(&channel->comm)) {
		st = tti_comm_note(comm, leave(channel));
		forget(channel);
		take_back(channel);
		tti_handle_leave(channel->handle);
	} else {
		/* The communicator was destroyed, and its handle may be another's by now. */
		if (comm)
			tti_handle_leave(channel->handle);
		tti_handle_await_end(&channel->comm);
	}
	free_channel(channel);
	return st;
}
