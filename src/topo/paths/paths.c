/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/paths/paths.h"

#include <pthread.h>
#include <string.h>

#include "topo/paths/path_search.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

/* A table that takes more steps than this, some tenths of a second, is not made. */
#define TABLE_STEPS UINT64_C(20000000)

/* How an endpoint is linked to the network, in both directions. */
struct reach {
	bool any;
	float out_gbps, in_gbps;
	uint64_t out_latency, in_latency;
};

/* What finds the paths from one endpoint after the other, each time a row of the table. */
struct rows {
	const struct tti_graph *graph;
	const uint32_t *endpoints; /* borrowed */
	uint32_t n;
	struct tti_path_search *search;
	struct reach *reach;
};

typedef TTI_VEC(uint32_t) hop_vec;

/* The paths from one endpoint. */
struct row {
	struct tti_path *at;
	hop_vec hops;
};

struct tti_paths_lazy {
	pthread_mutex_t lock; /* of all below; rows that are there do not change */
	struct rows rows;
	struct row *row; /* of each endpoint; at is NULL: not asked for yet      */
	size_t nbytes;   /* in rows                                              */
};

static const char *const type_names[] = {
#define X(name, text) text,
	TTI_PATH_MAP(X)
#undef X
};

const char *tti_path_type_name(enum tti_path_type type)
{
	return type_names[type];
}

bool tti_path_type_parse(const char *text, enum tti_path_type *out)
{
	for (size_t i = 0; i < sizeof(type_names) / sizeof(type_names[0]); i++)
		if (strcmp(text, type_names[i]) == 0) {
			*out = (enum tti_path_type)i;
			return true;
		}
	return false;
}

static tutti_status out_of_memory(uint32_t n)
{
	return tti_fail(TUTTI_ENOMEM, "no memory for the paths of %u endpoints", n);
}

/* -- To and from the network --------------------------------------------------------------- */

/* The hops lead from a NET to the endpoint. */
static struct reach reach_by(const struct tti_graph *graph, const uint32_t *hops, size_t nhops)
{
	struct reach reach = { .any = true };

	for (size_t i = 0; i < nhops; i++) {
		const struct tti_topo_link *in = &graph->links[hops[i]];
		const struct tti_topo_link *out = &graph->links[in->reverse];

		if (i == 0 || in->bw_gbps < reach.in_gbps)
			reach.in_gbps = in->bw_gbps;
		if (i == 0 || out->bw_gbps < reach.out_gbps)
			reach.out_gbps = out->bw_gbps;
		reach.in_latency += tti_path_search_latency(in->latency_ns);
		reach.out_latency += tti_path_search_latency(out->latency_ns);
	}
	return reach;
}

/* A NET is at the network itself: only its link counts. */
static struct reach reach_of_net(const struct tti_graph *graph, uint32_t net)
{
	const struct tti_node *node = &graph->nodes[net];

	if (node->nlinks == 0)
		return (struct reach){ 0 };
	return reach_by(graph, &graph->links[node->first_link].reverse, 1);
}

static tutti_status find_reach(struct rows *rows, uint32_t *hops)
{
	const struct tti_graph *graph = rows->graph;
	const size_t nnets = graph->ntype[TTI_NODE_NET];
	struct tti_path_found found;

	if (nnets == 0)
		return TUTTI_OK;
	TTI_TRY(tti_path_search_run(rows->search, graph->by_type[TTI_NODE_NET], nnets));
	for (uint32_t i = 0; i < rows->n; i++) {
		const uint32_t node = rows->endpoints[i];

		if (graph->nodes[node].type == TTI_NODE_NET) {
			rows->reach[i] = reach_of_net(graph, node);
		} else if (tti_path_search_found(rows->search, node, &found)) {
			tti_path_search_hops(rows->search, &found, hops);
			rows->reach[i] = reach_by(graph, hops, found.nhops);
		}
	}
	return TUTTI_OK;
}

static void rows_release(struct rows *rows)
{
	tti_path_search_free(rows->search);
	tti_free(rows->reach);
	*rows = (struct rows){ 0 };
}

