/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/staged.h"

#include "core/call/args.h"
#include "core/call/call.h"
#include "core/comm.h"
#include "core/device/bounce.h"
#include "core/device/flight.h"
#include "core/stall.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/span.h"

struct tti_staged {
	struct tti_comm *comm;
	struct tti_args args;
	/* In place there is one buffer, from the lower address on. */
	struct tti_bounce send, recv;
	size_t nrecv; /* bytes */
};

/* Where a buffer of the call begins, and its bytes. */
static uintptr_t begin_of(const struct tti_comm *comm, const struct tti_args *args, bool is_send,
			  size_t *nbytes)
{
	const size_t size = tutti_type_size(args->type);
	struct tti_range range;

	tti_args_range(comm, args, is_send, &range);
	*nbytes = range.count * size;
	return (uintptr_t)(is_send ? args->send : args->recv) + range.first * size;
}

static tutti_status open_buffers(struct tti_comm *comm, struct tti_staged *staged)
{
	struct tti_args *args = &staged->args;
	size_t nsend, nrecv;
	const uintptr_t send = begin_of(comm, args, true, &nsend);
	const uintptr_t recv = begin_of(comm, args, false, &nrecv);

	if (nsend > 0 && nrecv > 0 && tti_spans_overlap(send, nsend, recv, nrecv)) {
		const uintptr_t begin = send < recv ? send : recv;
		const uintptr_t end = send + nsend > recv + nrecv ? send + nsend : recv + nrecv;

		staged->nrecv = end - begin;
		TTI_TRY(tti_bounce_open(comm, (const void *)begin, staged->nrecv, true,
					&staged->recv));
		args->send = (char *)staged->recv.host + ((uintptr_t)args->send - begin);
		args->recv = (char *)staged->recv.host + ((uintptr_t)args->recv - begin);
		return TUTTI_OK;
	}
	staged->nrecv = nrecv;
	TTI_TRY(tti_bounce_open(comm, (const void *)send, nsend, true, &staged->send));
	TTI_TRY(tti_bounce_open(comm, (const void *)recv, nrecv, false, &staged->recv));
	if (nsend > 0)
		args->send = (char *)staged->send.host + ((uintptr_t)args->send - send);
	if (nrecv > 0)
		args->recv = (char *)staged->recv.host + ((uintptr_t)args->recv - recv);
	return TUTTI_OK;
}

tutti_status tti_staged_open(struct tti_comm *comm, const struct tti_args **args,
			     struct tti_staged **out)
{
	struct tti_staged *staged;
	tutti_status st;

	*out = NULL;
	if (!comm->device || (*args)->part_of || tti_call_is_on_device(comm, *args))
		return TUTTI_OK;
	/* What graphs repeat has no number, but messages that are on their way. */
	tti_flights_await(comm);
	staged = tti_zalloc(sizeof(*staged));
	if (!staged)
		return tti_fail(TUTTI_ENOMEM, "a call on the host: out of memory");
	staged->comm = comm;
	staged->args = **args;
	st = open_buffers(comm, staged);
	if (st != TUTTI_OK) {
		tti_bounce_close(&staged->send);
		tti_free(staged);
		return st;
	}
	*args = &staged->args;
	*out = staged;
	return TUTTI_OK;
}

tutti_status tti_staged_close(struct tti_staged *staged, tutti_status status)
{
	if (!staged)
		return status;
	/* Calls behind this one in a stream take its result to others. */
	if (status == TUTTI_OK)
		status = tti_stall_settle(staged->comm,
					  tti_bounce_store(&staged->recv, staged->nrecv), -1);
	tti_bounce_close(&staged->send);
	tti_bounce_close(&staged->recv);
	tti_free(staged);
	return status;
}
