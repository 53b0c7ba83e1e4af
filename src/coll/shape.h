/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_SHAPE_H
#define TTI_COLL_SHAPE_H

/* How a plan lays the algorithms over the ranks of a communicator: the order of each ring,
 * the parent of each rank in each tree, which ranks share a node, and how much of the data
 * each channel carries. An algorithm that uses a shape reads it from the program that it
 * fills (prog->shape). Without a shape it goes by the numbers of ranks, in one channel.
 *
 * Shares are small whole numbers: a channel of share 3 among shares that add up to 8
 * carries 3/8 of the data.
 *
 * Owner: tti_shape_free(), by each who holds it. Threads: any may read, hold and free. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tutti/status.h"
#include "util/arena.h"

/* The shares of all rings add up to at most this, and so do the shares of all trees. */
#define TTI_SHAPE_PARTS 16

struct tti_shape_ring {
	uint32_t *order; /* n ranks                          */
	uint32_t *place; /* of each rank in the order        */
	uint32_t share;
};

struct tti_shape_tree {
	uint32_t *parent; /* of each rank, UINT32_MAX: root  */
	uint32_t share;
};

struct tti_shape {
	struct tti_arena arena;
	_Atomic uint32_t more_holders; /* than one */
	uint32_t n;
	struct tti_shape_ring *rings;
	struct tti_shape_tree *trees;
	uint32_t nrings, ntrees; /* 1 or more of each, unless made by hand */
	/* The bandwidth of all rings, and of all trees, by the plan, in one direction; 0: not
	 * known. */
	float ring_gbps, tree_gbps;
	/* Groups of ranks that are near each other: hosts, or sockets of one host. Groups
	 * are numbered in the order that rings visit them; within one, ranks in the order
	 * of rings. */
	uint32_t ngroups;
	uint32_t *group_of;     /* of each rank                                   */
	uint32_t *group_size;   /* of each group                                  */
	uint32_t *first_member; /* members[first_member[g] .. + group_size[g])    */
	uint32_t *members;      /* all ranks, group by group                      */
	bool even;              /* all groups have one size                       */
};

struct tti_plan;

/* Make a shape from the ring and tree patterns of a plan. Bandwidths become shares. Channels whose
 * share rounds to nothing are left out, and at most TTI_SHAPE_PARTS channels, the largest, are
 * kept. The same plan gives the same shape on every rank. */
TUTTI_CHECKED tutti_status tti_shape_of_plan(const struct tti_plan *plan, struct tti_shape **out);

/* Make the shape that there is without a plan: one ring and one double tree, in which the ranks
 * of a group stay together and groups stand in the order of their first rank. Groups have any
 * numbers below n, else TUTTI_EINVAL. */
TUTTI_CHECKED tutti_status tti_shape_of_groups(const uint32_t *group_of, uint32_t n,
					       struct tti_shape **out);
/* Replace the groups, keep the rings and trees: for the sockets of one host. Errors as above. */
TUTTI_CHECKED tutti_status tti_shape_group(struct tti_shape *shape, const uint32_t *group_of);
/* The same, by the names in a plan of one host: ranks on one NUMA node have one name. */
TUTTI_CHECKED tutti_status tti_shape_group_by_name(struct tti_shape *shape,
						   const struct tti_plan *plan);
/* Make the shape of some ranks of another one: ranks[i] there is rank i here. Rings skip the ranks
 * that are left out; in trees their children move up to the nearest ancestor that is left. */
TUTTI_CHECKED tutti_status tti_shape_project(const struct tti_shape *of, const int *ranks,
					     uint32_t n, struct tti_shape **out);
/* Take one more reference, to be freed as well. From then on nobody changes the shape. */
struct tti_shape *tti_shape_hold(struct tti_shape *shape);
/* NULL ok. */
void tti_shape_free(struct tti_shape *shape);

#endif
