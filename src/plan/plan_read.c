/* SPDX-License-Identifier: BSD-3-Clause */
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "plan/plan.h"
#include "util/error.h"
#include "util/mem.h"

/* A plan as tti_plan_json() writes it, or as somebody edited it. Every error names the
 * source and the place, as "plan.json: patterns.ring.channels[2].ranks[3]: ...". */
struct reader {
	const char *source;
	struct tti_plan *plan;
	char place[160];
	size_t len;
};

/* The most ranks and nodes a file may speak of: a bound on what it can make us allocate. */
#define MOST_RANKS (1 << 22)

TUTTI_CHECKED TUTTI_PRINTF(2, 3) static tutti_status bad(struct reader *r, const char *fmt, ...)
{
	char text[160];
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return tti_fail(TUTTI_EINVAL, "%s: %s: %s", r->source, r->len ? r->place : "the plan",
			text);
}

static tutti_status no_memory(const struct reader *r)
{
	return tti_fail(TUTTI_ENOMEM, "%s: out of memory", r->source);
}

/* Go one step down; leave() goes back to where `before` was. */
TUTTI_PRINTF(2, 3) static size_t enter(struct reader *r, const char *fmt, ...)
{
	const size_t before = r->len;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(r->place + r->len, sizeof(r->place) - r->len, fmt, args);
	va_end(args);
	if (n > 0)
		r->len += (size_t)n < sizeof(r->place) - r->len ? (size_t)n
								: sizeof(r->place) - r->len - 1;
	return before;
}

static void leave(struct reader *r, size_t before)
{
	r->len = before;
	r->place[before] = '\0';
}

static void *room(struct reader *r, size_t nbytes)
{
	return tti_arena_alloc(&r->plan->arena, nbytes + 1);
}

static tutti_status need(struct reader *r, const json_t *in, const char *key, json_type type,
			 json_t **out)
{
	static const char *const names[] = { "an object", "a list",   "a string",
					     "a number",  "a number", "true or false" };

	*out = json_object_get(in, key);
	if (!*out)
		return bad(r, "\"%s\" is missing", key);
	if (json_typeof(*out) != type && !(type == JSON_REAL && json_typeof(*out) == JSON_INTEGER))
		return bad(r, "\"%s\" is not %s", key,
			   type < 6 ? names[type] : "what it should be");
	return TUTTI_OK;
}

static tutti_status read_number(struct reader *r, const json_t *in, const char *key, double *out)
{
	json_t *value;

	TTI_TRY(need(r, in, key, JSON_REAL, &value));
	*out = json_number_value(value);
	if (!isfinite(*out) || *out < 0 || *out > 1e9)
		return bad(r, "\"%s\" is %g, which is no bandwidth or time", key, *out);
	return TUTTI_OK;
}

static tutti_status read_count(struct reader *r, const json_t *in, const char *key, uint32_t most,
			       uint32_t *out)
{
	json_t *value;

	TTI_TRY(need(r, in, key, JSON_INTEGER, &value));
	if (json_integer_value(value) < 0 || json_integer_value(value) > most)
		return bad(r, "\"%s\" is %lld, and not between 0 and %u", key,
			   (long long)json_integer_value(value), most);
	*out = (uint32_t)json_integer_value(value);
	return TUTTI_OK;
}

/* A list of ranks; `none`: -1 is allowed. */
static tutti_status read_ranks(struct reader *r, const json_t *in, const char *key, bool none,
			       uint32_t **out, uint32_t *n_out)
{
	const size_t before = enter(r, ".%s", key);
	json_t *list;

	TTI_TRY(need(r, in, key, JSON_ARRAY, &list));
	if (json_array_size(list) > r->plan->nranks)
		return bad(r, "%zu entries, and there are %u ranks", json_array_size(list),
			   r->plan->nranks);
	*n_out = (uint32_t)json_array_size(list);
	*out = room(r, *n_out * sizeof(**out));
	if (!*out)
		return no_memory(r);
	for (uint32_t i = 0; i < *n_out; i++) {
		const json_t *value = json_array_get(list, i);
		const long long rank = json_is_integer(value) ? json_integer_value(value) : -2;

		if (rank < (none ? -1 : 0) || rank >= r->plan->nranks)
			return bad(r, "entry %u is no rank of 0 to %u", i, r->plan->nranks - 1);
		(*out)[i] = rank < 0 ? UINT32_MAX : (uint32_t)rank;
	}
	leave(r, before);
	return TUTTI_OK;
}

static tutti_status read_string(struct reader *r, const json_t *value, const char **out)
{
	if (!json_is_string(value))
		return bad(r, "not a string");
	*out = tti_arena_strdup(&r->plan->arena, json_string_value(value));
	return *out ? TUTTI_OK : no_memory(r);
}

/* -- Hosts ------------------------------------------------------------------------- */

