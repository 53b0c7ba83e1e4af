/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_ALGORITHMS_H
#define TTI_COLL_ALGORITHMS_H

/* What table.c lists, one file per family, and what the families share. Each
 * function emits the steps of prog->rank (struct tti_algorithm, emit). */

#include "coll/program.h"

void tti_exchange_all_reduce(struct tti_program *prog);
void tti_exchange_barrier(struct tti_program *prog);
void tti_direct_all_reduce(struct tti_program *prog);
void tti_direct_all_gather(struct tti_program *prog);
void tti_direct_reduce_scatter(struct tti_program *prog);
void tti_ring_all_reduce(struct tti_program *prog);
void tti_ring_all_gather(struct tti_program *prog);
void tti_ring_reduce_scatter(struct tti_program *prog);
void tti_recursive_doubling_all_reduce(struct tti_program *prog);
void tti_double_tree_all_reduce(struct tti_program *prog);
void tti_double_tree_broadcast(struct tti_program *prog);
void tti_double_tree_reduce(struct tti_program *prog);
void tti_hierarchical_all_reduce(struct tti_program *prog);
void tti_hierarchical_doubling_all_reduce(struct tti_program *prog);
void tti_hierarchical_all_gather(struct tti_program *prog);
void tti_hierarchical_reduce_scatter(struct tti_program *prog);
void tti_hierarchical_broadcast(struct tti_program *prog);
void tti_hierarchical_reduce(struct tti_program *prog);
void tti_ordered_all_reduce(struct tti_program *prog);
void tti_ordered_reduce(struct tti_program *prog);
void tti_ordered_reduce_scatter(struct tti_program *prog);
void tti_flat_broadcast(struct tti_program *prog);
void tti_flat_reduce(struct tti_program *prog);
void tti_binomial_broadcast(struct tti_program *prog);
void tti_binomial_reduce(struct tti_program *prog);
void tti_chain_broadcast(struct tti_program *prog);
void tti_chain_reduce(struct tti_program *prog);
void tti_bruck_all_gather(struct tti_program *prog);
void tti_direct_all_to_all(struct tti_program *prog);
void tti_bruck_all_to_all(struct tti_program *prog);
void tti_hierarchical_all_to_all(struct tti_program *prog);
void tti_flat_gather(struct tti_program *prog);
void tti_flat_scatter(struct tti_program *prog);
void tti_binomial_gather(struct tti_program *prog);
void tti_binomial_scatter(struct tti_program *prog);
void tti_dissemination_barrier(struct tti_program *prog);
void tti_direct_send_recv(struct tti_program *prog);
void tti_memory_send_recv(struct tti_program *prog);
void tti_direct_handoff(struct tti_program *prog);
void tti_memory_handoff(struct tti_program *prog);
void tti_memory_all_reduce(struct tti_program *prog);
void tti_memory_reduce(struct tti_program *prog);
void tti_memory_reduce_scatter(struct tti_program *prog);
void tti_memory_broadcast(struct tti_program *prog);
void tti_memory_all_gather(struct tti_program *prog);
void tti_memory_gather(struct tti_program *prog);
void tti_memory_scatter(struct tti_program *prog);
void tti_memory_all_to_all(struct tti_program *prog);
void tti_memory_barrier(struct tti_program *prog);

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

/* The ring of each part of the data (one of share 3 comes three times); how many parts:
 * 1 without a shape. The first ring stands for the order of ranks where one order will
 * do: in it, ranks that are near each other stand together. */
int tti_rings_of(const struct tti_program *prog, struct tti_ring rings[TTI_SHAPE_PARTS]);
struct tti_ring tti_ring_first(const struct tti_program *prog);

/* Recursive doubling of a chunk among the ranks of `ring`; it is complete if they hold
 * all contributions. */
void tti_double_recursively(struct tti_program *prog, const struct tti_ring *ring, int chunk);

/* The chunk goes to all others: one fan-out. The next rank comes first, so that
 * links that are served one after the other do not all begin with rank 0. */
void tti_send_to_others(struct tti_program *prog, int chunk);

/* What all others send is reduced into the chunk, which is then complete: one
 * n-ary reduction. */
void tti_reduce_from_others(struct tti_program *prog, int chunk);

#endif
