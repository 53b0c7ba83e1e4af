/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "insight/plan/plan_report.h"
#include "insight/print/print_words.h"
#include "plan/plan_words.h"
#include "plan/search/detour.h"
#include "topo/graph/words.h"
#include "util/error.h"
#include "util/mem.h"

/* Adds up the load that the channels of a plan put on the links of every node, hop by hop and from
 * the plan alone, and reports each link whose load exceeds its bandwidth. */

struct verifier {
	const struct tti_report *report;
	struct tti_loads **loads;        /* of each kind             */
	double **used;                   /* of each node, by row     */
	uint32_t *root, *second;         /* of each node, in the channel at hand; a rank */
	double worst[TTI_PATTERN_COUNT]; /* how many times too much, of each; 0: nowhere   */
	struct tti_strbuf *out;
	size_t nfindings;
};

TUTTI_PRINTF(2, 3) static void say(struct verifier *v, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	tti_print_line(v->out, fmt, args);
	va_end(args);
	v->nfindings++;
}

static const struct tti_loads *loads_of(const struct verifier *v, uint32_t node)
{
	return v->loads[v->report->plan->nodes[node].kind];
}

/* -- Loads of each kind ----------------------------------------------------------------- */

static tutti_status build_loads(struct verifier *v)
{
	const struct tti_plan *plan = v->report->plan;

	for (uint32_t node = 0; node < plan->nnodes; node++) {
		struct tti_loads **loads = &v->loads[plan->nodes[node].kind];

		if (!*loads)
			TTI_TRY(tti_plan_loads(v->report, node, loads));
		v->used[node] = tti_calloc((size_t)(*loads)->nrows + 1, sizeof(double));
		if (!v->used[node])
			return tti_fail(TUTTI_ENOMEM, "check of a plan: out of memory");
	}
	return TUTTI_OK;
}

/* -- Hops ------------------------------------------------------------------------------- */

static void use(struct verifier *v, uint32_t node, const struct tti_hop *hop, double gbps,
		const char *from, const char *to)
{
	const struct tti_loads *loads = loads_of(v, node);

	if (hop->bw_gbps <= 0)
		say(v, "nothing leads from %s to %s in node %u", from, to, node);
	for (uint32_t i = hop->first; i < hop->first + hop->n; i++)
		v->used[node][loads->loads[i].row] += gbps * (double)loads->loads[i].amount;
}

static void use_inside(struct verifier *v, uint32_t a, uint32_t b, double gbps)
{
	const struct tti_plan_rank *from = &v->report->plan->ranks[a],
				   *to = &v->report->plan->ranks[b];

	use(v, from->node, tti_hop(loads_of(v, from->node), from->member, to->member), gbps,
	    from->name, to->name);
}

/* Directly, or out to one NIC of the only node and in from another. */
static void use_hop(struct verifier *v, const struct tti_plan_end *way, uint32_t a, uint32_t b,
		    double gbps)
{
	const struct tti_plan_rank *from = &v->report->plan->ranks[a],
				   *to = &v->report->plan->ranks[b];
	const char **names = v->report->plan->nodes[0].nets;
	const struct tti_loads *loads = loads_of(v, 0);

	if (!way || way->out < 0) {
		use_inside(v, a, b, gbps);
		return;
	}
	if (!tti_way_exists(loads, (struct tti_way){ (uint32_t)way->out, (uint32_t)way->in }))
		say(v,
		    "no network leads from %s to %s: they are one port, or on two fabrics, "
		    "or of a speed that is not known",
		    names[way->out], names[way->in]);
	use(v, 0, tti_hop_out(loads, (uint32_t)way->out, from->member), gbps, from->name,
	    names[way->out]);
	use(v, 0, tti_hop_in(loads, (uint32_t)way->in, to->member), gbps, names[way->in], to->name);
}

static void use_in(struct verifier *v, const struct tti_plan_channel *channel, uint32_t rank,
		   double gbps)
{
	const struct tti_plan_rank *to = &v->report->plan->ranks[rank];
	const int32_t net = channel->ends[to->node].in;

	use(v, to->node, tti_hop_in(loads_of(v, to->node), (uint32_t)net, to->member), gbps,
	    v->report->plan->nodes[to->node].nets[net], to->name);
}

