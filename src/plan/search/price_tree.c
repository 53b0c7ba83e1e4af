/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "plan/search/arbor.h"
#include "plan/search/column.h"
#include "util/error.h"

/* Trees are easy: the cheapest is found exactly (arbor.h), so each answer is a bound. */

/* Prices of the hops of a tree: in both directions, if it loads both. */
static const double *hop_prices(const struct tti_pool *pool)
{
	return pool->config->both_ways ? pool->both : pool->hop;
}

/* The price of a member that talks to a NIC for the whole channel. */
static double end_price(const struct tti_pool *pool, uint32_t net, uint32_t member)
{
	const size_t at = net * pool->loads->n + member;

	return pool->in[at] + (pool->config->both_ways ? pool->out[at] : 0);
}

/* The other member at the NIC, and what it adds. */
static uint32_t choose_second(const struct tti_pool *pool, uint32_t net, double *price_out)
{
	const uint32_t n = pool->loads->n;
	const bool split = pool->config->pattern == TTI_PATTERN_SPLIT_TREE;
	uint32_t best = 0;

	*price_out = INFINITY;
	for (uint32_t i = 0; i < n; i++) {
		const double price = split ? pool->out[net * n + i] : end_price(pool, net, i) / 2;

		if (price < *price_out) {
			*price_out = price;
			best = i;
		}
	}
	return best;
}

/* Members in an order that has parents before their children. */
static void order_by_parents(const uint32_t *parent, uint32_t n, uint32_t *order)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++)
		if (parent[i] == TTI_ARBOR_NO_PARENT)
			order[count++] = i;
	for (uint32_t at = 0; at < count; at++)
		for (uint32_t i = 0; i < n; i++)
			if (parent[i] == order[at])
				order[count++] = i;
	tti_assert(count == n);
}

static bool has_second(enum tti_pattern pattern)
{
	return pattern == TTI_PATTERN_BALANCED_TREE || pattern == TTI_PATTERN_SPLIT_TREE;
}

/* The cheapest tree at one NIC (TTI_NO_NET: at none). */
static tutti_status ask(struct tti_pool *pool, uint32_t net, struct tti_column *column,
			double *cost_out)
{
	const uint32_t n = pool->loads->n;
	const struct tti_arbor_input in = { n, hop_prices(pool), pool->begin };
	const bool halves = pool->config->pattern == TTI_PATTERN_BALANCED_TREE;
	double second_price = 0;

	column->net_in = net;
	column->net_out = net;
	column->second = UINT32_MAX;
	for (uint32_t i = 0; i < n; i++)
		pool->begin[i] = net == TTI_NO_NET ? 0 : end_price(pool, net, i) / (halves ? 2 : 1);
	if (net != TTI_NO_NET && has_second(pool->config->pattern))
		column->second = choose_second(pool, net, &second_price);
	TTI_TRY(tti_arbor_best(&in, column->parent, cost_out));
	*cost_out += second_price;
	return TUTTI_OK;
}

static tutti_status ask_and_add(struct tti_pool *pool, uint32_t net, double most,
				struct tti_column *column, double *least)
{
	double cost;

	TTI_TRY(ask(pool, net, column, &cost));
	*least = cost < *least ? cost : *least;
	if (!(cost < most))
		return TUTTI_OK;
	order_by_parents(column->parent, pool->loads->n, column->order);
	tti_detour_choose(pool, column);
	return tti_pool_add(pool, column);
}

/* No tree at any NIC costs less. */
static tutti_status relax(struct tti_pool *pool, double *least_out)
{
	const uint32_t n = pool->loads->n, nnets = pool->loads->nnets;
	const struct tti_arbor_input in = { n, hop_prices(pool), pool->begin };
	const bool halves = pool->config->pattern == TTI_PATTERN_BALANCED_TREE;
	double second = INFINITY;

	for (uint32_t i = 0; i < n; i++)
		pool->begin[i] = nnets ? INFINITY : 0;
	for (uint32_t net = 0; net < nnets; net++) {
		double price = 0;

		for (uint32_t i = 0; i < n; i++)
			pool->begin[i] =
				fmin(pool->begin[i], end_price(pool, net, i) / (halves ? 2 : 1));
		if (has_second(pool->config->pattern))
			(void)choose_second(pool, net, &price);
		second = fmin(second, price);
	}
	TTI_TRY(tti_arbor_best(&in, pool->parent, least_out));
	*least_out += nnets ? second : 0;
	return TUTTI_OK;
}

/* Every answer is exact. */
tutti_status tti_price_trees(struct tti_pool *pool, enum tti_ask how, uint32_t which,
			     double *least_out, uint32_t *nadded_out)
{
	const uint32_t nnets = pool->loads->nnets;
	const size_t before = pool->columns.n;
	struct tti_column column = { .order = pool->order, .parent = pool->parent };
	double least;

	*least_out = INFINITY;
	*nadded_out = 0;
	if (how == TTI_ASK_ONE) {
		TTI_TRY(ask_and_add(pool, nnets ? which % nnets : TTI_NO_NET, INFINITY, &column,
				    least_out));
		*nadded_out = (uint32_t)(pool->columns.n - before);
		return TUTTI_OK;
	}
	TTI_TRY(relax(pool, &least));
	if (how == TTI_ASK_BOUND || least >= 1 - TTI_PRICE_EPS) {
		*least_out = least;
		return TUTTI_OK;
	}
	for (uint32_t i = 0; i < (nnets ? nnets : 1); i++) {
		if (!tti_pool_may_ask(pool)) {
			*least_out = least;
			break;
		}
		TTI_TRY(ask_and_add(pool, nnets ? i : TTI_NO_NET, 1 - TTI_PRICE_EPS, &column,
				    least_out));
	}
	*nadded_out = (uint32_t)(pool->columns.n - before);
	return TUTTI_OK;
}
