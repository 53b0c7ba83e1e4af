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
	struct tti_freed freed;
	_Atomic int is_destroyed;
	int pid; /* of the process that made it */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t queued, done; /* for the thread, and for those who wait for what is queued */
	struct tti_stream_item *first, **end;
	bool busy, closing; /* busy: the thread runs what was first */
	int nwaiting;       /* threads that wait for what is queued: so long the stream stays */
	struct tti_awaited *awaited;
	struct failure error;  /* the first; under the lock                             */
	struct failure untold; /* the first since the last function was run; of who is busy */
};

/* Whose function of tutti_stream_call() this thread runs; NULL: none. */
static _Thread_local const struct tutti_stream *calling;

static struct tti_freed_list freed_streams;

/* Streams kept before any is used again. */
#define KEEP 1024

/* Functions that a stream runs while it is being destroyed may queue more. */
static tutti_status check_alive(const struct tutti_stream *stream)
{
	TTI_TRY(tti_fork_check("stream", stream, stream->pid));
	if (atomic_load(&stream->is_destroyed) && calling != stream)
		return tti_fail(TUTTI_EUSAGE, "stream %p was destroyed: it can be used no more",
				(const void *)stream);
	return TUTTI_OK;
}

tutti_status tti_stream_check(tutti_stream_t stream)
{
	if (!stream)
		return tti_fail(TUTTI_EINVAL, "the stream is NULL: calls on the NULL stream are "
					      "done when they return");
	return check_alive(stream);
}

/* -- Who waits ------------------------------------------------------------------ */

struct tti_awaited *tti_stream_awaited(tutti_stream_t stream)
{
	if (atomic_load(&stream->is_destroyed) && calling != stream)
		return NULL;
	atomic_fetch_add(&stream->awaited->users, 1);
	return stream->awaited;
}

void tti_awaited_drop(struct tti_awaited *awaited)
{
	if (!awaited || atomic_fetch_sub(&awaited->users, 1) != 1)
		return;
	pthread_mutex_destroy(&awaited->lock);
	tti_free(awaited);
}

static struct tti_awaited *awaited_create(tutti_stream_t stream)
{
	struct tti_awaited *awaited = tti_zalloc(sizeof(*awaited));

	if (!awaited)
		return NULL;
	atomic_init(&awaited->users, 1);
	pthread_mutex_init(&awaited->lock, NULL);
	awaited->stream = stream;
	return awaited;
}

/* What a stream has that is not kept when it is destroyed. False: out of memory. */
static bool fill(struct tutti_stream *stream)
{
	stream->awaited = awaited_create(stream);
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
	tti_freed_keep(&freed_streams, &stream->freed);
}

bool tti_stream_is_calling(void)
{
	return calling;
}

bool tti_stream_is_calling_of(const struct tti_awaited *awaited)
{
	return calling && calling->awaited == awaited;
}

tutti_status tti_stream_check_elsewhere(const struct tti_awaited *awaited, const char *what)
{
	if (!tti_stream_is_calling_of(awaited))
		return TUTTI_OK;
	return tti_fail(TUTTI_EUSAGE,
			"%s waits for the stream whose thread runs this function of "
			"tutti_stream_call(): return first, or wait on another thread",
			what);
}

/* -- The thread --------------------------------------------------------------- */

static void note(struct failure *failure, tutti_status status)
{
	if (status >= 0 || failure->status != TUTTI_OK)
		return;
	failure->status = status;
	(void)snprintf(failure->text, TTI_ERROR_TEXT, "%s", tti_error_text());
}

static bool is_idle(const struct tutti_stream *stream)
{
	return !stream->first && !stream->busy;
}

/* Run what is first: there is something. Under the lock, which it gives back
 * meanwhile. Others are told when the last is done, and of what they wait for. */
static void run_first(struct tutti_stream *stream)
{
	struct tti_stream_item *item = stream->first;
	const bool is_awaited = item->is_awaited;
	tutti_status st;

	stream->first = item->next;
	if (!stream->first)
		stream->end = &stream->first;
	stream->busy = true;
	pthread_mutex_unlock(&stream->lock);
	st = item->run(item);
	note(&stream->untold, st);
	pthread_mutex_lock(&stream->lock);
	note(&stream->error, st);
	stream->busy = false;
	if (stream->nwaiting > 0 && (is_awaited || !stream->first))
		pthread_cond_broadcast(&stream->done);
}

