/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_CLUSTER_ALIKE_H
#define TTI_INSIGHT_CLUSTER_ALIKE_H

/* The rows and columns of a matrix of paths. If the matrix would be too large, endpoints of one CPU
 * from which all others look the same share a row, as one group.
 *
 * Owner: tti_path_matrix_release(). The routes must outlive it. Threads: any. */

#include "topo/paths/routes.h"

/* Nobody reads a matrix with more columns. */
#define TTI_MATRIX_COLUMNS 24

/* The signs of reasons, in the order in which they are given out. */
#define TTI_MATRIX_SIGNS "*+^~#%&@!"

struct tti_matrix_group {
	const uint32_t *nodes; /* of the graph, endpoints of one type             */
	uint32_t n;
	const char *bare;  /* "mlx5_0-3"                                          */
	const char *names; /* the same; with several hosts, behind its host       */
	const char *label; /* the same, or "NIC2" if that is too long for a column */
};

/* How traffic goes from one group to another. */
struct tti_matrix_cell {
	const struct tti_path *path; /* NULL: a group of one, and itself          */
	const struct tti_route *route;
	unsigned nvlinks; /* links of the narrowest hop of an NVL path            */
};

struct tti_path_matrix {
	const struct tti_routes *routes;
	struct tti_arena arena;
	struct tti_matrix_group *at; /* GPUs (HOSTs if there is no GPU), then NETs  */
	uint32_t n;
	/* The sign of each reason why traffic does not take the path of the wires; 0: the reason
	 * does not occur here. */
	char marks[TTI_ROUTE_NO_WAY + 1];
};

/* GPUs and NETs; HOSTs in place of GPUs where there are none. */
TUTTI_CHECKED tutti_status tti_path_matrix_find(const struct tti_routes *routes,
						struct tti_path_matrix *out);
void tti_path_matrix_release(struct tti_path_matrix *matrix);

struct tti_matrix_cell tti_matrix_cell(const struct tti_path_matrix *matrix, uint32_t from,
				       uint32_t to);
/* Whether both paths have the same type, route and speed. A group of one and itself have none, so
 * the answer is false. */
bool tti_matrix_same(const struct tti_matrix_cell *a, const struct tti_matrix_cell *b);
/* The sign of the reason of a cell, or 0. */
char tti_matrix_mark(const struct tti_path_matrix *matrix, const struct tti_matrix_cell *cell);
/* "X", "NV12", "PIX"; returns buf. */
const char *tti_matrix_type(const struct tti_matrix_cell *cell, char buf[16]);

#endif