/* `nvb`: paths may lead through another GPU. A zeroed struct may be released. */
static tutti_status rows_init(struct rows *rows, const struct tti_graph *graph,
			      const uint32_t *endpoints, uint32_t n, bool nvb)
{
	/* A path visits no node twice. */
	uint32_t *hops = tti_calloc(graph->nnodes, sizeof(*hops));
	tutti_status status = TUTTI_OK;

	*rows = (struct rows){ .graph = graph, .endpoints = endpoints, .n = n };
	rows->reach = tti_calloc(n, sizeof(*rows->reach));
	if (!hops || !rows->reach)
		status = out_of_memory(rows->n);
	if (status == TUTTI_OK)
		status = tti_path_search_create(graph, nvb, &rows->search);
	if (status == TUTTI_OK)
		status = find_reach(rows, hops);
	if (status != TUTTI_OK)
		rows_release(rows);
	tti_free(hops);
	return status;
}

/* -- A row --------------------------------------------------------------------------------- */

static struct tti_path path_outside(const struct reach *from, const struct reach *to)
{
	struct tti_path path = { .type = TTI_PATH_DIS };

	if (!from->any || !to->any)
		return path;
	path.type = TTI_PATH_NET;
	path.bw_gbps = from->out_gbps < to->in_gbps ? from->out_gbps : to->in_gbps;
	path.latency_ns = tti_path_search_ns(from->out_latency + to->in_latency);
	return path;
}

static tutti_status path_inside(const struct rows *rows, const struct tti_path_found *found,
				struct tti_path *path, hop_vec *hops)
{
	if (found->nhops > UINT16_MAX)
		return tti_fail(TUTTI_EINVAL,
				"%s: a path has %u links, at most %u can be: no machine has such a "
				"path, correct the file",
				rows->graph->source ? rows->graph->source : "the topology",
				found->nhops, UINT16_MAX);
	if (!tti_vec_reserve((void **)&hops->at, &hops->room, hops->n + found->nhops,
			     sizeof(*hops->at)))
		return out_of_memory(rows->n);
	tti_path_search_hops(rows->search, found, hops->at + hops->n);
	*path = (struct tti_path){ .first_hop = (uint32_t)hops->n,
				   .nhops = (uint16_t)found->nhops,
				   .type = (uint8_t)found->type,
				   .bw_gbps = found->bw_gbps,
				   .latency_ns = tti_path_search_ns(found->latency) };
	hops->n += found->nhops;
	return TUTTI_OK;
}

/* The paths from endpoint `from` (an index) to all: row[n]. Their hops are added to `hops`. If
 * that would have more than most_hops, *full_out is set and the row is not complete. */
static tutti_status rows_fill(struct rows *rows, uint32_t from, size_t most_hops,
			      struct tti_path *row, hop_vec *hops, bool *full_out)
{
	*full_out = false;
	TTI_TRY(tti_path_search_run(rows->search, &rows->endpoints[from], 1));
	for (uint32_t to = 0; to < rows->n; to++) {
		struct tti_path_found found;

		if (to == from) {
			row[to] = (struct tti_path){ .type = TTI_PATH_LOC,
						     .first_hop = (uint32_t)hops->n,
						     .bw_gbps = (float)TTI_LOC_GBPS };
		} else if (tti_path_search_found(rows->search, rows->endpoints[to], &found)) {
			if (found.nhops > most_hops || hops->n > most_hops - found.nhops) {
				*full_out = true;
				return TUTTI_OK;
			}
			TTI_TRY(path_inside(rows, &found, &row[to], hops));
		} else {
			row[to] = path_outside(&rows->reach[from], &rows->reach[to]);
		}
	}
	return TUTTI_OK;
}

/* -- The table ----------------------------------------------------------------------------- */

static void drop_table(struct tti_paths *paths, hop_vec *hops)
{
	tti_free(paths->at);
	paths->at = NULL;
	tti_vec_release(hops);
}

