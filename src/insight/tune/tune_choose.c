/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/tune/tune_any.h"

#include "topo/detect/cpuset.h"

/* CPUs of a mask; 0: it does not say. */
static double count_cpus(const char *mask)
{
	struct tti_cpuset set = { 0 };
	int count = 0;

	if (tti_cpuset_parse_map(&set, mask))
		for (size_t i = 0; i < set.words.n; i++)
			count += __builtin_popcount(set.words.at[i]);
	tti_cpuset_release(&set);
	return count;
}

static void lower(double *value, double other)
{
	if (*value <= 0 || (other > 0 && other < *value))
		*value = other;
}

void tti_tune_any_add_node(struct tti_tune_any *machine, const struct tti_graph *graph)
{
	double cores = 0, memory = 0;

	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_CPU]; i++) {
		const struct tti_node *cpu = &graph->nodes[graph->by_type[TTI_NODE_CPU][i]];

		cores += count_cpus(cpu->cpu.affinity);
		memory += cpu->cpu.mem_gbps;
	}
	lower(&machine->host.cores, cores);
	lower(&machine->host.node_memory_gbps, memory);
}

/* Algorithms that need a network that reduces are shown, but never chosen. */
static bool may_choose(enum tti_tune_algo algo)
{
	return algo != TTI_TUNE_COLLNET_CHAIN && algo != TTI_TUNE_COLLNET_DIRECT;
}

bool tti_tune_choose(const struct tti_tune_table *table, const struct tti_tune_any *machine,
		     tutti_collective coll, size_t nbytes, enum tti_tune_algo *out)
{
	struct tti_tune_time time;
	double best = 0;
	bool found = false;

	for (uint32_t i = 0; i < table->nrules; i++) {
		const struct tti_tune_rule *rule = &table->rules[i];

		if (tti_tune_rule_fits(rule, coll, nbytes, machine->host.n, machine->host.nnodes,
				       TTI_REACH_SLOTS) &&
		    tti_tune_any_predict(&table->constants, machine, coll, rule->algo, nbytes,
					 &time)) {
			*out = rule->algo;
			return true;
		}
	}
	for (int i = 0; i < TTI_TUNE_ALGO_COUNT; i++) {
		const enum tti_tune_algo algo = (enum tti_tune_algo)i;

		if (!may_choose(algo) ||
		    !tti_tune_any_predict(&table->constants, machine, coll, algo, nbytes, &time) ||
		    (found && time.us >= best))
			continue;
		found = true;
		best = time.us;
		*out = algo;
	}
	return found;
}
