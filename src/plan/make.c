/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/connect/connect.h"
#include "plan/plan_words.h"
#include "plan/search/detour.h"
#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

/* The state while a plan is made. */
struct maker {
	const struct tti_plan_job *job;
	const struct tti_plan_config *config;
	struct tti_plan *plan;
	struct tti_kind *kinds;
	uint32_t nkinds;
	uint32_t *kind_of, *position;
	struct tti_connect connect;
};

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "plan: out of memory");
}

/* -- The job ----------------------------------------------------------------------- */

static tutti_status check_job(const struct tti_plan_job *job)
{
	uint32_t *node_of = tti_calloc(job->nranks + 1, sizeof(*node_of));
	uint32_t count = 0;
	tutti_status st = TUTTI_OK;

	if (!node_of)
		return no_memory();
	for (uint32_t node = 0; st == TUTTI_OK && node < job->nnodes; node++) {
		if (job->nodes[node].nranks == 0)
			st = tti_fail(TUTTI_EINVAL, "plan: node %u has no ranks", node);
		for (uint32_t i = 0; st == TUTTI_OK && i < job->nodes[node].nranks; i++) {
			const uint32_t rank = job->nodes[node].ranks[i];

			if (rank >= job->nranks || node_of[rank])
				st = tti_fail(TUTTI_EINVAL,
					      "plan: rank %u of node %u is %s (there are %u ranks)",
					      rank, node,
					      rank < job->nranks ? "on another node too"
								 : "none of the job's",
					      job->nranks);
			else
				node_of[rank] = node + 1;
			count++;
		}
	}
	tti_free(node_of);
	if (st == TUTTI_OK && (count != job->nranks || count == 0))
		st = tti_fail(TUTTI_EINVAL, "plan: the nodes hold %u of %u ranks", count,
			      job->nranks);
	return st;
}

static bool same_list(const uint32_t *a, const uint32_t *b, uint32_t n)
{
	return a == b || memcmp(a, b, n * sizeof(*a)) == 0;
}

static bool same_kind(const struct tti_job_node *a, const struct tti_job_node *b)
{
	return a->routes == b->routes && a->nranks == b->nranks && a->nnets == b->nnets &&
	       same_list(a->members, b->members, a->nranks) &&
	       (a->nnets == 0 || same_list(a->nets, b->nets, a->nnets));
}

static tutti_status start_kind(struct maker *maker, const struct tti_job_node *node)
{
	struct tti_kind *kind = &maker->kinds[maker->nkinds++];
	struct tti_members members = { .routes = node->routes, .nets = node->nets };

	kind->node = node;
	TTI_TRY(tti_colocated_find(&maker->plan->arena, node->members, node->nranks,
				   &kind->colocated));
	members.nodes = kind->colocated.nodes;
	members.n = kind->colocated.nendpoints;
	members.nnets = maker->job->nnodes > 1 ? node->nnets : 0;
	if (maker->job->nnodes == 1)
		TTI_TRY(tti_detour_nets(&members, node->nnets, &members.ninner));
	return tti_loads_build(&members, &kind->loads);
}

static tutti_status find_kinds(struct maker *maker)
{
	for (uint32_t node = 0; node < maker->job->nnodes; node++) {
		const struct tti_job_node *this = &maker->job->nodes[node];
		uint32_t kind = 0;

		while (kind < maker->nkinds && !same_kind(maker->kinds[kind].node, this))
			kind++;
		if (kind == maker->nkinds) {
			if (maker->job->nnodes > 1 && this->nnets == 0)
				return tti_fail(
					TUTTI_EPLAN,
					"plan: node %u (%s) has no NIC, so nothing leads to "
					"the other %u nodes",
					node, this->name ? this->name : "", maker->job->nnodes - 1);
			TTI_TRY(start_kind(maker, this));
		}
		maker->kind_of[node] = kind;
	}
	return TUTTI_OK;
}

/* Nodes of one switch group follow each other; groups, and nodes without one, come in
 * the order of their first. */
