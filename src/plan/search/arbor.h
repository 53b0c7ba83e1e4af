/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_ARBOR_H
#define TTI_PLAN_ARBOR_H

/* The arborescence of least cost: the cheapest tree that reaches every member from one root. The
 * search of trees asks for it again and again, with other prices each time.
 *
 *     begin[root] + sum over all others of hop[parent][member]
 *
 * Chu and Liu's, Edmonds' method (J. Res. NBS 71B, 1967): exact, O(n^3).
 * Threads: any. */

#include <stdint.h>

#include "tutti/status.h"

struct tti_arbor_input {
	uint32_t n;          /* members, >= 1                       */
	const double *hop;   /* [from * n + to]; INFINITY: no way   */
	const double *begin; /* of a root; 0 where any is as good   */
};

#define TTI_ARBOR_NO_PARENT UINT32_MAX

/* parent_out[member], the root's is TTI_ARBOR_NO_PARENT. *cost_out INFINITY: none. */
TUTTI_CHECKED tutti_status tti_arbor_best(const struct tti_arbor_input *in, uint32_t *parent_out,
					  double *cost_out);

#endif
