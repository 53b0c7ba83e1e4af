/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/copy.h"

#include <stdlib.h>
#include <string.h>

#include "engine/device.h"
#include "engine/internal.h"
#include "engine/memory.h"
#include "engine/view.h"

#define ILLEGAL_ADDRESS 700 /* of both libraries */

/* The argument of all jobs that are made here. */
struct work {
	union {
		struct tti_cuda_copy copy;
		struct tti_cuda_fill fill;
		struct tti_cuda_call call;
	};
	void *staged;              /* what copy.from is, or NULL */
	bool knows_to, knows_from; /* CUDA knew that memory when the job was made */
};

/* Memory that is freed before the job runs is not touched. */
static int still_there(const struct tti_cuda_place *place, bool was_known)
{
	struct tti_cuda_range range;

	if (!was_known || tti_cuda_memory_find(place->address, &range))
		return TTI_CUDA_OK;
	return tti_cuda_fail(
		ILLEGAL_ADDRESS,
		"%p was freed before what uses it had run; it is to be freed later, or "
		"in the order of the stream (cudaFreeAsync)",
		place->address);
}

static char *row_of(const struct tti_cuda_place *place, char *base, size_t plane, size_t row)
{
	return base + (plane * place->rows + row) * place->pitch;
}

static int run_copy(void *arg)
{
	const struct work *work = arg;
	const struct tti_cuda_copy *copy = &work->copy;
	int bad = still_there(&copy->to, work->knows_to);

	if (!bad)
		bad = still_there(&copy->from, work->knows_from);
	if (bad)
		return bad;
	char *to = tti_cuda_memory_reach(copy->to.address);
	char *from = tti_cuda_memory_reach(copy->from.address);

	for (size_t plane = 0; plane < copy->depth; plane++)
		for (size_t row = 0; row < copy->height; row++)
			memmove(row_of(&copy->to, to, plane, row),
				row_of(&copy->from, from, plane, row), copy->width);
	return TTI_CUDA_OK;
}

static bool is_of_a_device(const void *address)
{
	struct tti_cuda_range range;

	return tti_cuda_memory_find(address, &range) && range.type == TTI_CUDA_DEVICE;
}

static void fill_row(char *to, const struct tti_cuda_fill *fill)
{
	if (fill->element == 1) {
		memset(to, (int)(fill->value & 0xff), fill->width);
		return;
	}
	for (size_t i = 0; i < fill->width; i++)
		memcpy(to + i * fill->element, &fill->value, fill->element);
}

static int run_fill(void *arg)
{
	const struct work *work = arg;
	const struct tti_cuda_fill *fill = &work->fill;
	const int bad = still_there(&fill->to, work->knows_to);

	if (bad)
		return bad;
	const bool is_zero = !fill->value && is_of_a_device(fill->to.address);
	char *to = tti_cuda_memory_reach(fill->to.address);

	for (size_t plane = 0; plane < fill->depth; plane++)
		for (size_t row = 0; row < fill->height; row++) {
			char *const at = row_of(&fill->to, to, plane, row);

			if (is_zero)
				tti_cuda_view_zero(at, fill->width * fill->element);
			else
				fill_row(at, fill);
		}
	return TTI_CUDA_OK;
}

static int run_call(void *arg)
{
	const struct tti_cuda_call *call = &((const struct work *)arg)->call;

	tti_cuda_host_begin();
	call->function(call->user);
	tti_cuda_host_end();
	return TTI_CUDA_OK;
}

static void drop_work(void *arg)
{
	struct work *work = arg;

	free(work->staged);
	free(work);
}

static int make_job(const struct work *model, int (*run)(void *), int kind,
		    struct tti_cuda_job *out)
{
	struct work *work = malloc(sizeof(*work));

	if (!work)
		return tti_cuda_fail(TTI_CUDA_ENOMEM, "no memory for a job of a stream");
	*work = *model;
	*out = (struct tti_cuda_job){ .run = run, .drop = drop_work, .arg = work, .kind = kind };
	return TTI_CUDA_OK;
}

/* From the first byte of a box to behind the last one. False if no address is so great. */
static bool span_of(const struct tti_cuda_place *place, size_t width, size_t height, size_t depth,
		    size_t *out)
{
	size_t rows, bytes;

	return !__builtin_mul_overflow(depth - 1, place->rows, &rows) &&
	       !__builtin_add_overflow(rows, height - 1, &rows) &&
	       !__builtin_mul_overflow(rows, place->pitch, &bytes) &&
	       !__builtin_add_overflow(bytes, width, out);
}

static int check_place(const struct tti_cuda_place *place, size_t width, size_t height,
		       size_t depth, const char *which)
{
	size_t span;

	if (!place->address)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "the %s is NULL", which);
	if ((height > 1 || depth > 1) && place->pitch < width)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "the %s has rows of %zu bytes, of which %zu are meant", which,
				     place->pitch, width);
	if (depth > 1 && place->rows < height)
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "the %s has planes of %zu rows, of which %zu are meant", which,
				     place->rows, height);
	if (!span_of(place, width, height, depth, &span))
		return tti_cuda_fail(TTI_CUDA_EINVAL, "the %s is greater than all memory", which);
	return TTI_CUDA_OK;
}

