/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_WIRES_H
#define TTI_PLAN_WIRES_H

/* By which NICs a rank talks to ranks of other nodes, as the channels of a plan say: a message of a
 * channel leaves a node by the NIC that is `out` there and enters the next by the one that is
 * `in`. Of each pair of ranks that follow each other in a ring, those of the rings; of other
 * pairs, those of the trees in which one is the other's parent. Rings come first as long vectors go
 * by them, and a link cannot tell whose message it carries. Where the plan has nothing for one
 * direction, it is the other one's way back. Pairs that no such channel connects have none.
 *
 * A pure function of the plan: the same on all ranks. Threads: any. */

#include "plan/plan.h"

struct tti_wire {
	uint32_t peer;
	uint32_t near, far; /* NICs, as indices into the nets of the rank's node and the peer's */
	/* What the channels carry over them, to the peer and from it. */
	double out_gbps, in_gbps;
};

struct tti_wires {
	struct tti_wire *at; /* by peer, then by NICs; each once */
	uint32_t n;
};

/* Of one rank; tti_wires_release(). */
TUTTI_CHECKED tutti_status tti_wires_of_plan(const struct tti_plan *plan, uint32_t rank,
					     struct tti_wires *out);
void tti_wires_release(struct tti_wires *wires);

#endif
