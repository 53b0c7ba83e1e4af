/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/algorithms.h"
#include "util/mem.h"

/* Hierarchical: groups of ranks that are near each other, hosts mostly, each of which
 * works as one. Inside, everybody talks to everybody; between groups the data goes in
 * stripes, each with a member of its own in every group, so that every byte goes between
 * groups as often as it must and all members take part. With three groups of four,
 * all_reduce:
 *
 *     group 0     group 1     group 2
 *     0 1 2 3     0 1 2 3     0 1 2 3     each reduces a quarter of its group's data
 *     |   '-----------|-----------'|
 *     '-----------'-----------'           quarters go round, stripe by stripe, as rings
 *     0 1 2 3     0 1 2 3     0 1 2 3     and from each member to all of its group
 *
 * There are as many stripes as the largest group has members, and in a smaller group a
 * member serves several; or fewer (struct tti_split), where few ranks are enough to keep the
 * wires busy and more would only be in each other's way. The other members give to those
 * that serve, and take from them.
 *
 * With N bytes, G groups and B bytes a second into each group and out of it, what
 * everything waits for at best is
 *
 *     all_reduce                    2 (G - 1) / G * N / B
 *     all_gather, reduce_scatter    (n - smallest group) / n * N / B, (G - 1) / G if even
 *     broadcast, reduce             N / B: chains, a block behind the other
 *
 * and that is what goes between groups here, no byte of it twice. To come near it, the
 * wires must never wait. So what is done inside before and after are stages of their own
 * (program.h), which work on other blocks meanwhile. And as in a block each round of a ring
 * needs what came in the round before, what a round carries is cut into `parts` (struct
 * tti_split): while one is on its way and being reduced, the others are sent.
 *
 * Pieces are numbered by group: stripe s of group g ends up with piece (s, g): of the
 * vector for all_reduce, and where chunks belong to ranks those of the members
 * s, s + stripes, ... of group g. One group is what "direct" does, groups of one rank
 * what "ring" does. */

struct view {
	struct tti_groups g;
	int stripes, parts;
	/* 0: chunks belong to ranks. Else the vector is cut into so many pieces for each
	 * stripe: one for each group, or one for all. */
	int pieces;
};

/* The member of a group that a stripe goes through; one's own stripes are index,
 * index + size, ... */
static int server(const struct view *v, int group, int stripe)
{
	return tti_group_member(&v->g, group, stripe % tti_group_size(&v->g, group));
}

static struct view look(const struct tti_program *prog, int pieces)
{
	struct view v = { .g = tti_groups_of(prog), .parts = prog->split.parts, .pieces = pieces };

	for (int group = 0; group < v.g.ngroups; group++)
		if (tti_group_size(&v.g, group) > v.stripes)
			v.stripes = tti_group_size(&v.g, group);
	if (prog->split.stripes > 0 && prog->split.stripes < v.stripes)
		v.stripes = prog->split.stripes;
	return v;
}

/* How many chunks piece (stripe, group) has; the first stripe's has most. */
static int count(const struct view *v, int stripe, int group)
{
	return v->parts *
	       (v->pieces ? 1
			  : (tti_group_size(&v->g, group) - stripe + v->stripes - 1) / v->stripes);
}

static int chunk_of(const struct view *v, int stripe, int group, int k)
{
	const int piece =
		v->pieces ? stripe * v->pieces + group % v->pieces
			  : tti_group_member(&v->g, group, stripe + k / v->parts * v->stripes);

	return piece * v->parts + k % v->parts;
}

/* The i-th other member of the group, from the next one on. */
static int other(const struct view *v, int i)
{
	return (v->g.index + 1 + i) % v->g.size;
}

/* The chunk to all of the group. */
static void send_inside(struct tti_program *prog, const struct view *v, int chunk)
{
	for (int i = 0; i < v->g.size - 1; i++)
		tti_send(prog, chunk, tti_group_member(&v->g, v->g.group, other(v, i)));
}

/* One chunk of each of the stripes base, base + 1, ..., each of another member. */
static void reduce_some(struct tti_program *prog, const struct view *v, int group, int k, int base)
{
	const int own = base + v->g.index;

	for (int i = 0; i < v->g.size - 1; i++) {
		const int stripe = base + other(v, i);

		if (stripe < v->stripes && k < count(v, stripe, group))
			tti_send(prog, chunk_of(v, stripe, group, k),
				 tti_group_member(&v->g, v->g.group, other(v, i)));
	}
	for (int i = 0; i < v->g.size - 1 && own < v->stripes && k < count(v, own, group); i++)
		tti_recv_reduce(prog, chunk_of(v, own, group, k),
				tti_group_member(&v->g, v->g.group, other(v, i)),
				v->g.ngroups == 1 && i == v->g.size - 2);
}

/* Piece (s, group) of each stripe s is reduced by its member of this group. */
static void reduce_inside(struct tti_program *prog, const struct view *v, int group)
{
	for (int k = 0; k < count(v, 0, group); k++)
		for (int base = 0; base < v->stripes; base += v->g.size)
			reduce_some(prog, v, group, k, base);
}

