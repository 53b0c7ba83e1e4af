/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/paths/paths.h"

#include <pthread.h>
#include <string.h>

#include "topo/paths/path_row.h"
#include "util/error.h"
#include "util/mem.h"

/* A table that takes more steps than this, some tenths of a second, is not made. */
#define TABLE_STEPS UINT64_C(20000000)

/* The paths from one endpoint. */
struct row {
	struct tti_path *at;
	tti_path_hops hops;
};

struct tti_paths_lazy {
	pthread_mutex_t lock; /* of all below; rows that are there do not change */
	struct tti_path_rows rows;
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

static tutti_status out_of_memory(const struct tti_paths *paths)
{
	return tti_fail(TUTTI_ENOMEM, "no memory for the paths of %u endpoints", paths->n);
}

/* -- The table ----------------------------------------------------------------------------- */

static void drop_table(struct tti_paths *paths, tti_path_hops *hops)
{
	tti_free(paths->at);
	paths->at = NULL;
	tti_vec_release(hops);
}

static tutti_status fill_table(struct tti_paths *paths, struct tti_path_rows *rows,
			       tti_path_hops *hops, bool *full_out)
{
	const size_t nbytes = (size_t)paths->n * paths->n * sizeof(*paths->at);
	const size_t most = (TTI_PATHS_BYTES - nbytes) / sizeof(*hops->at);

	*full_out = false;
	for (uint32_t from = 0; from < paths->n && !*full_out; from++) {
		TTI_TRY(tti_path_rows_fill(rows, from, most, paths->at + (size_t)from * paths->n,
					   hops, full_out));
		*full_out = *full_out || tti_path_search_steps(rows->search) > TABLE_STEPS;
	}
	return TUTTI_OK;
}

/* paths->at stays NULL if the table would be too large. */
static tutti_status make_table(struct tti_paths *paths, struct tti_path_rows *rows)
{
	tti_path_hops hops = { 0 };
	tutti_status status;
	uint32_t *fitted;
	bool full;

	if (paths->n > TTI_PATHS_BYTES / sizeof(*paths->at) / (paths->n ? paths->n : 1))
		return TUTTI_OK;
	paths->at = tti_calloc((size_t)paths->n * paths->n, sizeof(*paths->at));
	if (!paths->at)
		return out_of_memory(paths);
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
static tutti_status make_lazy(struct tti_paths *paths, struct tti_path_rows *rows)
{
	struct tti_paths_lazy *lazy = tti_zalloc(sizeof(*lazy));
	struct row *row = tti_calloc(paths->n, sizeof(*row));

	if (!lazy || !row) {
		tti_free(lazy);
		tti_free(row);
		tti_path_rows_release(rows);
		return out_of_memory(paths);
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
	tti_path_rows_release(&lazy->rows);
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
		return out_of_memory(paths);
	status = tti_path_rows_fill(&lazy->rows, from,
				    (TTI_PATHS_BYTES - lazy->nbytes - nbytes) /
					    sizeof(*row->hops.at),
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
		return out_of_memory(paths);
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
	struct tti_path_rows rows;
	tutti_status status;

	TTI_TRY(list_endpoints(paths));
	TTI_TRY(tti_path_rows_init(&rows, paths->graph, paths->endpoints, paths->n, nvb));
	status = make_table(paths, &rows);
	if (status == TUTTI_OK && !paths->at)
		return make_lazy(paths, &rows);
	tti_path_rows_release(&rows);
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