static bool copy_is_empty(const struct tti_cuda_copy *copy)
{
	return !copy->width || !copy->height || !copy->depth;
}

static int check_copy(const struct tti_cuda_copy *copy)
{
	int rc = check_place(&copy->to, copy->width, copy->height, copy->depth, "target");

	if (!rc)
		rc = check_place(&copy->from, copy->width, copy->height, copy->depth, "source");
	for (size_t plane = 0; !rc && plane < copy->depth; plane++)
		for (size_t row = 0; !rc && row < copy->height; row++)
			rc = tti_cuda_memory_check_copy(
				row_of(&copy->to, copy->to.address, plane, row),
				row_of(&copy->from, copy->from.address, plane, row), copy->width,
				copy->kind);
	return rc;
}

static int check_fill(const struct tti_cuda_fill *fill)
{
	size_t nbytes;

	if (fill->element != 1 && fill->element != 2 && fill->element != 4)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "elements of %u bytes: 1, 2 or 4",
				     fill->element);
	if (__builtin_mul_overflow(fill->width, fill->element, &nbytes))
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%zu elements are greater than all memory",
				     fill->width);
	if ((uintptr_t)fill->to.address % fill->element ||
	    ((fill->height > 1 || fill->depth > 1) && fill->to.pitch % fill->element))
		return tti_cuda_fail(TTI_CUDA_EINVAL,
				     "the target %p, rows of %zu bytes, is no multiple of %u bytes",
				     fill->to.address, fill->to.pitch, fill->element);
	int rc = check_place(&fill->to, nbytes, fill->height, fill->depth, "target");

	for (size_t plane = 0; !rc && plane < fill->depth; plane++)
		for (size_t row = 0; !rc && row < fill->height; row++)
			rc = tti_cuda_memory_check(row_of(&fill->to, fill->to.address, plane, row),
						   nbytes);
	return rc;
}

/* Memory that CUDA does not know. */
static bool is_pageable(const void *address)
{
	struct tti_cuda_range range;

	return !tti_cuda_memory_find(address, &range);
}

/* Read the source now. */
static int stage(struct work *work)
{
	struct tti_cuda_copy *copy = &work->copy;
	const struct tti_cuda_place from = copy->from;
	const struct tti_cuda_place staged = { .pitch = copy->width, .rows = copy->height };
	char *bytes = malloc(copy->width * copy->height * copy->depth);

	if (!bytes)
		return tti_cuda_fail(
			TTI_CUDA_ENOMEM,
			"no memory for the source of a copy, %zu x %zu x %zu bytes; host memory "
			"of cudaHostAlloc() needs none",
			copy->width, copy->height, copy->depth);
	for (size_t plane = 0; plane < copy->depth; plane++)
		for (size_t row = 0; row < copy->height; row++)
			memcpy(row_of(&staged, bytes, plane, row),
			       row_of(&from, from.address, plane, row), copy->width);
	work->staged = bytes;
	copy->from = staged;
	copy->from.address = bytes;
	return TTI_CUDA_OK;
}

static int make_copy(struct work *work, struct tti_cuda_job *out)
{
	work->knows_to = !is_pageable(work->copy.to.address);
	work->knows_from = !is_pageable(work->copy.from.address);
	return make_job(work, run_copy, TTI_CUDA_NODE_COPY, out);
}

static int push_copy(struct work *work, struct tti_cuda_stream *stream)
{
	struct tti_cuda_job job;
	const int rc = make_copy(work, &job);

	if (rc) {
		free(work->staged);
		return rc;
	}
	return tti_cuda_stream_push(stream, &job);
}

struct tti_cuda_copy tti_cuda_copy_of(void *to, const void *from, size_t nbytes, int kind)
{
	return (struct tti_cuda_copy){
		.to = { to, nbytes, 1 },
		.from = { (void *)(uintptr_t)from, nbytes, 1 },
		.width = nbytes,
		.height = 1,
		.depth = 1,
		.kind = kind,
	};
}

int tti_cuda_batch_check(const char *what, size_t ncopies, const size_t *starts, size_t nattributes,
			 struct tti_cuda_stream *stream)
{
	if (tti_cuda_stream_capture(stream))
		return tti_cuda_fail(TTI_CUDA_ECAPTURE,
				     "%s: not in a stream that is captured, as a batch is no node",
				     what);
	if (!ncopies || !nattributes || !starts || starts[0])
		return tti_cuda_fail(
			TTI_CUDA_EINVAL,
			"%s: %zu copies, %zu attributes of which the first is of copy 0: "
			"none may be missing",
			what, ncopies, nattributes);
	for (size_t k = 1; k < nattributes; k++)
		if (starts[k] <= starts[k - 1] || starts[k] >= ncopies)
			return tti_cuda_fail(
				TTI_CUDA_EINVAL,
				"%s: attribute %zu is of copy %zu on, of %zu, and the one "
				"before of copy %zu on",
				what, k, starts[k], ncopies, starts[k - 1]);
	if (tti_cuda_stream_role(stream) == TTI_CUDA_STREAM_LEGACY)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "%s: not in the legacy default stream", what);
	return TTI_CUDA_OK;
}

