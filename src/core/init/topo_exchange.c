/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/init/topo_exchange.h"

#include <stdlib.h>
#include <string.h>

#include "boot/boot.h"
#include "util/error.h"
#include "util/fault.h"
#include "util/mem.h"

static tutti_status no_memory(int n)
{
	return tti_fail(TUTTI_ENOMEM, "topologies of %d ranks: out of memory", n);
}

static tutti_status find_leaders(const struct tti_peers *peers, struct tti_views *views)
{
	const size_t n = (size_t)peers->n;

	views->leader = tti_calloc(n, sizeof(*views->leader));
	views->cards = tti_calloc(n, sizeof(*views->cards));
	views->kind = tti_calloc(n, sizeof(*views->kind));
	if (!views->leader || !views->cards || !views->kind)
		return no_memory(peers->n);
	return tti_peers_group(peers->place, peers->n, views->leader);
}

/* A leader that fails says so on its card, and all fail with it. */
static tutti_status exchange_cards(const struct tti_peers *peers, bool several,
				   struct tti_views *views, char **text_out)
{
	struct tti_topo_card *own = &views->cards[peers->rank];

	if (views->leader[peers->rank] == peers->rank) {
		tutti_status st = tti_fault("core.topo")
					  ? tti_fail(TUTTI_EINTERNAL, "core.topo: injected fault")
					  : tti_topo_look(several, own, text_out);

		own->status = st;
	}
	TTI_TRY(tti_boot_all_gather(peers->boot, views->cards, sizeof(*views->cards)));
	for (int rank = 0; rank < peers->n; rank++)
		if (views->cards[rank].status != TUTTI_OK)
			return tti_peers_fail(peers->boot, rank,
					      (tutti_status)views->cards[rank].status);
	return TUTTI_OK;
}

static tutti_status find_kinds(const struct tti_peers *peers, struct tti_views *views)
{
	for (int rank = 0; rank < peers->n; rank++) {
		const struct tti_topo_card *card = &views->cards[rank];
		uint32_t kind = 0;

		if (views->leader[rank] != rank)
			continue;
		while (kind < views->kinds.n && (views->kinds.at[kind].hash != card->hash ||
						 views->kinds.at[kind].nbytes != card->nbytes))
			kind++;
		if (kind == views->kinds.n) {
			const struct tti_view_kind found = { card->hash, card->nbytes, rank, NULL };

			if (!tti_vec_push(&views->kinds, found))
				return no_memory(peers->n);
		}
		views->kind[rank] = kind;
	}
	return TUTTI_OK;
}

/* From its owner to all. */
static tutti_status bring(const struct tti_peers *peers, struct tti_view_kind *kind,
			  const char *own_text)
{
	kind->text = tti_alloc((size_t)kind->nbytes + 1);
	if (!kind->text)
		return no_memory(peers->n);
	if (kind->owner == peers->rank)
		memcpy(kind->text, own_text, kind->nbytes);
	kind->text[kind->nbytes] = '\0';
	return tti_boot_broadcast(peers->boot, kind->owner, kind->text, kind->nbytes);
}

tutti_status tti_views_exchange(const struct tti_peers *peers, bool several, struct tti_views *out)
{
	struct tti_views views = { 0 };
	char *text = NULL;
	tutti_status st = find_leaders(peers, &views);

	if (st == TUTTI_OK)
		st = exchange_cards(peers, several, &views, &text);
	if (st == TUTTI_OK)
		st = find_kinds(peers, &views);
	for (uint32_t kind = 0; kind < views.kinds.n && st == TUTTI_OK; kind++)
		st = bring(peers, &views.kinds.at[kind], text);
	free(text);
	if (st == TUTTI_OK)
		*out = views;
	else
		tti_views_release(&views);
	return st;
}

void tti_views_release(struct tti_views *views)
{
	for (uint32_t kind = 0; kind < views->kinds.n; kind++)
		tti_free(views->kinds.at[kind].text);
	tti_vec_release(&views->kinds);
	tti_free(views->cards);
	tti_free(views->leader);
	tti_free(views->kind);
	*views = (struct tti_views){ 0 };
}
