/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/column.h"

#include <math.h>
#include <string.h>

#include "util/error.h"

static double price_of(const struct tti_pool *pool, const struct tti_hop *hop, const double *prices)
{
	const struct tti_loads *loads = pool->loads;
	double sum = pool->charge * hop->far;

	if (hop->bw_gbps <= 0)
		return INFINITY;
	for (uint32_t i = hop->first; i < hop->first + hop->n; i++)
		sum += (double)loads->loads[i].amount * prices[loads->loads[i].row];
	return sum;
}

static bool loads_both_ways(const struct tti_pool *pool)
{
	return pool->config->both_ways && pool->config->pattern != TTI_PATTERN_RING;
}

/* Of trees that go up and down: what both directions of a hop cost, and of the ways between
 * a member and a NIC. */
static void price_both(struct tti_pool *pool, size_t nends)
{
	const uint32_t n = pool->loads->n;

	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++)
			pool->both[i * n + j] = pool->hop[i * n + j] + pool->hop[j * n + i];
	for (size_t i = 0; i < nends; i++)
		pool->ends[i] = pool->in[i] + pool->out[i];
}

void tti_pool_price(struct tti_pool *pool, const double *prices)
{
	const struct tti_loads *loads = pool->loads;
	const uint32_t n = loads->n;
	const size_t nends = (size_t)n * (loads->nnets + (pool->detours ? loads->ninner : 0));

	for (size_t i = 0; i < (size_t)n * n; i++)
		pool->hop[i] = price_of(pool, &loads->hop[i], prices);
	for (size_t i = 0; i < nends; i++) {
		pool->in[i] = price_of(pool, &loads->in[i], prices);
		pool->out[i] = price_of(pool, &loads->out[i], prices);
	}
	if (loads_both_ways(pool)) {
		price_both(pool, nends);
		if (pool->detours)
			tti_detour_price(pool, pool->both, pool->ends, pool->ends);
	} else if (pool->detours) {
		tti_detour_price(pool, pool->hop, pool->out, pool->in);
	}
}

static bool add_hop(struct tti_pool *pool, const struct tti_hop *hop, float amount)
{
	const struct tti_loads *loads = pool->loads;

	pool->far = fmax(pool->far, hop->far);
	pool->far_hops += (double)amount * hop->far;
	pool->hops += (double)amount * hop->n;
	for (uint32_t i = hop->first; i < hop->first + hop->n; i++)
		if (!tti_vec_push(&pool->scratch,
				  ((struct tti_load){ loads->loads[i].row,
						      loads->loads[i].amount * amount })))
			return false;
	return true;
}

/* What `from` sends to `to`, and with `back` what `to` sends to `from`. */
static bool add_way(struct tti_pool *pool, const struct tti_column *column, uint32_t from,
		    uint32_t to, bool back)
{
	const struct tti_hop *hops[2];
	const uint32_t n = back ? tti_way_hops_back(pool->loads, column->way, from, to, hops)
				: tti_way_hops(pool->loads, column->way, from, to, hops);

	if (n == 2 && !back) {
		pool->far = fmax(pool->far, TTI_DETOUR_FAR);
		pool->far_hops += TTI_DETOUR_FAR;
	}
	return add_hop(pool, hops[0], 1) && (n == 1 || add_hop(pool, hops[1], 1));
}

/* A ring that closes in the node. */
static bool add_closed(struct tti_pool *pool, const struct tti_column *column)
{
	const uint32_t n = pool->loads->n;
	bool good = true;

	for (uint32_t i = 0; n > 1 && good && i < n; i++)
		good = add_way(pool, column, column->order[i], column->order[(i + 1) % n], false);
	return good;
}

static bool add_ring(struct tti_pool *pool, const struct tti_column *column, bool back,
		     float amount)
{
	const struct tti_loads *loads = pool->loads;
	const uint32_t n = loads->n, *order = column->order;
	bool good = true;

	for (uint32_t i = 0; good && i + 1 < n; i++)
		good = add_hop(pool,
			       back ? tti_hop(loads, order[i + 1], order[i])
				    : tti_hop(loads, order[i], order[i + 1]),
			       amount);
	return good &&
	       add_hop(pool,
		       back ? tti_hop_in(loads, column->net_out, order[n - 1])
			    : tti_hop_in(loads, column->net_in, order[0]),
		       amount) &&
	       add_hop(pool,
		       back ? tti_hop_out(loads, column->net_in, order[0])
			    : tti_hop_out(loads, column->net_out, order[n - 1]),
		       amount);
}

static bool add_tree(struct tti_pool *pool, const struct tti_column *column)
{
	const struct tti_loads *loads = pool->loads;
	const bool back = pool->config->both_ways;
	bool good = true;

	for (uint32_t i = 0; good && i < loads->n; i++) {
		const uint32_t parent = column->parent[i];

		if (parent == UINT32_MAX)
			continue;
		good = add_way(pool, column, parent, i, false) &&
		       (!back || add_way(pool, column, parent, i, true));
	}
	return good;
}

