/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll.h"

#include <stdio.h>

#include "names.h"
#include "tool.h"

static const unsigned facts_of[TUTTI_COLLECTIVE_COUNT] = {
	[TUTTI_ALL_REDUCE] = COLL_REDUCES,
	[TUTTI_BROADCAST] = COLL_ROOTED,
	[TUTTI_REDUCE] = COLL_ROOTED | COLL_REDUCES,
	[TUTTI_ALL_GATHER] = COLL_GATHERS,
	[TUTTI_REDUCE_SCATTER] = COLL_REDUCES | COLL_SCATTERS,
	[TUTTI_ALL_TO_ALL] = COLL_PAIRS,
	[TUTTI_GATHER] = COLL_ROOTED | COLL_GATHERS,
	[TUTTI_SCATTER] = COLL_ROOTED | COLL_SCATTERS,
	[TUTTI_ALL_TO_ALL_V] = COLL_PAIRS | COLL_COUNTS,
	[TUTTI_GATHER_V] = COLL_ROOTED | COLL_GATHERS | COLL_COUNTS,
	[TUTTI_SCATTER_V] = COLL_ROOTED | COLL_SCATTERS | COLL_COUNTS,
	[TUTTI_ALL_GATHER_V] = COLL_GATHERS | COLL_COUNTS,
	[TUTTI_REDUCE_SCATTER_V] = COLL_REDUCES | COLL_SCATTERS | COLL_COUNTS,
};

bool coll_is(tutti_collective coll, unsigned facts)
{
	return facts_of[coll] & facts;
}

const char *coll_name(const void *self, int i)
{
	(void)self;
	return i < TUTTI_COLLECTIVE_COUNT ? tutti_collective_name((tutti_collective)i) : NULL;
}

static const char *algorithm_name(const void *coll, int i)
{
	return tutti_algorithm_name(*(const tutti_collective *)coll, i);
}

bool coll_find_algorithm(tutti_collective coll, const char *name)
{
	const struct names names = { algorithm_name, &coll };
	char what[64];

	if (!tutti_algorithm_name(coll, 0)) {
		tool_bad_usage("%s has no algorithm '%s': it has none to choose from",
			       tutti_collective_name(coll), name);
		return false;
	}
	snprintf(what, sizeof(what), "%s has no algorithm", tutti_collective_name(coll));
	return names_choose(&names, what, name) >= 0;
}
