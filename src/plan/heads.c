/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/column.h"
#include "util/error.h"

/* Patterns with a head: as many columns as there are pairs of a head and a NIC, so all
 * of them are in the linear program from the start. */

/* NVLS needs every member on one NVLink switch. */
static bool all_on_a_switch(const struct tti_loads *loads)
{
	for (uint32_t i = 0; i < loads->n; i++)
		if (loads->nvs[i] == TTI_NODE_NONE || loads->nvs[i] != loads->nvs[0])
			return false;
	return true;
}

static bool reaches_all(const struct tti_loads *loads, uint32_t head)
{
	for (uint32_t i = 0; i < loads->n; i++)
		if (i != head && (tti_hop(loads, head, i)->bw_gbps <= 0 ||
				  tti_hop(loads, i, head)->bw_gbps <= 0))
			return false;
	return true;
}

static tutti_status add_head(struct tti_pool *pool, uint32_t head, uint32_t net, uint32_t *room)
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
	return tti_pool_add(pool, &column);
}

tutti_status tti_add_heads(struct tti_pool *pool)
{
	const struct tti_loads *loads = pool->loads;
	uint32_t *room = tti_arena_alloc(&pool->arena, 2 * loads->n * sizeof(*room));

	if (!room)
		return tti_fail(TUTTI_ENOMEM, "search of heads: out of memory");
	if (loads->n < 2 || (pool->config->pattern == TTI_PATTERN_NVLS && !all_on_a_switch(loads)))
		return TUTTI_OK;
	for (uint32_t head = 0; head < loads->n; head++) {
		if (!reaches_all(loads, head))
			continue;
		if (loads->nnets == 0)
			TTI_TRY(add_head(pool, head, TTI_NO_NET, room));
		for (uint32_t net = 0; net < loads->nnets; net++)
			TTI_TRY(add_head(pool, head, net, room));
	}
	return TUTTI_OK;
}
