/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/args.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/call/call.h"
#include "core/call/counts.h"
#include "core/comm.h"
#include "core/device/flight.h"
#include "core/handoff/handoff.h"
#include "core/handoff/sides.h"
#include "core/prepare/operators.h"
#include "util/error.h"

/* What can be wrong with a call, found before anything moves. */

static const char *call_name(const struct tti_args *args)
{
	if (args->coll != TUTTI_SEND_RECV)
		return tutti_collective_name(args->coll);
	return args->is_send ? "send" : "recv";
}

void tti_args_format(const struct tti_args *args, const char *sides, char *buf, size_t size)
{
	const struct tti_collective *what = tti_collective_get(args->coll);
	const bool all_know = what->has_counts && !what->by_pairs;
	char count[40] = "", op[TTI_OP_TEXT + 2] = "", other[40] = "", name[TTI_OP_TEXT];

	if ((int)args->coll == TTI_PING_COLL) {
		snprintf(buf, size, "ping(rank %d)", args->root);
		return;
	}
	if (args->coll == TUTTI_BARRIER) {
		snprintf(buf, size, "barrier()");
		return;
	}
	if (!what->by_pairs)
		snprintf(count, sizeof(count), "%zu x ", args->count);
	tti_op_format(args->op, name);
	if (what->takes_op)
		snprintf(op, sizeof(op), ", %s", name);
	if (all_know)
		snprintf(other, sizeof(other), ", counts %08x", (unsigned)args->root);
	else if (tti_collective_is_rooted(args->coll))
		snprintf(other, sizeof(other), ", root %d", args->root);
	else if (args->coll == TUTTI_SEND_RECV)
		snprintf(other, sizeof(other), ", %s %d", args->is_send ? "to" : "from",
			 args->root);
	snprintf(buf, size, "%s(%s%s%s%s%s%s%s)", call_name(args), count,
		 tutti_type_name(args->type), all_know ? " in all" : "", op, other,
		 args->coll == TUTTI_HANDOFF ? ", " : "", args->coll == TUTTI_HANDOFF ? sides : "");
}

/* tutti_op_takes() denies the pair: name the operators that the type has. */
static tutti_status refuse_pair(const struct tti_args *args)
{
	char names[TUTTI_OP_COUNT * 8] = "";
	size_t at = 0;

	for (int op = 0; op < TUTTI_OP_COUNT; op++)
		if (tutti_op_takes((tutti_op)op, args->type))
			at += (size_t)snprintf(names + at, sizeof(names) - at, "%s%s",
					       at ? ", " : "", tutti_op_name((tutti_op)op));
	return tti_fail(TUTTI_EINVAL,
			"%s: there is no %s of %s, whose operators are %s, and those of "
			"tutti_op_create()",
			call_name(args), tutti_op_name(args->op), tutti_type_name(args->type),
			names);
}

static tutti_status check_kind(const struct tti_comm *comm, const struct tti_args *args)
{
	const bool rooted = tti_collective_is_rooted(args->coll) || args->coll == TUTTI_SEND_RECV;

	if (tutti_type_size(args->type) == 0)
		return tti_fail(TUTTI_EINVAL, "%s: there is no type %d: see tutti_type",
				call_name(args), (int)args->type);
	if (tti_collective_takes_op(args->coll) && tti_op_kind(args->op) == TTI_OP_BUILT_IN &&
	    !tutti_op_takes(args->op, args->type))
		return refuse_pair(args);
	if (rooted && (args->root < 0 || args->root >= comm->n))
		return tti_fail(TUTTI_EINVAL, "%s: %s %d of %d ranks: 0 to %d", call_name(args),
				args->coll == TUTTI_SEND_RECV ? "peer" : "root", args->root,
				comm->n, comm->n - 1);
	return TUTTI_OK;
}

void tti_args_range(const struct tti_comm *comm, const struct tti_args *args, bool is_send,
		    struct tti_range *out)
{
	const struct tti_collective *what = tti_collective_get(args->coll);
	const bool has_rows = is_send ? tti_collective_sends_rows(args->coll)
				      : tti_collective_gets_rows(args->coll);

	*out = (struct tti_range){ 0, has_rows ? args->count * (size_t)comm->n : args->count };
	if (what->has_counts) {
		tti_counts_bounds(comm, args, is_send, out);
	} else if (args->coll == TUTTI_HANDOFF) {
		size_t place;

		tti_side_range(is_send ? args->from : args->to, comm->rank, args->count, &place,
			       &out->count);
	} else if ((args->coll == TUTTI_SEND_RECV && args->is_send != is_send) ||
		   ((is_send ? what->input : what->output) == TTI_HOLDER_ROOT &&
		    comm->rank != args->root)) {
		out->count = 0;
	}
}

