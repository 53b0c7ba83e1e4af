/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "insight/plan/explain.h"
#include "topo/graph/words.h"
#include "util/error.h"
#include "util/mem.h"

static const char *type_name(const struct tti_explain *explain, uint8_t type)
{
	return tti_words_path_type(explain->loads->routes->paths->graph, (enum tti_path_type)type);
}

/* -- NICs in use ---------------------------------------------------------------------- */

/* The bandwidth of all channels into and out of a NIC; half of it where two members share it. */
static void carried(const struct tti_explain *explain, uint32_t net, double *in, double *out)
{
	*in = *out = 0;
	for (uint32_t i = 0; i < explain->search->nchannels; i++) {
		const struct tti_channel *channel = &explain->search->channels[i];

		*in += channel->net_in == net ? (double)channel->bw_gbps : 0;
		*out += channel->net_out == net ? (double)channel->bw_gbps : 0;
	}
}

static uint8_t nearest_type(const struct tti_explain *explain, uint32_t net)
{
	uint8_t least = UINT8_MAX;

	for (uint32_t i = 0; i < explain->loads->n; i++)
		if (tti_hop_in(explain->loads, net, i)->type < least)
			least = tti_hop_in(explain->loads, net, i)->type;
	return least;
}

/* "; nearest (PIX): GPU0 GPU1" */
static void say_nearest(const struct tti_explain *explain, uint32_t net, bool names)
{
	const struct tti_loads *loads = explain->loads;
	const uint8_t least = nearest_type(explain, net);
	uint32_t count = 0;

	if (!names) {
		tti_strbuf_addf(explain->out, "; GPUs beside them by %s\n",
				type_name(explain, least));
		return;
	}
	tti_strbuf_addf(explain->out, "; nearest (%s):", type_name(explain, least));
	for (uint32_t i = 0; i < loads->n; i++)
		if (tti_hop_in(loads, net, i)->type == least && ++count <= 4)
			tti_strbuf_addf(explain->out, " %s", tti_explain_member(explain, i));
	if (count > 4)
		tti_strbuf_addf(explain->out, " and %u more", count - 4);
	tti_strbuf_add(explain->out, "\n");
}

static double cable_gbps(const struct tti_explain *explain, uint32_t net)
{
	const struct tti_graph *graph = explain->loads->routes->paths->graph;
	const struct tti_node *node = &graph->nodes[explain->loads->nets[net]];

	for (uint32_t i = 0; i < node->nlinks; i++)
		if (graph->links[node->first_link + i].type == TTI_LINK_NET)
			return (double)graph->links[node->first_link + i].bw_gbps;
	return 0;
}

/* -- Idle NICs ------------------------------------------------------------------------ */

/* The hop of a NIC that is cheapest at the prices of the links, and its dearest row. */
static double cheapest(const struct tti_explain *explain, const struct tti_hop *hops, uint32_t net,
		       uint32_t *row_out)
{
	const struct tti_loads *loads = explain->loads;
	double best = INFINITY;

	for (uint32_t i = 0; i < loads->n; i++) {
		const struct tti_hop *hop = &hops[net * loads->n + i];
		double sum = 0, most = 0;
		uint32_t row = UINT32_MAX;

		if (hop->bw_gbps <= 0)
			continue;
		for (uint32_t k = hop->first; k < hop->first + hop->n; k++) {
			const double cost = (double)loads->loads[k].amount *
					    explain->search->price[loads->loads[k].row];

			sum += cost;
			if (cost > most) {
				most = cost;
				row = loads->loads[k].row;
			}
		}
		if (sum < best) {
			best = sum;
			*row_out = row;
		}
	}
	return best;
}

static void say_idle(const struct tti_explain *explain, uint32_t net)
{
	uint32_t in_row = UINT32_MAX, out_row = UINT32_MAX;
	const double in = cheapest(explain, explain->loads->in, net, &in_row);
	const double out = cheapest(explain, explain->loads->out, net, &out_row);
	char link[TTI_LINK_WORDS];

	tti_strbuf_addf(explain->out, "    %s is idle: ", tti_explain_net(explain, net));
	if (!isfinite(in) || !isfinite(out)) {
		tti_strbuf_add(explain->out, "nothing leads to it\n");
	} else if (in + out < TTI_LEAST_PRICE) {
		tti_strbuf_add(explain->out,
			       "the ways to it are free, but the links between the members are "
			       "full: a channel through it would only take from others\n");
	} else {
		tti_link_words(explain->loads, in >= out ? in_row : out_row, link);
		tti_strbuf_addf(explain->out,
				"the best way %s it is over %s, which is full: what a channel "
				"through it brings, others lose\n",
				in >= out ? "from" : "to", link);
	}
}

