/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/prepare/memory.h"

#include "core/call/args.h"
#include "core/call/call.h"
#include "core/call/counts.h"
#include "core/call/group.h"
#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/flight.h"
#include "core/device/heap.h"
#include "core/device/lend.h"
#include "core/handle.h"
#include "core/handoff/handoff.h"
#include "core/prepare/prepared.h"
#include "core/sequence.h"
#include "transport/shm/heap.h"
#include "tutti/memory.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

/* To ask costs a call some microseconds, up to a third of a gather of 256 KiB. After ASK_ALWAYS
 * calls of a collective in a row without registered memory, one in ASK_EVERY asks. */
#define ASK_ALWAYS 16
#define ASK_EVERY  8

/* -- Calls on it --------------------------------------------------------------- */

void tti_memory_init(struct tti_comm *comm)
{
	struct tti_memory *memory = &comm->memory;

	memory->reaches_all = comm->n > 1;
	for (int peer = 0; peer < comm->n; peer++) {
		struct tti_port *port = comm->ports[comm->port_of[peer]];

		if (peer == comm->rank)
			continue;
		if (port->transport->memory)
			memory->port = port;
		else
			memory->reaches_all = false;
	}
}

void tti_memory_release(struct tti_comm *comm)
{
	struct tti_memory *memory = &comm->memory;

	for (size_t i = 0; i < memory->regs.n; i++)
		tti_free(memory->regs.at[i]);
	tti_vec_release(&memory->regs);
}

bool tti_memory_may_serve(const struct tti_comm *comm, const struct tti_args *args, size_t nbytes)
{
	/* Devices lend their memory to kernels alone: what the host runs in their place goes by slots. */
	const bool reaches_all = comm->devices ? comm->devices->all_mapped && comm->n > 1 &&
							 tti_call_is_on_device(comm, args)
					       : comm->memory.reaches_all;

	if (!reaches_all || (nbytes == 0 && args->coll != TUTTI_BARRIER))
		return false;
	return args->algo || (nbytes > 0 && nbytes >= tti_params()->registered_least);
}

bool tti_memory_asks(struct tti_comm *comm, const struct tti_args *args,
		     const struct tti_prepared *call)
{
	uint32_t unused;

	if (!call->maps && !call->copies)
		return false;
	if (call->is_forced || call->copies)
		return true;
	unused = comm->memory.unused[args->coll]++;
	return unused < ASK_ALWAYS || unused % ASK_EVERY == 0;
}

tutti_status tti_memory_ways(const struct tti_comm *comm, tutti_collective coll, size_t nbytes,
			     unsigned *out)
{
	*out = TTI_SEND_BY_MESSAGES | TTI_SEND_BY_MEMORY;
	if (comm->algo)
		TTI_TRY(tti_choose_ways(coll, nbytes, comm->algo, comm->tuning.files, out));
	/* Nothing is nowhere, and kernels copy nothing from memory of hosts. */
	if (nbytes == 0 || comm->devices)
		*out = TTI_SEND_BY_MESSAGES;
	else if (nbytes < tti_params()->registered_least && !(*out & TTI_SEND_IS_FORCED))
		*out &= ~TTI_SEND_BY_MEMORY;
	return TUTTI_OK;
}

tutti_status tti_memory_offer(const struct tti_comm *comm, unsigned ways, int peer,
			      const void *data, size_t nbytes, struct tti_memory_name *out)
{
	struct tti_port *port = comm->ports[comm->port_of[peer]];

	if (ways & TTI_SEND_BY_MEMORY && port->transport->memory &&
	    port->transport->memory->name(port, data, nbytes, out) &&
	    (out->reach == TTI_REACH_MAPPED || ways & TTI_SEND_IS_FORCED ||
	     tti_params()->reach == TTI_WISH_COPIED))
		return TUTTI_OK;
	*out = (struct tti_memory_name){ 0 };
	if (ways & TTI_SEND_BY_MESSAGES || peer == comm->rank)
		return TUTTI_OK;
	return tti_fail(TUTTI_EUNSUPPORTED,
			"TUTTI_ALGO=\"%s\" lets rank %d send %zu bytes to rank %d by memory alone, "
			"and rank %d cannot read them where they lie, or receives in place: send "
			"what tutti_mem_alloc() gave, or let \"send_recv:memory,direct\" take "
			"messages for the rest",
			comm->algo, comm->rank, nbytes, peer, peer);
}

/* Whether one of the two buffers contains the other. */
static bool is_one(const struct tti_args *args, size_t sends, size_t recvs)
{
	const uintptr_t send = (uintptr_t)args->send, recv = (uintptr_t)args->recv;

	return sends < recvs ? send - recv < recvs : recv - send < sends;
}

