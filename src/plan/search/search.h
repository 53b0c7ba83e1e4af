/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_SEARCH_H
#define TTI_PLAN_SEARCH_H

/* The search inside one node: which channels carry most together, and how much more any others
 * could. A channel runs a pattern in one way (a ring in some order, a tree of some
 * shape, through some NICs) at some bandwidth; channels of unequal bandwidth share
 * every link. The best set of channels is a packing:
 *
 *     maximise the sum of bandwidths, no link over its capacity
 *
 * over all channels that exist: far too many to list, so they are generated (Dantzig
 * and Wolfe; Gilmore and Gomory, 1961). A linear program over the channels so far
 * gives each link a price. The cheapest channel at these prices (tour.h, arbor.h) is
 * added if it costs less than it brings; if it does not, the packing is optimal. If all that
 * is known is that no channel costs less than some c < 1, no packing exceeds
 * value / c: that is the bound, and the gap.
 *
 * Deterministic. Owner: tti_local_free(). Threads: any, each its own. */

#include "plan/search/loads.h"
#include "plan/search/pattern.h"
#include "plan/search/score.h"

/* The NICs that a ring may use. In a job of one node AUTO and ANY allow hops over NICs, also in
 * trees; the others do not, as such hops lead from one NIC to another. */
enum tti_cross_nic {
	TTI_CROSS_AUTO = -1, /* that with the best score (score.h)                 */
	TTI_CROSS_SAME = 0,  /* out where it came in: stays on its rail            */
	TTI_CROSS_ANY = 1,
	TTI_CROSS_MIRROR = 2, /* channels in pairs, each the other's way back: nodes that
			       * alternate between the two keep both on their rails  */
};

/* The most channels, unless the caller says how many. */
#define TTI_MOST_CHANNELS 32

struct tti_local_config {
	enum tti_pattern pattern;
	enum tti_cross_nic cross_nic;
	/* Trees load their links in both directions (reduce up, broadcast down), which is
	 * what they do; without, in one, as NCCL counts. */
	bool both_ways;
	uint32_t max_channels; /* 0: 32, or one for each NIC                   */
	bool in_pairs;         /* each becomes two over all nodes              */
	double budget_ms;      /* time of its thread to look for more; 0: 1000 */
	double known_bound;    /* GB/s: known from elsewhere, so none is proven; 0: none */
};

#define TTI_NO_NET UINT32_MAX

/* The NICs by which a hop leaves the node and comes back (detour.h); TTI_NO_NET: it does not. */
struct tti_way {
	uint32_t out, in; /* of members->nets */
};

struct tti_channel {
	float bw_gbps;
	uint32_t *order;  /* all members: of a ring in order, of a tree parents before their
			   * children; of a head, the head and then the others        */
	uint32_t *parent; /* [member], trees and heads; the root's is UINT32_MAX; else NULL */
	/* [member]: of the hop from the one before it, or its parent; NULL: all direct. */
	struct tti_way *way;
	uint32_t net_in, net_out; /* of members->nets, TTI_NO_NET                        */
	uint32_t second;          /* of balanced and split trees: the other member at the NIC */
	uint8_t type_intra, type_inter; /* worst path type among its hops; to its NICs    */
};

struct tti_local {
	struct tti_arena arena;
	enum tti_pattern pattern;
	enum tti_cross_nic cross_nic; /* never AUTO; alone: ANY if hops go over NICs  */
	struct tti_channel *channels; /* most bandwidth first                          */
	uint32_t nchannels;
	double total_gbps; /* sum over channels                                       */
	double bound_gbps; /* no set of channels of this pattern carries more         */
	double reach_gbps; /* what was found before the score was looked at           */
	double *price;     /* of each row of the loads: what a GB/s more would bring */
	uint32_t nrows;
	uint32_t ncolumns; /* generated                                               */
	double ms;
};

/* TUTTI_OK with 0 channels: there is no way (a member that reaches no other, no NIC
 * where `nets` asks for one); then the bound is 0 too. */
TUTTI_CHECKED tutti_status tti_local_search(const struct tti_loads *loads,
					    const struct tti_local_config *config,
					    struct tti_local **out);
void tti_local_free(struct tti_local *search);

#endif
