/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/connect/wires.h"

#include <stdlib.h>

#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

struct gatherer {
	const struct tti_plan *plan;
	uint32_t rank;
	TTI_VEC(struct tti_wire) wires;
	bool failed; /* out of memory */
};

/* What a channel carries from rank `from` to rank `to`, if that is ours. */
static void add_hop(struct gatherer *g, const struct tti_plan_channel *channel, uint32_t from,
		    uint32_t to)
{
	const struct tti_plan_rank *ranks = g->plan->ranks;
	const double gbps = (double)channel->bw_gbps;
	struct tti_wire wire = { 0 };
	uint32_t leaves, enters;

	if ((from != g->rank && to != g->rank) || ranks[from].node == ranks[to].node)
		return;
	leaves = (uint32_t)channel->ends[ranks[from].node].out;
	enters = (uint32_t)channel->ends[ranks[to].node].in;
	wire.peer = from == g->rank ? to : from;
	wire.near = from == g->rank ? leaves : enters;
	wire.far = from == g->rank ? enters : leaves;
	wire.out_gbps = from == g->rank ? gbps : 0;
	wire.in_gbps = from == g->rank ? 0 : gbps;
	g->failed |= !tti_vec_push(&g->wires, wire);
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
		if (g->wires.at[i].peer == peer)
			return true;
	return false;
}

/* Trees carry as much up as they do down. */
static void add_trees(struct gatherer *g)
{
	const struct tti_plan_pattern *trees = tti_plan_best_trees(g->plan);
	const size_t nrings = g->wires.n;

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
	const struct tti_wire *a = left, *b = right;

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

	qsort(g->wires.at, g->wires.n, sizeof(*g->wires.at), by_peer);
	for (size_t i = 0; i < g->wires.n; i++) {
		const struct tti_wire *wire = &g->wires.at[i];

		if (n > 0 && by_peer(&g->wires.at[n - 1], wire) == 0) {
			g->wires.at[n - 1].out_gbps += wire->out_gbps;
			g->wires.at[n - 1].in_gbps += wire->in_gbps;
		} else {
			g->wires.at[n++] = *wire;
		}
	}
	g->wires.n = n;
}

/* The wires [from, to) of one peer: who is only sent to, answers by the same NICs. */
static void fill_in(struct tti_wire *wires, size_t from, size_t to)
{
	double out = 0, in = 0;

	for (size_t i = from; i < to; i++) {
		out += wires[i].out_gbps;
		in += wires[i].in_gbps;
	}
	for (size_t i = from; i < to; i++) {
		if (out <= 0)
			wires[i].out_gbps = wires[i].in_gbps;
		if (in <= 0)
			wires[i].in_gbps = wires[i].out_gbps;
	}
}

tutti_status tti_wires_of_plan(const struct tti_plan *plan, uint32_t rank, struct tti_wires *out)
{
	struct gatherer g = { .plan = plan, .rank = rank };

	*out = (struct tti_wires){ .at = NULL };
	if (plan->nnodes < 2)
		return TUTTI_OK;
	add_rings(&g);
	add_trees(&g);
	if (g.failed) {
		tti_vec_release(&g.wires);
		return tti_fail(TUTTI_ENOMEM, "the NICs of rank %u: out of memory", rank);
	}
	if (g.wires.n)
		merge(&g);
	for (size_t i = 0, end; i < g.wires.n; i = end) {
		end = i + 1;
		while (end < g.wires.n && g.wires.at[end].peer == g.wires.at[i].peer)
			end++;
		fill_in(g.wires.at, i, end);
	}
	*out = (struct tti_wires){ .at = g.wires.at, .n = (uint32_t)g.wires.n };
	return TUTTI_OK;
}

void tti_wires_release(struct tti_wires *wires)
{
	tti_free(wires->at);
	*wires = (struct tti_wires){ .at = NULL };
}
