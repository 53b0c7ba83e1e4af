/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_COLOCATED_H
#define TTI_PLAN_COLOCATED_H

/* Members of a node that are co-located: they share one endpoint, as ranks do whose memory is
 * on one NUMA node. What goes between them loads no link, so the search is of one member for
 * each endpoint, and the others are put beside it afterwards: 64 ranks on two sockets are a
 * search of 2.
 *
 * Owner: the arena. Threads: any may read. */

#include "plan/search/search.h"

struct tti_colocated {
	uint32_t n;          /* members                                     */
	uint32_t nendpoints; /* in the order of their first members         */
	uint32_t *nodes;     /* of the graph, of each endpoint              */
	uint32_t *first;     /* members[first[e] .. first[e + 1]) share e  */
	uint32_t *members;   /* ascending for each endpoint                 */
};

/* nodes[n]: of the graph, of each member. */
TUTTI_CHECKED tutti_status tti_colocated_find(struct tti_arena *arena, const uint32_t *nodes,
					      uint32_t n, struct tti_colocated *out);

/* From channels over endpoints to channels over members: co-located members follow
 * each other in a ring; in a tree they are a binary tree below the first of them. */
TUTTI_CHECKED tutti_status tti_colocated_expand(const struct tti_colocated *colocated,
						struct tti_local *search);

#endif
