/* SPDX-License-Identifier: BSD-3-Clause */
/* The sides of a handoff: lists of ranks, and what each of them holds. */
#include <stdlib.h>
#include <string.h>

#include "perf.h"

static bool add(struct cli_ranks *list, int first, int last)
{
	int *const ranks = realloc(list->at, (size_t)(list->n + last - first + 1) * sizeof(int));

	if (!ranks)
		return false;
	list->at = ranks;
	for (int rank = first; rank <= last; rank++)
		ranks[list->n++] = rank;
	return true;
}

bool perf_find_sides(const struct perf_options *options, int nranks, struct perf_sides *out)
{
	const int half = (nranks + 1) / 2;

	*out = (struct perf_sides){ 0 };
	if (!options->from.n && !add(&out->default_from, 0, half - 1))
		return false;
	if (!options->to.n && !add(&out->default_to, nranks > 1 ? half : 0, nranks - 1))
		return false;
	const struct cli_ranks *const from = options->from.n ? &options->from : &out->default_from;
	const struct cli_ranks *const to = options->to.n ? &options->to : &out->default_to;

	out->from = (tutti_side){ from->at, from->n, (options->sharded & PERF_FROM) != 0 };
	out->to = (tutti_side){ to->at, to->n, (options->sharded & PERF_TO) != 0 };
	return true;
}

void perf_free_sides(struct perf_sides *sides)
{
	free(sides->default_from.at);
	free(sides->default_to.at);
}

void perf_side_range(const tutti_side *side, int rank, size_t count, size_t *first, size_t *length)
{
	*first = *length = 0;
	for (int i = 0; i < side->n; i++) {
		if (side->ranks[i] != rank)
			continue;
		*length = count;
		if (side->sharded)
			tutti_part(count, side->n, i, first, length);
	}
}
