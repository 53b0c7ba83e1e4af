/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "insight/plan/plan_report.h"
#include "plan/search/detour.h"
#include "topo/tree/xml.h"
#include "util/error.h"
#include "util/mem.h"

/* NCCL's graph file: what each of several equal nodes does.
 *
 *     <graphs version="1">
 *       <graph id="0" pattern="4" nchannels="2" speedintra="12" speedinter="12" ...>
 *         <channel><net dev="0"/><gpu dev="0"/> ... <gpu dev="7"/><net dev="0"/></channel>
 *
 * Numbers of devices are hexadecimal; the upper byte is the host in a topology of several,
 * an NVLink domain. A tree is a chain. All channels of a graph carry the same. */

#define MOST_SPEED    1e5
#define MOST_CHANNELS 1024
#define NET_DEV_MASK  ((UINT64_C(1) << 56) - 1)

struct nccl_reader {
	struct tti_xml_doc *doc;
	const struct tti_job_node *node;
	struct tti_loads *loads;
	bool nets;
	struct tti_local *given[TTI_PATTERN_COUNT];
	const struct tti_plan_config *config;
};

static bool find_pattern(int64_t number, int64_t id, enum tti_pattern *out)
{
	static const int numbers[] = {
#define X(name, text, nccl) nccl,
		TTI_PATTERN_MAP(X)
#undef X
	};

	if (number == 3 && id == 2) {
		*out = TTI_PATTERN_COLLNET_CHAIN;
		return true;
	}
	for (int i = 0; i < TTI_PATTERN_COUNT; i++)
		if (numbers[i] == number) {
			*out = (enum tti_pattern)i;
			return true;
		}
	return false;
}

static tutti_status read_dev(const struct nccl_reader *r, const struct tti_xml *node, uint64_t *out)
{
	const char *text = tti_xml_get(node, "dev");
	char *end;

	if (!text || !*text)
		return tti_xml_fail(r->doc, node, "there is no dev");
	errno = 0;
	*out = strtoull(text, &end, 16);
	if (*end || errno || text[0] == '-')
		return tti_xml_fail(r->doc, node, "dev is no hexadecimal number");
	return TUTTI_OK;
}

static tutti_status find_gpu(const struct nccl_reader *r, const struct tti_xml *node, uint32_t *out)
{
	const struct tti_graph *graph = r->loads->routes->paths->graph;
	uint64_t dev;

	TTI_TRY(read_dev(r, node, &dev));
	for (uint32_t i = 0; i < r->loads->n; i++) {
		const struct tti_node *member = &graph->nodes[r->loads->nodes[i]];

		if (member->type == TTI_NODE_GPU && member->gpu.dev >= 0 &&
		    tti_nccl_dev(member) == dev) {
			*out = i;
			return TUTTI_OK;
		}
	}
	return tti_xml_fail(r->doc, node, "%s has no GPU with dev %llx among its %u ranks",
			    graph->source, (unsigned long long)dev, r->loads->n);
}

static tutti_status find_net(const struct nccl_reader *r, const struct tti_xml *node, uint32_t *out)
{
	const struct tti_graph *graph = r->loads->routes->paths->graph;
	uint64_t dev;

	TTI_TRY(read_dev(r, node, &dev));
	if (graph->nhosts == 1) /* as a job had it whose NVLink domains are of several hosts */
		dev &= NET_DEV_MASK;
	for (uint32_t i = 0; i < r->loads->nnets; i++)
		if (tti_nccl_dev(&graph->nodes[r->loads->nets[i]]) == dev) {
			*out = i;
			return TUTTI_OK;
		}
	return tti_xml_fail(r->doc, node, "%s has no NIC with dev %llx", graph->source,
			    (unsigned long long)dev);
}

/* -- Channels ------------------------------------------------------------------------- */

