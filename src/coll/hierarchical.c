/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms.h"
#include "util/mem.h"

/* Hierarchical: groups of ranks that are near each other, hosts mostly, each of which
 * works as one. Inside, everybody talks to everybody; between groups the members of one
 * number exchange their part of the data, so that every byte goes between groups as
 * often as it must and all members take part. With three groups of four, all_reduce:
 *
 *     group 0     group 1     group 2
 *     0 1 2 3     0 1 2 3     0 1 2 3     each reduces a quarter of its group's data
 *     |   '-----------|-----------'|
 *     '-----------'-----------'           quarters go round, lane by lane, as rings
 *     0 1 2 3     0 1 2 3     0 1 2 3     and from each member to all of its group
 *
 * There are as many lanes as the smallest group has members; in larger groups the
 * members beyond them give to the lanes and take from them. What goes between groups is
 * the least there is all the same, but only the lanes carry it: beside a group of one
 * rank, one rank of each group does.
 *
 * Pieces are numbered by group: lane l of group g ends up with piece (l, g), one chunk
 * of the vector for all_reduce, and where chunks belong to ranks those of the members
 * l, l + lanes, ... of group g. One group is what "direct" does, groups of one rank what
 * "ring" does. */

struct view {
	const struct tti_shape *shape; /* NULL: one group of all, by number */
	int ngroups, lanes;
	int group, index, size; /* of the rank: its group, its number in it, how many */
	/* 0: chunks belong to ranks. Else the vector is cut into so many chunks for each
	 * lane: one for each group, or one for all. */
	int pieces;
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

static int ngroups_of(const struct tti_program *prog)
{
	return prog->shape && prog->shape->ngroups ? (int)prog->shape->ngroups : 1;
}

static struct view look(const struct tti_program *prog, int pieces)
{
	const struct tti_shape *shape = prog->shape;
	struct view v = { .ngroups = ngroups_of(prog),
			  .lanes = prog->n,
			  .index = prog->rank,
			  .size = prog->n,
			  .pieces = pieces };

