/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "insight/plan/plan_report.h"
#include "insight/print/print_dot.h"
#include "insight/write/dot.h"
#include "plan/plan_words.h"
#include "plan/search/detour.h"
#include "util/error.h"
#include "util/mem.h"

#define LEFT "align=\"left\""

/* The first node with the channels of one pattern, each in a colour along the links that
 * it uses, and below it a table of them. More channels than colours are left out, those
 * that carry least. */

struct drawing {
	const struct tti_report *report;
	const struct tti_plan_pattern *pattern;
	struct tti_local *part;
	struct tti_loads *loads;
	struct tti_dot_place *places;
	uint32_t step;  /* channels in one colour: the two trees of a pair */
	uint32_t shown; /* colours in use */
	uint16_t *used; /* of each link: a bit for each colour */
};

/* -- Which links ---------------------------------------------------------------------- */

/* The drawn link that shows this one: that between the boxes of its ends. */
static void mark(struct drawing *d, uint32_t link, uint32_t color)
{
	const struct tti_graph *graph = d->loads->routes->paths->graph;
	const uint32_t from = d->places[graph->links[link].from].box;
	const uint32_t to = d->places[graph->links[link].to].box;
	const struct tti_topo_link *shown =
		from == to ? NULL : tti_graph_link(graph, from, to, graph->links[link].type);

	if (shown)
		d->used[shown - graph->links] |= (uint16_t)(1u << color);
}

static void mark_hop(struct drawing *d, const struct tti_hop *hop, uint32_t color)
{
	for (uint32_t i = hop->first; i < hop->first + hop->n; i++)
		mark(d, d->loads->link[d->loads->loads[i].row], color);
}

static void mark_way(struct drawing *d, const struct tti_channel *channel, uint32_t from,
		     uint32_t to, uint32_t color)
{
	const struct tti_hop *hops[2];
	const uint32_t n = tti_way_hops(d->loads, channel->way, from, to, hops);

	for (uint32_t i = 0; i < n; i++)
		mark_hop(d, hops[i], color);
}

static void mark_members(struct drawing *d, const struct tti_channel *channel, uint32_t color)
{
	const struct tti_loads *loads = d->loads;

	for (uint32_t i = 0; i < loads->n; i++) {
		const uint32_t to = channel->order[i];
		const uint32_t from = channel->parent ? channel->parent[to]
				      : i > 0         ? channel->order[i - 1]
				      : loads->nnets  ? UINT32_MAX
						      : channel->order[loads->n - 1];

		if (d->part->pattern == TTI_PATTERN_NVLS) {
			mark_hop(d, &loads->sw[2 * i], color);
			mark_hop(d, &loads->sw[2 * i + 1], color);
		} else if (from != UINT32_MAX && from != to) {
			mark_way(d, channel, from, to, color);
		}
	}
}

static void mark_channel(struct drawing *d, const struct tti_channel *channel, uint32_t color)
{
	const struct tti_loads *loads = d->loads;
	const uint32_t root = channel->order[0];
	const uint32_t last = channel->second != UINT32_MAX ? channel->second
			      : channel->parent             ? root
							    : channel->order[loads->n - 1];

	mark_members(d, channel, color);
	if (channel->net_in == TTI_NO_NET || loads->nnets == 0)
		return;
	mark_hop(d, tti_hop_in(loads, channel->net_in, root), color);
	mark_hop(d, tti_hop_out(loads, channel->net_out, last), color);
}

/* -- The table ------------------------------------------------------------------------ */

static const char *net_name(const struct drawing *d, uint32_t net)
{
	return d->report->plan->nodes[0].nets[net];
}

static const char *member_name(const struct drawing *d, uint32_t member)
{
	const struct tti_plan *plan = d->report->plan;

	return plan->ranks[plan->nodes[0].ranks[member]].name;
}

static bool is_chain(const struct drawing *d, const struct tti_channel *channel)
{
	for (uint32_t i = 1; channel->parent && i < d->loads->n; i++)
		if (channel->parent[channel->order[i]] != channel->order[i - 1])
			return false;
	return true;
}

/* " → mlx5_0 → mlx5_2 → GPU4" */
static void add_arrow(const struct drawing *d, const struct tti_channel *channel, uint32_t to,
		      struct tti_strbuf *out)
{
	tti_strbuf_add(out, " &#8594; ");
	if (!tti_way_is_direct(channel->way, to)) {
		tti_dot_text(out, net_name(d, channel->way[to].out));
		tti_strbuf_add(out, " &#8594; ");
		tti_dot_text(out, net_name(d, channel->way[to].in));
		tti_strbuf_add(out, " &#8594; ");
	}
	tti_dot_text(out, member_name(d, to));
}

/* A chain as such, and back to its begin only over NICs; of what branches, each with its
 * parent. */
static void add_order(const struct drawing *d, const struct tti_channel *channel,
		      struct tti_strbuf *out)
{
	const bool chain = is_chain(d, channel);
	const uint32_t first = channel->order[0];

	tti_strbuf_add(out, "<td align=\"left\">");
	if (chain)
		tti_dot_text(out, member_name(d, first));
	for (uint32_t i = 1; i < d->loads->n; i++) {
		const uint32_t at = channel->order[i];

		if (!chain) {
			tti_strbuf_add(out, i == 1 ? "" : ", ");
			tti_dot_text(out, member_name(d, channel->parent[at]));
		}
		add_arrow(d, channel, at, out);
	}
	if (!tti_way_is_direct(channel->way, first))
		add_arrow(d, channel, first, out);
	tti_strbuf_add(out, "</td>");
}

