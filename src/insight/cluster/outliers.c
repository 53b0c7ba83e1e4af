/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/cluster/outliers.h"
#include "topo/graph/diff.h"

#include <stdlib.h>

#include "util/error.h"
#include "util/mem.h"

/* A kind is held against so many of the largest, and so many kinds are. A cluster with
 * more has no majority. */
#define MOST_REFERENCES 6
#define MOST_KINDS      64
/* A kind that differs in more than this share of its nodes is one of its own. */
#define LIKENESS        4
#define FEW             6

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "no memory to compare the hosts of a cluster");
}

/* -- Kinds ---------------------------------------------------------------------------------- */

struct ranked {
	uint32_t kind, nhosts;
};

static int by_hosts(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->nhosts != y->nhosts)
		return x->nhosts < y->nhosts ? 1 : -1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

static uint32_t most_diffs(const struct tti_graph *a, const struct tti_graph *b)
{
	const uint32_t n = a->nnodes < b->nnodes ? a->nnodes : b->nnodes;

	return n / LIKENESS > FEW ? n / LIKENESS : FEW;
}

/* The larger kind that differs least, among those before it. */
static tutti_status compare(const struct tti_cluster *cluster, const struct ranked *ranked,
			    uint32_t at, struct tti_outliers *outliers)
{
	const struct tti_graph *graph = cluster->kinds[ranked[at].kind].graph;
	struct tti_outlier_kind best = { .kind = ranked[at].kind };
	struct tti_strbuf text = { 0 }, best_text = { 0 };
	tutti_status status = TUTTI_OK;
	bool found = false;

	for (uint32_t i = 0; i < at && i < MOST_REFERENCES && status == TUTTI_OK; i++) {
		const struct tti_graph *like = cluster->kinds[ranked[i].kind].graph;
		size_t n = 0;

		status = tti_topo_diff(like, graph, &text, &n);
		if (status == TUTTI_OK && n <= most_diffs(like, graph) &&
		    (!found || n < best.ndiffs)) {
			const struct tti_strbuf swap = best_text;

			best_text = text;
			text = swap;
			best.like = ranked[i].kind;
			best.ndiffs = n;
			found = true;
		}
		text.len = 0;
	}
	if (status == TUTTI_OK && found) {
		best.text = tti_arena_strdup(&outliers->arena, best.ndiffs ? best_text.text : "");
		outliers->kinds[outliers->nkinds++] = best;
		status = best.text ? TUTTI_OK : no_memory();
	}
	tti_strbuf_release(&text);
	tti_strbuf_release(&best_text);
	return status;
}

static tutti_status find_kinds(const struct tti_cluster *cluster, struct tti_outliers *outliers)
{
	struct ranked *ranked = tti_calloc((size_t)cluster->nkinds + 1, sizeof(*ranked));
	tutti_status status = TUTTI_OK;
	uint32_t n = cluster->nkinds;

	outliers->kinds = tti_calloc(MOST_KINDS, sizeof(*outliers->kinds));
	if (!ranked || !outliers->kinds) {
		tti_free(ranked);
		return no_memory();
	}
	for (uint32_t i = 0; i < n; i++)
		ranked[i] = (struct ranked){ i, cluster->kinds[i].nhosts };
	if (n)
		qsort(ranked, n, sizeof(*ranked), by_hosts);
	if (n > MOST_KINDS) {
		outliers->unseen = n - MOST_KINDS;
		n = MOST_KINDS;
	}
	for (uint32_t i = 1; i < n && status == TUTTI_OK; i++)
		status = compare(cluster, ranked, i, outliers);
	tti_free(ranked);
	return status;
}

/* -- NICs ----------------------------------------------------------------------------------- */

