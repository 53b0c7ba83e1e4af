/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions of the program in a stream. */
#include "core/call/group.h"
#include "core/call/stream_impl.h"
#include "util/mem.h"

struct call {
	struct tti_stream_item item;
	tutti_stream_fn fn;
	void *arg;
};

/* An error is returned once. */
static tutti_status run_call(struct tti_stream_item *item)
{
	struct call *call = (struct call *)item;
	struct tti_stream_failure *untold = &item->stream->outcome->untold;
	const struct tutti_stream *before = tti_stream_calling;
	tutti_status status;

	pthread_mutex_lock(&item->stream->lock);
	status = untold->status;
	tti_error_set(status == TUTTI_OK ? NULL : untold->text);
	untold->status = TUTTI_OK;
	pthread_mutex_unlock(&item->stream->lock);
	tti_stream_calling = item->stream;
	call->fn(status, call->arg);
	tti_stream_calling = before;
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
	*call = (struct call){ .fn = fn, .arg = arg };
	st = tti_stream_push(stream, &call->item, run_call);
	if (st != TUTTI_OK)
		tti_free(call);
	return st;
}
