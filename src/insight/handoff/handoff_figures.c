/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/handoff/handoff_report.h"
#include "plan/handoff/handoff_work.h"
#include "util/error.h"

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

static tutti_status fill(struct tti_hand_work *work, struct tti_handoff_plan *plan)
{
	double most = 1 / TTI_LOC_GBPS, *used;

	TTI_TRY(tti_hand_find_nodes(work));
	used = tti_arena_alloc(&work->arena, work->nrows * sizeof(*used));
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
	find_kinds(work, plan);
	return TUTTI_OK;
}

tutti_status tti_handoff_figures(const struct tti_handoff_job *handoff,
				 struct tti_handoff_plan *plan)
{
	struct tti_hand_work work = { .handoff = handoff };
	const tutti_status st = fill(&work, plan);

	tti_hand_release(&work);
	return st;
}