static tutti_status read_nets(struct reader *r, const json_t *in, struct tti_plan_node *node)
{
	json_t *nets;

	TTI_TRY(need(r, in, "nets", JSON_ARRAY, &nets));
	node->nnets = (uint32_t)json_array_size(nets);
	node->nets = room(r, node->nnets * sizeof(*node->nets));
	if (!node->nets)
		return no_memory(r);
	for (uint32_t i = 0; i < node->nnets; i++)
		TTI_TRY(read_string(r, json_array_get(nets, i), &node->nets[i]));
	return TUTTI_OK;
}

static tutti_status read_endpoints(struct reader *r, const json_t *in,
				   const struct tti_plan_node *node, uint32_t index)
{
	json_t *names = json_object_get(in, "endpoints");

	for (uint32_t i = 0; i < node->nranks; i++) {
		struct tti_plan_rank *rank = &r->plan->ranks[node->ranks[i]];
		const char *name = json_string_value(json_array_get(names, i));

		if (rank->member != UINT32_MAX)
			return bad(r, "rank %u is on node %u too", node->ranks[i], rank->node);
		rank->node = index;
		rank->member = i;
		rank->name = tti_arena_strdup(&r->plan->arena, name ? name : "");
		if (!rank->name)
			return no_memory(r);
	}
	return TUTTI_OK;
}

static tutti_status read_node(struct reader *r, const json_t *in, uint32_t index)
{
	struct tti_plan_node *node = &r->plan->nodes[index];
	const size_t before = enter(r, "[%u]", index);
	json_t *name;

	if (!json_is_object(in))
		return bad(r, "not an object");
	TTI_TRY(need(r, in, "name", JSON_STRING, &name));
	TTI_TRY(read_string(r, name, &node->name));
	TTI_TRY(read_count(r, in, "kind", r->plan->nnodes, &node->kind));
	TTI_TRY(read_ranks(r, in, "ranks", false, &node->ranks, &node->nranks));
	TTI_TRY(read_endpoints(r, in, node, index));
	TTI_TRY(read_nets(r, in, node));
	if (node->kind >= r->plan->nkinds)
		r->plan->nkinds = node->kind + 1;
	leave(r, before);
	return TUTTI_OK;
}

static tutti_status read_hosts(struct reader *r, const json_t *root)
{
	struct tti_plan *plan = r->plan;
	const size_t before = enter(r, "hosts");
	json_t *hosts;

	TTI_TRY(need(r, root, "hosts", JSON_ARRAY, &hosts));
	if (json_array_size(hosts) != plan->nnodes)
		return bad(r, "%zu entries, and \"nodes\" is %u", json_array_size(hosts),
			   plan->nnodes);
	plan->nodes = room(r, plan->nnodes * sizeof(*plan->nodes));
	plan->ranks = room(r, plan->nranks * sizeof(*plan->ranks));
	if (!plan->nodes || !plan->ranks)
		return no_memory(r);
	for (uint32_t rank = 0; rank < plan->nranks; rank++)
		plan->ranks[rank].member = UINT32_MAX;
	for (uint32_t node = 0; node < plan->nnodes; node++)
		TTI_TRY(read_node(r, json_array_get(hosts, node), node));
	for (uint32_t rank = 0; rank < plan->nranks; rank++)
		if (plan->ranks[rank].member == UINT32_MAX)
			return bad(r, "rank %u is on none of them", rank);
	leave(r, before);
	return TUTTI_OK;
}

/* -- Channels ---------------------------------------------------------------------- */

static tutti_status find_net(struct reader *r, const struct tti_plan_node *node, const json_t *name,
			     int32_t *out)
{
	const char *text = json_string_value(name);
	uint32_t nfound = 0;

	for (uint32_t i = 0; text && i < node->nnets; i++)
		if (!strcmp(node->nets[i], text)) {
			*out = (int32_t)i;
			nfound++;
		}
	if (nfound > 1)
		return bad(r, "node %s has %u NICs %s: name them as HOST/%s, here and in \"hosts\"",
			   node->name, nfound, text, text);
	if (nfound == 1)
		return TUTTI_OK;
	return bad(r, "%s is no NIC of node %s", text ? text : "an entry", node->name);
}

