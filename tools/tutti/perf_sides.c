/* SPDX-License-Identifier: BSD-3-Clause */
/* The sides of a handoff: lists of ranks, and what each of them holds. */
#include <stdlib.h>
#include <string.h>

#include "perf.h"

static bool add(struct perf_list *list, int first, int last)
{
	int *const ranks = realloc(list->ranks, (size_t)(list->n + last - first + 1) * sizeof(int));

	if (!ranks)
		return false;
	list->ranks = ranks;
	for (int rank = first; rank <= last; rank++)
		ranks[list->n++] = rank;
	return true;
}

bool perf_take_ranks(const char *option, const char *text, int most, struct perf_list *out)
{
	const char *at = text;

	out->n = 0;
	do {
		char *end;
		long first, last;

		first = last = strtol(at, &end, 10);
		if (end == at)
			break;
		if (*end == '-') {
			at = end + 1;
			last = strtol(at, &end, 10);
			if (end == at)
				break;
		}
		if (first < 0 || last < first || last >= most)
			break;
		if (!add(out, (int)first, (int)last)) {
			tool_fail("out of memory for the ranks '%s'", text);
			return false;
		}
		at = end;
	} while (*at == ',' && at++);
	if (*at == '\0' && out->n > 0)
		return true;
	tool_bad_usage("%s '%s' is no list of ranks: 0-3, or 0,2,5-7", option, text);
	return false;
}

bool perf_find_sides(const struct perf_options *options, int nranks, struct perf_sides *out)
{
	const int half = (nranks + 1) / 2;

	*out = (struct perf_sides){ 0 };
	if (!options->from.n && !add(&out->default_from, 0, half - 1))
		return false;
	if (!options->to.n && !add(&out->default_to, nranks > 1 ? half : 0, nranks - 1))
		return false;
	const struct perf_list *const from = options->from.n ? &options->from : &out->default_from;
	const struct perf_list *const to = options->to.n ? &options->to : &out->default_to;

	out->from = (tutti_side){ from->ranks, from->n, options->sharded_from };
	out->to = (tutti_side){ to->ranks, to->n, options->sharded_to };
	return true;
}

void perf_free_sides(struct perf_sides *sides)
{
	free(sides->default_from.ranks);
	free(sides->default_to.ranks);
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
