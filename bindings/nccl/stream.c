/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams of CUDA. Where communicators have devices the streams are Tutti's own business. Else
 * cudaLaunchHostFunc() of the CUDA runtime that the process has says when the turn of Tutti's work
 * has come. In Tutti's own runtime that function does the work. In others one
 * thread may call the functions of all streams, so the function only notes the turn, and the stream
 * is held until the work is done. If the process has no runtime, there are no streams but the
 * default ones, on which calls are made at once. */
#include "binding.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

/* One stream of CUDA, for all communicators that use it. */
struct tti_nccl_stream {
	struct tti_nccl_stream *next;
	cudaStream_t stream;              /* never TTI_NCCL_LEGACY, which is NULL, too */
	int device;                       /* of the communicator that used it first */
	bool has_kernels;                 /* as the communicators that use it */
	pthread_t thread;                 /* TTI_NCCL_PER_THREAD: whose it is */
	struct tti_nccl_counter *counter; /* NULL: the runtime is Tutti's */
	tutti_stream_t over;
	struct tti_nccl_lent *users;
};

/* Notes that a communicator uses a stream. */
struct tti_nccl_lent {
	struct tti_nccl_lent *next; /* of the communicator */
	struct tti_nccl_stream *stream;
	ncclComm_t comm;
	struct tti_nccl_lent *next_user; /* of the stream, under the lock of the table */
};

static struct {
	pthread_mutex_t lock;
	struct tti_nccl_stream *first;
} table = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* -- The queue ------------------------------------------------------------------- */

static int push(void *queue, tutti_queue_fn fn, void *arg)
{
	const struct tti_nccl_stream *stream = queue;
	struct tti_nccl_trouble pushed = { "cudaLaunchHostFunc", 0, false };
	const int before = tti_nccl_device_enter(stream->device);

	if (stream->counter)
		tti_nccl_counter_push(stream->counter, stream->stream, tti_nccl_launch(), fn, arg,
				      &pushed);
	else
		pushed.error = tti_nccl_launch()(stream->stream, fn, arg);
	tti_nccl_device_leave(stream->device, before);
	if (pushed.error)
		tti_nccl_thread()->trouble = pushed;
	return pushed.is_made ? 0 : pushed.error;
}

static void release(void *queue)
{
	const struct tti_nccl_stream *stream = queue;

	tti_nccl_counter_release(stream->counter);
}

/* -- The table --------------------------------------------------------------------- */

static bool is_default(cudaStream_t stream)
{
	return !stream || stream == TTI_NCCL_LEGACY || stream == TTI_NCCL_PER_THREAD;
}

/* Each device has a default stream of its own. */
static bool is_same(const struct tti_nccl_stream *entry, cudaStream_t stream, const ncclComm_t comm)
{
	return entry->stream == stream && entry->has_kernels == comm->has_kernels &&
	       (!is_default(stream) || entry->device == comm->device) &&
	       (stream != TTI_NCCL_PER_THREAD || pthread_equal(entry->thread, pthread_self()));
}

static void discard(struct tti_nccl_stream *entry)
{
	(void)tutti_stream_destroy(entry->over);
	tti_nccl_counter_give_back(entry->counter);
	free(entry);
}

/* Under the lock of the table. */
static ncclResult_t create(ncclComm_t comm, cudaStream_t stream, struct tti_nccl_stream **out)
{
	struct tti_nccl_stream *entry = calloc(1, sizeof(*entry));
	tutti_stream_ops ops = TUTTI_STREAM_OPS_INIT;
	ncclResult_t result = ncclSuccess;
	void *queue = entry;

	if (!entry)
		return tti_nccl_fail(comm, ncclSystemError, "a stream: out of memory");
	ops.push = push;
	entry->stream = stream;
	entry->device = comm->device;
	entry->has_kernels = comm->has_kernels;
	entry->thread = pthread_self();
	if (comm->has_kernels) {
		queue = stream;
		ops.cuda = 1;
	} else if (tti_nccl_has_gpus()) {
		ops.release = release;
		result = tti_nccl_counter_take(comm, &entry->counter);
	}
	if (result == ncclSuccess)
		result = tti_nccl_report(comm, tutti_stream_wrap(&entry->over, &ops, queue));
	/* A program waits by functions of CUDA, which Tutti does not see. */
	if (result == ncclSuccess)
		result = tti_nccl_report(comm, tutti_stream_add_waiters(entry->over, 1));
	if (result != ncclSuccess) {
		discard(entry);
		return result;
	}
	entry->next = table.first;
	table.first = entry;
	*out = entry;
	return ncclSuccess;
}

static ncclResult_t take(struct tti_nccl_lent *lent, cudaStream_t stream)
{
	ncclResult_t result = ncclSuccess;
	struct tti_nccl_stream *entry;

	pthread_mutex_lock(&table.lock);
	entry = table.first;
	while (entry && !is_same(entry, stream, lent->comm))
		entry = entry->next;
	if (!entry)
		result = create(lent->comm, stream, &entry);
	if (entry) {
		lent->next_user = entry->users;
		entry->users = lent;
	}
	pthread_mutex_unlock(&table.lock);
	lent->stream = entry;
	return result;
}

/* All that communicators queued there is done, because each waits for its own calls when it
 * ends. */
