/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "boot/boot.h"
#include "core/call/args.h"
#include "core/call/group.h"
#include "core/call/roots.h"
#include "core/call/submit.h"
#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/device.h"
#include "core/device/flight.h"
#include "core/handle.h"
#include "core/handoff/handoff.h"
#include "core/init/agree.h"
#include "core/lifetime.h"
#include "core/sequence.h"
#include "core/tend.h"
#include "plan/tune/tune.h"
#include "util/error.h"
#include "util/log.h"
#include "util/mem.h"

/* The public calls, each a few lines. */

tutti_status tutti_get_unique_id(tutti_unique_id *out)
{
	if (!out)
		return tti_fail(TUTTI_EINVAL, "out is NULL: pass the address of a tutti_unique_id");
	return tti_boot_id_create(out);
}

/* -- Collectives --------------------------------------------------------------- */

tutti_status tutti_all_reduce(const void *send, void *recv, size_t count, tutti_type type,
			      tutti_op op, tutti_comm_t comm, tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_ALL_REDUCE,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .op = op };

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_reduce(const void *send, void *recv, size_t count, tutti_type type, tutti_op op,
			  int root, tutti_comm_t comm, tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_REDUCE,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .op = op,
				       .root = root };

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_broadcast(const void *send, void *recv, size_t count, tutti_type type, int root,
			     tutti_comm_t comm, tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_BROADCAST,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .root = root };

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_all_gather(const void *send, void *recv, size_t count, tutti_type type,
			      tutti_comm_t comm, tutti_stream_t stream)
{
	const struct tti_args args = {
		.coll = TUTTI_ALL_GATHER, .send = send, .recv = recv, .count = count, .type = type
	};

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_reduce_scatter(const void *send, void *recv, size_t count, tutti_type type,
				  tutti_op op, tutti_comm_t comm, tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_REDUCE_SCATTER,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .op = op };

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_barrier(tutti_comm_t comm, tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_BARRIER };

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_handoff(const void *send, void *recv, size_t count, tutti_type type,
			   const tutti_side *from, const tutti_side *to, tutti_comm_t comm,
			   tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_HANDOFF,
				       .send = send,
				       .recv = recv,
				       .count = count,
				       .type = type,
				       .from = from,
				       .to = to };

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_send(const void *send, size_t count, tutti_type type, int peer,
			tutti_comm_t comm, tutti_stream_t stream)
{
	const struct tti_args args = { .coll = TUTTI_SEND_RECV,
				       .send = send,
				       .count = count,
				       .type = type,
				       .root = peer,
				       .is_send = true };

	return tti_submit(comm, &args, stream);
}

tutti_status tutti_recv(void *recv, size_t count, tutti_type type, int peer, tutti_comm_t comm,
			tutti_stream_t stream)
{
	const struct tti_args args = {
		.coll = TUTTI_SEND_RECV, .recv = recv, .count = count, .type = type, .root = peer
	};

	return tti_submit(comm, &args, stream);
}

/* -- Questions -------------------------------------------------------------------- */

tutti_status tutti_comm_count(tutti_comm_t handle, int *out)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_check_out(handle, out, "an int"));
	TTI_TRY(tti_handle_enter(handle, &comm));
	*out = comm->n;
	tti_handle_leave(handle);
	return TUTTI_OK;
}

tutti_status tutti_comm_rank(tutti_comm_t handle, int *out)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_check_out(handle, out, "an int"));
	TTI_TRY(tti_handle_enter(handle, &comm));
	*out = comm->rank;
	tti_handle_leave(handle);
	return TUTTI_OK;
}

tutti_status tutti_comm_get_async_error(tutti_comm_t handle, tutti_status *out)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_check_out(handle, out, "a tutti_status"));
	TTI_TRY(tti_handle_enter(handle, &comm));
	*out = (tutti_status)atomic_load(&comm->async_error);
	if (*out == TUTTI_OK)
		*out = (tutti_status)atomic_load_explicit(&comm->init_status, memory_order_acquire);
	tti_handle_leave(handle);
	return TUTTI_OK;
}

const char *tutti_last_error(tutti_comm_t handle)
{
	struct tti_comm *comm = tti_handle_find(handle);
	const char *out;

	if (!comm)
		return tti_error_text();
	pthread_mutex_lock(&comm->lock);
	out = tti_comm_last_text(comm);
	if (comm->texts)
		out = memcpy(comm->texts->out, out, sizeof(comm->texts->out));
	pthread_mutex_unlock(&comm->lock);
	tti_handle_leave(handle);
	return out;
}

void tutti_log_errors(int on)
{
	tti_log_set_errors(on != 0);
}

tutti_status tutti_comm_last_call(tutti_comm_t handle, struct tutti_call_report *out)
{
	struct tti_comm *comm;
	const char *algorithm;

	TTI_TRY(tti_handle_check_out(handle, out, "a report"));
	TTI_TRY(tti_handle_enter(handle, &comm));
	algorithm = atomic_load(&comm->last_algorithm);
	*out = (struct tutti_call_report){
		.algorithm = algorithm ? algorithm : "none",
		.transport = comm->transport,
		.channels = 1,
	};
	tti_handle_leave(handle);
	return TUTTI_OK;
}

