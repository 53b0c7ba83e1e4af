/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: the calls. */
#include <stdio.h>

#include "boot/boot.h"
#include "boot/watch/watch.h"
#include "core/call/timeout.h"
#include "core/comm_error.h"
#include "core/handle.h"
#include "core/message/message.h"
#include "core/message/message_move.h"
#include "core/message/message_request.h"
#include "core/message/message_serve.h"
#include "core/message/message_wait.h"
#include "core/stall.h"
#include "util/error.h"
#include "util/fork.h"

/* -- Entering ----------------------------------------------------------------- */

static tutti_status enter(tutti_channel_t channel, const char *name)
{
	struct tti_comm *comm;
	tutti_status st;

	if (!channel)
		return tti_fail(TUTTI_EINVAL, "%s(): the channel is NULL", name);
	TTI_TRY(tti_fork_check("channel", channel, channel->pid));
	TTI_TRY(tti_handle_enter(channel->handle, &comm));
	/* The handle may be another communicator's by now. */
	if (comm != atomic_load(&channel->comm)) {
		tti_handle_leave(channel->handle);
		return tti_fail(TUTTI_EUSAGE, "the communicator of channel %p was destroyed",
				(void *)channel);
	}
	st = tti_channel_async_error(channel);
	if (st == TUTTI_OK)
		return st;
	/* The memory of requests belongs to the caller again. */
	tti_channel_lock(channel);
	channel->broken = true;
	pthread_mutex_unlock(&channel->lock);
	tti_comm_note(comm, st);
	tti_handle_leave(channel->handle);
	return st;
}

static tutti_status leave(tutti_channel_t channel, tutti_status status)
{
	return tti_handle_end(channel->handle, channel->comm, status);
}

static tutti_status check(const struct tutti_channel *channel, const char *name, const void *data,
			  size_t size, int peer, int tag, int least)
{
	if (peer >= channel->own->n || peer < least)
		return tti_fail(TUTTI_EINVAL, "%s(): there is no rank %d: 0 to %d", name, peer,
				channel->own->n - 1);
	if (tag < least)
		return tti_fail(TUTTI_EINVAL, "%s(): tag %d: tags are 0 or more", name, tag);
	if (size && !data)
		return tti_fail(TUTTI_EINVAL,
				"%s(): %zu bytes at NULL: pass the address of the data", name,
				size);
	return TUTTI_OK;
}

/* -- Requests ------------------------------------------------------------------- */

static tutti_status too_long(const struct tti_request *request)
{
	return tti_fail(TUTTI_EINVAL,
			"a message of %zu bytes from rank %d with tag %d does not fit "
			"the %zu bytes of its receive: it stays, receive it with more "
			"room (tutti_message_probe() says how much)",
			request->nbytes, request->peer, request->tag, request->room);
}

/* A rank that has destroyed its channel sends and takes nothing more. A receive from any source may
 * still get a message: this rank may send to itself. Under the lock. */
static bool is_silent(const struct tutti_channel *channel, int source)
{
	return source >= 0 && channel->peers[source].has_left;
}

/* The rank that the request waits for. Under the lock. */
static int awaited(const struct tti_request *request)
{
	return !request->is_send && request->state == TTI_REQUEST_WAITS ? request->entry.source
									: request->peer;
}

static tutti_status look_who_has_left(struct tutti_channel *channel, struct tti_message_wait *wait,
				      struct tti_request *request)
{
	const bool is_receive = !request->is_send;
	const char *doing = is_receive ? "receives from" : "sends to";
	bool is_lost, is_gone;
	int peer;

	tti_channel_lock(channel);
	peer = awaited(request);
	pthread_mutex_unlock(&channel->lock);
	is_gone = tti_message_is_gone(channel, wait, peer);
	/* By now the request may be over, or wait for another rank, as messages came in. */
	tti_channel_lock(channel);
	is_gone &= awaited(request) == peer && request->state != TTI_REQUEST_DONE;
	peer = awaited(request);
	is_lost = is_silent(channel, peer) && request->state != TTI_REQUEST_DONE &&
		  (is_receive || request->state == TTI_REQUEST_OFFERED ||
		   (request->state == TTI_REQUEST_WAITS &&
		    channel->peers[peer].offered >= TTI_OFFERS_KEPT));
	pthread_mutex_unlock(&channel->lock);
	if (is_lost)
		return tti_message_lose_to_leaver(channel, peer, "destroyed its channel", doing);
	return is_gone ? tti_message_lose_to_gone(channel, peer, doing) : TUTTI_OK;
}

