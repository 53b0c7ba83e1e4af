/* SPDX-License-Identifier: BSD-3-Clause */
/* Who measures whom, and when: a tournament. */
#include <stdlib.h>

#include "ping.h"

/* The ranks of a host that take part: order[first[host] .. first[host + 1]). */
struct teams {
	int *order, *first;
	int nhosts;
};

static bool teams_make(const struct ping_place *places, int nranks, bool all_ranks,
		       struct teams *out)
{
	int n = 0;

	out->nhosts = 0;
	out->order = calloc((size_t)nranks, sizeof(int));
	out->first = calloc((size_t)nranks + 1, sizeof(int));
	if (!out->order || !out->first)
		return false;
	for (int host = 0; host < nranks; host++) {
		if (places[host].host != host)
			continue;
		out->first[out->nhosts++] = n;
		for (int rank = host; rank < nranks; rank++)
			if (places[rank].host == host && (all_ranks || rank == host))
				out->order[n++] = rank;
	}
	out->first[out->nhosts] = n;
	return true;
}

static bool add(struct ping_pairs *pairs, int step, int x, int y)
{
	const struct ping_pair pair = { .step = step, .a = x < y ? x : y, .b = x < y ? y : x };

	if (pairs->n == pairs->room) {
		const size_t room = pairs->room ? 2 * pairs->room : 64;
		struct ping_pair *const at = realloc(pairs->at, room * sizeof(*at));

		if (!at)
			return false;
		pairs->at = at;
		pairs->room = room;
	}
	pairs->at[pairs->n++] = pair;
	if (step >= pairs->nsteps)
		pairs->nsteps = step + 1;
	return true;
}

/* Each rank of one host with each of another, one after the other; of a host with itself,
 * each two once. */
static bool match(struct ping_pairs *pairs, const struct teams *teams, int begin, int x, int y)
{
	int step = begin;

	for (int i = teams->first[x]; i < teams->first[x + 1]; i++)
		for (int k = x == y ? i + 1 : teams->first[y]; k < teams->first[y + 1]; k++)
			if (!add(pairs, step++, teams->order[i], teams->order[k]))
				return false;
	return true;
}

/* The circle method: one stays in its place, the others move on by one each round. With an
 * odd number, one of them rests. */
static bool tournament(struct ping_pairs *pairs, const struct teams *teams)
{
	const int n = teams->nhosts + teams->nhosts % 2, circle = n - 1;
	bool good = true;

	for (int round = 0; round < circle && good; round++) {
		const int begin = pairs->nsteps;

		for (int k = 0; k < n / 2 && good; k++) {
			const int x = k == 0 ? circle : (round + k) % circle;
			const int y = (round + circle - k) % circle;

			if (x < teams->nhosts && y < teams->nhosts)
				good = match(pairs, teams, begin, x, y);
		}
	}
	return good;
}

static int by_step(const void *a, const void *b)
{
	const struct ping_pair *x = a, *y = b;

	return x->step != y->step ? x->step - y->step : x->a - y->a;
}

bool ping_pairs_make(const struct ping_place *places, int nranks, bool all_ranks,
		     struct ping_pairs *out)
{
	struct teams teams;
	bool good = teams_make(places, nranks, all_ranks, &teams);

	*out = (struct ping_pairs){ 0 };
	for (int host = 0; good && host < teams.nhosts; host++)
		good = match(out, &teams, 0, host, host);
	good = good && tournament(out, &teams);
	if (out->n)
		qsort(out->at, out->n, sizeof(*out->at), by_step);
	free(teams.order);
	free(teams.first);
	return good;
}
