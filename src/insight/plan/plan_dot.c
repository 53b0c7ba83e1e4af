/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "insight/plan/plan_report.h"
#include "insight/print/print_dot.h"
#include "plan/plan_words.h"
#include "plan/search/detour.h"
#include "util/error.h"
#include "util/mem.h"

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
	char **colors;  /* of each link, as text; NULL */
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
	uint32_t at;

	if (!shown)
		return;
	at = (uint32_t)(shown - graph->links);
	d->used[at] = (uint16_t)(d->used[at] | 1u << color);
	d->used[shown->reverse] = (uint16_t)(d->used[shown->reverse] | 1u << color);
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

		if (d->part->pattern == TTI_PATTERN_NVLS)
			mark_hop(d, &loads->sw[2 * i], color);
		else if (from != UINT32_MAX && from != to)
			mark_way(d, channel, from, to, color);
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

static tutti_status write_colors(struct drawing *d)
{
	const uint32_t nlinks = d->loads->routes->paths->graph->nlinks;

	d->colors = tti_calloc((size_t)nlinks + 1, sizeof(*d->colors));
	if (!d->colors)
		return tti_fail(TUTTI_ENOMEM, "picture of a plan: out of memory");
	for (uint32_t link = 0; link < nlinks; link++) {
		char text[8 * TTI_DOT_COLORS + 1] = "";
		size_t len = 0;

		for (uint32_t i = 0; i < d->shown; i++)
			if (d->used[link] >> i & 1)
				len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s",
							len ? ":" : "", tti_dot_palette[i]);
		if (len && !(d->colors[link] = tti_strdup(text)))
			return tti_fail(TUTTI_ENOMEM, "picture of a plan: out of memory");
	}
	return TUTTI_OK;
}

static const char *colors_of(const void *arg, uint32_t link)
{
	const struct drawing *d = arg;

	return d->colors[link];
}

/* -- The table ------------------------------------------------------------------------ */

static void add_cell(struct tti_strbuf *out, const char *text)
{
	tti_strbuf_add(out, "<td align=\"left\">");
	tti_dot_text(out, text);
	tti_strbuf_add(out, "</td>");
}

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
		add_cell(out, net_name(d, channel->net_in));
		add_order(d, channel, out);
		add_cell(out, net_name(d, channel->net_out));
	} else {
		add_order(d, channel, out);
	}
	tti_strbuf_add(out, "</tr>\n");
}

static void add_table(const void *arg, struct tti_strbuf *out)
{
	const struct drawing *d = arg;
	const bool nets = d->part->channels[0].net_in != TTI_NO_NET;
	const uint32_t all = d->part->nchannels / d->step;

	tti_strbuf_add(out,
		       "\toverlay [fontsize=11, label=<<table border=\"0\" cellborder=\"0\" "
		       "cellspacing=\"1\" cellpadding=\"2\">\n<tr><td></td><td><b>GB/s</b></td>");
	tti_strbuf_add(out, nets ? "<td align=\"left\"><b>in by</b></td>" : "");
	tti_strbuf_add(out, "<td align=\"left\"><b>channel</b></td>");
	tti_strbuf_add(out, nets ? "<td align=\"left\"><b>out by</b></td></tr>\n" : "</tr>\n");
	for (uint32_t color = 0; color < d->shown; color++)
		add_row(d, color, out);
	if (all > d->shown)
		tti_strbuf_addf(
			out,
			"<tr><td></td><td colspan=\"4\" align=\"left\">and %u more, which are "
			"not drawn</td></tr>\n",
			all - d->shown);
	tti_strbuf_add(out, "</table>>];\n");
}

/* -- All of it ------------------------------------------------------------------------ */

static tutti_status prepare(struct drawing *d)
{
	const struct tti_job_node *node = &d->report->job->nodes[0];
	const struct tti_plan_node *said = &d->report->plan->nodes[0];
	const struct tti_graph *graph = node->routes->paths->graph;
	uint32_t *nets = tti_calloc((size_t)said->nnets + 1, sizeof(*nets));
	const bool alone = d->report->plan->nnodes == 1;
	struct tti_members members = {
		node->routes, node->members,           node->nranks,
		nets,         alone ? 0 : said->nnets, alone ? said->nnets : 0
	};
	tutti_status st;

	if (!nets)
		return tti_fail(TUTTI_ENOMEM, "picture of a plan: out of memory");
	for (uint32_t i = 0; i < said->nnets; i++)
		nets[i] = tti_graph_find(graph, TTI_NODE_NET, said->nets[i]);
	st = tti_loads_build(&members, &d->loads);
	tti_free(nets);
	if (st == TUTTI_OK)
		st = tti_plan_part(d->report->plan, d->pattern->pattern, 0, &d->part);
	d->places = tti_dot_places(graph);
	d->used = tti_calloc((size_t)graph->nlinks + 1, sizeof(*d->used));
	if (st == TUTTI_OK && (!d->places || !d->used))
		st = tti_fail(TUTTI_ENOMEM, "picture of a plan: out of memory");
	return st;
}

static tutti_status draw(struct drawing *d, struct tti_strbuf *out)
{
	const bool pairs =
		d->report->plan->nnodes > 1 && (d->pattern->pattern == TTI_PATTERN_TREE ||
						d->pattern->pattern == TTI_PATTERN_BALANCED_TREE ||
						d->pattern->pattern == TTI_PATTERN_SPLIT_TREE);
	struct tti_dot_overlay overlay = { NULL, colors_of, add_table, d };
	char title[128], gbps[24];

	TTI_TRY(prepare(d));
	d->step = pairs ? 2 : 1;
	d->shown = d->part->nchannels / d->step;
	if (d->shown > TTI_DOT_COLORS)
		d->shown = TTI_DOT_COLORS;
	for (uint32_t color = 0; color < d->shown; color++)
		mark_channel(d, &d->part->channels[color * d->step], color);
	TTI_TRY(write_colors(d));
	tti_gbps_words(d->pattern->total_gbps, gbps);
	(void)snprintf(title, sizeof(title), "%s, %s GB/s, %u node%s",
		       tti_pattern_name(d->pattern->pattern), gbps, d->report->plan->nnodes,
		       d->report->plan->nnodes == 1 ? "" : "s");
	overlay.title = title;
	tti_print_dot_over(d->loads->routes, &overlay, out);
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
	for (uint32_t link = 0; d.colors && link < d.loads->routes->paths->graph->nlinks; link++)
		tti_free(d.colors[link]);
	tti_free(d.colors);
	tti_free(d.used);
	tti_free(d.places);
	tti_local_free(d.part);
	tti_loads_free(d.loads);
	return st;
}
