/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_ALGORITHMS_H
#define TTI_COLL_ALGORITHMS_H

/* The algorithms of algorithms.def, one file per family, and what the families share. Each
 * function emits the steps of prog->rank (struct tti_algorithm, emit). */

#include "coll/program.h"

#define ALGORITHM(algorithm, collective, COLLECTIVE, ...) \
	void tti_##algorithm##_##collective(struct tti_program *prog);
#include "coll/algorithms/algorithms.def"
#undef ALGORITHM

/* rank modulo n, for rank >= -n. */
static inline int tti_wrap(int rank, int n)
{
	return (rank + n) % n;
}

/* A ring as one rank sees it: by number, or in the order of the shape. */
struct tti_ring {
	const uint32_t *order, *place_of; /* NULL: by number */
	int n, place;                     /* place: of the rank of the program */
};

/* The rank at a place >= -n and < 2n. */
static inline int tti_ring_at(const struct tti_ring *ring, int place)
{
	place = tti_wrap(place, ring->n);
	return ring->order ? (int)ring->order[place] : place;
}

static inline int tti_ring_place(const struct tti_ring *ring, int rank)
{
	return ring->place_of ? (int)ring->place_of[rank] : rank;
}

/* The ring of each part of the data (a ring of share 3 comes three times); returns the number of
 * parts: 1 without a shape. Where one order of ranks will do, the first ring gives it: ranks that
 * are near each other stand together in it. */
int tti_rings_of(const struct tti_program *prog, struct tti_ring rings[TTI_SHAPE_PARTS]);
struct tti_ring tti_ring_first(const struct tti_program *prog);

/* The groups of a shape as one rank sees them; without a shape one group of all, by number. */
struct tti_groups {
	const struct tti_shape *shape;   /* NULL: by number */
	int ngroups, group, index, size; /* of the rank: its group, its number in it, how many */
};

struct tti_groups tti_groups_of(const struct tti_program *prog);

static inline int tti_group_member(const struct tti_groups *g, int group, int index)
{
	return g->shape ? (int)g->shape->members[(int)g->shape->first_member[group] + index]
			: index;
}

static inline int tti_group_size(const struct tti_groups *g, int group)
{
	return g->shape ? (int)g->shape->group_size[group] : g->size;
}

/* Recursive doubling of a chunk among the ranks of `ring`; it is complete if they hold
 * all contributions. */
void tti_double_recursively(struct tti_program *prog, const struct tti_ring *ring, int chunk);

/* Send the chunk to all others in one fan-out. The next rank comes first, so that
 * links that are served one after the other do not all begin with rank 0. */
void tti_send_to_others(struct tti_program *prog, int chunk);

/* In memory: all buffers are ready, or all ranks are done. */
void tti_memory_sync(struct tti_program *prog);

/* Reduce what all others send into the chunk, which is then complete: one n-ary
 * reduction. */
void tti_reduce_from_others(struct tti_program *prog, int chunk);

#endif
