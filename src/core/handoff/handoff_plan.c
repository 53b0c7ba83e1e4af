/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/handoff/handoff_plan.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "boot/watch/watch.h"
#include "core/call/args.h"
#include "core/call/call.h"
#include "core/comm.h"
#include "core/comm_error.h"
#include "core/device/device.h"
#include "core/handoff/handoff.h"
#include "core/handoff/sides.h"
#include "core/init/comm_job.h"
#include "core/stall.h"
#include "gpu/cuda_memory.h"
#include "plan/handoff/handoff.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/hash.h"
#include "util/log.h"
#include "util/mem.h"
#include "util/params.h"

/* Calls that come before a handoff. Before the first handoff of two sides rank 0 plans it and
 * broadcasts the shape of the plan, so that nothing is computed twice. With TUTTI_CHECK all gather
 * hashes of the sources before each handoff. These are calls like any others, so a group may have
 * several handoffs, of several communicators, that need them. They are parts of the handoff: they
 * have its number, and its name if ranks call different things. */

#define WHY_BYTES 512
/* The thread's time for the search for better shares and trees. */
#define SEARCH_MS 20

/* What a rank holds, in short. */
struct print {
	uint64_t hash[2];
};

/* The first broadcast: the length of the shape, or why there is none. */
struct decision {
	int64_t status;
	uint64_t nbytes, hash;
	char why[WHY_BYTES];
};

/* One handoff while it is planned, checked, or both. */
struct planning {
	struct tti_comm *comm; /* NULL: nothing to do */
	const struct tti_args *args;
	bool is_planned, is_checked;
	struct tti_args call; /* under way */
	struct print *prints; /* [n] */
	struct decision decision;
	struct tti_handoff_shape *shape;
	int64_t *proofs; /* [n]: whether each rank holds it, and what it proves to be there */
	int depth;
};

/* This rank cannot go on, and the others wait for it: notify them. */
static tutti_status no_memory(struct tti_comm *comm)
{
	return tti_stall_settle(comm,
				tti_fail(TUTTI_ENOMEM, "the plan of a handoff: out of memory"), -1);
}

static void set_call(struct planning *p, enum tti_stage stage, tutti_collective coll,
		     const void *send, void *recv, size_t nbytes)
{
	p->call = (struct tti_args){ .coll = coll,
				     .send = send,
				     .recv = recv,
				     .count = nbytes,
				     .type = TUTTI_UINT8,
				     .part_of = p->args,
				     .stage = stage,
				     .algo = p->args->algo };
}

/* -- Sources that shall hold the same (TUTTI_CHECK) --------------------------------- */

/* Whether the sources are compared: each hashes its vector, and all gather the hashes. */
static bool wants_check(const struct tti_args *args)
{
	return tti_params()->check && !args->from->sharded && args->from->n > 1;
}

/* Memory of a GPU comes to the host piece by piece. */
#define PIECE ((size_t)1 << 20)

static tutti_status take_print_of_device(const struct tti_device *device, const void *data,
					 size_t nbytes, struct print *out)
{
	unsigned char *piece = tti_alloc(nbytes < PIECE ? nbytes : PIECE);
	tutti_status st =
		piece ? TUTTI_OK
		      : tti_fail(TUTTI_ENOMEM, "hash of %zu bytes: out of memory", nbytes);
	crypto_generichash_state state;

	(void)crypto_generichash_init(&state, NULL, 0, sizeof(*out));
	for (size_t at = 0; at < nbytes && st == TUTTI_OK; at += PIECE) {
		const size_t n = nbytes - at < PIECE ? nbytes - at : PIECE;

		st = tti_gpu_read(device->gpu, piece, (uintptr_t)data + at, n);
		if (st == TUTTI_OK)
			(void)crypto_generichash_update(&state, piece, n);
	}
	(void)crypto_generichash_final(&state, (unsigned char *)out, sizeof(*out));
	tti_free(piece);
	return st;
}

static tutti_status take_print(const struct tti_comm *comm, const struct tti_args *args,
			       struct print *out)
{
	const size_t nbytes = args->count * tutti_type_size(args->type);

