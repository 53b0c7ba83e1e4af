/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_TREE_INTERN_H
#define TTI_TOPO_TREE_INTERN_H

/* Byte strings as small numbers: equal strings have the same number, counted from 0 in the
 * order in which they came. Strings of equal hash are compared whole.
 * Owner: who holds the struct; tti_intern_release().
 * Threads: not synchronised. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/arena.h"
#include "util/vec.h"

#define TTI_INTERN_NONE UINT32_MAX

struct tti_intern_entry {
	const char *bytes; /* followed by a 0, which is not counted */
	size_t nbytes;
	uint64_t hash;
};

/* A zeroed struct is empty. */
struct tti_intern {
	struct tti_arena arena;
	TTI_VEC(struct tti_intern_entry) entries;
	uint32_t *slots; /* 1 + number, 0: free */
	size_t nslots;
};

/* The number of a string, which is added if it is not there. NONE: no memory. */
uint32_t tti_intern(struct tti_intern *set, const void *bytes, size_t nbytes);
uint32_t tti_intern_text(struct tti_intern *set, const char *text);
/* NONE: not there. */
uint32_t tti_intern_find(const struct tti_intern *set, const void *bytes, size_t nbytes);
const char *tti_intern_get(const struct tti_intern *set, uint32_t number);
void tti_intern_release(struct tti_intern *set);

#endif
