/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/paths/path_row.h"

#include "util/error.h"
#include "util/mem.h"

static tutti_status out_of_memory(const struct tti_path_rows *rows)
{
	return tti_fail(TUTTI_ENOMEM, "no memory for the paths of %u endpoints", rows->n);
}

/* -- To and from the network --------------------------------------------------------------- */

/* The hops lead from a NET to the endpoint. */
static struct tti_path_reach reach_by(const struct tti_graph *graph, const uint32_t *hops,
				      size_t nhops)
{
	struct tti_path_reach reach = { .any = true };

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
static struct tti_path_reach reach_of_net(const struct tti_graph *graph, uint32_t net)
{
	const struct tti_node *node = &graph->nodes[net];

	if (node->nlinks == 0)
		return (struct tti_path_reach){ 0 };
	return reach_by(graph, &graph->links[node->first_link].reverse, 1);
}

static tutti_status find_reach(struct tti_path_rows *rows, uint32_t *hops)
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

tutti_status tti_path_rows_init(struct tti_path_rows *rows, const struct tti_graph *graph,
				const uint32_t *endpoints, uint32_t n, bool nvb)
{
	/* A path visits no node twice. */
	uint32_t *hops = tti_calloc(graph->nnodes, sizeof(*hops));
	tutti_status status = TUTTI_OK;

	*rows = (struct tti_path_rows){ .graph = graph, .endpoints = endpoints, .n = n };
	rows->reach = tti_calloc(n, sizeof(*rows->reach));
	if (!hops || !rows->reach)
		status = out_of_memory(rows);
	if (status == TUTTI_OK)
		status = tti_path_search_create(graph, nvb, &rows->search);
	if (status == TUTTI_OK)
		status = find_reach(rows, hops);
	if (status != TUTTI_OK)
		tti_path_rows_release(rows);
	tti_free(hops);
	return status;
}

void tti_path_rows_release(struct tti_path_rows *rows)
{
	tti_path_search_free(rows->search);
	tti_free(rows->reach);
	*rows = (struct tti_path_rows){ 0 };
}

/* -- A row --------------------------------------------------------------------------------- */

static struct tti_path path_outside(const struct tti_path_reach *from,
				    const struct tti_path_reach *to)
{
	struct tti_path path = { .type = TTI_PATH_DIS };

	if (!from->any || !to->any)
		return path;
	path.type = TTI_PATH_NET;
	path.bw_gbps = from->out_gbps < to->in_gbps ? from->out_gbps : to->in_gbps;
	path.latency_ns = tti_path_search_ns(from->out_latency + to->in_latency);
	return path;
}

static tutti_status path_inside(const struct tti_path_rows *rows,
				const struct tti_path_found *found, struct tti_path *path,
				tti_path_hops *hops)
{
	if (found->nhops > UINT16_MAX)
		return tti_fail(TUTTI_EINVAL,
				"%s: a path has %u links, at most %u can be: no machine has such a "
				"path, correct the file",
				rows->graph->source ? rows->graph->source : "the topology",
				found->nhops, UINT16_MAX);
	if (!tti_vec_reserve((void **)&hops->at, &hops->room, hops->n + found->nhops,
			     sizeof(*hops->at)))
		return out_of_memory(rows);
	tti_path_search_hops(rows->search, found, hops->at + hops->n);
	*path = (struct tti_path){ .first_hop = (uint32_t)hops->n,
				   .nhops = (uint16_t)found->nhops,
				   .type = (uint8_t)found->type,
				   .bw_gbps = found->bw_gbps,
				   .latency_ns = tti_path_search_ns(found->latency) };
	hops->n += found->nhops;
	return TUTTI_OK;
}

tutti_status tti_path_rows_fill(struct tti_path_rows *rows, uint32_t from, size_t most_hops,
				struct tti_path *row, tti_path_hops *hops, bool *full_out)
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
