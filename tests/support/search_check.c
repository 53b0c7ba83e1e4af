/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/search_check.h"

#include <math.h>

#include "plan/search/detour.h"
#include "util/error.h"
#include "util/mem.h"

/* Adds the load up from the channels alone, hop by hop, without the code that made
 * them. */

struct sum {
	const struct tti_loads *loads;
	const struct tti_local *search;
	bool both_ways;
	double *used; /* of each row */
	bool *seen;
};

static bool use(struct sum *sum, const struct tti_hop *hop, double gbps)
{
	for (uint32_t i = 0; i < hop->n; i++) {
		const struct tti_load *load = &sum->loads->loads[hop->first + i];

		sum->used[load->row] += gbps * (double)load->amount;
	}
	return hop->bw_gbps > 0;
}

static bool use_both(struct sum *sum, const struct tti_hop *there, const struct tti_hop *back,
		     double gbps)
{
	return use(sum, there, gbps) && (!sum->both_ways || use(sum, back, gbps));
}

static bool visits_all(struct sum *sum, const struct tti_channel *channel)
{
	const uint32_t n = sum->loads->n;

	for (uint32_t i = 0; i < n; i++)
		sum->seen[i] = false;
	for (uint32_t i = 0; i < n; i++) {
		if (channel->order[i] >= n || sum->seen[channel->order[i]])
			return false;
		sum->seen[channel->order[i]] = true;
		if (channel->parent && i > 0 &&
		    (channel->parent[channel->order[i]] >= n ||
		     !sum->seen[channel->parent[channel->order[i]]]))
			return false;
	}
	return !channel->parent || channel->parent[channel->order[0]] == UINT32_MAX;
}

static bool has_nets(const struct sum *sum, const struct tti_channel *channel)
{
	const uint32_t nnets = sum->loads->nnets;

	return nnets ? channel->net_in < nnets && channel->net_out < nnets
		     : channel->net_in == TTI_NO_NET && channel->net_out == TTI_NO_NET;
}

/* Directly, or out to a NIC and in from another; and what goes back. */
static bool use_way(struct sum *sum, const struct tti_channel *channel, uint32_t from, uint32_t to,
		    bool back, double gbps)
{
	const struct tti_loads *loads = sum->loads;
	const struct tti_way way =
		channel->way ? channel->way[to] : (struct tti_way){ TTI_NO_NET, TTI_NO_NET };

	if (way.out == TTI_NO_NET && way.in == TTI_NO_NET)
		return use(sum, tti_hop(loads, from, to), gbps) &&
		       (!back || use(sum, tti_hop(loads, to, from), gbps));
	return tti_way_exists(loads, way) && use(sum, tti_hop_out(loads, way.out, from), gbps) &&
	       use(sum, tti_hop_in(loads, way.in, to), gbps) &&
	       (!back || (use(sum, tti_hop_out(loads, way.in, to), gbps) &&
			  use(sum, tti_hop_in(loads, way.out, from), gbps)));
}

static bool use_ring(struct sum *sum, const struct tti_channel *channel)
{
	const struct tti_loads *loads = sum->loads;
	const uint32_t n = loads->n, *order = channel->order;
	const double gbps = (double)channel->bw_gbps;
	bool good = true;

	for (uint32_t i = 0; i + 1 < n; i++)
		good &= use_way(sum, channel, order[i], order[i + 1], false, gbps);
	if (loads->nnets == 0)
		return good &&
		       (n == 1 || use_way(sum, channel, order[n - 1], order[0], false, gbps));
	return good && use(sum, tti_hop_in(loads, channel->net_in, order[0]), gbps) &&
	       use(sum, tti_hop_out(loads, channel->net_out, order[n - 1]), gbps);
}

static bool use_tree_hops(struct sum *sum, const struct tti_channel *channel, double gbps)
{
	const struct tti_loads *loads = sum->loads;
	bool good = true;

	for (uint32_t i = 0; i < loads->n; i++) {
		const uint32_t parent = channel->parent[i];

		if (parent != UINT32_MAX)
			good &= use_way(sum, channel, parent, i, sum->both_ways, gbps);
	}
	return good;
}

static bool use_net(struct sum *sum, const struct tti_channel *channel, uint32_t member,
		    double gbps)
{
	return channel->net_in == TTI_NO_NET ||
	       use_both(sum, tti_hop_in(sum->loads, channel->net_in, member),
			tti_hop_out(sum->loads, channel->net_in, member), gbps);
}

/* Each member's links to the switch: once, the head's twice; both directions. */
static bool use_switch(struct sum *sum, const struct tti_channel *channel)
{
	const struct tti_loads *loads = sum->loads;
	bool good = true;

	for (uint32_t i = 0; i < loads->n; i++) {
		const double gbps = (double)channel->bw_gbps * (i == channel->order[0] ? 2 : 1);

		good &= loads->nvs[i] == loads->nvs[0] && use(sum, &loads->sw[2 * i], gbps) &&
			use(sum, &loads->sw[2 * i + 1], gbps);
	}
	return good;
}