static void order_nodes(struct maker *maker)
{
	const struct tti_plan_job *job = maker->job;
	uint32_t count = 0;

	for (uint32_t node = 0; node < job->nnodes; node++)
		maker->position[node] = UINT32_MAX; /* of the node, for now: not placed */
	for (uint32_t node = 0; node < job->nnodes; node++) {
		if (maker->position[node] != UINT32_MAX)
			continue;
		maker->position[node] = count++;
		for (uint32_t other = node + 1; job->nodes[node].group >= 0 && other < job->nnodes;
		     other++)
			if (job->nodes[other].group == job->nodes[node].group)
				maker->position[other] = count++;
	}
}

/* -- What the plan says of ranks and nodes ----------------------------------------- */

static tutti_status describe_node(struct tti_plan *plan, const struct tti_job_node *from,
				  struct tti_plan_node *to)
{
	const struct tti_graph *graph = from->routes->paths->graph;

	to->name = tti_arena_strdup(&plan->arena, from->name ? from->name : "");
	to->nranks = from->nranks;
	to->ranks = tti_arena_alloc(&plan->arena, from->nranks * sizeof(*to->ranks));
	to->nnets = from->nnets;
	to->nets = tti_arena_alloc(&plan->arena, from->nnets * sizeof(*to->nets) + 1);
	if (!to->name || !to->ranks || !to->nets)
		return no_memory();
	memcpy(to->ranks, from->ranks, from->nranks * sizeof(*to->ranks));
	for (uint32_t net = 0; net < from->nnets; net++) {
		to->nets[net] =
			tti_arena_strdup(&plan->arena, graph->nodes[from->nets[net]].full_name);
		if (!to->nets[net])
			return no_memory();
	}
	return TUTTI_OK;
}

/* Nodes of one kind share the names of their NICs. */
static tutti_status describe(struct maker *maker)
{
	const struct tti_plan_job *job = maker->job;
	struct tti_plan *plan = maker->plan;

	plan->nranks = job->nranks;
	plan->nnodes = job->nnodes;
	plan->nkinds = maker->nkinds;
	plan->ranks = tti_arena_alloc(&plan->arena, job->nranks * sizeof(*plan->ranks));
	plan->nodes = tti_arena_alloc(&plan->arena, job->nnodes * sizeof(*plan->nodes));
	if (!plan->ranks || !plan->nodes)
		return no_memory();
	for (uint32_t node = 0; node < job->nnodes; node++) {
		const struct tti_job_node *from = &job->nodes[node];
		const struct tti_graph *graph = from->routes->paths->graph;

		plan->nodes[node].kind = maker->kind_of[node];
		TTI_TRY(describe_node(plan, from, &plan->nodes[node]));
		for (uint32_t i = 0; i < from->nranks; i++) {
			struct tti_plan_rank *rank = &plan->ranks[from->ranks[i]];

			rank->node = node;
			rank->member = i;
			rank->name = tti_arena_strdup(&plan->arena,
						      graph->nodes[from->members[i]].full_name);
			if (!rank->name)
				return no_memory();
		}
	}
	return TUTTI_OK;
}

/* The limit of a kind of node: the link with the highest price. */
static const char *name_limit(struct maker *maker, uint32_t kind)
{
	const struct tti_loads *loads = maker->kinds[kind].loads;
	const struct tti_local *search = maker->kinds[kind].search;
	uint32_t best = UINT32_MAX;
	char link[TTI_LINK_WORDS], text[TTI_LINK_WORDS + 32];

	for (uint32_t row = 0; row < search->nrows; row++)
		if (search->price[row] > 1e-6 &&
		    (best == UINT32_MAX || search->price[row] > search->price[best] + 1e-9))
			best = row;
	if (best == UINT32_MAX)
		return NULL;

	tti_link_words(loads, best, link);
	(void)snprintf(text, sizeof(text), "%s, %.1f GB/s", link, loads->capacity[best]);
	return tti_arena_strdup(&maker->plan->arena, text);
}

