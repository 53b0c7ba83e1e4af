/* SPDX-License-Identifier: BSD-3-Clause */
#include <inttypes.h>
#include <math.h>

#include "insight/plan/plan_report.h"
#include "topo/graph/words.h"
#include "util/error.h"

/* NCCL's graph file of one of several equal nodes. Its channels all carry the same, so
 * each of ours becomes some of equal bandwidth, and what is left over is lost; its trees
 * are chains. */

#define MOST_CHANNELS 32 /* of a ring: NCCL doubles them */

struct nccl_writer {
	const struct tti_report *report;
	const struct tti_graph *graph;
	const struct tti_job_node *node;
	bool nets;
	struct tti_strbuf *out;
};

/* -- Equal channels --------------------------------------------------------------------- */

static uint32_t pieces(double gbps, double each)
{
	return (uint32_t)floor(gbps / each + 1e-4);
}

static uint32_t count_pieces(const struct tti_local *part, double each)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < part->nchannels; i++)
		n += pieces((double)part->channels[i].bw_gbps, each);
	return n;
}

/* The speed of equal channels at which most is left. */
static double best_speed(const struct tti_local *part)
{
	double best = 0, best_total = 0;

	for (uint32_t i = 0; i < part->nchannels; i++)
		for (uint32_t k = 1; k <= MOST_CHANNELS; k++) {
			const double each = (double)part->channels[i].bw_gbps / k;
			const uint32_t n = count_pieces(part, each);

			if (n <= MOST_CHANNELS && n * each > best_total * (1 + 1e-6)) {
				best = each;
				best_total = n * each;
			}
		}
	return best;
}

/* -- Writing ---------------------------------------------------------------------------- */

static void write_gpu(const struct nccl_writer *w, uint32_t member)
{
	tti_strbuf_addf(w->out, "      <gpu dev=\"%" PRIx64 "\"/>\n",
			tti_nccl_dev(&w->graph->nodes[w->node->members[member]]));
}

static void write_net(const struct nccl_writer *w, uint32_t net)
{
	uint32_t node;

	if (!w->nets)
		return;
	node = tti_graph_find(w->graph, TTI_NODE_NET, w->report->plan->nodes[0].nets[net]);
	if (node != TTI_NODE_NONE)
		tti_strbuf_addf(w->out, "      <net dev=\"%" PRIx64 "\"/>\n",
				tti_nccl_dev(&w->graph->nodes[node]));
}

static void write_channel(const struct nccl_writer *w, const struct tti_channel *channel,
			  enum tti_pattern pattern)
{
	tti_strbuf_add(w->out, "    <channel>\n");
	write_net(w, channel->net_in);
	for (uint32_t i = 0; i < (tti_pattern_has_heads(pattern) ? 1 : w->node->nranks); i++)
		write_gpu(w, channel->order[i]);
	write_net(w, channel->net_out);
	tti_strbuf_add(w->out, "    </channel>\n");
}

static bool is_chain(const struct tti_channel *channel, uint32_t n)
{
	for (uint32_t i = 1; channel->parent && i < n; i++)
		if (channel->parent[channel->order[i]] != channel->order[i - 1])
			return false;
	return true;
}

static const char *worst_type(const struct tti_local *part, bool inter)
{
	uint8_t worst = TTI_PATH_PIX;

	for (uint32_t i = 0; i < part->nchannels; i++) {
		const uint8_t type =
			inter ? part->channels[i].type_inter : part->channels[i].type_intra;

		if (inter ? type > worst : i == 0 || type > worst)
			worst = type;
	}
	return tti_path_type_name((enum tti_path_type)worst);
}

/* Mirrored channels stay in pairs: each piece is followed by that of its mirror. */
static void write_channels(const struct nccl_writer *w, const struct tti_local *part, double each,
			   enum tti_pattern pattern)
{
	const uint32_t step =
		part->pattern == TTI_PATTERN_RING && part->cross_nic == TTI_CROSS_MIRROR && w->nets
			? 2
			: 1;

	for (uint32_t i = 0; i + step <= part->nchannels; i += step)
		for (uint32_t k = 0; k < pieces((double)part->channels[i].bw_gbps, each); k++)
			for (uint32_t at = i; at < i + step; at++)
				write_channel(w, &part->channels[at], pattern);
}

static void write_graph(const struct nccl_writer *w, const struct tti_local *part,
			enum tti_pattern pattern, int id, int number)
{
	const double each = best_speed(part);
	const uint32_t n = count_pieces(part, each);

	tti_strbuf_addf(w->out, "  <!-- %s: %.2f of %.2f GB/s -->\n", tti_pattern_name(pattern),
			n * each, part->total_gbps);
	tti_strbuf_addf(w->out,
			"  <graph id=\"%d\" pattern=\"%d\" crossnic=\"%d\" nchannels=\"%u\" "
			"speedintra=\"%.7g\" speedinter=\"%.7g\" latencyinter=\"0\" "
			"typeintra=\"%s\" typeinter=\"%s\" samechannels=\"0\">\n",
			id, number, w->nets ? (int)part->cross_nic : 0, n, floor(each * 1e3) / 1e3,
			floor(each * 1e3) / 1e3, worst_type(part, false), worst_type(part, true));
	write_channels(w, part, each, pattern);
	tti_strbuf_add(w->out, "  </graph>\n");
}

/* -- Which graphs ------------------------------------------------------------------------ */

