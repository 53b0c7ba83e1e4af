/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/stream.h"

#include <stdio.h>
#include <string.h>

#include "core/group.h"
#include "engine/wait.h"
#include "util/error.h"
#include "util/fork.h"
#include "util/interrupt.h"
#include "util/mem.h"
#include "util/thread.h"

struct failure {
	tutti_status status; /* TUTTI_OK: there was none */
	char *text;          /* [TTI_ERROR_TEXT] */
};

/* Memory of this is kept when a stream is destroyed (KEEP): what is large is allocated beside it. */
struct tutti_stream {
	_Atomic int is_destroyed;
	int pid; /* of the process that made it */
	struct tutti_stream *next_free;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* something was queued, or all is done */
	struct tti_stream_item *first, **end;
	bool busy, closing;
	struct tti_awaited *awaited;
	struct failure error;  /* the first; under the lock                             */
	struct failure untold; /* the first since the last function was run; the thread's own */
};

/* Whose function of tutti_stream_call() this thread runs; NULL: none. */
static _Thread_local const struct tutti_stream *calling;

/* An event counts how often it was recorded and which of those have happened. It
 * is shared by the user and by the work that mentions it. */
struct tutti_event {
	int pid; /* of the process that made it */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	uint64_t recorded, happened;
	struct tti_awaited *awaited; /* of the stream of the last record */
	int users;
};

struct event_work {
	struct tti_stream_item item;
	struct tutti_event *event;
	uint64_t target;
};

/* Streams that were destroyed, oldest first: as late as possible one is used again, so that a call on
 * a destroyed one is an error and not a crash. Under tti_fork_lock(). */
static struct {
	struct tutti_stream *oldest, *newest;
	int n;
} free_streams;

/* Streams kept before any is used again. */
#define KEEP 1024

static struct tutti_stream *reuse(void)
{
	struct tutti_stream *stream = NULL;

	tti_fork_lock();
	if (free_streams.n > KEEP) {
		stream = free_streams.oldest;
		free_streams.oldest = stream->next_free;
		free_streams.n--;
	}
	tti_fork_unlock();
	if (stream)
		memset(stream, 0, sizeof(*stream));
	return stream;
}

static void keep(struct tutti_stream *stream)
{
	tti_fork_lock();
	if (free_streams.n == 0)
		free_streams.oldest = stream;
	else
		free_streams.newest->next_free = stream;
	free_streams.newest = stream;
	free_streams.n++;
	tti_fork_unlock();
}

/* Functions that a stream runs while it is being destroyed may queue more. */
static tutti_status check_alive(const struct tutti_stream *stream)
{
	TTI_TRY(tti_fork_check("stream", stream, stream->pid));
	if (atomic_load(&stream->is_destroyed) && calling != stream)
		return tti_fail(TUTTI_EUSAGE, "stream %p was destroyed: it can be used no more",
				(const void *)stream);
	return TUTTI_OK;
}

/* -- Who waits ------------------------------------------------------------------ */

static struct tti_awaited *awaited_take(struct tti_awaited *awaited)
{
	atomic_fetch_add(&awaited->users, 1);
	return awaited;
}

struct tti_awaited *tti_stream_awaited(tutti_stream_t stream)
{
	return atomic_load(&stream->is_destroyed) && calling != stream
		       ? NULL
		       : awaited_take(stream->awaited);
}

void tti_awaited_drop(struct tti_awaited *awaited)
{
	if (awaited && atomic_fetch_sub(&awaited->users, 1) == 1)
		tti_free(awaited);
}

static struct tti_awaited *awaited_create(void)
{
	struct tti_awaited *awaited = tti_zalloc(sizeof(*awaited));

	if (awaited)
		atomic_init(&awaited->users, 1);
	return awaited;
}

/* What a stream has that is not kept when it is destroyed. False: out of memory. */
static bool fill(struct tutti_stream *stream)
{
	stream->awaited = awaited_create();
	stream->error.text = tti_alloc((size_t)2 * TTI_ERROR_TEXT);
	stream->untold.text = stream->error.text ? stream->error.text + TTI_ERROR_TEXT : NULL;
	return stream->awaited && stream->error.text;
}

static void empty(struct tutti_stream *stream)
{
	tti_awaited_drop(stream->awaited);
	tti_free(stream->error.text);
	stream->awaited = NULL;
	stream->error = stream->untold = (struct failure){ 0 };
}