static uint32_t count_children(const struct tti_xml *channel, const char *name)
{
	uint32_t n = 0;

	for (struct tti_xml *at = channel->first; at; at = at->next)
		n += tti_xml_is(at, name);
	return n;
}

static tutti_status read_gpus(const struct nccl_reader *r, const struct tti_xml *in,
			      struct tti_channel *channel, bool head)
{
	uint32_t count = 0;

	for (struct tti_xml *at = in->first; at; at = at->next) {
		uint32_t member = 0;

		if (!tti_xml_is(at, "gpu") || (head && count == 1))
			continue;
		TTI_TRY(find_gpu(r, at, &member));
		for (uint32_t i = 0; i < count; i++)
			if (channel->order[i] == member)
				return tti_xml_fail(r->doc, at, "this GPU is in the channel twice");
		channel->order[count++] = member;
	}
	if (count == (head ? 1 : r->loads->n))
		return TUTTI_OK;
	return tti_xml_fail(r->doc, in, "%u GPUs in a channel of %u ranks", count, r->loads->n);
}

static tutti_status read_nets(const struct nccl_reader *r, const struct tti_xml *in,
			      struct tti_channel *channel)
{
	const uint32_t n = count_children(in, "net");
	uint32_t count = 0;

	channel->net_in = channel->net_out = TTI_NO_NET;
	if (!r->nets && n > 0)
		return tti_xml_fail(r->doc, in, "names NICs, so it is for a job of several nodes");
	if (r->nets && n != 2)
		return tti_xml_fail(r->doc, in,
				    "%u NICs, where a channel comes in by one and leaves by one%s",
				    n, n == 0 ? ": is it for a job of one node?" : "");
	for (struct tti_xml *at = in->first; at; at = at->next)
		if (tti_xml_is(at, "net"))
			TTI_TRY(find_net(r, at,
					 count++ == 0 ? &channel->net_in : &channel->net_out));
	return TUTTI_OK;
}

/* A chain; of a head, all others below it. */
static void hang(const struct nccl_reader *r, struct tti_channel *channel, enum tti_pattern pattern)
{
	const uint32_t n = r->loads->n;
	uint32_t count = 1;

	if (tti_pattern_has_heads(pattern)) {
		const uint32_t head = channel->order[0];

		for (uint32_t i = 0; i < n; i++) {
			channel->parent[i] = i == head ? UINT32_MAX : head;
			if (i != head)
				channel->order[count++] = i;
		}
		return;
	}
	for (uint32_t i = 0; channel->parent && i < n; i++)
		channel->parent[channel->order[i]] = i ? channel->order[i - 1] : UINT32_MAX;
	if (pattern == TTI_PATTERN_BALANCED_TREE || pattern == TTI_PATTERN_SPLIT_TREE)
		channel->second = n > 1 ? channel->order[1] : channel->order[0];
}

/* The worst on the way, as the routes have it. */
static void note_types(const struct nccl_reader *r, struct tti_channel *channel)
{
	for (uint32_t i = 0; i < r->loads->n; i++) {
		const uint32_t to = channel->order[i];
		const uint32_t from = channel->parent ? channel->parent[to]
				      : i             ? channel->order[i - 1]
						      : UINT32_MAX;

		if (from != UINT32_MAX && tti_hop(r->loads, from, to)->type > channel->type_intra)
			channel->type_intra = tti_hop(r->loads, from, to)->type;
	}
	if (r->nets)
		channel->type_inter =
			tti_hop_in(r->loads, channel->net_in, channel->order[0])->type;
}

static tutti_status read_channel(const struct nccl_reader *r, const struct tti_xml *in, double gbps,
				 struct tti_local *out)
{
	struct tti_channel *channel = &out->channels[out->nchannels];
	const bool ring = out->pattern == TTI_PATTERN_RING;

