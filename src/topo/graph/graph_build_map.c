/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/graph_build.h"

#include "util/hash.h"
#include "util/mem.h"

static size_t slot_of(const struct tti_map *map, uint64_t a, uint64_t b)
{
	size_t at = tti_hash_combine(tti_hash_mix(a), b) & (map->room - 1);

	while (map->slots[at].taken && (map->slots[at].a != a || map->slots[at].b != b))
		at = (at + 1) & (map->room - 1);
	return at;
}

static bool map_grow(struct tti_map *map)
{
	struct tti_map more = { .room = map->room ? map->room * 2 : 64, .n = map->n };

	more.slots = tti_calloc(more.room, sizeof(*more.slots));
	if (!more.slots)
		return false;
	for (size_t i = 0; i < map->room; i++)
		if (map->slots[i].taken)
			more.slots[slot_of(&more, map->slots[i].a, map->slots[i].b)] =
				map->slots[i];
	tti_free(map->slots);
	*map = more;
	return true;
}

bool tti_map_put(struct tti_map *map, uint64_t a, uint64_t b, uint32_t value)
{
	struct tti_map_slot *slot;

	if (map->n * 2 >= map->room && !map_grow(map))
		return false;
	slot = &map->slots[slot_of(map, a, b)];
	if (slot->taken)
		return true;
	*slot = (struct tti_map_slot){ a, b, value, true };
	map->n++;
	return true;
}

uint32_t tti_map_get(const struct tti_map *map, uint64_t a, uint64_t b)
{
	const struct tti_map_slot *slot = map->room ? &map->slots[slot_of(map, a, b)] : NULL;

	return slot && slot->taken ? slot->value : TTI_MAP_NONE;
}

void tti_map_release(struct tti_map *map)
{
	tti_free(map->slots);
	*map = (struct tti_map){ 0 };
}
