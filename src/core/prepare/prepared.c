/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/prepare/prepared.h"

#include <string.h>

#include "coll/algorithms/send_recv.h"
#include "core/call/args.h"
#include "core/call/counts.h"
#include "core/comm.h"
#include "core/handoff/handoff.h"
#include "core/prepare/layout.h"
#include "core/prepare/memory.h"
#include "core/prepare/operators.h"
#include "core/prepare/programs.h"
#include "core/prepare/signature.h"
#include "core/prepare/transfers.h"
#include "core/sequence.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"
#include "util/params.h"

#define NOTHING  UINT64_MAX
#define IN_PLACE (UINT64_C(1) << 30)

_Static_assert(16 + TTI_OP_BITS <= 30, "the operator leaves a bit of packed arguments free");

void tti_prepared_release(struct tti_prepared *call)
{
	if (call->is_transfer)
		tti_executable_free(call->executable);
	tti_short_release(&call->way);
	*call = (struct tti_prepared){ 0 };
}

void tti_prepared_free_all(struct tti_prepared_calls *calls)
{
	if (!calls)
		return;
	for (int i = 0; i < TTI_PREPARED_KEPT; i++)
		tti_prepared_release(&calls->at[i]);
	tti_prepared_release(&calls->other);
	tti_free(calls);
}

/* NULL: out of memory. */
static struct tti_prepared_calls *calls_of(struct tti_comm *comm)
{
	struct tti_prepared_calls *calls = comm->prepared;

	if (calls)
		return calls;
	calls = tti_zalloc(sizeof(*calls));
	for (int i = 0; calls && i < TTI_PREPARED_KEPT; i++) {
		calls->key[i].what = NOTHING;
		calls->call[i] = &calls->at[i];
	}
	comm->prepared = calls;
	return calls;
}

/* -- Finding ----------------------------------------------------------------------- */

/* An all to all in place has a program of its own; other collectives have one for both. */
static bool is_in_place(const struct tti_args *args)
{
	return args->coll == TUTTI_ALL_TO_ALL && args->send == args->recv;
}

static inline struct tti_prepared_key key_of(const struct tti_args *args, tutti_op op,
					     const char *algo)
{
	struct tti_args with = *args;

	with.op = op;
	return (struct tti_prepared_key){
		.what = tti_args_pack(&with) | (is_in_place(args) ? IN_PLACE : 0),
		.count = args->count,
		.algo = algo,
	};
}

/* NULL: it is not kept. */
static struct tti_prepared *look_up(const struct tti_prepared_calls *calls,
				    const struct tti_prepared_key *key)
{
	for (int i = 0; i < TTI_PREPARED_KEPT; i++)
		if (calls->key[i].what == key->what && calls->key[i].count == key->count &&
		    calls->key[i].algo == key->algo)
			return calls->call[i];
	return NULL;
}

/* As tti_args_check() would say. */
static bool are_right(const struct tti_prepared *call, uintptr_t send, uintptr_t recv)
{
	if ((call->sends > 0 && !send) || (call->recvs > 0 && !recv) ||
	    call->sends > UINTPTR_MAX - send || call->recvs > UINTPTR_MAX - recv)
		return false;
	return send >= recv + call->recvs || recv >= send + call->sends ||
	       recv == send + call->in_place;
}

struct tti_prepared *tti_prepared_find(struct tti_comm *comm, const struct tti_args *args)
{
	tutti_op op = args->op;
	struct tti_prepared_key key;
	struct tti_prepared *call;

	/* Values that exceed their bits in the key are invalid everywhere. */
	if ((unsigned)args->type >> 8 | (unsigned)op >> TTI_OP_BITS)
		return NULL;
	if (atomic_load_explicit(&comm->state, memory_order_acquire) != TTI_COMM_READY ||
	    atomic_load_explicit(&comm->async_error, memory_order_relaxed) != 0 ||
	    !tti_sequence_is_idle(comm) || !comm->prepared || comm->device)
		return NULL;
	if (comm->reproducible && tti_collective_takes_op(args->coll))
		op = tutti_op_reproducible(op);
	key = key_of(args, op, atomic_load_explicit(&comm->call_algo, memory_order_relaxed));
	call = look_up(comm->prepared, &key);
	if (!call || !are_right(call, (uintptr_t)args->send, (uintptr_t)args->recv))
		return NULL;
	return call;
}

/* -- Making ------------------------------------------------------------------------ */

size_t tti_prepared_host_slice(const struct tti_comm *comm, size_t slice_bytes)
{
	return slice_bytes < comm->host_slot_bytes ? slice_bytes : comm->host_slot_bytes;
}