/* A text about a usable communicator, written by `write`; the caller frees it. */
static tutti_status tell(tutti_comm_t handle, bool json, char **out,
			 tutti_status (*write)(const struct tti_comm *, bool json,
					       struct tti_strbuf *))
{
	struct tti_strbuf text = { 0 };
	struct tti_comm *comm;
	tutti_status st;

	TTI_TRY(tti_handle_check_out(handle, out, "a char *"));
	TTI_TRY(tti_handle_enter(handle, &comm));
	st = tti_comm_usable(comm);
	if (st == TUTTI_OK)
		st = write(comm, json, &text);
	if (st == TUTTI_OK)
		*out = tti_strbuf_take(&text);
	tti_strbuf_release(&text);
	return tti_handle_end(handle, comm, st);
}

static tutti_status write_plan(const struct tti_comm *comm, bool json, struct tti_strbuf *out)
{
	if (comm->root != comm)
		TTI_TRY(tti_derived_print(comm->shape, comm->n, json, out));
	else
		TTI_TRY(tti_agreed_print(
			&(struct tti_agreed){ .plan = comm->plan, .shape = comm->shape }, json,
			out));
	return json ? TUTTI_OK : tti_devices_show(comm, out);
}

tutti_status tutti_comm_plan(tutti_comm_t handle, int json, char **out)
{
	return tell(handle, json != 0, out, write_plan);
}

static tutti_status write_reach(const struct tti_comm *comm, bool json, struct tti_strbuf *out)
{
	(void)json;
	tti_tune_write_reach(&comm->figures, out);
	return out->failed ? tti_fail(TUTTI_ENOMEM, "how memory is reached: out of memory")
			   : TUTTI_OK;
}

tutti_status tutti_comm_reach(tutti_comm_t handle, char **out)
{
	return tell(handle, false, out, write_reach);
}

/* -- The end ------------------------------------------------------------------------ */

tutti_status tutti_comm_finalize(tutti_comm_t handle)
{
	struct tti_comm *comm;

	TTI_TRY(tti_group_refuse(handle, "tutti_comm_finalize"));
	TTI_TRY(tutti_barrier(handle, NULL));
	TTI_TRY(tti_handle_enter(handle, &comm));
	atomic_store(&comm->state, TTI_COMM_FINALIZED);
	tti_handle_leave(handle);
	return TUTTI_OK;
}

/* Take the communicator from its handle, wait for calls that are queued on streams, and free it. */
static tutti_status destroy(tutti_comm_t handle)
{
	struct tti_comm *comm = tti_handle_take(handle);
	char text[TTI_ERROR_TEXT];
	tutti_status st;

	if (!comm)
		return tti_fail(TUTTI_EUSAGE,
				"communicator %p is being destroyed by another "
				"thread",
				(void *)handle);
	tti_sequence_wait(comm, atomic_load(&comm->issued));
	tti_flights_end_graphs(comm);
	tti_tend_end(comm);
	st = tti_roots_check(comm);
	(void)snprintf(text, sizeof(text), "%s", tti_error_text());
	/* The last call may still hold the lock, as it wakes waiters. */
	pthread_mutex_lock(&comm->lock);
	pthread_mutex_unlock(&comm->lock);
	tti_handle_free(handle);
	tti_comm_free(comm);
	return st == TUTTI_OK ? st : tti_fail_quiet(st, "%s", text);
}

/* Enter, for a caller that then waits for all calls. */
static tutti_status enter_to_end(tutti_comm_t handle, struct tti_comm **out)
{
	tutti_status st;

	TTI_TRY(tti_handle_enter(handle, out));
	st = tti_sequence_may_wait(*out);
	return st == TUTTI_OK ? st : tti_handle_end(handle, *out, st);
}

tutti_status tutti_comm_destroy(tutti_comm_t handle)
{
	struct tti_comm *comm;

	if (!handle)
		return TUTTI_OK;
	TTI_TRY(tti_group_refuse(handle, "tutti_comm_destroy"));
	TTI_TRY(enter_to_end(handle, &comm));
	if (atomic_load(&comm->init_status) == TUTTI_AGAIN)
		tti_comm_mark_failed(comm, TUTTI_EABORTED, "destroyed while it was being made");
	tti_handle_leave(handle);
	return destroy(handle);
}

tutti_status tutti_comm_abort(tutti_comm_t handle)
{
	struct tti_comm *comm;

	if (!handle)
		return TUTTI_OK;
	TTI_TRY(tti_group_refuse(handle, "tutti_comm_abort"));
	TTI_TRY(enter_to_end(handle, &comm));
	tti_comm_abort(comm, "aborted the communicator");
	tti_handle_leave(handle);
	return destroy(handle);
}
