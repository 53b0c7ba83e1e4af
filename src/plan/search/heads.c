/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/column.h"
#include "util/error.h"

/* Patterns with a head: as many columns as there are pairs of a head and a NIC. Those of
 * the nearest NICs are in the linear program from the start. */

static bool reaches_all(const struct tti_loads *loads, uint32_t head)
{
	for (uint32_t i = 0; i < loads->n; i++)
		if (i != head && (tti_hop(loads, head, i)->bw_gbps <= 0 ||
				  tti_hop(loads, i, head)->bw_gbps <= 0))
			return false;
	return true;
}

/* The cost of 1 GB/s of the column whose loads are in scratch. */
static double cost_of(const struct tti_pool *pool, const double *prices)
{
	double sum = 0;

	for (size_t i = 0; i < pool->scratch.n; i++)
		sum += (double)pool->scratch.at[i].amount * prices[pool->scratch.at[i].row];
	return sum;
}

/* Add the column of a head at a NIC; with prices, only if it is worth it. */
static tutti_status add_head(struct tti_pool *pool, uint32_t head, uint32_t net,
			     const double *prices, uint32_t *room)
{
	const struct tti_loads *loads = pool->loads;
	struct tti_column column = { .order = room,
				     .parent = room + loads->n,
				     .net_in = net,
				     .net_out = net,
				     .second = UINT32_MAX };
	uint32_t count = 1;

	if (net != TTI_NO_NET && (tti_hop_in(loads, net, head)->bw_gbps <= 0 ||
				  tti_hop_out(loads, net, head)->bw_gbps <= 0))
		return TUTTI_OK;
	room[0] = head;
	for (uint32_t i = 0; i < loads->n; i++) {
		column.parent[i] = i == head ? UINT32_MAX : head;
		if (i != head)
			room[count++] = i;
	}
	if (prices) {
		TTI_TRY(tti_pool_loads(pool, &column));
		if (cost_of(pool, prices) >= 1 - TTI_PRICE_EPS)
			return TUTTI_OK;
	}
	return tti_pool_add(pool, &column);
}

/* Without prices: at the nearest NICs. */
static tutti_status add_nets(struct tti_pool *pool, uint32_t head, const double *prices,
			     uint32_t *room)
{
	const struct tti_loads *loads = pool->loads;
	uint8_t least = UINT8_MAX;

	if (loads->nnets == 0)
		return add_head(pool, head, TTI_NO_NET, prices, room);
	for (uint32_t net = 0; net < loads->nnets; net++)
		if (tti_hop_in(loads, net, head)->type < least)
			least = tti_hop_in(loads, net, head)->type;
	for (uint32_t net = 0; net < loads->nnets; net++)
		if (prices || tti_hop_in(loads, net, head)->type == least)
			TTI_TRY(add_head(pool, head, net, prices, room));
	return TUTTI_OK;
}

tutti_status tti_add_heads(struct tti_pool *pool, const double *prices, uint32_t *nadded_out)
{
	const struct tti_loads *loads = pool->loads;
	const size_t before = pool->columns.n;
	uint32_t *room = tti_arena_alloc(&pool->arena, 2 * loads->n * sizeof(*room));

	*nadded_out = 0;
	if (!room)
		return tti_fail(TUTTI_ENOMEM, "search of heads: out of memory");
	/* NVLS needs every member on one NVLink switch. */
	if (loads->n < 2 ||
	    (pool->config->pattern == TTI_PATTERN_NVLS && !tti_loads_on_a_switch(loads)))
		return TUTTI_OK;
	for (uint32_t head = 0; head < loads->n; head++)
		if (reaches_all(loads, head))
			TTI_TRY(add_nets(pool, head, prices, room));
	*nadded_out = (uint32_t)(pool->columns.n - before);
	return TUTTI_OK;
}
