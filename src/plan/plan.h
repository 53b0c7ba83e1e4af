/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_PLAN_H
#define TTI_PLAN_PLAN_H

/* The plan of a job: for each pattern the channels over all ranks of all nodes, with
 * what they carry, and how much more any others could. One merged topology gives one
 * plan, on whichever rank it is made; ranks compare its hash.
 *
 *     nodes ─ members and loads ─ search ─▶ channels of each kind of node
 *                                              │ connect
 *                                              ▼
 *     ring     node 0: a b c ─▶ node 1: d e f ─▶ ... ─▶ node 0
 *     tree     two trees over the nodes, each carries half; a tree inside each node
 *     heads    the heads of all nodes that have one number reduce among themselves
 *
 * Sealed: made by tti_plan_make() or tti_plan_read(), checked, never changed.
 * Owner: tti_plan_free(). It borrows nothing. Threads: any may read. */

#include "plan/search/search.h"

/* The place of a rank. Ranks are numbered as in the job. */
struct tti_plan_rank {
	uint32_t node;   /* of the job                                            */
	uint32_t member; /* its place among the ranks of that node, in order of rank */
	/* "GPU3", "HOST1": the full name in the topology, with its host where that has several */
	const char *name;
};

struct tti_plan_node {
	const char *name; /* of the host; "" if there is one                       */
	uint32_t kind;    /* nodes of one kind are wired alike and have like channels */
	uint32_t nranks;
	uint32_t *ranks; /* in order of rank                                      */
	uint32_t nnets;
	const char **nets; /* full names of the NICs in use                        */
};

/* The NICs by which a channel enters and leaves a node: indices into its nets, or -1. */
struct tti_plan_end {
	int32_t in, out;
};

struct tti_plan_channel {
	float bw_gbps;
	/* ring: all ranks in order. tree: parents before children, the root first.
	 * heads: the heads, one a node; the other ranks of a node hang on its head. */
	uint32_t *ranks;
	uint32_t nranks;
	/* tree: the parent of each rank, by rank; UINT32_MAX for the root (collnet-chain: of
	 * each node, as the network reduces). Else NULL. */
	uint32_t *parent;
	struct tti_plan_end *ends; /* by node; NULL for one node                   */
	/* For a plan of one node: the NICs by which the hop to each rank, from the rank before
	 * it or from its parent, leaves the node (out) and comes back (in); -1: it does not.
	 * NULL: no hop does. */
	struct tti_plan_end *ways; /* by rank                                      */
	uint8_t type_intra, type_inter;
};

struct tti_plan_pattern {
	enum tti_pattern pattern;
	enum tti_cross_nic cross_nic;
	double total_gbps, bound_gbps;
	double search_ms;
	/* Over several nodes trees come in pairs of equal bandwidth, 2k and 2k + 1: a node that is
	 * an inner node of one of them is a leaf of the other (but for one root). */
	struct tti_plan_channel *channels;
	uint32_t nchannels;
	const char *limit; /* what limits it, in words: "NIC mlx5_0 of node 0, 12.5 GB/s" */
};

struct tti_plan {
	struct tti_arena arena;
	uint32_t nranks, nnodes, nkinds;
	struct tti_plan_rank *ranks;
	struct tti_plan_node *nodes;
	struct tti_plan_pattern *patterns; /* those that there is a way for           */
	uint32_t npatterns;
	uint64_t hash; /* of all that ranks must agree on: neither times nor texts     */
};

/* The nodes of a job and the ranks on them. */
struct tti_job_node {
	const char *name;
	const struct tti_routes *routes; /* the same pointer for nodes of one kind      */
	const uint32_t *members;         /* endpoints of the graph, one for each of its ranks */
	const uint32_t *ranks;           /* ascending                                   */
	uint32_t nranks;
	const uint32_t *nets; /* NETs that may be used                             */
	uint32_t nnets;
	const uint64_t *rail; /* [nnets]: as of struct tti_nic_affinity_node; NULL: not known  */
	int32_t group;        /* leaf switch, -1: unknown: nodes of one group follow each other */
};
struct tti_plan_job {
	const struct tti_job_node *nodes;
	uint32_t nnodes, nranks;
};

