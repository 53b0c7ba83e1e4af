/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "insight/plan/plan_report.h"
#include "insight/print/print_words.h"
#include "topo/graph/words.h"

/* Differences as sentences, a line each. What differs many times in one way is said once
 * with its number. */
struct diff {
	const struct tti_plan *a, *b;
	struct tti_strbuf *out;
	size_t n;
};

static void say(struct diff *diff, const char *fmt, ...) TUTTI_PRINTF(2, 3);

static void say(struct diff *diff, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	tti_print_line(diff->out, fmt, args);
	va_end(args);
	diff->n++;
}

/* -- The job ------------------------------------------------------------------------ */

static bool same_nets(const struct tti_plan_node *a, const struct tti_plan_node *b)
{
	if (a->nnets != b->nnets)
		return false;
	for (uint32_t i = 0; i < a->nnets; i++)
		if (strcmp(a->nets[i], b->nets[i]) != 0)
			return false;
	return true;
}

static void diff_node(struct diff *diff, uint32_t node)
{
	const struct tti_plan_node *a = &diff->a->nodes[node], *b = &diff->b->nodes[node];
	uint32_t moved = 0;

	if (strcmp(a->name, b->name) != 0)
		say(diff, "node %u: %s against %s", node, a->name, b->name);
	if (a->nranks != b->nranks)
		say(diff, "node %u: %u against %u ranks", node, a->nranks, b->nranks);
	if (!same_nets(a, b))
		say(diff, "node %u: %u against %u NICs, or others", node, a->nnets, b->nnets);
	for (uint32_t i = 0; i < a->nranks && i < b->nranks; i++)
		moved += strcmp(diff->a->ranks[a->ranks[i]].name,
				diff->b->ranks[b->ranks[i]].name) != 0;
	if (moved)
		say(diff, "node %u: %u of its ranks are on other devices", node, moved);
}

/* false: so different that channels cannot be compared. */
static bool diff_job(struct diff *diff)
{
	uint32_t moved = 0, first = 0;

	if (diff->a->nranks != diff->b->nranks || diff->a->nnodes != diff->b->nnodes) {
		say(diff, "%u ranks on %u nodes against %u on %u", diff->a->nranks, diff->a->nnodes,
		    diff->b->nranks, diff->b->nnodes);
		return false;
	}
	for (uint32_t rank = diff->a->nranks; rank-- > 0;)
		if (diff->a->ranks[rank].node != diff->b->ranks[rank].node) {
			moved++;
			first = rank;
		}
	if (moved)
		say(diff, "%u rank%s on another node: rank %u on node %u against %u%s", moved,
		    moved == 1 ? " is" : "s are", first, diff->a->ranks[first].node,
		    diff->b->ranks[first].node, moved == 1 ? "" : ", and so on");
	for (uint32_t node = 0; node < diff->a->nnodes; node++)
		diff_node(diff, node);
	return true;
}

/* -- Channels ------------------------------------------------------------------------ */

static const char *net_name(const struct tti_plan *plan, uint32_t node, int32_t net)
{
	return net < 0 ? "none" : plan->nodes[node].nets[net];
}

static void diff_ends(struct diff *diff, const char *where, const struct tti_plan_channel *a,
		      const struct tti_plan_channel *b)
{
	uint32_t count = 0, first = 0;

	for (uint32_t node = diff->a->nnodes; a->ends && b->ends && node-- > 0;) {
		const struct tti_plan_end x = a->ends[node], y = b->ends[node];

		if (strcmp(net_name(diff->a, node, x.in), net_name(diff->b, node, y.in)) != 0 ||
		    strcmp(net_name(diff->a, node, x.out), net_name(diff->b, node, y.out)) != 0) {
			count++;
			first = node;
		}
	}
	if (count)
		say(diff, "%s: in by %s and out by %s against %s and %s at node %s%s", where,
		    net_name(diff->a, first, a->ends[first].in),
		    net_name(diff->a, first, a->ends[first].out),
		    net_name(diff->b, first, b->ends[first].in),
		    net_name(diff->b, first, b->ends[first].out), diff->a->nodes[first].name,
		    count > 1 ? ", and others at more nodes" : "");
}

static void diff_ranks(struct diff *diff, const char *where, const struct tti_plan_channel *a,
		       const struct tti_plan_channel *b)
{
	uint32_t count = 0, first = 0;

	if (a->nranks != b->nranks) {
		say(diff, "%s: %u against %u ranks", where, a->nranks, b->nranks);
		return;
	}
	for (uint32_t i = a->nranks; i-- > 0;)
		if (a->ranks[i] != b->ranks[i]) {
			count++;
			first = i;
		}
	if (count && !a->parent)
		say(diff, "%s: another order from place %u on: rank %u (%s) against rank %u (%s)",
		    where, first, a->ranks[first], diff->a->ranks[a->ranks[first]].name,
		    b->ranks[first], diff->b->ranks[b->ranks[first]].name);
}