/* One that never ran: handles of a stream that was here before may still name it. */
static void put_away(struct tutti_stream *stream)
{
	if (!stream)
		return;
	empty(stream);
	stream->pid = tti_fork_pid();
	atomic_store(&stream->is_destroyed, 1);
	keep(stream);
}

bool tti_stream_is_calling(void)
{
	return calling;
}

bool tti_stream_is_calling_of(const struct tti_awaited *awaited)
{
	return calling && calling->awaited == awaited;
}

/* Of what would wait for the stream. */
static tutti_status check_elsewhere(const struct tti_awaited *awaited, const char *what)
{
	if (!tti_stream_is_calling_of(awaited))
		return TUTTI_OK;
	return tti_fail(TUTTI_EUSAGE,
			"%s waits for the stream whose thread runs this function of "
			"tutti_stream_call(): return first, or wait on another thread",
			what);
}

/* -- The thread --------------------------------------------------------------- */

static struct tti_stream_item *next_item(struct tutti_stream *stream)
{
	struct tti_stream_item *item;

	while (!stream->first && !stream->closing)
		pthread_cond_wait(&stream->changed, &stream->lock);
	item = stream->first;
	if (!item)
		return NULL;
	stream->first = item->next;
	if (!stream->first)
		stream->end = &stream->first;
	stream->busy = true;
	return item;
}

static void note(struct failure *failure, tutti_status status)
{
	if (status >= 0 || failure->status != TUTTI_OK)
		return;
	failure->status = status;
	(void)snprintf(failure->text, TTI_ERROR_TEXT, "%s", tti_error_text());
}

