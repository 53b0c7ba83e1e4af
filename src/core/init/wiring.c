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

/* What nothing is known of. Its figures are those of no machine: all are alike. */
static char plain_text[] = "<system version=\"1\"><cpu numaid=\"0\" affinity=\"ffffffff\">"
			   "<pci busid=\"0000:01:00.0\" class=\"0x020000\" "
			   "link_speed=\"16.0 GT/s PCIe\" link_width=\"16\"><nic>"
			   "<net name=\"net0\" dev=\"0\" speed=\"10000\"/>"
			   "</nic></pci></cpu></system>";
static const struct tti_view_kind plain_kind = { .nbytes = sizeof(plain_text) - 1,
						 .text = plain_text };
static const struct tti_wiring_site plain_site = { .nnets = TTI_CARD_ANY_NET };

struct tti_wiring_site tti_wiring_site_of(const struct tti_views *views, int rank)
{
	const int leader = views->leader[rank];
	const struct tti_topo_card *card = &views->cards[leader];
	struct tti_wiring_site site = { .kind = views->kind[leader], .nnets = card->nnets };

	memcpy(site.nets, card->nets, sizeof(site.nets));
	memcpy(site.rail, card->rail, sizeof(site.rail));
	memcpy(site.name, card->name, sizeof(site.name));
	site.name[sizeof(site.name) - 1] = '\0';
	return site;
}

tutti_status tti_wiring_create(struct tti_views *views, const int *host_of, const uint32_t *member,
			       int n, struct tti_wiring **out)
{
	struct tti_wiring *w = tti_zalloc(sizeof(*w));
	uint32_t nsites = 0;

	for (int rank = 0; rank < n; rank++)
		nsites += host_of[rank] == rank;
	if (w) {
		w->sites = tti_calloc(nsites, sizeof(*w->sites));
		w->seats = tti_calloc((size_t)n, sizeof(*w->seats));
		atomic_init(&w->users, 1);
	}
	if (!w || !w->sites || !w->seats) {
		tti_wiring_free(w);
		return no_memory(n);
	}
	w->n = n;
	w->kinds = views->kinds.at;
	w->nkinds = (uint32_t)views->kinds.n;
	memset(&views->kinds, 0, sizeof(views->kinds));
	for (int rank = 0; rank < n; rank++) {
		w->seats[rank].site =
			host_of[rank] == rank ? w->nsites : w->seats[host_of[rank]].site;
		w->seats[rank].member = member[rank];
		if (host_of[rank] == rank)
			w->sites[w->nsites++] = tti_wiring_site_of(views, rank);
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
	for (uint32_t kind = 0; wiring->kinds && kind < wiring->nkinds; kind++)
		tti_free(wiring->kinds[kind].text);
	tti_free(wiring->kinds);
	tti_free(wiring->sites);
	tti_free(wiring->seats);
	tti_free(wiring->ranks);
	tti_free(wiring);
}

static const struct tti_wiring *first_of(const struct tti_wiring *wiring)
{
	return wiring->of ? wiring->of : wiring;
}

struct tti_wiring_seat tti_wiring_seat(const struct tti_wiring *wiring, int rank)
{
	if (!wiring)
		return (struct tti_wiring_seat){ 0, TTI_NODE_NONE };
	return wiring->of ? wiring->of->seats[wiring->ranks[rank]] : wiring->seats[rank];
}

const struct tti_wiring_site *tti_wiring_site(const struct tti_wiring *wiring, uint32_t site)
{
	return wiring ? &first_of(wiring)->sites[site] : &plain_site;
}

const struct tti_view_kind *tti_wiring_kind(const struct tti_wiring *wiring, uint32_t kind)
{
	return wiring ? &first_of(wiring)->kinds[kind] : &plain_kind;
}

uint32_t tti_wiring_nkinds(const struct tti_wiring *wiring)
{
	return wiring ? first_of(wiring)->nkinds : 1;
}
