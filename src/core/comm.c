/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/comm.h"

#include <stdio.h>
#include <string.h>

#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"
#include "util/thread.h"

struct tti_comm *tti_comm_create(int rank, int n, const tutti_config *config)
{
	struct tti_comm *comm = tti_zalloc(sizeof(*comm));

	if (!comm)
		return NULL;
	comm->rank = rank;
	comm->n = n;
	comm->timeout_ms = tti_params()->timeout_ms;
	if (config->name)
		snprintf(comm->name, sizeof(comm->name), "%s", config->name);
	if (comm->timeout_ms == 0)
		comm->timeout_ms = config->timeout_ms;
	atomic_init(&comm->init_status, TUTTI_AGAIN);
	pthread_mutex_init(&comm->lock, NULL);
	comm->stall.suspect = -1;
	return comm;
}

void tti_comm_free(struct tti_comm *comm)
{
	if (!comm)
		return;
	if (comm->has_init_thread)
		pthread_join(comm->init_thread, NULL);
	if (comm->watching)
		tti_watch_stop(comm->boot);
	tti_programs_release(comm);
	if (comm->has_engine)
		tti_engine_release(&comm->engine);
	for (int i = comm->nports - 1; i >= 0; i--)
		comm->ports[i]->transport->shutdown(comm->ports[i]);
	tti_boot_close(comm->boot);
	tti_free(comm->port_of);
	tti_agreed_release(&(struct tti_agreed){ comm->plan, comm->shape });
	tti_tuning_release(&comm->tuning);
	tti_free(comm->algo);
	pthread_mutex_destroy(&comm->lock);
	tti_free(comm);
}

void tti_comm_lose(struct tti_comm *comm, tutti_status status, const char *text)
{
	pthread_mutex_lock(&comm->lock);
	if (atomic_load(&comm->fate) == 0) {
		snprintf(comm->fate_text, sizeof(comm->fate_text), "%s", text);
		snprintf(comm->error, sizeof(comm->error), "%s", text);
		atomic_store(&comm->fate, status);
		atomic_store(&comm->stop, 1);
	}
	pthread_mutex_unlock(&comm->lock);
	atomic_fetch_add(&comm->turn, 1);
	tti_futex_wake(&comm->turn, INT32_MAX);
}

void tti_comm_tell(struct tti_comm *comm, tutti_status status, int culprit, const char *text)
{
	struct tti_news news = { .status = status, .culprit = culprit, .origin = comm->rank };

	snprintf(news.text, sizeof(news.text), "%s", text);
	if (comm->watching)
		tti_watch_notify(comm->boot, &news);
	tti_comm_lose(comm, status, news.text);
}

tutti_status tti_comm_note(struct tti_comm *comm, tutti_status status)
{
	if (status >= 0)
		return status;
	pthread_mutex_lock(&comm->lock);
	snprintf(comm->error, sizeof(comm->error), "%s", tti_error_text());
	pthread_mutex_unlock(&comm->lock);
	return status;
}

tutti_status tti_comm_fate(struct tti_comm *comm)
{
	const int fate = atomic_load(&comm->fate);
	tutti_status status = TUTTI_OK;

	if (fate == 0)
		return TUTTI_OK;
	pthread_mutex_lock(&comm->lock);
	status = tti_fail_quiet((tutti_status)fate, "%s", comm->fate_text);
	pthread_mutex_unlock(&comm->lock);
	return status;
}

static tutti_status refuse_before_init(struct tti_comm *comm)
{
	if (atomic_load(&comm->init_status) == TUTTI_AGAIN)
		return tti_fail(TUTTI_EUSAGE, "the communicator is still being made: poll "
					      "tutti_comm_get_async_error() until it is no longer "
					      "TUTTI_AGAIN");
	pthread_mutex_lock(&comm->lock);
	const tutti_status st =
		tti_fail_quiet((tutti_status)atomic_load(&comm->init_status), "%s", comm->error);
	pthread_mutex_unlock(&comm->lock);
	return st;
}

tutti_status tti_comm_usable(struct tti_comm *comm)
{
	const int state = atomic_load_explicit(&comm->state, memory_order_acquire);

	if (atomic_load_explicit(&comm->fate, memory_order_relaxed) != 0)
		return tti_comm_fate(comm);
	if (state == TTI_COMM_READY)
		return TUTTI_OK;
	if (state == TTI_COMM_FINALIZED)
		return tti_fail(TUTTI_EUSAGE, "the communicator was finalized: it can only be "
					      "destroyed");
	return refuse_before_init(comm);
}

uint64_t tti_turn_take(struct tti_comm *comm)
{
	/* One thread at a time makes calls, so this needs no locked addition; others
	 * only look. */
	const uint64_t ticket = atomic_load_explicit(&comm->issued, memory_order_relaxed);

	atomic_store_explicit(&comm->issued, ticket + 1, memory_order_relaxed);
	return ticket;
}

/* tti_turn_done() looks for waiters before it says done, so one that comes in
 * between is not woken: it looks again after this long. */
#define TURN_NAP_NS (1000 * 1000)

void tti_turn_wait(struct tti_comm *comm, uint64_t ticket)
{
	if (atomic_load_explicit(&comm->done, memory_order_acquire) == ticket)
		return;
	atomic_fetch_add(&comm->turn_waiters, 1);
	for (;;) {
		const uint32_t seen = atomic_load(&comm->turn);

		if (atomic_load(&comm->done) == ticket)
			break;
		tti_futex_wait(&comm->turn, seen, TURN_NAP_NS);
	}
	atomic_fetch_sub(&comm->turn_waiters, 1);
}

void tti_turn_done(struct tti_comm *comm)
{
	/* The last look at the communicator of a call that another thread may be
	 * waiting for to free it, unless somebody is counted as a waiter. */
	const bool wake = atomic_load_explicit(&comm->turn_waiters, memory_order_relaxed) != 0;

	if (wake)
		pthread_mutex_lock(&comm->lock);
	atomic_store_explicit(&comm->done,
			      atomic_load_explicit(&comm->done, memory_order_relaxed) + 1,
			      memory_order_release);
	if (!wake)
		return;
	atomic_fetch_add(&comm->turn, 1);
	tti_futex_wake(&comm->turn, INT32_MAX);
	pthread_mutex_unlock(&comm->lock);
}