static void give_back(const struct tti_nccl_lent *lent)
{
	struct tti_nccl_stream *entry = lent->stream, **at = &table.first;
	struct tti_nccl_lent **user = &entry->users;

	pthread_mutex_lock(&table.lock);
	while (*user != lent)
		user = &(*user)->next_user;
	*user = lent->next_user;
	if (entry->users) {
		pthread_mutex_unlock(&table.lock);
		return;
	}
	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	pthread_mutex_unlock(&table.lock);
	if (tutti_stream_add_waiters(entry->over, -1) == TUTTI_OK)
		discard(entry);
}

/* Under the lock of the communicator. */
static ncclResult_t lend(ncclComm_t comm, cudaStream_t stream, tutti_stream_t *out)
{
	struct tti_nccl_lent *lent;
	ncclResult_t result;

	for (lent = comm->streams; lent; lent = lent->next)
		if (is_same(lent->stream, stream, comm)) {
			*out = lent->stream->over;
			return ncclSuccess;
		}
	lent = calloc(1, sizeof(*lent));
	if (!lent)
		return tti_nccl_fail(comm, ncclSystemError, "a stream: out of memory");
	lent->comm = comm;
	result = take(lent, stream);
	if (result != ncclSuccess) {
		free(lent);
		return result;
	}
	lent->next = comm->streams;
	comm->streams = lent;
	*out = lent->stream->over;
	return ncclSuccess;
}

ncclResult_t tti_nccl_stream_of(ncclComm_t comm, cudaStream_t stream, tutti_stream_t *out)
{
	ncclResult_t result;

	*out = NULL;
	if (!tti_nccl_launch() && !comm->has_kernels) {
		if (is_default(stream))
			return ncclSuccess;
		if (!tti_nccl_find_runtime())
			return tti_nccl_fail(
				comm, ncclInvalidArgument,
				"stream %p needs a CUDA runtime: cudaLaunchHostFunc() is not "
				"in this process, so only the default stream can be used",
				(void *)stream);
	}
	pthread_mutex_lock(&comm->lock);
	result = comm->is_alive ? lend(comm, stream == TTI_NCCL_LEGACY ? NULL : stream, out)
				: tti_nccl_fail(comm, ncclInvalidUsage, "the communicator ended");
	pthread_mutex_unlock(&comm->lock);
	return result;
}

tutti_status tti_nccl_streams_query(ncclComm_t comm)
{
	tutti_status status = TUTTI_OK;

	pthread_mutex_lock(&comm->lock);
	for (struct tti_nccl_lent *lent = comm->streams; lent; lent = lent->next)
		if (tutti_stream_query(lent->stream->over) == TUTTI_AGAIN)
			status = TUTTI_AGAIN;
	pthread_mutex_unlock(&comm->lock);
	return status;
}

static bool has_failed(int device)
{
	const int before = tti_nccl_device_enter(device);
	const bool failed = tti_nccl_gpu_has_failed();

	tti_nccl_device_leave(device, before);
	return failed;
}

/* Nobody may use what the GPU has left as data. */
static void revoke_users(const struct tti_nccl_stream *entry)
{
	pthread_mutex_lock(&table.lock);
	for (const struct tti_nccl_lent *user = entry->users; user; user = user->next_user) {
		const tutti_status status = tutti_comm_revoke(user->comm->comm);

		(void)status; /* one that has ended is not asked for data any more */
	}
	pthread_mutex_unlock(&table.lock);
}

void tti_nccl_streams_rescue(ncclComm_t comm)
{
	if (!tti_nccl_has_gpus() || tti_nccl_streams_query(comm) != TUTTI_AGAIN ||
	    !has_failed(comm->device))
		return;
	pthread_mutex_lock(&comm->lock);
	for (struct tti_nccl_lent *lent = comm->streams; lent; lent = lent->next) {
		revoke_users(lent->stream);
		if (lent->stream->counter)
			tti_nccl_counter_drain(lent->stream->counter);
	}
	pthread_mutex_unlock(&comm->lock);
}

static void *watch(void *self)
{
	struct tti_nccl_rescuer *rescuer = self;
	const struct timespec nap = { .tv_nsec = 5000000 };

	while (!atomic_load(&rescuer->is_over)) {
		tti_nccl_streams_rescue(rescuer->comm);
		(void)nanosleep(&nap, NULL);
	}
	return NULL;
}

void tti_nccl_rescuer_begin(struct tti_nccl_rescuer *rescuer, ncclComm_t comm)
{
	*rescuer = (struct tti_nccl_rescuer){ .comm = comm };
	rescuer->is_there = tti_nccl_has_gpus() && comm->comm &&
			    tti_nccl_streams_query(comm) == TUTTI_AGAIN &&
			    pthread_create(&rescuer->thread, NULL, watch, rescuer) == 0;
}

void tti_nccl_rescuer_end(struct tti_nccl_rescuer *rescuer)
{
	if (!rescuer->is_there)
		return;
	atomic_store(&rescuer->is_over, 1);
	(void)pthread_join(rescuer->thread, NULL);
}

/* The communicator says how calls went. */
void tti_nccl_streams_wait(ncclComm_t comm)
{
	for (struct tti_nccl_lent *lent = comm->streams; lent; lent = lent->next) {
		const tutti_status status = tutti_stream_synchronize(lent->stream->over);

		(void)status;
	}
}

void tti_nccl_streams_release(ncclComm_t comm)
{
	struct tti_nccl_lent *lent;

	pthread_mutex_lock(&comm->lock);
	lent = comm->streams;
	comm->streams = NULL;
	pthread_mutex_unlock(&comm->lock);
	while (lent) {
		struct tti_nccl_lent *next = lent->next;

		give_back(lent);
		free(lent);
		lent = next;
	}
}
