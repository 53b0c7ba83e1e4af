/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/column.h"
#include "util/error.h"

/* On a switch that links all members alike nothing needs to be searched for: a chain of
 * the members in their order loads each link once, and its rotations, one from each NIC
 * (or member), share what happens at the ends evenly.
 *
 *     NIC 0 → a b c d → NIC 3      NIC 1 → b c d a → NIC 0      ... */

/* So many NICs beside a member are tried in turn. */
#define TURNS 4

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

/* A column in the room of the pool, at no NIC. */
static struct tti_column blank(const struct tti_pool *pool)
{
	const bool ring = pool->config->pattern == TTI_PATTERN_RING;

	return (struct tti_column){ .order = pool->order,
				    .parent = ring ? NULL : pool->parent,
				    .net_in = TTI_NO_NET,
				    .net_out = TTI_NO_NET,
				    .second = UINT32_MAX };
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

/* The column whose order is found, and which begins at begin[i]: for NIC `i`, if there are NICs. */
static tutti_status add(struct tti_pool *pool, const uint32_t *begin, uint32_t i, bool crosses,
			struct tti_column *column)
{
	const struct tti_loads *loads = pool->loads;
	const bool halves = pool->config->pattern == TTI_PATTERN_BALANCED_TREE ||
			    pool->config->pattern == TTI_PATTERN_SPLIT_TREE;

	column->net_in = column->net_out = loads->nnets ? i : TTI_NO_NET;
	column->second = halves && loads->nnets ? begin[i] : UINT32_MAX;
	if (crosses)
		column->net_out =
			net_of(loads, begin, column->order[loads->n - 1], turn_of(begin, i), i);
	return can(loads, column) ? tti_pool_add(pool, column) : TUTTI_OK;
}

static tutti_status seed_nets(struct tti_pool *pool, struct tti_column *column)
{
	const struct tti_loads *loads = pool->loads;
	const bool ring = pool->config->pattern == TTI_PATTERN_RING;
	const bool crosses = ring && pool->config->cross_nic != TTI_CROSS_SAME;
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
		TTI_TRY(add(pool, nearest, net, crosses, column));
	}
	return TUTTI_OK;
}

/* -- A mesh ------------------------------------------------------------------------ */

/* Each member is linked to each other, all links alike. */
static bool is_mesh(const struct tti_loads *loads)
{
	const struct tti_hop *like = tti_hop(loads, 0, 1);

	for (uint32_t i = 0; i < loads->n * loads->n; i++) {
		const struct tti_hop *hop = &loads->hop[i];

		if (i % (loads->n + 1) != 0 &&
		    (hop->type != TTI_PATH_NVL || hop->n != 1 || hop->bw_gbps < like->bw_gbps ||
		     hop->bw_gbps > like->bw_gbps))
			return false;
	}
	return true;
}

/* How near two members are to the NIC that is nearest to both. */
static uint8_t nearness(const struct tti_loads *loads, uint32_t a, uint32_t b)
{
	uint8_t best = UINT8_MAX;

	for (uint32_t net = 0; net < loads->nnets; net++) {
		const uint8_t in = tti_hop_in(loads, net, a)->type;
		const uint8_t out = tti_hop_out(loads, net, b)->type;

		if ((in > out ? in : out) < best)
			best = in > out ? in : out;
	}
	return best;
}

/* Members in a circle, so that those opposite each other are near the same NIC. */
static void pair_up(const struct tti_loads *loads, uint32_t *place)
{
	const uint32_t half = loads->n / 2;

	for (uint32_t i = 0; i < loads->n; i++)
		place[i] = i;
	for (uint32_t at = 0; at < half; at++) {
		/* Not placed yet: at, at+1 .. half-1 and at+half .. n-1. */
		uint32_t best = at + half;

		for (uint32_t k = at + 1; k < loads->n; k++)
			if ((k < half || k > at + half) &&
			    nearness(loads, place[at], place[k]) <
				    nearness(loads, place[at], place[best]))
				best = k;

		const uint32_t mate = place[best];

		place[best] = place[at + half];
		place[at + half] = mate;
	}
}

/* The member where fewest paths begin, of those nearest to a NIC. */
static uint32_t begin_at(const struct tti_loads *loads, uint32_t net, uint32_t *begun)
{
	uint32_t best = nearest_member(loads, net);

	for (uint32_t i = 0; i < loads->n; i++)
		if (tti_hop_in(loads, net, i)->type == tti_hop_in(loads, net, best)->type &&
		    begun[i] < begun[best])
			best = i;
	begun[best]++;
	return best;
}

/* There and back across the circle from one member to the one opposite: such paths, one from
 * each member, use each link once (Walecki's; Lucas, Recreations mathematiques, 1883). */
static void zigzag(struct tti_pool *pool, const uint32_t *place, uint32_t first,
		   struct tti_column *column)
{
	const uint32_t n = pool->loads->n;
	uint32_t at = 0;

