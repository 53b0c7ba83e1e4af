/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/timeout.h"

#include <stddef.h>

#include "core/comm.h"
#include "core/handle.h"
#include "util/error.h"
#include "util/params.h"
#include "util/params_read.h"

#define BOOT_VARIABLE "TUTTI_BOOT_TIMEOUT_MS"

struct tti_timeout tti_timeout_of_boot(const tutti_config *config)
{
	const struct tti_param_values *params = tti_params();
	const size_t end = offsetof(tutti_config, boot_timeout_ms) + sizeof(int64_t);

	if (!tti_param_is_set(&params->boot_timeout_ms) && config && config->size >= end &&
	    config->boot_timeout_ms > 0)
		return (struct tti_timeout){ .ms = config->boot_timeout_ms,
					     .source = "config.boot_timeout_ms" };
	return (struct tti_timeout){ .ms = params->boot_timeout_ms, .source = BOOT_VARIABLE };
}

void tti_timeouts_init(struct tti_timeouts *timeouts, const tutti_config *config)
{
	const struct tti_param_values *params = tti_params();

	atomic_init(&timeouts->config_ms, config->timeout_ms);
	if (tti_param_is_set(&params->timeout_ms))
		timeouts->first = (struct tti_timeout){ .ms = params->timeout_ms,
							.source = "TUTTI_TIMEOUT_MS" };
	else
		timeouts->first = (struct tti_timeout){ .ms = config->timeout_ms,
							.source = "config.timeout_ms" };
	atomic_init(&timeouts->newest_ms, timeouts->first.ms);
}

void tti_timeouts_release(struct tti_timeouts *timeouts)
{
	tti_vec_release(&timeouts->later);
}

/* The timeout of call `seqno`. Under the lock. */
static const struct tti_timeout *of_call(const struct tti_timeouts *timeouts, uint64_t seqno)
{
	const struct tti_timeout *found = &timeouts->first;

	for (size_t i = 0; i < timeouts->later.n && timeouts->later.at[i].from <= seqno; i++)
		found = &timeouts->later.at[i];
	return found;
}

struct tti_timeout tti_timeout_of_call(struct tti_comm *comm)
{
	struct tti_timeout found;

	pthread_mutex_lock(&comm->lock);
	found = *of_call(&comm->timeouts, atomic_load(&comm->done));
	pthread_mutex_unlock(&comm->lock);
	return found;
}

struct tti_timeout tti_timeout_newest(struct tti_comm *comm)
{
	struct tti_timeout found;

	pthread_mutex_lock(&comm->lock);
	found = *of_call(&comm->timeouts, UINT64_MAX);
	pthread_mutex_unlock(&comm->lock);
	return found;
}

/* Forget timeouts that no call has any more. Under the lock. */
static void forget(struct tti_timeouts *timeouts, uint64_t done)
{
	size_t nold = 0;

	while (nold < timeouts->later.n && timeouts->later.at[nold].from <= done)
		nold++;
	if (nold == 0)
		return;
	timeouts->first = timeouts->later.at[nold - 1];
	timeouts->later.n -= nold;
	for (size_t i = 0; i < timeouts->later.n; i++)
		timeouts->later.at[i] = timeouts->later.at[i + nold];
}

static tutti_status set(struct tti_comm *comm, int timeout_ms)
{
	struct tti_timeout timeout = { .ms = timeout_ms, .source = "tutti_comm_set_timeout()" };
	struct tti_timeouts *timeouts = &comm->timeouts;
	bool kept = true;

	pthread_mutex_lock(&comm->lock);
	/* The last of several threads that come here at once has the last number. */
	timeout.from = atomic_load(&comm->issued);
	forget(timeouts, atomic_load(&comm->done));
	if (timeouts->first.from == timeout.from && timeouts->later.n == 0)
		timeouts->first = timeout;
	else if (timeouts->later.n > 0 &&
		 timeouts->later.at[timeouts->later.n - 1].from == timeout.from)
		timeouts->later.at[timeouts->later.n - 1] = timeout;
	else
		kept = tti_vec_push(&timeouts->later, timeout);
	if (kept) {
		atomic_store(&timeouts->newest_ms, timeout_ms);
		atomic_store(&timeouts->config_ms, timeout_ms);
	}
	pthread_mutex_unlock(&comm->lock);
	return kept ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "tutti_comm_set_timeout(): out of memory");
}

tutti_status tutti_comm_set_timeout(tutti_comm_t handle, int timeout_ms)
{
	struct tti_comm *comm;

	if (timeout_ms < 0)
		return tti_handle_fail(handle, TUTTI_EINVAL,
				       "tutti_comm_set_timeout(): %d ms: 0 (never) or more",
				       timeout_ms);
	TTI_TRY(tti_handle_enter(handle, &comm));
	return tti_handle_end(handle, comm, set(comm, timeout_ms));
}
