/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TOPO_PATH_ORACLE_H
#define TESTS_TOPO_PATH_ORACLE_H

/* The best ways of a graph by trying all of them. tti_path_type_of() is the definition of
 * what a way is; nothing else of the library's paths is used. Each test program that
 * includes this has its own copy. */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "insight/topo/path_type_of.h"

#define ORACLE_HOPS 64

struct oracle_way {
	enum tti_path_type type;
	float bw;
	int64_t latency; /* 2^-10 ns */
	uint32_t nhops;
	uint32_t hops[ORACLE_HOPS];
};

struct oracle {
	const struct tti_graph *graph;
	uint32_t *endpoints, n;
	uint32_t *index;         /* of a node */
	struct oracle_way *best; /* best[from * n + to]; type DIS: none */
	bool *visited;
	bool whole; /* no way is left out, not even a lost one */
	uint32_t from;
	uint64_t nways, most;  /* ways tried; how many are enough */
	struct oracle_way way; /* the one at hand; its type is not known */
};

static int64_t oracle_latency(float ns)
{
	return llround((double)ns * 1024);
}

static int oracle_node_order(const struct tti_graph *graph, uint32_t a, uint32_t b)
{
	const struct tti_node *x = &graph->nodes[a], *y = &graph->nodes[b];
	const int hosts = strcmp(graph->hosts[x->host], graph->hosts[y->host]);

	if (hosts)
		return hosts;
	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	return tti_name_order(x->name, y->name);
}

static bool oracle_is_better(const struct tti_graph *graph, const struct oracle_way *a,
			     const struct oracle_way *b)
{
	if (a->type != b->type)
		return a->type < b->type;
	if (a->bw != b->bw)
		return a->bw > b->bw;
	if (a->nhops != b->nhops)
		return a->nhops < b->nhops;
	if (a->latency != b->latency)
		return a->latency < b->latency;
	for (uint32_t i = 0; i < a->nhops; i++) {
		const struct tti_topo_link *x = &graph->links[a->hops[i]];
		const struct tti_topo_link *y = &graph->links[b->hops[i]];
		const int order = oracle_node_order(graph, x->to, y->to);

		if (order)
			return order < 0;
		if (x->type != y->type)
			return x->type < y->type;
	}
	return false;
}

static bool oracle_is_endpoint(enum tti_node_type type)
{
	return type == TTI_NODE_GPU || type == TTI_NODE_HOST || type == TTI_NODE_NET;
}

static void oracle_judge(struct oracle *oracle, uint32_t to)
{
	struct oracle_way *best = &oracle->best[oracle->from * oracle->n + oracle->index[to]];
	struct oracle_way *way = &oracle->way;

	oracle->nways++;
	way->type = tti_path_type_of(oracle->graph, way->hops, way->nhops);
	if (way->type != TTI_PATH_DIS && oracle_is_better(oracle->graph, way, best))
		*best = *way;
}

/* Whether the definition forbids whatever follows the way so far, so that larger machines
 * can be tried too: it led through a NIC; through a DEV that was not entered and left by
 * NVLink, or through two; over a CPU, something else and a CPU again. */
static bool oracle_is_lost(const struct oracle *oracle)
{
	const struct tti_graph *graph = oracle->graph;
	int ndevs = 0, nruns = 0;

	for (uint32_t i = 1; i < oracle->way.nhops; i++) {
		const struct tti_topo_link *in = &graph->links[oracle->way.hops[i - 1]];
		const struct tti_topo_link *out = &graph->links[oracle->way.hops[i]];
		const enum tti_node_type type = graph->nodes[in->to].type;
		const enum tti_node_type before = graph->nodes[in->from].type;
		const enum tti_node_type after = graph->nodes[out->to].type;

		if (type == TTI_NODE_NIC && before != TTI_NODE_NET && after != TTI_NODE_NET)
			return true;
		if (type == TTI_NODE_DEV && before != TTI_NODE_GPU && after != TTI_NODE_GPU &&
		    (++ndevs > 1 || in->type != TTI_LINK_NVL || out->type != TTI_LINK_NVL))
			return true;
		nruns += (type == TTI_NODE_CPU || type == TTI_NODE_PKG) && before != TTI_NODE_CPU &&
			 before != TTI_NODE_PKG;
	}
	return nruns > 1;
}

