/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_NIC_PAIRS_H
#define TTI_PLAN_NIC_PAIRS_H

/* The pairs of NICs by which a rank talks to ranks of other nodes, as the channels of a plan
 * say: a message of a channel leaves a node by the NIC that is `out` there, and enters the
 * next node by the NIC that is `in`. Two ranks that follow each other in a ring use the NICs
 * of the rings; other two ranks use those of the trees in which one is the other's parent.
 * Rings come first since long vectors go by them, and a link cannot tell whose message it
 * carries. Where the plan has nothing for one direction, that direction takes the NICs of the
 * other. Ranks that no such channel connects have no pairs.
 *
 * A pure function of the plan: the same on all ranks. Threads: any. */

#include "plan/plan.h"

struct tti_nic_pair {
	uint32_t peer;
	uint32_t near, far; /* NICs, as indices into the nets of the rank's node and the peer's */
	/* What the channels carry over them, to the peer and from it. */
	double out_gbps, in_gbps;
};

struct tti_nic_pairs {
	struct tti_nic_pair *at; /* by peer, then by NICs; each once */
	uint32_t n;
};

/* Of one rank; tti_nic_pairs_release(). */
TUTTI_CHECKED tutti_status tti_nic_pairs_of_plan(const struct tti_plan *plan, uint32_t rank,
						 struct tti_nic_pairs *out);
void tti_nic_pairs_release(struct tti_nic_pairs *pairs);

#endif