static tutti_status fill_table(struct tti_paths *paths, struct rows *rows, hop_vec *hops,
			       bool *full_out)
{
	const size_t nbytes = (size_t)paths->n * paths->n * sizeof(*paths->at);
	const size_t most = (TTI_PATHS_BYTES - nbytes) / sizeof(*hops->at);

	*full_out = false;
	for (uint32_t from = 0; from < paths->n && !*full_out; from++) {
		TTI_TRY(rows_fill(rows, from, most, paths->at + (size_t)from * paths->n, hops,
				  full_out));
		*full_out = *full_out || tti_path_search_steps(rows->search) > TABLE_STEPS;
	}
	return TUTTI_OK;
}

/* paths->at stays NULL if the table would be too large. */
static tutti_status make_table(struct tti_paths *paths, struct rows *rows)
{
	hop_vec hops = { 0 };
	tutti_status status;
	uint32_t *fitted;
	bool full;

	if (paths->n > TTI_PATHS_BYTES / sizeof(*paths->at) / (paths->n ? paths->n : 1))
		return TUTTI_OK;
	paths->at = tti_calloc((size_t)paths->n * paths->n, sizeof(*paths->at));
	if (!paths->at)
		return out_of_memory(paths->n);
	status = fill_table(paths, rows, &hops, &full);
	if (status != TUTTI_OK || full) {
		drop_table(paths, &hops);
		return status;
	}
	fitted = tti_realloc(hops.at, hops.n * sizeof(*hops.at));
	paths->hops = fitted ? fitted : hops.at;
	paths->nhops = hops.n;
	return TUTTI_OK;
}

/* -- Rows on demand ------------------------------------------------------------------------ */

/* Takes `rows`, whatever becomes of it. */
static tutti_status make_lazy(struct tti_paths *paths, struct rows *rows)
{
	struct tti_paths_lazy *lazy = tti_zalloc(sizeof(*lazy));
	struct row *row = tti_calloc(paths->n, sizeof(*row));

	if (!lazy || !row) {
		tti_free(lazy);
		tti_free(row);
		rows_release(rows);
		return out_of_memory(paths->n);
	}
	pthread_mutex_init(&lazy->lock, NULL);
	lazy->rows = *rows;
	lazy->row = row;
	paths->lazy = lazy;
	return TUTTI_OK;
}

static void free_lazy(struct tti_paths *paths)
{
	struct tti_paths_lazy *lazy = paths->lazy;

	if (!lazy)
		return;
	for (uint32_t i = 0; i < paths->n; i++) {
		tti_free(lazy->row[i].at);
		tti_vec_release(&lazy->row[i].hops);
	}
	tti_free(lazy->row);
	rows_release(&lazy->rows);
	pthread_mutex_destroy(&lazy->lock);
	tti_free(lazy);
}

static tutti_status too_much(const struct tti_paths *paths, uint32_t from)
{
	return tti_fail(TUTTI_ENOMEM,
			"the paths from %s, one of %u endpoints, do not fit into the %zu MiB that "
			"are kept: ask for those of fewer endpoints",
			paths->graph->nodes[paths->endpoints[from]].name, paths->n,
			TTI_PATHS_BYTES >> 20);
}

/* With the lock. */
static tutti_status make_row(const struct tti_paths *paths, uint32_t from)
{
	struct tti_paths_lazy *lazy = paths->lazy;
	struct row *row = &lazy->row[from];
	const size_t nbytes = paths->n * sizeof(*row->at);
	tutti_status status;
	bool full = true;

	if (lazy->nbytes + nbytes > TTI_PATHS_BYTES)
		return too_much(paths, from);
	row->at = tti_calloc(paths->n, sizeof(*row->at));
	if (!row->at)
		return out_of_memory(paths->n);
	status = rows_fill(&lazy->rows, from,
			   (TTI_PATHS_BYTES - lazy->nbytes - nbytes) / sizeof(*row->hops.at),
			   row->at, &row->hops, &full);
	if (status == TUTTI_OK && full)
		status = too_much(paths, from);
	if (status != TUTTI_OK) {
		tti_free(row->at);
		row->at = NULL;
		tti_vec_release(&row->hops);
		return status;
	}
	lazy->nbytes += nbytes + row->hops.n * sizeof(*row->hops.at);
	return TUTTI_OK;
}