static void use_out(struct verifier *v, const struct tti_plan_channel *channel, uint32_t rank,
		    double gbps)
{
	const struct tti_plan_rank *from = &v->report->plan->ranks[rank];
	const int32_t net = channel->ends[from->node].out;

	use(v, from->node, tti_hop_out(loads_of(v, from->node), (uint32_t)net, from->member), gbps,
	    from->name, v->report->plan->nodes[from->node].nets[net]);
}

static void use_ends(struct verifier *v, const struct tti_plan_channel *channel, uint32_t rank,
		     double gbps)
{
	use_in(v, channel, rank, gbps);
	if (v->report->config->both_ways)
		use_out(v, channel, rank, gbps);
}

/* -- Patterns --------------------------------------------------------------------------- */

static void use_ring(struct verifier *v, const struct tti_plan_channel *channel)
{
	const double gbps = (double)channel->bw_gbps;

	for (uint32_t i = 0; channel->nranks > 1 && i < channel->nranks; i++) {
		const uint32_t a = channel->ranks[i];
		const uint32_t b = channel->ranks[(i + 1) % channel->nranks];

		if (v->report->plan->ranks[a].node == v->report->plan->ranks[b].node) {
			use_hop(v, channel->ways ? &channel->ways[b] : NULL, a, b, gbps);
			continue;
		}
		use_out(v, channel, a, gbps);
		use_in(v, channel, b, gbps);
	}
}

/* The load of a tree on a hop: down, and up by the same NICs if both directions count. */
static void use_both(struct verifier *v, const struct tti_plan_channel *channel, uint32_t parent,
		     uint32_t rank)
{
	const struct tti_plan_end *way = channel->ways ? &channel->ways[rank] : NULL;
	const struct tti_plan_end back =
		way ? (struct tti_plan_end){ .in = way->out, .out = way->in }
		    : (struct tti_plan_end){ -1, -1 };

	use_hop(v, way, parent, rank, (double)channel->bw_gbps);
	if (v->report->config->both_ways)
		use_hop(v, &back, rank, parent, (double)channel->bw_gbps);
}

/* Hops inside nodes, and where the tree enters each. */
static void use_tree_hops(struct verifier *v, const struct tti_plan_channel *channel)
{
	const struct tti_plan_rank *ranks = v->report->plan->ranks;

	for (uint32_t node = 0; node < v->report->plan->nnodes; node++)
		v->root[node] = UINT32_MAX;
	for (uint32_t rank = 0; rank < v->report->plan->nranks; rank++) {
		const uint32_t parent = channel->parent[rank];

		if (parent != UINT32_MAX && ranks[parent].node == ranks[rank].node) {
			use_both(v, channel, parent, rank);
			continue;
		}
		if (v->root[ranks[rank].node] != UINT32_MAX)
			say(v, "a tree enters node %u at %s and at %s", ranks[rank].node,
			    ranks[v->root[ranks[rank].node]].name, ranks[rank].name);
		v->root[ranks[rank].node] = rank;
	}
}

/* The members on which the trees of other nodes hang, if not the roots. One tree of a pair tells
 * them; in the other tree the node has no nodes below it. */
static void find_seconds(struct verifier *v, const struct tti_plan_channel *channel)
{
	const struct tti_plan_rank *ranks = v->report->plan->ranks;

	for (uint32_t rank = 0; rank < v->report->plan->nranks; rank++) {
		const uint32_t parent = channel->parent[rank];
		const uint32_t above = parent == UINT32_MAX ? parent : channel->parent[parent];

		if (parent != UINT32_MAX && ranks[parent].node != ranks[rank].node &&
		    above != UINT32_MAX && ranks[above].node == ranks[parent].node)
			v->second[ranks[parent].node] = parent;
	}
}

