/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/wiring.h"

#include <string.h>

#include "topo/graph/graph.h"
#include "util/error.h"
#include "util/mem.h"

static tutti_status no_memory(int n)
{
	return tti_fail(TUTTI_ENOMEM, "the wiring of %d ranks: out of memory", n);
}

/* A host of which nothing is known. The figures are arbitrary, but equal for all. */
static char plain_text[] = "<system version=\"1\"><cpu numaid=\"0\" affinity=\"ffffffff\">"
			   "<pci busid=\"0000:01:00.0\" class=\"0x020000\" "
			   "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><nic>"
			   "<net name=\"net0\" dev=\"0\" speed=\"10000\"/>"
			   "</nic></pci></cpu></system>";
static const struct tti_host_class plain_class = { .nbytes = sizeof(plain_text) - 1,
						   .text = plain_text };
static const struct tti_wiring_site plain_site = { .nnets = TTI_HOST_ANY_NET };

struct tti_wiring_site tti_wiring_site_of(const struct tti_host_classes *hosts, int rank)
{
	const int leader = hosts->leader[rank];
	const struct tti_host_info *info = &hosts->info[leader];
	struct tti_wiring_site site = { .host_class = hosts->class_of[leader],
					.nnets = info->nnets };

	memcpy(site.nets, info->nets, sizeof(site.nets));
	memcpy(site.rail, info->rail, sizeof(site.rail));
	memcpy(site.name, info->name, sizeof(site.name));
	site.name[sizeof(site.name) - 1] = '\0';
	return site;
}

tutti_status tti_wiring_create(struct tti_host_classes *hosts, const int *host_of,
			       const uint32_t *member, int n, struct tti_wiring **out)
{
	struct tti_wiring *w = tti_zalloc(sizeof(*w));
	uint32_t nsites = 0;

	for (int rank = 0; rank < n; rank++)
		nsites += host_of[rank] == rank;
	if (w) {
		w->sites = tti_calloc(nsites, sizeof(*w->sites));
		w->by_rank = tti_calloc((size_t)n, sizeof(*w->by_rank));
		atomic_init(&w->users, 1);
	}
	if (!w || !w->sites || !w->by_rank) {
		tti_wiring_free(w);
		return no_memory(n);
	}
	w->n = n;
	w->classes = hosts->classes.at;
	w->nclasses = (uint32_t)hosts->classes.n;
	memset(&hosts->classes, 0, sizeof(hosts->classes));
	for (int rank = 0; rank < n; rank++) {
		w->by_rank[rank].site =
			host_of[rank] == rank ? w->nsites : w->by_rank[host_of[rank]].site;
		w->by_rank[rank].member = member[rank];
		if (host_of[rank] == rank)
			w->sites[w->nsites++] = tti_wiring_site_of(hosts, rank);
	}
	*out = w;
	return TUTTI_OK;
}

static bool are_all_in_order(const struct tti_wiring *of, const int *ranks, int n)
{
	for (int rank = 0; rank < n; rank++)
		if (ranks[rank] != rank)
			return false;
	return n == of->n;
}

tutti_status tti_wiring_project(struct tti_wiring *of, const int *ranks, int n,
				struct tti_wiring **out)
{
	struct tti_wiring *w;

	*out = of;
	if (!of)
		return TUTTI_OK;
	if (are_all_in_order(of, ranks, n)) {
		atomic_fetch_add(&of->users, 1);
		return TUTTI_OK;
	}
	*out = NULL;
	w = tti_zalloc(sizeof(*w));
	if (w)
		w->ranks = tti_calloc((size_t)n, sizeof(*w->ranks));
	if (!w || !w->ranks) {
		tti_free(w);
		return no_memory(n);
	}
	atomic_init(&w->users, 1);
	w->n = n;
	for (int rank = 0; rank < n; rank++)
		w->ranks[rank] = of->of ? of->ranks[ranks[rank]] : ranks[rank];
	w->of = of->of ? of->of : of;
	atomic_fetch_add(&w->of->users, 1);
	*out = w;
	return TUTTI_OK;
}

void tti_wiring_free(struct tti_wiring *wiring)
{
	if (!wiring || atomic_fetch_sub(&wiring->users, 1) > 1)
		return;
	tti_wiring_free(wiring->of);
	for (uint32_t number = 0; wiring->classes && number < wiring->nclasses; number++)
		tti_free(wiring->classes[number].text);
	tti_free(wiring->classes);
	tti_free(wiring->sites);
	tti_free(wiring->by_rank);
	tti_free(wiring->ranks);
	tti_free(wiring);
}

static const struct tti_wiring *first_of(const struct tti_wiring *wiring)
{
	return wiring->of ? wiring->of : wiring;
}

struct tti_wiring_rank tti_wiring_rank(const struct tti_wiring *wiring, int rank)
{
	if (!wiring)
		return (struct tti_wiring_rank){ 0, TTI_NODE_NONE };
	return wiring->of ? wiring->of->by_rank[wiring->ranks[rank]] : wiring->by_rank[rank];
}

const struct tti_wiring_site *tti_wiring_site(const struct tti_wiring *wiring, uint32_t site)
{
	return wiring ? &first_of(wiring)->sites[site] : &plain_site;
}

const struct tti_host_class *tti_wiring_class(const struct tti_wiring *wiring, uint32_t number)
{
	return wiring ? &first_of(wiring)->classes[number] : &plain_class;
}

uint32_t tti_wiring_nclasses(const struct tti_wiring *wiring)
{
	return wiring ? first_of(wiring)->nclasses : 1;
}