/* Begin a request; after an error nothing is left of it. */
static tutti_status start(struct tutti_channel *channel, const struct tti_request *wanted,
			  struct tti_request **out)
{
	struct tti_request *request;
	struct tti_bounce memory;
	tutti_status st = TUTTI_OK;

	TTI_TRY(tti_bounce_open(channel->own, wanted->data,
				wanted->is_send ? wanted->nbytes : wanted->room, wanted->is_send,
				&memory));
	tti_channel_lock(channel);
	request = tti_request_create(channel);
	if (request) {
		request->is_send = wanted->is_send;
		request->peer = wanted->peer;
		request->tag = wanted->tag;
		request->entry.source = wanted->peer;
		request->entry.tag = wanted->tag;
		request->memory = memory;
		request->data = memory.host;
		request->room = wanted->room;
		request->nbytes = wanted->nbytes;
		if (request->is_send)
			tti_message_begin_send(channel, request);
		else
			st = tti_message_begin_receive(channel, request);
		(void)tti_message_pump(channel);
		if (st != TUTTI_OK) {
			st = too_long(request);
			tti_request_free(channel, request);
		}
	} else {
		st = tti_fail(TUTTI_ENOMEM, "a message: out of memory");
		tti_bounce_close(&memory);
	}
	pthread_mutex_unlock(&channel->lock);
	*out = request;
	return st;
}

/* The request is over, or its wait is: its status. */
static tutti_status finish(struct tutti_channel *channel, struct tti_request *request,
			   tutti_status waited, tutti_message_info *info)
{
	struct tti_bounce memory = { 0 };
	tutti_status st = waited;
	size_t nbytes = 0;

	tti_channel_lock(channel);
	request->is_waited_for = false;
	if (request->state == TTI_REQUEST_DONE) {
		st = request->status;
		if (st == TUTTI_EINVAL)
			st = too_long(request);
		else if (st == TUTTI_ECANCELED)
			st = tti_fail_quiet(st, "the request was cancelled");
	}
	if (st == TUTTI_OK && info)
		*info = (tutti_message_info){ request->is_send ? channel->own->rank : request->peer,
					      request->tag, request->nbytes };
	if (st != TUTTI_AGAIN) {
		/* Nothing may touch its memory any more, even if the channel is lost. */
		channel->broken |= request->state != TTI_REQUEST_DONE;
		nbytes = request->is_send ? 0 : request->nbytes;
		memory = request->memory;
		request->memory = (struct tti_bounce){ 0 };
		tti_request_free(channel, request);
	}
	pthread_mutex_unlock(&channel->lock);
	if (st == TUTTI_OK)
		st = tti_bounce_store(&memory, nbytes);
	tti_bounce_close(&memory);
	return st;
}

static void describe(const struct tti_request *request, char *buf, size_t size)
{
	const int peer = request->is_send ? request->peer : request->entry.source;
	const int tag = request->is_send ? request->tag : request->entry.tag;
	char from[32] = "any rank", with[32] = "any tag";

	if (peer >= 0)
		(void)snprintf(from, sizeof(from), "rank %d", peer);
	if (tag >= 0)
		(void)snprintf(with, sizeof(with), "tag %d", tag);
	(void)snprintf(buf, size,
		       request->is_send ? "%s to receive its message with %s"
					: "a message of %s with %s",
		       from, with);
}

/* tti_message_take_back(), then let sends go on that it held up. Under the lock. */
static bool take_back(struct tutti_channel *channel, struct tti_request *request)
{
	const bool taken = tti_message_take_back(channel, request);

	if (taken)
		(void)tti_message_pump(channel);
	return taken;
}

