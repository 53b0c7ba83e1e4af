/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/column.h"
#include "util/error.h"

/* On a switch that links all members alike nothing needs to be searched for: a chain of
 * the members in their order loads each link once, and its rotations, one from each NIC
 * (or member), share what happens at the ends evenly.
 *
 *     NIC 0 → a b c d → NIC 3      NIC 1 → b c d a → NIC 0      ... */

bool tti_loads_on_a_switch(const struct tti_loads *loads)
{
	for (uint32_t i = 0; i < loads->n; i++)
		if (loads->nvs[i] == TTI_NODE_NONE || loads->nvs[i] != loads->nvs[0])
			return false;
	return loads->n > 1;
}

/* The member that a NIC is nearest to. */
static uint32_t nearest_member(const struct tti_loads *loads, uint32_t net)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < loads->n; i++)
		if (tti_hop_in(loads, net, i)->type < tti_hop_in(loads, net, best)->type)
			best = i;
	return best;
}

/* A neighbour of the nearest member that is as near: where a chain that has to come back to
 * its NIC begins, so that it ends at the nearest. UINT32_MAX: there is none. */
static uint32_t near_neighbour(const struct tti_loads *loads, uint32_t net, uint32_t nearest)
{
	const uint32_t next = (nearest + 1) % loads->n;

	return next != nearest && tti_hop_in(loads, net, next)->type ==
					  tti_hop_in(loads, net, nearest)->type
		       ? next
		       : UINT32_MAX;
}

/* How many NICs before this one are nearest to the same member. */
static uint32_t turn_of(const uint32_t *nearest, uint32_t net)
{
	uint32_t turn = 0;

	for (uint32_t i = 0; i < net; i++)
		turn += nearest[i] == nearest[net];
	return turn;
}

/* The NIC whose turn it is of those nearest to a member; `missing` if it has none. */
static uint32_t net_of(const struct tti_loads *loads, const uint32_t *nearest, uint32_t member,
		       uint32_t turn, uint32_t missing)
{
	uint32_t found = missing;

	for (uint32_t net = 0; net < loads->nnets; net++)
		if (nearest[net] == member) {
			found = net;
			if (turn-- == 0)
				break;
		}
	return found;
}

static bool can(const struct tti_loads *loads, const struct tti_column *column)
{
	const uint32_t n = loads->n;

	return column->net_in == TTI_NO_NET ||
	       (tti_hop_in(loads, column->net_in, column->order[0])->bw_gbps > 0 &&
		tti_hop_out(loads, column->net_out, column->order[column->parent ? 0 : n - 1])
				->bw_gbps > 0);
}

/* The chain that begins at `first`, up or down the members. */
static void chain(struct tti_pool *pool, uint32_t first, bool down, struct tti_column *column)
{
	const uint32_t n = pool->loads->n;

	for (uint32_t i = 0; i < n; i++) {
		column->order[i] = (first + (down ? n - i : i)) % n;
		if (column->parent)
			column->parent[column->order[i]] = i ? column->order[i - 1] : UINT32_MAX;
	}
}

/* A ring that leaves by the NIC it came in: both its ends are near it, if they can. */
static void chain_back(struct tti_pool *pool, const uint32_t *nearest, uint32_t net,
		       struct tti_column *column)
{
	const uint32_t other = near_neighbour(pool->loads, net, nearest[net]);
	const bool down = turn_of(nearest, net) % 2 == 1;

	if (other == UINT32_MAX)
		chain(pool, nearest[net], false, column);
	else
		chain(pool, down ? nearest[net] : other, down, column);
}

static tutti_status seed_nets(struct tti_pool *pool, struct tti_column *column)
{
	const struct tti_loads *loads = pool->loads;
	const bool ring = pool->config->pattern == TTI_PATTERN_RING;
	const bool crosses = ring && pool->config->cross_nic != TTI_CROSS_SAME;
	const bool halves = pool->config->pattern == TTI_PATTERN_BALANCED_TREE ||
			    pool->config->pattern == TTI_PATTERN_SPLIT_TREE;
	uint32_t *nearest = tti_arena_alloc(&pool->arena, loads->nnets * sizeof(*nearest));

	if (!nearest)
		return tti_fail(TUTTI_ENOMEM, "search of channels: out of memory");
	for (uint32_t net = 0; net < loads->nnets; net++)
		nearest[net] = nearest_member(loads, net);
	for (uint32_t net = 0; net < loads->nnets; net++) {
		if (ring && !crosses)
			chain_back(pool, nearest, net, column);
		else
			chain(pool, nearest[net], false, column);
		column->net_in = column->net_out = net;
		column->second = halves ? nearest[net] : UINT32_MAX;
		if (crosses)
			column->net_out = net_of(loads, nearest, column->order[loads->n - 1],
						 turn_of(nearest, net), net);
		if (can(loads, column))
			TTI_TRY(tti_pool_add(pool, column));
	}
	return TUTTI_OK;
}

tutti_status tti_seed(struct tti_pool *pool)
{
	const struct tti_loads *loads = pool->loads;
	const bool ring = pool->config->pattern == TTI_PATTERN_RING;
	struct tti_column column = { .order = pool->order,
				     .parent = ring ? NULL : pool->parent,
				     .net_in = TTI_NO_NET,
				     .net_out = TTI_NO_NET,
				     .second = UINT32_MAX };

	if (!tti_loads_on_a_switch(loads))
		return TUTTI_OK;
	if (loads->nnets > 0)
		return seed_nets(pool, &column);
	/* A closed ring is the same from wherever it begins. */
	for (uint32_t first = 0; first < (ring ? 1 : loads->n); first++) {
		chain(pool, first, false, &column);
		TTI_TRY(tti_pool_add(pool, &column));
	}
	return TUTTI_OK;
}
