/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_TOUR_H
#define TTI_PLAN_TOUR_H

/* The cheapest tour: a Hamiltonian path of least cost through all members (the travelling
 * salesman's problem), which the search of rings asks for again and again, with other prices
 * each time.
 *
 *     begin[first] + hop[first][..] + ... + hop[..][last] + end[last]
 *
 * A ring that closes in the node (a Hamiltonian cycle) has a fixed first member, and its hops back
 * to that member are its `end`.
 * Threads: any; scratch memory is the caller's. */

#include <stdbool.h>
#include <stdint.h>

#include "tutti/status.h"

struct tti_tour_input {
	uint32_t n;          /* members, >= 1                                      */
	const double *hop;   /* [from * n + to], >= 0; INFINITY: no way            */
	const double *begin; /* [member]                                           */
	const double *end;
};

/* Up to so many members, Held and Karp's recursion over subsets finds the best in
 * n^2 2^n steps (J. SIAM 10, 1962). */
#define TTI_TOUR_EXACT 16

/* The best tour, to some 1e-7 a hop; *cost_out INFINITY if there is none. No tour costs
 * less than *least_out (costs above 4 count as 4). n <= TTI_TOUR_EXACT. */
TUTTI_CHECKED tutti_status tti_tour_exact(const struct tti_tour_input *in, uint32_t *order_out,
					  double *cost_out, double *least_out);

/* A good tour: nearest neighbour from several members, then moves of segments until
 * none helps. */
TUTTI_CHECKED tutti_status tti_tour_good(const struct tti_tour_input *in, uint32_t *order_out,
					 double *cost_out);

/* No tour costs less: the assignment of a successor to each member at the least cost
 * (Kuhn's Hungarian method), which may fall into several circles. O(n^3). */
TUTTI_CHECKED tutti_status tti_tour_bound(const struct tti_tour_input *in, double *bound_out);

double tti_tour_cost(const struct tti_tour_input *in, const uint32_t *order);

#endif