static const struct row *get_row(const struct tti_paths *paths, uint32_t from)
{
	struct tti_paths_lazy *lazy = paths->lazy;
	struct row *row = &lazy->row[from];
	tutti_status status = TUTTI_OK;

	pthread_mutex_lock(&lazy->lock);
	if (!row->at)
		status = make_row(paths, from);
	pthread_mutex_unlock(&lazy->lock);
	return status == TUTTI_OK ? row : NULL;
}

/* -- The whole ----------------------------------------------------------------------------- */

static tutti_status list_endpoints(struct tti_paths *paths)
{
	const struct tti_graph *graph = paths->graph;
	static const enum tti_node_type types[] = { TTI_NODE_GPU, TTI_NODE_HOST, TTI_NODE_NET };

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		paths->n += graph->ntype[types[i]];
	paths->endpoints = tti_calloc(paths->n, sizeof(*paths->endpoints));
	paths->index = tti_calloc(graph->nnodes, sizeof(*paths->index));
	if (!paths->endpoints || !paths->index)
		return out_of_memory(paths->n);
	paths->n = 0;
	memset(paths->index, 0xff, graph->nnodes * sizeof(*paths->index));
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		for (uint32_t at = 0; at < graph->ntype[types[i]]; at++) {
			const uint32_t node = graph->by_type[types[i]][at];

			paths->index[node] = paths->n;
			paths->endpoints[paths->n++] = node;
		}
	return TUTTI_OK;
}

static tutti_status find_all(struct tti_paths *paths, bool nvb)
{
	struct rows rows;
	tutti_status status;

	TTI_TRY(list_endpoints(paths));
	TTI_TRY(rows_init(&rows, paths->graph, paths->endpoints, paths->n, nvb));
	status = make_table(paths, &rows);
	if (status == TUTTI_OK && !paths->at)
		return make_lazy(paths, &rows);
	rows_release(&rows);
	return status;
}

static tutti_status build(const struct tti_graph *graph, bool nvb, struct tti_paths **out)
{
	struct tti_paths *paths = tti_zalloc(sizeof(*paths));
	tutti_status status;

	if (!paths)
		return tti_fail(TUTTI_ENOMEM, "no memory for paths");
	paths->graph = graph;
	status = find_all(paths, nvb);
	if (status == TUTTI_OK)
		*out = paths;
	else
		tti_paths_free(paths);
	return status;
}

tutti_status tti_paths_build(const struct tti_graph *graph, struct tti_paths **out)
{
	return build(graph, true, out);
}

tutti_status tti_paths_build_without_nvb(const struct tti_graph *graph, struct tti_paths **out)
{
	return build(graph, false, out);
}

void tti_paths_free(struct tti_paths *paths)
{
	if (!paths)
		return;
	free_lazy(paths);
	tti_free(paths->endpoints);
	tti_free(paths->index);
	tti_free(paths->at);
	tti_free(paths->hops);
	tti_free(paths);
}

const struct tti_path *tti_paths_get(const struct tti_paths *paths, uint32_t from, uint32_t to)
{
	const uint32_t i = paths->index[from], j = paths->index[to];
	const struct row *row;

	if (paths->at)
		return &paths->at[(size_t)i * paths->n + j];
	row = get_row(paths, i);
	return row ? &row->at[j] : NULL;
}

const uint32_t *tti_paths_hops(const struct tti_paths *paths, uint32_t from, uint32_t to)
{
	const struct tti_path *path = tti_paths_get(paths, from, to);

	if (!path)
		return NULL;
	return (paths->at ? paths->hops : paths->lazy->row[paths->index[from]].hops.at) +
	       path->first_hop;
}

bool tti_paths_has(const struct tti_paths *paths, uint32_t from)
{
	struct tti_paths_lazy *lazy = paths->lazy;
	bool has;

	if (paths->at)
		return true;
	pthread_mutex_lock(&lazy->lock);
	has = lazy->row[paths->index[from]].at != NULL;
	pthread_mutex_unlock(&lazy->lock);
	return has;
}
