/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/comm_error.h"

#include <stdio.h>

#include "boot/boot.h"
#include "boot/watch/watch.h"
#include "core/device/device.h"
#include "util/error.h"
#include "util/interrupt.h"
#include "util/mem.h"
#include "util/thread.h"

/* NULL: out of memory. The lock is held. */
static struct tti_comm_texts *texts_of(struct tti_comm *comm)
{
	if (!comm->texts)
		comm->texts = tti_zalloc(sizeof(*comm->texts));
	return comm->texts;
}

#define NO_TEXT "out of memory for the text of the error"

const char *tti_comm_last_text(const struct tti_comm *comm)
{
	if (comm->texts)
		return comm->texts->last;
	return atomic_load(&comm->async_error) || atomic_load(&comm->init_status) < 0 ? NO_TEXT
										      : "";
}

/* A child that is being made waits for ranks of its parent. An error that tells those not to come
 * tells the child not to wait. */
static bool concerns(const struct tti_comm *child, tutti_status status)
{
	return status == TUTTI_EREVOKED || (status == TUTTI_EPEER && child->follows_deaths);
}

/* An abort of the child's own comes first. */
void tti_comm_stop_follower(struct tti_comm *child, tutti_status status)
{
	int none = 0;

	if (concerns(child, status))
		(void)atomic_compare_exchange_strong(&child->stop, &none, (int)status);
}

static void stop_followers(struct tti_comm *comm, tutti_status status)
{
	for (struct tti_comm *child = comm->followers; child; child = child->next_follower)
		tti_comm_stop_follower(child, status);
}

void tti_comm_mark_failed(struct tti_comm *comm, tutti_status status, const char *text)
{
	pthread_mutex_lock(&comm->lock);
	if (atomic_load(&comm->async_error) == 0) {
		struct tti_comm_texts *texts = texts_of(comm);

		if (texts) {
			snprintf(texts->async_error, sizeof(texts->async_error), "%s", text);
			snprintf(texts->last, sizeof(texts->last), "%s", text);
		}
		atomic_store(&comm->async_error, status);
		atomic_store(&comm->stop, 1);
		tti_device_stop(comm->device);
		stop_followers(comm, status);
	}
	pthread_mutex_unlock(&comm->lock);
	atomic_fetch_add(&comm->sequence_word, 1);
	tti_futex_wake(&comm->sequence_word, INT32_MAX);
}

void tti_comm_notify_failure(struct tti_comm *comm, tutti_status status, int failed_rank,
			     const char *text)
{
	struct tti_failure failure = { .status = status,
				       .failed_rank = failed_rank,
				       .origin = comm->rank };

	snprintf(failure.text, sizeof(failure.text), "%s", text);
	if (comm->watching)
		tti_watch_notify(comm->boot, &failure);
	tti_comm_mark_failed(comm, status, failure.text);
}

void tti_comm_abort(struct tti_comm *comm, const char *what)
{
	const bool tell =
		atomic_load(&comm->init_status) == TUTTI_OK && atomic_load(&comm->async_error) == 0;
	char text[TTI_FAILURE_TEXT], name[TTI_BOOT_NAME];

	if (tell)
		(void)tti_boot_name(comm->boot, comm->rank, name);
	else
		(void)snprintf(name, sizeof(name), "rank %d", comm->rank);
	(void)snprintf(text, sizeof(text), "%s %s", name, what);
	/* First for this rank: the others get another error. */
	tti_comm_mark_failed(comm, TUTTI_EABORTED, text);
	if (tell)
		tti_comm_notify_failure(comm, TUTTI_EPEER, comm->rank, text);
}

bool tti_comm_interrupted(struct tti_comm *comm)
{
	if (!tti_interrupted())
		return false;
	tti_comm_abort(comm, "was interrupted in a call");
	return true;
}

tutti_status tti_comm_note(struct tti_comm *comm, tutti_status status)
{
	if (status >= 0)
		return status;
	pthread_mutex_lock(&comm->lock);

	struct tti_comm_texts *texts = texts_of(comm);

	if (texts)
		snprintf(texts->last, sizeof(texts->last), "%s", tti_error_text());
	pthread_mutex_unlock(&comm->lock);
	return status;
}

tutti_status tti_comm_async_error(struct tti_comm *comm)
{
	const int error = atomic_load(&comm->async_error);
	tutti_status status = TUTTI_OK;

	if (error == 0)
		return TUTTI_OK;
	atomic_store(&comm->async_error_is_known, true);
	pthread_mutex_lock(&comm->lock);
	status = tti_fail_quiet((tutti_status)error, "%s",
				comm->texts && *comm->texts->async_error ? comm->texts->async_error
									 : NO_TEXT);
	pthread_mutex_unlock(&comm->lock);
	return status;
}

tutti_status tti_comm_init_error(struct tti_comm *comm)
{
	const tutti_status status = (tutti_status)atomic_load(&comm->init_status);

	if (status == TUTTI_OK)
		return TUTTI_OK;
	pthread_mutex_lock(&comm->lock);
	(void)!tti_fail_quiet(status, "%s", tti_comm_last_text(comm));
	pthread_mutex_unlock(&comm->lock);
	return status;
}

static tutti_status refuse_before_init(struct tti_comm *comm)
{
	if (atomic_load(&comm->init_status) == TUTTI_AGAIN)
		return tti_fail(TUTTI_EUSAGE, "the communicator is still being made: poll "
					      "tutti_comm_get_async_error() until it is no longer "
					      "TUTTI_AGAIN");
	return tti_comm_init_error(comm);
}

tutti_status tti_comm_usable(struct tti_comm *comm)
{
	const int state = atomic_load_explicit(&comm->state, memory_order_acquire);

	if (atomic_load_explicit(&comm->async_error, memory_order_relaxed) != 0)
		return tti_comm_async_error(comm);
	if (state == TTI_COMM_READY)
		return TUTTI_OK;
	if (state == TTI_COMM_FINALIZED)
		return tti_fail(TUTTI_EUSAGE, "the communicator was finalized: it can only be "
					      "destroyed");
	return refuse_before_init(comm);
}