static void *stream_thread(void *self)
{
	struct tutti_stream *stream = self;

	tti_wait_beside(&stream->awaited->now);
	tti_thread_prompt();
	pthread_mutex_lock(&stream->lock);
	while (!stream->closing || stream->first || stream->nwaiting > 0)
		if (stream->first)
			run_first(stream);
		else
			pthread_cond_wait(&stream->queued, &stream->lock);
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

/* From now on this thread waits for something that is queued. Takes the lock. */
static void begin_waiting(struct tutti_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->nwaiting++;
}

static void end_waiting(struct tutti_stream *stream)
{
	stream->nwaiting--;
	if (stream->closing)
		pthread_cond_signal(&stream->queued);
	pthread_mutex_unlock(&stream->lock);
}

tutti_status tti_awaited_wait(struct tti_awaited *awaited, const _Atomic bool *pending, bool stops)
{
	tutti_stream_t stream;
	int64_t until_ns = 0;
	bool stop = false;
	tutti_status st;

	pthread_mutex_lock(&awaited->lock);
	stream = awaited->stream;
	if (stream)
		begin_waiting(stream);
	pthread_mutex_unlock(&awaited->lock);
	if (!stream)
		return TUTTI_OK;
	while (atomic_load(pending) && !stop)
		stop = tti_interrupt_cond_wait(&stream->done, &stream->lock, &until_ns) && stops;
	st = atomic_load(pending) ? TUTTI_AGAIN : TUTTI_OK;
	end_waiting(stream);
	return st;
}

tutti_status tti_stream_push(tutti_stream_t stream, struct tti_stream_item *item,
			     tutti_status (*run)(struct tti_stream_item *item))
{
	TTI_TRY(check_alive(stream));
	item->next = NULL;
	item->run = run;
	pthread_mutex_lock(&stream->lock);
	if (is_idle(stream))
		pthread_cond_signal(&stream->queued);
	*stream->end = item;
	stream->end = &item->next;
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
	stream = (struct tutti_stream *)tti_freed_reuse(&freed_streams, KEEP);
	if (stream)
		memset(stream, 0, sizeof(*stream));
	else
		stream = tti_zalloc(sizeof(*stream));
	tti_fork_watch();
	if (!stream || !fill(stream)) {
		put_away(stream);
		return tti_fail(TUTTI_ENOMEM, "stream: out of memory");
	}
	pthread_mutex_init(&stream->lock, NULL);
	tti_cond_init(&stream->queued);
	tti_cond_init(&stream->done);
	stream->end = &stream->first;
	stream->pid = tti_fork_pid();
	st = tti_thread_start(&stream->thread, "tutti-stream", stream_thread, stream);
	if (st != TUTTI_OK) {
		pthread_cond_destroy(&stream->queued);
		pthread_cond_destroy(&stream->done);
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
	TTI_TRY(tti_stream_check_elsewhere(stream->awaited, "tutti_stream_destroy()"));
	atomic_store(&stream->is_destroyed, 1);
	pthread_mutex_lock(&stream->lock);
	stream->closing = true;
	pthread_cond_signal(&stream->queued);
	pthread_mutex_unlock(&stream->lock);
	atomic_fetch_add(&stream->awaited->now, 1);
	pthread_join(stream->thread, NULL);
	pthread_mutex_lock(&stream->awaited->lock);
	stream->awaited->stream = NULL;
	pthread_mutex_unlock(&stream->awaited->lock);
	/* Who began to wait before that finds all done, and has the lock until it knows. */
	pthread_mutex_lock(&stream->lock);
	pthread_mutex_unlock(&stream->lock);
	st = first_error(stream);
	empty(stream);
	pthread_cond_destroy(&stream->queued);
	pthread_cond_destroy(&stream->done);
	pthread_mutex_destroy(&stream->lock);
	tti_freed_keep(&freed_streams, &stream->freed);
	return st;
}

tutti_status tutti_stream_synchronize(tutti_stream_t stream)
{
	int64_t until_ns = 0;
	bool stop = false;
	tutti_status st;

	TTI_TRY(tti_stream_check(stream));
	TTI_TRY(tti_stream_check_elsewhere(stream->awaited, "tutti_stream_synchronize()"));
	atomic_fetch_add(&stream->awaited->now, 1);
	begin_waiting(stream);
	while (!is_idle(stream) && !stop)
		stop = tti_interrupt_cond_wait(&stream->done, &stream->lock, &until_ns);
	st = is_idle(stream) ? first_error(stream) : TUTTI_AGAIN;
	atomic_fetch_sub(&stream->awaited->now, 1);
	end_waiting(stream);
	return st;
}

tutti_status tutti_stream_query(tutti_stream_t stream)
{
	tutti_status st;

	TTI_TRY(tti_stream_check(stream));
	pthread_mutex_lock(&stream->lock);
	st = is_idle(stream) ? first_error(stream) : TUTTI_AGAIN;
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

	TTI_TRY(tti_stream_check(stream));
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
