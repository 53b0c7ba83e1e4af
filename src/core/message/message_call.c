/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels: the calls, and how they wait. */
#include <stdio.h>

#include "boot/boot.h"
#include "boot/watch/watch.h"
#include "core/call/timeout.h"
#include "core/comm_error.h"
#include "core/handle.h"
#include "core/message/message.h"
#include "core/stall.h"
#include "engine/wait.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fork.h"
#include "util/interrupt.h"
#include "util/thread.h"

/* A wait (engine/wait.h) looks so often before it looks at the clock, and for so long before it
 * sleeps, until it is woken, or for so long at most: the error state of the channel is looked at in
 * between. */
#define SPINS   200
#define LOOK_NS (200 * 1000)
#define NAP_NS  (5 * TTI_NS_PER_MS)

/* A wait asks the watch after so long, and so often at most; what a rank has sent before it went is
 * here so long after that is known. */
#define ASK_AFTER_NS (200 * TTI_NS_PER_MS)
#define ASK_AGAIN_NS (300 * TTI_NS_PER_MS)
#define GONE_NS      (300 * TTI_NS_PER_MS)

/* -- Waiting ------------------------------------------------------------------ */

static tutti_status look_at_time(struct tutti_channel *channel, const struct tti_message_wait *wait,
				 int64_t now, const char *what)
{
	const int64_t waited = now - wait->since_ns;
	const int64_t limit =
		atomic_load_explicit(&channel->comm->timeouts.newest_ms, memory_order_relaxed);
	char text[TTI_FAILURE_TEXT];

	if (wait->timeout_ms >= 0)
		return waited >= wait->timeout_ms * TTI_NS_PER_MS ? TUTTI_AGAIN : TUTTI_OK;
	if (limit <= 0 || waited < limit * TTI_NS_PER_MS)
		return TUTTI_OK;
	(void)snprintf(text, sizeof(text), "rank %d waited %lld ms (%s) for %s", channel->own->rank,
		       (long long)limit, tti_timeout_newest(channel->comm).source, what);
	tti_comm_notify_failure(channel->own, TUTTI_ETIMEOUT, -1, text);
	return tti_comm_async_error(channel->own);
}

static void look(struct tutti_channel *channel, struct tti_message_wait *wait, bool looks)
{
	if (wait->looks == looks)
		return;
	wait->looks = looks;
	atomic_fetch_add(&channel->lookers, looks ? 1 : -1);
}

/* What this thread has left for when there is room goes on without it. */
static void hand_over(struct tutti_channel *channel)
{
	bool is_busy;

	tti_channel_lock(channel);
	is_busy = tti_message_is_busy(channel);
	pthread_mutex_unlock(&channel->lock);
	if (is_busy)
		tti_channel_wake_servers(channel);
}

void tti_message_wait_end(struct tutti_channel *channel, struct tti_message_wait *wait)
{
	look(channel, wait, false);
	hand_over(channel);
}

static void nap(struct tutti_channel *channel, struct tti_message_wait *wait,
		_Atomic uint32_t *word, uint32_t seen, int64_t now)
{
	int64_t most = NAP_NS;

	if (wait->timeout_ms >= 0 && wait->since_ns + wait->timeout_ms * TTI_NS_PER_MS - now < most)
		most = wait->since_ns + wait->timeout_ms * TTI_NS_PER_MS - now;
	look(channel, wait, false);
	tti_channel_wake_servers(channel);
	if (most > 0)
		tti_futex_wait(word, seen, most);
}

