/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/stream.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/call/stream_impl.h"
#include "core/comm_error.h"
#include "core/device/flight.h"
#include "engine/wait.h"
#include "gpu/cuda_turn.h"
#include "util/fork.h"
#include "util/interrupt.h"
#include "util/mem.h"
#include "util/thread.h"

_Thread_local const struct tutti_stream *tti_stream_calling;

static struct tti_freed_list freed_streams;

/* Streams kept before any is used again. */
#define KEEP 1024

/* Functions that a stream runs while it is being destroyed may queue more. */
static tutti_status check_alive(const struct tutti_stream *stream)
{
	TTI_TRY(tti_fork_check("stream", stream, stream->pid));
	if (atomic_load(&stream->is_destroyed) && tti_stream_calling != stream)
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
	if (atomic_load(&stream->is_destroyed) && tti_stream_calling != stream)
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

/* Allocate what is freed when the stream is destroyed. False: out of memory. */
static bool fill(struct tutti_stream *stream)
{
	stream->awaited = awaited_create(stream);
	stream->outcome = tti_zalloc(sizeof(*stream->outcome));
	if (stream->outcome)
		pthread_mutex_init(&stream->outcome->order, NULL);
	return stream->awaited && stream->outcome;
}

static void empty(struct tutti_stream *stream)
{
	tti_awaited_drop(stream->awaited);
	if (stream->outcome) {
		pthread_mutex_destroy(&stream->outcome->order);
		tti_gpu_turns_close(stream->outcome->turns);
	}
	tti_free(stream->outcome);
	stream->awaited = NULL;
	stream->outcome = NULL;
}

/* A stream that does not run, in memory that old handles may still name. */
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
	return tti_stream_calling;
}

