/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/plan/plan_report.h"

#include "util/error.h"
#include "util/mem.h"

struct part {
	const struct tti_plan *plan;
	uint32_t node, n;
	struct tti_local *out;
};

static uint32_t member_of(const struct part *part, uint32_t rank)
{
	if (rank == UINT32_MAX || part->plan->ranks[rank].node != part->node)
		return UINT32_MAX;
	return part->plan->ranks[rank].member;
}

/* The head first, then those that hang on it. */
static bool fill_head(const struct part *part, const struct tti_plan_channel *from,
		      struct tti_channel *to)
{
	uint32_t head = UINT32_MAX, count = 1;

	for (uint32_t i = 0; i < from->nranks; i++)
		if (member_of(part, from->ranks[i]) != UINT32_MAX)
			head = member_of(part, from->ranks[i]);
	if (head == UINT32_MAX)
		return false;
	to->order[0] = head;
	for (uint32_t i = 0; i < part->n; i++) {
		to->parent[i] = i == head ? UINT32_MAX : head;
		if (i != head)
			to->order[count++] = i;
	}
	return true;
}

/* The member where the traffic of the nodes below enters, if it is not the root. */
static uint32_t find_second(const struct part *part, const struct tti_plan_channel *from,
			    uint32_t root)
{
	uint32_t second = root;

	for (uint32_t rank = 0; rank < part->plan->nranks; rank++) {
		const uint32_t parent = member_of(part, from->parent[rank]);

		if (parent != UINT32_MAX && parent != root && member_of(part, rank) == UINT32_MAX)
			second = parent;
	}
	return second;
}

static bool fill_order(const struct part *part, const struct tti_plan_channel *from,
		       struct tti_channel *to)
{
	uint32_t count = 0, nroots = 0;

	for (uint32_t i = 0; i < from->nranks; i++) {
		const uint32_t member = member_of(part, from->ranks[i]);

		if (member == UINT32_MAX)
			continue;
		if (count == part->n)
			return false;
		to->order[count++] = member;
		if (to->parent) {
			to->parent[member] = member_of(part, from->parent[from->ranks[i]]);
			nroots += to->parent[member] == UINT32_MAX;
		}
	}
	return count == part->n && (!to->parent || nroots == 1);
}

static tutti_status fill_ways(const struct part *part, const struct tti_plan_channel *from,
			      struct tti_channel *to)
{
	const struct tti_plan_node *node = &part->plan->nodes[part->node];

	to->way = tti_arena_alloc(&part->out->arena, part->n * sizeof(*to->way));
	if (!to->way)
		return tti_fail(TUTTI_ENOMEM, "part of a plan: out of memory");
	for (uint32_t i = 0; i < part->n; i++)
		to->way[i] = (struct tti_way){ .out = (uint32_t)from->ways[node->ranks[i]].out,
					       .in = (uint32_t)from->ways[node->ranks[i]].in };
	return TUTTI_OK;
}

static tutti_status fill_channel(const struct part *part, const struct tti_plan_channel *from,
				 struct tti_channel *to)
{
	const bool heads = tti_pattern_has_heads(part->out->pattern);
	const bool halves = part->out->pattern == TTI_PATTERN_BALANCED_TREE ||
			    part->out->pattern == TTI_PATTERN_SPLIT_TREE;

	*to = (struct tti_channel){ .bw_gbps = from->bw_gbps,
				    .net_in = TTI_NO_NET,
				    .net_out = TTI_NO_NET,
				    .second = UINT32_MAX,
				    .type_intra = from->type_intra,
				    .type_inter = from->type_inter };
	to->order = tti_arena_alloc(&part->out->arena, part->n * sizeof(*to->order));
	if (heads || from->parent)
		to->parent = tti_arena_alloc(&part->out->arena, part->n * sizeof(*to->parent));
	if (!to->order || ((heads || from->parent) && !to->parent))
		return tti_fail(TUTTI_ENOMEM, "part of a plan: out of memory");
	if (!(heads ? fill_head(part, from, to) : fill_order(part, from, to)))
		return tti_fail(TUTTI_EPLAN,
				"a %s channel enters node %u more than once, or not at all",
				tti_pattern_name(part->out->pattern), part->node);
	if (from->ends) {
		to->net_in = (uint32_t)from->ends[part->node].in;
		to->net_out = (uint32_t)from->ends[part->node].out;
	}
	if (from->ways)
		TTI_TRY(fill_ways(part, from, to));
	if (halves && from->ends)
		to->second = find_second(part, from, to->order[0]);
	return TUTTI_OK;
}

static tutti_status fill(const struct part *part, const struct tti_plan_pattern *pattern)
{
	struct tti_local *out = part->out;

	out->channels = tti_arena_alloc(&out->arena, pattern->nchannels * sizeof(*out->channels));
	if (!out->channels)
		return tti_fail(TUTTI_ENOMEM, "part of a plan: out of memory");
	for (uint32_t i = 0; i < pattern->nchannels; i++) {
		TTI_TRY(fill_channel(part, &pattern->channels[i], &out->channels[i]));
		out->total_gbps += (double)out->channels[i].bw_gbps;
		out->nchannels++;
	}
	out->bound_gbps = pattern->bound_gbps;
	return TUTTI_OK;
}

tutti_status tti_plan_part(const struct tti_plan *plan, enum tti_pattern pattern, uint32_t node,
			   struct tti_local **out)
{
	const struct tti_plan_pattern *from = tti_plan_pattern(plan, pattern);
	const struct part part = { plan, node, plan->nodes[node].nranks,
				   tti_zalloc(sizeof(*part.out)) };
	tutti_status st;

	if (!part.out)
		return tti_fail(TUTTI_ENOMEM, "part of a plan: out of memory");
	part.out->pattern = pattern;
	part.out->cross_nic = from ? from->cross_nic : TTI_CROSS_SAME;
	st = from ? fill(&part, from) : TUTTI_OK;
	if (st == TUTTI_OK)
		*out = part.out;
	else
		tti_local_free(part.out);
	return st;
}

tutti_status tti_plan_loads(const struct tti_report *report, uint32_t node, struct tti_loads **out)
{
	const bool alone = report->plan->nnodes == 1;
	const struct tti_job_node *from = &report->job->nodes[node];
	const struct tti_plan_node *said = &report->plan->nodes[node];
	uint32_t *nets = tti_calloc((size_t)said->nnets + 1, sizeof(*nets));
	const struct tti_members members = { .routes = from->routes,
					     .nodes = from->members,
					     .n = from->nranks,
					     .nets = nets,
					     .nnets = alone ? 0 : said->nnets,
					     .ninner = alone ? said->nnets : 0 };
	tutti_status st;

	if (!nets)
		return tti_fail(TUTTI_ENOMEM, "loads of a plan: out of memory");
	for (uint32_t i = 0; i < said->nnets; i++)
		nets[i] = tti_graph_find(from->routes->paths->graph, TTI_NODE_NET, said->nets[i]);
	st = tti_loads_build(&members, out);
	tti_free(nets);
	return st;
}
