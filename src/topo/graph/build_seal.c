/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/mem.h"

/* An array of the graph: n elements of nbytes, copied from `from` unless that is NULL. */
static void *keep(struct tti_build *build, const void *from, size_t n, size_t nbytes)
{
	void *array = n > SIZE_MAX / 2 / nbytes ? NULL
						: tti_arena_alloc(&build->graph->arena, n * nbytes);

	if (array && from && n)
		memcpy(array, from, n * nbytes);
	return array;
}

/* -- Names ---------------------------------------------------------------------------- */

/* GPUs without a number of their own get those after the last one of their host. */
static tutti_status number_gpus(struct tti_build *build)
{
	int64_t *next = tti_calloc(build->hosts.n + 1, sizeof(*next));
	tutti_status status = TUTTI_OK;

	if (!next)
		return tti_build_no_memory(build);
	for (size_t i = 0; i < build->nodes.n; i++) {
		const struct tti_node *node = &build->nodes.at[i];

		if (node->type == TTI_NODE_GPU && node->gpu.dev >= next[node->host])
			next[node->host] = (int64_t)node->gpu.dev + 1;
	}
	for (size_t i = 0; i < build->nodes.n && status == TUTTI_OK; i++) {
		struct tti_node *node = &build->nodes.at[i];
		char name[32];

		if (node->type != TTI_NODE_GPU || strcmp(node->name, "GPU") != 0)
			continue;
		snprintf(name, sizeof(name), "GPU%lld", (long long)next[node->host]++);
		node->name = tti_arena_strdup(&build->graph->arena, name);
		if (!node->name)
			status = tti_build_no_memory(build);
	}
	tti_free(next);
	return status;
}

static int by_name(const void *left, const void *right, void *context)
{
	const uint32_t *a = left, *b = right;
	const struct tti_node *nodes = context;
	const struct tti_node *x = &nodes[*a], *y = &nodes[*b];
	int order;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->host != y->host)
		return x->host < y->host ? -1 : 1;
	order = tti_name_order(x->name, y->name);
	return order ? order : (*a > *b) - (*a < *b);
}

