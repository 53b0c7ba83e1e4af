/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_HANDOFF_PACK_H
#define TTI_PLAN_HANDOFF_PACK_H

/* The packing of a handoff while it is made: handoff_pack.c finds it, handoff_shares.c turns
 * it into the shares of a plan.
 *
 * Owner: tti_hand_pack(). Threads: one. */

#include "plan/handoff/handoff_work.h"

struct tti_hand_shape {
	uint32_t node, root; /* ends of the node                                     */
	uint32_t *parent;    /* [nends]; of the root and of whoever wants nothing NONE */
};

struct tti_hand_column {
	uint32_t *option; /* of each leg                                      */
	uint32_t *tree;   /* of each way of these options that spreads, in order */
};

struct tti_hand_packing {
	struct tti_hand_work *work;
	struct tti_lp *lp;
	double *capacity;
	TTI_VEC(struct tti_hand_shape) shapes;
	TTI_VEC(struct tti_hand_column) columns;
	TTI_VEC(struct tti_load) scratch;
	TTI_VEC(uint32_t) trees; /* of the column at hand */
	uint32_t *option;
	double *price;
	double *cost;        /* of hops inside the node at hand: [from * nends + to]      */
	uint32_t *root_tree; /* of the node at hand, of each end; NONE: not asked for  */
	double *root_cost;
	double bound;
	int64_t until_ns; /* of the thread's clock */
};

/* Turn the columns, with their weights, into ways, legs and trees of a plan; `value` is the sum of
 * the weights. */
TUTTI_CHECKED tutti_status tti_hand_take(struct tti_hand_packing *p, double value,
					 struct tti_handoff_plan *plan);
/* Put the link whose price counts most into words. */
TUTTI_CHECKED tutti_status tti_hand_say_limit(const struct tti_hand_packing *p,
					      struct tti_handoff_plan *plan);

#endif
