/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_TUNE_ANY_H
#define TTI_INSIGHT_TUNE_ANY_H

/* The model of times for any machine: of ranks in host memory as communicators have it
 * (plan/tune/tune.h), and of ranks on GPUs as NCCL's model has it, which no communicator asks. Threads: any. */

#include "plan/tune/tune.h"

struct tti_tune_any {
	struct tti_tune_machine host;
	bool gpu;                               /* ranks are on GPUs, and the rest is looked at */
	double pattern_gbps[TTI_PATTERN_COUNT]; /* 0: the plan has none */
	bool nvlink;                            /* all hops inside nodes */
	uint32_t ring_net_hops, tree_net_hops;  /* inside nodes, over NICs: the most in a ring,
						* and one below the other in a tree         */
	bool both_ways;                         /* as tti_plan_config                        */
};

struct tti_tune_any tti_tune_any_of_plan(const struct tti_plan *plan);
/* Cores and memory, which a plan does not have, from the graph of a node; of several nodes the
 * least. */
void tti_tune_any_add_node(struct tti_tune_any *machine, const struct tti_graph *graph);

/* As tti_tune_predict(). false: also if the plan has no such channels. */
bool tti_tune_any_predict(const struct tti_tune_constants *constants,
			  const struct tti_tune_any *machine, tutti_collective coll,
			  enum tti_tune_algo algo, size_t nbytes, struct tti_tune_time *out);

/* By the first rule that fits and that there is an algorithm for, else the least time;
 * of equal ones the first of TTI_TUNE_ALGO_MAP. false: none. */
bool tti_tune_choose(const struct tti_tune_table *table, const struct tti_tune_any *machine,
		     tutti_collective coll, size_t nbytes, enum tti_tune_algo *out);

#endif
