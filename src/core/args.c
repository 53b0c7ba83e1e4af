/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <stdio.h>

#include "core/comm.h"
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
	const char *type = tutti_type_name(args->type);
	char op[TTI_OP_TEXT];

	tti_op_format(args->op, op);
	if ((int)args->coll == TTI_PING_COLL) {
		snprintf(buf, size, "ping(rank %d)", args->root);
		return;
	}
	switch (args->coll) {
	case TUTTI_ALL_REDUCE:
	case TUTTI_REDUCE_SCATTER:
		snprintf(buf, size, "%s(%zu x %s, %s)", call_name(args), args->count, type, op);
		break;
	case TUTTI_REDUCE:
		snprintf(buf, size, "reduce(%zu x %s, %s, root %d)", args->count, type, op,
			 args->root);
		break;
	case TUTTI_BROADCAST:
	case TUTTI_GATHER:
	case TUTTI_SCATTER:
		snprintf(buf, size, "%s(%zu x %s, root %d)", call_name(args), args->count, type,
			 args->root);
		break;
	case TUTTI_ALL_GATHER:
	case TUTTI_ALL_TO_ALL:
		snprintf(buf, size, "%s(%zu x %s)", call_name(args), args->count, type);
		break;
	case TUTTI_BARRIER:
		snprintf(buf, size, "barrier()");
		break;
	case TUTTI_SEND_RECV:
		snprintf(buf, size, "%s(%zu x %s, %s %d)", call_name(args), args->count, type,
			 args->is_send ? "to" : "from", args->root);
		break;
	case TUTTI_ALL_TO_ALL_V:
		snprintf(buf, size, "%s(%s)", call_name(args), type);
		break;
	case TUTTI_GATHER_V:
	case TUTTI_SCATTER_V:
		snprintf(buf, size, "%s(%s, root %d)", call_name(args), type, args->root);
		break;
	case TUTTI_ALL_GATHER_V:
		snprintf(buf, size, "%s(%zu x %s in all, counts %08x)", call_name(args),
			 args->count, type, (unsigned)args->root);
		break;
	case TUTTI_REDUCE_SCATTER_V:
		snprintf(buf, size, "%s(%zu x %s in all, %s, counts %08x)", call_name(args),
			 args->count, type, op, (unsigned)args->root);
		break;
	case TUTTI_HANDOFF:
		snprintf(buf, size, "handoff(%zu x %s, %s)", args->count, type, sides);
		break;
	}
}

static tutti_status check_kind(const struct tti_comm *comm, const struct tti_args *args)
{
	const bool rooted = tti_collective_is_rooted(args->coll) || args->coll == TUTTI_SEND_RECV ||
			    args->coll == TUTTI_GATHER_V || args->coll == TUTTI_SCATTER_V;

	if (tutti_type_size(args->type) == 0)
		return tti_fail(TUTTI_EINVAL, "%s: type %d is none: see tutti_type",
				call_name(args), (int)args->type);
	if (rooted && (args->root < 0 || args->root >= comm->n))
		return tti_fail(TUTTI_EINVAL, "%s: %s %d of %d ranks: 0 to %d", call_name(args),
				args->coll == TUTTI_SEND_RECV ? "peer" : "root", args->root,
				comm->n, comm->n - 1);
	return TUTTI_OK;
}

/* What this rank has and gets of a handoff, in elements. */
struct handoff_ranges {
	size_t first_had, has, first_got, gets;
};

static struct handoff_ranges ranges_of(const struct tti_comm *comm, const struct tti_args *args)
{
	struct handoff_ranges r;

	tti_side_range(args->from, comm->rank, args->count, &r.first_had, &r.has);
	tti_side_range(args->to, comm->rank, args->count, &r.first_got, &r.gets);
	return r;
}

