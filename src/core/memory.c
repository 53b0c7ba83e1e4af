/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/memory.h"

#include <string.h>
#include <sys/mman.h>

#include "core/comm.h"
#include "core/group.h"
#include "tutti/memory.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

/* To ask holds a call up by some microseconds, up to a third of a gather of 256 KiB. Where so
 * many calls of a kind in a row found no registered memory, one of so many asks. */
#define ASK_ALWAYS 16
#define ASK_EVERY  8

struct tutti_reg {
	void *memory;
	size_t nbytes;
	bool shared; /* the port knows of it */
};

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

	for (size_t i = 0; i < memory->privates.n; i++)
		munmap(memory->privates.at[i].base, memory->privates.at[i].nbytes);
	tti_vec_release(&memory->privates);
	for (size_t i = 0; i < memory->regs.n; i++)
		tti_free(memory->regs.at[i]);
	tti_vec_release(&memory->regs);
	tti_free(memory->regions);
	memory->regions = NULL;
}

bool tti_memory_may_serve(const struct tti_comm *comm, tutti_collective coll, size_t nbytes)
{
	if (!comm->memory.reaches_all || (nbytes == 0 && coll != TUTTI_BARRIER))
		return false;
	return comm->algo || (nbytes > 0 && nbytes >= tti_params()->registered_least);
}

bool tti_memory_asks(struct tti_comm *comm, const struct tti_args *args,
		     const struct tti_prepared *call)
{
	uint32_t unused;

	if (!call->memory && !call->in_memory)
		return false;
	if (call->is_pinned || call->copies)
		return true;
	unused = comm->memory.unused[args->coll]++;
	return unused < ASK_ALWAYS || unused % ASK_EVERY == 0;
}

void tti_memory_note_use(struct tti_comm *comm, tutti_collective coll)
{
	comm->memory.unused[coll] = 0;
}

tutti_status tti_memory_ways(const struct tti_comm *comm, size_t nbytes, unsigned *out)
{
	*out = TTI_SEND_BY_MESSAGES | TTI_SEND_BY_MEMORY;
	if (comm->algo)
		TTI_TRY(tti_choose_send(nbytes, comm->algo, comm->tuning.files, out));
	/* Nothing is nowhere. */
	if (nbytes == 0)
		*out = TTI_SEND_BY_MESSAGES;
	else if (nbytes < tti_params()->registered_least && !(*out & TTI_SEND_IS_PINNED))
		*out &= ~TTI_SEND_BY_MEMORY;
	return TUTTI_OK;
}

