/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "plan/search/column.h"
#include "plan/search/tour.h"
#include "util/clock.h"
#include "util/error.h"

/* Where exact answers are cheap enough to be asked for at every step. */
#define EXACT_AT_ONCE 10

/* One question to tour.h: the best ring that comes in through a NIC. */
struct question {
	struct tti_tour_input tour;
	uint32_t in, out; /* TTI_NO_NET: the best for that member, or none at all */
};

static uint32_t best_net(const double *prices, uint32_t nnets, uint32_t n, uint32_t member)
{
	uint32_t best = 0;

	for (uint32_t net = 1; net < nnets; net++)
		if (prices[net * n + member] < prices[best * n + member])
			best = net;
	return best;
}

/* Mirrored rings run there and back, each with half the weight, and pay half of each. */
static void halve(const double *there, const double *back, uint32_t n, double *out)
{
	for (uint32_t i = 0; i < n; i++)
		out[i] = (there[i] + back[i]) / 2;
}

/* What rings pay at prices of now, into pool->ring. */
static void prepare(struct tti_pool *pool)
{
	const uint32_t n = pool->loads->n, nnets = pool->loads->nnets;
	struct tti_ring_prices *ring = &pool->ring;

	ring->hop = pool->hop;
	ring->in = pool->in;
	ring->out = pool->out;
	if (nnets == 0 || pool->config->cross_nic != TTI_CROSS_MIRROR)
		return;
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t j = 0; j < n; j++)
			pool->matrix[i * n + j] = (pool->hop[i * n + j] + pool->hop[j * n + i]) / 2;
	halve(pool->in, pool->out, n * nnets, pool->ends);
	ring->hop = pool->matrix;
	ring->in = ring->out = pool->ends;
}

/* A ring without NICs begins anywhere: at member 0, say. */
static void ask_closed(struct tti_pool *pool, struct question *q)
{
	const uint32_t n = pool->loads->n;

	for (uint32_t i = 0; i < n; i++) {
		pool->begin[i] = i == 0 ? 0 : INFINITY;
		pool->end[i] = n == 1 ? 0 : pool->hop[i * n];
	}
	*q = (struct question){ { n, pool->hop, pool->begin, pool->end }, TTI_NO_NET, TTI_NO_NET };
}

/* In through `in`, out through `out` (TTI_NO_NET: the best for each member). */
static void ask_ends(struct tti_pool *pool, uint32_t in, uint32_t out, struct question *q)
{
	const struct tti_ring_prices *ring = &pool->ring;
	const uint32_t n = pool->loads->n, nnets = pool->loads->nnets;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t first = in != TTI_NO_NET ? in : best_net(ring->in, nnets, n, i);
		const uint32_t last = out != TTI_NO_NET ? out : best_net(ring->out, nnets, n, i);

		pool->begin[i] = ring->in[first * n + i];
		pool->end[i] = ring->out[last * n + i];
	}
	*q = (struct question){ { n, ring->hop, pool->begin, pool->end }, in, out };
}

static void ask(struct tti_pool *pool, uint32_t in, struct question *q)
{
	if (pool->loads->nnets == 0)
		ask_closed(pool, q);
	else
		ask_ends(pool, in, pool->config->cross_nic == TTI_CROSS_SAME ? in : TTI_NO_NET, q);
}

/* In and out through the best of all, whatever is allowed. */
static void ask_any(struct tti_pool *pool, struct question *q)
{
	if (pool->loads->nnets == 0)
		ask_closed(pool, q);
	else
		ask_ends(pool, TTI_NO_NET, TTI_NO_NET, q);
}

static tutti_status add(struct tti_pool *pool, const struct question *q, uint32_t *order,
			uint32_t *nadded)
{
	const uint32_t n = pool->loads->n, nnets = pool->loads->nnets;
	const size_t before = pool->columns.n;
	struct tti_column column = {
		.order = order, .net_in = q->in, .net_out = q->out, .second = UINT32_MAX
	};

	if (nnets > 0 && q->in == TTI_NO_NET)
		column.net_in = best_net(pool->ring.in, nnets, n, order[0]);
	if (nnets > 0 && q->out == TTI_NO_NET)
		column.net_out = best_net(pool->ring.out, nnets, n, order[n - 1]);
	tti_detour_choose(pool, &column);
	TTI_TRY(tti_pool_add(pool, &column));
	*nadded += (uint32_t)(pool->columns.n - before);
	return TUTTI_OK;
}