static void gather_some(struct tti_program *prog, const struct view *v, int group, int k, int base)
{
	const int own = base + v->g.index;

	if (own < v->stripes && k < count(v, own, group))
		send_inside(prog, v, chunk_of(v, own, group, k));
	for (int i = v->g.size - 2; i >= 0; i--) {
		const int stripe = base + other(v, i);

		if (stripe < v->stripes && k < count(v, stripe, group))
			tti_recv(prog, chunk_of(v, stripe, group, k),
				 tti_group_member(&v->g, v->g.group, other(v, i)));
	}
}

/* Each stripe's member gives its piece of `group` to all of its own group. */
static void gather_inside(struct tti_program *prog, const struct view *v, int group)
{
	for (int k = 0; k < count(v, 0, group); k++)
		for (int base = 0; base < v->stripes; base += v->g.size)
			gather_some(prog, v, group, k, base);
}

/* One round of the rings: of each own stripe the piece of group `out` goes to the next
 * group, that of the group before comes in. One by one: see ring.c. */
static void pass_on(struct tti_program *prog, const struct view *v, int out, bool reduces,
		    bool final)
{
	const int next = tti_wrap(v->g.group + 1, v->g.ngroups);
	const int prev = tti_wrap(v->g.group - 1, v->g.ngroups),
		  in = tti_wrap(out - 1, v->g.ngroups);
	const int most = count(v, 0, out) > count(v, 0, in) ? count(v, 0, out) : count(v, 0, in);

	for (int k = 0; k < most; k++)
		for (int stripe = v->g.index; stripe < v->stripes; stripe += v->g.size) {
			if (k < count(v, stripe, out))
				tti_send(prog, chunk_of(v, stripe, out, k),
					 server(v, next, stripe));
			if (k < count(v, stripe, in) && reduces)
				tti_recv_reduce(prog, chunk_of(v, stripe, in, k),
						server(v, prev, stripe), final);
			else if (k < count(v, stripe, in))
				tti_recv(prog, chunk_of(v, stripe, in, k), server(v, prev, stripe));
		}
}

/* Each stripe's member ends up with the piece of its group, summed over all groups. Pieces are
 * reduced inside in the order in which they are sent on. */
static void reduce_to_groups(struct tti_program *prog, const struct view *v)
{
	for (int round = 0; round < v->g.ngroups; round++)
		reduce_inside(prog, v, tti_wrap(v->g.group - 1 - round, v->g.ngroups));
	prog->stage++;
	for (int round = 0; round < v->g.ngroups - 1; round++)
		pass_on(prog, v, tti_wrap(v->g.group - 1 - round, v->g.ngroups), true,
			round == v->g.ngroups - 2);
}

static void gather_from_groups(struct tti_program *prog, const struct view *v)
{
	for (int round = 0; round < v->g.ngroups - 1; round++)
		pass_on(prog, v, tti_wrap(v->g.group - round, v->g.ngroups), false, false);
}

void tti_hierarchical_all_reduce(struct tti_program *prog)
{
	struct view v = look(prog, 0);

	v.pieces = v.g.ngroups;
	prog->nchunks = v.stripes * v.pieces * v.parts;
	reduce_to_groups(prog, &v);
	gather_from_groups(prog, &v);
	prog->stage++;
	/* In the order in which they came. */
	for (int round = 0; round < v.g.ngroups; round++)
		gather_inside(prog, &v, tti_wrap(v.g.group - round, v.g.ngroups));
}

void tti_hierarchical_reduce_scatter(struct tti_program *prog)
{
	const struct view v = look(prog, 0);

	prog->nchunks = prog->n * v.parts;
	reduce_to_groups(prog, &v);
	prog->stage++;
	for (int part = 0; part < v.parts && v.g.index >= v.stripes; part++)
		tti_recv(prog, prog->rank * v.parts + part,
			 tti_group_member(&v.g, v.g.group, v.g.index % v.stripes));
	if (v.g.index >= v.stripes)
		return;
	for (int k = v.parts; k < count(&v, v.g.index, v.g.group); k++) {
		const int chunk = chunk_of(&v, v.g.index, v.g.group, k);

		tti_send(prog, chunk, tti_chunk_owner(prog, chunk));
	}
}

void tti_hierarchical_all_gather(struct tti_program *prog)
{
	const struct view v = look(prog, 0);

	prog->nchunks = prog->n * v.parts;
	for (int part = 0; part < v.parts; part++) {
		send_inside(prog, &v, prog->rank * v.parts + part);
		for (int i = v.g.size - 2; i >= 0; i--) {
			const int peer = tti_group_member(&v.g, v.g.group, other(&v, i));

			tti_recv(prog, peer * v.parts + part, peer);
		}
	}
	prog->stage++;
	gather_from_groups(prog, &v);
	prog->stage++;
	for (int round = 1; round < v.g.ngroups; round++)
		gather_inside(prog, &v, tti_wrap(v.g.group - round, v.g.ngroups));
}

