/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of pools and of graphs: allocated, and freed in streams. */
#include "engine/pool.h"

#include <stdlib.h>

#include "engine/arena.h"
#include "engine/graph.h"
#include "engine/internal.h"
#include "engine/pool_impl.h"
#include "engine/reclaim.h"

/* -- Allocations -------------------------------------------------------------------------- */

static bool fits(const struct tti_cuda_allocation *self, size_t nbytes)
{
	const uint64_t wanted = tti_cuda_file_round(nbytes);

	/* At most half of it is wasted, and large ones are aligned. */
	return self->block->nbytes >= wanted && self->block->nbytes / 2 <= wanted &&
	       (nbytes < TTI_CUDA_GRANULARITY || self->block->offset % TTI_CUDA_GRANULARITY == 0);
}

/* Locked. In bytes that were asked for, as CUDA counts them. */
static void count_used(struct tti_cuda_pool *pool, uint64_t nbytes)
{
	pool->used += nbytes;
	if (pool->used > pool->used_high)
		pool->used_high = pool->used;
}

/* Locked. Freed in this stream before, so what comes there is behind all that used it. */
static struct tti_cuda_allocation *reuse_queued(struct tti_cuda_pool *pool, size_t nbytes,
						uint64_t stream)
{
	struct tti_cuda_allocation *self = pool->queued;

	while (self && !(self->freed_in == stream && fits(self, nbytes)))
		self = self->next;
	if (!self)
		return NULL;
	tti_cuda_pool_unlink(&pool->queued, self);
	self->is_freed = false;
	pool->used -= self->span.nbytes;
	count_used(pool, nbytes);
	self->span.nbytes = nbytes;
	tti_cuda_allocation_renew(self);
	return self;
}

/* Locked. All streams have come to where it was freed. */
static struct tti_cuda_allocation *reuse_kept(struct tti_cuda_pool *pool, size_t nbytes,
					      uint64_t stream)
{
	struct tti_cuda_allocation *best = NULL;

	for (struct tti_cuda_allocation *each = pool->kept; each; each = each->next)
		if (fits(each, nbytes) &&
		    (pool->reuse[TTI_CUDA_REUSE_OTHERS] || each->freed_in == stream) &&
		    (!best || each->block->nbytes < best->block->nbytes))
			best = each;
	if (!best)
		return NULL;
	best->span.nbytes = nbytes;
	if (tti_cuda_allocation_add(best))
		return NULL;
	tti_cuda_pool_unlink(&pool->kept, best);
	pool->nlive++;
	count_used(pool, nbytes);
	return best;
}

/* New memory of the device. The pool can't end meanwhile, as it has one more allocation. */
static int take_new(struct tti_cuda_pool *pool, size_t nbytes, struct tti_cuda_allocation **out)
{
	const struct tti_cuda_allocation wanted = {
		.span = { .nbytes = nbytes },
		.origin = TTI_CUDA_FROM_POOL,
		.device = pool->device,
		.pool = pool,
	};
	int error = tti_cuda_allocation_take(&wanted, out);

	tti_cuda_lock_write();
	if (error) {
		pool->nlive--;
		tti_cuda_pool_end_if_unused(pool);
	} else {
		count_used(pool, nbytes);
		pool->reserved += (*out)->block->nbytes;
		if (pool->reserved > pool->reserved_high)
			pool->reserved_high = pool->reserved;
	}
	tti_cuda_unlock();
	return error;
}

static int alloc_now(struct tti_cuda_pool *pool, size_t nbytes, struct tti_cuda_stream *stream,
		     struct tti_cuda_allocation **out)
{
	struct tti_cuda_allocation *self = NULL;
	int error;

	tti_cuda_lock_write();
	error = tti_cuda_pool_check(pool);
	if (!error && pool->most && (nbytes > pool->most || pool->used > pool->most - nbytes))
		error = tti_cuda_fail(
			TTI_CUDA_ENOMEM, "%zu bytes of a pool that has %llu of %llu in use", nbytes,
			(unsigned long long)pool->used, (unsigned long long)pool->most);
	if (!error) {
		self = reuse_queued(pool, nbytes, tti_cuda_stream_id(stream));
		if (!self)
			self = reuse_kept(pool, nbytes, tti_cuda_stream_id(stream));
		if (!self)
			pool->nlive++;
	}
	tti_cuda_unlock();
	if (!error && !self)
		error = take_new(pool, nbytes, &self);
	*out = self;
	return error;
}

/* -- In graphs ---------------------------------------------------------------------------- */

static int run_alloc(void *arg)
{
	struct tti_cuda_allocation *const self = arg;

	tti_cuda_lock_write();
	self->is_freed = false;
	tti_cuda_unlock();
	return 0;
}

static void drop_alloc(void *arg)
{
	struct tti_cuda_allocation *const self = arg;

	if (tti_cuda_memory_is_gone())
		return;
	tti_cuda_lock_write();
	tti_cuda_allocation_remove(self);
	tti_cuda_unlock();
	tti_cuda_allocation_free(self);
}

static int alloc_in_graph(const struct tti_cuda_pool *pool, size_t nbytes,
			  struct tti_cuda_stream *stream, void **out)
{
	struct tti_cuda_allocation wanted = {
		.span = { .nbytes = nbytes },
		.origin = TTI_CUDA_FROM_GRAPH,
	};
	struct tti_cuda_job job = { run_alloc, drop_alloc, NULL, TTI_CUDA_NODE_ALLOC, NULL };
	struct tti_cuda_allocation *self;
	void *address;
	int error;