static void use_tree(struct verifier *v, enum tti_pattern pattern,
		     const struct tti_plan_channel *channel)
{
	const double gbps = (double)channel->bw_gbps;

	use_tree_hops(v, channel);
	for (uint32_t node = 0; channel->ends && node < v->report->plan->nnodes; node++) {
		const uint32_t root = v->root[node], second = v->second[node];

		if (root == UINT32_MAX)
			continue;
		/* The second member may be unknown; its load is left out then. */
		if (pattern == TTI_PATTERN_BALANCED_TREE) {
			use_ends(v, channel, root, gbps / 2);
			if (second != UINT32_MAX)
				use_ends(v, channel, second, gbps / 2);
		} else if (pattern == TTI_PATTERN_SPLIT_TREE) {
			use_in(v, channel, root, gbps);
			if (second != UINT32_MAX)
				use_out(v, channel, second, gbps);
		} else {
			use_ends(v, channel, root, gbps);
		}
	}
}

/* Ranks that share a device take part in it once. */
static bool is_first(const struct tti_loads *loads, uint32_t member)
{
	for (uint32_t i = 0; i < member; i++)
		if (loads->nodes[i] == loads->nodes[member])
			return false;
	return true;
}

static uint32_t count_devices(const struct tti_loads *loads)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < loads->n; i++)
		n += is_first(loads, i);
	return n;
}

static void use_head(struct verifier *v, enum tti_pattern pattern,
		     const struct tti_plan_channel *channel, uint32_t head)
{
	const struct tti_plan_rank *at = &v->report->plan->ranks[head];
	const struct tti_plan_node *node = &v->report->plan->nodes[at->node];
	const struct tti_loads *loads = loads_of(v, at->node);
	const double gbps = (double)channel->bw_gbps;
	const uint32_t ndevices = count_devices(loads);

	for (uint32_t i = 0; i < node->nranks; i++) {
		const bool same = loads->nodes[i] == loads->nodes[at->member];

		if (!is_first(loads, i))
			continue;
		if (pattern == TTI_PATTERN_NVLS) {
			use(v, at->node, &loads->sw[2 * i], same ? 2 * gbps : gbps, at->name,
			    "its switch");
			use(v, at->node, &loads->sw[2 * i + 1], same ? 2 * gbps : gbps,
			    "its switch", at->name);
		} else if (!same) {
			use_inside(v, head, node->ranks[i], gbps / (ndevices - 1));
			use_inside(v, node->ranks[i], head, gbps / (ndevices - 1));
		}
	}
	if (channel->ends)
		use_ends(v, channel, head, gbps);
}

static void use_channel(struct verifier *v, enum tti_pattern pattern,
			const struct tti_plan_channel *channel)
{
	if (pattern == TTI_PATTERN_RING)
		use_ring(v, channel);
	else if (!tti_pattern_has_heads(pattern))
		use_tree(v, pattern, channel);
	for (uint32_t i = 0; tti_pattern_has_heads(pattern) && i < channel->nranks; i++)
		use_head(v, pattern, channel, channel->ranks[i]);
}

/* -- Findings --------------------------------------------------------------------------- */

/* All nodes of a kind have the same trouble, so it is reported once. */
static void judge(struct verifier *v, const struct tti_plan_pattern *pattern, uint32_t kind)
{
	const struct tti_plan *plan = v->report->plan;
	const struct tti_loads *loads = v->loads[kind];
	char link[TTI_LINK_WORDS];

	for (uint32_t row = 0; loads && row < loads->nrows; row++) {
		uint32_t worst = UINT32_MAX, count = 0;

		for (uint32_t node = 0; node < plan->nnodes; node++) {
			if (plan->nodes[node].kind != kind ||
			    v->used[node][row] <= loads->capacity[row] * (1 + 1e-5) + 1e-6)
				continue;
			count++;
			if (worst == UINT32_MAX || v->used[node][row] > v->used[worst][row])
				worst = node;
		}
		if (count == 0)
			continue;
		tti_link_words(loads, row, link);
		v->worst[pattern->pattern] = fmax(v->worst[pattern->pattern],
						  v->used[worst][row] / loads->capacity[row]);
		say(v,
		    "%s: %s of node %u has %.2f GB/s and is to carry %.2f (%.2f times as much)%s",
		    tti_pattern_name(pattern->pattern), link, worst, loads->capacity[row],
		    v->used[worst][row], v->used[worst][row] / loads->capacity[row],
		    count > 1 ? "; so at other nodes" : "");
	}
}