tutti_status tti_memory_offer(const struct tti_comm *comm, unsigned ways, int peer,
			      const void *data, size_t nbytes, struct tti_memory_name *out)
{
	struct tti_port *port = comm->ports[comm->port_of[peer]];

	if (ways & TTI_SEND_BY_MEMORY && port->transport->memory &&
	    port->transport->memory->name(port, data, nbytes, out) &&
	    (out->reach == TTI_REACH_MAPPED || ways & TTI_SEND_IS_PINNED ||
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

/* The name of a buffer that the call looks at on this rank; false: it has none that this call takes. */
static bool name_of(const struct tti_comm *comm, const void *buffer, size_t nbytes,
		    struct tti_memory_name *out)
{
	struct tti_port *port = comm->memory.port;

	return nbytes == 0 ||
	       (port->transport->memory->name(port, buffer, nbytes, out) &&
		(out->reach == TTI_REACH_MAPPED ? comm->memory.maps : comm->memory.copies));
}

/* Whether one of two buffers has the other in it. */
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

/* Buffers of a call with a count for each rank; false: they cannot be addressed. */
static bool name_uneven(struct tti_comm *comm, const struct tti_args *args,
			struct tti_memory_call *out)
{
	const bool gathers = args->coll == TUTTI_ALL_GATHER_V;
	const size_t *counts = gathers ? args->recv_counts : args->send_counts;
	const size_t size = tutti_type_size(args->type);
	struct tti_region *region = comm->memory.regions;
	struct tti_range sent, got;
	size_t first = 0;

	tti_counts_bounds(comm, args, true, &sent);
	tti_counts_bounds(comm, args, false, &got);
	for (int rank = 0; rank < comm->n; first += counts[rank++])
		region[rank] = gathers ? (struct tti_region){
			.out_first = args->recv_displs[comm->rank],
			.out_bytes = counts[comm->rank] * size,
		} : (struct tti_region){
			.in_first = sent.first,
			.in_bytes = sent.count * size,
			.out_first = first,
			.out_bytes = counts[rank] * size,
		};
	out->region = region;
	if (!name_of(comm, (const char *)args->send + sent.first * size, sent.count * size,
		     &out->send) ||
	    !name_of(comm, (const char *)args->recv + got.first * size, got.count * size,
		     &out->recv))
		return false;
	if (gathers) {
		/* Displacements count from the begin of the buffer. */
		out->places = args->recv_displs;
		out->recv.at -= got.first * size;
		out->recv.address -= got.first * size;
	}
	return true;
}

static bool name_even(struct tti_comm *comm, const struct tti_args *args,
		      struct tti_memory_call *out)
{
	const tutti_collective coll = args->coll;
	const size_t one = args->count * tutti_type_size(args->type), all = one * (size_t)comm->n;
	size_t sends, recvs;

	tti_args_extents(comm, args, &sends, &recvs);
	/* Of the root's buffers others touch one. */
	if (coll == TUTTI_GATHER || (coll == TUTTI_SCATTER && comm->rank != args->root))
		sends = 0;
	if (coll == TUTTI_SCATTER)
		recvs = 0;
	if (coll != TUTTI_ALL_GATHER && coll != TUTTI_GATHER)
		out->all.in_bytes = tti_collective_sends_rows(coll) ? all : one;
	if (coll != TUTTI_REDUCE_SCATTER && coll != TUTTI_SCATTER)
		out->all.out_bytes = tti_collective_gets_rows(coll) ? all : one;
	return name_of(comm, args->send, sends, &out->send) &&
	       name_of(comm, args->recv, recvs, &out->recv);
}

/* Buffers of a handoff: of each rank what it has on a side, if it is on it. */
static bool name_sides(struct tti_comm *comm, const struct tti_args *args,
		       struct tti_memory_call *out)
{
	struct tti_region *region = comm->memory.regions;
	const size_t size = tutti_type_size(args->type);
	size_t count;

	memset(region, 0, (size_t)comm->n * sizeof(*region));
	for (int i = 0; i < args->from->n; i++) {
		struct tti_region *its = &region[args->from->ranks[i]];

		tutti_part(args->count, args->from->sharded ? args->from->n : 1,
			   args->from->sharded ? i : 0, &its->in_first, &count);
		its->in_bytes = count * size;
	}
	for (int i = 0; i < args->to->n; i++) {
		struct tti_region *its = &region[args->to->ranks[i]];

		tutti_part(args->count, args->to->sharded ? args->to->n : 1,
			   args->to->sharded ? i : 0, &its->out_first, &count);
		its->out_bytes = count * size;
	}
	out->region = region;
	return name_of(comm, args->send, region[comm->rank].in_bytes, &out->send) &&
	       name_of(comm, args->recv, region[comm->rank].out_bytes, &out->recv);
}

tutti_status tti_memory_describe(struct tti_comm *comm, const struct tti_args *args,
				 const struct tti_prepared *call, struct tti_memory_call *out)
{
	const size_t n = (size_t)comm->n;

	comm->memory.maps = call->maps;
	comm->memory.copies = call->copies;
	*out = (struct tti_memory_call){
		.coll = args->coll,
		/* Results that do not fit the caches go past them. */
		.is_large = total_of(comm, args) / n >= comm->engine.config.cache_bytes,
	};
	if (!comm->memory.regions)
		comm->memory.regions = tti_calloc(n, sizeof(*comm->memory.regions));
	if (!comm->memory.regions)
		return tti_fail(TUTTI_ENOMEM, "buffers of %d ranks: out of memory", comm->n);
	out->is_ready = (args->coll == TUTTI_HANDOFF  ? name_sides
			 : tti_has_counts(args->coll) ? name_uneven
						      : name_even)(comm, args, out);
	if (!out->is_ready)
		out->send = out->recv = (struct tti_memory_name){ 0 };
	return TUTTI_OK;
}

/* -- The user's side ------------------------------------------------------------- */

/* A communicator on which memory can be had now. To be left again. */
static tutti_status enter(tutti_comm_t handle, const char *what, struct tti_comm **out)
{
	tutti_status st;

	if (tti_group_is_open())
		return tti_handle_fail(handle, TUTTI_EUSAGE, "%s() inside a group: end it first",
				       what);
	TTI_TRY(tti_handle_enter(handle, out));
	st = atomic_load_explicit(&(*out)->state, memory_order_acquire) == TTI_COMM_INIT
		     ? tti_comm_usable(*out)
		     : TUTTI_OK;
	if (st != TUTTI_OK)
		tti_handle_leave(handle);
	return tti_handle_note(handle, st);
}

static tutti_status leave(tutti_comm_t handle, struct tti_comm *comm, tutti_status status)
{
	if (status != TUTTI_OK)
		tti_comm_note(comm, status);
	tti_handle_leave(handle);
	return status;
}

/* All calls that were made before are done: nobody reads or writes the memory. */
static void wait_for_calls(struct tti_comm *comm)
{
	tti_turn_wait(comm, atomic_load(&comm->issued));
}

static tutti_status allocate_private(struct tti_comm *comm, size_t size, void **out)
{
	const struct tti_private_memory fresh = {
		.base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0),
		.nbytes = size,
	};
	bool kept;

	if (fresh.base == MAP_FAILED)
		return tti_fail(TUTTI_ENOMEM, "mmap of %zu bytes: %m", size);
	pthread_mutex_lock(&comm->lock);
	kept = tti_vec_push(&comm->memory.privates, fresh);
	pthread_mutex_unlock(&comm->lock);
	if (!kept) {
		munmap(fresh.base, size);
		return tti_fail(TUTTI_ENOMEM, "list of allocations: out of memory");
	}
	*out = fresh.base;
	return TUTTI_OK;
}

static tutti_status allocate(struct tti_comm *comm, size_t size, void **out)
{
	struct tti_port *port = comm->memory.port;
	tutti_status st = TUTTI_EUNSUPPORTED;

	if (size == 0)
		return tti_fail(TUTTI_EINVAL, "tutti_mem_alloc() of 0 bytes");
	if (port)
		st = port->transport->memory->alloc(port, size, out);
	if (st == TUTTI_EUNSUPPORTED)
		return allocate_private(comm, size, out);
	if (st != TUTTI_OK)
		return tti_fail(st, "tutti_mem_alloc() of %zu bytes: %s", size, tti_error_text());
	return TUTTI_OK;
}

tutti_status tutti_mem_alloc(void **out, size_t size, tutti_comm_t handle)
{
	struct tti_comm *comm;

	if (!out)
		return tti_handle_fail(handle, TUTTI_EINVAL,
				       "out is NULL: pass the address of a pointer");
	TTI_TRY(enter(handle, "tutti_mem_alloc", &comm));
	return leave(handle, comm, allocate(comm, size, out));
}

static bool free_private(struct tti_comm *comm, void *ptr)
{
	struct tti_memory *memory = &comm->memory;
	struct tti_private_memory found = { 0 };

	pthread_mutex_lock(&comm->lock);
	for (size_t i = 0; i < memory->privates.n && !found.base; i++)
		if (memory->privates.at[i].base == ptr) {
			found = memory->privates.at[i];
			memory->privates.at[i] = memory->privates.at[--memory->privates.n];
		}
	pthread_mutex_unlock(&comm->lock);
	if (found.base)
		munmap(found.base, found.nbytes);
	return found.base != NULL;
}

static tutti_status release(struct tti_comm *comm, void *ptr)
{
	struct tti_port *port = comm->memory.port;

	wait_for_calls(comm);
	if (free_private(comm, ptr) ||
	    (port && port->transport->memory->free(port, ptr) == TUTTI_OK))
		return TUTTI_OK;
	return tti_fail(TUTTI_EINVAL,
			"tutti_mem_free(): %p is not the beginning of memory that "
			"tutti_mem_alloc() gave for this communicator",
			ptr);
}

tutti_status tutti_mem_free(void *ptr, tutti_comm_t handle)
{
	struct tti_comm *comm;

	if (!ptr)
		return TUTTI_OK;
	TTI_TRY(enter(handle, "tutti_mem_free", &comm));
	return leave(handle, comm, release(comm, ptr));
}

/* From the list of this communicator; false: it is not in it, and may not be looked at. */
static bool take_reg(struct tti_comm *comm, const struct tutti_reg *reg)
{
	struct tti_memory *memory = &comm->memory;
	bool found = false;

	pthread_mutex_lock(&comm->lock);
	for (size_t i = 0; i < memory->regs.n && !found; i++)
		if (memory->regs.at[i] == reg) {
			memory->regs.at[i] = memory->regs.at[--memory->regs.n];
			found = true;
		}
	pthread_mutex_unlock(&comm->lock);
	return found;
}

static tutti_status add(struct tti_comm *comm, void *ptr, size_t size, tutti_reg_t *out)
{
	struct tti_port *port = comm->memory.port;
	struct tutti_reg *reg;
	bool kept;

	if (!ptr || size == 0 || size > UINTPTR_MAX - (uintptr_t)ptr)
		return tti_fail(TUTTI_EINVAL, "tutti_register(): %zu bytes at %p are no memory",
				size, ptr);
	reg = tti_zalloc(sizeof(*reg));
	if (!reg)
		return tti_fail(TUTTI_ENOMEM, "tutti_register(): out of memory");
	reg->memory = ptr;
	reg->nbytes = size;
	reg->shared = port != NULL;
	pthread_mutex_lock(&comm->lock);
	kept = tti_vec_push(&comm->memory.regs, reg);
	pthread_mutex_unlock(&comm->lock);
	if (!kept) {
		tti_free(reg);
		return tti_fail(TUTTI_ENOMEM, "tutti_register(): out of memory");
	}
	if (port && port->transport->memory->add(port, ptr, size) != TUTTI_OK) {
		take_reg(comm, reg);
		tti_free(reg);
		return tti_fail(TUTTI_ENOMEM, "tutti_register(): %s", tti_error_text());
	}
	*out = reg;
	return TUTTI_OK;
}

tutti_status tutti_register(tutti_comm_t handle, void *ptr, size_t size, tutti_reg_t *out)
{
	struct tti_comm *comm;

	if (!out)
		return tti_handle_fail(handle, TUTTI_EINVAL,
				       "out is NULL: pass the address of a tutti_reg_t");
	TTI_TRY(enter(handle, "tutti_register", &comm));
	return leave(handle, comm, add(comm, ptr, size, out));
}

static tutti_status drop(struct tti_comm *comm, tutti_reg_t reg)
{
	struct tti_port *port = comm->memory.port;
	tutti_status st = TUTTI_OK;

	wait_for_calls(comm);
	if (!take_reg(comm, reg))
		return tti_fail(TUTTI_EINVAL,
				"tutti_deregister(): %p is no registration of this communicator: "
				"pass the one that tutti_register() was given",
				(void *)reg);
	if (reg->shared)
		st = port->transport->memory->drop(port, reg->memory, reg->nbytes);
	tti_free(reg);
	return st == TUTTI_OK ? st : tti_fail(st, "tutti_deregister(): %s", tti_error_text());
}

tutti_status tutti_deregister(tutti_comm_t handle, tutti_reg_t reg)
{
	struct tti_comm *comm;

	if (!reg)
		return TUTTI_OK;
	TTI_TRY(enter(handle, "tutti_deregister", &comm));
	return leave(handle, comm, drop(comm, reg));
}
