/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/handoff_hosts.h"

#include <stdlib.h>
#include <string.h>

#include "util/error.h"

static int32_t *numbers(struct tti_handoff_hosts *hosts, size_t n)
{
	int32_t *array = tti_arena_alloc(&hosts->arena, (n + 1) * sizeof(*array));

	if (array)
		memset(array, -1, (n + 1) * sizeof(*array));
	return array;
}

/* Numbers for the hosts of a side that have none yet: number[] is by host_of. */
static void number_hosts(const struct tti_handoff *handoff, const tutti_side *side, int32_t *number,
			 struct tti_handoff_hosts *hosts)
{
	for (int i = 0; i < side->n; i++) {
		const int rank = side->ranks[i];
		int32_t *at = &number[handoff->host_of[rank]];

		if (*at < 0)
			*at = hosts->nhosts++;
		hosts->of[rank] = *at;
	}
}

static bool list_members(struct tti_handoff_hosts *hosts, const tutti_side *side, int n,
			 struct tti_handoff_members *out)
{
	const size_t nhosts = (size_t)hosts->nhosts;

	out->rank = numbers(hosts, (size_t)side->n);
	out->place = numbers(hosts, (size_t)n);
	out->first = tti_arena_alloc(&hosts->arena, (nhosts + 2) * sizeof(*out->first));
	if (!out->first || !out->rank || !out->place)
		return false;
	/* first[h + 2] counts, first[h + 1] is where the next of h goes. */
	for (int i = 0; i < side->n; i++)
		out->first[hosts->of[side->ranks[i]] + 2]++;
	for (size_t host = 0; host < nhosts; host++)
		out->first[host + 2] += out->first[host + 1];
	for (int i = 0; i < side->n; i++) {
		const int rank = side->ranks[i];

		out->rank[out->first[hosts->of[rank] + 1]++] = rank;
		out->place[rank] = i;
	}
	return true;
}

static int by_key(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* The doors of one host to out[]; how many. key[count] is scratch: which one of its NIC a
 * rank is, the NIC, the rank. */
static int32_t list_doors(const struct tti_handoff_door *doors, const int32_t *ranks, int32_t count,
			  uint64_t *key, int32_t *out)
{
	int32_t filled = 0, nearest = UINT8_MAX;

	for (int32_t i = 0; i < count; i++)
		nearest = doors[ranks[i]].level < nearest ? doors[ranks[i]].level : nearest;
	for (int32_t i = 0; i < count; i++) {
		const struct tti_handoff_door *door = &doors[ranks[i]];
		uint64_t before = 0;

		if (door->level != nearest)
			continue;
		for (int32_t k = 0; k < i; k++)
			before += doors[ranks[k]].nic == door->nic &&
				  doors[ranks[k]].level == nearest;
		key[filled++] = before << 40 | (uint64_t)door->nic << 32 | (uint64_t)ranks[i];
	}
	qsort(key, (size_t)filled, sizeof(*key), by_key);
	for (int32_t i = 0; i < filled; i++)
		out[i] = (int32_t)(key[i] & UINT32_MAX);
	return filled;
}

static bool find_doors(struct tti_handoff_hosts *hosts, const struct tti_handoff_door *doors,
		       const struct tti_handoff_members *members, struct tti_handoff_members *out)
{
	const size_t nhosts = (size_t)hosts->nhosts, nranks = (size_t)members->first[nhosts];
	uint64_t *key;

	*out = *members;
	out->place = NULL;
	if (!doors)
		return true;
	key = tti_arena_alloc(&hosts->arena, nranks * sizeof(*key) + 1);
	out->rank = numbers(hosts, nranks);
	out->first = tti_arena_alloc(&hosts->arena, (nhosts + 1) * sizeof(*out->first));
	if (!key || !out->rank || !out->first)
		return false;
	for (int32_t host = 0; host < hosts->nhosts; host++)
		out->first[host + 1] =
			out->first[host] + list_doors(doors, tti_handoff_ranks(members, host),
						      tti_handoff_count(members, host), key,
						      out->rank + out->first[host]);
	return true;
}

/* The first source of each host, the second of each that has one, and so on. */
static void take_turns(struct tti_handoff_hosts *hosts)
{
	const int32_t ndoors = hosts->from_doors.first[hosts->nhosts];

	for (int32_t round = 0; hosts->nturns < ndoors; round++)
		for (int32_t host = 0; host < hosts->nhosts; host++)
			if (round < tti_handoff_count(&hosts->from_doors, host))
				hosts->turn[hosts->nturns++] =
					tti_handoff_ranks(&hosts->from_doors, host)[round];
}

static bool find(const struct tti_handoff *handoff, struct tti_handoff_hosts *hosts)
{
	const size_t n = (size_t)handoff->n;
	int32_t *number = numbers(hosts, n);

	hosts->of = numbers(hosts, n);
	hosts->turn = numbers(hosts, (size_t)handoff->from.n);
	if (!number || !hosts->of || !hosts->turn)
		return false;
	number_hosts(handoff, &handoff->to, number, hosts);
	hosts->nreceiving = hosts->nhosts;
	number_hosts(handoff, &handoff->from, number, hosts);
	if (!list_members(hosts, &handoff->from, handoff->n, &hosts->from) ||
	    !list_members(hosts, &handoff->to, handoff->n, &hosts->to) ||
	    !find_doors(hosts, handoff->doors, &hosts->from, &hosts->from_doors) ||
	    !find_doors(hosts, handoff->doors, &hosts->to, &hosts->to_doors))
		return false;
	take_turns(hosts);
	return true;
}

tutti_status tti_handoff_hosts_find(const struct tti_handoff *handoff,
				    struct tti_handoff_hosts *out)
{
	struct tti_handoff_hosts hosts = { 0 };

	if (!find(handoff, &hosts)) {
		tti_handoff_hosts_release(&hosts);
		return tti_fail(TUTTI_ENOMEM, "a handoff of %d ranks: out of memory", handoff->n);
	}
	*out = hosts;
	return TUTTI_OK;
}

void tti_handoff_hosts_release(struct tti_handoff_hosts *hosts)
{
	tti_arena_release(&hosts->arena);
}