/* Whether `name` is among the sorted names. */
static bool is_taken(const struct tti_build *build, const uint32_t *order,
		     const struct tti_node *like, const char *name)
{
	size_t low = 0, high = build->nodes.n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct tti_node *node = &build->nodes.at[order[middle]];
		int side = (node->type > like->type) - (node->type < like->type);

		if (!side)
			side = (node->host > like->host) - (node->host < like->host);
		if (!side)
			side = tti_name_order(node->name, name);
		if (!side)
			return true;
		if (side < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

static bool same_name(const struct tti_node *a, const struct tti_node *b)
{
	return a->type == b->type && a->host == b->host && strcmp(a->name, b->name) == 0;
}

/* The second "eth0" becomes "eth0#2", unless that exists. `names` gets the new names, since
 * the old ones are still searched. */
static tutti_status make_unique(struct tti_build *build, const uint32_t *order, const char **names)
{
	const char *text = NULL;
	unsigned k = 1;

	for (size_t i = 0; i < build->nodes.n; i++) {
		const struct tti_node *node = &build->nodes.at[order[i]];

		names[i] = node->name;
		if (i == 0 || !same_name(node, &build->nodes.at[order[i - 1]])) {
			k = 1;
			continue;
		}
		do {
			const size_t len = strlen(node->name) + 16;
			char *suffixed = tti_arena_alloc(&build->graph->arena, len);

			if (!suffixed)
				return tti_build_no_memory(build);
			snprintf(suffixed, len, "%s#%u", node->name, ++k);
			text = suffixed;
		} while (is_taken(build, order, node, text));
		names[i] = text;
	}
	return TUTTI_OK;
}

static void sort_by_name(struct tti_build *build, uint32_t *order)
{
	for (uint32_t i = 0; i < build->nodes.n; i++)
		order[i] = i;
	if (build->nodes.n)
		qsort_r(order, build->nodes.n, sizeof(*order), by_name, build->nodes.at);
}

/* by_type are parts of one array, in the order of (type, host, name). */
static tutti_status name_nodes(struct tti_build *build)
{
	struct tti_graph *graph = build->graph;
	uint32_t *order = keep(build, NULL, build->nodes.n, sizeof(*order));
	const char **names = tti_calloc(build->nodes.n + 1, sizeof(*names));
	tutti_status status = TUTTI_OK;

	if (!order || !names) {
		tti_free(names);
		return tti_build_no_memory(build);
	}
	sort_by_name(build, order);
	status = make_unique(build, order, names);
	if (status == TUTTI_OK) {
		for (size_t i = 0; i < build->nodes.n; i++)
			build->nodes.at[order[i]].name = names[i];
		sort_by_name(build, order);
		for (size_t i = 0; i < build->nodes.n; i++)
			graph->ntype[build->nodes.at[i].type]++;
		for (int type = 0; type <= TTI_NODE_NIC; type++) {
			graph->by_type[type] = order;
			order += graph->ntype[type];
		}
	}
	tti_free(names);
	return status;
}

/* Only if hosts have to be told apart. */
static tutti_status name_with_hosts(struct tti_build *build)
{
	for (size_t i = 0; i < build->nodes.n; i++) {
		struct tti_node *node = &build->nodes.at[i];
		const char *host = build->hosts.n > 1 ? build->hosts.at[node->host] : NULL;
		size_t len;
		char *full;

		node->full_name = node->name;
		if (!host)
			continue;
		len = strlen(host) + strlen(node->name) + 2;
		full = tti_arena_alloc(&build->graph->arena, len);
		if (!full)
			return tti_build_no_memory(build);
		snprintf(full, len, "%s/%s", host, node->name);
		node->full_name = full;
	}
	return TUTTI_OK;
}

/* -- Links -------------------------------------------------------------------------------- */

static bool same_ends(const struct tti_half *a, const struct tti_half *b)
{
	return a->from == b->from && a->to == b->to && a->type == b->type;
}

/* NVLinks between the same ends add up. Other links between the same ends are one link that
 * the document states twice. */
static void merge(struct tti_build *build)
{
	struct tti_half *at = build->halves.at;
	size_t kept = 0;

	for (size_t i = 0; i < build->halves.n; i++) {
		if (!kept || !same_ends(&at[kept - 1], &at[i])) {
			at[kept++] = at[i];
		} else if (at[i].type == TTI_LINK_NVL || at[i].type == TTI_LINK_C2C) {
			at[kept - 1].count += at[i].count;
			at[kept - 1].bw_gbps += at[i].bw_gbps;
		} else {
			at[kept - 1].bw_gbps = at[i].bw_gbps; /* sorted: the larger */
		}
	}
	build->halves.n = kept;
}

static tutti_status fill_link(struct tti_build *build, uint32_t at)
{
	const struct tti_half *half = &build->halves.at[at];
	const struct tti_half back = { .from = half->to, .to = half->from, .type = half->type };
	size_t low = 0, high = build->halves.n;

	if (half->count > UINT16_MAX)
		return tti_fail(
			TUTTI_EINVAL,
			"%s: %u NVLinks between %s and %s, at most %u can be: correct their count",
			build->doc->source, half->count, build->nodes.at[half->from].name,
			build->nodes.at[half->to].name, UINT16_MAX);
	while (low < high) { /* the first that is not before `back` */
		const size_t middle = low + (high - low) / 2;

		if (tti_build_by_ends(&build->halves.at[middle], &back) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	tti_assert(low < build->halves.n && same_ends(&build->halves.at[low], &back));
	build->graph->links[at] = (struct tti_topo_link){
		.from = half->from,
		.to = half->to,
		.reverse = (uint32_t)low,
		.type = half->type,
		.count = (uint16_t)half->count,
		.bw_gbps = (float)half->bw_gbps,
		.latency_ns = (float)half->latency_ns,
	};
	return TUTTI_OK;
}

static tutti_status link_nodes(struct tti_build *build)
{
	struct tti_graph *graph = build->graph;

	if (build->halves.n)
		qsort(build->halves.at, build->halves.n, sizeof(*build->halves.at),
		      tti_build_by_ends);
	merge(build);
	graph->links = keep(build, NULL, build->halves.n, sizeof(*graph->links));
	if (!graph->links)
		return tti_build_no_memory(build);
	graph->nlinks = (uint32_t)build->halves.n;
	for (uint32_t i = 0; i < graph->nlinks; i++) {
		TTI_TRY(fill_link(build, i));
		build->nodes.at[graph->links[i].from].nlinks++;
	}
	for (uint32_t i = 0, at = 0; i < build->nodes.n; i++) {
		build->nodes.at[i].first_link = at;
		at += build->nodes.at[i].nlinks;
	}
	return TUTTI_OK;
}

tutti_status tti_build_seal(struct tti_build *build)
{
	struct tti_graph *graph = build->graph;

	if (build->nodes.n >= TTI_NODE_NONE || build->halves.n >= UINT32_MAX)
		return tti_fail(TUTTI_EINVAL, "%s: %zu nodes with %zu links are too many",
				build->doc->source, build->nodes.n, build->halves.n);
	TTI_TRY(number_gpus(build));
	TTI_TRY(name_nodes(build));
	TTI_TRY(name_with_hosts(build));
	TTI_TRY(link_nodes(build));
	graph->nodes = keep(build, build->nodes.at, build->nodes.n, sizeof(*graph->nodes));
	graph->notes = keep(build, build->notes.at, build->notes.n, sizeof(*graph->notes));
	graph->hosts = keep(build, build->hosts.at, build->hosts.n, sizeof(*graph->hosts));
	if (!graph->nodes || !graph->notes || !graph->hosts)
		return tti_build_no_memory(build);
	graph->nnodes = (uint32_t)build->nodes.n;
	graph->nnotes = (uint32_t)build->notes.n;
	graph->nhosts = (uint32_t)build->hosts.n;
	return TUTTI_OK;
}
