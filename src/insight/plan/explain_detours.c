/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "insight/plan/explain.h"
#include "plan/search/detour.h"
#include "topo/graph/words.h"
#include "util/error.h"
#include "util/mem.h"

/* Hops of a node alone that go over the network: which, why not directly, what each NIC
 * carries, and what is left without. */

#define MOST_HOPS 8

struct detour {
	uint32_t from, to;
	struct tti_way way;
	double gbps;
};

/* -- Which hops ----------------------------------------------------------------------- */

static void note(struct detour *detours, uint32_t *n, const struct detour *one)
{
	for (uint32_t i = 0; i < *n; i++)
		if (detours[i].from == one->from && detours[i].to == one->to &&
		    detours[i].way.out == one->way.out && detours[i].way.in == one->way.in) {
			detours[i].gbps += one->gbps;
			return;
		}
	detours[(*n)++] = *one;
}

static int by_gbps(const void *a, const void *b)
{
	const struct detour *x = a, *y = b;

	if (x->gbps != y->gbps)
		return x->gbps < y->gbps ? 1 : -1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* The same hop by the same NICs in several channels is one. */
static uint32_t find_detours(const struct tti_explain *explain, struct detour *detours)
{
	const uint32_t members = explain->loads->n;
	uint32_t n = 0;

	for (uint32_t i = 0; i < explain->search->nchannels; i++) {
		const struct tti_channel *channel = &explain->search->channels[i];

		for (uint32_t k = 0; k < members; k++) {
			const uint32_t to = channel->order[k];
			struct detour one = { .to = to, .gbps = (double)channel->bw_gbps };

			if (tti_way_is_direct(channel->way, to))
				continue;
			one.from = channel->parent ? channel->parent[to]
						   : channel->order[(k + members - 1) % members];
			one.way = channel->way[to];
			note(detours, &n, &one);
		}
	}
	qsort(detours, n, sizeof(*detours), by_gbps);
	return n;
}

/* -- Sentences ------------------------------------------------------------------------ */

/* The dearest link of the direct way that the way over NICs spares; UINT32_MAX: none has a
 * price. */
static uint32_t spared(const struct tti_explain *explain, const struct detour *one)
{
	const struct tti_loads *loads = explain->loads;
	const struct tti_hop *hop = tti_hop(loads, one->from, one->to);
	double most = TTI_LEAST_PRICE;
	uint32_t best = UINT32_MAX;

	for (uint32_t i = hop->first; i < hop->first + hop->n; i++) {
		const uint32_t row = loads->loads[i].row;
		const double cost = (double)loads->loads[i].amount * explain->search->price[row];

		if (cost <= most ||
		    tti_explain_needs(explain, tti_hop_out(loads, one->way.out, one->from), row) ||
		    tti_explain_needs(explain, tti_hop_in(loads, one->way.in, one->to), row))
			continue;
		most = cost;
		best = row;
	}
	return best;
}

static void say_detour(const struct tti_explain *explain, const struct detour *one)
{
	const struct tti_loads *loads = explain->loads;
	const struct tti_hop *direct = tti_hop(loads, one->from, one->to);
	const uint32_t row = spared(explain, one);
	char gbps[24], alone[24], link[TTI_LINK_WORDS];

	tti_gbps_words(one->gbps, gbps);
	tti_gbps_words((double)direct->bw_gbps, alone);
	tti_strbuf_addf(
		explain->out, "    %s to %s, %s GB/s, by %s and %s; directly (%s, %s alone)",
		tti_explain_member(explain, one->from), tti_explain_member(explain, one->to), gbps,
		tti_explain_net(explain, one->way.out), tti_explain_net(explain, one->way.in),
		tti_words_path_type(loads->routes->paths->graph, (enum tti_path_type)direct->type),
		alone);
	if (row == UINT32_MAX) {
		tti_strbuf_add(explain->out, " would do as well, and is left to others\n");
		return;
	}
	tti_link_words(loads, row, link);
	tti_strbuf_addf(explain->out, " it needs %s, which is full\n", link);
}

static void say_nets(const struct tti_explain *explain, const struct detour *detours, uint32_t n)
{
	char out_text[24], in_text[24];

	for (uint32_t net = 0; net < explain->loads->ninner; net++) {
		double out = 0, in = 0;

		for (uint32_t i = 0; i < n; i++) {
			out += detours[i].way.out == net ? detours[i].gbps : 0;
			in += detours[i].way.in == net ? detours[i].gbps : 0;
		}
		tti_gbps_words(out, out_text);
		tti_gbps_words(in, in_text);
		tti_strbuf_addf(explain->out, "    %s", tti_explain_net(explain, net));
		if (out + in > 0)
			tti_strbuf_addf(explain->out, " takes %s out and %s in\n", out_text,
					in_text);
		else
			tti_strbuf_add(explain->out, " is idle\n");
	}
}

/* The same search without them. */
static tutti_status say_without(const struct tti_explain *explain)
{
	struct tti_local_config config = explain->config;
	struct tti_local *search = NULL;
	char gbps[24];

	config.cross_nic = TTI_CROSS_SAME;
	TTI_TRY(tti_local_search(explain->loads, &config, &search));
	tti_gbps_words(search->total_gbps, gbps);
	tti_strbuf_addf(explain->out,
			"  planned again without hops over NICs (--cross-nic 0): %s "
			"GB/s\n",
			gbps);
	tti_local_free(search);
	return TUTTI_OK;
}

tutti_status tti_explain_detours(struct tti_explain *explain)
{
	const size_t most = (size_t)explain->search->nchannels * explain->loads->n;
	struct detour *detours;
	uint32_t n;

	if (explain->search->cross_nic != TTI_CROSS_ANY)
		return TUTTI_OK;
	detours = tti_calloc(most, sizeof(*detours));
	if (!detours)
		return tti_fail(TUTTI_ENOMEM, "explanation: out of memory");
	n = find_detours(explain, detours);
	tti_strbuf_add(explain->out, "  hops that leave the node by one NIC and come back by "
				     "another\n");
	for (uint32_t i = 0; i < n && i < MOST_HOPS; i++)
		say_detour(explain, &detours[i]);
	if (n > MOST_HOPS)
		tti_strbuf_addf(explain->out, "    and %u more\n", n - MOST_HOPS);
	say_nets(explain, detours, n);
	tti_free(detours);
	return say_without(explain);
}