static void note_pair(struct verifier *v, const struct tti_plan_pattern *pattern, uint32_t first)
{
	for (uint32_t node = 0; node < v->report->plan->nnodes; node++)
		v->second[node] = UINT32_MAX;
	for (uint32_t i = first; i < first + 2 && i < pattern->nchannels; i++)
		find_seconds(v, &pattern->channels[i]);
}

static void verify_pattern(struct verifier *v, const struct tti_plan_pattern *pattern)
{
	const struct tti_plan *plan = v->report->plan;

	for (uint32_t node = 0; node < plan->nnodes; node++)
		memset(v->used[node], 0, loads_of(v, node)->nrows * sizeof(double));
	for (uint32_t i = 0; i < pattern->nchannels; i++) {
		if (pattern->channels[i].parent && i % 2 == 0)
			note_pair(v, pattern, i);
		use_channel(v, pattern->pattern, &pattern->channels[i]);
	}
	for (uint32_t kind = 0; kind < plan->nkinds; kind++)
		judge(v, pattern, kind);
}

static tutti_status verify(struct verifier *v)
{
	const struct tti_plan *plan = v->report->plan;

	v->loads = tti_calloc(plan->nkinds, sizeof(*v->loads));
	v->used = tti_calloc(plan->nnodes, sizeof(*v->used));
	v->root = tti_calloc(2 * (size_t)plan->nnodes, sizeof(*v->root));
	if (!v->loads || !v->used || !v->root)
		return tti_fail(TUTTI_ENOMEM, "check of a plan: out of memory");
	v->second = v->root + plan->nnodes;
	TTI_TRY(build_loads(v));
	for (uint32_t i = 0; i < plan->npatterns; i++)
		verify_pattern(v, &plan->patterns[i]);
	return TUTTI_OK;
}

static tutti_status run(struct verifier *v)
{
	const struct tti_plan *plan = v->report->plan;
	const tutti_status st = verify(v);

	for (uint32_t kind = 0; v->loads && kind < plan->nkinds; kind++)
		tti_loads_free(v->loads[kind]);
	for (uint32_t node = 0; v->used && node < plan->nnodes; node++)
		tti_free(v->used[node]);
	tti_free(v->loads);
	tti_free(v->used);
	tti_free(v->root);
	return st;
}

tutti_status tti_plan_verify(const struct tti_report *report, struct tti_strbuf *out,
			     size_t *nfindings_out)
{
	struct verifier v = { .report = report, .out = out };
	const tutti_status st = run(&v);

	*nfindings_out = v.nfindings;
	return st;
}

/* -- Less of it ------------------------------------------------------------------------- */

/* In steps of 10 KB/s. */
static void scale(struct verifier *v, struct tti_plan_pattern *pattern, double factor)
{
	const double before = pattern->total_gbps;

	for (uint32_t i = 0; i < pattern->nchannels; i++) {
		struct tti_plan_channel *channel = &pattern->channels[i];
		const double gbps = floor((double)channel->bw_gbps / factor * 1e5) / 1e5;

		channel->bw_gbps = (float)fmax(gbps, 1e-5);
	}
	pattern->total_gbps = tti_plan_total(pattern);
	say(v, "%s: of %.2f GB/s the machines can carry %.2f", tti_pattern_name(pattern->pattern),
	    before, pattern->total_gbps);
}

tutti_status tti_plan_fit(struct tti_plan *plan, const struct tti_plan_job *job,
			  const struct tti_plan_config *config, struct tti_strbuf *out)
{
	const struct tti_report report = { .plan = plan, .job = job, .config = config };
	struct verifier v = { .report = &report, .out = out };

	TTI_TRY(run(&v));
	for (uint32_t i = 0; i < plan->npatterns; i++) {
		struct tti_plan_pattern *pattern = &plan->patterns[i];
		const double worst = v.worst[pattern->pattern];

		if (worst > 0 || pattern->total_gbps > pattern->bound_gbps * (1 + 1e-5))
			scale(&v, pattern, fmax(worst, pattern->total_gbps / pattern->bound_gbps));
	}
	plan->hash = tti_plan_hash(plan);
	return out->failed ? tti_fail(TUTTI_ENOMEM, "check of a plan: out of memory") : TUTTI_OK;
}
