/* SPDX-License-Identifier: BSD-3-Clause */
#include <jansson.h>
#include <stdlib.h>

#include "plan/plan.h"
#include "topo/paths/paths.h"
#include "util/error.h"

/* Written by hand, a channel a line, so that a person can edit it; strings go through
 * jansson for their escapes. */

void tti_plan_json_text(struct tti_strbuf *out, const char *text)
{
	json_t *string = json_string(text);
	char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY) : NULL;

	if (quoted)
		tti_strbuf_add(out, quoted);
	else
		out->failed = true;
	free(quoted);
	json_decref(string);
}

static void add_list(struct tti_strbuf *out, const uint32_t *list, uint32_t n)
{
	tti_strbuf_add(out, "[");
	for (uint32_t i = 0; i < n; i++)
		if (list[i] == UINT32_MAX)
			tti_strbuf_addf(out, "%s-1", i ? "," : "");
		else
			tti_strbuf_addf(out, "%s%u", i ? "," : "", list[i]);
	tti_strbuf_add(out, "]");
}

/* By node: [in, out]. */
static void add_ends(struct tti_strbuf *out, const struct tti_plan *plan,
		     const struct tti_plan_end *ends)
{
	tti_strbuf_add(out, "[");
	for (uint32_t node = 0; ends && node < plan->nnodes; node++) {
		const char **nets = plan->nodes[node].nets;

		tti_strbuf_add(out, node ? ",[" : "[");
		tti_plan_json_text(out, nets[ends[node].in]);
		tti_strbuf_add(out, ",");
		tti_plan_json_text(out, nets[ends[node].out]);
		tti_strbuf_add(out, "]");
	}
	tti_strbuf_add(out, "]");
}

/* [from, "out", "in", to] of each hop that leaves the node and comes back. */
static void add_ways(struct tti_strbuf *out, const struct tti_plan *plan,
		     const struct tti_plan_channel *channel)
{
	const char **nets = plan->nodes[0].nets;
	bool first = true;

	tti_strbuf_add(out, ",\"over_nets\":[");
	for (uint32_t i = 0; i < channel->nranks; i++) {
		const uint32_t to = channel->ranks[i];

		if (tti_plan_hop_is_direct(channel, to))
			continue;
		tti_strbuf_addf(out, "%s[%u,", first ? "" : ",", tti_plan_before(channel, i));
		tti_plan_json_text(out, nets[channel->ways[to].out]);
		tti_strbuf_add(out, ",");
		tti_plan_json_text(out, nets[channel->ways[to].in]);
		tti_strbuf_addf(out, ",%u]", to);
		first = false;
	}
	tti_strbuf_add(out, "]");
}

static void add_channel(struct tti_strbuf *out, const struct tti_plan *plan,
			const struct tti_plan_channel *channel)
{
	tti_strbuf_addf(out, "      {\"bw_gbps\":%.5f,\"ranks\":", (double)channel->bw_gbps);
	add_list(out, channel->ranks, channel->nranks);
	if (channel->parent) {
		tti_strbuf_add(out, ",\"parents\":");
		add_list(out, channel->parent, plan->nranks);
	}
	tti_strbuf_add(out, ",\"nets\":");
	add_ends(out, plan, channel->ends);
	if (channel->ways)
		add_ways(out, plan, channel);
	tti_strbuf_addf(out, ",\"type_intra\":\"%s\",\"type_inter\":\"%s\"}",
			tti_path_type_name((enum tti_path_type)channel->type_intra),
			tti_path_type_name((enum tti_path_type)channel->type_inter));
}

static void add_pattern(struct tti_strbuf *out, const struct tti_plan *plan,
			const struct tti_plan_pattern *pattern)
{
	tti_strbuf_addf(out,
			"    \"%s\": {\"total_bw_gbps\":%.5f,\"bound_bw_gbps\":%.5f,"
			"\"search_ms\":%.3f,\"cross_nic\":%d,\"limit\":",
			tti_pattern_name(pattern->pattern), pattern->total_gbps,
			pattern->bound_gbps, pattern->search_ms, (int)pattern->cross_nic);
	tti_plan_json_text(out, pattern->limit ? pattern->limit : "");
	tti_strbuf_add(out, ",\"channels\":[\n");
	for (uint32_t i = 0; i < pattern->nchannels; i++) {
		add_channel(out, plan, &pattern->channels[i]);
		tti_strbuf_add(out, i + 1 < pattern->nchannels ? ",\n" : "\n");
	}
	tti_strbuf_add(out, "    ]}");
}

static void add_node(struct tti_strbuf *out, const struct tti_plan *plan,
		     const struct tti_plan_node *node)
{
	tti_strbuf_add(out, "    {\"name\":");
	tti_plan_json_text(out, node->name);
	tti_strbuf_addf(out, ",\"kind\":%u,\"ranks\":", node->kind);
	add_list(out, node->ranks, node->nranks);
	tti_strbuf_add(out, ",\"endpoints\":[");
	for (uint32_t i = 0; i < node->nranks; i++) {
		tti_strbuf_add(out, i ? "," : "");
		tti_plan_json_text(out, plan->ranks[node->ranks[i]].name);
	}
	tti_strbuf_add(out, "],\"nets\":[");
	for (uint32_t i = 0; i < node->nnets; i++) {
		tti_strbuf_add(out, i ? "," : "");
		tti_plan_json_text(out, node->nets[i]);
	}
	tti_strbuf_add(out, "]}");
}

tutti_status tti_plan_json(const struct tti_plan *plan, struct tti_strbuf *out)
{
	tti_strbuf_addf(out, "{\n  \"nodes\":%u,\n  \"ranks\":%u,\n  \"hosts\":[\n", plan->nnodes,
			plan->nranks);
	for (uint32_t node = 0; node < plan->nnodes; node++) {
		add_node(out, plan, &plan->nodes[node]);
		tti_strbuf_add(out, node + 1 < plan->nnodes ? ",\n" : "\n");
	}
	tti_strbuf_add(out, "  ],\n  \"patterns\":{\n");
	for (uint32_t i = 0; i < plan->npatterns; i++) {
		add_pattern(out, plan, &plan->patterns[i]);
		tti_strbuf_add(out, i + 1 < plan->npatterns ? ",\n" : "\n");
	}
	tti_strbuf_add(out, "  }\n}\n");
	return out->failed ? tti_fail(TUTTI_ENOMEM, "plan as text: out of memory") : TUTTI_OK;
}