/* This thread is interrupted, and its caller has no request to wait for again: either nothing was
 * done, or the channel is lost. */
static tutti_status give_up(struct tutti_channel *channel, struct tti_request *request)
{
	bool is_over;

	tti_channel_lock(channel);
	is_over = request->state == TTI_REQUEST_DONE || take_back(channel, request);
	pthread_mutex_unlock(&channel->lock);
	if (is_over)
		return TUTTI_OK;
	tti_comm_abort(channel->own, "was interrupted in a message");
	return tti_comm_async_error(channel->own);
}

/* `again`: TUTTI_AGAIN if this thread is interrupted, for a caller that can wait again. */
static tutti_status await(struct tutti_channel *channel, struct tti_request *request,
			  int timeout_ms, bool again, tutti_message_info *info)
{
	struct tti_message_wait wait = { .timeout_ms = timeout_ms };
	tutti_status st = TUTTI_OK;
	char what[128];

	describe(request, what, sizeof(what));
	atomic_fetch_add(&request->sleeps, 1);
	while (st == TUTTI_OK && !atomic_load(&request->over)) {
		st = tti_message_backoff(channel, &wait, &request->over, 0, what);
		if (st == TUTTI_OK && timeout_ms < 0)
			st = look_who_has_left(channel, &wait, request);
		if (st == TUTTI_AGAIN && !again)
			st = give_up(channel, request);
	}
	tti_message_wait_end(channel, &wait);
	return finish(channel, request, st, info);
}

/* -- The calls -------------------------------------------------------------------- */

/* `request` NULL: wait until it is over. */
static tutti_status submit(tutti_channel_t channel, const char *name,
			   const struct tti_request *wanted, size_t size, tutti_message_info *info,
			   tutti_request_t *request)
{
	struct tti_request *made;
	tutti_status st;

	TTI_TRY(enter(channel, name));
	st = check(channel, name, wanted->data, size, wanted->peer, wanted->tag,
		   wanted->is_send ? 0 : -1);
	if (st == TUTTI_OK)
		st = start(channel, wanted, &made);
	if (st == TUTTI_OK && !request)
		return leave(channel, await(channel, made, -1, false, info));
	if (st == TUTTI_OK)
		*request = made->id;
	tti_message_hand_over(channel);
	return leave(channel, st);
}

/* Only read from. */
static struct tti_request send_of(const void *data, size_t size, int dest, int tag)
{
	return (struct tti_request){ .is_send = true,
				     .data = (uint8_t *)(uintptr_t)data,
				     .nbytes = size,
				     .peer = dest,
				     .tag = tag };
}

static struct tti_request recv_of(void *data, size_t size, int source, int tag)
{
	return (struct tti_request){ .data = data, .room = size, .peer = source, .tag = tag };
}

tutti_status tutti_message_send(tutti_channel_t channel, const void *data, size_t size, int dest,
				int tag)
{
	const struct tti_request wanted = send_of(data, size, dest, tag);

	return submit(channel, "tutti_message_send", &wanted, size, NULL, NULL);
}

tutti_status tutti_message_recv(tutti_channel_t channel, void *data, size_t size, int source,
				int tag, tutti_message_info *info)
{
	const struct tti_request wanted = recv_of(data, size, source, tag);

	return submit(channel, "tutti_message_recv", &wanted, size, info, NULL);
}

static tutti_status no_place(tutti_channel_t channel, const char *name)
{
	return tti_handle_fail(channel ? channel->handle : NULL, TUTTI_EINVAL,
			       "%s(): request is NULL: pass the address of a tutti_request_t",
			       name);
}

tutti_status tutti_message_isend(tutti_channel_t channel, const void *data, size_t size, int dest,
				 int tag, tutti_request_t *request)
{
	const struct tti_request wanted = send_of(data, size, dest, tag);

	if (!request)
		return no_place(channel, "tutti_message_isend");
	return submit(channel, "tutti_message_isend", &wanted, size, NULL, request);
}