	if (!shape || !shape->ngroups)
		return v;
	v.shape = shape;
	v.group = (int)shape->group_of[prog->rank];
	v.size = size_of(&v, v.group);
	for (v.index = 0; member(&v, v.group, v.index) != prog->rank;)
		v.index++;
	for (int group = 0; group < v.ngroups; group++)
		if (size_of(&v, group) < v.lanes)
			v.lanes = size_of(&v, group);
	return v;
}

static bool has_lane(const struct view *v)
{
	return v->index < v->lanes;
}

/* How many chunks piece (lane, group) has. */
static int count(const struct view *v, int lane, int group)
{
	return v->pieces ? 1 : (size_of(v, group) - lane + v->lanes - 1) / v->lanes;
}

static int chunk_of(const struct view *v, int lane, int group, int i)
{
	return v->pieces ? lane * v->pieces + group % v->pieces
			 : member(v, group, lane + i * v->lanes);
}

/* The i-th other member of the group, from the next one on. */
static int other(const struct view *v, int i)
{
	return (v->index + 1 + i) % v->size;
}

/* The chunk to all of the group. */
static void send_inside(struct tti_program *prog, const struct view *v, int chunk)
{
	for (int i = 0; i < v->size - 1; i++)
		tti_send(prog, chunk, member(v, v->group, other(v, i)));
}

/* Piece (l, group) of each lane l is reduced by the lane's member of this group. */
static void reduce_inside(struct tti_program *prog, const struct view *v, int group)
{
	for (int k = 0; k < count(v, 0, group); k++) {
		for (int i = 0; i < v->size - 1; i++) {
			const int lane = other(v, i);

			if (lane < v->lanes && k < count(v, lane, group))
				tti_send(prog, chunk_of(v, lane, group, k),
					 member(v, v->group, lane));
		}
		for (int i = 0; i < v->size - 1 && has_lane(v) && k < count(v, v->index, group);
		     i++)
			tti_recv_reduce(prog, chunk_of(v, v->index, group, k),
					member(v, v->group, other(v, i)),
					v->ngroups == 1 && i == v->size - 2);
	}
}

/* Each lane's member gives its piece of `group` to all of its own group. */
static void gather_inside(struct tti_program *prog, const struct view *v, int group)
{
	for (int k = 0; k < count(v, 0, group); k++) {
		if (has_lane(v) && k < count(v, v->index, group))
			send_inside(prog, v, chunk_of(v, v->index, group, k));
		for (int i = v->size - 2; i >= 0; i--) {
			const int lane = other(v, i);

			if (lane < v->lanes && k < count(v, lane, group))
				tti_recv(prog, chunk_of(v, lane, group, k),
					 member(v, v->group, lane));
		}
	}
}

/* One round of a lane's ring: its piece of group `out` goes to the next group, that of
 * the group before comes in. One by one: see ring.c. */
static void pass_on(struct tti_program *prog, const struct view *v, int out, bool reduces,
		    bool final)
{
	const int lane = v->index, in = tti_wrap(out - 1, v->ngroups);
	const int next = member(v, tti_wrap(v->group + 1, v->ngroups), lane);
	const int prev = member(v, tti_wrap(v->group - 1, v->ngroups), lane);
	const int nout = count(v, lane, out), nin = count(v, lane, in);

	for (int k = 0; k < nout || k < nin; k++) {
		if (k < nout)
			tti_send(prog, chunk_of(v, lane, out, k), next);
		if (k < nin && reduces)
			tti_recv_reduce(prog, chunk_of(v, lane, in, k), prev, final);
		else if (k < nin)
			tti_recv(prog, chunk_of(v, lane, in, k), prev);
	}
}

/* Of all groups' sums each lane's member ends up with the piece of its group; the
 * pieces are reduced inside in the order in which they are sent on. */
static void reduce_to_groups(struct tti_program *prog, const struct view *v)
{
	for (int round = 0; round < v->ngroups; round++)
		reduce_inside(prog, v, tti_wrap(v->group - 1 - round, v->ngroups));
	for (int round = 0; round < v->ngroups - 1 && has_lane(v); round++)
		pass_on(prog, v, tti_wrap(v->group - 1 - round, v->ngroups), true,
			round == v->ngroups - 2);
}

static void gather_from_groups(struct tti_program *prog, const struct view *v)
{
	for (int round = 0; round < v->ngroups - 1 && has_lane(v); round++)
		pass_on(prog, v, tti_wrap(v->group - round, v->ngroups), false, false);
}

void tti_hierarchical_all_reduce(struct tti_program *prog)
{
	const struct view v = look(prog, ngroups_of(prog));

	prog->nchunks = v.lanes * v.pieces;
	reduce_to_groups(prog, &v);
	gather_from_groups(prog, &v);
	/* In the order in which they came. */
	for (int round = 0; round < v.ngroups; round++)
		gather_inside(prog, &v, tti_wrap(v.group - round, v.ngroups));
}

void tti_hierarchical_reduce_scatter(struct tti_program *prog)
{
	const struct view v = look(prog, 0);

	prog->nchunks = prog->n;
	reduce_to_groups(prog, &v);
	if (!has_lane(&v)) {
		tti_recv(prog, prog->rank, member(&v, v.group, v.index % v.lanes));
		return;
	}
	for (int k = 1; k < count(&v, v.index, v.group); k++) {
		const int owner = chunk_of(&v, v.index, v.group, k);

		tti_send(prog, owner, owner);
	}
}

void tti_hierarchical_all_gather(struct tti_program *prog)
{
	const struct view v = look(prog, 0);

	prog->nchunks = prog->n;
	send_inside(prog, &v, prog->rank);
	for (int i = v.size - 2; i >= 0; i--) {
		const int peer = member(&v, v.group, other(&v, i));

		tti_recv(prog, peer, peer);
	}
	gather_from_groups(prog, &v);
	for (int round = 1; round < v.ngroups; round++)
		gather_inside(prog, &v, tti_wrap(v.group - round, v.ngroups));
}

/* -- Whole lanes: one chunk each ------------------------------------------------------ */

/* Between groups by recursive doubling: log2 steps of all of a lane in place of two
 * for each group of a part of it. */
void tti_hierarchical_doubling_all_reduce(struct tti_program *prog)
{
	const struct view v = look(prog, 1);
	uint32_t *lane = tti_calloc((size_t)v.ngroups, sizeof(*lane));
	const struct tti_ring ring = { .order = lane, .n = v.ngroups, .place = v.group };

	prog->nchunks = v.lanes;
	if (!lane) {
		prog->failed = true;
		return;
	}
	for (int group = 0; group < v.ngroups && has_lane(&v); group++)
		lane[group] = (uint32_t)member(&v, group, v.index);
	reduce_inside(prog, &v, 0);
	if (has_lane(&v))
		tti_double_recursively(prog, &ring, v.index);
	gather_inside(prog, &v, 0);
	tti_free(lane);
}

/* How many groups after that of the root. */
static int position_of(const struct tti_program *prog, const struct view *v)
{
	return v->shape ? tti_wrap(v->group - (int)v->shape->group_of[prog->root], v->ngroups) : 0;
}

/* The root to all of its group, and from group to group a chain for each lane. */
void tti_hierarchical_broadcast(struct tti_program *prog)
{
	const struct view v = look(prog, 1);
	const int position = position_of(prog, &v);
	const bool sends_on = has_lane(&v) && position < v.ngroups - 1;
	const int next = sends_on ? member(&v, tti_wrap(v.group + 1, v.ngroups), v.index) : -1;

	prog->nchunks = v.lanes;
	if (position > 0) {
		if (has_lane(&v))
			tti_recv(prog, v.index,
				 member(&v, tti_wrap(v.group - 1, v.ngroups), v.index));
		if (sends_on)
			tti_send(prog, v.index, next);
		gather_inside(prog, &v, 0);
		return;
	}
	for (int lane = 0; lane < v.lanes; lane++) {
		if (prog->rank != prog->root)
			tti_recv(prog, lane, prog->root);
		if (sends_on && lane == v.index)
			tti_send(prog, lane, next);
		if (prog->rank == prog->root)
			send_inside(prog, &v, lane);
	}
}

/* The way back: inside each group to the lanes, along their chains, to the root. */
void tti_hierarchical_reduce(struct tti_program *prog)
{
	const struct view v = look(prog, 1);
	const int position = tti_wrap(position_of(prog, &v) - 1, v.ngroups);
	const bool ends_here = position == v.ngroups - 1;

	prog->nchunks = v.lanes;
	reduce_inside(prog, &v, 0);
	if (has_lane(&v) && position > 0)
		tti_recv_reduce(prog, v.index,
				member(&v, tti_wrap(v.group - 1, v.ngroups), v.index), ends_here);
	if (has_lane(&v) && !ends_here)
		tti_send(prog, v.index, member(&v, tti_wrap(v.group + 1, v.ngroups), v.index));
	for (int lane = 0; lane < v.lanes && ends_here && prog->rank == prog->root; lane++)
		if (lane != v.index)
			tti_recv(prog, lane, member(&v, v.group, lane));
	if (has_lane(&v) && ends_here && prog->rank != prog->root)
		tti_send(prog, v.index, prog->root);
}
