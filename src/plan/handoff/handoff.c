/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/handoff/handoff.h"

#include "plan/handoff/handoff_work.h"
#include "util/error.h"
#include "util/mem.h"

static uint32_t depth_of(const struct tti_handoff_tree *tree)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < tree->n; i++) {
		uint32_t depth = 0;

		for (uint32_t at = i; tree->parent[at] != UINT32_MAX; at = tree->parent[at])
			depth++;
		most = depth > most ? depth : most;
	}
	return most;
}

/* How many stages a slice passes, one after the other. */
static void find_depths(const struct tti_hand_work *work, struct tti_handoff_plan *plan)
{
	for (size_t i = 0; i < work->legs.n; i++)
		if (work->legs.at[i].depth > plan->depth)
			plan->depth = work->legs.at[i].depth;
	for (uint32_t i = 0; i < plan->ntrees; i++) {
		const uint32_t depth = depth_of(&plan->trees[i]);

		plan->inner_depth = depth > plan->inner_depth ? depth : plan->inner_depth;
	}
}

/* The solver may be a hair above what there is. */
static void trim(struct tti_handoff_plan *plan)
{
	if (plan->gbps <= plan->bound_gbps || plan->gbps > plan->bound_gbps * (1 + 1e-6))
		return;
	plan->gbps = plan->bound_gbps;
	for (uint32_t i = 0; i < plan->nways; i++)
		plan->ways[i].gbps = plan->ways[i].share * plan->gbps;
	for (uint32_t i = 0; i < plan->nlegs; i++)
		plan->legs[i].gbps = plan->legs[i].share * plan->gbps;
}

/* -- All of it --------------------------------------------------------------------- */

static tutti_status make(struct tti_hand_work *work, struct tti_handoff_plan *plan)
{
	const struct tti_handoff_job *handoff = work->handoff;

	plan->nfrom = handoff->nfrom;
	plan->nto = handoff->nto;
	plan->from_sharded = handoff->from_sharded;
	plan->to_sharded = handoff->to_sharded;
	plan->nranks = handoff->job->nranks;
	plan->nnodes = handoff->job->nnodes;
	plan->limit = plan->bound = "";
	TTI_TRY(tti_hand_find_nodes(work));
	TTI_TRY(handoff->from_sharded || handoff->to_sharded ? tti_hand_add_parts(work)
							     : tti_hand_add_chains(work));
	TTI_TRY(tti_hand_pack(work, plan));
	TTI_TRY(tti_hand_bound(work, plan));
	trim(plan);
	find_depths(work, plan);
	return TUTTI_OK;
}

tutti_status tti_handoff_plan_make(const struct tti_handoff_job *handoff,
				   struct tti_handoff_plan **out)
{
	struct tti_hand_work work = { .handoff = handoff };
	struct tti_handoff_plan *plan = tti_zalloc(sizeof(*plan));
	tutti_status st = plan ? make(&work, plan) : tti_hand_no_memory();

	tti_hand_release(&work);
	if (st == TUTTI_OK)
		*out = plan;
	else
		tti_handoff_plan_free(plan);
	return st;
}

void tti_handoff_plan_free(struct tti_handoff_plan *plan)
{
	if (!plan)
		return;
	tti_arena_release(&plan->arena);
	tti_free(plan);
}
