/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "coll/algorithms/algorithms.h"

static const struct tti_algorithm table[] = {
#define ALGORITHM(algorithm, collective, COLLECTIVE, ...) \
	{ .name = #algorithm,                             \
	  .coll = TUTTI_##COLLECTIVE,                     \
	  .emit = tti_##algorithm##_##collective,         \
	  __VA_ARGS__ },
#include "coll/algorithms/algorithms.def"
#undef ALGORITHM
};

#define TABLE_ROWS (sizeof(table) / sizeof(table[0]))

const struct tti_algorithm *tti_algorithm_at(tutti_collective coll, int index)
{
	for (size_t i = 0; i < TABLE_ROWS; i++)
		if (table[i].coll == coll && index >= 0 && index-- == 0)
			return &table[i];
	return NULL;
}

const struct tti_algorithm *tti_algorithm_find(tutti_collective coll, const char *name)
{
	for (size_t i = 0; i < TABLE_ROWS; i++)
		if (table[i].coll == coll && strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}