/* Add the loads of the members of a tree that use its NIC. */
static bool add_tree_net(struct tti_pool *pool, const struct tti_column *column)
{
	const struct tti_loads *loads = pool->loads;
	const bool back = pool->config->both_ways;
	const uint32_t net = column->net_in, root = column->order[0], second = column->second;

	if (net == TTI_NO_NET)
		return true;
	switch (pool->config->pattern) {
	case TTI_PATTERN_BALANCED_TREE:
		return add_hop(pool, tti_hop_in(loads, net, root), 0.5f) &&
		       add_hop(pool, tti_hop_in(loads, net, second), 0.5f) &&
		       (!back || (add_hop(pool, tti_hop_out(loads, net, root), 0.5f) &&
				  add_hop(pool, tti_hop_out(loads, net, second), 0.5f)));
	case TTI_PATTERN_SPLIT_TREE:
		return add_hop(pool, tti_hop_in(loads, net, root), 1) &&
		       add_hop(pool, tti_hop_out(loads, column->net_out, second), 1);
	case TTI_PATTERN_RING:
	case TTI_PATTERN_TREE:
	case TTI_PATTERN_NVLS:
	case TTI_PATTERN_COLLNET_CHAIN:
	case TTI_PATTERN_COLLNET_DIRECT:
		break;
	}
	return add_hop(pool, tti_hop_in(loads, net, root), 1) &&
	       (!back || add_hop(pool, tti_hop_out(loads, net, root), 1));
}

/* Multicast: what the head writes once the switch hands to all, and the switch reduces
 * what all hold: each member's links carry it once, the head's twice. */
static bool add_nvls(struct tti_pool *pool, const struct tti_column *column)
{
	const struct tti_loads *loads = pool->loads;
	bool good = true;

	for (uint32_t i = 0; good && i < loads->n; i++) {
		const float amount = i == column->order[0] ? 2 : 1;

		good = add_hop(pool, &loads->sw[2 * i], amount) &&
		       add_hop(pool, &loads->sw[2 * i + 1], amount);
	}
	return good;
}

static bool add_direct(struct tti_pool *pool, const struct tti_column *column)
{
	const struct tti_loads *loads = pool->loads;
	const uint32_t head = column->order[0];
	const float share = 1.0f / (float)(loads->n - 1);
	bool good = true;

	for (uint32_t i = 0; good && i < loads->n; i++)
		if (i != head)
			good = add_hop(pool, tti_hop(loads, head, i), share) &&
			       add_hop(pool, tti_hop(loads, i, head), share);
	return good;
}

tutti_status tti_pool_loads(struct tti_pool *pool, const struct tti_column *column)
{
	bool good = false;

	pool->scratch.n = 0;
	pool->far = pool->far_hops = pool->hops = 0;
	switch (pool->config->pattern) {
	case TTI_PATTERN_RING:
		good = pool->loads->nnets == 0 ? add_closed(pool, column)
		       : pool->config->cross_nic == TTI_CROSS_MIRROR
			       ? add_ring(pool, column, false, 0.5f) &&
					 add_ring(pool, column, true, 0.5f)
			       : add_ring(pool, column, false, 1);
		break;
	case TTI_PATTERN_TREE:
	case TTI_PATTERN_BALANCED_TREE:
	case TTI_PATTERN_SPLIT_TREE:
	case TTI_PATTERN_COLLNET_CHAIN:
		good = add_tree(pool, column) && add_tree_net(pool, column);
		break;
	case TTI_PATTERN_NVLS:
		good = add_nvls(pool, column) && add_tree_net(pool, column);
		break;
	case TTI_PATTERN_COLLNET_DIRECT:
		good = add_direct(pool, column) && add_tree_net(pool, column);
		break;
	}
	return good ? TUTTI_OK : tti_fail(TUTTI_ENOMEM, "search of channels: out of memory");
}

static void *copy(struct tti_pool *pool, const void *from, size_t size)
{
	void *to = tti_arena_alloc(&pool->arena, pool->loads->n * size);

	if (to)
		memcpy(to, from, pool->loads->n * size);
	return to;
}

static bool same(const struct tti_pool *pool, const struct tti_column *a,
		 const struct tti_column *b)
{
	const size_t nbytes = pool->loads->n * sizeof(*a->order);

	return a->net_in == b->net_in && a->net_out == b->net_out && a->second == b->second &&
	       !a->way == !b->way &&
	       (!a->way || memcmp(a->way, b->way, pool->loads->n * sizeof(*a->way)) == 0) &&
	       (a->parent ? memcmp(a->parent, b->parent, nbytes) == 0
			  : memcmp(a->order, b->order, nbytes) == 0);
}

/* How much the column whose loads are in scratch could carry if it were the only one. */
static double alone(struct tti_pool *pool)
{
	double most = INFINITY;

	for (size_t i = 0; i < pool->scratch.n; i++) {
		const struct tti_load *load = &pool->scratch.at[i];

		pool->sum[load->row] += (double)load->amount;
		most = fmin(most, pool->loads->capacity[load->row] / pool->sum[load->row]);
	}
	for (size_t i = 0; i < pool->scratch.n; i++)
		pool->sum[pool->scratch.at[i].row] = 0;
	return most;
}

tutti_status tti_pool_add(struct tti_pool *pool, const struct tti_column *column)
{
	struct tti_column own = *column;

	TTI_TRY(tti_pool_loads(pool, column));
	for (size_t i = 0; i < pool->columns.n; i++)
		if (same(pool, &pool->columns.at[i], column))
			return TUTTI_OK;
	own.order = copy(pool, column->order, sizeof(*own.order));
	own.parent = column->parent ? copy(pool, column->parent, sizeof(*own.parent)) : NULL;
	own.way = column->way ? copy(pool, column->way, sizeof(*own.way)) : NULL;
	own.far = pool->far;
	own.far_hops = pool->far_hops;
	own.hops = pool->hops;
	own.alone = alone(pool);
	if (!own.order || (column->parent && !own.parent) || (column->way && !own.way) ||
	    !tti_vec_push(&pool->columns, own))
		return tti_fail(TUTTI_ENOMEM, "search of channels: out of memory");
	TTI_TRY(tti_lp_add(pool->lp, pool->scratch.at, pool->scratch.n));
	tti_lp_charge(pool->lp, (uint32_t)pool->columns.n - 1, pool->charge * own.far_hops);
	return TUTTI_OK;
}
