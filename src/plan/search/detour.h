/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_DETOUR_H
#define TTI_PLAN_DETOUR_H

/* Hops inside a node that leave it by one NIC and come back by another. Where two halves
 * of a machine hang together by slow links, the network between their NICs is one more:
 *
 *     GPU3 ── switch ── NIC a ══ cable ══╗
 *       │                                ╠═ network
 *     GPU4 ── switch ── NIC b ══ cable ══╝
 *
 * Only a node alone in the world does so: of several, NICs are for what leads to the
 * others. Only between GPUs that nothing links but ways over CPUs: a network is shared
 * with others, and no way to add to NVLinks or a switch. Never back by the NIC, or
 * port, that it left by: switches do not send a frame back where it came from. Only
 * between NICs on one fabric (loads.h).
 *
 * A hop of a tree takes the same two NICs up as down.
 *
 * Threads: as the search. */

#include "plan/search/search.h"

struct tti_pool;
struct tti_column;

/* Of a hop over NICs, beside those to and from them (struct tti_hop.far): worse than any
 * way over CPUs, there and back, as the network is shared with others. */
#define TTI_DETOUR_FAR 8

/* How many of `nnets` NICs (nets[] of members) hops inside a node alone may take: all, or
 * 0 where no two members are such, or the node is an NVLink domain of several hosts. */
TUTTI_CHECKED tutti_status tti_detour_nets(const struct tti_members *members, uint32_t nnets,
					   uint32_t *out);

static inline bool tti_way_is_direct(const struct tti_way *way, uint32_t member)
{
	return !way || way[member].out == TTI_NO_NET;
}

/* The hops that bring `to` what `from` sends, by way[to]: one, or two over NICs. */
uint32_t tti_way_hops(const struct tti_loads *loads, const struct tti_way *way, uint32_t from,
		      uint32_t to, const struct tti_hop *hops[2]);
/* The same for what `to` sends back to `from`. */
uint32_t tti_way_hops_back(const struct tti_loads *loads, const struct tti_way *way, uint32_t from,
			   uint32_t to, const struct tti_hop *hops[2]);
/* The two NICs may serve one hop: they are two, and reach each other. */
bool tti_way_exists(const struct tti_loads *loads, struct tti_way way);

/* -- For the search ---------------------------------------------------------------- */

/* At the prices of now: hop[from * n + to] is what the hop costs directly, `out` and `in`
 * what the ways to and from NICs cost (as pool->out, pool->in). Where a way over NICs is
 * cheaper, hop[] becomes its price and pool->way[] says which. */
void tti_detour_price(struct tti_pool *pool, double *hop, const double *out, const double *in);
/* Set the way of each hop of a column to what pool->way says. */
void tti_detour_choose(struct tti_pool *pool, struct tti_column *column);

#endif