static bool use_direct(struct sum *sum, const struct tti_channel *channel)
{
	const uint32_t head = channel->order[0];
	const double gbps = (double)channel->bw_gbps / (sum->loads->n - 1);
	bool good = true;

	for (uint32_t i = 0; i < sum->loads->n; i++)
		if (i != head)
			good &= use(sum, tti_hop(sum->loads, head, i), gbps) &&
				use(sum, tti_hop(sum->loads, i, head), gbps);
	return good;
}

static bool use_channel(struct sum *sum, const struct tti_channel *channel)
{
	const double gbps = (double)channel->bw_gbps;
	const uint32_t root = channel->order[0];

	switch (sum->search->pattern) {
	case TTI_PATTERN_RING:
		return use_ring(sum, channel);
	case TTI_PATTERN_TREE:
	case TTI_PATTERN_COLLNET_CHAIN:
		return use_tree_hops(sum, channel, gbps) && use_net(sum, channel, root, gbps);
	case TTI_PATTERN_BALANCED_TREE:
		return use_tree_hops(sum, channel, gbps) && use_net(sum, channel, root, gbps / 2) &&
		       (channel->second == UINT32_MAX ||
			use_net(sum, channel, channel->second, gbps / 2));
	case TTI_PATTERN_SPLIT_TREE:
		return use_tree_hops(sum, channel, gbps) &&
		       (channel->net_in == TTI_NO_NET ||
			(use(sum, tti_hop_in(sum->loads, channel->net_in, root), gbps) &&
			 use(sum, tti_hop_out(sum->loads, channel->net_out, channel->second),
			     gbps)));
	case TTI_PATTERN_NVLS:
		return use_switch(sum, channel) && use_net(sum, channel, root, gbps);
	case TTI_PATTERN_COLLNET_DIRECT:
		return use_direct(sum, channel) && use_net(sum, channel, root, gbps);
	}
	return false;
}

static tutti_status check_heads(const struct tti_local *search)
{
	for (uint32_t i = 0; i < search->nchannels; i++)
		for (uint32_t k = 0; k < i; k++)
			if (search->channels[i].order[0] == search->channels[k].order[0])
				return tti_fail(TUTTI_EINTERNAL,
						"%s: channels %u and %u have one head, member %u",
						tti_pattern_name(search->pattern), k, i,
						search->channels[i].order[0]);
	return TUTTI_OK;
}

static tutti_status check_rows(const struct sum *sum)
{
	for (uint32_t row = 0; row < sum->loads->nrows; row++)
		if (sum->used[row] > sum->loads->capacity[row] * (1 + 1e-5) + 1e-6)
			return tti_fail(
				TUTTI_EINTERNAL, "%s: link %u of %.3f GB/s is loaded with %.3f",
				tti_pattern_name(sum->search->pattern), sum->loads->link[row],
				sum->loads->capacity[row], sum->used[row]);
	return TUTTI_OK;
}

static tutti_status check(struct sum *sum)
{
	const struct tti_local *search = sum->search;
	double total = 0;

	for (uint32_t i = 0; i < search->nchannels; i++) {
		const struct tti_channel *channel = &search->channels[i];

		if (!(channel->bw_gbps > 0) || !visits_all(sum, channel) ||
		    (sum->loads->n > 1 && !has_nets(sum, channel)) || !use_channel(sum, channel))
			return tti_fail(TUTTI_EINTERNAL,
					"%s: channel %u does not visit each member once over ways "
					"that exist",
					tti_pattern_name(search->pattern), i);
		total += (double)channel->bw_gbps;
	}
	TTI_TRY(check_rows(sum));
	if (tti_pattern_has_heads(search->pattern))
		TTI_TRY(check_heads(search));
	if (fabs(total - search->total_gbps) > 1e-3 * (1 + total) ||
	    total > search->bound_gbps * (1 + 1e-5) + 1e-6)
		return tti_fail(
			TUTTI_EINTERNAL,
			"%s: channels add up to %.3f GB/s, the total is %.3f, the bound %.3f",
			tti_pattern_name(search->pattern), total, search->total_gbps,
			search->bound_gbps);
	return TUTTI_OK;
}

tutti_status tti_local_check(const struct tti_loads *loads, bool both_ways,
			     const struct tti_local *search)
{
	struct sum sum = { .loads = loads,
			   .search = search,
			   .both_ways = both_ways,
			   .used = tti_calloc(loads->nrows + 1, sizeof(*sum.used)),
			   .seen = tti_calloc(loads->n, sizeof(*sum.seen)) };
	tutti_status st;

	if (!sum.used || !sum.seen)
		st = tti_fail(TUTTI_ENOMEM, "check of channels: out of memory");
	else
		st = check(&sum);
	tti_free(sum.used);
	tti_free(sum.seen);
	return st;
}