	tti_cuda_lock_read();
	error = tti_cuda_pool_check(pool);
	if (!error)
		wanted.device = pool->device;
	tti_cuda_unlock();
	if (!error)
		error = tti_cuda_allocation_take(&wanted, &self);
	if (error)
		return error;
	address = self->span.base;
	tti_cuda_lock_write();
	self->is_freed = true; /* until a launch allocates it */
	tti_cuda_unlock();
	job.arg = self;
	error = tti_cuda_stream_push(stream, &job);
	if (!error)
		*out = address;
	return error;
}

static bool is_captured(struct tti_cuda_stream *stream)
{
	struct tti_cuda_capture_info info;

	tti_cuda_capture_get(stream, &info);
	return info.state != TTI_CUDA_CAPTURE_NONE;
}

int tti_cuda_pool_alloc(struct tti_cuda_pool *pool, size_t nbytes, struct tti_cuda_stream *stream,
			void **out)
{
	struct tti_cuda_allocation *self;
	int error = tti_cuda_memory_begin();

	if (error)
		return error;
	*out = NULL;
	if (!pool)
		pool = tti_cuda_pool_current(tti_cuda_stream_device(stream));
	if (!pool)
		return TTI_CUDA_ENOMEM;
	if (nbytes == 0)
		return 0;
	if (is_captured(stream))
		return alloc_in_graph(pool, nbytes, stream, out);
	error = tti_cuda_capture_forbids("cudaMallocAsync() in a stream that is not captured");
	if (error)
		return error;
	error = alloc_now(pool, nbytes, stream, &self);
	if (!error)
		*out = self->span.base;
	return error;
}

/* -- Frees -------------------------------------------------------------------------------- */

/* Memory may be given away before the job runs, and has another id then. */
struct release {
	void *address;
	uint64_t id;
};

/* Locked. */
static struct tti_cuda_allocation *find_released(const struct release *release)
{
	struct tti_cuda_allocation *const self = tti_cuda_allocation_find(release->address, 1);

	return self && self->id == release->id ? self : NULL;
}

static int fail_twice(const void *address)
{
	return tti_cuda_fail(TTI_CUDA_EINVAL,
			     "free: the memory at %p of a graph is freed already, and was not "
			     "allocated again by a launch",
			     address);
}

/* Free memory that a graph has: it stays the graph's. */
static int run_free_of_graph(void *arg)
{
	const struct release *const release = arg;
	struct tti_cuda_allocation *self;
	int error = 0;

	tti_cuda_lock_write();
	self = find_released(release);
	if (!self || self->is_freed)
		error = fail_twice(release->address);
	else
		self->is_freed = true;
	tti_cuda_unlock();
	return error;
}

static int run_free(void *arg)
{
	struct tti_cuda_allocation *self;

	tti_cuda_lock_write();
	self = find_released(arg);
	if (self) {
		if (self->pool)
			tti_cuda_pool_unlink(&self->pool->queued, self);
		if (self->is_exported)
			tti_cuda_arena_publish(self->device, self->block, 0);
		tti_cuda_allocation_remove(self);
	}
	tti_cuda_unlock();
	if (self && self->pool)
		tti_cuda_pool_keep(self);
	else if (self)
		tti_cuda_allocation_free(self);
	return 0;
}

/* Locked. Marks it. */
static int begin_free(void *address, uint64_t stream, bool captured,
		      struct tti_cuda_allocation **out)
{
	struct tti_cuda_allocation *const self = tti_cuda_allocation_find(address, 1);
	int error = tti_cuda_memory_check_free(address, self);
	char name[128];

	*out = self;
	if (error)
		return error;
	if (self->type != TTI_CUDA_DEVICE || (captured && self->origin != TTI_CUDA_FROM_GRAPH))
		return tti_cuda_fail(TTI_CUDA_EINVAL, "free in a stream%s: %s cannot be freed so",
				     captured ? " that is captured" : "",
				     tti_cuda_allocation_name(self, name));
	if (captured && self->is_free_captured)
		return fail_twice(address);
	self->freed_in = stream;
	if (captured)
		self->is_free_captured = true;
	else if (self->origin != TTI_CUDA_FROM_GRAPH)
		self->is_freed = true;
	return 0;
}

/* The job is queued, or that failed. It may have run since. */
static void end_free(const struct release *release, bool captured, bool failed)
{
	struct tti_cuda_allocation *self;

	tti_cuda_lock_write();
	self = find_released(release);
	if (self && failed && captured)
		self->is_free_captured = false;
	else if (self && failed && self->origin != TTI_CUDA_FROM_GRAPH)
		self->is_freed = false;
	else if (self && !failed && self->pool) {
		self->next = self->pool->queued;
		self->pool->queued = self;
	}
	tti_cuda_unlock();
}

int tti_cuda_pool_free(void *address, struct tti_cuda_stream *stream)
{
	struct tti_cuda_job job = { run_free, free, NULL, TTI_CUDA_NODE_FREE, NULL };
	struct tti_cuda_allocation *self;
	struct release release;
	bool captured;
	int error = tti_cuda_memory_begin();

	if (error || !address)
		return error;
	job.arg = malloc(sizeof(release));
	if (!job.arg)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "this host is out of memory");
	captured = is_captured(stream);
	tti_cuda_lock_write();
	error = begin_free(address, tti_cuda_stream_id(stream), captured, &self);
	if (!error) {
		release = (struct release){ address, self->id };
		if (self->origin == TTI_CUDA_FROM_GRAPH)
			job.run = run_free_of_graph;
	}
	tti_cuda_unlock();
	if (error) {
		free(job.arg);
		return error;
	}
	*(struct release *)job.arg = release;
	error = tti_cuda_stream_push(stream, &job);
	end_free(&release, captured, error != 0);
	return error;
}