/* Whether the operations run in their order, if each chunk is one message: in a short call, and in
 * an exchange, which is one message of any length. Not if there is a memory program. */
static bool may_be_short(const struct tti_args *args, const struct tti_prepared *call, size_t slice)
{
	const bool is_exchange = tti_executable_is_exchange(call->executable) && !args->custom;

	return !call->memory && call->nbytes <= (is_exchange ? slice : TTI_SHORT_BYTES);
}

static tutti_status prepare_short(struct tti_comm *comm, const struct tti_args *args,
				  struct tti_prepared *call)
{
	const size_t slice = tti_prepared_host_slice(comm, call->slice);
	struct tti_layout layout;
	struct tti_reducer reducer;

	/* A scalar may be in memory of the device. */
	if (!may_be_short(args, call, slice) || (comm->device && args->custom))
		return TUTTI_OK;
	TTI_TRY(tti_layout_of(comm, args, tti_executable_nchunks(call->executable), slice,
			      &layout));
	if (!tti_short_fits(&layout, slice))
		return TUTTI_OK;
	reducer = tti_operator_reducer(args->custom, args->op, args->type, comm->n);
	TTI_TRY(tti_short_prepare(&call->way, &comm->engine, call->executable, &layout, &reducer,
				  slice));
	call->is_short = true;
	return TUTTI_OK;
}

static enum tti_program_reach reach_of(const struct tti_prepared *call)
{
	if (!call->memory)
		return TTI_BY_SLOTS;
	if (call->copies)
		return TTI_BY_COPIES;
	return call->is_forced ? TTI_BY_MEMORY_FORCED : TTI_BY_MEMORY;
}

/* TUTTI_REACH asks that the kernel copies ordinary memory wherever it can. */
static bool asks_for_copies(const struct tti_comm *comm)
{
	return comm->memory.port->plain == TTI_REACH_COPIED &&
	       tti_params()->reach == TTI_WISH_COPIED;
}

/* *takes: whether the call has a memory program if its buffers are reached in that way. */
static tutti_status find_in_memory(struct tti_comm *comm, struct tti_program_need *need,
				   enum tti_reach reach, struct tti_prepared *call, bool *takes)
{
	const struct tti_choice_kept *found;
	struct tti_executable *executable;
	bool is_forced;

	need->reach = reach;
	TTI_TRY(tti_programs_get(comm, need, &found, &executable));
	call->choice = tti_hash_combine(call->choice, found->hash);
	is_forced = found->choice.by == TTI_CHOICE_FORCED;
	*takes = found->choice.algo->needs_memory &&
		 (is_forced || need->nbytes >= tti_params()->registered_least);
	if (*takes) {
		call->memory = executable;
		call->is_forced = is_forced;
	}
	return TUTTI_OK;
}

static tutti_status prepare_memory(struct tti_comm *comm, struct tti_program_need *need,
				   struct tti_prepared *call)
{
	TTI_TRY(find_in_memory(comm, need, TTI_REACH_MAPPED, call, &call->maps));
	if (comm->devices)
		return TUTTI_OK;
	if (comm->memory.port->plain == TTI_REACH_COPIED)
		TTI_TRY(find_in_memory(comm, need, TTI_REACH_COPIED, call, &call->copies));
	if (call->memory && asks_for_copies(comm))
		call->copies = true;
	return TUTTI_OK;
}

/* A handoff's program is found by its sides (handoff.h). */
static tutti_status prepare_handoff(struct tti_comm *comm, struct tti_prepared *call)
{
	TTI_TRY(tti_memory_ways(comm, TUTTI_HANDOFF, call->nbytes, &call->ways));
	call->is_forced = call->ways & TTI_SEND_IS_FORCED;
	call->maps = call->ways & TTI_SEND_BY_MEMORY && comm->memory.reaches_all;
	call->copies = call->maps && (call->is_forced || asks_for_copies(comm));
	return TUTTI_OK;
}

static tutti_status prepare_collective(struct tti_comm *comm, const struct tti_args *args,
				       struct tti_prepared *call)
{
	struct tti_program_need need = {
		.coll = tti_collective_get(args->coll)->program,
		.root = args->root,
		.in_place = is_in_place(args),
		.nbytes = tti_vector_bytes(comm, args),
		.order = tti_op_order(args->op, args->type),
		.algo = args->algo,
	};
	const struct tti_choice_kept *found;
	struct tti_split split;

