/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/call/args.h"
#include "core/call/group.h"
#include "core/call/submit.h"
#include "core/comm.h"
#include "util/error.h"

/* The public calls with a count for each rank, and sends with receives. */

tutti_status tutti_all_to_all(const void *send, void *recv, size_t count, tutti_type type,
			      tutti_comm_t comm, tutti_stream_t stream)
{
	const struct tti_args args = {
		.coll = TUTTI_ALL_TO_ALL, .send = send, .recv = recv, .count = count, .type = type
	};

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_gather(const void *send, void *recv, size_t count, tutti_type type, int root,
			  tutti_comm_t comm, tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_GATHER,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .root = root };

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_scatter(const void *send, void *recv, size_t count, tutti_type type, int root,
			   tutti_comm_t comm, tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_SCATTER,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .root = root };

	return tti_submit(comm, &args, stream);
}

/* -- With a count for each rank ------------------------------------------------------- */

tutti_status tutti_all_to_all_v(const void *send, const size_t *send_counts,
				const size_t *send_displs, void *recv, const size_t *recv_counts,
				const size_t *recv_displs, tutti_type type, tutti_comm_t comm,
				tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_ALL_TO_ALL_V,
				       .send = send,
				       .recv = recv,
				       .type = type,
				       .send_counts = send_counts,
				       .send_displs = send_displs,
				       .recv_counts = recv_counts,
				       .recv_displs = recv_displs };

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_gather_v(const void *send, size_t count, void *recv, const size_t *counts,
			    const size_t *displs, tutti_type type, int root, tutti_comm_t comm,
			    tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_GATHER_V,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .root = root,
				       .recv_counts = counts,
				       .recv_displs = displs };

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_scatter_v(const void *send, const size_t *counts, const size_t *displs,
			     void *recv, size_t count, tutti_type type, int root, tutti_comm_t comm,
			     tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_SCATTER_V,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .root = root,
				       .send_counts = counts,
				       .send_displs = displs };

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_all_gather_v(const void *send, void *recv, const size_t *counts,
				const size_t *displs, tutti_type type, tutti_comm_t comm,
				tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_ALL_GATHER_V,
				       .send = send,
				       .recv = recv,
				       .type = type,
				       .recv_counts = counts,
				       .recv_displs = displs };

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_reduce_scatter_v(const void *send, void *recv, const size_t *counts,
				    tutti_type type, tutti_op op, tutti_comm_t comm,
				    tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_REDUCE_SCATTER_V,
				       .send = send,
				       .recv = recv,
				       .type = type,
				       .op = op,
				       .send_counts = counts };

	return tti_submit(comm, &args, stream);
}

/* -- Both ways ------------------------------------------------------------------------- */

/* The two calls report counts that overflow. */
static tutti_status check_apart(const struct tti_args *out, const struct tti_args *in)
{
	const uintptr_t send = (uintptr_t)out->send, recv = (uintptr_t)in->recv;
	size_t sends, recvs;

	if (out->root == -1 || in->root == -1 ||
	    __builtin_mul_overflow(out->count, tutti_type_size(out->type), &sends) ||
	    __builtin_mul_overflow(in->count, tutti_type_size(in->type), &recvs) || sends == 0 ||
	    recvs == 0 || sends > UINTPTR_MAX - send || recvs > UINTPTR_MAX - recv ||
	    send >= recv + recvs || recv >= send + sends)
		return TUTTI_OK;
	return tti_fail(TUTTI_EINVAL,
			"send_recv: the send buffer %p (%zu bytes) and the receive buffer %p (%zu "
			"bytes) overlap",
			out->send, sends, in->recv, recvs);
}

/* Both are in a group, so that neither waits for the other. */
tutti_status tutti_send_recv(const void *send, size_t send_count, int to, void *recv,
			     size_t recv_count, int from, tutti_type type, tutti_comm_t comm,
			     tutti_stream_t stream)
{
	const struct tti_args out = { .coll = TUTTI_SEND_RECV,
				      .send = send,
				      .count = send_count,
				      .type = type,
				      .root = to,
				      .is_send = true };
	const struct tti_args in = { .coll = TUTTI_SEND_RECV,
				     .recv = recv,
				     .count = recv_count,
				     .type = type,
				     .root = from };
	tutti_status st, end;
	int n;

	TTI_TRY(tti_group_remember(tutti_comm_count(comm, &n)));
	TTI_TRY(tutti_group_start());
	st = tti_group_remember(check_apart(&out, &in));
	if (st == TUTTI_OK && to != -1)
		st = tti_submit(comm, &out, stream);
	if (st == TUTTI_OK && from != -1)
		st = tti_submit(comm, &in, stream);
	end = tutti_group_end();
	return st == TUTTI_OK ? end : st;
}
