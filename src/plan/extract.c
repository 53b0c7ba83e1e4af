/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan/column.h"
#include "util/error.h"
#include "util/mem.h"

/* From the weights of columns to the channels of a plan: few, and in figures that no
 * rounding takes over a capacity. */

#define DEFAULT_CHANNELS 64
/* Weights are kept in steps of 10 KB/s, rounded down. */
#define STEP_GBPS        1e-5
/* A channel below this share of the whole is not worth its set-up, if others can carry
 * what it does but for so much. */
#define LEAST_SHARE      0.01
#define THIN_WORTH       1e-4
#define THIN_ROUNDS      8

struct pick {
	uint32_t column;
	double weight;
};

static int by_weight(const void *a, const void *b)
{
	const struct pick *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->column < y->column ? -1 : x->column > y->column;
}

/* Leave columns with little weight out, again and again, while the others make up for
 * it. Many packings are optimal; this one has few channels. */
static tutti_status thin_out(struct tti_pool *pool, double value)
{
	bool *banned = tti_arena_alloc(&pool->arena, pool->columns.n * sizeof(*banned) + 1);
	double now = value;

	if (!banned)
		return tti_fail(TUTTI_ENOMEM, "channels: out of memory");
	for (int round = 1; round <= THIN_ROUNDS && now >= value * (1 - THIN_WORTH); round++) {
		const double *weights = tti_lp_weights(pool->lp);
		const double least = value * LEAST_SHARE / (1 << (round - 1));
		bool more = false;

		for (uint32_t i = 0; i < pool->columns.n; i++) {
			banned[i] = weights[i] > 0 && weights[i] < least;
			more |= banned[i];
		}
		for (uint32_t i = 0; more && i < pool->columns.n; i++)
			if (banned[i])
				tti_lp_ban(pool->lp, i, true);
		if (!more)
			continue;
		TTI_TRY(tti_lp_solve(pool->lp, &now));
		if (now >= value * (1 - THIN_WORTH))
			continue;
		/* Too much; less next time. */
		for (uint32_t i = 0; i < pool->columns.n; i++)
			if (banned[i])
				tti_lp_ban(pool->lp, i, false);
		TTI_TRY(tti_lp_solve(pool->lp, &now));
	}
	return TUTTI_OK;
}

/* The columns that are used, the most first. */
static uint32_t used_columns(const struct tti_pool *pool, struct pick *picks)
{
	const double *weights = tti_lp_weights(pool->lp);
	uint32_t n = 0;

	for (uint32_t i = 0; i < pool->columns.n; i++)
		if (weights[i] >= STEP_GBPS)
			picks[n++] = (struct pick){ i, weights[i] };
	qsort(picks, n, sizeof(*picks), by_weight);
	return n;
}

/* More channels than there may be: leave those with the least weight out for good, until
 * what is left, of all columns, are few enough. */
static tutti_status limit(struct tti_pool *pool, struct pick *picks, uint32_t most, uint32_t *n)
{
	double value;

	while (*n > most) {
		const uint32_t least = *n - most < *n / 4 + 1 ? *n - most : *n / 4 + 1;

		for (uint32_t i = 0; i < least; i++)
			tti_lp_ban(pool->lp, picks[--*n].column, true);
		TTI_TRY(tti_lp_solve(pool->lp, &value));
		*n = used_columns(pool, picks);
	}
	return TUTTI_OK;
}

/* The best weights for these columns alone. */
static tutti_status weigh(struct tti_pool *pool, struct pick *picks, uint32_t n)
{
	struct tti_lp *lp = NULL;
	double value;
	tutti_status st;

	TTI_TRY(tti_lp_create(pool->loads->capacity, pool->loads->nrows, &lp));
	for (uint32_t i = 0; i < n; i++) {
		st = tti_pool_loads(pool, &pool->columns.at[picks[i].column]);
		if (st == TUTTI_OK)
			st = tti_lp_add(lp, pool->scratch.at, pool->scratch.n);
		if (st != TUTTI_OK)
			goto out;
	}
	st = tti_lp_solve(lp, &value);
	for (uint32_t i = 0; st == TUTTI_OK && i < n; i++)
		picks[i].weight = tti_lp_weights(lp)[i];
	if (st == TUTTI_OK)
		qsort(picks, n, sizeof(*picks), by_weight);
out:
	tti_lp_free(lp);
	return st;
}

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
		if (!settled[pool->columns.at[i].order[0]] && weights[i] >= STEP_GBPS &&
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
				  const struct pick *picks, uint32_t n)
{
	const uint32_t ways = search->pattern == TTI_PATTERN_RING && pool->loads->nnets > 0 &&
					      search->cross_nic == TTI_CROSS_MIRROR
				      ? 2
				      : 1;

	search->channels =
		tti_arena_alloc(&search->arena, (size_t)ways * n * sizeof(*search->channels) + 1);
	if (!search->channels)
		return tti_fail(TUTTI_ENOMEM, "channels: out of memory");
	for (uint32_t i = 0; i < ways * n; i++) {
		const struct pick *pick = &picks[i / ways];
		const double bw = floor(pick->weight / ways / STEP_GBPS + 1e-9) * STEP_GBPS;

		if (bw <= 0)
			continue;
		if (!fill_channel(search, pool->loads, &pool->columns.at[pick->column], i % ways,
				  (float)bw, &search->channels[search->nchannels++]))
			return tti_fail(TUTTI_ENOMEM, "channels: out of memory");
		search->total_gbps += bw;
	}
	return TUTTI_OK;
}

tutti_status tti_extract(struct tti_pool *pool, double value, struct tti_local *search)
{
	uint32_t most = pool->config->max_channels ? pool->config->max_channels : DEFAULT_CHANNELS;
	struct pick *picks = tti_calloc(pool->columns.n + 1, sizeof(*picks));
	uint32_t n;
	tutti_status st;

	if (!picks)
		return tti_fail(TUTTI_ENOMEM, "channels: out of memory");
	st = tti_pattern_has_heads(search->pattern) ? settle_heads(pool, value)
						    : thin_out(pool, value);
	if (st != TUTTI_OK) {
		tti_free(picks);
		return st;
	}
	n = used_columns(pool, picks);
	if (pool->loads->nnets > most) /* no NIC is left idle for want of a channel */
		most = pool->loads->nnets;
	st = limit(pool, picks, most, &n);
	if (st == TUTTI_OK && n > 0)
		st = weigh(pool, picks, n);
	if (st == TUTTI_OK)
		st = fill_channels(search, pool, picks, n);
	tti_free(picks);
	return st;
}
