/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/stream.h"
#include "util/error.h"
#include "util/fork.h"
#include "util/mem.h"

/* One tutti_event_record(). Its event shares it until the event is recorded again, its stream until
 * the stream has reached it, and waiters as long as they wait. */
struct record {
	struct tti_stream_item item;
	_Atomic int users;
	_Atomic bool pending; /* until it has happened */
	struct tti_awaited *awaited;
};

struct tutti_event {
	int pid; /* of the process that made it */
	pthread_mutex_t lock;
	struct record *last; /* NULL: never recorded. Under the lock */
};

struct wait {
	struct tti_stream_item item;
	struct record *record;
};

/* NULL is fine. */
static void record_drop(struct record *record)
{
	if (!record || atomic_fetch_sub(&record->users, 1) != 1)
		return;
	tti_awaited_drop(record->awaited);
	tti_free(record);
}

/* The last record if it has not happened, with one more user; else NULL. */
static struct record *pending_record(struct tutti_event *event)
{
	struct record *record;

	pthread_mutex_lock(&event->lock);
	record = event->last;
	if (record && !atomic_load(&record->pending))
		record = NULL;
	if (record)
		atomic_fetch_add(&record->users, 1);
	pthread_mutex_unlock(&event->lock);
	return record;
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
	/* In a forked child nobody may ever unlock it. */
	if (st == TUTTI_OK)
		pthread_mutex_destroy(&event->lock);
	record_drop(event->last);
	tti_free(event);
	return st;
}

static tutti_status check_event(tutti_event_t event)
{
	return event ? tti_fork_check("event", event, event->pid)
		     : tti_fail(TUTTI_EINVAL, "the event is NULL");
}

static tutti_status run_record(struct tti_stream_item *item)
{
	struct record *record = (struct record *)item;

	atomic_store(&record->pending, false);
	record_drop(record);
	return TUTTI_OK;
}

tutti_status tutti_event_record(tutti_event_t event, tutti_stream_t stream)
{
	struct record *record, *before;
	tutti_status st;

	TTI_TRY(check_event(event));
	TTI_TRY(tti_stream_check(stream));
	record = tti_zalloc(sizeof(*record));
	if (!record)
		return tti_fail(TUTTI_ENOMEM, "event: out of memory");
	record->item.is_awaited = true;
	atomic_init(&record->users, 2);
	atomic_init(&record->pending, true);
	record->awaited = tti_stream_awaited(stream);
	st = tti_stream_push(stream, &record->item, run_record);
	if (st != TUTTI_OK) {
		tti_awaited_drop(record->awaited);
		tti_free(record);
		return st;
	}
	/* Not earlier: a thread that finds the record may wait for it on the same stream, behind
	 * it. */
	pthread_mutex_lock(&event->lock);
	before = event->last;
	event->last = record;
	pthread_mutex_unlock(&event->lock);
	record_drop(before);
	return TUTTI_OK;
}

static tutti_status run_wait(struct tti_stream_item *item)
{
	struct wait *wait = (struct wait *)item;

	/* Work behind the wait relies on it, so an interrupt does not end it. */
	(void)tti_awaited_wait(wait->record->awaited, &wait->record->pending, false);
	record_drop(wait->record);
	tti_free(wait);
	return TUTTI_OK;
}

tutti_status tutti_stream_wait_event(tutti_stream_t stream, tutti_event_t event)
{
	struct record *record;
	struct wait *wait;
	tutti_status st;

	TTI_TRY(check_event(event));
	TTI_TRY(tti_stream_check(stream));
	record = pending_record(event);
	if (!record)
		return TUTTI_OK;
	wait = tti_alloc(sizeof(*wait));
	if (!wait) {
		record_drop(record);
		return tti_fail(TUTTI_ENOMEM, "event: out of memory");
	}
	*wait = (struct wait){ .record = record };
	st = tti_stream_push(stream, &wait->item, run_wait);
	if (st == TUTTI_OK)
		return TUTTI_OK;
	record_drop(record);
	tti_free(wait);
	return st;
}

tutti_status tutti_event_synchronize(tutti_event_t event)
{
	struct record *record;
	tutti_status st;

	TTI_TRY(check_event(event));
	record = pending_record(event);
	if (!record)
		return TUTTI_OK;
	st = tti_stream_check_elsewhere(record->awaited, "tutti_event_synchronize()");
	if (st == TUTTI_OK) {
		atomic_fetch_add(&record->awaited->now, 1);
		st = tti_awaited_wait(record->awaited, &record->pending, true);
		atomic_fetch_sub(&record->awaited->now, 1);
	}
	record_drop(record);
	return st;
}

tutti_status tutti_event_query(tutti_event_t event)
{
	struct record *record;
	tutti_status st;

	TTI_TRY(check_event(event));
	record = pending_record(event);
	st = record ? TUTTI_AGAIN : TUTTI_OK;
	record_drop(record);
	return st;
}
