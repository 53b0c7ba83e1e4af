/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/brief.h"

#include "core/comm.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

void tti_briefs_free(struct tti_briefs *briefs)
{
	if (!briefs)
		return;
	for (int i = 0; i < TTI_BRIEFS_KEPT; i++)
		tti_straight_release(&briefs->at[i].way);
	tti_straight_release(&briefs->other.way);
	tti_free(briefs);
}

/* NULL: out of memory. */
static struct tti_briefs *briefs_of(struct tti_comm *comm)
{
	struct tti_briefs *briefs = comm->briefs;

	if (briefs)
		return briefs;
	briefs = tti_zalloc(sizeof(*briefs));
	for (int i = 0; briefs && i < TTI_BRIEFS_KEPT; i++)
		briefs->key[i].coll = (tutti_collective)TUTTI_COLLECTIVE_COUNT;
	comm->briefs = briefs;
	return briefs;
}

static bool is_for(const struct tti_brief_key *key, const struct tti_args *args, tutti_op op)
{
	return key->count == args->count && key->coll == args->coll && key->type == args->type &&
	       key->op == op && key->root == args->root && key->is_send == args->is_send;
}

/* Its place, the newest being looked at first; -1: there is none. */
static int place_of(const struct tti_briefs *briefs, const struct tti_args *args, tutti_op op)
{
	for (uint32_t i = 0; i < TTI_BRIEFS_KEPT; i++) {
		const uint32_t at = (briefs->newest - i) % TTI_BRIEFS_KEPT;

		if (is_for(&briefs->key[at], args, op))
			return (int)at;
	}
	return -1;
}

/* As tti_args_check() would say. */
static bool are_right(const struct tti_brief *brief, uintptr_t send, uintptr_t recv)
{
	if ((brief->sends > 0 && !send) || (brief->recvs > 0 && !recv) ||
	    brief->sends > UINTPTR_MAX - send || brief->recvs > UINTPTR_MAX - recv)
		return false;
	return send >= recv + brief->recvs || recv >= send + brief->sends ||
	       recv == send + brief->in_place;
}

struct tti_brief *tti_brief_find(struct tti_comm *comm, const struct tti_args *args)
{
	tutti_op op = args->op;
	struct tti_briefs *briefs;
	int at;

	if (atomic_load_explicit(&comm->state, memory_order_acquire) != TTI_COMM_READY ||
	    atomic_load_explicit(&comm->fate, memory_order_relaxed) != 0 ||
	    !tti_turn_is_free(comm) || !comm->briefs)
		return NULL;
	briefs = comm->briefs;
	if (comm->reproducible && tti_collective_reduces(args->coll) && args->coll != TUTTI_BARRIER)
		op = tutti_op_reproducible(op);
	at = place_of(briefs, args, op);
	if (at < 0 || !are_right(&briefs->at[at], (uintptr_t)args->send, (uintptr_t)args->recv))
		return NULL;
	/* Transfers, but for other ranks it may be the same call. */
	if (args->coll == TUTTI_ALL_TO_ALL && args->send == args->recv)
		return NULL;
	return &briefs->at[at];
}

/* Where recv is to send in a call that is in place. */
static uintptr_t in_place(const struct tti_comm *comm, const struct tti_args *args)
{
	const size_t own = (size_t)comm->rank * args->count * tutti_type_size(args->type);

	if (args->coll == TUTTI_ALL_GATHER || args->coll == TUTTI_GATHER)
		return 0 - own;
	return args->coll == TUTTI_REDUCE_SCATTER || args->coll == TUTTI_SCATTER ? own : 0;
}

/* The oldest makes room. */
static struct tti_brief *make_room(struct tti_briefs *briefs)
{
	briefs->newest = (briefs->newest + 1) % TTI_BRIEFS_KEPT;
	briefs->key[briefs->newest].coll = (tutti_collective)TUTTI_COLLECTIVE_COUNT;
	return &briefs->at[briefs->newest];
}

/* Those of an operator of the user's are not found again. */
static void keep(struct tti_comm *comm, const struct tti_args *args, struct tti_brief *brief)
{
	struct tti_briefs *briefs = comm->briefs;

	tti_args_extents(comm, args, &brief->sends, &brief->recvs);
	brief->in_place = in_place(comm, args);
	brief->shape = tti_args_shape(args);
	brief->part = tti_call_signature_part(args);
	brief->is_transfer = args->coll == TUTTI_SEND_RECV;
	brief->algorithm = atomic_load_explicit(&comm->last_algorithm, memory_order_relaxed);
	if (brief == &briefs->other)
		return;
	briefs->key[briefs->newest] = (struct tti_brief_key){
		.coll = args->coll,
		.type = args->type,
		.op = args->op,
		.root = args->root,
		.is_send = args->is_send,
		.count = args->count,
	};
}

tutti_status tti_brief_get(struct tti_comm *comm, const struct tti_args *args,
			   struct tti_bound *bound, size_t slice_bytes, struct tti_brief **out)
{
	struct tti_briefs *briefs = briefs_of(comm);
	int at;
	struct tti_layout layout;
	struct tti_reducer reducer;
	struct tti_brief *brief;

	if (!briefs)
		return tti_fail(TUTTI_ENOMEM, "short calls: out of memory");
	at = args->custom ? -1 : place_of(briefs, args, args->op);
	*out = at < 0 ? NULL : &briefs->at[at];
	if (*out)
		return TUTTI_OK;
	TTI_TRY(tti_layout_of(comm, args, tti_bound_nchunks(bound), slice_bytes, &layout));
	if (!tti_straight_fits(bound, &layout, slice_bytes))
		return TUTTI_OK;
	reducer = tti_operator_reducer(args->custom, args->op, args->type, comm->n);
	brief = args->custom ? &briefs->other : make_room(briefs);
	TTI_TRY(tti_straight_prepare(&brief->way, &comm->engine, bound, &layout, &reducer,
				     slice_bytes));
	keep(comm, args, brief);
	*out = brief;
	return TUTTI_OK;
}

struct tti_brief *tti_brief_get_transfer(struct tti_comm *comm, const struct tti_args *args,
					 uint64_t tag)
{
	const size_t nbytes = args->count * tutti_type_size(args->type);
	struct tti_briefs *briefs;
	struct tti_brief *brief;
	int at;

	if (nbytes >= tti_params()->registered_least ||
	    !tti_straight_reaches(&comm->engine, args->root, nbytes))
		return NULL;
	briefs = briefs_of(comm);
	at = briefs ? place_of(briefs, args, args->op) : -1;
	if (!briefs || at >= 0)
		return briefs ? &briefs->at[at] : NULL;
	brief = make_room(briefs);
	brief->tag = tag;
	keep(comm, args, brief);
	return brief;
}
