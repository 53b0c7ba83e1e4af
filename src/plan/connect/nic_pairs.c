/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/connect/nic_pairs.h"

#include <stdlib.h>

#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

struct gatherer {
	const struct tti_plan *plan;
	uint32_t rank;
	TTI_VEC(struct tti_nic_pair) pairs;
	bool failed; /* out of memory */
};

/* What a channel carries from rank `from` to rank `to`, if that is ours. */
static void add_hop(struct gatherer *g, const struct tti_plan_channel *channel, uint32_t from,
		    uint32_t to)
{
	const struct tti_plan_rank *ranks = g->plan->ranks;
	const double gbps = (double)channel->bw_gbps;
	struct tti_nic_pair pair = { 0 };
	uint32_t leaves, enters;

	if ((from != g->rank && to != g->rank) || ranks[from].node == ranks[to].node)
		return;
	leaves = (uint32_t)channel->ends[ranks[from].node].out;
	enters = (uint32_t)channel->ends[ranks[to].node].in;
	pair.peer = from == g->rank ? to : from;
	pair.near = from == g->rank ? leaves : enters;
	pair.far = from == g->rank ? enters : leaves;
	pair.out_gbps = from == g->rank ? gbps : 0;
	pair.in_gbps = from == g->rank ? 0 : gbps;
	g->failed |= !tti_vec_push(&g->pairs, pair);
}

static void add_rings(struct gatherer *g)
{
	const struct tti_plan_pattern *rings = tti_plan_pattern(g->plan, TTI_PATTERN_RING);

	for (uint32_t i = 0; rings && i < rings->nchannels; i++) {
		const struct tti_plan_channel *ring = &rings->channels[i];

		for (uint32_t place = 0; place < ring->nranks; place++)
			add_hop(g, ring, tti_plan_before(ring, place), ring->ranks[place]);
	}
}

static bool has_peer(const struct gatherer *g, size_t n, uint32_t peer)
{
	for (size_t i = 0; i < n; i++)
		if (g->pairs.at[i].peer == peer)
			return true;
	return false;
}

/* Trees carry as much up as they do down. */
static void add_trees(struct gatherer *g)
{
	const struct tti_plan_pattern *trees = tti_plan_best_trees(g->plan);
	const size_t nrings = g->pairs.n;

	for (uint32_t i = 0; trees && i < trees->nchannels; i++) {
		const struct tti_plan_channel *tree = &trees->channels[i];

		for (uint32_t rank = 0; rank < g->plan->nranks; rank++) {
			const uint32_t parent = tree->parent[rank];

			if (parent == UINT32_MAX || (parent != g->rank && rank != g->rank) ||
			    has_peer(g, nrings, parent == g->rank ? rank : parent))
				continue;
			add_hop(g, tree, parent, rank);
			add_hop(g, tree, rank, parent);
		}
	}
}

static int by_peer(const void *left, const void *right)
{
	const struct tti_nic_pair *a = left, *b = right;

	if (a->peer != b->peer)
		return a->peer < b->peer ? -1 : 1;
	if (a->near != b->near)
		return a->near < b->near ? -1 : 1;
	return (a->far > b->far) - (a->far < b->far);
}

/* Sorted: what several channels carry over the same NICs, together. */
static void merge(struct gatherer *g)
{
	size_t n = 0;

	qsort(g->pairs.at, g->pairs.n, sizeof(*g->pairs.at), by_peer);
	for (size_t i = 0; i < g->pairs.n; i++) {
		const struct tti_nic_pair *pair = &g->pairs.at[i];

		if (n > 0 && by_peer(&g->pairs.at[n - 1], pair) == 0) {
			g->pairs.at[n - 1].out_gbps += pair->out_gbps;
			g->pairs.at[n - 1].in_gbps += pair->in_gbps;
		} else {
			g->pairs.at[n++] = *pair;
		}
	}
	g->pairs.n = n;
}

/* The pairs [from, to) of one peer: who is only sent to, answers by the same NICs. */
static void fill_in(struct tti_nic_pair *pairs, size_t from, size_t to)
{
	double out = 0, in = 0;

	for (size_t i = from; i < to; i++) {
		out += pairs[i].out_gbps;
		in += pairs[i].in_gbps;
	}
	for (size_t i = from; i < to; i++) {
		if (out <= 0)
			pairs[i].out_gbps = pairs[i].in_gbps;
		if (in <= 0)
			pairs[i].in_gbps = pairs[i].out_gbps;
	}
}

tutti_status tti_nic_pairs_of_plan(const struct tti_plan *plan, uint32_t rank,
				   struct tti_nic_pairs *out)
{
	struct gatherer g = { .plan = plan, .rank = rank };

	*out = (struct tti_nic_pairs){ .at = NULL };
	if (plan->nnodes < 2)
		return TUTTI_OK;
	add_rings(&g);
	add_trees(&g);
	if (g.failed) {
		tti_vec_release(&g.pairs);
		return tti_fail(TUTTI_ENOMEM, "the NICs of rank %u: out of memory", rank);
	}
	if (g.pairs.n)
		merge(&g);
	for (size_t i = 0, end; i < g.pairs.n; i = end) {
		end = i + 1;
		while (end < g.pairs.n && g.pairs.at[end].peer == g.pairs.at[i].peer)
			end++;
		fill_in(g.pairs.at, i, end);
	}
	*out = (struct tti_nic_pairs){ .at = g.pairs.at, .n = (uint32_t)g.pairs.n };
	return TUTTI_OK;
}

void tti_nic_pairs_release(struct tti_nic_pairs *pairs)
{
	tti_free(pairs->at);
	*pairs = (struct tti_nic_pairs){ .at = NULL };
}
