/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"

/* All to all: what rank s has for rank d is one chunk. Each must leave its rank once and
 * nothing can be reduced or shared on the way, so direct moves the least; the others save
 * peers, and with them connections and system calls, for bytes that travel twice or more. */

static int pair(const struct tti_program *prog, int source, int dest)
{
	return source * prog->n + dest;
}

/* Pairwise exchange: in round k everybody sends to the k-th rank after it and gets from the
 * k-th before it, so in no round two ranks send to one. A rank in place sends everything before
 * it gets anything, as what it gets lies where what it sends to the same rank did: one message
 * goes to each, so there is room for all, whatever the others do first. */
void tti_direct_all_to_all(struct tti_program *prog)
{
	const int rank = prog->rank, n = prog->n;

	prog->nchunks = n * n;
	for (int round = 1; round < n; round++) {
		const int next = tti_wrap(rank + round, n), prev = tti_wrap(rank - round, n);

		tti_send(prog, pair(prog, rank, next), next);
		if (!prog->in_place)
			tti_recv(prog, pair(prog, prev, rank), prev);
	}
	for (int round = 1; round < n && prog->in_place; round++) {
		const int prev = tti_wrap(rank - round, n);

		tti_recv(prog, pair(prog, prev, rank), prev);
	}
}

/* Bruck's index algorithm (Bruck, Ho, Kipnis, Upfal and Weathersby, IEEE TPDS 1997): what is
 * to go x ranks further goes one step for each bit of x, in ceil(log2 n) rounds, and each
 * rank has as many peers. Chunks have names here, so nothing is rotated. In the round of
 * distance d the chunks of the lower bits of x have come to the rank already. */
void tti_bruck_all_to_all(struct tti_program *prog)
{
	const int rank = prog->rank, n = prog->n;

	prog->nchunks = n * n;
	for (int distance = 1; distance < n; distance *= 2)
		for (int x = distance; x < n; x++) {
			const int source = tti_wrap(rank - x % distance, n);
			const int prev = tti_wrap(rank - distance, n);
			const int from = tti_wrap(prev - x % distance, n);

			if (!(x & distance))
				continue;
			tti_send(prog, pair(prog, source, tti_wrap(source + x, n)),
				 tti_wrap(rank + distance, n));
			tti_recv(prog, pair(prog, from, tti_wrap(from + x, n)), prev);
		}
}

/* -- Between groups ---------------------------------------------------------------- */

/* One rank of each group collects what the ranks of its group have for rank d of another
 * group, and sends all of it to d: one link leads to each rank from each other group. In
 * groups of one size the collecting rank has d's number, so that rails stay straight. Every
 * byte crosses once between groups; inside a group it moves once, unless it starts at the
 * right rank. */

/* The i-th rank of another group that member `index` of this one sends to; -1: past them. */
static int served(const struct tti_groups *g, int group, int index, int i)
{
	const int at = index + i * g->size;

	return at < tti_group_size(g, group) ? tti_group_member(g, group, at) : -1;
}

/* Inside the group: first what stays there, then what each member collects. `dest` of a
 * peer is its rank, or one that it serves. */
static void collect_round(struct tti_program *prog, const struct tti_groups *g, int group, int i)
{
	for (int offset = 1; offset < g->size; offset++) {
		const int next = tti_wrap(g->index + offset, g->size);
		const int prev = tti_wrap(g->index - offset, g->size);
		const int own = group == g->group ? prog->rank : served(g, group, g->index, i);
		const int theirs = group == g->group ? tti_group_member(g, group, next)
						     : served(g, group, next, i);

		if (theirs >= 0)
			tti_send(prog, pair(prog, prog->rank, theirs),
				 tti_group_member(g, g->group, next));
		if (own >= 0)
			tti_recv(prog, pair(prog, tti_group_member(g, g->group, prev), own),
				 tti_group_member(g, g->group, prev));
	}
}

/* The `index`-th chunk of each rank that this one serves goes out; that of the group before
 * comes in. One to a peer at a time: with one slot a link nobody waits for long. */
static void cross_round(struct tti_program *prog, const struct tti_groups *g, int next, int prev,
			int index)
{
	for (int i = 0; index < g->size && served(g, next, g->index, i) >= 0; i++) {
		const int dest = served(g, next, g->index, i);

		tti_send(prog, pair(prog, tti_group_member(g, g->group, index), dest), dest);
	}
	if (index < tti_group_size(g, prev))
		tti_recv(prog, pair(prog, tti_group_member(g, prev, index), prog->rank),
			 tti_group_member(g, prev, g->index % tti_group_size(g, prev)));
}

void tti_hierarchical_all_to_all(struct tti_program *prog)
{
	const struct tti_groups g = tti_groups_of(prog);

	prog->nchunks = prog->n * prog->n;
	collect_round(prog, &g, g.group, 0);
	for (int offset = 1; offset < g.ngroups; offset++) {
		const int group = tti_wrap(g.group + offset, g.ngroups);

		for (int i = 0; i * g.size < tti_group_size(&g, group); i++)
			collect_round(prog, &g, group, i);
	}
	prog->stage++;
	for (int offset = 1; offset < g.ngroups; offset++) {
		const int next = tti_wrap(g.group + offset, g.ngroups);
		const int prev = tti_wrap(g.group - offset, g.ngroups);

		for (int index = 0; index < g.size || index < tti_group_size(&g, prev); index++)
			cross_round(prog, &g, next, prev, index);
	}
}