	call->nbytes = need.nbytes;
	if (args->coll == TUTTI_HANDOFF)
		return prepare_handoff(comm, call);
	if (tti_is_by_pairs(args->coll) ||
	    (args->coll == TUTTI_ALL_TO_ALL && comm->n > TTI_PAIRED_RANKS_MAX))
		return TUTTI_OK;
	TTI_TRY(tti_programs_get(comm, &need, &found, &call->executable));
	call->slice = found->choice.slice_bytes;
	call->algorithm = found->choice.algo->name;
	call->choice = found->hash;
	split = found->choice.split;
	need.uneven = args->coll == TUTTI_REDUCE_SCATTER_V;
	if (tti_memory_may_serve(comm, args, need.nbytes))
		TTI_TRY(prepare_memory(comm, &need, call));
	call->split = tti_program_split(call->slice, split, reach_of(call));
	call->choice = tti_hash_combine(call->choice, call->split);
	return prepare_short(comm, args, call);
}

/* A program of one operation; both ends compute how its chunk is cut into messages. */
static tutti_status prepare_transfer(struct tti_comm *comm, const struct tti_args *args,
				     struct tti_prepared *call)
{
	const struct tti_reducer reducer = { 0 };
	struct tti_layout layout = {
		.extents = &call->extent, .by_chunk = true, .type_size = 1, .parts = 1
	};
	struct tti_transfer transfer;
	struct tti_program prog;

	tti_transfer_of(comm, args, 0, &transfer);
	call->is_transfer = call->is_short = true;
	call->algorithm = "direct";
	call->extent = transfer.extent;
	call->nbytes = layout.chunk_count = layout.row_count = transfer.extent.count;
	TTI_TRY(tti_send_recv_program(&transfer.step, 1, 1, comm->rank, comm->n, &prog));
	TTI_TRY(tti_programs_bind(comm, &prog, &call->executable));
	/* Both ends know what may be lent. */
	TTI_TRY(tti_memory_ways(comm, TUTTI_SEND_RECV, call->nbytes, &call->ways));
	layout.has_rndv = call->ways & TTI_SEND_BY_MEMORY;
	return tti_short_prepare(&call->way, &comm->engine, call->executable, &layout, &reducer, 1);
}

tutti_status tti_prepared_make(struct tti_comm *comm, const struct tti_args *args,
			       struct tti_prepared *out)
{
	tutti_status st;

	tti_prepared_release(out);
	st = args->coll == TUTTI_SEND_RECV ? prepare_transfer(comm, args, out)
					   : prepare_collective(comm, args, out);
	if (st != TUTTI_OK) {
		tti_prepared_release(out);
		return st;
	}
	out->packed = tti_args_pack(args);
	out->part = tti_signature_part(args) + out->choice;
	out->count = tti_args_common_count(args);
	out->is_rooted = tti_collective_is_rooted(args->coll);
	out->is_checked = out->is_rooted && tti_params()->check;
	if (args->coll != TUTTI_HANDOFF && !tti_has_counts(args->coll)) {
		const size_t size = tutti_type_size(args->type);
		struct tti_range sent, got;

		tti_args_range(comm, args, true, &sent);
		tti_args_range(comm, args, false, &got);
		out->sends = sent.count * size;
		out->recvs = got.count * size;
		out->in_place = tti_collective_in_place(args->coll,
							(size_t)comm->rank * args->count * size);
	}
	return TUTTI_OK;
}

/* -- Keeping ------------------------------------------------------------------------ */

static bool can_be_kept(const struct tti_args *args)
{
	return !args->custom && args->coll != TUTTI_HANDOFF && !tti_has_counts(args->coll) &&
	       !args->sides;
}

tutti_status tti_prepared_get(struct tti_comm *comm, const struct tti_args *args,
			      struct tti_prepared **out)
{
	struct tti_prepared_calls *calls = calls_of(comm);
	const struct tti_prepared_key key = key_of(args, args->op, args->algo);
	const int last = TTI_PREPARED_KEPT - 1;
	struct tti_prepared *call;

	if (!calls)
		return tti_fail(TUTTI_ENOMEM, "prepared calls: out of memory");
	if (!can_be_kept(args)) {
		*out = &calls->other;
		return tti_prepared_make(comm, args, &calls->other);
	}
	*out = look_up(calls, &key);
	if (*out)
		return TUTTI_OK;
	/* The oldest makes room. */
	call = calls->call[last];
	calls->key[last].what = NOTHING;
	TTI_TRY(tti_prepared_make(comm, args, call));
	memmove(&calls->key[1], calls->key, (size_t)last * sizeof(*calls->key));
	memmove(&calls->call[1], calls->call, (size_t)last * sizeof(calls->call[0]));
	calls->key[0] = key;
	calls->call[0] = *out = call;
	return TUTTI_OK;
}