/* No ring of this question costs less than *least_out; if `exact`, one that costs so
 * much is in `order`, and *cost_out is its cost. */
static tutti_status settle(struct tti_pool *pool, const struct question *q, uint32_t *order,
			   double *cost, double *least_out)
{
	const uint32_t n = q->tour.n;

	TTI_TRY(tti_tour_bound(&q->tour, least_out));
	if (*least_out >= 1 - TTI_PRICE_EPS || n > TTI_TOUR_EXACT ||
	    (n > EXACT_AT_ONCE && tti_thread_ns() >= pool->until_ns))
		return TUTTI_OK;
	return tti_tour_exact(&q->tour, order, cost, least_out);
}

/* Is there none below 1? If the good one is not, ask for sure. */
static tutti_status prove(struct tti_pool *pool, const struct question *q, uint32_t *order,
			  double *least, uint32_t *nadded)
{
	double cost = INFINITY, this = 0;

	if (tti_pool_may_ask(pool))
		TTI_TRY(tti_tour_good(&q->tour, order, &cost));
	if (!(cost < 1 - TTI_PRICE_EPS))
		TTI_TRY(settle(pool, q, order, &cost, &this));
	if (cost < 1 - TTI_PRICE_EPS)
		TTI_TRY(add(pool, q, order, nadded));
	*least = this < *least ? this : *least;
	return TUTTI_OK;
}

/* No ring costs less, with any choice of NICs. */
static tutti_status bound(struct tti_pool *pool, double *least_out)
{
	struct question q;

	ask_any(pool, &q);
	return tti_tour_bound(&q.tour, least_out);
}

static tutti_status prove_all(struct tti_pool *pool, uint32_t *order, double *least_out,
			      uint32_t *nadded)
{
	const bool each = pool->loads->nnets > 0 && pool->config->cross_nic == TTI_CROSS_SAME;
	struct question q;
	double least;

	TTI_TRY(bound(pool, &least));
	if (least >= 1 - TTI_PRICE_EPS) {
		*least_out = least;
		return TUTTI_OK;
	}
	*least_out = INFINITY;
	if (!each) {
		ask(pool, TTI_NO_NET, &q);
		return prove(pool, &q, order, least_out, nadded);
	}
	for (uint32_t net = 0; net < pool->loads->nnets; net++) {
		if (!tti_pool_may_ask(pool)) {
			*least_out = least;
			break;
		}
		ask(pool, net, &q);
		TTI_TRY(prove(pool, &q, order, least_out, nadded));
	}
	return TUTTI_OK;
}

static tutti_status good_ones(struct tti_pool *pool, enum tti_ask how, uint32_t which,
			      uint32_t *order, uint32_t *nadded)
{
	const uint32_t nnets = pool->loads->nnets ? pool->loads->nnets : 1;

	for (uint32_t i = 0; i < (how == TTI_ASK_ONE ? 1 : nnets); i++) {
		struct question q;
		double cost;

		if (how == TTI_ASK_MANY && !tti_pool_may_ask(pool))
			break;
		ask(pool, how == TTI_ASK_ONE ? which % nnets : i, &q);
		TTI_TRY(tti_tour_good(&q.tour, order, &cost));
		if (cost < (how == TTI_ASK_ONE ? INFINITY : 1 - TTI_PRICE_EPS))
			TTI_TRY(add(pool, &q, order, nadded));
	}
	return TUTTI_OK;
}

tutti_status tti_price_rings(struct tti_pool *pool, enum tti_ask how, uint32_t which,
			     double *least_out, uint32_t *nadded_out)
{
	uint32_t *order = pool->order;

	*least_out = 0;
	*nadded_out = 0;
	prepare(pool);
	if (how == TTI_ASK_BOUND)
		return bound(pool, least_out);
	if (how == TTI_ASK_PROVE)
		return prove_all(pool, order, least_out, nadded_out);
	return good_ones(pool, how, which, order, nadded_out);
}
