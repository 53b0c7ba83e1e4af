/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/tune/tune.h"

#include <string.h>

#include "plan/tune/tune_terms.h"

static const char *const names[] = {
#define X(name, text) [TTI_TUNE_##name] = (text),
	TTI_TUNE_ALGO_MAP(X)
#undef X
};

const char *tti_tune_algo_name(enum tti_tune_algo algo)
{
	return names[algo];
}

bool tti_tune_algo_find(const char *name, enum tti_tune_algo *out)
{
	for (int i = 0; i < TTI_TUNE_ALGO_COUNT; i++)
		if (strcmp(names[i], name) == 0) {
			*out = (enum tti_tune_algo)i;
			return true;
		}
	return false;
}

/* -- The machine ------------------------------------------------------------------- */

struct tti_tune_machine tti_tune_machine_of_groups(uint32_t n, uint32_t nnodes, uint32_t most,
						   uint32_t least)
{
	return (struct tti_tune_machine){ .n = n, .nnodes = nnodes, .most = most, .least = least };
}

struct tti_tune_machine tti_tune_machine_of_plan(const struct tti_plan *plan)
{
	const struct tti_plan_pattern *ring = tti_plan_pattern(plan, TTI_PATTERN_RING);
	struct tti_tune_machine machine = { .n = plan->nranks,
					    .nnodes = plan->nnodes,
					    .least = plan->nranks };

	for (uint32_t i = 0; i < plan->nnodes; i++) {
		const uint32_t nranks = plan->nodes[i].nranks;

		machine.most = nranks > machine.most ? nranks : machine.most;
		machine.least = nranks < machine.least ? nranks : machine.least;
	}
	/* A ring comes in by its NICs and leaves by them once. */
	machine.node_gbps = ring ? ring->total_gbps : 0;
	return machine;
}

/* -- Time -------------------------------------------------------------------------- */

bool tti_tune_predict(const struct tti_tune_constants *constants,
		      const struct tti_tune_machine *machine, tutti_collective coll,
		      enum tti_tune_algo algo, size_t nbytes, struct tti_tune_time *out)
{
	struct tti_tune_terms terms;

	if (!tti_tune_host_terms(machine, coll, algo, &terms))
		return false;
	*out = tti_tune_host_time(constants, machine, &terms, nbytes);
	if (nbytes && out->us > out->latency_us)
		out->bw_gbps = (double)nbytes / (out->us - out->latency_us) / 1e3;
	return true;
}
