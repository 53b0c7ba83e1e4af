/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/plan.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"
#include "util/hash.h"
#include "util/mem.h"

/* GB/s that a channel loses at most to its steps of 10 KB/s and to a float. */
#define ROUNDED 2e-5

void tti_plan_free(struct tti_plan *plan)
{
	if (!plan)
		return;
	tti_arena_release(&plan->arena);
	tti_free(plan);
}

double tti_plan_total(const struct tti_plan_pattern *pattern)
{
	double sum = 0;

	for (uint32_t i = 0; i < pattern->nchannels; i++)
		sum += (double)pattern->channels[i].bw_gbps;
	if (sum < pattern->bound_gbps && pattern->bound_gbps - sum <= ROUNDED * pattern->nchannels)
		return pattern->bound_gbps;
	return sum;
}

const struct tti_plan_pattern *tti_plan_pattern(const struct tti_plan *plan,
						enum tti_pattern pattern)
{
	for (uint32_t i = 0; i < plan->npatterns; i++)
		if (plan->patterns[i].pattern == pattern)
			return &plan->patterns[i];
	return NULL;
}

const char *tti_plan_bare_name(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}

uint32_t tti_plan_before(const struct tti_plan_channel *channel, uint32_t place)
{
	if (channel->parent)
		return channel->parent[channel->ranks[place]];
	if (channel->nranks == 1)
		return UINT32_MAX;
	return channel->ranks[(place + channel->nranks - 1) % channel->nranks];
}

const struct tti_plan_pattern *tti_plan_best_trees(const struct tti_plan *plan)
{
	static const enum tti_pattern kinds[] = { TTI_PATTERN_TREE, TTI_PATTERN_BALANCED_TREE,
						  TTI_PATTERN_SPLIT_TREE };
	const struct tti_plan_pattern *best = NULL;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const struct tti_plan_pattern *pattern = tti_plan_pattern(plan, kinds[i]);

		if (pattern && pattern->nchannels &&
		    (!best || pattern->total_gbps > best->total_gbps))
			best = pattern;
	}
	return best;
}

/* -- What ranks must agree on ------------------------------------------------------ */

static uint64_t mix_list(uint64_t hash, const uint32_t *list, uint32_t n)
{
	hash = tti_hash_combine(hash, n);
	for (uint32_t i = 0; i < n; i++)
		hash = tti_hash_combine(hash, list[i]);
	return hash;
}

static uint64_t mix_ends(uint64_t hash, const struct tti_plan_end *ends, uint32_t n)
{
	for (uint32_t i = 0; ends && i < n; i++) {
		hash = tti_hash_combine(hash, (uint64_t)(int64_t)ends[i].in);
		hash = tti_hash_combine(hash, (uint64_t)(int64_t)ends[i].out);
	}
	return hash;
}

/* Bandwidths are multiples of 10 KB/s. */
static uint64_t mix_channel(uint64_t hash, const struct tti_plan *plan,
			    const struct tti_plan_channel *channel)
{
	hash = tti_hash_combine(hash, (uint64_t)llround((double)channel->bw_gbps * 1e5));
	hash = mix_list(hash, channel->ranks, channel->nranks);
	if (channel->parent)
		hash = mix_list(hash, channel->parent, plan->nranks);
	hash = mix_ends(hash, channel->ends, plan->nnodes);
	return mix_ends(hash, channel->ways, plan->nranks);
}

uint64_t tti_plan_hash(const struct tti_plan *plan)
{
	uint64_t hash = tti_hash_combine(plan->nranks, plan->nnodes);

	for (uint32_t rank = 0; rank < plan->nranks; rank++)
		hash = tti_hash_combine(hash, plan->ranks[rank].node);
	for (uint32_t i = 0; i < plan->npatterns; i++) {
		const struct tti_plan_pattern *pattern = &plan->patterns[i];

		hash = tti_hash_combine(hash, (uint64_t)pattern->pattern);
		for (uint32_t k = 0; k < pattern->nchannels; k++)
			hash = mix_channel(hash, plan, &pattern->channels[k]);
	}
	return hash;
}