/* Bytes of the buffers of all ranks together, if they are in place where this one is. */
static size_t total_of(const struct tti_comm *comm, const struct tti_args *args)
{
	const size_t n = (size_t)comm->n, one = args->count * tutti_type_size(args->type);
	const bool to_root = args->coll == TUTTI_GATHER, from_root = args->coll == TUTTI_SCATTER;
	const size_t sends = tti_collective_sends_rows(args->coll) ? one * n : one;
	const size_t recvs = tti_collective_gets_rows(args->coll) ? one * n : one;

	if (args->coll == TUTTI_HANDOFF)
		return one * (size_t)((args->from->sharded ? 1 : args->from->n) +
				      (args->to->sharded ? 1 : args->to->n));
	if (is_one(args, sends, recvs))
		return (sends > recvs ? sends : recvs) * (to_root || from_root ? 1 : n);
	return sends * (from_root ? 1 : n) + recvs * (to_root ? 1 : n);
}

/* The part of a buffer that other ranks touch, in bytes. */
static struct tti_range touched(const struct tti_comm *comm, const struct tti_args *args,
				bool is_send)
{
	const struct tti_collective *what = tti_collective_get(args->coll);
	const size_t size = tutti_type_size(args->type);
	struct tti_range range;

	tti_args_range(comm, args, is_send, &range);
	/* Others do not touch rows of the rank's own, unless all ranks do a part of each
	 * (programs.c). An empty buffer may be NULL. */
	if ((is_send ? what->input : what->output) == TTI_HOLDER_OWNER &&
	    args->coll != TUTTI_REDUCE_SCATTER_V)
		range.count = 0;
	range.first *= size;
	range.count *= size;
	return range;
}

void tti_memory_touched(const struct tti_comm *comm, const struct tti_args *args,
			struct tti_flight_buffers *out)
{
	const struct tti_range sent = touched(comm, args, true), got = touched(comm, args, false);

	*out = (struct tti_flight_buffers){ .input = (uintptr_t)args->send + sent.first,
					    .output = (uintptr_t)args->recv + got.first,
					    .input_bytes = sent.count,
					    .output_bytes = got.count };
}

/* The same, and where it lies; false: they cannot reach it in the way of this
 * call. */
static bool describe_buffer(const struct tti_comm *comm, const struct tti_args *args,
			    const struct tti_prepared *call, bool is_send,
			    struct tti_memory_buffer *out)
{
	const char *data = is_send ? args->send : args->recv;
	struct tti_port *port = comm->memory.port;
	const struct tti_range range = touched(comm, args, is_send);

	if (range.count == 0)
		return true;
	out->before = range.first;
	out->nbytes = range.count;
	return port->transport->memory->name(port, data + out->before, out->nbytes, &out->name) &&
	       (out->name.reach == TTI_REACH_MAPPED ? call->maps : call->copies);
}

void tti_memory_describe(const struct tti_comm *comm, const struct tti_args *args,
			 const struct tti_prepared *call, struct tti_memory_call *out)
{
	*out = (struct tti_memory_call){
		.coll = args->coll,
		/* Results that do not fit the caches are stored past them. */
		.is_large =
			total_of(comm, args) / (size_t)comm->n >= comm->engine.config.cache_bytes,
	};
	out->is_ready = describe_buffer(comm, args, call, true, &out->send) &&
			describe_buffer(comm, args, call, false, &out->recv);
	if (args->coll == TUTTI_ALL_GATHER_V) {
		out->displs = args->recv_displs;
		out->counts = args->recv_counts;
	}
}

/* -- The user's side ------------------------------------------------------------- */

/* Enter a communicator whose init is over. The caller leaves it again. */
static tutti_status enter(tutti_comm_t handle, const char *what, struct tti_comm **out)
{
	tutti_status st;

	TTI_TRY(tti_group_refuse(handle, what));
	TTI_TRY(tti_handle_enter(handle, out));
	st = atomic_load_explicit(&(*out)->state, memory_order_acquire) == TTI_COMM_INIT
		     ? tti_comm_usable(*out)
		     : TUTTI_OK;
	if (st != TUTTI_OK)
		tti_handle_leave(handle);
	return tti_handle_note(handle, st);
}

/* All calls that were made before are done: nobody reads or writes the memory. */
static tutti_status wait_for_calls(struct tti_comm *comm)
{
	TTI_TRY(tti_sequence_may_wait(comm));
	tti_sequence_wait(comm, atomic_load(&comm->issued));
	return TUTTI_OK;
}

/* Add to the communicator's list; NULL: out of memory. */
static struct tutti_reg *put(struct tti_comm *comm, void *memory, size_t nbytes)
{
	struct tutti_reg *reg = tti_zalloc(sizeof(*reg));
	bool kept;

	if (!reg)
		return NULL;
	*reg = (struct tutti_reg){ memory, nbytes };
	pthread_mutex_lock(&comm->lock);
	kept = tti_vec_push(&comm->memory.regs, reg);
	pthread_mutex_unlock(&comm->lock);
	if (kept)
		return reg;
	tti_free(reg);
	return NULL;
}

