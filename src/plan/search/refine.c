/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdlib.h>

#include "plan/search/column.h"
#include "plan/search/tour.h"
#include "util/error.h"
#include "util/mem.h"

/* The packing with the best score (score.h) of all that carry about as much as the best: near paths
 * first, then few channels. */

/* The charge for each GB/s of a far hop: the first one, and the least. */
#define FAR_CHARGE       1e-3
#define FAR_CHARGE_LEAST 1e-5
#define NEAR_ROUNDS      64
/* How many columns are found for each step that keep to links with much left, how many are tried,
 * rounds of generating others beside one, and how many linear programs that makes at most. */
#define WIDE             4
#define TRIES            4
#define FILL_ROUNDS      3
#define QUESTIONS        40
#define QUESTIONS_MANY   8 /* of more than 16 members                             */
/* This share of what fits is left, so that the solver finds that it fits. */
#define SLACK            1e-7
/* If there are more members than there may be channels, a tree from each member would gain one part
 * in the number of members; that much is given up. */
#define MANY_WORTH       0.02
/* How often the lightest columns are left out, and rounds of generating others then. */
#define CUTS             32
#define CUT_ROUNDS       1

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

/* -- Near ways --------------------------------------------------------------------- */

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

	for (uint32_t i = 0; i < rounds && nadded > 0 && tti_pool_may_ask(pool); i++) {
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

/* -- Few channels ------------------------------------------------------------------ */

/* A packing under way: some columns have their weight, the others what is best then. */
struct dive {
	struct tti_pool *pool;
	tti_pricer *price;
	double least;             /* GB/s that are to be left                      */
	double most;              /* that fits of any column beside no other       */
	double done;              /* GB/s that are settled                         */
	uint32_t nsettled, fewer; /* columns; only fewer than that are of use      */
	uint32_t questions;       /* that may still be asked of the linear program */
	uint32_t room;            /* of the arrays                                 */
	double *weight;           /* [column]: -1 not settled                      */
	double *left;             /* [row]                                         */
	struct tti_pick *picks;   /* room for one of each column                   */
};

/* How much of a column fits beside what is settled. */
static tutti_status fits(struct dive *dive, uint32_t column, double *out)
{
	struct tti_pool *pool = dive->pool;
	double most = INFINITY;

	TTI_TRY(tti_pool_loads(pool, &pool->columns.at[column]));
	for (size_t i = 0; i < pool->scratch.n; i++)
		pool->sum[pool->scratch.at[i].row] += (double)pool->scratch.at[i].amount;
	for (size_t i = 0; i < pool->scratch.n; i++) {
		const uint32_t row = pool->scratch.at[i].row;

		most = fmin(most, dive->left[row] / pool->sum[row]);
	}
	for (size_t i = 0; i < pool->scratch.n; i++)
		pool->sum[pool->scratch.at[i].row] = 0;
	*out = fmax(most, 0);
	return TUTTI_OK;
}

static tutti_status settle(struct dive *dive, uint32_t column, double weight)
{
	struct tti_pool *pool = dive->pool;

	TTI_TRY(tti_pool_loads(pool, &pool->columns.at[column]));
	for (size_t i = 0; i < pool->scratch.n; i++)
		dive->left[pool->scratch.at[i].row] -= weight * (double)pool->scratch.at[i].amount;
	dive->weight[column] = weight;
	dive->done += weight;
	dive->nsettled++;
	return TUTTI_OK;
}

static int by_weight(const void *a, const void *b)
{
	const struct tti_pick *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->column < y->column ? -1 : x->column > y->column;
}

/* Columns that keep to links with much left, whatever they cost. */
static tutti_status find_wide(struct dive *dive)
{
	struct tti_pool *pool = dive->pool;
	const uint32_t nnets = pool->loads->nnets ? pool->loads->nnets : 1;
	double least, value;
	uint32_t nadded;

	for (uint32_t row = 0; row < pool->loads->nrows; row++)
		pool->fair[row] =
			pow(fmax(dive->left[row] / pool->loads->capacity[row], 1e-3), -2) /
			pool->loads->capacity[row];
	tti_pool_price(pool, pool->fair);
	for (uint32_t i = 0;
	     i < nnets && i < WIDE && pool->columns.n < dive->room && tti_pool_may_ask(pool); i++)
		TTI_TRY(dive->price(pool, TTI_ASK_ONE, dive->nsettled + i, &least, &nadded));
	return tti_lp_solve(pool->lp, &value);
}

/* Those that are used and not settled, and those that are new, what fits most first. */
static tutti_status candidates(struct dive *dive, uint32_t *n_out, uint32_t *heaviest)
{
	const uint32_t before = (uint32_t)dive->pool->columns.n;
	const double *weights;
	double most = 0;

	*n_out = 0;
	TTI_TRY(find_wide(dive));
	weights = tti_lp_weights(dive->pool->lp);
	for (uint32_t i = 0; i < dive->pool->columns.n && i < dive->room; i++) {
		struct tti_pick *pick = &dive->picks[*n_out];

		if (dive->weight[i] >= 0 || (i < before && !is_used(weights[i])))
			continue;
		pick->column = i;
		TTI_TRY(fits(dive, i, &pick->weight));
		pick->weight *= 1 - SLACK;
		if (!is_used(pick->weight))
			continue;
		if (weights[i] > most) {
			most = weights[i];
			*heaviest = i;
		}
		++*n_out;
	}
	if (most <= 0)
		*n_out = 0;
	qsort(dive->picks, *n_out, sizeof(*dive->picks), by_weight);
	return TUTTI_OK;
}

/* Whether enough is left if a column carries all that fits. */
static tutti_status may_fill(struct dive *dive, const struct tti_pick *pick, bool *out)
{
	struct tti_pool *pool = dive->pool;
	double value;

	tti_lp_fix(pool->lp, pick->column, pick->weight);
	TTI_TRY(tti_lp_solve(pool->lp, &value));
	dive->questions -= dive->questions > 0;
	for (int i = 0;
	     i < FILL_ROUNDS && dive->questions > 0 && score_now(pool).gbps < dive->least; i++) {
		const size_t before = pool->columns.n;

		if (pool->columns.n >= dive->room)
			break;
		TTI_TRY(generate(pool, dive->price, 1));
		dive->questions -= dive->questions > 1 ? 2 : 1;
		if (pool->columns.n == before)
			break;
	}
	*out = score_now(pool).gbps >= dive->least;
	if (!*out)
		tti_lp_fix(pool->lp, pick->column, -1);
	return TUTTI_OK;
}

/* One more column gets its weight: all that fits, if enough is left then; else what it has. */
static tutti_status step(struct dive *dive, bool *more_out)
{
	struct tti_pool *pool = dive->pool;
	uint32_t n, heaviest = 0;
	bool good = false;
	double value, weight;

	TTI_TRY(candidates(dive, &n, &heaviest));
	*more_out = n > 0;
	if (n == 0)
		return TUTTI_OK;
	weight = tti_lp_weights(pool->lp)[heaviest];
	for (uint32_t i = 0; i < n && i < TRIES; i++) {
		const struct tti_pick pick = dive->picks[i];

		TTI_TRY(may_fill(dive, &pick, &good));
		if (good)
			return settle(dive, pick.column, pick.weight);
	}
	TTI_TRY(fits(dive, heaviest, &value));
	weight = fmin(weight, value * (1 - SLACK));
	TTI_TRY(settle(dive, heaviest, weight));
	tti_lp_fix(pool->lp, heaviest, weight);
	return tti_lp_solve(pool->lp, &value);
}

/* Column after column gets its weight, as much as fits where that leaves enough for the others,
 * until all of the bandwidth is given out. */
static tutti_status dive_down(struct dive *dive, bool *done_out)
{
	struct tti_pool *pool = dive->pool;
	bool more = true;
	double value;

	for (uint32_t row = 0; row < pool->loads->nrows; row++)
		dive->left[row] = pool->loads->capacity[row];
	for (uint32_t i = 0; i < dive->room; i++)
		dive->weight[i] = -1;
	TTI_TRY(tti_lp_solve(pool->lp, &value));
	dive->done = 0;
	dive->nsettled = 0;
	while (more && dive->questions > 0 &&
	       dive->nsettled + ceil((dive->least - dive->done) / dive->most - 1e-6) < dive->fewer)
		TTI_TRY(step(dive, &more));
	*done_out = !more;
	for (uint32_t i = 0; i < pool->columns.n; i++)
		tti_lp_fix(pool->lp, i, -1);
	return TUTTI_OK;
}

/* -- All of it --------------------------------------------------------------------- */

/* The best packing so far. */
struct best {
	struct tti_pick *picks;
	uint32_t n;
	struct tti_score score;
};

/* Keep a packing if it is better. */
static void offer(const struct tti_pool *pool, const double *weights, uint32_t room, double least,
		  struct best *best)
{
	const uint32_t n = pool->columns.n < room ? (uint32_t)pool->columns.n : room;
	const struct tti_score score = score_of(pool, weights, n);

	if (best->n > 0 && !tti_score_better(&score, &best->score, least))
		return;
	best->score = score;
	best->n = 0;
	for (uint32_t i = 0; i < n; i++)
		if (is_used(weights[i]))
			best->picks[best->n++] = (struct tti_pick){ i, weights[i] };
}

/* How many columns there may be: each becomes one channel, or a pair. No NIC is left idle for
 * want of a channel, unless so few are asked for. */
static uint32_t most_columns(const struct tti_pool *pool, uint32_t ways)
{
	const uint32_t asked = pool->config->max_channels, nnets = pool->loads->nnets;
	const uint32_t each = pool->config->in_pairs ? 2 : ways;

	if (asked)
		return asked > each ? asked / each : 1;
	return nnets * each > TTI_MOST_CHANNELS * ways ? nnets / ways : TTI_MOST_CHANNELS / each;
}

/* The best GB/s for these columns alone. */
static tutti_status weigh(struct tti_pool *pool, struct best *best)
{
	struct tti_lp *lp = NULL;
	double value;
	tutti_status st;

	TTI_TRY(tti_lp_create(pool->loads->capacity, pool->loads->nrows, &lp));
	for (uint32_t i = 0; i < best->n; i++) {
		st = tti_pool_loads(pool, &pool->columns.at[best->picks[i].column]);
		if (st == TUTTI_OK)
			st = tti_lp_add(lp, pool->scratch.at, pool->scratch.n);
		if (st != TUTTI_OK)
			goto out;
		tti_lp_charge(lp, i, pool->charge * pool->far_hops);
	}
	st = tti_lp_solve(lp, &value);
	if (st != TUTTI_OK)
		goto out;
	for (uint32_t i = 0; i < best->n; i++)
		best->picks[i].weight = tti_lp_weights(lp)[i];
	qsort(best->picks, best->n, sizeof(*best->picks), by_weight);
out:
	tti_lp_free(lp);
	return st;
}

/* Leave the lightest out for good, and others come in their place, until they are few enough or
 * too much is lost. */
static tutti_status cut(struct tti_pool *pool, tti_pricer *price, struct tti_pick *picks,
			uint32_t room, uint32_t most, double least, struct best *best)
{
	double value;
	uint32_t n;

	TTI_TRY(tti_lp_solve(pool->lp, &value));
	for (int round = 0; round < (pool->loads->n > TTI_TOUR_EXACT ? QUESTIONS_MANY : CUTS);
	     round++) {
		const double *weights = tti_lp_weights(pool->lp);

		n = 0;
		for (uint32_t i = 0; i < pool->columns.n && i < room; i++)
			if (is_used(weights[i]))
				picks[n++] = (struct tti_pick){ i, weights[i] };
		if (score_now(pool).gbps < least)
			break;
		if (n > 0 && n < best->n) {
			best->n = 0;
			offer(pool, weights, room, least, best);
		}
		if (n <= most)
			break;
		qsort(picks, n, sizeof(*picks), by_weight);
		for (uint32_t over = (n - most + 2) / 3; over > 0; over--)
			tti_lp_ban(pool->lp, picks[--n].column, true);
		TTI_TRY(pool->columns.n < room ? generate(pool, price, CUT_ROUNDS)
					       : tti_lp_solve(pool->lp, &value));
	}
	for (uint32_t i = 0; i < pool->columns.n; i++)
		tti_lp_ban(pool->lp, i, false);
	return TUTTI_OK;
}

static tutti_status try_dive(struct dive *dive, struct best *best)
{
	bool done = false;

	dive->questions = dive->pool->loads->n > TTI_TOUR_EXACT ? QUESTIONS_MANY : QUESTIONS;
	dive->fewer = best->n;
	TTI_TRY(dive_down(dive, &done));
	if (done)
		offer(dive->pool, dive->weight, dive->room, dive->least, best);
	return TUTTI_OK;
}

/* Few columns that carry as much as the last solution; not more than `most`, if that costs no
 * more than it is worth. */
static tutti_status find_few(struct tti_pool *pool, tti_pricer *price, double reach, uint32_t most,
			     struct best *best)
{
	struct tti_arena *arena = &pool->arena;
	struct dive dive = { .pool = pool,
			     .price = price,
			     .least = reach * (1 - TTI_SCORE_WORTH),
			     .room = 2 * (uint32_t)pool->columns.n + 256 };

	for (uint32_t i = 0; i < pool->columns.n; i++)
		dive.most = fmax(dive.most, pool->columns.at[i].alone);
	dive.weight = tti_arena_alloc(arena, dive.room * sizeof(*dive.weight));
	dive.left = tti_arena_alloc(arena, pool->loads->nrows * sizeof(*dive.left));
	dive.picks = tti_arena_alloc(arena, dive.room * sizeof(*dive.picks));
	best->picks = tti_arena_alloc(arena, dive.room * sizeof(*best->picks));
	if (!dive.weight || !dive.left || !dive.picks || !best->picks)
		return tti_fail(TUTTI_ENOMEM, "channels: out of memory");
	offer(pool, tti_lp_weights(pool->lp), dive.room, reach, best);
	if (!price)
		return TUTTI_OK;
	TTI_TRY(try_dive(&dive, best));
	if (best->n > most && pool->loads->n > most) {
		dive.least = reach * (1 - MANY_WORTH);
		TTI_TRY(try_dive(&dive, best));
	}
	if (best->n > most)
		TTI_TRY(cut(pool, price, dive.picks, dive.room, most,
			    pool->config->max_channels ? 0 : reach * (1 - TTI_FEW_WORTH), best));
	return TUTTI_OK;
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

tutti_status tti_refine(struct tti_pool *pool, tti_pricer *price, uint32_t ways, double reach,
			struct tti_pick **picks_out, uint32_t *n_out)
{
	const uint32_t most = most_columns(pool, ways);
	struct best best = { 0 };

	TTI_TRY(find_few(pool, price, reach, most, &best));
	qsort(best.picks, best.n, sizeof(*best.picks), by_weight);
	if (best.n > most && pool->config->max_channels)
		best.n = most;
	if (best.n > 0)
		TTI_TRY(weigh(pool, &best));
	*picks_out = best.picks;
	*n_out = best.n;
	return TUTTI_OK;
}
