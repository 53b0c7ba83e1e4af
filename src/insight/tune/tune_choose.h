/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_TUNE_CHOOSE_H
#define TTI_INSIGHT_TUNE_CHOOSE_H

/* The choice by the model alone, for ranks on GPUs that no program serves yet, and for machines that
 * are read from a file. Threads: any. */

#include "plan/tune/tune.h"

/* Cores and memory, which a plan does not have, from the graph of a node; of several nodes the
 * least. */
void tti_tune_machine_add_node(struct tti_tune_machine *machine, const struct tti_graph *graph);

/* By the first rule that fits and that there is an algorithm for, else the least time;
 * of equal ones the first of TTI_TUNE_ALGO_MAP. false: none. */
bool tti_tune_choose(const struct tti_tune_table *table, const struct tti_tune_machine *machine,
		     tutti_collective coll, size_t nbytes, enum tti_tune_algo *out);

#endif
