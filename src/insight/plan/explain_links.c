/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insight/plan/explain.h"
#include "plan/search/detour.h"
#include "topo/graph/words.h"
#include "util/error.h"
#include "util/mem.h"

/* The bound is the sum of the bandwidths of the links, each times its price: the gain of one
 * more GB/s of the link. Equal links with one price are reported together. */

#define MOST_GROUPS   6
#define MOST_WHAT_IFS 4
#define LEAST_SHARE   0.002

struct group {
	uint32_t row; /* the first of them */
	uint32_t count;
	double price, share; /* GB/s of the bound */
};

static const struct tti_topo_link *link_of(const struct tti_loads *loads, uint32_t row)
{
	return &loads->routes->paths->graph->links[loads->link[row]];
}

static bool are_alike(const struct tti_explain *explain, uint32_t a, uint32_t b)
{
	const struct tti_loads *loads = explain->loads;
	const struct tti_node *nodes = loads->routes->paths->graph->nodes;
	const struct tti_topo_link *x = link_of(loads, a), *y = link_of(loads, b);

	return loads->capacity[a] == loads->capacity[b] && x->type == y->type &&
	       nodes[x->from].type == nodes[y->from].type && nodes[x->to].type == nodes[y->to].type;
}

static bool same_price(const struct tti_explain *explain, uint32_t a, uint32_t b)
{
	return fabs(explain->search->price[a] - explain->search->price[b]) < 1e-6;
}

static int by_share(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->share != y->share)
		return x->share < y->share ? 1 : -1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* Rows with a price, together where they are alike; the most first. */
static uint32_t find_groups(const struct tti_explain *explain, struct group *groups)
{
	const struct tti_local *search = explain->search;
	uint32_t n = 0;

	for (uint32_t row = 0; row < search->nrows; row++) {
		uint32_t at = 0;

		if (search->price[row] < TTI_LEAST_PRICE)
			continue;
		while (at < n && !(are_alike(explain, groups[at].row, row) &&
				   same_price(explain, groups[at].row, row)))
			at++;
		if (at == n)
			groups[n++] = (struct group){ .row = row, .price = search->price[row] };
		groups[at].count++;
		groups[at].share += search->price[row] * explain->loads->capacity[row];
	}
	qsort(groups, n, sizeof(*groups), by_share);
	return n;
}

/* -- Who crosses a link --------------------------------------------------------------- */

static bool way_loads_row(const struct tti_explain *explain, const struct tti_channel *channel,
			  uint32_t from, uint32_t to, uint32_t row)
{
	const struct tti_hop *hops[2];
	const uint32_t n = tti_way_hops(explain->loads, channel->way, from, to, hops);

	return tti_explain_needs(explain, hops[0], row) ||
	       (n > 1 && tti_explain_needs(explain, hops[1], row));
}

/* The first hop between members that needs a row. */
static bool crosses(const struct tti_explain *explain, const struct tti_channel *channel,
		    uint32_t row, uint32_t *from, uint32_t *to)
{
	const struct tti_loads *loads = explain->loads;

	for (uint32_t i = 0; i < loads->n; i++) {
		*to = channel->order[i];
		*from = channel->parent ? channel->parent[*to]
			: i > 0         ? channel->order[i - 1]
			: explain->nets ? UINT32_MAX
					: channel->order[loads->n - 1];
		if (*from == UINT32_MAX || *from == *to)
			continue;
		if (way_loads_row(explain, channel, *from, *to, row))
			return true;
	}
	return false;
}

/* "(SYS, 9.0 GB/s alone)", "(by mlx5_0 and mlx5_2)" */
static void say_way(const struct tti_explain *explain, const struct tti_channel *channel,
		    uint32_t from, uint32_t to)
{
	const struct tti_loads *loads = explain->loads;
	const struct tti_node *nodes = loads->routes->paths->graph->nodes;
	const struct tti_hop *hop = tti_hop(loads, from, to);
	char gbps[24];

	if (!tti_way_is_direct(channel->way, to)) {
		tti_strbuf_addf(explain->out, " (by %s and %s)",
				nodes[loads->nets[channel->way[to].out]].full_name,
				nodes[loads->nets[channel->way[to].in]].full_name);
		return;
	}
	tti_gbps_words((double)hop->bw_gbps, gbps);
	tti_strbuf_addf(
		explain->out, " (%s, %s GB/s alone)",
		tti_words_path_type(loads->routes->paths->graph, (enum tti_path_type)hop->type),
		gbps);
}

/* "; GPU3 to GPU4 goes over it (SYS, 9.0 GB/s alone)" */
static void say_who(const struct tti_explain *explain, uint32_t row)
{
	uint32_t from, to;

	for (uint32_t i = 0; i < explain->search->nchannels; i++) {
		const struct tti_channel *channel = &explain->search->channels[i];

		if (!crosses(explain, channel, row, &from, &to))
			continue;
		tti_strbuf_addf(explain->out, "; %s to %s goes over it",
				tti_explain_member(explain, from), tti_explain_member(explain, to));
		say_way(explain, channel, from, to);
		return;
	}
}

static void say_group(const struct tti_explain *explain, const struct group *group)
{
	char link[TTI_LINK_WORDS], each[24], share[24];

	tti_link_words(explain->loads, group->row, link);
	tti_gbps_words(explain->loads->capacity[group->row], each);
	tti_gbps_words(group->share, share);
	tti_strbuf_addf(explain->out, "    %6s GB/s  ", share);
	if (group->count > 1)
		tti_strbuf_addf(explain->out, "%u links like ", group->count);
	tti_strbuf_addf(explain->out, "%s, %s GB/s%s, at %.3g each", link, each,
			group->count > 1 ? " a link" : "", group->price);
	say_who(explain, group->row);
	tti_strbuf_add(explain->out, "\n");
}