static tutti_status read_ends(struct reader *r, const json_t *in, struct tti_plan_channel *channel)
{
	const struct tti_plan *plan = r->plan;
	const size_t before = enter(r, ".nets");
	json_t *nets;

	TTI_TRY(need(r, in, "nets", JSON_ARRAY, &nets));
	if (json_array_size(nets) == 0 && plan->nnodes == 1) {
		leave(r, before);
		return TUTTI_OK;
	}
	if (json_array_size(nets) != plan->nnodes)
		return bad(r, "%zu entries for %u nodes", json_array_size(nets), plan->nnodes);
	channel->ends = room(r, plan->nnodes * sizeof(*channel->ends));
	if (!channel->ends)
		return no_memory(r);
	for (uint32_t node = 0; node < plan->nnodes; node++) {
		const json_t *pair = json_array_get(nets, node);

		TTI_TRY(find_net(r, &plan->nodes[node], json_array_get(pair, 0),
				 &channel->ends[node].in));
		TTI_TRY(find_net(r, &plan->nodes[node], json_array_get(pair, 1),
				 &channel->ends[node].out));
	}
	leave(r, before);
	return TUTTI_OK;
}

/* One hop: [from, "out", "in", to]. */
static tutti_status read_way(struct reader *r, const json_t *in, const uint32_t *before,
			     struct tti_plan_end *ways)
{
	const json_t *first = json_array_get(in, 0), *last = json_array_get(in, 3);
	const long long from = json_integer_value(first), to = json_integer_value(last);
	const struct tti_plan_node *node = &r->plan->nodes[0];
	struct tti_plan_end way = { -1, -1 };

	if (json_array_size(in) != 4 || !json_is_integer(first) || !json_is_integer(last))
		return bad(r, "not a rank, the NIC it leaves by, the NIC it comes back by, a rank");
	TTI_TRY(find_net(r, node, json_array_get(in, 1), &way.out));
	TTI_TRY(find_net(r, node, json_array_get(in, 2), &way.in));
	if (from < 0 || to < 0 || to >= r->plan->nranks || before[to] != (uint64_t)from)
		return bad(r, "the channel has no hop from rank %lld to %lld", from, to);
	if (ways[to].out >= 0)
		return bad(r, "the hop from rank %lld to %lld is there twice", from, to);
	ways[to] = way;
	return TUTTI_OK;
}

static tutti_status read_list_of_ways(struct reader *r, const json_t *list,
				      struct tti_plan_channel *channel)
{
	const uint32_t n = r->plan->nranks;
	uint32_t *before = room(r, n * sizeof(*before));

	channel->ways = room(r, n * sizeof(*channel->ways));
	if (!channel->ways || !before)
		return no_memory(r);
	for (uint32_t rank = 0; rank < n; rank++) {
		channel->ways[rank] = (struct tti_plan_end){ -1, -1 };
		before[rank] = UINT32_MAX;
	}
	for (uint32_t i = 0; i < channel->nranks; i++)
		before[channel->ranks[i]] = tti_plan_before(channel, i);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const size_t here = enter(r, "[%zu]", i);

		TTI_TRY(read_way(r, json_array_get(list, i), before, channel->ways));
		leave(r, here);
	}
	return TUTTI_OK;
}

/* Hops that are not named are direct, as in files that know of no others. */
static tutti_status read_ways(struct reader *r, const json_t *in, struct tti_plan_channel *channel)
{
	size_t before;
	json_t *list;

	if (!json_object_get(in, "over_nets"))
		return TUTTI_OK;
	before = enter(r, ".over_nets");
	TTI_TRY(need(r, in, "over_nets", JSON_ARRAY, &list));
	if (r->plan->nnodes > 1)
		return bad(r, "hops inside a node go over NICs only where there is one node");
	if (json_array_size(list) > 0)
		TTI_TRY(read_list_of_ways(r, list, channel));
	leave(r, before);
	return TUTTI_OK;
}

static tutti_status read_type(struct reader *r, const json_t *in, const char *key, uint8_t *out)
{
	enum tti_path_type type = TTI_PATH_LOC;
	json_t *text;

	TTI_TRY(need(r, in, key, JSON_STRING, &text));
	if (!tti_path_type_parse(json_string_value(text), &type))
		return bad(r, "\"%s\" is %s, which is no type of path", key,
			   json_string_value(text));
	*out = (uint8_t)type;
	return TUTTI_OK;
}

static tutti_status read_channel(struct reader *r, const json_t *in, uint32_t index,
				 struct tti_plan_channel *channel)
{
	const size_t before = enter(r, ".channels[%u]", index);
	uint32_t nparents;
	double gbps;

	if (!json_is_object(in))
		return bad(r, "not an object");
	TTI_TRY(read_number(r, in, "bw_gbps", &gbps));
	channel->bw_gbps = (float)gbps;
	TTI_TRY(read_ranks(r, in, "ranks", false, &channel->ranks, &channel->nranks));
	if (json_object_get(in, "parents")) {
		TTI_TRY(read_ranks(r, in, "parents", true, &channel->parent, &nparents));
		if (nparents != r->plan->nranks)
			return bad(r, "%u parents for %u ranks", nparents, r->plan->nranks);
	}
	TTI_TRY(read_ends(r, in, channel));
	TTI_TRY(read_ways(r, in, channel));
	TTI_TRY(read_type(r, in, "type_intra", &channel->type_intra));
	TTI_TRY(read_type(r, in, "type_inter", &channel->type_inter));
	leave(r, before);
	return TUTTI_OK;
}

