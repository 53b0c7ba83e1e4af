/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/handoff/handoff.h"

#include "plan/handoff/handoff_work.h"
#include "util/error.h"
#include "util/mem.h"

/* -- Without a plan -------------------------------------------------------------------------- */

/* The nearest NIC of a rank, as one would take it without looking at others. */
static uint32_t nearest_net(const struct tti_hand_work *work, uint32_t rank, bool outwards)
{
	const uint32_t nnets = tti_hand_node_of(work, rank)->job->nnets;
	const struct tti_hop *best = NULL;
	uint32_t at = TTI_NO_NET;

	for (uint32_t net = 0; net < nnets; net++) {
		const struct tti_hop *hop = outwards ? tti_hand_hop_out(work, rank, net)
						     : tti_hand_hop_in(work, rank, net);

		if (hop->bw_gbps <= 0)
			continue;
		if (!best || hop->type < best->type ||
		    (hop->type == best->type && hop->bw_gbps > best->bw_gbps)) {
			best = hop;
			at = net;
		}
	}
	return at;
}

static void add_load(const struct tti_hand_node *node, const struct tti_hop *hop, double weight,
		     double *used)
{
	const struct tti_load *loads = node->loads->loads + hop->first;

	for (uint32_t i = 0; i < hop->n; i++)
		used[node->first_row + loads[i].row] += weight * (double)loads[i].amount;
}

/* A rank to another by the NICs next to them. */
static void add_copy(const struct tti_hand_work *work, uint32_t from, uint32_t to, double weight,
		     double *used)
{
	const struct tti_hand_node *a = tti_hand_node_of(work, from),
				   *b = tti_hand_node_of(work, to);
	const uint32_t out = nearest_net(work, from, true), in = nearest_net(work, to, false);

	if (a != b && out != TTI_NO_NET && in != TTI_NO_NET) {
		add_load(a, tti_hand_hop_out(work, from, out), weight, used);
		add_load(b, tti_hand_hop_in(work, to, in), weight, used);
	} else if (a == b && work->end_of[from] != work->end_of[to]) {
		add_load(a, tti_hand_hop(work, from, to), weight, used);
	}
}

/* The source of a copy: one of the same node, else the next in turn. */
static uint32_t source_for(const struct tti_hand_work *work, uint32_t place)
{
	const struct tti_handoff_job *handoff = work->handoff;
	const struct tti_hand_node *node = tti_hand_node_of(work, handoff->to[place]);

	return node->nfrom ? node->from[place % node->nfrom]
			   : handoff->from[place % handoff->nfrom];
}

static void add_copies(const struct tti_hand_work *work, double *used)
{
	const struct tti_handoff_job *handoff = work->handoff;
	const double part = handoff->to_sharded ? 1.0 / handoff->nto : 1;

	for (uint32_t i = 0; i < handoff->nto; i++) {
		const uint32_t to = handoff->to[i];

		if (!handoff->from_sharded) {
			if (!work->is_from[to])
				add_copy(work, source_for(work, i), to, part, used);
			continue;
		}
		for (uint32_t k = 0; k < handoff->nfrom; k++)
			if (handoff->from[k] != to)
				add_copy(work, handoff->from[k], to, part / handoff->nfrom, used);
	}
}

static tutti_status find_naive(const struct tti_hand_work *work, struct tti_handoff_plan *plan)
{
	double *used = tti_calloc((size_t)work->nrows + 1, sizeof(*used));
	double most = 1 / TTI_LOC_GBPS;

	if (!used)
		return tti_hand_no_memory();
	add_copies(work, used);
	for (uint32_t i = 0; i < work->nnodes; i++) {
		const struct tti_hand_node *node = &work->nodes[i];

		for (uint32_t row = 0; row < node->loads->nrows; row++) {
			const double load =
				used[node->first_row + row] / node->loads->capacity[row];

			most = load > most ? load : most;
		}
	}
	plan->naive_gbps = 1 / most;
	tti_free(used);
	return TUTTI_OK;
}

/* -- What times are made of ------------------------------------------------------------------- */

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

static void find_kinds(const struct tti_hand_work *work, struct tti_handoff_plan *plan)
{
	plan->nvlink = true;
	for (uint32_t i = 0; i < work->nnodes; i++) {
		const struct tti_hand_node *node = &work->nodes[i];
		const struct tti_node *nodes = node->job->routes->paths->graph->nodes;

		for (uint32_t end = 0; end < node->nends; end++)
			plan->on_gpus |= nodes[node->ends[end]].type == TTI_NODE_GPU;
		for (uint32_t from = 0; from < node->nends; from++)
			for (uint32_t to = 0; to < node->nends; to++)
				if (from != to &&
				    tti_hop(node->loads, from, to)->type > TTI_PATH_NVB)
					plan->nvlink = false;
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

/* -- All of it ---------------------------------------------------------------------------------- */

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
	TTI_TRY(find_naive(work, plan));
	find_depths(work, plan);
	find_kinds(work, plan);
	return TUTTI_OK;
}

tutti_status tti_handoff_plan_make(const struct tti_handoff_job *handoff,
				   struct tti_handoff_plan **out)
{
	struct tti_hand_work work = { .handoff = handoff };
	struct tti_handoff_plan *plan = tti_zalloc(sizeof(*plan));
	tutti_status st = plan ? make(&work, plan) : tti_hand_no_memory();

	for (uint32_t i = 0; i < work.nnodes; i++)
		if (work.nodes[i].owns_loads)
			tti_loads_free(work.nodes[i].loads);
	tti_vec_release(&work.atoms);
	tti_vec_release(&work.options);
	tti_vec_release(&work.legs);
	tti_arena_release(&work.arena);
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
