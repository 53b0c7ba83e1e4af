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

void tti_args_format(const struct tti_args *args, char *buf, size_t size)
{
	const char *type = tutti_type_name(args->type);

	switch (args->coll) {
	case TUTTI_ALL_REDUCE:
	case TUTTI_REDUCE_SCATTER:
		snprintf(buf, size, "%s(%zu x %s, %s)", call_name(args), args->count, type,
			 tutti_op_name(args->op));
		break;
	case TUTTI_REDUCE:
		snprintf(buf, size, "reduce(%zu x %s, %s, root %d)", args->count, type,
			 tutti_op_name(args->op), args->root);
		break;
	case TUTTI_BROADCAST:
		snprintf(buf, size, "broadcast(%zu x %s, root %d)", args->count, type, args->root);
		break;
	case TUTTI_ALL_GATHER:
		snprintf(buf, size, "all_gather(%zu x %s)", args->count, type);
		break;
	case TUTTI_BARRIER:
		snprintf(buf, size, "barrier()");
		break;
	case TUTTI_SEND_RECV:
		snprintf(buf, size, "%s(%zu x %s, %s %d)", call_name(args), args->count, type,
			 args->is_send ? "to" : "from", args->root);
		break;
	case TUTTI_HANDOFF:
	case TUTTI_ALL_TO_ALL:
	case TUTTI_GATHER:
	case TUTTI_SCATTER:
	case TUTTI_ALL_TO_ALL_V:
	case TUTTI_GATHER_V:
	case TUTTI_SCATTER_V:
	case TUTTI_ALL_GATHER_V:
	case TUTTI_REDUCE_SCATTER_V:
		snprintf(buf, size, "%s()", call_name(args));
		break;
	}
}

static tutti_status check_kind(const struct tti_comm *comm, const struct tti_args *args)
{
	const bool rooted = args->coll == TUTTI_BROADCAST || args->coll == TUTTI_REDUCE ||
			    args->coll == TUTTI_SEND_RECV;

	if (tutti_type_size(args->type) == 0)
		return tti_fail(TUTTI_EINVAL, "%s: type %d is none: see tutti_type",
				call_name(args), (int)args->type);
	if ((unsigned)args->op >= TUTTI_OP_COUNT)
		return tti_fail(TUTTI_EINVAL, "%s: operation %d is none: see tutti_op",
				call_name(args), (int)args->op);
	if (rooted && (args->root < 0 || args->root >= comm->n))
		return tti_fail(TUTTI_EINVAL, "%s: %s %d of %d ranks: 0 to %d", call_name(args),
				args->coll == TUTTI_SEND_RECV ? "peer" : "root", args->root,
				comm->n, comm->n - 1);
	return TUTTI_OK;
}

/* How many bytes the call reads at send and writes at recv on this rank. */
void tti_args_extents(const struct tti_comm *comm, const struct tti_args *args, size_t *sends,
		      size_t *recvs)
{
	const size_t one = args->count * tutti_type_size(args->type);
	const bool at_root = comm->rank == args->root;

	*sends = *recvs = one;
	if (args->coll == TUTTI_ALL_GATHER)
		*recvs = one * (size_t)comm->n;
	if (args->coll == TUTTI_REDUCE_SCATTER)
		*sends = one * (size_t)comm->n;
	if (args->coll == TUTTI_BROADCAST && !at_root)
		*sends = 0;
	if ((args->coll == TUTTI_REDUCE && !at_root) ||
	    (args->coll == TUTTI_SEND_RECV && args->is_send))
		*recvs = 0;
	if (args->coll == TUTTI_SEND_RECV && !args->is_send)
		*sends = 0;
}

static bool is_in_place(const struct tti_comm *comm, const struct tti_args *args)
{
	const uintptr_t send = (uintptr_t)args->send;
	const uintptr_t recv = (uintptr_t)args->recv;
	const size_t own = (size_t)comm->rank * args->count * tutti_type_size(args->type);

	if (args->coll == TUTTI_ALL_GATHER)
		return send == recv + own;
	if (args->coll == TUTTI_REDUCE_SCATTER)
		return recv == send + own;
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

tutti_status tti_args_check(const struct tti_comm *comm, const struct tti_args *args)
{
	size_t sends, recvs, total;

	TTI_TRY(check_kind(comm, args));
	if (__builtin_mul_overflow(args->count, tutti_type_size(args->type), &total) ||
	    __builtin_mul_overflow(total, (size_t)comm->n, &total) || total > SIZE_MAX / 4)
		return tti_fail(TUTTI_EINVAL, "%s: %zu elements of %s on %d ranks overflow",
				call_name(args), args->count, tutti_type_name(args->type), comm->n);
	tti_args_extents(comm, args, &sends, &recvs);
	return check_buffers(comm, args, sends, recvs);
}
