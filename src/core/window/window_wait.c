/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/window/window_wait.h"

#include <stdio.h>

#include "boot/watch/watch.h"
#include "core/call/timeout.h"
#include "core/comm_error.h"
#include "core/window/window.h"
#include "engine/wait.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/measured.h"

/* A wait (engine/wait.h) spins so often, and yields TTI_AWAKE_NS before it
 * sleeps. It looks at the error state of the communicator in between. */
#define SPINS 200

tutti_status tti_window_backoff(struct tutti_window *window, struct tti_window_wait *wait, int peer,
				const char *what)
{
	struct tti_comm *comm = window->comm;
	int64_t now, timeout_ms;
	uint32_t spins;
	bool awake;

	if (atomic_load_explicit(&comm->async_error, memory_order_relaxed))
		return tti_comm_async_error(comm);
	spins = comm->oversubscribed_here ? 0 : SPINS;
	awake = tti_wait_backoff(wait->rounds, spins, comm->oversubscribed_here);
	if (wait->rounds++ < spins && awake)
		return TUTTI_OK;
	now = tti_now_ns();
	if (!wait->since_ns)
		wait->since_ns = now;
	if (tti_comm_interrupted(comm))
		return tti_comm_async_error(comm);
	timeout_ms = atomic_load_explicit(&comm->timeouts.newest_ms, memory_order_relaxed);
	if (timeout_ms && now - wait->since_ns > timeout_ms * TTI_NS_PER_MS) {
		char text[TTI_FAILURE_TEXT];

		(void)snprintf(text, sizeof(text), "rank %d waited %lld ms (%s) for %s of rank %d",
			       comm->rank, (long long)timeout_ms, tti_timeout_newest(comm).source,
			       what, peer);
		tti_comm_notify_failure(comm, TUTTI_ETIMEOUT, peer, text);
		return tti_comm_async_error(comm);
	}
	if (!awake || now - wait->since_ns >= TTI_AWAKE_NS)
		wait->nap_ns = wait->nap_ns ? wait->nap_ns * 2 : TTI_AWAKE_NS / 4;
	if (wait->nap_ns > TTI_WINDOW_NAP_NS)
		wait->nap_ns = TTI_WINDOW_NAP_NS;
	return TUTTI_OK;
}
