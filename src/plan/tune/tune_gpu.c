/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/tune/tune_terms.h"

#include <math.h>

/* Latency and bandwidth as NCCL's model has them for protocol Simple, over the channels of
 * this plan. */

struct figures {
	double latency_us, gbps; /* of the vector; 0: there is no such algorithm */
};

struct setting {
	const struct tti_tune_constants *c;
	const struct tti_tune_machine *machine;
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

bool tti_tune_gpu_time(const struct tti_tune_constants *constants,
		       const struct tti_tune_machine *machine, tutti_collective coll,
		       enum tti_tune_algo algo, size_t nbytes, struct tti_tune_time *out)
{
	const struct setting setting = { .c = constants,
					 .machine = machine,
					 .n = machine->n,
					 .nodes = machine->nnodes,
					 .per_node = machine->most,
					 .rounds = ceil(log2(machine->nnodes)) };
	const struct figures figures = figures_of(&setting, coll, algo);

	if (figures.gbps <= 0)
		return false;
	out->latency_us = figures.latency_us;
	out->us = figures.latency_us + (double)nbytes / (figures.gbps * 1e3);
	return true;
}