	*channel = (struct tti_channel){ .bw_gbps = (float)gbps, .second = UINT32_MAX };
	channel->order = tti_arena_alloc(&out->arena, r->loads->n * sizeof(*channel->order));
	channel->parent =
		ring ? NULL : tti_arena_alloc(&out->arena, r->loads->n * sizeof(*channel->parent));
	if (!channel->order || (!ring && !channel->parent))
		return tti_fail(TUTTI_ENOMEM, "%s: out of memory", r->doc->source);
	TTI_TRY(read_gpus(r, in, channel, tti_pattern_has_heads(out->pattern)));
	TTI_TRY(read_nets(r, in, channel));
	hang(r, channel, out->pattern);
	note_types(r, channel);
	out->nchannels++;
	out->total_gbps += gbps;
	return TUTTI_OK;
}

/* -- Graphs --------------------------------------------------------------------------- */

static tutti_status read_speed(const struct nccl_reader *r, const struct tti_xml *graph,
			       double *out)
{
	double intra, inter;

	TTI_TRY(tti_xml_real(r->doc, graph, "speedintra", MOST_SPEED, 0, &intra));
	TTI_TRY(tti_xml_real(r->doc, graph, "speedinter", MOST_SPEED, intra, &inter));
	*out = r->nets && inter < intra ? inter : intra;
	if (*out > 0)
		return TUTTI_OK;
	return tti_xml_fail(r->doc, graph,
			    "its channels carry nothing: speedintra %g, speedinter "
			    "%g",
			    intra, inter);
}

/* How much there is at most: from our own search, with hops over NICs where they gain. */
static tutti_status find_bound(const struct nccl_reader *r, struct tti_local *out)
{
	const struct tti_local_config config = { .pattern = out->pattern,
						 .cross_nic = TTI_CROSS_AUTO,
						 .both_ways = r->config->both_ways };
	struct tti_local *search = NULL;

	TTI_TRY(tti_local_search(r->loads, &config, &search));
	out->ms = search->ms;
	out->bound_gbps = search->bound_gbps;
	tti_local_free(search);
	return TUTTI_OK;
}

static tutti_status read_channels(const struct nccl_reader *r, const struct tti_xml *graph,
				  int64_t nchannels, double gbps, struct tti_local *out)
{
	const uint32_t n = count_children(graph, "channel");

	if (n != (uint32_t)nchannels)
		return tti_xml_fail(r->doc, graph, "nchannels is %lld, and there are %u",
				    (long long)nchannels, n);
	out->channels = tti_arena_alloc(&out->arena, n * sizeof(*out->channels));
	if (!out->channels)
		return tti_fail(TUTTI_ENOMEM, "%s: out of memory", r->doc->source);
	for (struct tti_xml *at = graph->first; at; at = at->next)
		if (tti_xml_is(at, "channel"))
			TTI_TRY(read_channel(r, at, gbps, out));
	return find_bound(r, out);
}

static bool makes_sense(const struct nccl_reader *r, enum tti_pattern pattern)
{
	return r->nets ||
	       (pattern != TTI_PATTERN_COLLNET_CHAIN && pattern != TTI_PATTERN_COLLNET_DIRECT);
}

static tutti_status read_graph(struct nccl_reader *r, const struct tti_xml *graph)
{
	int64_t id, number, cross, nchannels;
	enum tti_pattern pattern;
	struct tti_local *out;
	double gbps;

	TTI_TRY(tti_xml_int(r->doc, graph, "id", 0, 1000, -1, &id));
	TTI_TRY(tti_xml_int(r->doc, graph, "pattern", 0, 1000, -1, &number));
	TTI_TRY(tti_xml_int(r->doc, graph, "crossnic", 0, 2, 0, &cross));
	TTI_TRY(tti_xml_int(r->doc, graph, "nchannels", 0, MOST_CHANNELS, 0, &nchannels));
	if (!find_pattern(number, id, &pattern))
		return tti_xml_fail(r->doc, graph, "pattern %lld is none of 1 to 6",
				    (long long)number);
	if (nchannels == 0 || !makes_sense(r, pattern))
		return TUTTI_OK;
	if (r->given[pattern])
		return tti_xml_fail(r->doc, graph, "there are two graphs of %s",
				    tti_pattern_name(pattern));
	TTI_TRY(read_speed(r, graph, &gbps));
	out = tti_zalloc(sizeof(*out));
	if (!out)
		return tti_fail(TUTTI_ENOMEM, "%s: out of memory", r->doc->source);
	r->given[pattern] = out;
	out->pattern = pattern;
	out->cross_nic = (enum tti_cross_nic)cross;
	return read_channels(r, graph, nchannels, gbps, out);
}

