/* SPDX-License-Identifier: BSD-3-Clause */
/* perf of calls with a count for each rank: counts that rise evenly from 0 to twice the mean,
 * so that all together are as much as the even call's. */
#include <stdlib.h>

#include "perf.h"

static size_t share(size_t count, int k, int n)
{
	return n < 2 ? count : 2 * count / (size_t)(n - 1) * (size_t)k;
}

/* The count that `from` sends to `to`; where all ranks have the same counts, the count of rank `to`. */
static size_t count_between(tutti_collective coll, size_t count, int from, int to, int n)
{
	return share(count, coll_is(coll, COLL_PAIRS) ? (from + to) % n : to, n);
}

static size_t place_of(tutti_collective coll, size_t count, int from, int to, int n)
{
	size_t place = 0;

	for (int rank = 0; rank < to; rank++)
		place += count_between(coll, count, from, rank, n);
	return place;
}

bool perf_make_counts(tutti_collective coll, size_t count, int rank, int n,
		      struct perf_counts *counts)
{
	const size_t ranks = (size_t)n;

	if (!counts->counts) {
		counts->counts = calloc(ranks, sizeof(*counts->counts));
		counts->displs = calloc(ranks, sizeof(*counts->displs));
	}
	if (!counts->counts || !counts->displs)
		return false;
	/* (from + to) % n: what a rank sends is what it gets. */
	for (int peer = 0; peer < n; peer++) {
		counts->counts[peer] = count_between(coll, count, rank, peer, n);
		counts->displs[peer] = place_of(coll, count, rank, peer, n);
	}
	counts->own = counts->counts[rank];
	return true;
}

void perf_free_counts(struct perf_counts *counts)
{
	free(counts->counts);
	free(counts->displs);
}

size_t perf_uneven_sends(const struct perf_pattern *p, int rank)
{
	if (!coll_is(p->coll, COLL_GATHERS))
		return p->layout.send;
	return count_between(p->coll, p->layout.param, 0, rank, p->nranks);
}

void perf_uneven_part(const struct perf_pattern *p, int rank, int from, struct perf_part *out)
{
	const size_t count = p->layout.param;
	const int n = p->nranks;

	*out = (struct perf_part){ .count = count_between(p->coll, count, from, rank, n) };
	if (coll_is(p->coll, COLL_PAIRS)) {
		out->first = place_of(p->coll, count, from, rank, n);
		out->place = place_of(p->coll, count, rank, from, n);
	} else if (coll_is(p->coll, COLL_SCATTERS)) {
		out->first = place_of(p->coll, count, 0, rank, n);
	} else {
		out->count = count_between(p->coll, count, 0, from, n);
		out->place = place_of(p->coll, count, 0, from, n);
	}
}
