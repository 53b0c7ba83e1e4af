/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_HANDOFF_WORK_H
#define TTI_PLAN_HANDOFF_WORK_H

/* A handoff while it is planned:
 *
 *     handoff_nodes.c  which nodes take part, which ranks sit beside which NICs
 *     handoff_legs.c   the ways that there may be between them, of a whole vector
 *     handoff_parts.c  and of parts
 *     handoff_pack.c   how much of each, and the trees inside nodes
 *     handoff_bound.c  what no method exceeds
 *     handoff.c        all of it
 *
 * Owner: the arena, but for loads. Threads: one plan, one thread. */

#include "plan/handoff/handoff.h"
#include "util/vec.h"

#define TTI_HAND_NONE UINT32_MAX

/* A rank, and the NIC that it sends through or gets from. */
struct tti_hand_gateway {
	uint32_t rank, net;
};

/* The gateways of one direction, those of a NIC together, and what each NIC brings. */
struct tti_hand_gateways {
	struct tti_hand_gateway *at;
	uint32_t *first; /* [nnets + 1] */
	double *gbps;    /* [nnets]     */
};

/* A node that takes part. */
struct tti_hand_node {
	uint32_t node;
	const struct tti_job_node *job;
	uint32_t *from, *to; /* ranks on it, in the order of their sides */
	uint32_t nfrom, nto;
	/* The endpoints of those ranks, each once. */
	uint32_t nends;
	uint32_t *ends;          /* of the graph                            */
	uint32_t *ranks;         /* who stands for it                       */
	bool *wants;             /* a rank of `to` lives there              */
	struct tti_loads *loads; /* its members are ends[]; that of an earlier node alike, or own */
	bool owns_loads;
	uint32_t first_row;
	/* out: by which sources send (receivers, where there are none); in: by which receivers get;
	 * relay: by which receivers pass on. */
	struct tti_hand_gateways out, in, relay;
};

/* One way, as a part of an option, whose ways carry in proportion to their weights. */
struct tti_hand_atom {
	uint32_t from, to, net_out, net_in, part;
	double weight;
	bool straight;
	bool spreads; /* a tree begins where it lands */
};
struct tti_hand_option {
	uint32_t first, n; /* atoms */
	double gbps;       /* what its NICs bring */
};
/* All that comes into one node, by any mixture of its options. */
struct tti_hand_leg {
	uint32_t to;       /* of nodes[]      */
	uint32_t first, n; /* options         */
	uint32_t depth;    /* in its chain, 0 inside a node that has the data */
};

struct tti_hand_work {
	struct tti_arena arena;
	const struct tti_handoff_job *handoff;
	struct tti_hand_node *nodes;
	uint32_t nnodes;
	uint32_t *node_of, *place_of; /* of each rank: of nodes[] or NONE; among its node's ranks */
	uint32_t *end_of;             /* of each rank: of ends[] of its node, or NONE         */
	bool *is_from, *is_to;
	uint32_t nrows;
	TTI_VEC(struct tti_hand_atom) atoms;
	TTI_VEC(struct tti_hand_option) options;
	TTI_VEC(struct tti_hand_leg) legs;
};

/* Find the nodes of a work that is zeroed but for its handoff; tti_hand_release(), also if it
 * fails. */
TUTTI_CHECKED tutti_status tti_hand_find_nodes(struct tti_hand_work *work);
void tti_hand_release(struct tti_hand_work *work);
/* The legs of a whole vector, and where a side is sharded. */
TUTTI_CHECKED tutti_status tti_hand_add_chains(struct tti_hand_work *work);
TUTTI_CHECKED tutti_status tti_hand_add_parts(struct tti_hand_work *work);
/* Ways, legs, trees, gbps, best_gbps and limit of a plan. */
TUTTI_CHECKED tutti_status tti_hand_pack(struct tti_hand_work *work, struct tti_handoff_plan *plan);
/* bound_gbps and bound. */
TUTTI_CHECKED tutti_status tti_hand_bound(struct tti_hand_work *work,
					  struct tti_handoff_plan *plan);

TUTTI_CHECKED tutti_status tti_hand_no_memory(void);

static inline const char *tti_hand_node_name(const struct tti_hand_node *node)
{
	return node->job->name ? node->job->name : "";
}
static inline struct tti_hand_node *tti_hand_node_of(const struct tti_hand_work *work,
						     uint32_t rank)
{
	return &work->nodes[work->node_of[rank]];
}
/* The hops of an atom: out of a node, into one; inside one node. */
const struct tti_hop *tti_hand_hop_out(const struct tti_hand_work *work, uint32_t rank,
				       uint32_t net);
const struct tti_hop *tti_hand_hop_in(const struct tti_hand_work *work, uint32_t rank,
				      uint32_t net);
const struct tti_hop *tti_hand_hop(const struct tti_hand_work *work, uint32_t from, uint32_t to);

/* -- handoff_legs.c: what legs are made of. false: out of memory ------------------- */

/* Add a leg, an option to the last leg, a way to the last option. tti_hand_end_leg() drops a leg
 * that has no ways. */
bool tti_hand_begin_leg(struct tti_hand_work *work, uint32_t to, uint32_t depth);
bool tti_hand_begin_option(struct tti_hand_work *work, double gbps);
bool tti_hand_add_atom(struct tti_hand_work *work, const struct tti_hand_atom *atom);
void tti_hand_end_leg(struct tti_hand_work *work);
/* Whether two NICs are on one rail, as the job knows it; if it does not, whether they have one
 * name; if only one node has that name, whether they have one place. */
bool tti_hand_is_straight(const struct tti_hand_node *a, uint32_t net,
			  const struct tti_hand_node *b, uint32_t other);
/* List the nodes that receive (`all`: also those with sources), first those that can pass on most;
 * returns how many. */
uint32_t tti_hand_list_remote(const struct tti_hand_work *work, bool all, uint32_t *list);

#endif
