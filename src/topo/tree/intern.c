/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/tree/intern.h"

#include <string.h>

#include "util/hash.h"
#include "util/mem.h"

/* The slot of a string, or the free slot for it. */
static size_t slot_of(const struct tti_intern *set, const void *bytes, size_t nbytes, uint64_t hash)
{
	size_t slot = (size_t)hash & (set->nslots - 1);

	for (; set->slots[slot]; slot = (slot + 1) & (set->nslots - 1)) {
		const struct tti_intern_entry *entry = &set->entries.at[set->slots[slot] - 1];

		if (entry->hash == hash && entry->nbytes == nbytes &&
		    (nbytes == 0 || memcmp(entry->bytes, bytes, nbytes) == 0))
			break;
	}
	return slot;
}

/* Double the slots before more than half are in use. */
static bool widen(struct tti_intern *set)
{
	const size_t nslots = set->nslots ? set->nslots * 2 : 16;
	uint32_t *slots;

	if (set->entries.n >= UINT32_MAX - 1)
		return false;
	if (set->entries.n < set->nslots / 2)
		return true;
	slots = tti_calloc(nslots, sizeof(*slots));
	if (!slots)
		return false;
	tti_free(set->slots);
	set->slots = slots;
	set->nslots = nslots;
	for (size_t i = 0; i < set->entries.n; i++) {
		size_t slot = (size_t)set->entries.at[i].hash & (nslots - 1);

		while (slots[slot])
			slot = (slot + 1) & (nslots - 1);
		slots[slot] = (uint32_t)i + 1;
	}
	return true;
}

uint32_t tti_intern(struct tti_intern *set, const void *bytes, size_t nbytes)
{
	struct tti_intern_entry entry = { .nbytes = nbytes, .hash = tti_hash_bytes(bytes, nbytes) };
	size_t slot;
	char *copy;

	if (!widen(set))
		return TTI_INTERN_NONE;
	slot = slot_of(set, bytes, nbytes, entry.hash);
	if (set->slots[slot])
		return set->slots[slot] - 1;
	copy = tti_arena_alloc_aligned(&set->arena, 1, nbytes + 1);
	if (!copy)
		return TTI_INTERN_NONE;
	if (nbytes)
		memcpy(copy, bytes, nbytes);
	entry.bytes = copy;
	if (!tti_vec_push(&set->entries, entry))
		return TTI_INTERN_NONE;
	set->slots[slot] = (uint32_t)set->entries.n;
	return (uint32_t)set->entries.n - 1;
}

uint32_t tti_intern_text(struct tti_intern *set, const char *text)
{
	return tti_intern(set, text, strlen(text));
}

uint32_t tti_intern_find(const struct tti_intern *set, const void *bytes, size_t nbytes)
{
	size_t slot;

	if (!set->nslots)
		return TTI_INTERN_NONE;
	slot = slot_of(set, bytes, nbytes, tti_hash_bytes(bytes, nbytes));
	return set->slots[slot] ? set->slots[slot] - 1 : TTI_INTERN_NONE;
}

const char *tti_intern_get(const struct tti_intern *set, uint32_t number)
{
	return set->entries.at[number].bytes;
}

void tti_intern_release(struct tti_intern *set)
{
	tti_arena_release(&set->arena);
	tti_vec_release(&set->entries);
	tti_free(set->slots);
	*set = (struct tti_intern){ 0 };
}