bool tti_stream_is_calling_of(const struct tti_awaited *awaited)
{
	return tti_stream_calling && tti_stream_calling->awaited == awaited;
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

/* -- Running -------------------------------------------------------------------- */

static void note(struct tti_stream_failure *failure, tutti_status status)
{
	if (status >= 0 || failure->status != TUTTI_OK)
		return;
	failure->status = status;
	(void)snprintf(failure->text, sizeof(failure->text), "%s", tti_error_text());
}

/* For the thread. Under the lock. */
static void append(struct tutti_stream *stream, struct tti_stream_item *item)
{
	if (!stream->first)
		pthread_cond_signal(&stream->ready);
	item->next = NULL;
	*stream->end = item;
	stream->end = &item->next;
}

/* There is something. Under the lock. */
static struct tti_stream_item *take_first(struct tutti_stream *stream)
{
	struct tti_stream_item *item = stream->first;

	stream->first = item->next;
	if (!stream->first)
		stream->end = &stream->first;
	return item;
}

/* One item less is queued: wake threads that wait for it, or for all. Under the lock. */
static void count_off(struct tutti_stream *stream, bool is_awaited)
{
	stream->nqueued--;
	if (stream->nwaiting > 0 && (is_awaited || stream->nqueued == 0))
		pthread_cond_broadcast(&stream->done);
}

/* From now on this thread waits for queued work. Takes the lock. */
static void begin_waiting(struct tutti_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->nwaiting++;
	atomic_fetch_add(&stream->awaited->inside, 1);
}

static void end_waiting(struct tutti_stream *stream)
{
	stream->nwaiting--;
	atomic_fetch_sub(&stream->awaited->inside, 1);
	if (atomic_load(&stream->is_destroyed))
		pthread_cond_broadcast(&stream->done);
	pthread_mutex_unlock(&stream->lock);
}

/* Kernels before it in a queue of CUDA have ended: wait until their communicators know that. */
static void await_launched(struct tutti_stream *stream, const struct tti_stream_item *item)
{
	if (!stream->is_cuda)
		return;
	begin_waiting(stream);
	while (stream->outcome->nlanded < item->nlaunched)
		pthread_cond_wait(&stream->done, &stream->lock);
	end_waiting(stream);
}

static void await_turn(struct tutti_stream *stream, struct tti_stream_item *item)
{
	item->reached = tti_gpu_turn_await(stream->outcome->turns, item->turn);
	if (item->reached == TUTTI_OK)
		return;
	pthread_mutex_lock(&stream->lock);
	note(&stream->outcome->first, item->reached);
	note(&stream->outcome->untold, item->reached);
	pthread_mutex_unlock(&stream->lock);
}

void tti_stream_item_check(const struct tti_stream_item *item, struct tti_comm *comm)
{
	if (item->reached != TUTTI_OK)
		tti_comm_notify_failure(comm, TUTTI_EPEER, comm->rank, tti_error_text());
}

/* Run the work that is due. Takes the lock and keeps it: once it is released the stream may end. */
static void run_item(struct tutti_stream *stream, struct tti_stream_item *item)
{
	const bool is_awaited = item->is_awaited;
	tutti_status st;

	if (stream->is_cuda)
		await_turn(stream, item);
	await_launched(stream, item);
	st = item->run(item);
	if (stream->is_cuda)
		tti_gpu_turn_end(stream->outcome->turns);
	else if (stream->release)
		stream->release(stream->queue);
	pthread_mutex_lock(&stream->lock);
	note(&stream->outcome->first, st);
	note(&stream->outcome->untold, st);
	count_off(stream, is_awaited);
}

static void *stream_thread(void *self)
{
	struct tutti_stream *stream = self;

	(void)tti_wait_set_background(&stream->awaited->now);
	tti_thread_low_latency();
	pthread_mutex_lock(&stream->lock);
	while (!stream->closing) {
		if (stream->first) {
			struct tti_stream_item *item = take_first(stream);

			pthread_mutex_unlock(&stream->lock);
			run_item(stream, item);
		} else {
			pthread_cond_wait(&stream->ready, &stream->lock);
		}
	}
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

/* On a thread of the program's queue. In a forked child the queue is the parent's, and nobody may
 * ever release the lock. */
static void take_turn(void *arg)
{
	struct tti_stream_item *item = arg;
	struct tutti_stream *stream = item->stream;
	const _Atomic int *before;

	if (stream->pid != tti_fork_pid())
		return;
	if (stream->release) {
		pthread_mutex_lock(&stream->lock);
		append(stream, item);
		pthread_mutex_unlock(&stream->lock);
		return;
	}
	before = tti_wait_set_background(&stream->awaited->now);
	run_item(stream, item);
	pthread_mutex_unlock(&stream->lock);
	(void)tti_wait_set_background(before);
}

static tutti_status refuse(struct tutti_stream *stream, int error)
{
	pthread_mutex_lock(&stream->lock);
	count_off(stream, false);
	pthread_mutex_unlock(&stream->lock);
	return tti_fail(
		TUTTI_ESYS,
		"the queue of stream %p took no more (its push() returned %d), so nothing was "
		"queued: repeat this when the queue takes more; if it never will, end the "
		"communicator with tutti_comm_abort(), as other ranks may wait for this one",
		(void *)stream, error);
}

static tutti_status start_thread(struct tutti_stream *stream)
{
	const tutti_status st =
		tti_thread_start(&stream->thread, "tutti-stream", stream_thread, stream);

	stream->has_thread = st == TUTTI_OK;
	return st;
}

/* Most streams of CUDA are for kernels alone. Under `order`. */
static tutti_status begin_turns(struct tutti_stream *stream)
{
	if (!stream->outcome->turns)
		TTI_TRY(tti_gpu_turns_open(stream->queue, &stream->outcome->turns));
	return stream->has_thread ? TUTTI_OK : start_thread(stream);
}

static tutti_status push_turn(struct tutti_stream *stream, struct tti_stream_item *item)
{
	tutti_status st;

	pthread_mutex_lock(&stream->outcome->order);
	st = begin_turns(stream);
	if (st == TUTTI_OK)
		st = tti_gpu_turn_add(stream->outcome->turns, &item->turn);
	if (st == TUTTI_OK) {
		pthread_mutex_lock(&stream->lock);
		item->nlaunched = stream->outcome->nlaunched;
		stream->nqueued++;
		append(stream, item);
		pthread_mutex_unlock(&stream->lock);
	}
	pthread_mutex_unlock(&stream->outcome->order);
	return st;
}

tutti_status tti_stream_push(tutti_stream_t stream, struct tti_stream_item *item,
			     tutti_status (*run)(struct tti_stream_item *item))
{
	tutti_stream_push_fn push;
	int error;

	TTI_TRY(check_alive(stream));
	item->stream = stream;
	item->run = run;
	item->reached = TUTTI_OK;
	if (stream->is_cuda)
		return push_turn(stream, item);
	push = stream->push;
	pthread_mutex_lock(&stream->lock);
	stream->nqueued++;
	if (!push)
		append(stream, item);
	pthread_mutex_unlock(&stream->lock);
	if (!push)
		return TUTTI_OK;
	error = push(stream->queue, take_turn, item);
	return error ? refuse(stream, error) : TUTTI_OK;
}

/* -- Streams of CUDA -------------------------------------------------------------- */

bool tti_stream_is_cuda(const struct tutti_stream *stream)
{
	return stream->is_cuda;
}

static void begins(void *self)
{
	struct tutti_stream *stream = self;

	pthread_mutex_lock(&stream->lock);
	stream->outcome->nlaunched++;
	stream->nqueued++;
	pthread_mutex_unlock(&stream->lock);
}

static void landed(void *self, tutti_status status)
{
	struct tutti_stream *stream = self;

	pthread_mutex_lock(&stream->lock);
	note(&stream->outcome->first, status);
	note(&stream->outcome->untold, status);
	stream->outcome->nlanded++;
	stream->nqueued--;
	pthread_cond_broadcast(&stream->done);
	pthread_mutex_unlock(&stream->lock);
}

tutti_status tti_stream_launch(tutti_stream_t stream, struct tti_flight_stream *to,
			       struct tti_flight_told *told)
{
	TTI_TRY(check_alive(stream));
	*to = (struct tti_flight_stream){ .cuda = stream->queue };
	*told = (struct tti_flight_told){ begins, landed, stream, &stream->awaited->inside };
	return TUTTI_OK;
}

/* -- Waiting -------------------------------------------------------------------- */

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

/* -- Streams ------------------------------------------------------------------- */

/* NULL: out of memory. */
static struct tutti_stream *make(const tutti_stream_ops *ops, void *queue)
{
	struct tutti_stream *stream = (struct tutti_stream *)tti_freed_reuse(&freed_streams, KEEP);

	if (stream)
		memset(stream, 0, sizeof(*stream));
	else
		stream = tti_zalloc(sizeof(*stream));
	tti_fork_watch();
	if (!stream || !fill(stream)) {
		put_away(stream);
		return NULL;
	}
	pthread_mutex_init(&stream->lock, NULL);
	tti_cond_init(&stream->ready);
	tti_cond_init(&stream->done);
	stream->end = &stream->first;
	stream->pid = tti_fork_pid();
	stream->queue = queue;
	stream->push = ops->push;
	stream->release = ops->release;
	stream->is_cuda = ops->cuda;
	return stream;
}

static void unmake(struct tutti_stream *stream)
{
	pthread_cond_destroy(&stream->ready);
	pthread_cond_destroy(&stream->done);
	pthread_mutex_destroy(&stream->lock);
	put_away(stream);
}

static tutti_status start(const tutti_stream_ops *ops, void *queue, tutti_stream_t *out)
{
	struct tutti_stream *stream = make(ops, queue);
	tutti_status st = TUTTI_OK;

	if (!stream)
		return tti_fail(TUTTI_ENOMEM, "stream: out of memory");
	if (!stream->is_cuda && (stream->release || !stream->push))
		st = start_thread(stream);
	if (st == TUTTI_OK)
		*out = stream;
	else
		unmake(stream);
	return st;
}

tutti_status tutti_stream_create(tutti_stream_t *out)
{
	const tutti_stream_ops none = TUTTI_STREAM_OPS_INIT;

	if (!out)
		return tti_fail(TUTTI_EINVAL, "out is NULL: pass the address of a tutti_stream_t");
	return start(&none, NULL, out);
}

/* Programs that were compiled with older headers have fewer fields. */
static tutti_status read_ops(const tutti_stream_ops *ops, tutti_stream_ops *out)
{
	const tutti_stream_ops none = TUTTI_STREAM_OPS_INIT;

	*out = none;
	if (ops->size != sizeof(*ops) && ops->size != offsetof(tutti_stream_ops, cuda))
		return tti_fail(TUTTI_EINVAL,
				"tutti_stream_wrap(): ops.size is %zu: fill it with "
				"TUTTI_STREAM_OPS_INIT",
				ops->size);
	memcpy(out, ops, ops->size);
	if (out->push || out->cuda)
		return TUTTI_OK;
	return tti_fail(TUTTI_EINVAL, "tutti_stream_wrap(): ops.push is NULL: a stream without a "
				      "queue of yours is tutti_stream_create()'s");
}

tutti_status tutti_stream_wrap(tutti_stream_t *out, const tutti_stream_ops *ops, void *queue)
{
	tutti_stream_ops all;

	if (!out || !ops)
		return tti_fail(TUTTI_EINVAL, "tutti_stream_wrap(): %s is NULL",
				out ? "ops" : "out");
	TTI_TRY(read_ops(ops, &all));
	return start(&all, queue, out);
}

/* The stream's error as this thread's. Under its lock. */
static tutti_status first_error(const struct tutti_stream *stream)
{
	const struct tti_stream_failure *first = &stream->outcome->first;

	if (first->status == TUTTI_OK)
		return TUTTI_OK;
	return tti_fail_quiet(first->status, "%s", first->text);
}

tutti_status tutti_stream_destroy(tutti_stream_t stream)
{
	tutti_status st;

	if (!stream)
		return TUTTI_OK;
	TTI_TRY(check_alive(stream));
	TTI_TRY(tti_stream_check_elsewhere(stream->awaited, "tutti_stream_destroy()"));
	atomic_store(&stream->is_destroyed, 1);
	atomic_fetch_add(&stream->awaited->now, 1);
	begin_waiting(stream);
	while (stream->nqueued > 0 || stream->nwaiting > 1)
		pthread_cond_wait(&stream->done, &stream->lock);
	stream->closing = true;
	pthread_cond_signal(&stream->ready);
	end_waiting(stream);
	if (stream->has_thread)
		pthread_join(stream->thread, NULL);
	pthread_mutex_lock(&stream->awaited->lock);
	stream->awaited->stream = NULL;
	pthread_mutex_unlock(&stream->awaited->lock);
	/* A thread that waits already finds all done, and holds the lock until it has seen that. */
	pthread_mutex_lock(&stream->lock);
	pthread_mutex_unlock(&stream->lock);
	st = first_error(stream);
	unmake(stream);
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
	while (stream->nqueued > 0 && !stop)
		stop = tti_interrupt_cond_wait(&stream->done, &stream->lock, &until_ns);
	st = stream->nqueued == 0 ? first_error(stream) : TUTTI_AGAIN;
	atomic_fetch_sub(&stream->awaited->now, 1);
	end_waiting(stream);
	return st;
}

tutti_status tutti_stream_query(tutti_stream_t stream)
{
	tutti_status st;

	TTI_TRY(tti_stream_check(stream));
	pthread_mutex_lock(&stream->lock);
	st = stream->nqueued == 0 ? first_error(stream) : TUTTI_AGAIN;
	pthread_mutex_unlock(&stream->lock);
	return st;
}

tutti_status tutti_stream_add_waiters(tutti_stream_t stream, int change)
{
	TTI_TRY(tti_stream_check(stream));
	atomic_fetch_add(&stream->awaited->now, change);
	return TUTTI_OK;
}
