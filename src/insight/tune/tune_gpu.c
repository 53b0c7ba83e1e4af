/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/tune/tune_any.h"

#include <math.h>
#include <string.h>

#include "util/mem.h"

/* Latency and bandwidth as NCCL's model has them for protocol Simple, over the channels of
 * this plan. */

struct figures {
	double latency_us, gbps; /* of the vector; 0: there is no such algorithm */
};

struct setting {
	const struct tti_tune_constants *c;
	const struct tti_tune_any *machine;
	double n, nodes, per_node;
	double rounds; /* over nodes, log2 */
};

static double pattern(const struct setting *s, enum tti_pattern which)
{
	return s->machine->pattern_gbps[which];
}

static bool goes_round(tutti_collective coll)
{
	return coll == TUTTI_ALL_REDUCE || coll == TUTTI_BROADCAST || coll == TUTTI_REDUCE ||
	       coll == TUTTI_ALL_GATHER || coll == TUTTI_REDUCE_SCATTER;
}

static struct figures ring(const struct setting *s, tutti_collective coll)
{
	const bool rooted = coll == TUTTI_BROADCAST || coll == TUTTI_REDUCE;
	const double passes = coll == TUTTI_ALL_REDUCE ? 2 : 1;
	const double hop = s->machine->nvlink ? s->c->gpu_nvlink_us : s->c->gpu_pci_us;
	const double hops = passes * (rooted ? s->n : s->n - 1);
	const double far = passes * (s->nodes - 1 + s->machine->ring_net_hops);
	/* One rank alone copies; of two or more it is at least half. */
	const double part = rooted ? 1 : fmax(0.5, passes * (s->n - 1) / s->n);

	if (!goes_round(coll))
		return (struct figures){ 0 };
	return (struct figures){
		.latency_us =
			s->c->gpu_base_us + fmax(0, hops - far) * hop + far * s->c->gpu_net_us,
		.gbps = pattern(s, TTI_PATTERN_RING) / part,
	};
}

/* Everything goes up and down. Over many nodes each passes on both, which
 * takes its NICs twice; so do links that trees use in opposite directions, unless the
 * search has counted that. */
static double tree_share(const struct setting *s)
{
	return s->nodes <= 2 && s->machine->both_ways ? 1 : 0.5;
}

static struct figures tree(const struct setting *s, tutti_collective coll)
{
	const double hop = s->machine->nvlink ? s->c->gpu_nvlink_tree_us : s->c->gpu_pci_tree_us;
	double most = pattern(s, TTI_PATTERN_TREE);

	most = fmax(most, pattern(s, TTI_PATTERN_BALANCED_TREE));
	most = fmax(most, pattern(s, TTI_PATTERN_SPLIT_TREE));
	if (coll != TUTTI_ALL_REDUCE)
		return (struct figures){ 0 };
	return (struct figures){
		.latency_us = s->c->gpu_base_us +
			      2 * ((s->per_node - 1 - s->machine->tree_net_hops) * hop +
				   (s->rounds + s->machine->tree_net_hops) * s->c->gpu_net_us),
		.gbps = most * tree_share(s),
	};
}

/* The heads' bandwidth has both halves of an all_reduce in it already; two nodes are a
 * tree of one edge, which carries each half once. */
static struct figures nvls(const struct setting *s, tutti_collective coll)
{
	const double far = s->nodes > 2 ? 0.5 : 1;
	const bool one_half = coll == TUTTI_ALL_GATHER || coll == TUTTI_REDUCE_SCATTER;

	if (coll != TUTTI_ALL_REDUCE && !(one_half && s->nodes <= 1))
		return (struct figures){ 0 };
	return (struct figures){
		.latency_us = s->c->gpu_nvls_us + 2 * s->rounds * s->c->gpu_nvls_net_us,
		.gbps = pattern(s, TTI_PATTERN_NVLS) * s->c->gpu_nvls_efficiency * far,
	};
}

static struct figures collnet(const struct setting *s, tutti_collective coll,
			      enum tti_pattern which, double depth)
{
	const double hop = s->machine->nvlink ? s->c->gpu_nvlink_us : s->c->gpu_pci_us;

	if (coll != TUTTI_ALL_REDUCE || s->nodes <= 1)
		return (struct figures){ 0 };
	return (struct figures){
		.latency_us = s->c->gpu_collnet_us + 2 * depth * hop,
		.gbps = pattern(s, which) * (s->machine->both_ways ? 1 : 0.5),
	};
}

static struct figures figures_of(const struct setting *s, tutti_collective coll,
				 enum tti_tune_algo algo)
{
	if (algo == TTI_TUNE_RING)
		return ring(s, coll);
	if (algo == TTI_TUNE_TREE)
		return tree(s, coll);
	if (algo == TTI_TUNE_NVLS)
		return nvls(s, coll);
	if (algo == TTI_TUNE_COLLNET_CHAIN)
		return collnet(s, coll, TTI_PATTERN_COLLNET_CHAIN, s->per_node - 1);
	if (algo == TTI_TUNE_COLLNET_DIRECT)
		return collnet(s, coll, TTI_PATTERN_COLLNET_DIRECT, s->per_node > 1);
	return (struct figures){ 0 };
}

static bool gpu_time(const struct tti_tune_constants *constants, const struct tti_tune_any *machine,
		     tutti_collective coll, enum tti_tune_algo algo, size_t nbytes,
		     struct tti_tune_time *out)
{
	const struct setting setting = { .c = constants,
					 .machine = machine,
					 .n = machine->host.n,
					 .nodes = machine->host.nnodes,
					 .per_node = machine->host.most,
					 .rounds = ceil(log2(machine->host.nnodes)) };
	const struct figures figures = figures_of(&setting, coll, algo);

	if (figures.gbps <= 0)
		return false;
	out->latency_us = figures.latency_us;
	out->us = figures.latency_us + (double)nbytes / (figures.gbps * 1e3);
	return true;
}

bool tti_tune_any_predict(const struct tti_tune_constants *constants,
			  const struct tti_tune_any *machine, tutti_collective coll,
			  enum tti_tune_algo algo, size_t nbytes, struct tti_tune_time *out)
{
	struct tti_tune_time time = { 0 };

	if (!machine->gpu)
		return tti_tune_predict(constants, &machine->host, coll, algo, nbytes, out);
	if (!gpu_time(constants, machine, coll, algo, nbytes, &time))
		return false;
	if (nbytes && time.us > time.latency_us)
		time.bw_gbps = (double)nbytes / (time.us - time.latency_us) / 1e3;
	*out = time;
	return true;
}

/* -- The machine ------------------------------------------------------------------ */

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

struct tti_tune_any tti_tune_any_of_plan(const struct tti_plan *plan)
{
	const struct tti_plan_pattern *ring = tti_plan_pattern(plan, TTI_PATTERN_RING);
	struct tti_tune_any machine = { .host = tti_tune_machine_of_plan(plan) };

	for (uint32_t i = 0; i < plan->nranks; i++)
		machine.gpu |= strncmp(tti_plan_bare_name(plan->ranks[i].name), "GPU", 3) == 0;
	for (uint32_t i = 0; i < plan->npatterns; i++)
		machine.pattern_gbps[plan->patterns[i].pattern] = plan->patterns[i].total_gbps;
	machine.nvlink = ring && all_nvlink(ring);
	machine.ring_net_hops = most_net_hops(plan, TTI_PATTERN_RING);
	machine.tree_net_hops = most_net_hops(plan, TTI_PATTERN_TREE);
	return machine;
}