	while (place[at] != first)
		at++;
	for (uint32_t i = 0; i < n; i++)
		column->order[i] = place[(at + (i % 2 ? (i + 1) / 2 : n - i / 2)) % n];
}

static void star(struct tti_pool *pool, uint32_t first, struct tti_column *column)
{
	uint32_t count = 0;

	column->order[count++] = first;
	for (uint32_t i = 0; i < pool->loads->n; i++) {
		column->parent[i] = i == first ? UINT32_MAX : first;
		if (i != first)
			column->order[count++] = i;
	}
}

/* A tree from each member, or a path from each NIC, that has its links for itself. */
static tutti_status seed_mesh(struct tti_pool *pool, struct tti_column *column)
{
	const struct tti_loads *loads = pool->loads;
	const bool crosses = !column->parent && pool->config->cross_nic != TTI_CROSS_SAME;
	const uint32_t n = loads->nnets ? loads->nnets : loads->n;
	uint32_t *place =
		tti_arena_alloc(&pool->arena, (2 * (size_t)loads->n + n) * sizeof(*place));
	uint32_t *begun = place + loads->n, *begin = begun + loads->n;

	if (!place)
		return tti_fail(TUTTI_ENOMEM, "search of channels: out of memory");
	pair_up(loads, place);
	for (uint32_t i = 0; i < n; i++)
		begin[i] = loads->nnets ? begin_at(loads, i, begun) : i;
	for (uint32_t i = 0; i < n; i++) {
		if (column->parent)
			star(pool, begin[i], column);
		else
			zigzag(pool, place, begin[i], column);
		TTI_TRY(add(pool, begin, i, crosses, column));
	}
	return TUTTI_OK;
}

/* -- Over NICs --------------------------------------------------------------------- */

/* The NIC number `turn` of those nearest to a member, round and round; TTI_NO_NET: none is near
 * that could be used. */
static uint32_t near_net(const struct tti_loads *loads, uint32_t member, uint32_t turn)
{
	uint32_t count = 0, best = TTI_NO_NET;

	for (uint32_t net = 0; net < loads->ninner; net++) {
		const uint8_t type = tti_hop_out(loads, net, member)->type;

		if (loads->fabric[net] == TTI_NODE_NONE || type >= TTI_PATH_PHB)
			continue;
		if (best == TTI_NO_NET || type < tti_hop_out(loads, best, member)->type) {
			best = net;
			count = 0;
		}
		count += type == tti_hop_out(loads, best, member)->type;
	}
	for (uint32_t net = best, at = 0; best != TTI_NO_NET; net++) {
		if (loads->fabric[net] == TTI_NODE_NONE ||
		    tti_hop_out(loads, net, member)->type != tti_hop_out(loads, best, member)->type)
			continue;
		if (at++ == turn % count)
			return net;
	}
	return TTI_NO_NET;
}

/* Hops that would lead over CPUs go by NICs beside both ends, if there are such. false: there is
 * none. */
static bool leave_by_nets(struct tti_pool *pool, uint32_t turn, struct tti_column *column)
{
	const struct tti_loads *loads = pool->loads;
	const uint32_t n = loads->n;
	bool any = false;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t from = column->order[(i + n - 1) % n], to = column->order[i];
		const struct tti_way way = { near_net(loads, from, turn),
					     near_net(loads, to, turn) };
		const bool root = column->parent && i == 0;
		const bool out = !root && tti_hop(loads, from, to)->type >= TTI_PATH_PHB &&
				 tti_way_exists(loads, way);

		pool->ways[to] = out ? way : (struct tti_way){ TTI_NO_NET, TTI_NO_NET };
		any |= out;
	}
	column->way = pool->ways;
	return any;
}

tutti_status tti_seed_detours(struct tti_pool *pool)
{
	const bool ring = pool->config->pattern == TTI_PATTERN_RING;
	struct tti_column column = blank(pool);
	/* A tree from each gains one part in n, if there may be so many. */
	const uint32_t nroots = ring || pool->loads->n > TTI_MOST_CHANNELS ? 1 : pool->loads->n;

	for (uint32_t turn = 0; turn < TURNS; turn++)
		for (uint32_t first = 0; first < nroots; first++) {
			chain(pool, first, false, &column);
			if (leave_by_nets(pool, turn, &column))
				TTI_TRY(tti_pool_add(pool, &column));
		}
	return TUTTI_OK;
}

/* -- All of them ------------------------------------------------------------------- */

tutti_status tti_seed(struct tti_pool *pool)
{
	const struct tti_loads *loads = pool->loads;
	const bool ring = pool->config->pattern == TTI_PATTERN_RING;
	struct tti_column column = blank(pool);

	if (loads->n > 2 && is_mesh(loads) && (!ring || (loads->nnets > 0 && loads->n % 2 == 0)))
		return seed_mesh(pool, &column);
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