static void add_row(const struct drawing *d, uint32_t color, struct tti_strbuf *out)
{
	const struct tti_channel *channel = &d->part->channels[color * d->step];
	char gbps[24];

	tti_gbps_words((double)channel->bw_gbps * d->step, gbps);
	tti_strbuf_addf(out, "<tr><td bgcolor=\"%s\" width=\"26\"></td>", tti_dot_palette[color]);
	tti_strbuf_addf(out, "<td align=\"right\">%s</td>", gbps);
	if (channel->net_in != TTI_NO_NET) {
		tti_dot_cell(out, LEFT, net_name(d, channel->net_in));
		add_order(d, channel, out);
		tti_dot_cell(out, LEFT, net_name(d, channel->net_out));
	} else {
		add_order(d, channel, out);
	}
	tti_strbuf_add(out, "</tr>\n");
}

static void add_table(const void *arg, struct tti_strbuf *out)
{
	const struct drawing *d = arg;
	const bool nets = d->part->channels[0].net_in != TTI_NO_NET;
	bool tree = false;
	const uint32_t all = d->part->nchannels / d->step;

	for (uint32_t i = 0; i < d->shown; i++)
		tree |= !is_chain(d, &d->part->channels[i * d->step]);
	tti_dot_table(out, "cellborder=\"0\" cellspacing=\"1\" cellpadding=\"2\"");
	tti_strbuf_add(out, "<tr><td></td>");
	tti_dot_heading(out, NULL, "GB/s");
	if (nets)
		tti_dot_heading(out, LEFT, "in by");
	tti_dot_heading(out, LEFT, tree ? "channel: parent → child" : "channel");
	if (nets)
		tti_dot_heading(out, LEFT, "out by");
	tti_strbuf_add(out, "</tr>\n");
	for (uint32_t color = 0; color < d->shown; color++)
		add_row(d, color, out);
	if (all > d->shown)
		tti_strbuf_addf(
			out,
			"<tr><td></td><td colspan=\"4\" align=\"left\">and %u more, which are "
			"not drawn</td></tr>\n",
			all - d->shown);
	tti_strbuf_add(out, "</table>");
}

/* -- All of it ------------------------------------------------------------------------ */

static tutti_status prepare(struct drawing *d)
{
	const struct tti_graph *graph = d->report->job->nodes[0].routes->paths->graph;

	TTI_TRY(tti_plan_loads(d->report, 0, &d->loads));
	TTI_TRY(tti_plan_part(d->report->plan, d->pattern->pattern, 0, &d->part));
	d->places = tti_dot_places(graph);
	d->used = tti_calloc((size_t)graph->nlinks + 1, sizeof(*d->used));
	if (d->places && d->used)
		return TUTTI_OK;
	return tti_fail(TUTTI_ENOMEM, "picture of a plan: out of memory");
}

/* Which part of the plan is drawn. */
static void add_notes(const struct drawing *d, struct tti_strbuf *out)
{
	const struct tti_plan *plan = d->report->plan;
	uint32_t alike = 0;

	for (uint32_t node = 0; node < plan->nnodes; node++)
		alike += plan->nodes[node].kind == plan->nodes[0].kind;
	if (plan->nnodes > 1 && alike == plan->nnodes)
		tti_strbuf_addf(out, "drawn is %s; all nodes have the same channels\n",
				plan->nodes[0].name);
	else if (plan->nnodes > 1)
		tti_strbuf_addf(out, "drawn is %s; %u of the %u nodes have the same channels\n",
				plan->nodes[0].name, alike, plan->nnodes);
	if (plan->npatterns > 1)
		tti_strbuf_addf(out,
				"drawn is the first of %u patterns; --pattern chooses another\n",
				plan->npatterns);
	tti_strbuf_add(out,
		       "a colour is a channel, an arrow its direction: a link carries its GB/s "
		       "in each direction at once");
}

static tutti_status draw(struct drawing *d, struct tti_strbuf *out)
{
	struct tti_strbuf notes = { 0 };
	char title[128], gbps[24];

	TTI_TRY(prepare(d));
	d->step = tti_trees_in_pairs(d->pattern->pattern, d->report->plan->nnodes) ? 2 : 1;
	d->shown = d->part->nchannels / d->step;
	if (d->shown > TTI_DOT_COLORS)
		d->shown = TTI_DOT_COLORS;
	for (uint32_t color = 0; color < d->shown; color++)
		mark_channel(d, &d->part->channels[color * d->step], color);
	tti_gbps_words(d->pattern->total_gbps, gbps);
	(void)snprintf(title, sizeof(title), "%s, %s GB/s, %u node%s",
		       tti_pattern_name(d->pattern->pattern), gbps, d->report->plan->nnodes,
		       d->report->plan->nnodes == 1 ? "" : "s");
	add_notes(d, &notes);
	out->failed |= notes.failed;
	if (!out->failed)
		tti_print_dot_over(
			d->loads->routes,
			&(struct tti_dot_overlay){ title, notes.text, d->used, add_table, d }, out);
	tti_strbuf_release(&notes);
	return TUTTI_OK;
}

tutti_status tti_plan_dot(const struct tti_report *report, struct tti_strbuf *out)
{
	struct drawing d = { .report = report };
	tutti_status st;

	if (report->plan->npatterns == 0)
		return tti_fail(TUTTI_EPLAN, "there is no channel to draw");
	d.pattern = &report->plan->patterns[0];
	st = draw(&d, out);
	tti_free(d.used);
	tti_free(d.places);
	tti_local_free(d.part);
	tti_loads_free(d.loads);
	return st;
}
