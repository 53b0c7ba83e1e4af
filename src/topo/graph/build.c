/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/build.h"

#include <stdarg.h>
#include <stdio.h>

#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

tutti_status tti_build_no_memory(const struct tti_build *build)
{
	return tti_fail(TUTTI_ENOMEM, "no memory for the graph of %s", build->doc->source);
}

static char *format(struct tti_arena *arena, const char *fmt, va_list args)
{
	va_list again;
	char *text;
	int len;

	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	text = len < 0 ? NULL : tti_arena_alloc(arena, (size_t)len + 1);
	if (text)
		vsnprintf(text, (size_t)len + 1, fmt, args);
	return text;
}

tutti_status tti_build_node(struct tti_build *build, enum tti_node_type type,
			    const struct tti_xml *xml, uint32_t host, uint32_t *out,
			    const char *name, ...)
{
	struct tti_node node = {
		.type = type,
		.host = host,
		.parent = TTI_NODE_NONE,
		.line = xml ? xml->line : 0,
		.element = xml ? tti_map_get(&build->numbers, (uintptr_t)xml, 0) : TTI_NODE_NONE,
		.pci = { .busid = TTI_BUSID_NONE },
	};
	va_list args;

	va_start(args, name);
	node.name = format(&build->graph->arena, name, args);
	va_end(args);
	if (!node.name || !tti_vec_push(&build->nodes, node))
		return tti_build_no_memory(build);
	*out = (uint32_t)(build->nodes.n - 1);
	return TUTTI_OK;
}

tutti_status tti_build_half(struct tti_build *build, struct tti_half half)
{
	return tti_vec_push(&build->halves, half) ? TUTTI_OK : tti_build_no_memory(build);
}

tutti_status tti_build_link(struct tti_build *build, struct tti_half half)
{
	struct tti_half back = half;

	back.from = half.to;
	back.to = half.from;
	TTI_TRY(tti_build_half(build, half));
	return tti_build_half(build, back);
}

int tti_build_by_ends(const void *left, const void *right)
{
	const struct tti_half *a = left, *b = right;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to < b->to ? -1 : 1;
	if (a->type != b->type)
		return a->type < b->type ? -1 : 1;
	return (a->bw_gbps > b->bw_gbps) - (a->bw_gbps < b->bw_gbps);
}

tutti_status tti_build_note(struct tti_build *build, enum tti_note_kind kind, uint32_t node,
			    uint32_t peer, const struct tti_xml *xml, const char *fmt, ...)
{
	struct tti_note note = {
		.kind = kind,
		.node = node,
		.peer = peer,
		.line = xml ? xml->line : 0,
	};
	va_list args;

	va_start(args, fmt);
	note.text = format(&build->graph->arena, fmt, args);
	va_end(args);
	if (!note.text || !tti_vec_push(&build->notes, note))
		return tti_build_no_memory(build);
	return TUTTI_OK;
}

tutti_status tti_build_text(struct tti_build *build, const struct tti_xml *xml, const char *attr,
			    const char *missing, const char **out)
{
	const char *text = tti_xml_get(xml, attr);

	*out = missing;
	if (!text)
		return TUTTI_OK;
	*out = tti_arena_strdup(&build->graph->arena, text);
	return *out ? TUTTI_OK : tti_build_no_memory(build);
}

/* -- Keys of two numbers ------------------------------------------------------------ */

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
