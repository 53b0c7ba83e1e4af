/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_DETOUR_H
#define TTI_PLAN_DETOUR_H

/* Detours: hops inside a node that leave it by one NIC and come back by another. If two halves
 * of a machine are joined by slow links, the network between their NICs is one more link:
 *
 *     GPU3 ── switch ── NIC a ══ cable ══╗
 *       │                                ╠═ network
 *     GPU4 ── switch ── NIC b ══ cable ══╝
 *
 * Only a job of one node has detours: in a job of several nodes the NICs carry what goes to
 * the others. A detour joins only GPUs that no path but those over CPUs joins, as the network
 * is shared with others and would add little to NVLinks or a switch. It never comes back by
 * the NIC, or port, that it left by, as switches do not send a frame back where it came from.
 * Both NICs are on one fabric (loads.h).
 *
 * A hop of a tree takes the same two NICs up as down.
 *
 * Threads: as the search. */

#include "plan/search/search.h"

struct tti_pool;
struct tti_column;

/* The `far` (struct tti_hop) of a detour, beside that of the hops to and from its NICs: more than
 * any path over CPUs, there and back, as the network is shared with others. */
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