int tti_cuda_copy_queue(const struct tti_cuda_copy *copy, struct tti_cuda_stream *stream)
{
	struct work work = { .copy = *copy };

	if (copy_is_empty(copy))
		return TTI_CUDA_OK;
	const int bad = check_copy(copy);

	if (bad)
		return bad;
	if (tti_cuda_stream_capture(stream))
		return push_copy(&work, stream);
	const bool waits = is_pageable(copy->to.address);

	if (!waits && is_pageable(copy->from.address)) {
		const int rc = stage(&work);

		if (rc)
			return rc;
	}
	const int rc = push_copy(&work, stream);

	return rc || !waits ? rc : tti_cuda_stream_wait(stream);
}

int tti_cuda_copy_wait(const struct tti_cuda_copy *copy, struct tti_cuda_stream *stream)
{
	struct work work = { .copy = *copy };
	int rc;

	if (copy_is_empty(copy))
		return TTI_CUDA_OK;
	rc = check_copy(copy);
	if (rc)
		return rc;
	const bool waits = !is_of_a_device(copy->to.address) || !is_of_a_device(copy->from.address);

	rc = push_copy(&work, stream);
	return rc || !waits ? rc : tti_cuda_stream_wait(stream);
}

static int fail_empty(void)
{
	return tti_cuda_fail(TTI_CUDA_EINVAL, "a node copies or sets 0 bytes: leave it out");
}

int tti_cuda_copy_job(const struct tti_cuda_copy *copy, struct tti_cuda_job *out)
{
	struct work work = { .copy = *copy };
	const int bad = copy_is_empty(copy) ? fail_empty() : check_copy(copy);

	return bad ? bad : make_copy(&work, out);
}

static bool fill_is_empty(const struct tti_cuda_fill *fill)
{
	return !fill->width || !fill->height || !fill->depth;
}

int tti_cuda_fill_job(const struct tti_cuda_fill *fill, struct tti_cuda_job *out)
{
	const struct work work = { .fill = *fill, .knows_to = !is_pageable(fill->to.address) };
	const int bad = fill_is_empty(fill) ? fail_empty() : check_fill(fill);

	return bad ? bad : make_job(&work, run_fill, TTI_CUDA_NODE_SET, out);
}

int tti_cuda_fill_queue(const struct tti_cuda_fill *fill, struct tti_cuda_stream *stream)
{
	struct tti_cuda_job job;

	if (fill_is_empty(fill))
		return TTI_CUDA_OK;
	const int rc = tti_cuda_fill_job(fill, &job);

	return rc ? rc : tti_cuda_stream_push(stream, &job);
}

int tti_cuda_fill_wait(const struct tti_cuda_fill *fill, struct tti_cuda_stream *stream)
{
	const int rc = tti_cuda_fill_queue(fill, stream);

	if (rc || fill_is_empty(fill) || is_of_a_device(fill->to.address))
		return rc;
	return tti_cuda_stream_wait(stream);
}

int tti_cuda_call_job(const struct tti_cuda_call *call, struct tti_cuda_job *out)
{
	const struct work work = { .call = *call };

	if (!call->function)
		return tti_cuda_fail(TTI_CUDA_EINVAL, "a host function that is NULL");
	return make_job(&work, run_call, TTI_CUDA_NODE_HOST, out);
}

int tti_cuda_call_queue(const struct tti_cuda_call *call, struct tti_cuda_stream *stream)
{
	struct tti_cuda_job job;
	const int rc = tti_cuda_call_job(call, &job);

	return rc ? rc : tti_cuda_stream_push(stream, &job);
}

bool tti_cuda_job_is_like(const struct tti_cuda_job *job, const struct tti_cuda_job *other)
{
	const struct work *work = job->arg, *second = other->arg;

	if (job->run != other->run)
		return true; /* not made here, or changed by who made it */
	if (job->run == run_fill)
		return (work->fill.height > 1) == (second->fill.height > 1);
	return job->run != run_copy ||
	       (is_of_a_device(work->copy.to.address) == is_of_a_device(second->copy.to.address) &&
		is_of_a_device(work->copy.from.address) ==
			is_of_a_device(second->copy.from.address));
}

static const struct work *work_of(const struct tti_cuda_node *node, int kind)
{
	return tti_cuda_node_kind(node) == kind ? tti_cuda_node_arg(node) : NULL;
}

const struct tti_cuda_copy *tti_cuda_node_copy(const struct tti_cuda_node *node)
{
	const struct work *work = work_of(node, TTI_CUDA_NODE_COPY);

	return work ? &work->copy : NULL;
}

const struct tti_cuda_fill *tti_cuda_node_fill(const struct tti_cuda_node *node)
{
	const struct work *work = work_of(node, TTI_CUDA_NODE_SET);

	return work ? &work->fill : NULL;
}

const struct tti_cuda_call *tti_cuda_node_call(const struct tti_cuda_node *node)
{
	const struct work *work = work_of(node, TTI_CUDA_NODE_HOST);

	return work ? &work->call : NULL;
}
