/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/tune/tune.h"

#include <string.h>

#include "plan/tune/tune_terms.h"
#include "util/mem.h"

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

/* -- The machine ------------------------------------------------------------------ */

struct tti_tune_machine tti_tune_machine_of_groups(uint32_t n, uint32_t nnodes, uint32_t most,
						   uint32_t least)
{
	return (struct tti_tune_machine){ .n = n, .nnodes = nnodes, .most = most, .least = least };
}

static bool all_nvlink(const struct tti_plan_pattern *pattern)
{
	for (uint32_t i = 0; i < pattern->nchannels; i++)
		if (pattern->channels[i].type_intra > TTI_PATH_NVB)
			return false;
	return true;
}

/* How many hops over NICs are below each other at most; parents come first. Without memory
 * for it: all there are. */
static uint32_t count_tree_hops(const struct tti_plan *plan, const struct tti_plan_channel *channel)
{
	uint32_t *depth = tti_calloc(plan->nranks, sizeof(*depth));
	uint32_t most = 0, all = 0;

	for (uint32_t i = 0; i < channel->nranks; i++) {
		const uint32_t rank = channel->ranks[i], parent = channel->parent[rank];
		const uint32_t here = !tti_plan_hop_is_direct(channel, rank);

		all += here;
		if (!depth)
			continue;
		depth[rank] = here + (parent == UINT32_MAX ? 0 : depth[parent]);
		most = depth[rank] > most ? depth[rank] : most;
	}
	if (!depth)
		most = all;
	tti_free(depth);
	return most;
}

static uint32_t count_net_hops(const struct tti_plan *plan, const struct tti_plan_channel *channel)
{
	uint32_t n = 0;

	if (!channel->ways)
		return 0;
	if (channel->parent)
		return count_tree_hops(plan, channel);
	for (uint32_t i = 0; i < channel->nranks; i++)
		n += !tti_plan_hop_is_direct(channel, channel->ranks[i]);
	return n;
}

/* The most in any channel of a pattern. */
static uint32_t most_net_hops(const struct tti_plan *plan, enum tti_pattern which)
{
	const struct tti_plan_pattern *pattern = tti_plan_pattern(plan, which);
	uint32_t most = 0;

	for (uint32_t i = 0; pattern && i < pattern->nchannels; i++) {
		const uint32_t n = count_net_hops(plan, &pattern->channels[i]);

		most = n > most ? n : most;
	}
	return most;
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
	for (uint32_t i = 0; i < plan->nranks; i++)
		machine.gpu |= strncmp(tti_plan_bare_name(plan->ranks[i].name), "GPU", 3) == 0;
	for (uint32_t i = 0; i < plan->npatterns; i++)
		machine.pattern_gbps[plan->patterns[i].pattern] = plan->patterns[i].total_gbps;
	machine.nvlink = ring && all_nvlink(ring);
	machine.ring_net_hops = most_net_hops(plan, TTI_PATTERN_RING);
	machine.tree_net_hops = most_net_hops(plan, TTI_PATTERN_TREE);
	/* A ring comes in by its NICs and leaves by them once. */
	machine.node_gbps = machine.pattern_gbps[TTI_PATTERN_RING];
	return machine;
}

/* -- Time ------------------------------------------------------------------------- */

bool tti_tune_predict(const struct tti_tune_constants *constants,
		      const struct tti_tune_machine *machine, tutti_collective coll,
		      enum tti_tune_algo algo, size_t nbytes, struct tti_tune_time *out)
{
	struct tti_tune_time time = { 0 };
	struct tti_tune_terms terms;

	if (machine->gpu) {
		if (!tti_tune_gpu_time(constants, machine, coll, algo, nbytes, &time))
			return false;
	} else {
		if (!tti_tune_host_terms(machine, coll, algo, &terms))
			return false;
		time = tti_tune_host_time(constants, machine, &terms, nbytes);
	}
	if (nbytes && time.us > time.latency_us)
		time.bw_gbps = (double)nbytes / (time.us - time.latency_us) / 1e3;
	*out = time;
	return true;
}
