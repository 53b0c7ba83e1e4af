/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "plan/column.h"
#include "util/error.h"
#include "util/mem.h"

/* Of all packings that carry about as much as the best, one with a better score (score.h): over
 * near ways. */

/* Of each GB/s that a far hop carries: what is charged first, and at least. */
#define FAR_CHARGE       1e-3
#define FAR_CHARGE_LEAST 1e-5
#define NEAR_ROUNDS      64

/* But for rounding. */
static bool is_used(double weight)
{
	return weight >= TTI_STEP_GBPS;
}

static struct tti_score score_of(const struct tti_pool *pool, const double *weights, uint32_t n)
{
	struct tti_score score = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		const struct tti_column *column = &pool->columns.at[i];

		if (!is_used(weights[i]))
			continue;
		score.gbps += weights[i];
		score.far += weights[i] * column->far;
		score.far_hops += weights[i] * column->far_hops;
		score.hops += weights[i] * column->hops;
		score.nchannels++;
	}
	return score;
}

static struct tti_score score_now(const struct tti_pool *pool)
{
	return score_of(pool, tti_lp_weights(pool->lp), (uint32_t)pool->columns.n);
}

static void charge(struct tti_pool *pool, double each)
{
	pool->charge = each;
	for (uint32_t i = 0; i < pool->columns.n; i++)
		tti_lp_charge(pool->lp, i, each * pool->columns.at[i].far_hops);
}

/* Generate columns until none gains, or so many rounds. */
static tutti_status generate(struct tti_pool *pool, tti_pricer *price, uint32_t rounds)
{
	double value, least;
	uint32_t nadded = 1;

	for (uint32_t i = 0; i < rounds && nadded > 0; i++) {
		TTI_TRY(tti_lp_solve(pool->lp, &value));
		tti_pool_price(pool, tti_lp_prices(pool->lp));
		TTI_TRY(price(pool, TTI_ASK_MANY, 0, &least, &nadded));
	}
	return tti_lp_solve(pool->lp, &value);
}

/* A little is charged for far hops, and columns are generated at these prices: what is as
 * good without far hops comes out without. Where the charge is so high that it costs
 * bandwidth, a smaller one. */
static tutti_status prefer_near(struct tti_pool *pool, tti_pricer *price, double least)
{
	if (score_now(pool).far <= TTI_STEP_GBPS)
		return TUTTI_OK;
	for (double each = FAR_CHARGE; each >= FAR_CHARGE_LEAST; each /= 10) {
		charge(pool, each);
		TTI_TRY(generate(pool, price, NEAR_ROUNDS));
		if (score_now(pool).gbps >= least)
			return TUTTI_OK;
	}
	charge(pool, 0);
	return generate(pool, price, 1);
}

tutti_status tti_prefer_near(struct tti_pool *pool, tti_pricer *price, double reach,
			     struct tti_score *out)
{
	TTI_TRY(prefer_near(pool, price, reach * (1 - TTI_SCORE_WORTH)));
	*out = score_now(pool);
	out->nchannels = 0; /* not thinned out yet */
	out->hops = 0;
	return TUTTI_OK;
}