static tutti_status read_graphs(struct nccl_reader *r)
{
	const struct tti_xml *root = r->doc->root;
	uint32_t n = 0;

	if (!tti_xml_is(root, "graphs"))
		return tti_xml_fail(r->doc, root, "a graph file of NCCL begins with <graphs>%s",
				    tti_xml_is(root, "system") ? ": this is a topology" : "");
	for (struct tti_xml *at = root->first; at; at = at->next)
		if (tti_xml_is(at, "graph"))
			TTI_TRY(read_graph(r, at));
	for (int i = 0; i < TTI_PATTERN_COUNT; i++)
		n += r->given[i] != NULL;
	return n ? TUTTI_OK : tti_xml_fail(r->doc, root, "there is no graph with channels in it");
}

/* -- All of it ------------------------------------------------------------------------ */

static tutti_status check_nodes(const struct tti_plan_job *job, const char *source)
{
	for (uint32_t node = 1; node < job->nnodes; node++)
		if (job->nodes[node].routes != job->nodes[0].routes ||
		    job->nodes[node].nranks != job->nodes[0].nranks)
			return tti_fail(
				TUTTI_EINVAL,
				"%s: NCCL's graph file says what each of several equal nodes "
				"does, and node %u is another than node 0",
				source, node);
	return TUTTI_OK;
}

static tutti_status read_all(struct nccl_reader *r, const struct tti_plan_job *job,
			     const char *text, size_t nbytes, const char *source,
			     struct tti_strbuf *excess, struct tti_plan **out)
{
	struct tti_members members = { .routes = r->node->routes,
				       .nodes = r->node->members,
				       .n = r->node->nranks,
				       .nets = r->node->nets,
				       .nnets = r->nets ? r->node->nnets : 0 };
	struct tti_plan_config config = *r->config;

	TTI_TRY(check_nodes(job, source));
	TTI_TRY(tti_xml_read(text, nbytes, source, &r->doc));
	if (!r->nets)
		TTI_TRY(tti_detour_nets(&members, r->node->nnets, &members.ninner));
	TTI_TRY(tti_loads_build(&members, &r->loads));
	TTI_TRY(read_graphs(r));
	config.given = r->given;
	TTI_TRY(tti_plan_make(job, &config, out));
	TTI_TRY(tti_plan_fit(*out, job, r->config, excess));
	return tti_plan_check(*out);
}

tutti_status tti_plan_read_nccl(const char *text, size_t nbytes, const char *source,
				const struct tti_plan_job *job,
				const struct tti_plan_config *config, struct tti_strbuf *excess,
				struct tti_plan **out)
{
	struct nccl_reader r = { .node = &job->nodes[0],
				 .nets = job->nnodes > 1,
				 .config = config };
	struct tti_plan *plan = NULL;
	tutti_status st = read_all(&r, job, text, nbytes, source, excess, &plan);

	if (st == TUTTI_EPLAN)
		st = tti_plan_name_source(st, source);
	for (int i = 0; i < TTI_PATTERN_COUNT; i++)
		tti_local_free(r.given[i]);
	tti_loads_free(r.loads);
	tti_xml_free(r.doc);
	if (st == TUTTI_OK)
		*out = plan;
	else
		tti_plan_free(plan);
	return st;
}