static tutti_status search_part(const struct nccl_writer *w, enum tti_pattern pattern,
				enum tti_cross_nic cross, struct tti_local **out)
{
	const struct tti_members members = { w->node->routes,
					     w->node->members,
					     w->node->nranks,
					     w->node->nets,
					     w->nets ? w->node->nnets : 0,
					     0 };
	const struct tti_local_config config = { .pattern = pattern,
						 .cross_nic = cross,
						 .max_channels = MOST_CHANNELS };
	struct tti_loads *loads = NULL;
	tutti_status st;

	TTI_TRY(tti_loads_build(&members, &loads));
	st = tti_local_search(loads, &config, out);
	tti_loads_free(loads);
	return st;
}

/* The file has no form for hops that leave a node by one NIC and come back by another:
 * NCCL would take them directly. */
static bool goes_over_nets(const struct nccl_writer *w, const struct tti_local *part)
{
	for (uint32_t i = 0; i < part->nchannels; i++)
		if (part->channels[i].way) {
			tti_strbuf_addf(
				w->out,
				"  <!-- %s: the plan has %.2f GB/s with hops inside the node "
				"that go over NICs; this file cannot say so, and has the "
				"best without -->\n",
				tti_pattern_name(part->pattern), part->total_gbps);
			return true;
		}
	return false;
}

/* Trees of the plan, if all are chains; else rings that come back to their NIC, which are
 * chains too. */
static tutti_status write_trees(const struct nccl_writer *w)
{
	struct tti_local *part = NULL;
	bool chains = true;

	if (!tti_plan_pattern(w->report->plan, TTI_PATTERN_TREE))
		return TUTTI_OK;
	TTI_TRY(tti_plan_part(w->report->plan, TTI_PATTERN_TREE, 0, &part));
	for (uint32_t i = 0; i < part->nchannels; i++)
		chains &= is_chain(&part->channels[i], w->node->nranks);
	if (goes_over_nets(w, part) || !chains) {
		tti_local_free(part);
		part = NULL;
		TTI_TRY(search_part(w, TTI_PATTERN_RING, TTI_CROSS_SAME, &part));
	}
	if (part->nchannels)
		write_graph(w, part, TTI_PATTERN_TREE, 1, 3);
	tti_local_free(part);
	return TUTTI_OK;
}

static tutti_status write_planned(const struct nccl_writer *w, enum tti_pattern pattern, int id,
				  int number)
{
	struct tti_local *part = NULL;

	if (!tti_plan_pattern(w->report->plan, pattern))
		return TUTTI_OK;
	TTI_TRY(tti_plan_part(w->report->plan, pattern, 0, &part));
	if (goes_over_nets(w, part)) {
		tti_local_free(part);
		part = NULL;
		TTI_TRY(search_part(w, pattern, TTI_CROSS_SAME, &part));
	}
	write_graph(w, part, pattern, id, number);
	tti_local_free(part);
	return TUTTI_OK;
}

/* Two NICs of one number cannot be told apart in the file. */
static tutti_status check_nets(const struct nccl_writer *w)
{
	for (uint32_t i = 0; w->nets && i < w->node->nnets; i++)
		for (uint32_t k = 0; k < i; k++) {
			const struct tti_node *a = &w->graph->nodes[w->node->nets[k]],
					      *b = &w->graph->nodes[w->node->nets[i]];

			if (tti_nccl_dev(a) == tti_nccl_dev(b))
				return tti_fail(
					TUTTI_EINVAL,
					"NCCL's graph file knows NICs by their dev, and %s and %s "
					"both have %d",
					a->full_name, b->full_name, a->net.dev);
		}
	return TUTTI_OK;
}

static tutti_status check(const struct nccl_writer *w)
{
	if (w->report->plan->nkinds > 1)
		return tti_fail(
			TUTTI_EINVAL,
			"NCCL's graph file says what each of several equal nodes does: these "
			"are %u kinds",
			w->report->plan->nkinds);
	if (w->graph->nhosts > TTI_NCCL_HOSTS)
		return tti_fail(TUTTI_EINVAL,
				"NCCL's graph file tells at most %d hosts of an NVLink domain "
				"apart: %s has %u",
				TTI_NCCL_HOSTS, w->graph->source, w->graph->nhosts);
	for (uint32_t i = 0; i < w->node->nranks; i++) {
		const struct tti_node *member = &w->graph->nodes[w->node->members[i]];

		if (member->type != TTI_NODE_GPU || member->gpu.dev < 0)
			return tti_fail(TUTTI_EINVAL,
					"NCCL plans GPUs that a driver has numbered: %s is none",
					member->full_name);
	}
	return check_nets(w);
}

tutti_status tti_plan_nccl(const struct tti_report *report, struct tti_strbuf *out)
{
	const struct tti_job_node *node = &report->job->nodes[0];
	const struct nccl_writer w = { .report = report,
				       .graph = node->routes->paths->graph,
				       .node = node,
				       .nets = report->plan->nnodes > 1,
				       .out = out };

	TTI_TRY(check(&w));
	tti_strbuf_add(out, "<graphs version=\"1\">\n");
	TTI_TRY(write_planned(&w, TTI_PATTERN_RING, 0, 4));
	TTI_TRY(write_trees(&w));
	TTI_TRY(write_planned(&w, TTI_PATTERN_NVLS, 3, 5));
	tti_strbuf_add(out, "</graphs>\n");
	return TUTTI_OK;
}
