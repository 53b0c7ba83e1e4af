/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/pmi/pmi_event.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/thread.h"

struct tti_pmi_event {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool is_ended, is_left;
	int status;
	int (*call)(void); /* NULL: somebody else's */
};

struct tti_pmi_event *tti_pmi_event_create(void)
{
	struct tti_pmi_event *event = tti_zalloc(sizeof(*event));

	if (!event)
		return NULL;
	pthread_mutex_init(&event->lock, NULL);
	tti_cond_init(&event->ended);
	return event;
}

/* The lock is held; `is_last`: by the only one that still knows the event. */
static void leave(struct tti_pmi_event *event, bool is_last)
{
	pthread_mutex_unlock(&event->lock);
	if (!is_last)
		return;
	pthread_cond_destroy(&event->ended);
	pthread_mutex_destroy(&event->lock);
	tti_free(event);
}

void tti_pmi_event_end(struct tti_pmi_event *event, int status)
{
	pthread_mutex_lock(&event->lock);
	event->is_ended = true;
	event->status = status;
	pthread_cond_signal(&event->ended);
	leave(event, event->is_left);
}

tutti_status tti_pmi_event_wait(struct tti_pmi_event *event, int64_t deadline_ns, int *status)
{
	const struct timespec until = { .tv_sec = (time_t)(deadline_ns / 1000000000),
					.tv_nsec = deadline_ns % 1000000000 };
	bool is_ended;

	pthread_mutex_lock(&event->lock);
	while (!event->is_ended && tti_now_ns() < deadline_ns)
		pthread_cond_timedwait(&event->ended, &event->lock, &until);
	is_ended = event->is_ended;
	if (is_ended)
		*status = event->status;
	event->is_left = true;
	leave(event, is_ended);
	return is_ended ? TUTTI_OK : TUTTI_ETIMEOUT;
}

static void *run_call(void *self)
{
	struct tti_pmi_event *const event = self;

	tti_pmi_event_end(event, event->call());
	return NULL;
}

tutti_status tti_pmi_event_call(int (*call)(void), int64_t deadline_ns, int *status)
{
	struct tti_pmi_event *event = tti_pmi_event_create();
	pthread_t thread;
	tutti_status st;

	if (!event)
		return tti_fail(TUTTI_ENOMEM, "a call of the launcher's library: out of memory");
	event->call = call;
	st = tti_thread_start(&thread, "tutti-pmi", run_call, event);
	if (st != TUTTI_OK) {
		pthread_mutex_lock(&event->lock);
		leave(event, true);
		return st;
	}
	pthread_detach(thread);
	return tti_pmi_event_wait(event, deadline_ns, status);
}

tutti_status tti_pmi_event_late(void)
{
	return tti_fail(TUTTI_ETIMEOUT, "the launcher has not said in time (TUTTI_BOOT_TIMEOUT_MS) "
					"that all ranks have come: some rank of the job has not "
					"called, or the launcher hangs");
}