static void diff_parents(struct diff *diff, const char *where, const struct tti_plan_channel *a,
			 const struct tti_plan_channel *b)
{
	uint32_t count = 0, first = 0;

	for (uint32_t rank = diff->a->nranks; a->parent && b->parent && rank-- > 0;)
		if (a->parent[rank] != b->parent[rank]) {
			count++;
			first = rank;
		}
	if (count)
		say(diff, "%s: %u rank%s another parent: rank %u %d against %d", where, count,
		    count == 1 ? " has" : "s have", first, (int)a->parent[first],
		    (int)b->parent[first]);
}

static const char *way_name(const struct tti_plan *plan, const struct tti_plan_channel *channel,
			    uint32_t rank, bool out)
{
	if (tti_plan_hop_is_direct(channel, rank))
		return "directly";
	return plan->nodes[0].nets[out ? channel->ways[rank].out : channel->ways[rank].in];
}

static void diff_ways(struct diff *diff, const char *where, const struct tti_plan_channel *a,
		      const struct tti_plan_channel *b)
{
	uint32_t count = 0, first = 0;

	for (uint32_t rank = diff->a->nranks; (a->ways || b->ways) && rank-- > 0;)
		if (strcmp(way_name(diff->a, a, rank, true), way_name(diff->b, b, rank, true)) ||
		    strcmp(way_name(diff->a, a, rank, false), way_name(diff->b, b, rank, false))) {
			count++;
			first = rank;
		}
	if (count)
		say(diff, "%s: to rank %u out by %s and in by %s against %s and %s%s", where, first,
		    way_name(diff->a, a, first, true), way_name(diff->a, a, first, false),
		    way_name(diff->b, b, first, true), way_name(diff->b, b, first, false),
		    count > 1 ? ", and others to more ranks" : "");
}

static void diff_channel(struct diff *diff, const struct tti_plan_pattern *a,
			 const struct tti_plan_pattern *b, uint32_t at)
{
	const struct tti_plan_channel *x = &a->channels[at], *y = &b->channels[at];
	char where[48];

	(void)snprintf(where, sizeof(where), "%s channel %u", tti_pattern_name(a->pattern), at);
	if (fabs((double)(x->bw_gbps - y->bw_gbps)) > 1e-5)
		say(diff, "%s: %.3f against %.3f GB/s", where, (double)x->bw_gbps,
		    (double)y->bw_gbps);
	diff_ranks(diff, where, x, y);
	diff_parents(diff, where, x, y);
	diff_ends(diff, where, x, y);
	diff_ways(diff, where, x, y);
}

static void diff_pattern(struct diff *diff, const struct tti_plan_pattern *a,
			 const struct tti_plan_pattern *b, bool same_job)
{
	const char *name = tti_pattern_name(a->pattern);

	if (fabs(a->total_gbps - b->total_gbps) > 1e-4)
		say(diff, "%s: %.3f against %.3f GB/s in all (%+.1f %%)", name, a->total_gbps,
		    b->total_gbps,
		    a->total_gbps > 0 ? 100 * (b->total_gbps / a->total_gbps - 1) : 0);
	if (a->nchannels != b->nchannels)
		say(diff, "%s: %u against %u channels", name, a->nchannels, b->nchannels);
	for (uint32_t i = 0; same_job && i < a->nchannels && i < b->nchannels; i++)
		diff_channel(diff, a, b, i);
}

static void diff_patterns(struct diff *diff, bool same_job)
{
	for (int i = 0; i < TTI_PATTERN_COUNT; i++) {
		const enum tti_pattern pattern = (enum tti_pattern)i;
		const struct tti_plan_pattern *a = tti_plan_pattern(diff->a, pattern);
		const struct tti_plan_pattern *b = tti_plan_pattern(diff->b, pattern);

		if (a && b)
			diff_pattern(diff, a, b, same_job);
		else if (a || b)
			say(diff, "%s: only in the %s", tti_pattern_name(pattern),
			    a ? "first" : "second");
	}
}

void tti_plan_diff(const struct tti_plan *a, const struct tti_plan *b, struct tti_strbuf *out,
		   size_t *ndiffs_out)
{
	struct diff diff = { .a = a, .b = b, .out = out };
	const bool same_job = diff_job(&diff);

	diff_patterns(&diff, same_job);
	*ndiffs_out = diff.n;
}
