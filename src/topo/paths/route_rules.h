/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PATHS_ROUTE_RULES_H
#define TTI_TOPO_PATHS_ROUTE_RULES_H

/* The rules of routes.h for one pair at a time; for routes.c.
 *
 * Owner: who holds the struct; tti_route_rules_release(). Threads: one at a time. */

#include "topo/paths/routes.h"

struct tti_route_rules {
	const struct tti_paths *wires;
	const struct tti_paths *paths; /* the same, or own */
	struct tti_paths *own;         /* without NVB, if that is switched off */
	struct tti_routes_config config;
	bool *overhead;   /* of a node: a CPU that hinders PCI to PCI traffic       */
	uint32_t *turn;   /* of a NET: how many NETs at its place come before it    */
	uint32_t *nearby; /* of a GPU its HOST, of a NET its GPU; UNKNOWN: not yet  */
};

TUTTI_CHECKED tutti_status tti_route_rules_init(struct tti_route_rules *rules,
						const struct tti_paths *paths,
						const struct tti_routes_config *config);
void tti_route_rules_release(struct tti_route_rules *rules);

/* The route between two endpoints. false: no memory for a path. */
bool tti_route_rules_apply(struct tti_route_rules *rules, uint32_t from, uint32_t to,
			   struct tti_route *out);

#endif
