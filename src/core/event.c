/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdatomic.h>

#include "core/stream.h"
#include "util/error.h"
#include "util/fork.h"
#include "util/interrupt.h"
#include "util/mem.h"
#include "util/thread.h"

/* An event counts how often it was recorded and which of those have happened. It
 * is shared by the user and by the work that mentions it. */
struct tutti_event {
	int pid; /* of the process that made it */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t recorded;
	_Atomic uint64_t happened;
	struct tti_awaited *awaited; /* of the stream of the last record */
	int users;
};

struct event_work {
	struct tti_stream_item item;
	struct tutti_event *event;
	uint64_t target;
};

static void event_free(struct tutti_event *event)
{
	tti_awaited_drop(event->awaited);
	tti_free(event);
}

static void event_drop(struct tutti_event *event)
{
	int users;

	pthread_mutex_lock(&event->lock);
	users = --event->users;
	pthread_mutex_unlock(&event->lock);
	if (users > 0)
		return;
	pthread_cond_destroy(&event->changed);
	pthread_mutex_destroy(&event->lock);
	event_free(event);
}

tutti_status tutti_event_create(tutti_event_t *out)
{
	struct tutti_event *event;

	if (!out)
		return tti_fail(TUTTI_EINVAL, "out is NULL: pass the address of a tutti_event_t");
	event = tti_zalloc(sizeof(*event));
	if (!event)
		return tti_fail(TUTTI_ENOMEM, "event: out of memory");
	pthread_mutex_init(&event->lock, NULL);
	tti_cond_init(&event->changed);
	event->users = 1;
	tti_fork_watch();
	event->pid = tti_fork_pid();
	*out = event;
	return TUTTI_OK;
}

tutti_status tutti_event_destroy(tutti_event_t event)
{
	tutti_status st;

	if (!event)
		return TUTTI_OK;
	st = tti_fork_check("event", event, event->pid);
	/* In a child nobody else has it, and its lock may be taken for ever. */
	if (st == TUTTI_OK)
		event_drop(event);
	else
		event_free(event);
	return st;
}

static void happen(struct tutti_event *event, uint64_t target)
{
	pthread_mutex_lock(&event->lock);
	if (event->happened < target)
		event->happened = target;
	pthread_cond_broadcast(&event->changed);
	pthread_mutex_unlock(&event->lock);
}

/* TUTTI_AGAIN: this thread was interrupted. */
static tutti_status await(struct tutti_event *event, uint64_t target)
{
	int64_t until_ns = 0;
	bool stop = false, happened;

	pthread_mutex_lock(&event->lock);
	while (event->happened < target && !stop)
		stop = tti_interrupt_cond_wait(&event->changed, &event->lock, &until_ns);
	happened = event->happened >= target;
	pthread_mutex_unlock(&event->lock);
	return happened ? TUTTI_OK : TUTTI_AGAIN;
}

static tutti_status run_record(struct tti_stream_item *item)
{
	struct event_work *work = (struct event_work *)item;

	happen(work->event, work->target);
	event_drop(work->event);
	tti_free(work);
	return TUTTI_OK;
}

static tutti_status run_wait(struct tti_stream_item *item)
{
	struct event_work *work = (struct event_work *)item;

	/* What is behind it relies on it: it is not for a function of this thread to end it. */
	while (await(work->event, work->target) == TUTTI_AGAIN)
		;
	event_drop(work->event);
	tti_free(work);
	return TUTTI_OK;
}

static tutti_status push_event(tutti_stream_t stream, struct tutti_event *event,
			       tutti_status (*run)(struct tti_stream_item *), bool record)
{
	struct event_work *work = tti_alloc(sizeof(*work));
	tutti_status st;

	if (!work)
		return tti_fail(TUTTI_ENOMEM, "event: out of memory");
	pthread_mutex_lock(&event->lock);
	if (record) {
		event->recorded++;
		tti_awaited_drop(event->awaited);
		event->awaited = tti_stream_awaited(stream);
	}
	event->users++;
	*work = (struct event_work){ .item.is_awaited = record,
				     .event = event,
				     .target = event->recorded };
	pthread_mutex_unlock(&event->lock);
	st = tti_stream_push(stream, &work->item, run);
	if (st != TUTTI_OK) {
		happen(event, work->target);
		event_drop(event);
		tti_free(work);
	}
	return st;
}

static tutti_status check_event(tutti_event_t event)
{
	return event ? tti_fork_check("event", event, event->pid)
		     : tti_fail(TUTTI_EINVAL, "the event is NULL");
}

tutti_status tutti_event_record(tutti_event_t event, tutti_stream_t stream)
{
	TTI_TRY(check_event(event));
	TTI_TRY(tti_stream_check(stream));
	return push_event(stream, event, run_record, true);
}

tutti_status tutti_stream_wait_event(tutti_stream_t stream, tutti_event_t event)
{
	TTI_TRY(check_event(event));
	TTI_TRY(tti_stream_check(stream));
	return push_event(stream, event, run_wait, false);
}

tutti_status tutti_event_synchronize(tutti_event_t event)
{
	struct tti_awaited *awaited = NULL;
	tutti_stream_t stream = NULL;
	int64_t until_ns = 0;
	bool stop = false;
	uint64_t target;
	tutti_status st;

	TTI_TRY(check_event(event));
	pthread_mutex_lock(&event->lock);
	target = event->recorded;
	if (event->happened < target && event->awaited)
		awaited = tti_awaited_take(event->awaited);
	pthread_mutex_unlock(&event->lock);
	if (!awaited)
		return TUTTI_OK;
	st = tti_stream_check_elsewhere(awaited, "tutti_event_synchronize()");
	if (st == TUTTI_OK)
		stream = tti_awaited_begin(awaited);
	if (stream) {
		while (event->happened < target && !stop)
			stop = tti_stream_wait_step(stream, &until_ns);
		st = event->happened < target ? TUTTI_AGAIN : TUTTI_OK;
		tti_stream_wait_end(stream);
	}
	tti_awaited_drop(awaited);
	return st;
}

tutti_status tutti_event_query(tutti_event_t event)
{
	bool happened;

	TTI_TRY(check_event(event));
	pthread_mutex_lock(&event->lock);
	happened = event->happened >= event->recorded;
	pthread_mutex_unlock(&event->lock);
	return happened ? TUTTI_OK : TUTTI_AGAIN;
}