/* NICs with equal loads are reported together. */
static bool same_use(const struct tti_explain *explain, uint32_t a, uint32_t b)
{
	double in_a, in_b, out_a, out_b;

	carried(explain, a, &in_a, &out_a);
	carried(explain, b, &in_b, &out_b);
	return fabs(in_a - in_b) < 0.01 && fabs(out_a - out_b) < 0.01 && in_a + out_a > 0 &&
	       fabs(cable_gbps(explain, a) - cable_gbps(explain, b)) < 0.01 &&
	       nearest_type(explain, a) == nearest_type(explain, b);
}

static void say_nets(const struct tti_explain *explain, const char **names, uint32_t n,
		     uint32_t net)
{
	char in_text[24], out_text[24], cable[24];
	double in, out;

	carried(explain, net, &in, &out);
	if (in <= 0 && out <= 0) {
		say_idle(explain, net);
		return;
	}
	tti_gbps_words(in, in_text);
	tti_gbps_words(out, out_text);
	tti_gbps_words(cable_gbps(explain, net), cable);
	tti_strbuf_add(explain->out, "    ");
	tti_words_names(names, n, explain->out);
	tti_strbuf_addf(explain->out, " %s %s in and %s out%s, of %s GB/s",
			n > 1 ? "bring" : "brings", in_text, out_text, n > 1 ? " each" : "", cable);
	say_nearest(explain, net, n == 1);
}

static tutti_status say_all_nets(const struct tti_explain *explain)
{
	const uint32_t nnets = explain->loads->nnets;
	const char **names = tti_calloc((size_t)nnets + 1, sizeof(*names));

	if (!names)
		return tti_fail(TUTTI_ENOMEM, "explanation: out of memory");
	for (uint32_t net = 0; net < nnets; net++) {
		bool said = false;
		uint32_t n = 0;

		for (uint32_t other = 0; other < net; other++)
			said |= same_use(explain, other, net);
		if (said)
			continue;
		names[n++] = tti_explain_net(explain, net);
		for (uint32_t other = net + 1; other < nnets; other++)
			if (same_use(explain, net, other))
				names[n++] = tti_explain_net(explain, other);
		say_nets(explain, names, n, net);
	}
	tti_free(names);
	return TUTTI_OK;
}

/* -- GPUs far from all NICs --------------------------------------------------------------- */

static uint32_t nearest_net(const struct tti_loads *loads, uint32_t member)
{
	uint32_t best = 0;

	for (uint32_t net = 1; net < loads->nnets; net++) {
		const struct tti_hop *a = tti_hop_in(loads, net, member),
				     *b = tti_hop_in(loads, best, member);

		if (a->type < b->type || (a->type == b->type && a->bw_gbps > b->bw_gbps))
			best = net;
	}
	return best;
}

/* Report the members that have no NIC near them. */
static tutti_status say_far(const struct tti_explain *explain)
{
	const struct tti_loads *loads = explain->loads;
	const char **names = tti_calloc((size_t)loads->n + 1, sizeof(*names));
	const struct tti_hop *worst = NULL;
	uint32_t n = 0, nearest = 0;
	char gbps[24];

	if (!names)
		return tti_fail(TUTTI_ENOMEM, "explanation: out of memory");
	for (uint32_t member = 0; member < loads->n; member++) {
		const uint32_t net = nearest_net(loads, member);
		const struct tti_hop *hop = tti_hop_in(loads, net, member);

		if (hop->type <= TTI_PATH_P2C)
			continue;
		names[n++] = tti_explain_member(explain, member);
		if (!worst || hop->type > worst->type ||
		    (hop->type == worst->type && hop->bw_gbps < worst->bw_gbps)) {
			worst = hop;
			nearest = net;
		}
	}
	if (n > 0) {
		tti_gbps_words((double)worst->bw_gbps, gbps);
		tti_strbuf_add(explain->out, "    no NIC is near ");
		tti_words_names(names, n, explain->out);
		tti_strbuf_addf(explain->out, ": at worst %s, over %s, %s GB/s\n",
				tti_explain_net(explain, nearest), type_name(explain, worst->type),
				gbps);
	}
	tti_free(names);
	return TUTTI_OK;
}

tutti_status tti_explain_nics(struct tti_explain *explain)
{
	static const char *const cross[] = { "by the NIC it came in", "by any NIC",
					     "by the NIC that its mirror came in" };

	tti_strbuf_add(explain->out, "  NICs");
	if (explain->search->pattern == TTI_PATTERN_RING)
		tti_strbuf_addf(explain->out, "; a ring leaves a node %s",
				cross[explain->search->cross_nic]);
	tti_strbuf_add(explain->out, "\n");
	TTI_TRY(say_all_nets(explain));
	return say_far(explain);
}
