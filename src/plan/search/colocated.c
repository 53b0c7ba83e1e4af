/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/colocated.h"

#include "util/error.h"

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "members of a node: out of memory");
}

/* The endpoint of each member, and how many members each has, in first[e + 1]. */
static void number_endpoints(struct tti_colocated *colocated, const uint32_t *nodes,
			     uint32_t *endpoint)
{
	for (uint32_t member = 0; member < colocated->n; member++) {
		uint32_t e = 0;

		while (e < colocated->nendpoints && colocated->nodes[e] != nodes[member])
			e++;
		if (e == colocated->nendpoints)
			colocated->nodes[colocated->nendpoints++] = nodes[member];
		endpoint[member] = e;
		colocated->first[e + 1]++;
	}
}

tutti_status tti_colocated_find(struct tti_arena *arena, const uint32_t *nodes, uint32_t n,
				struct tti_colocated *out)
{
	uint32_t *room = tti_arena_alloc(arena, (5 * (size_t)n + 1) * sizeof(*room));
	uint32_t *endpoint, *at;

	if (!room)
		return no_memory();
	*out = (struct tti_colocated){
		.n = n, .nodes = room, .members = room + n, .first = room + 2 * (size_t)n
	};
	endpoint = room + 3 * (size_t)n + 1;
	at = endpoint + n;
	number_endpoints(out, nodes, endpoint);
	for (uint32_t e = 0; e < out->nendpoints; e++) {
		out->first[e + 1] += out->first[e];
		at[e] = out->first[e];
	}
	for (uint32_t member = 0; member < n; member++)
		out->members[at[endpoint[member]]++] = member;
	return TUTTI_OK;
}

static uint32_t leader(const struct tti_colocated *colocated, uint32_t endpoint)
{
	return colocated->members[colocated->first[endpoint]];
}

static void hang(const struct tti_colocated *colocated, const struct tti_channel *from, bool heads,
		 uint32_t *parent)
{
	const uint32_t head = leader(colocated, from->order[0]);

	for (uint32_t e = 0; e < colocated->nendpoints; e++) {
		const uint32_t *members = colocated->members + colocated->first[e];
		const uint32_t count = colocated->first[e + 1] - colocated->first[e];

		parent[members[0]] = from->parent[e] == UINT32_MAX
					     ? UINT32_MAX
					     : leader(colocated, from->parent[e]);
		for (uint32_t i = 1; i < count; i++)
			parent[members[i]] = heads ? head : members[(i - 1) / 2];
	}
}

/* Only what leads from one endpoint to another may go over NICs. */
static tutti_status expand_ways(const struct tti_colocated *colocated, struct tti_local *search,
				struct tti_channel *channel)
{
	struct tti_way *way = tti_arena_alloc(&search->arena, colocated->n * sizeof(*way));

	if (!way)
		return no_memory();
	for (uint32_t i = 0; i < colocated->n; i++)
		way[i] = (struct tti_way){ TTI_NO_NET, TTI_NO_NET };
	for (uint32_t e = 0; e < colocated->nendpoints; e++)
		way[leader(colocated, e)] = channel->way[e];
	channel->way = way;
	return TUTTI_OK;
}

static tutti_status expand(const struct tti_colocated *colocated, struct tti_local *search,
			   struct tti_channel *channel)
{
	const size_t nbytes = colocated->n * sizeof(uint32_t);
	uint32_t *order = tti_arena_alloc(&search->arena, nbytes);
	uint32_t *parent = channel->parent ? tti_arena_alloc(&search->arena, nbytes) : NULL;
	uint32_t count = 0;

	if (!order || (channel->parent && !parent))
		return no_memory();
	if (channel->way)
		TTI_TRY(expand_ways(colocated, search, channel));
	for (uint32_t i = 0; i < colocated->nendpoints; i++) {
		const uint32_t e = channel->order[i];

		for (uint32_t at = colocated->first[e]; at < colocated->first[e + 1]; at++)
			order[count++] = colocated->members[at];
	}
	if (parent)
		hang(colocated, channel, tti_pattern_has_heads(search->pattern), parent);
	if (channel->second != UINT32_MAX)
		channel->second = leader(colocated, channel->second);
	channel->order = order;
	channel->parent = parent;
	return TUTTI_OK;
}

tutti_status tti_colocated_expand(const struct tti_colocated *colocated, struct tti_local *search)
{
	if (colocated->nendpoints == colocated->n)
		return TUTTI_OK;
	for (uint32_t i = 0; i < search->nchannels; i++)
		TTI_TRY(expand(colocated, search, &search->channels[i]));
	return TUTTI_OK;
}