/* All ways on from `node`. */
static void oracle_walk(struct oracle *oracle, uint32_t node)
{
	const struct tti_graph *graph = oracle->graph;
	const struct tti_node *at = &graph->nodes[node];
	const struct oracle_way before = { .bw = oracle->way.bw, .latency = oracle->way.latency };

	if (oracle->way.nhops && oracle_is_endpoint(at->type)) {
		oracle_judge(oracle, node);
		return;
	}
	if (oracle->nways >= oracle->most || oracle->way.nhops == ORACLE_HOPS ||
	    (!oracle->whole && oracle_is_lost(oracle)))
		return;
	oracle->visited[node] = true;
	for (uint32_t i = at->first_link; i < at->first_link + at->nlinks; i++) {
		const struct tti_topo_link *link = &graph->links[i];

		if (oracle->visited[link->to])
			continue;
		oracle->way.hops[oracle->way.nhops++] = i;
		oracle->way.bw = link->bw_gbps < before.bw ? link->bw_gbps : before.bw;
		oracle->way.latency = before.latency + oracle_latency(link->latency_ns);
		oracle_walk(oracle, link->to);
		oracle->way.nhops--;
	}
	oracle->way.bw = before.bw;
	oracle->way.latency = before.latency;
	oracle->visited[node] = false;
}

/* false: out of memory. With nways == most it has not tried all. */
static bool oracle_init(struct oracle *oracle, const struct tti_graph *graph, bool whole,
			uint64_t most)
{
	*oracle = (struct oracle){ .graph = graph, .whole = whole, .most = most };
	oracle->endpoints = calloc(graph->nnodes, sizeof(uint32_t));
	oracle->index = calloc(graph->nnodes, sizeof(uint32_t));
	oracle->visited = calloc(graph->nnodes, sizeof(bool));
	if (!oracle->endpoints || !oracle->index || !oracle->visited)
		return false;
	for (uint32_t i = 0; i < graph->nnodes; i++)
		if (oracle_is_endpoint(graph->nodes[i].type)) {
			oracle->index[i] = oracle->n;
			oracle->endpoints[oracle->n++] = i;
		}
	oracle->best = calloc((size_t)oracle->n * oracle->n + 1, sizeof(*oracle->best));
	if (!oracle->best)
		return false;
	for (size_t i = 0; i < (size_t)oracle->n * oracle->n; i++)
		oracle->best[i].type = TTI_PATH_DIS;
	for (oracle->from = 0; oracle->from < oracle->n; oracle->from++) {
		oracle->way = (struct oracle_way){ .bw = HUGE_VALF };
		oracle_walk(oracle, oracle->endpoints[oracle->from]);
	}
	return true;
}

static void oracle_release(struct oracle *oracle)
{
	free(oracle->endpoints);
	free(oracle->index);
	free(oracle->visited);
	free(oracle->best);
}

static const struct oracle_way *oracle_best(const struct oracle *oracle, uint32_t from, uint32_t to)
{
	return &oracle->best[oracle->index[from] * oracle->n + oracle->index[to]];
}

/* How an endpoint is connected to the network, out of it or into it: type DIS if not. */
static struct oracle_way oracle_reach(const struct oracle *oracle, uint32_t node, bool out)
{
	const struct tti_graph *graph = oracle->graph;
	const struct tti_node *at = &graph->nodes[node];
	const struct oracle_way none = { .type = TTI_PATH_DIS };
	const struct oracle_way *best = &none;
	struct oracle_way reach = { .bw = HUGE_VALF };
	const uint32_t *hops;
	uint32_t nhops, cable;

	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_NET]; i++) {
		const struct oracle_way *way =
			oracle_best(oracle, graph->by_type[TTI_NODE_NET][i], node);
		const bool older = best != &none && way->type == best->type &&
				   way->bw == best->bw && way->nhops == best->nhops &&
				   way->latency == best->latency;

		/* by_type is in the order of names, but only for one host; ways of
		 * different hosts to one endpoint do not exist. */
		if (way->type != TTI_PATH_DIS && !older &&
		    (best == &none || oracle_is_better(graph, way, best)))
			best = way;
	}
	hops = best->hops;
	nhops = best->nhops;
	if (at->type == TTI_NODE_NET) {
		cable = graph->links[at->first_link].reverse;
		hops = &cable;
		nhops = 1;
	} else if (best->type == TTI_PATH_DIS) {
		return none;
	}
	for (uint32_t i = 0; i < nhops; i++) {
		const struct tti_topo_link *link = &graph->links[hops[i]];

		if (out)
			link = &graph->links[link->reverse];
		reach.bw = link->bw_gbps < reach.bw ? link->bw_gbps : reach.bw;
		reach.latency += oracle_latency(link->latency_ns);
	}
	return reach;
}

#endif