tutti_status tutti_message_irecv(tutti_channel_t channel, void *data, size_t size, int source,
				 int tag, tutti_request_t *request)
{
	const struct tti_request wanted = recv_of(data, size, source, tag);

	if (!request)
		return no_place(channel, "tutti_message_irecv");
	return submit(channel, "tutti_message_irecv", &wanted, size, NULL, request);
}

static tutti_status no_request(const char *name, tutti_request_t id)
{
	return tti_fail(TUTTI_EINVAL,
			"%s(): there is no request %llu: it was waited for, or is "
			"another channel's",
			name, (unsigned long long)id);
}

tutti_status tutti_message_wait(tutti_channel_t channel, tutti_request_t id, int timeout_ms,
				tutti_message_info *info)
{
	struct tti_request *request;
	tutti_status st = TUTTI_OK;

	TTI_TRY(enter(channel, "tutti_message_wait"));
	tti_channel_lock(channel);
	(void)tti_message_pump(channel);
	request = tti_request_find(channel, id);
	if (!request)
		st = no_request("tutti_message_wait", id);
	else if (request->is_waited_for)
		st = tti_fail(TUTTI_EUSAGE,
			      "tutti_message_wait(): another thread waits for request %llu",
			      (unsigned long long)id);
	else
		request->is_waited_for = true;
	pthread_mutex_unlock(&channel->lock);
	if (st == TUTTI_OK)
		return leave(channel, await(channel, request, timeout_ms, true, info));
	tti_message_hand_over(channel);
	return leave(channel, st);
}

tutti_status tutti_message_cancel(tutti_channel_t channel, tutti_request_t id)
{
	struct tti_request *request;
	tutti_status st = TUTTI_OK;

	TTI_TRY(enter(channel, "tutti_message_cancel"));
	tti_channel_lock(channel);
	request = tti_request_find(channel, id);
	if (!request)
		st = no_request("tutti_message_cancel", id);
	else if (!take_back(channel, request))
		st = TUTTI_AGAIN;
	pthread_mutex_unlock(&channel->lock);
	if (st == TUTTI_OK)
		tti_message_hand_over(channel);
	return leave(channel, st);
}

/* *in_vain: there is none, and none will come. */
static bool find(struct tutti_channel *channel, int source, int tag, uint32_t *arrivals,
		 bool *in_vain, tutti_message_info *info)
{
	const struct tti_match_entry *entry;

	tti_channel_lock(channel);
	(void)tti_message_pump(channel);
	*arrivals = atomic_load(&channel->arrivals);
	entry = tti_match_find_message(&channel->match, source, tag);
	*in_vain = !entry && is_silent(channel, source);
	if (entry && info)
		*info = (tutti_message_info){ entry->source, entry->tag,
					      ((const struct tti_kept *)entry)->nbytes };
	pthread_mutex_unlock(&channel->lock);
	return entry != NULL;
}

tutti_status tutti_message_probe(tutti_channel_t channel, int source, int tag, int timeout_ms,
				 tutti_message_info *info)
{
	static const char doing[] = "probes for a message of";
	struct tti_message_wait wait = { .timeout_ms = timeout_ms };
	bool in_vain, is_gone = false;
	uint32_t seen;
	tutti_status st;

	TTI_TRY(enter(channel, "tutti_message_probe"));
	st = check(channel, "tutti_message_probe", NULL, 0, source, tag, -1);
	if (st != TUTTI_OK)
		return leave(channel, st);
	atomic_fetch_add(&channel->probers, 1);
	while (st == TUTTI_OK && !find(channel, source, tag, &seen, &in_vain, info)) {
		if (in_vain && timeout_ms < 0)
			st = tti_message_lose_to_leaver(channel, source, "destroyed its channel",
							doing);
		else if (is_gone)
			st = tti_message_lose_to_gone(channel, source, doing);
		else
			st = tti_message_backoff(channel, &wait, &channel->arrivals, seen,
						 "a message to probe for");
		is_gone = st == TUTTI_OK && tti_message_is_gone(channel, &wait, source);
	}
	atomic_fetch_sub(&channel->probers, 1);
	tti_message_wait_end(channel, &wait);
	return leave(channel, st);
}
