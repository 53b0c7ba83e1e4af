/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/message/message_wait.h"

#include <stdio.h>

#include "boot/boot.h"
#include "boot/watch/watch.h"
#include "core/call/timeout.h"
#include "core/comm_error.h"
#include "core/handle.h"
#include "core/message/message_move.h"
#include "core/message/message_serve.h"
#include "core/stall.h"
#include "engine/wait.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/interrupt.h"
#include "util/thread.h"

/* A wait (engine/wait.h) polls SPINS times before it looks at the clock, then until LOOK_NS,
 * then sleeps until it is woken, NAP_NS at most. In between it looks at the error state of the
 * channel. */
#define SPINS   200
#define LOOK_NS (200 * 1000)
#define NAP_NS  (5 * TTI_NS_PER_MS)

/* A wait asks the watch after ASK_AFTER_NS, once in ASK_AGAIN_NS. The last messages of a rank that
 * has gone are here GONE_NS after that is known. */
#define ASK_AFTER_NS (200 * TTI_NS_PER_MS)
#define ASK_AGAIN_NS (300 * TTI_NS_PER_MS)
#define GONE_NS      (300 * TTI_NS_PER_MS)

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

void tti_message_hand_over(struct tutti_channel *channel)
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
	tti_message_hand_over(channel);
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
	/* The end of the communicator waits until this thread is out. */
	if (!atomic_load(&channel->handle->comm))
		return tti_fail(TUTTI_EUSAGE,
				"another thread destroyed the communicator, while this one waits "
				"for %s",
				what);
	look(channel, wait, true);
	/* A thread that sleeps for the lock would never get it from one that comes back at once. */
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

/* -- Ranks that have left ------------------------------------------------------- */

tutti_status tti_message_lose_to_leaver(struct tutti_channel *channel, int peer, const char *what,
					const char *doing)
{
	char text[TTI_FAILURE_TEXT], name[TTI_BOOT_NAME];

	(void)snprintf(text, sizeof(text), "%s has %s, while rank %d %s it",
		       tti_boot_name(channel->own->boot, peer, name), what, channel->own->rank,
		       doing);
	tti_comm_notify_failure(channel->own, TUTTI_EPEER, peer, text);
	return tti_comm_async_error(channel->own);
}

/* Whether messages of that rank are on the way, or here but not looked at. */
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
	return tti_message_lose_to_leaver(channel, peer, "ended its communicator", doing);
}