/* Remove from the list; false: it is not there, and *reg must not be read. */
static bool take(struct tti_comm *comm, const struct tutti_reg *reg)
{
	struct tti_memory *memory = &comm->memory;
	bool found = false;

	pthread_mutex_lock(&comm->lock);
	for (size_t i = 0; i < memory->regs.n && !found; i++) {
		found = memory->regs.at[i] == reg;
		if (found)
			memory->regs.at[i] = memory->regs.at[--memory->regs.n];
	}
	pthread_mutex_unlock(&comm->lock);
	return found;
}

/* Of the rank's device, if it has one. */
static tutti_status allocate(const struct tti_comm *comm, size_t size, void **out)
{
	tutti_status st;

	if (size == 0)
		return tti_fail(TUTTI_EINVAL, "tutti_mem_alloc() of 0 bytes");
	if (comm && comm->device)
		return tti_device_heap_alloc(comm->device->gpu, size, out);
	st = tti_heap_alloc(size, out);
	return st == TUTTI_OK
		       ? st
		       : tti_fail(st, "tutti_mem_alloc() of %zu bytes: %s", size, tti_error_text());
}

tutti_status tutti_mem_alloc(void **out, size_t size, tutti_comm_t handle)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_check_out(handle, out, "a pointer"));
	if (!handle)
		return allocate(NULL, size, out);
	TTI_TRY(enter(handle, "tutti_mem_alloc", &comm));
	return tti_handle_end(handle, comm, allocate(comm, size, out));
}

static tutti_status release(void *ptr)
{
	if (tti_device_heap_free(ptr) || tti_heap_free(ptr) == TUTTI_OK)
		return TUTTI_OK;
	return tti_fail(TUTTI_EINVAL,
			"tutti_mem_free(): %p is not the beginning of memory that "
			"tutti_mem_alloc() gave",
			ptr);
}

tutti_status tutti_mem_free(void *ptr, tutti_comm_t handle)
{
	struct tti_comm *comm;
	tutti_status st;

	if (!ptr)
		return TUTTI_OK;
	if (!handle)
		return release(ptr);
	TTI_TRY(enter(handle, "tutti_mem_free", &comm));
	st = wait_for_calls(comm);
	return tti_handle_end(handle, comm, st == TUTTI_OK ? release(ptr) : st);
}

tutti_status tutti_mem_copy_on_fork(void *ptr)
{
	const tutti_status st = tti_heap_copy_on_fork(ptr);

	return st == TUTTI_OK ? st
			      : tti_fail(st,
					 "tutti_mem_copy_on_fork(): %s: pass what "
					 "tutti_mem_alloc() gave",
					 tti_error_text());
}

static tutti_status add(struct tti_comm *comm, void *ptr, size_t size, tutti_reg_t *out)
{
	struct tti_port *port = comm->memory.port;
	struct tutti_reg *reg;

	if (!ptr || size == 0 || size > UINTPTR_MAX - (uintptr_t)ptr)
		return tti_fail(TUTTI_EINVAL,
				"tutti_register(): %zu bytes at %p: pass memory of 1 byte or more",
				size, ptr);
	reg = put(comm, ptr, size);
	if (!reg)
		return tti_fail(TUTTI_ENOMEM, "tutti_register(): out of memory");
	/* What a device has is lent when a call comes to it (lend.h). */
	if (port && !comm->device && port->transport->memory->add(port, ptr, size) != TUTTI_OK) {
		(void)take(comm, reg);
		tti_free(reg);
		return tti_fail(TUTTI_ENOMEM, "tutti_register(): %s", tti_error_text());
	}
	*out = reg;
	return TUTTI_OK;
}

tutti_status tutti_register(tutti_comm_t handle, void *ptr, size_t size, tutti_reg_t *out)
{
	struct tti_comm *comm;

	TTI_TRY(tti_handle_check_out(handle, out, "a tutti_reg_t"));
	TTI_TRY(enter(handle, "tutti_register", &comm));
	return tti_handle_end(handle, comm, add(comm, ptr, size, out));
}

static tutti_status drop(struct tti_comm *comm, tutti_reg_t reg)
{
	struct tti_port *port = comm->memory.port;
	tutti_status st = TUTTI_OK;

	TTI_TRY(wait_for_calls(comm));
	if (!take(comm, reg))
		return tti_fail(TUTTI_EINVAL,
				"tutti_deregister(): %p is no registration of this communicator: "
				"pass the one that tutti_register() was given",
				(void *)reg);
	if (port && !comm->device)
		st = port->transport->memory->drop(port, reg->memory, reg->nbytes);
	tti_lending_take_back(comm, reg->memory, reg->nbytes);
	tti_free(reg);
	return st == TUTTI_OK ? st : tti_fail(st, "tutti_deregister(): %s", tti_error_text());
}

tutti_status tutti_deregister(tutti_comm_t handle, tutti_reg_t reg)
{
	struct tti_comm *comm;

	if (!reg)
		return TUTTI_OK;
	TTI_TRY(enter(handle, "tutti_deregister", &comm));
	return tti_handle_end(handle, comm, drop(comm, reg));
}