static void say_groups(const struct tti_explain *explain, const struct group *groups, uint32_t n)
{
	tti_strbuf_add(explain->out, "  what limits it: the bound is the sum of what these carry, "
				     "times what each GB/s of it counts\n");
	for (uint32_t i = 0; i < n && i < MOST_GROUPS; i++)
		say_group(explain, &groups[i]);
	if (n > MOST_GROUPS)
		tti_strbuf_addf(explain->out, "    and %u more\n", n - MOST_GROUPS);
}

/* -- Twice as fast ------------------------------------------------------------------- */

static tutti_status search_again(const struct tti_explain *explain, double *gbps_out)
{
	struct tti_local *search = NULL;

	TTI_TRY(tti_local_search(explain->loads, &explain->config, &search));
	*gbps_out = search->total_gbps;
	tti_local_free(search);
	return TUTTI_OK;
}

static bool in_group(const struct tti_explain *explain, uint32_t row, const struct group *group)
{
	return are_alike(explain, row, group->row) && same_price(explain, row, group->row);
}

/* Both directions of a link. */
static void double_row(struct tti_loads *loads, const double *kept, uint32_t row)
{
	for (uint32_t other = 0; other < loads->nrows; other++)
		if (other == row || loads->link[other] == link_of(loads, row)->reverse)
			loads->capacity[other] = 2 * kept[other];
}

/* The links of some groups twice as fast; `one`: only the first of the first. */
static tutti_status double_groups(const struct tti_explain *explain, const struct group *groups,
				  uint32_t n, bool one, double *gbps_out)
{
	struct tti_loads *loads = explain->loads;
	double *kept = tti_calloc(loads->nrows, sizeof(*kept));
	tutti_status st;

	if (!kept)
		return tti_fail(TUTTI_ENOMEM, "explanation: out of memory");
	memcpy(kept, loads->capacity, loads->nrows * sizeof(*kept));
	for (uint32_t row = 0; row < loads->nrows; row++)
		for (uint32_t i = 0; i < n; i++)
			if (one ? row == groups[i].row : in_group(explain, row, &groups[i])) {
				double_row(loads, kept, row);
				break;
			}
	st = search_again(explain, gbps_out);
	memcpy(loads->capacity, kept, loads->nrows * sizeof(*kept));
	tti_free(kept);
	return st;
}

static void say_gain(const struct tti_explain *explain, double then, const char *none)
{
	const double now = explain->search->total_gbps;
	char gbps[24];

	tti_gbps_words(then, gbps);
	if (then < now * (1 + LEAST_SHARE))
		tti_strbuf_addf(explain->out, ": %s\n", none);
	else
		tti_strbuf_addf(explain->out, ": %s GB/s (%+.1f %%)\n", gbps,
				100 * (then / now - 1));
}

static tutti_status what_if(const struct tti_explain *explain, const struct group *group)
{
	const double now = explain->search->total_gbps;
	char link[TTI_LINK_WORDS];
	bool all = false;
	double then = 0;

	TTI_TRY(double_groups(explain, group, 1, true, &then));
	if (group->count > 1 && then < now * (1 + LEAST_SHARE)) {
		all = true;
		TTI_TRY(double_groups(explain, group, 1, false, &then));
	}
	tti_link_words(explain->loads, group->row, link);
	tti_strbuf_add(explain->out, "    ");
	if (all)
		tti_strbuf_addf(explain->out, "all %u links like ", group->count);
	tti_strbuf_add(explain->out, link);
	say_gain(explain, then, "nothing gained, others limit as well");
	return TUTTI_OK;
}

/* Both directions of a link come as two groups: one is enough. */
static bool is_reverse_of(const struct tti_explain *explain, const struct group *a,
			  const struct group *b)
{
	return link_of(explain->loads, a->row)->reverse == explain->loads->link[b->row];
}

static tutti_status what_ifs(const struct tti_explain *explain, const struct group *groups,
			     uint32_t n)
{
	uint32_t asked = 0;
	double then = 0;

	tti_strbuf_add(explain->out, "  planned again with these twice as fast, in both "
				     "directions\n");
	for (uint32_t i = 0; i < n && asked < MOST_WHAT_IFS; i++) {
		bool known = false;

		for (uint32_t k = 0; k < i; k++)
			known |= is_reverse_of(explain, &groups[k], &groups[i]);
		if (known)
			continue;
		asked++;
		TTI_TRY(what_if(explain, &groups[i]));
	}
	if (n == 1)
		return TUTTI_OK;
	TTI_TRY(double_groups(explain, groups, n, false, &then));
	tti_strbuf_add(explain->out, "    all that limits it at once");
	say_gain(explain, then, "nothing gained");
	return TUTTI_OK;
}

tutti_status tti_explain_links(struct tti_explain *explain)
{
	struct group *groups = tti_calloc(explain->search->nrows, sizeof(*groups));
	tutti_status st;
	uint32_t n;

	if (!groups)
		return tti_fail(TUTTI_ENOMEM, "explanation: out of memory");
	n = find_groups(explain, groups);
	say_groups(explain, groups, n);
	st = what_ifs(explain, groups, n);
	tti_free(groups);
	return st;
}
