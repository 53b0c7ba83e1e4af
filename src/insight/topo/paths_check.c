/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/topo/paths_check.h"

#include <stdarg.h>
#include <stdio.h>

#include "insight/topo/path_type_of.h"
#include "topo/paths/path_search.h"
#include "util/error.h"
#include "util/mem.h"

/* One pair and its path. */
struct pair {
	const struct tti_paths *paths;
	uint32_t *stamp; /* of each node: the last pair whose path came by, plus 1 */
	uint32_t number;
	uint32_t from, to; /* nodes */
	const struct tti_path *path;
	const uint32_t *hops;
};

TUTTI_CHECKED TUTTI_PRINTF(2, 3) static tutti_status
	breach(const struct pair *pair, const char *fmt, ...);

static tutti_status breach(const struct pair *pair, const char *fmt, ...)
{
	const struct tti_node *nodes = pair->paths->graph->nodes;
	char text[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return tti_fail(TUTTI_EINTERNAL, "path from %s to %s: %s", nodes[pair->from].name,
			nodes[pair->to].name, text);
}

/* Bandwidth and latency of hops, in their direction or backwards. */
struct made {
	float bw_gbps;
	uint64_t latency;
};

static struct made make(const struct tti_graph *graph, const uint32_t *hops, size_t nhops,
			bool backwards)
{
	struct made made = { 0 };

	for (size_t i = 0; i < nhops; i++) {
		const struct tti_topo_link *link = &graph->links[hops[i]];

		if (backwards)
			link = &graph->links[link->reverse];
		if (i == 0 || link->bw_gbps < made.bw_gbps)
			made.bw_gbps = link->bw_gbps;
		made.latency += tti_path_search_latency(link->latency_ns);
	}
	return made;
}

static tutti_status check_empty(const struct pair *pair)
{
	const struct tti_path *path = pair->path;
	const bool self = pair->from == pair->to;

	if (path->nhops)
		return breach(pair, "%u hops of type %s", path->nhops,
			      tti_path_type_name(path->type));
	if (self && path->bw_gbps != (float)TTI_LOC_GBPS)
		return breach(pair, "%g GB/s to itself", (double)path->bw_gbps);
	if (path->type == TTI_PATH_DIS && (path->bw_gbps != 0 || path->latency_ns != 0))
		return breach(pair, "no path, but %g GB/s", (double)path->bw_gbps);
	if (path->type == TTI_PATH_NET && !(path->bw_gbps > 0))
		return breach(pair, "%g GB/s over the network", (double)path->bw_gbps);
	return TUTTI_OK;
}

static tutti_status check_joined(const struct pair *pair)
{
	const struct tti_paths *paths = pair->paths;
	const struct tti_graph *graph = paths->graph;
	uint32_t at = pair->from;

	if (paths->at && (pair->path->first_hop > paths->nhops ||
			  pair->path->nhops > paths->nhops - pair->path->first_hop))
		return breach(pair, "hops %u to %u of %zu", pair->path->first_hop,
			      pair->path->first_hop + pair->path->nhops, paths->nhops);
	for (size_t i = 0; i < pair->path->nhops; i++) {
		if (pair->hops[i] >= graph->nlinks)
			return breach(pair, "hop %zu is link %u of %u", i, pair->hops[i],
				      graph->nlinks);
		if (graph->links[pair->hops[i]].from != at)
			return breach(pair, "hop %zu does not begin where the last one ended", i);
		if (pair->stamp[at] == pair->number)
			return breach(pair, "it comes by %s twice", graph->nodes[at].name);
		pair->stamp[at] = pair->number;
		at = graph->links[pair->hops[i]].to;
	}
	if (at != pair->to)
		return breach(pair, "its hops end at %s", graph->nodes[at].name);
	return TUTTI_OK;
}

static tutti_status check_figures(const struct pair *pair)
{
	const struct tti_path *path = pair->path;
	const struct tti_graph *graph = pair->paths->graph;
	const struct made made = make(graph, pair->hops, path->nhops, false);
	const enum tti_path_type type = tti_path_type_of(graph, pair->hops, path->nhops);

	if (type != path->type)
		return breach(pair, "type %s, but by its hops %s", tti_path_type_name(path->type),
			      tti_path_type_name(type));
	if (made.bw_gbps != path->bw_gbps)
		return breach(pair, "%g GB/s, but by its hops %g", (double)path->bw_gbps,
			      (double)made.bw_gbps);
	if (tti_path_search_ns(made.latency) != path->latency_ns)
		return breach(pair, "%g ns, but by its hops %g", (double)path->latency_ns,
			      (double)tti_path_search_ns(made.latency));
	return TUTTI_OK;
}

/* The path from t to s, taken backwards, is one way from s to t. */
static tutti_status check_back(struct pair *pair)
{
	const struct tti_path *path = tti_paths_get(pair->paths, pair->from, pair->to);
	const struct tti_path *back = tti_paths_get(pair->paths, pair->to, pair->from);
	const uint32_t *hops = tti_paths_hops(pair->paths, pair->to, pair->from);
	struct made made;

	if (path->type != back->type)
		return breach(pair, "type %s, but %s in the other direction",
			      tti_path_type_name(path->type), tti_path_type_name(back->type));
	if (back->nhops == 0)
		return TUTTI_OK;
	made = make(pair->paths->graph, hops, back->nhops, true);
	if (made.bw_gbps < path->bw_gbps)
		return TUTTI_OK;
	if (made.bw_gbps > path->bw_gbps)
		return breach(pair, "%g GB/s, but there is a way of %g", (double)path->bw_gbps,
			      (double)made.bw_gbps);
	if (back->nhops < path->nhops ||
	    (back->nhops == path->nhops && tti_path_search_ns(made.latency) < path->latency_ns))
		return breach(pair, "%u hops and %g ns, but there is a way of %u and %g",
			      path->nhops, (double)path->latency_ns, back->nhops,
			      (double)tti_path_search_ns(made.latency));
	return TUTTI_OK;
}

static tutti_status check_one(struct pair *pair)
{
	pair->path = tti_paths_get(pair->paths, pair->from, pair->to);
	pair->hops = tti_paths_hops(pair->paths, pair->from, pair->to);
	if (!pair->path || !pair->hops)
		return TUTTI_ENOMEM;
	if (pair->path->type > TTI_PATH_DIS)
		return breach(pair, "type %u", pair->path->type);
	if (pair->path->type >= TTI_PATH_NET || pair->from == pair->to)
		return check_empty(pair);
	TTI_TRY(check_joined(pair));
	return check_figures(pair);
}

static tutti_status check_all(const struct tti_paths *paths, uint32_t *stamp,
			      tutti_status (*check)(struct pair *))
{
	struct pair pair = { .paths = paths, .stamp = stamp };

	for (uint32_t from = 0; from < paths->n; from++) {
		pair.from = paths->endpoints[from];
		if (!tti_paths_has(paths, pair.from))
			continue;
		for (uint32_t to = 0; to < paths->n; to++) {
			pair.to = paths->endpoints[to];
			pair.number++;
			TTI_TRY(check(&pair));
		}
	}
	return TUTTI_OK;
}

tutti_status tti_paths_check(const struct tti_paths *paths)
{
	uint32_t *stamp = tti_calloc(paths->graph->nnodes, sizeof(*stamp));
	tutti_status status;

	if (!stamp)
		return tti_fail(TUTTI_ENOMEM, "no memory to check paths");
	status = check_all(paths, stamp, check_one);
	/* Only hops that are fine can be followed backwards. */
	if (status == TUTTI_OK && paths->at)
		status = check_all(paths, stamp, check_back);
	tti_free(stamp);
	return status;
}
