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

/* What ranks of one group have for rank d of another is collected by one of them, which
 * sends all of it to d: to each rank, from each other group, one link leads. Of groups of
 * one size it is the member of d's number, so that rails stay straight. Every byte crosses
 * once between groups; inside it moves once, unless it starts at the right rank. */

struct view {
	const struct tti_shape *shape; /* NULL: one group of all, by number */
	int ngroups, group, index, size;
};

static int member(const struct view *v, int group, int index)
{
	return v->shape ? (int)v->shape->members[(int)v->shape->first_member[group] + index]
			: index;
}

static int size_of(const struct view *v, int group)
{
	return v->shape ? (int)v->shape->group_size[group] : v->size;
}

static struct view look(const struct tti_program *prog)
{
	const struct tti_shape *shape = prog->shape;
	struct view v = { .ngroups = 1, .index = prog->rank, .size = prog->n };

	if (!shape || !shape->ngroups)
		return v;
	v.shape = shape;
	v.ngroups = (int)shape->ngroups;
	v.group = (int)shape->group_of[prog->rank];
	v.size = size_of(&v, v.group);
	for (v.index = 0; member(&v, v.group, v.index) != prog->rank;)
		v.index++;
	return v;
}

/* The i-th rank of another group that member `index` of this one sends to; -1: past them. */
static int served(const struct view *v, int group, int index, int i)
{
	const int at = index + i * v->size;

	return at < size_of(v, group) ? member(v, group, at) : -1;
}

/* Inside the group: first what stays there, then what each member collects. `dest` of a
 * peer is its rank, or one that it serves. */
static void collect_round(struct tti_program *prog, const struct view *v, int group, int i)
{
	for (int offset = 1; offset < v->size; offset++) {
		const int next = tti_wrap(v->index + offset, v->size);
		const int prev = tti_wrap(v->index - offset, v->size);
		const int own = group == v->group ? prog->rank : served(v, group, v->index, i);
		const int theirs =
			group == v->group ? member(v, group, next) : served(v, group, next, i);

		if (theirs >= 0)
			tti_send(prog, pair(prog, prog->rank, theirs), member(v, v->group, next));
		if (own >= 0)
			tti_recv(prog, pair(prog, member(v, v->group, prev), own),
				 member(v, v->group, prev));
	}
}

/* The `index`-th chunk of each rank that this one serves goes out; that of the group before
 * comes in. One to a peer at a time: with one slot a link nobody waits for long. */
static void cross_round(struct tti_program *prog, const struct view *v, int next, int prev,
			int index)
{
	for (int i = 0; index < v->size && served(v, next, v->index, i) >= 0; i++) {
		const int dest = served(v, next, v->index, i);

		tti_send(prog, pair(prog, member(v, v->group, index), dest), dest);
	}
	if (index < size_of(v, prev))
		tti_recv(prog, pair(prog, member(v, prev, index), prog->rank),
			 member(v, prev, v->index % size_of(v, prev)));
}

void tti_hierarchical_all_to_all(struct tti_program *prog)
{
	const struct view v = look(prog);

	prog->nchunks = prog->n * prog->n;
	collect_round(prog, &v, v.group, 0);
	for (int offset = 1; offset < v.ngroups; offset++) {
		const int group = tti_wrap(v.group + offset, v.ngroups);

		for (int i = 0; i * v.size < size_of(&v, group); i++)
			collect_round(prog, &v, group, i);
	}
	prog->stage++;
	for (int offset = 1; offset < v.ngroups; offset++) {
		const int next = tti_wrap(v.group + offset, v.ngroups);
		const int prev = tti_wrap(v.group - offset, v.ngroups);

		for (int index = 0; index < v.size || index < size_of(&v, prev); index++)
			cross_round(prog, &v, next, prev, index);
	}
}
