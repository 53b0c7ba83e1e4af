/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>

#include "insight/handoff/handoff_print.h"
#include "insight/handoff/handoff_report.h"
#include "insight/print/print_words.h"
#include "insight/write/table.h"
#include "topo/graph/words.h"

/* -- What is asked ------------------------------------------------------------------------- */

static void add_side(const struct tti_handoff_view *view, const uint32_t *ranks, uint32_t n,
		     bool sharded, struct tti_strbuf *out)
{
	uint32_t last = UINT32_MAX;
	uint32_t nnodes = 0;

	tti_strbuf_add(out, n == 1 ? "rank " : "ranks ");
	tti_handoff_ranks_words(ranks, n, out);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t node = view->node_of[ranks[i]];

		if (node == last)
			continue;
		if (nnodes < 4) {
			tti_strbuf_add(out, nnodes ? ", " : " on ");
			tti_words_text(tti_handoff_node_name(view, node), out);
		}
		last = node;
		nnodes++;
	}
	if (nnodes > 4)
		tti_strbuf_add(out, " ...");
	if (sharded && n > 1)
		tti_strbuf_addf(out, ", 1/%u each", n);
}

static void add_head(const struct tti_handoff_view *view, struct tti_strbuf *out)
{
	const struct tti_handoff_job *handoff = view->handoff;

	tti_strbuf_add(out, "handoff from ");
	add_side(view, handoff->from, handoff->nfrom, handoff->from_sharded, out);
	tti_strbuf_add(out, "\n          to ");
	add_side(view, handoff->to, handoff->nto, handoff->to_sharded, out);
	tti_strbuf_add(out, "\n");
}

/* -- Pairs ----------------------------------------------------------------------------------- */

/* "    8 GPU0" */
static void add_end(const struct tti_handoff_view *view, uint32_t rank, struct tti_table *table)
{
	tti_table_cellf(table, "%5u %s", rank, tti_handoff_end_name(view, rank));
}

static void add_way(const struct tti_handoff_view *view, const struct tti_handoff_way *way,
		    struct tti_table *table)
{
	const char *across = way->straight ? "" : "across rails";
	char share[TTI_HANDOFF_WORDS], gbps[24];

	tti_handoff_share_words(way->share, share);
	tti_gbps_words(way->gbps, gbps);
	add_end(view, way->from, table);
	tti_table_cell(table, NULL,
		       tti_handoff_net_name(view, view->node_of[way->from], way->net_out));
	tti_table_cell(table, NULL,
		       tti_handoff_net_name(view, view->node_of[way->to], way->net_in));
	add_end(view, way->to, table);
	tti_table_cell(table, NULL, share);
	tti_table_cell(table, NULL, gbps);
	if (way->part != TTI_HANDOFF_WHOLE)
		tti_table_cellf(table, "part %u%s%s", way->part, across[0] ? "  " : "", across);
	else
		tti_table_cell(table, NULL, across);
	tti_table_end_row(table);
}

static void add_leg(const struct tti_handoff_view *view, const struct tti_handoff_leg *leg,
		    struct tti_table *table)
{
	static const char *const heads[] = { "from", "out by", "in by", "to", "share", "GB/s" };
	struct tti_strbuf line = { 0 };
	char gbps[24];

	tti_gbps_words(leg->gbps, gbps);
	tti_strbuf_add(&line, leg->from_node == leg->to_node ? "inside " : "");
	if (leg->from_node != leg->to_node)
		tti_strbuf_addf(&line, "%s to ", tti_handoff_node_name(view, leg->from_node));
	tti_strbuf_addf(&line, "%s: %u pair%s, %s GB/s", tti_handoff_node_name(view, leg->to_node),
			leg->n, leg->n == 1 ? "" : "s", gbps);
	tti_table_line(table, "");
	tti_table_line(table, line.text);
	tti_strbuf_release(&line);
	for (int i = 0; i < 6; i++) {
		tti_table_cell(table, NULL, heads[i]);
		if (i == 0 || i == 3)
			tti_table_right(table);
	}
	tti_table_end_row(table);
	for (uint32_t i = leg->first; i < leg->first + leg->n; i++)
		add_way(view, &view->plan->ways[i], table);
}

/* -- Figures ------------------------------------------------------------------------------------ */

static void add_figure(const char *name, double gbps, double us, double bound_us, const char *why,
		       struct tti_strbuf *out)
{
	char words[24], time[TTI_HANDOFF_WORDS];

	tti_gbps_words(gbps, words);
	tti_handoff_time_words(us, time);
	tti_strbuf_addf(out, "%-28s  %8s  %9s  %6.2f", name, words, time,
			bound_us > 0 ? us / bound_us : 0.0);
	if (why && why[0]) {
		tti_strbuf_add(out, "  ");
		tti_words_text(why, out);
	}
	tti_strbuf_add(out, "\n");
}

static void add_figures(const struct tti_handoff_view *view, struct tti_strbuf *out)
{
	const struct tti_handoff_plan *plan = view->plan;
	const struct tti_handoff_time time = tti_handoff_plan_time(plan, view->nbytes);
	char bytes[TTI_HANDOFF_WORDS], ratio[16];

	tti_handoff_bytes_words(view->nbytes, bytes);
	(void)snprintf(ratio, sizeof(ratio), "ratio");
	tti_strbuf_addf(out, "\n%-28s  %8s  %9s  %6s  %s\n", "", "GB/s", bytes, ratio,
			"limited by");
	add_figure("this plan", plan->gbps, time.us, time.bound_us, plan->limit, out);
	add_figure("no method is faster than", plan->bound_gbps, time.bound_us, time.bound_us,
		   plan->bound, out);
	add_figure("a copy for each receiver", plan->naive_gbps, time.naive_us, time.bound_us, NULL,
		   out);
}

void tti_handoff_table(const struct tti_handoff_job *handoff, const struct tti_handoff_plan *plan,
		       double nbytes, struct tti_strbuf *out)
{
	struct tti_handoff_view view;
	struct tti_table table = { .align = "<<<<>><",
				   .indent = "  ",
				   .widths = { 10, 6, 5, 8, 7, 7 } };

	if (!tti_handoff_view_open(handoff, plan, nbytes, &view)) {
		out->failed = true;
		return;
	}
	add_head(&view, out);
	if (plan->gbps > 0) {
		for (uint32_t i = 0; i < plan->nlegs; i++)
			add_leg(&view, &plan->legs[i], &table);
		tti_table_write(&table, out);
		add_figures(&view, out);
	} else {
		tti_strbuf_add(out, "\nnothing is to be moved: all who get it have it\n");
	}
	tti_handoff_view_close(&view);
}