static int by_rail(const void *a, const void *b)
{
	const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

/* The rail that more than half of n are on; -2: none. Reorders them. */
static int32_t usual_rail(int32_t *rails, uint32_t n)
{
	uint32_t run = 0;

	qsort(rails, n, sizeof(*rails), by_rail);
	for (uint32_t i = 0; i < n; i++) {
		run = i && rails[i] == rails[i - 1] ? run + 1 : 1;
		if (run > n / 2)
			return rails[i];
	}
	return -2;
}

/* usual[port of kind], kinds one after the other from first[kind] on. */
static bool find_usual(const struct tti_cluster *cluster, const uint32_t *first, int32_t *usual)
{
	int32_t *rails = tti_calloc((size_t)cluster->nhosts + 1, sizeof(*rails));
	uint32_t *hosts = tti_calloc((size_t)cluster->nhosts + 1, sizeof(*hosts));
	uint32_t *end = tti_calloc((size_t)cluster->nkinds + 2, sizeof(*end));
	const bool good = rails && hosts && end;

	/* Hosts by kind: a counting sort. */
	for (uint32_t h = 0; good && h < cluster->nhosts; h++)
		end[cluster->hosts[h].kind + 1]++;
	for (uint32_t k = 0; good && k < cluster->nkinds; k++)
		end[k + 1] += end[k];
	for (uint32_t h = 0; good && h < cluster->nhosts; h++)
		hosts[end[cluster->hosts[h].kind]++] = h;
	for (uint32_t k = 0; good && k < cluster->nkinds; k++) {
		const uint32_t begin = k ? end[k - 1] : 0;

		for (uint32_t port = 0; port < cluster->kinds[k].nports; port++) {
			for (uint32_t i = begin; i < end[k]; i++)
				rails[i - begin] =
					cluster->nics[cluster->hosts[hosts[i]].first_nic + port]
						.rail;
			usual[first[k] + port] = usual_rail(rails, end[k] - begin);
		}
	}
	tti_free(rails);
	tti_free(hosts);
	tti_free(end);
	return good;
}

static bool list_nics(const struct tti_cluster *cluster, const uint32_t *first,
		      const int32_t *usual, struct tti_outliers *outliers)
{
	size_t room = 0;

	for (uint32_t h = 0; h < cluster->nhosts; h++) {
		const struct tti_cluster_host *host = &cluster->hosts[h];

		for (uint32_t port = 0; port < cluster->kinds[host->kind].nports; port++) {
			const struct tti_outlier_nic nic = {
				.host = h,
				.port = port,
				.rail = cluster->nics[host->first_nic + port].rail,
				.usual = usual[first[host->kind] + port],
			};

			if (nic.usual == -2 || nic.rail == nic.usual)
				continue;
			if (!tti_vec_reserve((void **)&outliers->nics, &room, outliers->nnics + 1,
					     sizeof(nic)))
				return false;
			outliers->nics[outliers->nnics++] = nic;
		}
	}
	return true;
}

static tutti_status find_nics(const struct tti_cluster *cluster, struct tti_outliers *outliers)
{
	uint32_t *first = tti_calloc((size_t)cluster->nkinds + 1, sizeof(*first));
	uint32_t n = 0;
	int32_t *usual;
	bool good;

	for (uint32_t k = 0; first && k < cluster->nkinds; k++) {
		first[k] = n;
		n += cluster->kinds[k].nports;
	}
	usual = tti_calloc((size_t)n + 1, sizeof(*usual));
	good = first && usual && find_usual(cluster, first, usual) &&
	       list_nics(cluster, first, usual, outliers);
	tti_free(first);
	tti_free(usual);
	return good ? TUTTI_OK : no_memory();
}

tutti_status tti_outliers_find(const struct tti_cluster *cluster, struct tti_outliers *out)
{
	tutti_status status;

	*out = (struct tti_outliers){ 0 };
	status = find_kinds(cluster, out);
	if (status == TUTTI_OK)
		status = find_nics(cluster, out);
	if (status)
		tti_outliers_release(out);
	return status;
}

void tti_outliers_release(struct tti_outliers *outliers)
{
	tti_free(outliers->kinds);
	tti_free(outliers->nics);
	tti_arena_release(&outliers->arena);
	*outliers = (struct tti_outliers){ 0 };
}