/* -- Patterns ---------------------------------------------------------------------- */

static void forget_searches(struct maker *maker)
{
	for (uint32_t kind = 0; kind < maker->nkinds; kind++) {
		if (!maker->config->given)
			tti_local_free(maker->kinds[kind].search);
		maker->kinds[kind].search = NULL;
	}
}

/* Given channels are those of the only kind there is. */
static void take_given(struct maker *maker, struct tti_plan_pattern *pattern)
{
	struct tti_local *given = maker->config->given[pattern->pattern];

	maker->kinds[0].search = given;
	pattern->search_ms = given->ms;
	pattern->cross_nic = given->cross_nic;
	pattern->bound_gbps = given->bound_gbps;
}

/* Search every kind; *weakest_out is the one with the least. */
static tutti_status search_kinds(struct maker *maker, struct tti_plan_pattern *pattern,
				 uint32_t *weakest_out)
{
	const struct tti_plan_config *config = maker->config;
	const struct tti_local_config search = { .pattern = pattern->pattern,
						 .cross_nic = config->cross_nic,
						 .both_ways = config->both_ways,
						 .max_channels = config->max_channels,
						 .in_pairs = tti_trees_in_pairs(pattern->pattern,
										maker->job->nnodes),
						 .budget_ms = config->budget_ms };

	*weakest_out = 0;
	if (config->given) {
		take_given(maker, pattern);
		return TUTTI_OK;
	}
	for (uint32_t kind = 0; kind < maker->nkinds; kind++) {
		struct tti_kind *this = &maker->kinds[kind];

		TTI_TRY(tti_local_search(this->loads, &search, &this->search));
		TTI_TRY(tti_colocated_expand(&this->colocated, this->search));
		pattern->search_ms += this->search->ms;
		if (this->search->bound_gbps < maker->kinds[*weakest_out].search->bound_gbps)
			*weakest_out = kind;
	}
	pattern->cross_nic = maker->kinds[*weakest_out].search->cross_nic;
	pattern->bound_gbps = maker->kinds[*weakest_out].search->bound_gbps;
	return TUTTI_OK;
}

static tutti_status connect(struct maker *maker, struct tti_plan_pattern *pattern)
{
	switch (pattern->pattern) {
	case TTI_PATTERN_RING:
		return tti_connect_rings(&maker->connect, pattern);
	case TTI_PATTERN_TREE:
	case TTI_PATTERN_BALANCED_TREE:
	case TTI_PATTERN_SPLIT_TREE:
	case TTI_PATTERN_COLLNET_CHAIN:
		return tti_connect_trees(&maker->connect, pattern);
	case TTI_PATTERN_NVLS:
	case TTI_PATTERN_COLLNET_DIRECT:
		break;
	}
	return tti_connect_heads(&maker->connect, pattern);
}

static bool all_have_channels(const struct maker *maker)
{
	for (uint32_t kind = 0; kind < maker->nkinds; kind++)
		if (maker->kinds[kind].search->nchannels == 0)
			return false;
	return true;
}

static tutti_status plan_pattern(struct maker *maker, enum tti_pattern pattern)
{
	struct tti_plan *plan = maker->plan;
	struct tti_plan_pattern *out = &plan->patterns[plan->npatterns];
	uint32_t weakest;

	*out = (struct tti_plan_pattern){ .pattern = pattern };
	TTI_TRY(search_kinds(maker, out, &weakest));
	if (!all_have_channels(maker))
		return TUTTI_OK;
	TTI_TRY(connect(maker, out));
	if (out->nchannels == 0) /* less than any figure can say */
		return TUTTI_OK;
	out->limit = name_limit(maker, weakest);
	plan->npatterns++;
	return TUTTI_OK;
}

/* Trees that split a NIC's traffic inside a node make sense only with NICs; with one
 * rank on every node they are trees. */
