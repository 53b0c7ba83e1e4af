/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_CLUSTER_ALIKE_H
#define TTI_INSIGHT_CLUSTER_ALIKE_H

/* The rows and columns of a path matrix. Endpoints from which everything looks the
 * same, and which hang on one CPU, are one group where the matrix would be too
 * large without.
 *
 * Owner: tti_alike_release(). The routes must outlive it. Threads: any. */

#include "topo/paths/routes.h"

/* More columns than that are no matrix for a person. */
#define TTI_ALIKE_COLUMNS 24

/* Of reasons, in the order in which they are given out. */
#define TTI_ALIKE_SIGNS "*+^~#%&@!"

struct tti_alike_group {
	const uint32_t *nodes; /* of the graph, endpoints of one type             */
	uint32_t n;
	const char *bare;  /* "mlx5_0-3"                                          */
	const char *names; /* the same; with several hosts, behind its host       */
	const char *label; /* the same, or "NIC2" if that is too long for a column */
};

/* How traffic goes from one group to another. */
struct tti_alike_cell {
	const struct tti_path *path; /* NULL: a group of one, and itself          */
	const struct tti_route *route;
	unsigned nvlinks; /* links of the narrowest hop of an NVL path            */
};

struct tti_alike {
	const struct tti_routes *routes;
	struct tti_arena arena;
	struct tti_alike_group *at; /* GPUs (HOSTs if there is no GPU), then NETs  */
	uint32_t n;
	/* The sign of each reason for which traffic does otherwise than the wires, and
	 * which occurs here; 0: it does not. */
	char marks[TTI_ROUTE_NO_WAY + 1];
};

/* GPUs and NETs; HOSTs in place of GPUs where there are none. */
TUTTI_CHECKED tutti_status tti_alike_find(const struct tti_routes *routes, struct tti_alike *out);
void tti_alike_release(struct tti_alike *alike);

struct tti_alike_cell tti_alike_cell(const struct tti_alike *alike, uint32_t from, uint32_t to);
/* Whether both are ways of the same type, route and speed; false for a group of one and
 * itself. */
bool tti_alike_same(const struct tti_alike_cell *a, const struct tti_alike_cell *b);
/* The sign of its reason, or 0. */
char tti_alike_mark(const struct tti_alike *alike, const struct tti_alike_cell *cell);
/* "X", "NV12", "PIX"; returns buf. */
const char *tti_alike_type(const struct tti_alike_cell *cell, char buf[16]);

#endif