struct tti_plan_config {
	uint32_t patterns; /* bits, 1 << enum tti_pattern; 0: all that make sense        */
	enum tti_cross_nic cross_nic;
	bool both_ways;
	/* For each pattern, over all nodes. 0: no minimum; a maximum of 32, or more if a node has
	 * more NICs, or if 32 carried over 1 % less. Mirrored rings, and trees over several nodes,
	 * come in pairs: at least one pair. */
	uint32_t min_channels, max_channels;
	double budget_ms; /* of each search; 0: its default          */
	/* By pattern: the channels in each node, if they are known, so that none are searched
	 * for; NULL for patterns that are not to be planned. All nodes must be of one kind.
	 * NULL: search. */
	struct tti_local *const *given;
};

/* TUTTI_EINVAL: a rank twice or missing, a node without ranks. Ranks that no way
 * connects: TUTTI_EPLAN, naming both. */
TUTTI_CHECKED tutti_status tti_plan_make(const struct tti_plan_job *job,
					 const struct tti_plan_config *config,
					 struct tti_plan **out);
void tti_plan_free(struct tti_plan *plan);

/* Whether trees of a pattern come in pairs: two trees over the nodes that carry half each, and are
 * alike inside the nodes. */
static inline bool tti_trees_in_pairs(enum tti_pattern pattern, uint32_t nnodes)
{
	return nnodes > 1 && (pattern == TTI_PATTERN_TREE || pattern == TTI_PATTERN_BALANCED_TREE ||
			      pattern == TTI_PATTERN_SPLIT_TREE);
}
static inline bool tti_plan_hop_is_direct(const struct tti_plan_channel *channel, uint32_t rank)
{
	return !channel->ways || channel->ways[rank].out < 0;
}
/* The name of a rank's endpoint without its host: "GPU3". */
const char *tti_plan_bare_name(const char *name);
/* The rank before ranks[place] in a ring, or its parent; UINT32_MAX: none. */
uint32_t tti_plan_before(const struct tti_plan_channel *channel, uint32_t place);

/* The bandwidths of all channels, added up. Each is rounded down; a difference to the bound that
 * comes from rounding alone is not counted. */
double tti_plan_total(const struct tti_plan_pattern *pattern);

const struct tti_plan_pattern *tti_plan_pattern(const struct tti_plan *plan,
						enum tti_pattern pattern);

/* The trees that carry most, which are the ones that run; NULL: there are none. */
const struct tti_plan_pattern *tti_plan_best_trees(const struct tti_plan *plan);

/* Each channel visits every rank once and is connected, ends are NICs that exist, trees
 * come in pairs as said, no total over its bound. TUTTI_EPLAN with the first breach. */
TUTTI_CHECKED tutti_status tti_plan_check(const struct tti_plan *plan);

/* As JSON, and back: {"nodes","ranks","patterns":{"ring":{"total_bw_gbps",
 * "bound_bw_gbps","search_ms","channels":[{"bw_gbps","ranks":[...],"nets":[...],
 * "over_nets":[[from,"out","in",to]...]}]}}}.
 * TUTTI_EINVAL names file, place and reason; what is read has passed tti_plan_check(). */
TUTTI_CHECKED tutti_status tti_plan_json(const struct tti_plan *plan, struct tti_strbuf *out);
TUTTI_CHECKED tutti_status tti_plan_read(const char *text, size_t nbytes, const char *source,
					 struct tti_plan **out);

/* Put the source of the plan before the last error text; returns the status. */
TUTTI_CHECKED tutti_status tti_plan_name_source(tutti_status status, const char *source);

/* A hash of what ranks must agree on. */
uint64_t tti_plan_hash(const struct tti_plan *plan);
/* The first difference of two plans in words; false: none that ranks must agree on. */
bool tti_plan_differ(const struct tti_plan *a, const struct tti_plan *b, char *why, size_t size);

#endif
