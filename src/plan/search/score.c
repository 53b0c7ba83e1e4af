/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/score.h"

#include <math.h>

/* Differences below this share are rounding of the solver, or of no weight. */
#define SAME 1e-4

/* -1: a is less, 1: b is less; of the whole. */
static int compare(double a, double b, double whole)
{
	if (fabs(a - b) <= SAME * whole)
		return 0;
	return a < b ? -1 : 1;
}

static int compare_counts(uint32_t a, uint32_t b)
{
	return (a > b) - (a < b);
}

bool tti_score_better(const struct tti_score *a, const struct tti_score *b, double least)
{
	const bool enough = a->gbps >= least && b->gbps >= least;
	int order;

	if (!enough)
		return a->gbps > b->gbps;
	order = compare(a->far, b->far, a->gbps);
	if (order == 0)
		order = compare(a->far_hops, b->far_hops, a->gbps);
	if (order == 0)
		order = compare_counts(a->crossing > 1, b->crossing > 1);
	if (order == 0)
		order = compare_counts(a->nchannels, b->nchannels);
	if (order == 0)
		order = compare_counts(a->crossing, b->crossing);
	if (order == 0)
		order = compare(a->hops, b->hops, fmax(a->hops, b->hops));
	return order < 0;
}