void tti_args_extents(const struct tti_comm *comm, const struct tti_args *args, size_t *sends,
		      size_t *recvs)
{
	const size_t one = args->count * tutti_type_size(args->type);
	const size_t all = one * (size_t)comm->n;
	const bool at_root = comm->rank == args->root;

	*sends = *recvs = one;
	if (tti_collective_gets_rows(args->coll))
		*recvs = all;
	if (tti_collective_sends_rows(args->coll))
		*sends = all;
	if ((args->coll == TUTTI_BROADCAST || args->coll == TUTTI_SCATTER) && !at_root)
		*sends = 0;
	if (((args->coll == TUTTI_REDUCE || args->coll == TUTTI_GATHER) && !at_root) ||
	    (args->coll == TUTTI_SEND_RECV && args->is_send))
		*recvs = 0;
	if (args->coll == TUTTI_SEND_RECV && !args->is_send)
		*sends = 0;
	if (args->coll == TUTTI_HANDOFF) {
		const struct handoff_ranges ranges = ranges_of(comm, args);

		*sends = ranges.has * tutti_type_size(args->type);
		*recvs = ranges.gets * tutti_type_size(args->type);
	}
}

static bool is_in_place(const struct tti_comm *comm, const struct tti_args *args)
{
	const uintptr_t send = (uintptr_t)args->send;
	const uintptr_t recv = (uintptr_t)args->recv;
	const size_t own = (size_t)comm->rank * args->count * tutti_type_size(args->type);

	/* Only the root of a gather receives, only that of a scatter sends. */
	if (args->coll == TUTTI_ALL_GATHER || args->coll == TUTTI_GATHER)
		return send == recv + own;
	if (args->coll == TUTTI_REDUCE_SCATTER || args->coll == TUTTI_SCATTER)
		return recv == send + own;
	if (args->coll == TUTTI_HANDOFF) {
		const struct handoff_ranges r = ranges_of(comm, args);
		const size_t size = tutti_type_size(args->type);

		/* Where the whole vector would begin. */
		return send - r.first_had * size == recv - r.first_got * size;
	}
	return send == recv;
}

static tutti_status check_buffers(const struct tti_comm *comm, const struct tti_args *args,
				  size_t sends, size_t recvs)
{
	const uintptr_t send = (uintptr_t)args->send;
	const uintptr_t recv = (uintptr_t)args->recv;

	if (sends > 0 && !args->send)
		return tti_fail(TUTTI_EINVAL, "%s: the send buffer of %zu bytes is NULL",
				call_name(args), sends);
	if (recvs > 0 && !args->recv)
		return tti_fail(TUTTI_EINVAL, "%s: the receive buffer of %zu bytes is NULL",
				call_name(args), recvs);
	if (sends > UINTPTR_MAX - send || recvs > UINTPTR_MAX - recv)
		return tti_fail(TUTTI_EINVAL, "%s: count %zu goes past the end of memory",
				call_name(args), args->count);
	if (sends > 0 && recvs > 0 && send < recv + recvs && recv < send + sends &&
	    !is_in_place(comm, args))
		return tti_fail(TUTTI_EINVAL,
				"%s: the send buffer %p (%zu bytes) and the receive buffer %p (%zu "
				"bytes) overlap but are not in place: see tutti.h",
				call_name(args), args->send, sends, args->recv, recvs);
	return TUTTI_OK;
}

tutti_status tti_args_find_operator(const struct tti_comm *comm, struct tti_args *args)
{
	const bool combines = args->coll == TUTTI_ALL_REDUCE || args->coll == TUTTI_REDUCE ||
			      args->coll == TUTTI_REDUCE_SCATTER ||
			      args->coll == TUTTI_REDUCE_SCATTER_V;

	if (!combines)
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
	size_t sends, recvs, total;

	TTI_TRY(check_kind(comm, args));
	if (args->coll == TUTTI_HANDOFF)
		TTI_TRY(tti_sides_check(args->from, args->to, comm->n));
	if (__builtin_mul_overflow(args->count, tutti_type_size(args->type), &total) ||
	    __builtin_mul_overflow(total, (size_t)comm->n, &total) || total > SIZE_MAX / 4)
		return tti_fail(TUTTI_EINVAL, "%s: %zu elements of %s on %d ranks overflow",
				call_name(args), args->count, tutti_type_name(args->type), comm->n);
	if (tti_has_counts(args->coll))
		return tti_counts_check_buffers(comm, args);
	tti_args_extents(comm, args, &sends, &recvs);
	return check_buffers(comm, args, sends, recvs);
}