tutti_status tti_message_backoff(struct tutti_channel *channel, struct tti_message_wait *wait,
				 _Atomic uint32_t *word, uint32_t seen, const char *what)
{
	const bool oversubscribed = channel->own->oversubscribed_here;
	const uint32_t spins = oversubscribed ? 0 : SPINS;
	bool awake, broken = false, has_more = false;
	int64_t now;

	TTI_TRY(tti_channel_async_error(channel));
	if (wait->timeout_ms == 0)
		return TUTTI_AGAIN;
	/* Its end waits until this thread is out. */
	if (!atomic_load(&channel->handle->comm))
		return tti_fail(TUTTI_EUSAGE,
				"another thread destroyed the communicator, while this one waits "
				"for %s",
				what);
	look(channel, wait, true);
	/* Who sleeps for the lock would never get it from one that comes back at once. */
	if (!atomic_load(&channel->wanted) && pthread_mutex_trylock(&channel->lock) == 0) {
		(void)tti_message_pump(channel);
		broken = channel->broken;
		has_more = channel->has_more;
		pthread_mutex_unlock(&channel->lock);
	}
	if (broken)
		tti_channel_report(channel);
	if (atomic_load(word) != seen)
		return TUTTI_OK;
	awake = tti_wait_backoff(wait->rounds, spins, oversubscribed);
	if (wait->rounds++ < spins && awake)
		return TUTTI_OK;
	now = tti_now_ns();
	if (!wait->since_ns)
		wait->since_ns = now;
	TTI_TRY(look_at_time(channel, wait, now, what));
	if (tti_interrupted())
		return TUTTI_AGAIN;
	if (!has_more && (!awake || now - wait->since_ns >= LOOK_NS))
		nap(channel, wait, word, seen, now);
	return TUTTI_OK;
}

/* -- Entering ----------------------------------------------------------------- */

static tutti_status enter(tutti_channel_t channel, const char *name)
{
	struct tti_comm *comm;
	tutti_status st;

	if (!channel)
		return tti_fail(TUTTI_EINVAL, "%s(): the channel is NULL", name);
	TTI_TRY(tti_fork_check("channel", channel, channel->pid));
	TTI_TRY(tti_channel_enter(channel, &comm));
	st = tti_channel_async_error(channel);
	if (st == TUTTI_OK)
		return st;
	/* Memory of requests is the caller's again. */
	tti_channel_lock(channel);
	channel->broken = true;
	pthread_mutex_unlock(&channel->lock);
	tti_comm_note(comm, st);
	tti_handle_leave(channel->handle);
	return st;
}

static tutti_status leave(tutti_channel_t channel, tutti_status status)
{
	tti_comm_note(channel->comm, status);
	tti_handle_leave(channel->handle);
	return status;
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
		return tti_fail(TUTTI_EINVAL, "%s(): %zu bytes at NULL", name, size);
	return TUTTI_OK;
}

/* -- Requests ------------------------------------------------------------------- */

static tutti_status too_long(const struct tti_request *request)
{
	return tti_fail(TUTTI_EINVAL,
			"a message of %zu bytes of rank %d with tag %d is longer than the %zu "
			"bytes that there is room for: it stays, receive it with more room "
			"(tutti_message_probe() says how much)",
			request->nbytes, request->peer, request->tag, request->room);
}

/* A rank that has destroyed its channel sends nothing more, and takes nothing. From any source
 * something may still come: the own rank may send to itself. Under the lock. */
static bool is_silent(const struct tutti_channel *channel, int source)
{
	return source >= 0 && channel->peers[source].has_left;
}

static tutti_status lose_to_leaver(struct tutti_channel *channel, int peer, const char *what,
				   const char *doing)
{
	char text[TTI_FAILURE_TEXT], name[TTI_BOOT_NAME];

	(void)snprintf(text, sizeof(text), "%s has %s, while rank %d %s it",
		       tti_boot_name(channel->own->boot, peer, name), what, channel->own->rank,
		       doing);
	tti_comm_notify_failure(channel->own, TUTTI_EPEER, peer, text);
	return tti_comm_async_error(channel->own);
}

/* Something of that rank is on its way, or here and was not looked at. */
static bool may_come(struct tutti_channel *channel, int peer, int64_t gone_ns)
{
	struct tti_link *link = channel->peers[peer].link;
	size_t nbytes;
	uint64_t tag;
	bool comes;

	tti_channel_lock(channel);
	comes = tti_stall_may_still_come(channel->own, peer, gone_ns) ||
		(!channel->broken && !channel->peers[peer].has_left &&
		 link->ops->peek(link, &nbytes, &tag));
	pthread_mutex_unlock(&channel->lock);
	return comes;
}