	_Static_assert(sizeof(*out) == crypto_generichash_BYTES_MIN,
		       "a print is a BLAKE2b of 128 bits");
	if (comm->device)
		return take_print_of_device(comm->device, args->send, nbytes, out);
	(void)crypto_generichash((unsigned char *)out, sizeof(*out), args->send, nbytes, NULL, 0);
	return TUTTI_OK;
}

static tutti_status send_print(struct planning *p)
{
	tutti_status st = TUTTI_OK;
	struct print *own;
	size_t first, count;

	p->prints = tti_calloc((size_t)p->comm->n, sizeof(*p->prints));
	if (!p->prints)
		return no_memory(p->comm);
	own = &p->prints[p->comm->rank];
	tti_side_range(p->args->from, p->comm->rank, 1, &first, &count);
	if (count > 0)
		st = take_print(p->comm, p->args, own);
	if (st != TUTTI_OK)
		return tti_stall_settle(p->comm, st, -1);
	set_call(p, TTI_STAGE_SOURCES, TUTTI_ALL_GATHER, own, p->prints, sizeof(*own));
	return TUTTI_OK;
}

static bool same(const struct print *a, const struct print *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* The source whose hash most sources have; the first of several. */
static int reference(const struct tti_args *args, const struct print *prints)
{
	int best = 0, most = 0;

	for (int i = 0; i < args->from->n; i++) {
		int alike = 0;

		for (int k = 0; k < args->from->n; k++)
			alike += same(&prints[args->from->ranks[i]], &prints[args->from->ranks[k]]);
		if (alike > most) {
			most = alike;
			best = i;
		}
		if (2 * most > args->from->n)
			break;
	}
	return args->from->ranks[best];
}

/* All ranks find the same, so nobody is notified: a source that differs ends the communicator. */
static tutti_status compare_prints(struct tti_comm *comm, const struct tti_args *args,
				   const struct print *prints)
{
	const int usual = reference(args, prints);
	char text[TTI_FAILURE_TEXT], sides[TTI_SIDES_TEXT];

	for (int i = 0; i < args->from->n; i++) {
		const int rank = args->from->ranks[i];

		if (same(&prints[rank], &prints[usual]))
			continue;
		tti_sides_format(args->sides, sides, sizeof(sides));
		(void)snprintf(text, sizeof(text),
			       "handoff %s: the sources do not hold the same: rank %d's vector is "
			       "not that of rank %d (TUTTI_CHECK=1): make them equal, or name one "
			       "source",
			       sides, rank, usual);
		tti_comm_mark_failed(comm, TUTTI_EMISMATCH, text);
		return tti_comm_async_error(comm);
	}
	return TUTTI_OK;
}

/* -- Rank 0 plans it, over how the hosts are wired --------------------------------- */

static void report(const struct tti_args *args, const struct tti_handoff_plan *plan,
		   int64_t began_ns)
{
	char sides[TTI_SIDES_TEXT];

	if (!tti_log_enabled(TTI_LOG_INFO, TTI_PLAN))
		return;
	tti_sides_format(args->sides, sides, sizeof(sides));
	tti_log(TTI_LOG_INFO, TTI_PLAN,
		"handoff %s: %u pairs, %.3g GB/s of at most %.3g%s%s, planned in %.2f ms", sides,
		plan->nways, plan->gbps, plan->bound_gbps, plan->nways ? ": " : "",
		plan->nways ? plan->limit : "", (double)(tti_thread_ns() - began_ns) * 1e-6);
}

/* Ranks of a side as the planner has them. */
static const uint32_t *ranks_of(const tutti_side *side)
{
	_Static_assert(sizeof(int) == sizeof(uint32_t), "ranks are not negative");
	return (const uint32_t *)side->ranks;
}

static tutti_status plan_over(struct planning *p, const struct tti_comm_job *job,
			      struct tti_handoff_plan **out, size_t *nbytes)
{
	const struct tti_handoff_call call = tti_handoff_call_of(p->comm, p->args);
	const struct tti_handoff_job handoff = {
		.job = &job->job,
		.from = ranks_of(&call.from),
		.to = ranks_of(&call.to),
		.nfrom = (uint32_t)call.from.n,
		.nto = (uint32_t)call.to.n,
		.from_sharded = tti_handoff_is_sharded(&call.from),
		.to_sharded = tti_handoff_is_sharded(&call.to),
		.is_short = tti_handoff_is_short(p->comm, p->args),
		.budget_ms = SEARCH_MS,
	};

	TTI_TRY(tti_handoff_plan_make(&handoff, out));
	TTI_TRY(tti_handoff_plan_check(&handoff, *out));
	return tti_handoff_shape_of_plan(&handoff, *out, &p->shape, nbytes);
}

static tutti_status make_shape(struct planning *p, size_t *nbytes)
{
	const int64_t began_ns = tti_thread_ns();
	struct tti_handoff_plan *plan = NULL;
	struct tti_comm_job job;
	tutti_status st;

	TTI_TRY(tti_comm_job_of_wiring(p->comm->wiring, p->comm->host_of, p->comm->n, &job));
	st = plan_over(p, &job, &plan, nbytes);
	if (st == TUTTI_OK)
		report(p->args, plan, began_ns);
	tti_handoff_plan_free(plan);
	tti_comm_job_release(&job);
	return st;
}

/* -- A plan goes round, in three calls --------------------------------- */

/* At rank 0. */
static void make(struct planning *p)
{
	struct decision *decision = &p->decision;
	size_t nbytes = 0;

	decision->status = make_shape(p, &nbytes);
	decision->nbytes = nbytes;
	if (decision->status == TUTTI_OK)
		decision->hash = tti_hash_bytes(p->shape, nbytes);
	else
		(void)snprintf(decision->why, sizeof(decision->why), "%s", tti_error_text());
}

static tutti_status send_decision(struct planning *p)
{
	p->proofs = tti_calloc((size_t)p->comm->n, sizeof(*p->proofs));
	if (!p->proofs)
		return no_memory(p->comm);
	if (p->comm->rank == 0)
		make(p);
	set_call(p, TTI_STAGE_DECISION, TUTTI_BROADCAST, &p->decision, &p->decision,
		 sizeof(p->decision));
	return TUTTI_OK;
}

static tutti_status send_shape(struct planning *p)
{
	struct decision *decision = &p->decision;

	decision->why[sizeof(decision->why) - 1] = '\0';
	if (decision->status != TUTTI_OK)
		return tti_fail_quiet(decision->status < 0 ? (tutti_status)decision->status
							   : TUTTI_EPROTO,
				      "%s", decision->why);
	p->shape = p->shape ? p->shape : tti_alloc(decision->nbytes);
	if (!p->shape)
		return no_memory(p->comm);
	set_call(p, TTI_STAGE_SHAPE, TUTTI_BROADCAST, p->shape, p->shape, decision->nbytes);
	return TUTTI_OK;
}

static tutti_status send_proof(struct planning *p)
{
	const struct tti_handoff_call call = tti_handoff_call_of(p->comm, p->args);
	const uint64_t hash =
		tti_hash_bytes(p->shape, p->decision.nbytes) ^ tti_fault("core.handoff");
	int64_t *own = &p->proofs[p->comm->rank];

	*own = hash == p->decision.hash
		       ? tti_handoff_shape_check(&call, p->shape, p->decision.nbytes, &p->depth)
		       : tti_fail_quiet(TUTTI_EPLAN,
					"the plan of a handoff came to rank %d as %016llx, "
					"not %016llx",
					p->comm->rank, (unsigned long long)hash,
					(unsigned long long)p->decision.hash);
	if (*own == TUTTI_OK)
		*own = tti_handoff_make_room(p->comm);
	if (*own != TUTTI_OK)
		(void)snprintf(p->decision.why, sizeof(p->decision.why), "%s", tti_error_text());
	set_call(p, TTI_STAGE_PROOFS, TUTTI_ALL_GATHER, own, p->proofs, sizeof(*own));
	return TUTTI_OK;
}

static tutti_status keep(struct planning *p)
{
	for (int rank = 0; rank < p->comm->n; rank++) {
		const tutti_status status = (tutti_status)p->proofs[rank];

		if (status == TUTTI_OK)
			continue;
		if (rank == p->comm->rank)
			return tti_fail(status, "%s", p->decision.why);
		return tti_fail(status < 0 ? status : TUTTI_EPLAN,
				"rank %d cannot use the plan of a handoff: its log says why", rank);
	}
	tti_handoff_keep(p->comm, p->args, p->shape, p->depth);
	p->shape = NULL;
	return TUTTI_OK;
}

/* -- Of several communicators ------------------------------------------------------------------ */

/* What handoffs of n communicators are planned with. */
struct planner {
	struct tti_call_item *items; /* of the caller */
	int n;
	/* [n] each; NULL: none of them is planned. */
	struct planning *all;
	struct tti_call_item *calls;
	struct tti_call_room *room; /* NULL for one */
};

/* False: out of memory. */
static bool make_room(struct planner *planner)
{
	const size_t n = (size_t)planner->n;

	if (!planner->all)
		planner->all = tti_calloc(n, sizeof(*planner->all));
	if (!planner->calls)
		planner->calls = tti_calloc(n, sizeof(*planner->calls));
	if (!planner->room && n > 1)
		planner->room = tti_call_room_create(planner->n);
	return planner->all && planner->calls && (planner->room || n == 1);
}

/* One call of each that is to be planned, or to be checked. */
static void run_step(const struct planner *planner, bool checks,
		     tutti_status (*begin)(struct planning *))
{
	struct tti_call_item *items = planner->items, *calls = planner->calls;

	for (int i = 0; i < planner->n; i++) {
		struct planning *p = &planner->all[i];

		calls[i] = (struct tti_call_item){ .status = TUTTI_OK };
		if (!(checks ? p->is_checked : p->is_planned) || items[i].status != TUTTI_OK)
			continue;
		items[i].status = begin(p);
		if (items[i].status == TUTTI_OK)
			calls[i] = (struct tti_call_item){ p->comm, .now = &p->call, .nnow = 1 };
	}
	tti_call_run_all(calls, planner->n, planner->room);
	for (int i = 0; i < planner->n; i++)
		if (calls[i].comm)
			items[i].status = calls[i].status;
}

static void plan_all(const struct planner *planner)
{
	struct planning *all = planner->all;
	struct tti_call_item *items = planner->items;

	run_step(planner, true, send_print);
	for (int i = 0; i < planner->n; i++)
		if (all[i].is_checked && items[i].status == TUTTI_OK)
			items[i].status = compare_prints(all[i].comm, all[i].args, all[i].prints);
	run_step(planner, false, send_decision);
	run_step(planner, false, send_shape);
	run_step(planner, false, send_proof);
	for (int i = 0; i < planner->n; i++)
		if (all[i].is_planned && items[i].status == TUTTI_OK)
			items[i].status = keep(&all[i]);
}

static void release(struct planner *planner)
{
	for (int i = 0; planner->all && i < planner->n; i++) {
		struct planning *p = &planner->all[i];

		if (p->comm)
			p->comm->seq--;
		tti_free(p->shape);
		tti_free(p->proofs);
		tti_free(p->prints);
	}
	tti_free(planner->all);
	tti_free(planner->calls);
	tti_free(planner->room);
}

bool tti_handoff_has_calls(const struct tti_call_item *item)
{
	return item->status == TUTTI_OK && item->nnow > 0 && item->now->coll == TUTTI_HANDOFF &&
	       (wants_check(item->now) || tti_handoff_needs_plan(item->comm, item->now));
}

void tti_handoffs_plan(struct tti_call_item *items, int n)
{
	struct planner planner = { .items = items, .n = n };
	bool has_room = true;

	for (int i = 0; i < n; i++) {
		const struct tti_args *args = items[i].now;
		bool is_planned, is_checked;

		if (items[i].status != TUTTI_OK || items[i].nnow == 0 ||
		    args->coll != TUTTI_HANDOFF)
			continue;
		is_planned = tti_handoff_needs_plan(items[i].comm, args);
		is_checked = wants_check(args);
		if (!is_planned && !is_checked)
			continue;
		has_room = make_room(&planner);
		if (!has_room) {
			items[i].status = no_memory(items[i].comm);
			continue;
		}
		planner.all[i] = (struct planning){ .comm = items[i].comm,
						    .args = args,
						    .is_planned = is_planned,
						    .is_checked = is_checked };
		items[i].comm->seq++; /* all of it has the number of the handoff */
	}
	if (planner.all && has_room)
		plan_all(&planner);
	release(&planner);
}
