/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/print/path_matrix.h"

#include <stdio.h>
#include <string.h>

#include "insight/print/print_words.h"
#include "topo/graph/words.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

#define LABEL_WIDTH 9

static unsigned count_nvlinks(const struct tti_paths *paths, const struct tti_path *path)
{
	unsigned least = 0;

	for (unsigned i = 0; i < path->nhops; i++) {
		const struct tti_topo_link *link =
			&paths->graph->links[paths->hops[path->first_hop + i]];

		if (link->type == TTI_LINK_NVL && (!least || link->count < least))
			least = link->count;
	}
	return least;
}

static struct tti_matrix_cell cell_of(const struct tti_routes *routes, uint32_t from, uint32_t to)
{
	const struct tti_path *path = tti_paths_get(routes->paths, from, to);

	return (struct tti_matrix_cell){
		.path = path,
		.route = tti_routes_get(routes, from, to),
		.nvlinks = path->type == TTI_PATH_NVL ? count_nvlinks(routes->paths, path) : 0,
	};
}

bool tti_matrix_same(const struct tti_matrix_cell *a, const struct tti_matrix_cell *b)
{
	return a->path && b->path && a->path->type == b->path->type &&
	       a->route->type == b->route->type && a->route->why == b->route->why &&
	       a->nvlinks == b->nvlinks && a->route->bw_gbps >= b->route->bw_gbps &&
	       a->route->bw_gbps <= b->route->bw_gbps;
}

/* Whether everybody else sees a and b matrix, and they him. */
static bool are_alike(const struct tti_routes *routes, const uint32_t *all, uint32_t n, uint32_t a,
		      uint32_t b)
{
	const struct tti_graph *graph = routes->paths->graph;

	if (graph->nodes[a].type != graph->nodes[b].type ||
	    tti_graph_cpu_of(graph, a) != tti_graph_cpu_of(graph, b))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		struct tti_matrix_cell of_a, of_b;

		if (all[i] == a || all[i] == b)
			continue;
		of_a = cell_of(routes, a, all[i]);
		of_b = cell_of(routes, b, all[i]);
		if (!tti_matrix_same(&of_a, &of_b))
			return false;
		of_a = cell_of(routes, all[i], a);
		of_b = cell_of(routes, all[i], b);
		if (!tti_matrix_same(&of_a, &of_b))
			return false;
	}
	return true;
}

/* The endpoints to show, in *out (tti_free). */
static uint32_t *list_shown(const struct tti_graph *graph, uint32_t *n_out)
{
	const enum tti_node_type first = graph->ntype[TTI_NODE_GPU] ? TTI_NODE_GPU : TTI_NODE_HOST;
	const uint32_t nfirst = graph->ntype[first], nnets = graph->ntype[TTI_NODE_NET];
	uint32_t *all = tti_calloc((size_t)nfirst + nnets + 1, sizeof(*all));

	*n_out = nfirst + nnets;
	if (all && nfirst)
		memcpy(all, graph->by_type[first], nfirst * sizeof(*all));
	if (all && nnets)
		memcpy(all + nfirst, graph->by_type[TTI_NODE_NET], nnets * sizeof(*all));
	return all;
}

static bool name_group(struct tti_path_matrix *matrix, struct tti_matrix_group *group)
{
	const struct tti_graph *graph = matrix->routes->paths->graph;
	const char **names = tti_arena_alloc(&matrix->arena, group->n * sizeof(*names));
	struct tti_strbuf buf = { 0 };
	char *text;
	size_t host;

	if (!names)
		return false;
	for (uint32_t i = 0; i < group->n; i++)
		names[i] = graph->nodes[group->nodes[i]].name;
	if (graph->nhosts > 1) {
		tti_words_text(graph->hosts[graph->nodes[group->nodes[0]].host], &buf);
		tti_strbuf_add(&buf, " ");
	}
	host = buf.len;
	tti_words_names(names, group->n, &buf);
	text = tti_strbuf_take(&buf);
	group->names = text ? tti_arena_strdup(&matrix->arena, text) : NULL;
	group->bare = group->names ? group->names + host : NULL;
	tti_free(text);
	return group->names != NULL;
}

/* Groups whose names are too long for a heading are numbered by type. */
static bool label_groups(struct tti_path_matrix *matrix)
{
	const struct tti_graph *graph = matrix->routes->paths->graph;
	uint32_t seen[TTI_NODE_NIC + 1] = { 0 };
	bool needed[TTI_NODE_NIC + 1] = { false };
	char text[32];

	for (uint32_t i = 0; i < matrix->n; i++)
		if (tti_print_width(matrix->at[i].names) > LABEL_WIDTH)
			needed[graph->nodes[matrix->at[i].nodes[0]].type] = true;
	for (uint32_t i = 0; i < matrix->n; i++) {
		struct tti_matrix_group *group = &matrix->at[i];
		const enum tti_node_type type = graph->nodes[group->nodes[0]].type;

		snprintf(text, sizeof(text), "%s%u",
			 type == TTI_NODE_NET   ? "NIC"
			 : type == TTI_NODE_GPU ? "G"
						: "CPU",
			 seen[type]++);
		group->label = needed[type] ? tti_arena_strdup(&matrix->arena, text) : group->names;
		if (!group->label)
			return false;
	}
	return true;
}