bool tti_args_in_place(const struct tti_comm *comm, const struct tti_args *args)
{
	const size_t size = tutti_type_size(args->type);
	const uintptr_t send = (uintptr_t)args->send;
	const uintptr_t recv = (uintptr_t)args->recv;
	const size_t own = (size_t)comm->rank * args->count * size;

	if (args->coll == TUTTI_HANDOFF) {
		size_t first_had, first_got, count;

		tti_side_range(args->from, comm->rank, args->count, &first_had, &count);
		tti_side_range(args->to, comm->rank, args->count, &first_got, &count);
		/* Where the whole vector would begin. */
		return send - first_had * size == recv - first_got * size;
	}
	if (tti_has_counts(args->coll))
		return tti_counts_in_place(comm, args);
	return recv == send + tti_collective_in_place(args->coll, own);
}

/* Check one buffer; where it begins, and how long it is. */
static tutti_status check_buffer(const struct tti_comm *comm, const struct tti_args *args,
				 bool is_send, uintptr_t *begin, size_t *nbytes)
{
	const char *which = is_send ? "send" : "receive";
	const uintptr_t buffer = (uintptr_t)(is_send ? args->send : args->recv);
	const size_t size = tutti_type_size(args->type);
	struct tti_range range;

	tti_args_range(comm, args, is_send, &range);
	*begin = buffer + range.first * size;
	*nbytes = range.count * size;
	if (range.count > 0 && !buffer)
		return tti_fail(TUTTI_EINVAL, "%s: the %s buffer of %zu bytes is NULL",
				call_name(args), which, *nbytes);
	if ((range.first + range.count) * size > UINTPTR_MAX - buffer)
		return tti_fail(TUTTI_EINVAL,
				"%s: the %s buffer of %zu bytes goes past the end of memory",
				call_name(args), which, *nbytes);
	return tti_call_is_on_device(comm, args) && range.count > 0
		       ? tti_device_check_buffer(comm->device, call_name(args), which, *begin,
						 *nbytes)
		       : TUTTI_OK;
}

static tutti_status check_buffers(const struct tti_comm *comm, const struct tti_args *args)
{
	uintptr_t send, recv;
	size_t sends, recvs;

	TTI_TRY(check_buffer(comm, args, true, &send, &sends));
	TTI_TRY(check_buffer(comm, args, false, &recv, &recvs));
	if (sends > 0 && recvs > 0 && send < recv + recvs && recv < send + sends &&
	    !tti_args_in_place(comm, args) &&
	    (!tti_has_counts(args->coll) || tti_counts_overlap(comm, args)))
		return tti_fail(TUTTI_EINVAL,
				"%s: the send buffer %p (%zu bytes) and the receive buffer %p (%zu "
				"bytes) overlap but are not in place: see tutti.h",
				call_name(args), (const void *)send, sends, (const void *)recv,
				recvs);
	return tti_has_counts(args->coll) ? tti_counts_check(comm, args) : TUTTI_OK;
}

tutti_status tti_args_find_operator(const struct tti_comm *comm, struct tti_args *args)
{
	if (!tti_collective_takes_op(args->coll))
		return TUTTI_OK;
	if (comm->reproducible)
		args->op = tutti_op_reproducible(args->op);
	return tti_operator_find(&comm->operators, args->op, args->type, call_name(args),
				 &args->custom);
}

struct tti_args tti_args_take(const struct tti_args *args)
{
	(void)tti_sides_take(args->sides);
	(void)tti_operator_take(args->custom);
	(void)tti_counts_take(args->counts);
	return *args;
}

void tti_args_drop(const struct tti_args *args)
{
	tti_sides_drop(args->sides);
	tti_operator_drop(args->custom);
	tti_counts_drop(args->counts);
}

tutti_status tti_args_check(const struct tti_comm *comm, const struct tti_args *args)
{
	size_t total;

	TTI_TRY(check_kind(comm, args));
	if (args->coll == TUTTI_HANDOFF)
		TTI_TRY(tti_sides_check(args->from, args->to, comm->n));
	if (__builtin_mul_overflow(args->count, tutti_type_size(args->type), &total) ||
	    __builtin_mul_overflow(total, (size_t)comm->n, &total) || total > SIZE_MAX / 4)
		return tti_fail(TUTTI_EINVAL, "%s: %zu elements of %s on %d ranks overflow",
				call_name(args), args->count, tutti_type_name(args->type), comm->n);
	return check_buffers(comm, args);
}
