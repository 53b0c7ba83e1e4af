/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/search/column.h"
#include "util/error.h"
#include "util/mem.h"

/* From the weights of columns to the channels of a plan: few, and in figures that no
 * rounding takes over a capacity. */

static uint8_t type_of(const struct tti_pool *pool, const struct tti_column *column)
{
	return column->net_in == TTI_NO_NET
		       ? 0
		       : tti_hop_in(pool->loads, column->net_in, column->order[0])->type;
}

/* So much is given up for heads that talk to the NICs beside them. */
#define NEAR_WORTH 0.02

/* Only the nearest NICs of each head, if that is about as good. */
static tutti_status keep_near(struct tti_pool *pool, double value)
{
	const uint32_t n = (uint32_t)pool->columns.n;
	uint8_t *least = tti_arena_alloc(&pool->arena, pool->loads->n + 1);
	double now;

	if (!least)
		return tti_fail(TUTTI_ENOMEM, "heads: out of memory");
	memset(least, UINT8_MAX, pool->loads->n);
	for (uint32_t i = 0; i < n; i++) {
		const struct tti_column *column = &pool->columns.at[i];

		if (type_of(pool, column) < least[column->order[0]])
			least[column->order[0]] = type_of(pool, column);
	}
	for (uint32_t i = 0; i < n; i++)
		tti_lp_ban(pool->lp, i,
			   type_of(pool, &pool->columns.at[i]) >
				   least[pool->columns.at[i].order[0]]);
	TTI_TRY(tti_lp_solve(pool->lp, &now));
	if (now >= value * (1 - NEAR_WORTH))
		return TUTTI_OK;
	for (uint32_t i = 0; i < n; i++)
		tti_lp_ban(pool->lp, i, false);
	return tti_lp_solve(pool->lp, &now);
}

/* The column of the heads that are not settled yet with the most weight. */
static uint32_t heaviest(const struct tti_pool *pool, const bool *settled)
{
	const double *weights = tti_lp_weights(pool->lp);
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < pool->columns.n; i++)
		if (!settled[pool->columns.at[i].order[0]] && weights[i] >= TTI_STEP_GBPS &&
		    (best == UINT32_MAX || weights[i] > weights[best] + 1e-9))
			best = i;
	return best;
}

/* A head has one channel, through one NIC: settle one head after the other on the NIC
 * that carries most of it, and let the others make the best of what is left. */
static tutti_status settle_heads(struct tti_pool *pool, double all)
{
	bool *settled = tti_arena_alloc(&pool->arena, pool->loads->n * sizeof(*settled));
	double value;
	uint32_t best;

	if (!settled)
		return tti_fail(TUTTI_ENOMEM, "heads: out of memory");
	TTI_TRY(keep_near(pool, all));
	while ((best = heaviest(pool, settled)) != UINT32_MAX) {
		const uint32_t head = pool->columns.at[best].order[0];

		settled[head] = true;
		for (uint32_t i = 0; i < pool->columns.n; i++)
			if (i != best && pool->columns.at[i].order[0] == head)
				tti_lp_ban(pool->lp, i, true);
		TTI_TRY(tti_lp_solve(pool->lp, &value));
	}
	return TUTTI_OK;
}

static uint8_t worse(uint8_t a, uint8_t b)
{
	return a > b ? a : b;
}

static void describe_types(const struct tti_loads *loads, struct tti_channel *channel)
{
	const uint32_t n = loads->n;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at = channel->order[i];
		const uint32_t from = channel->parent ? channel->parent[at]
				      : i > 0         ? channel->order[i - 1]
				      : loads->nnets  ? UINT32_MAX
						      : channel->order[n - 1];

		if (from != UINT32_MAX && from != at)
			channel->type_intra =
				worse(channel->type_intra, tti_way_is_direct(channel->way, at)
								   ? tti_hop(loads, from, at)->type
								   : TTI_PATH_NET);
	}
	if (channel->net_in == TTI_NO_NET)
		return;
	channel->type_inter = tti_hop_in(loads, channel->net_in, channel->order[0])->type;
	if (!channel->parent)
		channel->type_inter =
			worse(channel->type_inter,
			      tti_hop_out(loads, channel->net_out, channel->order[n - 1])->type);
	else if (channel->second != UINT32_MAX)
		channel->type_inter =
			worse(channel->type_inter,
			      tti_hop_out(loads, channel->net_out, channel->second)->type);
}

static bool fill_channel(struct tti_local *search, const struct tti_loads *loads,
			 const struct tti_column *column, bool back, float bw_gbps,
			 struct tti_channel *out)
{
	const uint32_t n = loads->n;

	*out = (struct tti_channel){ .bw_gbps = bw_gbps,
				     .net_in = back ? column->net_out : column->net_in,
				     .net_out = back ? column->net_in : column->net_out,
				     .second = column->second };
	out->order = tti_arena_alloc(&search->arena, n * sizeof(*out->order));
	out->parent =
		column->parent ? tti_arena_alloc(&search->arena, n * sizeof(*out->parent)) : NULL;
	out->way = column->way ? tti_arena_alloc(&search->arena, n * sizeof(*out->way)) : NULL;
	if (!out->order || (column->parent && !out->parent) || (column->way && !out->way))
		return false;
	for (uint32_t i = 0; out->way && i < n; i++)
		out->way[i] = column->way[i];
	for (uint32_t i = 0; i < n; i++) {
		out->order[i] = column->order[back ? n - 1 - i : i];
		if (out->parent)
			out->parent[i] = column->parent[i];
	}
	describe_types(loads, out);
	return true;
}

static tutti_status fill_channels(struct tti_local *search, const struct tti_pool *pool,
				  const struct tti_pick *picks, uint32_t n, uint32_t ways)
{
	search->channels =
		tti_arena_alloc(&search->arena, (size_t)ways * n * sizeof(*search->channels) + 1);
	if (!search->channels)
		return tti_fail(TUTTI_ENOMEM, "channels: out of memory");
	for (uint32_t i = 0; i < ways * n; i++) {
		const struct tti_pick *pick = &picks[i / ways];
		const double weight = pick->weight / ways;
		const double bw = floor(weight / TTI_STEP_GBPS + TTI_STEP_SLACK) * TTI_STEP_GBPS;

		if (bw <= 0)
			continue;
		if (!fill_channel(search, pool->loads, &pool->columns.at[pick->column], i % ways,
				  (float)bw, &search->channels[search->nchannels++]))
			return tti_fail(TUTTI_ENOMEM, "channels: out of memory");
		search->total_gbps += bw;
	}
	return TUTTI_OK;
}

/* Into how many channels a column goes. */
static uint32_t ways_of(const struct tti_local *search, const struct tti_pool *pool)
{
	return search->pattern == TTI_PATTERN_RING && pool->loads->nnets > 0 &&
			       search->cross_nic == TTI_CROSS_MIRROR
		       ? 2
		       : 1;
}

tutti_status tti_extract(struct tti_pool *pool, tti_pricer *price, struct tti_local *search)
{
	const uint32_t ways = ways_of(search, pool);
	struct tti_pick *picks = NULL;
	uint32_t n = 0;

	if (pool->columns.n == 0)
		return TUTTI_OK;
	if (tti_pattern_has_heads(search->pattern))
		TTI_TRY(settle_heads(pool, search->reach_gbps));
	TTI_TRY(tti_refine(pool, price, ways, search->reach_gbps, &picks, &n));
	return fill_channels(search, pool, picks, n, ways);
}