static uint32_t sensible_patterns(const struct tti_plan_job *job)
{
	const uint32_t all = (UINT32_C(1) << TTI_PATTERN_COUNT) - 1;
	const uint32_t with_nets = 1u << TTI_PATTERN_BALANCED_TREE | 1u << TTI_PATTERN_SPLIT_TREE |
				   1u << TTI_PATTERN_COLLNET_CHAIN |
				   1u << TTI_PATTERN_COLLNET_DIRECT;

	return job->nnodes > 1 ? all : all & ~with_nets;
}

static uint32_t wanted_patterns(const struct maker *maker)
{
	uint32_t bits = 0;

	for (int i = 0; maker->config->given && i < TTI_PATTERN_COUNT; i++)
		bits |= maker->config->given[i] ? 1u << i : 0;
	if (maker->config->given)
		return bits;
	return maker->config->patterns ? maker->config->patterns : sensible_patterns(maker->job);
}

static tutti_status plan_patterns(struct maker *maker)
{
	const uint32_t wanted = wanted_patterns(maker);

	maker->plan->patterns = tti_arena_alloc(&maker->plan->arena,
						TTI_PATTERN_COUNT * sizeof(*maker->plan->patterns));
	if (!maker->plan->patterns)
		return no_memory();
	for (int i = 0; i < TTI_PATTERN_COUNT; i++) {
		if (!(wanted >> i & 1))
			continue;
		TTI_TRY(plan_pattern(maker, (enum tti_pattern)i));
		forget_searches(maker);
	}
	return TUTTI_OK;
}

/* -- All of it --------------------------------------------------------------------- */

static tutti_status make(struct maker *maker)
{
	const uint32_t nnodes = maker->job->nnodes;
	uint32_t *place_of;

	TTI_TRY(check_job(maker->job));
	maker->kinds = tti_calloc(nnodes, sizeof(*maker->kinds));
	maker->kind_of = tti_calloc(3 * (size_t)nnodes, sizeof(*maker->kind_of));
	if (!maker->kinds || !maker->kind_of)
		return no_memory();
	maker->position = maker->kind_of + nnodes;
	TTI_TRY(find_kinds(maker));
	if (maker->config->given && maker->nkinds > 1)
		return tti_fail(TUTTI_EINVAL,
				"plan: channels are given for one kind of node, and "
				"there are %u",
				maker->nkinds);
	order_nodes(maker);
	place_of = maker->position;
	maker->position = maker->kind_of + 2 * nnodes;
	for (uint32_t node = 0; node < nnodes; node++)
		maker->position[place_of[node]] = node;
	TTI_TRY(describe(maker));
	maker->connect = (struct tti_connect){ .job = maker->job,
					       .kinds = maker->kinds,
					       .nkinds = maker->nkinds,
					       .kind_of = maker->kind_of,
					       .position = maker->position,
					       .min_channels = maker->config->min_channels,
					       .max_channels = maker->config->max_channels,
					       .arena = &maker->plan->arena };
	TTI_TRY(plan_patterns(maker));
	maker->plan->hash = tti_plan_hash(maker->plan);
	return TUTTI_OK;
}

tutti_status tti_plan_make(const struct tti_plan_job *job, const struct tti_plan_config *config,
			   struct tti_plan **out)
{
	static const struct tti_plan_config defaults = { .cross_nic = TTI_CROSS_AUTO };
	struct maker maker = { .job = job,
			       .config = config ? config : &defaults,
			       .plan = tti_zalloc(sizeof(*maker.plan)) };
	tutti_status st = maker.plan ? make(&maker) : no_memory();

	for (uint32_t kind = 0; maker.kinds && kind < maker.nkinds; kind++)
		tti_loads_free(maker.kinds[kind].loads);
	if (maker.kinds)
		forget_searches(&maker);
	tti_free(maker.kinds);
	tti_free(maker.kind_of);
	if (st == TUTTI_OK)
		*out = maker.plan;
	else
		tti_plan_free(maker.plan);
	return st;
}
