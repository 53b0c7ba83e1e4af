/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_PLAN_COLUMN_H
#define TTI_PLAN_COLUMN_H

/* The inside of the search: a column is one channel that the linear program may use.
 * Owner: the pool. Threads: one search, one thread. */

#include "plan/search/detour.h"
#include "util/vec.h"

struct tti_column {
	uint32_t *order, *parent; /* as in struct tti_channel */
	struct tti_way *way;
	uint32_t net_in, net_out, second;
	double far, far_hops, hops, alone; /* as in struct tti_score; GB/s without others */
};

/* The cheapest NIC of a member, and the cheapest on another port. */
struct tti_ends {
	double price[2];
	uint32_t net[2];
};

/* What rings pay: the prices, or the means of both directions. */
struct tti_ring_prices {
	const double *hop, *in, *out;
};

/* One search under way. */
struct tti_pool {
	const struct tti_loads *loads;
	const struct tti_local_config *config; /* cross_nic is not AUTO */
	struct tti_arena arena;
	struct tti_lp *lp;
	TTI_VEC(struct tti_column) columns; /* those of the linear program, by number */
	TTI_VEC(struct tti_load) scratch;
	double far, far_hops,
		hops;  /* of what is in scratch                                         */
	double charge; /* of each GB/s that a hop carries, for each point of its `far`  */
	/* At the prices of now: of each hop and each way from and to a NIC; both[]: of each
	 * hop in both directions, for trees that load both. */
	double *hop, *in, *out, *both;
	/* Room for one question to tour.h or arbor.h, and for its answer. */
	double *begin, *end, *matrix, *ends;
	double *fair; /* prices of rows, the same for links alike */
	double *sum;  /* by row, 0 between uses */
	uint32_t *order, *parent;
	/* Hops over NICs are looked at: of each hop the way that is cheapest now, and room for
	 * those of a column. */
	bool detours;
	struct tti_way *way, *ways;
	struct tti_ends *leave, *enter; /* [member]: its cheapest NICs of one fabric */
	struct tti_ring_prices ring;
	int64_t until_ns;   /* of tti_thread_ns() */
	uint32_t questions; /* that may still be asked of many members: the same on every rank,
			     * as time is not */
};

/* Fill hop, in, out and both from the prices of the rows. */
void tti_pool_price(struct tti_pool *pool, const double *prices);

/* Add a copy of a column, if it is not there yet. pool->scratch is its load then. */
TUTTI_CHECKED tutti_status tti_pool_add(struct tti_pool *pool, const struct tti_column *column);

/* What 1 GB/s of a column takes of the rows, into pool->scratch, far and hops. */
TUTTI_CHECKED tutti_status tti_pool_loads(struct tti_pool *pool, const struct tti_column *column);

/* So many questions to tour.h and arbor.h about n members take about as long as all
 * that the search of 16 members asks; up to TTI_TOUR_EXACT members there is no limit. */
static inline bool tti_pool_may_ask(struct tti_pool *pool)
{
	return pool->loads->n <= 16 || (pool->questions > 0 && pool->questions-- > 0);
}

/* How columns are asked for. */
enum tti_ask {
	TTI_ASK_ONE,   /* the best that comes in through NIC number `which`, whatever it costs */
	TTI_ASK_MANY,  /* a good one for each NIC, those that cost less than 1                 */
	TTI_ASK_PROVE, /* take the time to be sure that none costs less than *least_out        */
	TTI_ASK_BOUND, /* add none: only *least_out, which need not be reached by any          */
};

/* Add columns to the pool, *nadded_out of them. With PROVE, *least_out is a bound on what
 * any column costs (INFINITY: there is none at all), or 0 as some were added. */
typedef tutti_status tti_pricer(struct tti_pool *pool, enum tti_ask ask, uint32_t which,
				double *least_out, uint32_t *nadded_out);
tti_pricer tti_price_rings, tti_price_trees;
/* Columns of rings and trees that are best where one switch links all members alike, or
 * links of one speed each to each. */
TUTTI_CHECKED tutti_status tti_seed(struct tti_pool *pool);
/* Columns of a node alone that leave it by the nearest NICs wherever they would lead over CPUs. */
TUTTI_CHECKED tutti_status tti_seed_detours(struct tti_pool *pool);
bool tti_loads_on_a_switch(const struct tti_loads *loads);
/* Columns of a pattern with heads: without prices those of the nearest NICs, with prices
 * all that cost less than they bring. */
TUTTI_CHECKED tutti_status tti_add_heads(struct tti_pool *pool, const double *prices,
					 uint32_t *nadded_out);

/* Weights are kept in steps of 10 KB/s, rounded down. */
#define TTI_STEP_GBPS  1e-5
#define TTI_STEP_SLACK 0.02 /* of a step, which the solver may miss it by */

struct tti_pick {
	uint32_t column;
	double weight;
};

/* From the last solution, which carries `reach` GB/s, to one that carries as much over nearer
 * ways; GB/s and `far` of it. */
TUTTI_CHECKED tutti_status tti_prefer_near(struct tti_pool *pool, tti_pricer *price, double reach,
					   struct tti_score *out);

/* Few columns that carry as much as the last solution, the heaviest first, each of which goes
 * into `ways` channels. Without a pricer those of the last solution. *picks_out is the pool's. */
TUTTI_CHECKED tutti_status tti_refine(struct tti_pool *pool, tti_pricer *price, uint32_t ways,
				      double reach, struct tti_pick **picks_out, uint32_t *n_out);

/* Fill channels and total of `search` from the last solution. */
TUTTI_CHECKED tutti_status tti_extract(struct tti_pool *pool, tti_pricer *price,
				       struct tti_local *search);

#define TTI_PRICE_EPS 1e-6 /* cheaper than 1 by less than that is no gain */

#endif