/* One group for each that is like none before it. `all` is sorted by group at the end:
 * members stand together, in their order. */
static bool make_groups(struct tti_path_matrix *matrix, const uint32_t *all, uint32_t n)
{
	const bool merge = n > TTI_MATRIX_COLUMNS;
	uint32_t *group_of = tti_arena_alloc(&matrix->arena, ((size_t)n + 1) * sizeof(*group_of));
	uint32_t *leader = tti_arena_alloc(&matrix->arena, ((size_t)n + 1) * sizeof(*leader));
	uint32_t *members = tti_arena_alloc(&matrix->arena, ((size_t)n + 1) * sizeof(*members));
	uint32_t used = 0;

	if (!group_of || !leader || !members)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = merge ? 0 : matrix->n;

		while (k < matrix->n && !are_alike(matrix->routes, all, n, leader[k], all[i]))
			k++;
		if (k == matrix->n)
			leader[matrix->n++] = all[i];
		group_of[i] = k;
	}
	matrix->at = tti_arena_alloc(&matrix->arena, ((size_t)matrix->n + 1) * sizeof(*matrix->at));
	if (!matrix->at)
		return false;
	for (uint32_t k = 0; k < matrix->n; k++) {
		matrix->at[k].nodes = members + used;
		for (uint32_t i = 0; i < n; i++)
			if (group_of[i] == k)
				members[used++] = all[i];
		matrix->at[k].n = (uint32_t)(members + used - matrix->at[k].nodes);
		if (!name_group(matrix, &matrix->at[k]))
			return false;
	}
	return label_groups(matrix);
}

/* Signs in the order in which a reader meets them. */
static void find_marks(struct tti_path_matrix *matrix)
{
	static const char signs[] = TTI_MATRIX_SIGNS;
	size_t n = 0;

	for (uint32_t i = 0; i < matrix->n; i++)
		for (uint32_t j = 0; j < matrix->n; j++) {
			const struct tti_matrix_cell cell = tti_matrix_cell(matrix, i, j);

			if (cell.path && cell.route->why != TTI_ROUTE_WIRED &&
			    cell.route->why != TTI_ROUTE_NO_WAY && !matrix->marks[cell.route->why])
				matrix->marks[cell.route->why] = signs[n++ % (sizeof(signs) - 1)];
		}
}

tutti_status tti_path_matrix_find(const struct tti_routes *routes, struct tti_path_matrix *out)
{
	uint32_t n, *all;
	bool good;

	*out = (struct tti_path_matrix){ .routes = routes };
	TTI_TRY(tti_routes_want_all(routes));
	all = list_shown(routes->paths->graph, &n);
	good = all && make_groups(out, all, n);
	tti_free(all);
	if (good) {
		find_marks(out);
		return TUTTI_OK;
	}
	tti_path_matrix_release(out);
	return tti_fail(TUTTI_ENOMEM, "matrix of %u endpoints: out of memory", n);
}

void tti_path_matrix_release(struct tti_path_matrix *matrix)
{
	tti_arena_release(&matrix->arena);
	*matrix = (struct tti_path_matrix){ 0 };
}

struct tti_matrix_cell tti_matrix_cell(const struct tti_path_matrix *matrix, uint32_t from,
				       uint32_t to)
{
	const struct tti_matrix_group *a = &matrix->at[from], *b = &matrix->at[to];

	if (from != to)
		return cell_of(matrix->routes, a->nodes[0], b->nodes[0]);
	if (a->n == 1)
		return (struct tti_matrix_cell){ 0 };
	return cell_of(matrix->routes, a->nodes[0], a->nodes[1]);
}

const char *tti_matrix_type(const struct tti_matrix_cell *cell, char buf[16])
{
	if (!cell->path)
		snprintf(buf, 16, "X");
	else if (cell->nvlinks)
		snprintf(buf, 16, "NV%u", cell->nvlinks);
	else
		snprintf(buf, 16, "%s", tti_path_type_name((enum tti_path_type)cell->path->type));
	return buf;
}

char tti_matrix_mark(const struct tti_path_matrix *matrix, const struct tti_matrix_cell *cell)
{
	return cell->path ? matrix->marks[cell->route->why] : '\0';
}