static void *stream_thread(void *self)
{
	struct tutti_stream *stream = self;
	struct tti_stream_item *item;

	tti_wait_beside(&stream->awaited->now);
	tti_thread_prompt();
	pthread_mutex_lock(&stream->lock);
	while ((item = next_item(stream))) {
		tutti_status st;

		pthread_mutex_unlock(&stream->lock);
		st = item->run(item);
		note(&stream->untold, st);
		pthread_mutex_lock(&stream->lock);
		note(&stream->error, st);
		stream->busy = false;
		if (!stream->first)
			pthread_cond_broadcast(&stream->changed);
	}
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

tutti_status tti_stream_check(tutti_stream_t stream)
{
	return check_alive(stream);
}

tutti_status tti_stream_push(tutti_stream_t stream, struct tti_stream_item *item,
			     tutti_status (*run)(struct tti_stream_item *item))
{
	TTI_TRY(check_alive(stream));
	item->next = NULL;
	item->run = run;
	pthread_mutex_lock(&stream->lock);
	*stream->end = item;
	stream->end = &item->next;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	return TUTTI_OK;
}

/* -- Streams ------------------------------------------------------------------- */

tutti_status tutti_stream_create(tutti_stream_t *out)
{
	struct tutti_stream *stream;
	tutti_status st;

	if (!out)
		return tti_fail(TUTTI_EINVAL, "out is NULL: pass the address of a tutti_stream_t");
	stream = reuse();
	if (!stream)
		stream = tti_zalloc(sizeof(*stream));
	tti_fork_watch();
	if (!stream || !fill(stream)) {
		put_away(stream);
		return tti_fail(TUTTI_ENOMEM, "stream: out of memory");
	}
	pthread_mutex_init(&stream->lock, NULL);
	tti_cond_init(&stream->changed);
	stream->end = &stream->first;
	stream->pid = tti_fork_pid();
	st = tti_thread_start(&stream->thread, "tutti-stream", stream_thread, stream);
	if (st != TUTTI_OK) {
		pthread_cond_destroy(&stream->changed);
		pthread_mutex_destroy(&stream->lock);
		put_away(stream);
		return st;
	}
	*out = stream;
	return TUTTI_OK;
}

/* The stream's error as this thread's. Under its lock. */
static tutti_status first_error(const struct tutti_stream *stream)
{
	if (stream->error.status == TUTTI_OK)
		return TUTTI_OK;
	return tti_fail_quiet(stream->error.status, "%s", stream->error.text);
}

tutti_status tutti_stream_destroy(tutti_stream_t stream)
{
	tutti_status st;

	if (!stream)
		return TUTTI_OK;
	TTI_TRY(check_alive(stream));
	TTI_TRY(check_elsewhere(stream->awaited, "tutti_stream_destroy()"));
	atomic_store(&stream->is_destroyed, 1);
	pthread_mutex_lock(&stream->lock);
	stream->closing = true;
	pthread_cond_broadcast(&stream->changed);
	pthread_mutex_unlock(&stream->lock);
	atomic_fetch_add(&stream->awaited->now, 1);
	pthread_join(stream->thread, NULL);
	st = first_error(stream);
	empty(stream);
	pthread_cond_destroy(&stream->changed);
	pthread_mutex_destroy(&stream->lock);
	keep(stream);
	return st;
}

static tutti_status check_stream(tutti_stream_t stream)
{
	if (!stream)
		return tti_fail(TUTTI_EINVAL, "the stream is NULL: calls on the NULL stream are "
					      "done when they return");
	return check_alive(stream);
}

tutti_status tutti_stream_synchronize(tutti_stream_t stream)
{
	int64_t until_ns = 0;
	bool stop = false;
	tutti_status st;

	TTI_TRY(check_stream(stream));
	TTI_TRY(check_elsewhere(stream->awaited, "tutti_stream_synchronize()"));
	pthread_mutex_lock(&stream->lock);
	atomic_fetch_add(&stream->awaited->now, 1);
	while ((stream->first || stream->busy) && !stop)
		stop = tti_interrupt_cond_wait(&stream->changed, &stream->lock, &until_ns);
	atomic_fetch_sub(&stream->awaited->now, 1);
	st = stream->first || stream->busy ? TUTTI_AGAIN : first_error(stream);
	pthread_mutex_unlock(&stream->lock);
	return st;
}

tutti_status tutti_stream_query(tutti_stream_t stream)
{
	tutti_status st;

	TTI_TRY(check_stream(stream));
	pthread_mutex_lock(&stream->lock);
	st = stream->first || stream->busy ? TUTTI_AGAIN : first_error(stream);
	pthread_mutex_unlock(&stream->lock);
	return st;
}

struct call {
	struct tti_stream_item item;
	struct tutti_stream *stream;
	tutti_stream_fn fn;
	void *arg;
};

/* What happened before is told once. */
static tutti_status run_call(struct tti_stream_item *item)
{
	struct call *call = (struct call *)item;
	struct failure *untold = &call->stream->untold;
	const tutti_status status = untold->status;

	tti_error_set(status == TUTTI_OK ? NULL : untold->text);
	untold->status = TUTTI_OK;
	calling = call->stream;
	call->fn(status, call->arg);
	calling = NULL;
	tti_free(call);
	return TUTTI_OK;
}

tutti_status tutti_stream_call(tutti_stream_t stream, tutti_stream_fn fn, void *arg)
{
	struct call *call;
	tutti_status st;

	TTI_TRY(check_stream(stream));
	if (!fn)
		return tti_fail(TUTTI_EINVAL, "tutti_stream_call(): fn is NULL");
	if (tti_group_is_open())
		return tti_group_remember(
			tti_fail(TUTTI_EUSAGE, "tutti_stream_call() inside a group, whose calls "
					       "are queued at its end: end it first"));
	call = tti_alloc(sizeof(*call));
	if (!call)
		return tti_fail(TUTTI_ENOMEM, "tutti_stream_call(): out of memory");
	*call = (struct call){ .stream = stream, .fn = fn, .arg = arg };
	st = tti_stream_push(stream, &call->item, run_call);
	if (st != TUTTI_OK)
		tti_free(call);
	return st;
}

/* -- Events -------------------------------------------------------------------- */

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
	*work = (struct event_work){ .event = event, .target = event->recorded };
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
	TTI_TRY(check_stream(stream));
	return push_event(stream, event, run_record, true);
}

tutti_status tutti_stream_wait_event(tutti_stream_t stream, tutti_event_t event)
{
	TTI_TRY(check_event(event));
	TTI_TRY(check_stream(stream));
	return push_event(stream, event, run_wait, false);
}

tutti_status tutti_event_synchronize(tutti_event_t event)
{
	struct tti_awaited *awaited = NULL;
	uint64_t target;
	tutti_status st;

	TTI_TRY(check_event(event));
	pthread_mutex_lock(&event->lock);
	target = event->recorded;
	if (event->happened < target)
		awaited = awaited_take(event->awaited);
	pthread_mutex_unlock(&event->lock);
	if (!awaited)
		return TUTTI_OK;
	st = check_elsewhere(awaited, "tutti_event_synchronize()");
	if (st == TUTTI_OK) {
		atomic_fetch_add(&awaited->now, 1);
		st = await(event, target);
		atomic_fetch_sub(&awaited->now, 1);
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