/* -- Whole stripes ----------------------------------------------------------------- */

/* Between groups by recursive doubling: log2 steps of all of a stripe in place of two
 * for each group of a part of it. As many stripes as the smallest group has members: who
 * took part in several could wait in one for somebody who waits in another. */
void tti_hierarchical_doubling_all_reduce(struct tti_program *prog)
{
	struct view v = look(prog, 1);
	uint32_t *order = tti_calloc((size_t)v.g.ngroups, sizeof(*order));
	const struct tti_ring ring = { .order = order, .n = v.g.ngroups, .place = v.g.group };

	if (!order) {
		prog->nchunks = 1;
		prog->failed = true;
		return;
	}
	for (int group = 0; group < v.g.ngroups; group++)
		if (tti_group_size(&v.g, group) < v.stripes)
			v.stripes = tti_group_size(&v.g, group);
	prog->nchunks = v.stripes * v.parts;
	for (int group = 0; group < v.g.ngroups && v.g.index < v.stripes; group++)
		order[group] = (uint32_t)tti_group_member(&v.g, group, v.g.index);
	reduce_inside(prog, &v, 0);
	prog->stage++;
	for (int k = 0; k < v.parts && v.g.index < v.stripes; k++)
		tti_double_recursively(prog, &ring, chunk_of(&v, v.g.index, 0, k));
	prog->stage++;
	gather_inside(prog, &v, 0);
	tti_free(order);
}

/* How many groups after that of the root. */
static int position_of(const struct tti_program *prog, const struct view *v)
{
	return v->g.shape
		       ? tti_wrap(v->g.group - (int)v->g.shape->group_of[prog->root], v->g.ngroups)
		       : 0;
}

/* Along the chains: what the group before has goes into the next, and to all inside. */
static void spread(struct tti_program *prog, const struct view *v, bool sends_on)
{
	const int next = tti_wrap(v->g.group + 1, v->g.ngroups);
	const int prev = tti_wrap(v->g.group - 1, v->g.ngroups);

	for (int stripe = v->g.index; stripe < v->stripes; stripe += v->g.size)
		for (int k = 0; k < v->parts; k++) {
			tti_recv(prog, chunk_of(v, stripe, 0, k), server(v, prev, stripe));
			if (sends_on)
				tti_send(prog, chunk_of(v, stripe, 0, k), server(v, next, stripe));
		}
	gather_inside(prog, v, 0);
}

/* The root to all of its group, and from group to group a chain for each stripe. */
void tti_hierarchical_broadcast(struct tti_program *prog)
{
	const struct view v = look(prog, 1);
	const int position = position_of(prog, &v), next = tti_wrap(v.g.group + 1, v.g.ngroups);
	const bool sends_on = position < v.g.ngroups - 1;

	prog->nchunks = v.stripes * v.parts;
	if (position > 0) {
		spread(prog, &v, sends_on);
		return;
	}
	for (int chunk = 0; chunk < prog->nchunks; chunk++) {
		const int stripe = chunk / v.parts;

		if (prog->rank != prog->root)
			tti_recv(prog, chunk, prog->root);
		if (sends_on && server(&v, v.g.group, stripe) == prog->rank)
			tti_send(prog, chunk, server(&v, next, stripe));
		if (prog->rank == prog->root)
			send_inside(prog, &v, chunk);
	}
}

/* The last group of the chains: the root gets what the others have. */
static void collect(struct tti_program *prog, const struct view *v)
{
	for (int chunk = 0; chunk < prog->nchunks; chunk++) {
		const int from = server(v, v->g.group, chunk / v->parts);

		if (from == prog->root)
			continue;
		if (prog->rank == prog->root)
			tti_recv(prog, chunk, from);
		else if (prog->rank == from)
			tti_send(prog, chunk, prog->root);
	}
}

/* The way back: inside each group to the stripes, along their chains, to the root. */
void tti_hierarchical_reduce(struct tti_program *prog)
{
	const struct view v = look(prog, 1);
	const int position = tti_wrap(position_of(prog, &v) - 1, v.g.ngroups);
	const int next = tti_wrap(v.g.group + 1, v.g.ngroups),
		  prev = tti_wrap(v.g.group - 1, v.g.ngroups);
	const bool ends_here = position == v.g.ngroups - 1;

	prog->nchunks = v.stripes * v.parts;
	reduce_inside(prog, &v, 0);
	prog->stage++;
	for (int stripe = v.g.index; stripe < v.stripes; stripe += v.g.size)
		for (int k = 0; k < v.parts; k++) {
			if (position > 0)
				tti_recv_reduce(prog, chunk_of(&v, stripe, 0, k),
						server(&v, prev, stripe), ends_here);
			if (!ends_here)
				tti_send(prog, chunk_of(&v, stripe, 0, k),
					 server(&v, next, stripe));
		}
	prog->stage++;
	if (ends_here)
		collect(prog, &v);
}