static bool differ_ways(const struct tti_plan *plan, const struct tti_plan_channel *a,
			const struct tti_plan_channel *b, char *why, size_t size)
{
	static const struct tti_plan_end direct = { -1, -1 };

	for (uint32_t rank = 0; (a->ways || b->ways) && rank < plan->nranks; rank++) {
		const struct tti_plan_end x = a->ways ? a->ways[rank] : direct,
					  y = b->ways ? b->ways[rank] : direct;

		if (x.in != y.in || x.out != y.out) {
			(void)snprintf(why, size, "another way to rank %u", rank);
			return true;
		}
	}
	return false;
}

static bool differ_channel(const struct tti_plan *plan, const struct tti_plan_channel *a,
			   const struct tti_plan_channel *b, char *why, size_t size)
{
	if (llround((double)a->bw_gbps * 1e5) != llround((double)b->bw_gbps * 1e5)) {
		(void)snprintf(why, size, "%.3f against %.3f GB/s", (double)a->bw_gbps,
			       (double)b->bw_gbps);
		return true;
	}
	for (uint32_t i = 0; i < a->nranks && i < b->nranks; i++)
		if (a->ranks[i] != b->ranks[i]) {
			(void)snprintf(why, size, "rank %u against rank %u at place %u",
				       a->ranks[i], b->ranks[i], i);
			return true;
		}
	if (a->nranks != b->nranks || !a->parent != !b->parent || !a->ends != !b->ends) {
		(void)snprintf(why, size, "of another shape");
		return true;
	}
	for (uint32_t rank = 0; a->parent && rank < plan->nranks; rank++)
		if (a->parent[rank] != b->parent[rank]) {
			(void)snprintf(why, size, "rank %u hangs on %d against %d", rank,
				       (int)a->parent[rank], (int)b->parent[rank]);
			return true;
		}
	for (uint32_t node = 0; a->ends && node < plan->nnodes; node++)
		if (a->ends[node].in != b->ends[node].in ||
		    a->ends[node].out != b->ends[node].out) {
			(void)snprintf(why, size, "other NICs at node %u", node);
			return true;
		}
	return differ_ways(plan, a, b, why, size);
}

static bool differ_pattern(const struct tti_plan *plan, const struct tti_plan_pattern *a,
			   const struct tti_plan_pattern *b, char *why, size_t size)
{
	char inner[128];

	if (a->pattern != b->pattern) {
		(void)snprintf(why, size, "%s against %s", tti_pattern_name(a->pattern),
			       tti_pattern_name(b->pattern));
		return true;
	}
	for (uint32_t i = 0; i < a->nchannels && i < b->nchannels; i++)
		if (differ_channel(plan, &a->channels[i], &b->channels[i], inner, sizeof(inner))) {
			(void)snprintf(why, size, "%s channel %u: %s", tti_pattern_name(a->pattern),
				       i, inner);
			return true;
		}
	if (a->nchannels != b->nchannels)
		(void)snprintf(why, size, "%s: %u against %u channels",
			       tti_pattern_name(a->pattern), a->nchannels, b->nchannels);
	return a->nchannels != b->nchannels;
}

bool tti_plan_differ(const struct tti_plan *a, const struct tti_plan *b, char *why, size_t size)
{
	if (a->nranks != b->nranks || a->nnodes != b->nnodes) {
		(void)snprintf(why, size, "%u ranks on %u nodes against %u on %u", a->nranks,
			       a->nnodes, b->nranks, b->nnodes);
		return true;
	}
	for (uint32_t rank = 0; rank < a->nranks; rank++)
		if (a->ranks[rank].node != b->ranks[rank].node) {
			(void)snprintf(why, size, "rank %u on node %u against %u", rank,
				       a->ranks[rank].node, b->ranks[rank].node);
			return true;
		}
	for (uint32_t i = 0; i < a->npatterns && i < b->npatterns; i++)
		if (differ_pattern(a, &a->patterns[i], &b->patterns[i], why, size))
			return true;
	if (a->npatterns != b->npatterns)
		(void)snprintf(why, size, "%u against %u patterns", a->npatterns, b->npatterns);
	return a->npatterns != b->npatterns;
}