bool tti_message_is_gone(struct tutti_channel *channel, struct tti_message_wait *wait, int peer)
{
	struct tti_comm *own = channel->own;
	struct tti_stall *stall = &own->stall;
	int64_t now;
	bool asks;

	if (peer < 0 || peer == own->rank || wait->timeout_ms >= 0 || !wait->since_ns)
		return false;
	now = tti_now_ns();
	if (now - wait->since_ns < ASK_AFTER_NS)
		return false;
	if (wait->peer != peer) {
		wait->peer = peer;
		wait->gone_ns = 0;
	}
	pthread_mutex_lock(&own->lock);
	if (!wait->gone_ns && stall->suspect == peer && stall->left > 0)
		wait->gone_ns = now;
	asks = !wait->gone_ns && now - stall->asked_ns >= ASK_AGAIN_NS;
	if (asks)
		*stall = (struct tti_stall){ .suspect = peer, .asked_ns = now };
	pthread_mutex_unlock(&own->lock);
	if (asks)
		tti_watch_ask(own->boot, peer);
	return wait->gone_ns && now - wait->gone_ns >= GONE_NS &&
	       !may_come(channel, peer, wait->gone_ns);
}

tutti_status tti_message_lose_to_gone(struct tutti_channel *channel, int peer, const char *doing)
{
	return lose_to_leaver(channel, peer, "ended its communicator", doing);
}

/* Whom the request waits for. Under the lock. */
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
	/* It may be over, or wait for another rank, by what came of that one last. */
	tti_channel_lock(channel);
	is_gone &= awaited(request) == peer && request->state != TTI_REQUEST_DONE;
	peer = awaited(request);
	is_lost = is_silent(channel, peer) && request->state != TTI_REQUEST_DONE &&
		  (is_receive || request->state == TTI_REQUEST_OFFERED ||
		   (request->state == TTI_REQUEST_WAITS &&
		    channel->peers[peer].offered >= TTI_OFFERS_KEPT));
	pthread_mutex_unlock(&channel->lock);
	if (is_lost)
		return lose_to_leaver(channel, peer, "destroyed its channel", doing);
	return is_gone ? tti_message_lose_to_gone(channel, peer, doing) : TUTTI_OK;
}

/* Begun, or an error and nothing is left of it. */
static tutti_status start(struct tutti_channel *channel, const struct tti_request *wanted,
			  struct tti_request **out)
{
	struct tti_request *request;
	tutti_status st = TUTTI_OK;

	tti_channel_lock(channel);
	request = tti_request_create(channel);
	if (request) {
		request->is_send = wanted->is_send;
		request->peer = wanted->peer;
		request->tag = wanted->tag;
		request->entry.source = wanted->peer;
		request->entry.tag = wanted->tag;
		request->data = wanted->data;
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
	}
	pthread_mutex_unlock(&channel->lock);
	*out = request;
	return st;
}

/* Over, or not to be waited for any longer: what became of it. */
static tutti_status finish(struct tutti_channel *channel, struct tti_request *request,
			   tutti_status waited, tutti_message_info *info)
{
	tutti_status st = waited;

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
		/* Nothing is to touch its memory any more, also where the channel is lost. */
		channel->broken |= request->state != TTI_REQUEST_DONE;
		tti_request_free(channel, request);
	}
	pthread_mutex_unlock(&channel->lock);
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

/* As tti_message_take_back(); the sends that it held up go on. Under the lock. */
static bool take_back(struct tutti_channel *channel, struct tti_request *request)
{
	const bool taken = tti_message_take_back(channel, request);

	if (taken)
		(void)tti_message_pump(channel);
	return taken;
}

/* This thread is interrupted, and has no number to wait for again: nothing was done, or the channel is
 * lost. */
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

/* `request` NULL: until it is over. */
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
	hand_over(channel);
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

tutti_status tutti_message_send(tutti_channel_t channel, const void *data, size_t size, int dest,
				int tag)
{
	const struct tti_request wanted = send_of(data, size, dest, tag);

	return submit(channel, "tutti_message_send", &wanted, size, NULL, NULL);
}

tutti_status tutti_message_recv(tutti_channel_t channel, void *data, size_t size, int source,
				int tag, tutti_message_info *info)
{
	const struct tti_request wanted = {
		.data = data, .room = size, .peer = source, .tag = tag
	};

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
	const struct tti_request wanted = {
		.data = data, .room = size, .peer = source, .tag = tag
	};

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
	hand_over(channel);
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
		hand_over(channel);
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
			st = lose_to_leaver(channel, source, "destroyed its channel", doing);
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