/* The total is what the channels add up to: an edited file need not say it again. */
static tutti_status read_channels(struct reader *r, const json_t *in,
				  struct tti_plan_pattern *pattern)
{
	json_t *channels;

	TTI_TRY(need(r, in, "channels", JSON_ARRAY, &channels));
	pattern->nchannels = (uint32_t)json_array_size(channels);
	pattern->channels = room(r, pattern->nchannels * sizeof(*pattern->channels));
	if (!pattern->channels)
		return no_memory(r);
	for (uint32_t i = 0; i < pattern->nchannels; i++)
		TTI_TRY(read_channel(r, json_array_get(channels, i), i, &pattern->channels[i]));
	pattern->total_gbps = tti_plan_total(pattern);
	return TUTTI_OK;
}

static tutti_status read_pattern(struct reader *r, const char *name, const json_t *in)
{
	struct tti_plan_pattern *pattern = &r->plan->patterns[r->plan->npatterns];
	const size_t before = enter(r, ".%.20s", name);
	const json_t *limit = json_object_get(in, "limit");
	uint32_t cross = 0;

	if (!tti_pattern_parse(name, &pattern->pattern))
		return bad(r, "there is no such pattern");
	if (!json_is_object(in))
		return bad(r, "not an object");
	TTI_TRY(read_number(r, in, "bound_bw_gbps", &pattern->bound_gbps));
	if (json_object_get(in, "search_ms"))
		TTI_TRY(read_number(r, in, "search_ms", &pattern->search_ms));
	if (json_object_get(in, "cross_nic"))
		TTI_TRY(read_count(r, in, "cross_nic", TTI_CROSS_MIRROR, &cross));
	pattern->cross_nic = (enum tti_cross_nic)cross;
	if (json_is_string(limit))
		TTI_TRY(read_string(r, limit, &pattern->limit));
	TTI_TRY(read_channels(r, in, pattern));
	r->plan->npatterns++;
	leave(r, before);
	return TUTTI_OK;
}

static tutti_status read_patterns(struct reader *r, const json_t *root)
{
	json_t *patterns, *pattern;
	const char *name;

	TTI_TRY(need(r, root, "patterns", JSON_OBJECT, &patterns));
	enter(r, "patterns");
	if (json_object_size(patterns) > TTI_PATTERN_COUNT)
		return bad(r, "%zu of them; there are %d", json_object_size(patterns),
			   TTI_PATTERN_COUNT);
	r->plan->patterns = room(r, TTI_PATTERN_COUNT * sizeof(*r->plan->patterns));
	if (!r->plan->patterns)
		return no_memory(r);
	json_object_foreach(patterns, name, pattern) TTI_TRY(read_pattern(r, name, pattern));
	leave(r, 0);
	return TUTTI_OK;
}

static tutti_status read_plan(struct reader *r, const json_t *root)
{
	struct tti_plan *plan = r->plan;

	if (!json_is_object(root))
		return bad(r, "not an object");
	TTI_TRY(read_count(r, root, "nodes", MOST_RANKS, &plan->nnodes));
	TTI_TRY(read_count(r, root, "ranks", MOST_RANKS, &plan->nranks));
	if (plan->nnodes == 0 || plan->nranks < plan->nnodes)
		return bad(r, "%u ranks on %u nodes", plan->nranks, plan->nnodes);
	TTI_TRY(read_hosts(r, root));
	TTI_TRY(read_patterns(r, root));
	TTI_TRY(tti_plan_check(plan));
	plan->hash = tti_plan_hash(plan);
	return TUTTI_OK;
}

tutti_status tti_plan_name_source(tutti_status status, const char *source)
{
	char text[512];

	(void)snprintf(text, sizeof(text), "%s", tti_error_text());
	return tti_fail_quiet(status, "%s: %s", source, text);
}

tutti_status tti_plan_read(const char *text, size_t nbytes, const char *source,
			   struct tti_plan **out)
{
	struct reader r = { .source = source, .plan = tti_zalloc(sizeof(*r.plan)) };
	json_error_t error;
	json_t *root;
	tutti_status st;

	if (!r.plan)
		return no_memory(&r);
	root = json_loadb(text, nbytes, JSON_REJECT_DUPLICATES, &error);
	st = root ? read_plan(&r, root)
		  : tti_fail(TUTTI_EINVAL, "%s:%d:%d: %s", source, error.line, error.column,
			     error.text);
	json_decref(root);
	if (st == TUTTI_EPLAN)
		st = tti_plan_name_source(st, source);
	if (st == TUTTI_OK)
		*out = r.plan;
	else
		tti_plan_free(r.plan);
	return st;
}
