/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/search.h"

#include <math.h>
#include <string.h>

#include "plan/search/column.h"
#include "plan/search/tour.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

#define DEFAULT_BUDGET_MS 1000
/* Asked whether this is close enough to the bound, the search stops. */
#define CLOSE             2e-6
/* For many members this is close enough. */
#define NEARLY            0.02
/* The greedy start: rounds for each member and NIC, and how much dearer a link gets that is
 * filled once. */
#define FIRST_ROUNDS      4
#define DEARER            0.5
/* The questions for more than 16 members, times members cubed. */
#define QUESTIONS         2e7

/* -- The pool of columns ----------------------------------------------------------- */

static void pool_release(struct tti_pool *pool)
{
	tti_lp_free(pool->lp);
	tti_vec_release(&pool->columns);
	tti_vec_release(&pool->scratch);
	tti_arena_release(&pool->arena);
}

static tutti_status pool_init(struct tti_pool *pool, const struct tti_loads *loads,
			      const struct tti_local_config *config)
{
	const size_t nhops = (size_t)loads->n * loads->n;
	const size_t nends = (size_t)loads->n * (loads->nnets + loads->ninner);
	const double budget = config->budget_ms > 0 ? config->budget_ms : DEFAULT_BUDGET_MS;
	double *room;

	*pool = (struct tti_pool){ .loads = loads,
				   .config = config,
				   .until_ns = tti_thread_ns() + (int64_t)(budget * 1e6),
				   .questions = 1 + (uint32_t)(QUESTIONS / pow(loads->n, 3)) };
	room = tti_arena_alloc(&pool->arena,
			       (3 * nhops + 3 * nends + 2 * loads->n + 2 * loads->nrows) *
				       sizeof(*room));
	pool->order = tti_arena_alloc(&pool->arena, 2 * loads->n * sizeof(*pool->order));
	pool->way = tti_arena_alloc(&pool->arena, (nhops + loads->n) * sizeof(*pool->way));
	pool->leave = tti_arena_alloc(&pool->arena, 2 * loads->n * sizeof(*pool->leave));
	if (!room || !pool->order || !pool->way || !pool->leave)
		return tti_fail(TUTTI_ENOMEM, "search of channels: out of memory");
	pool->hop = room;
	pool->matrix = pool->hop + nhops;
	pool->both = pool->matrix + nhops;
	pool->in = pool->both + nhops;
	pool->out = pool->in + nends;
	pool->ends = pool->out + nends;
	pool->begin = pool->ends + nends;
	pool->end = pool->begin + loads->n;
	pool->fair = pool->end + loads->n;
	pool->sum = pool->fair + loads->nrows;
	pool->parent = pool->order + loads->n;
	pool->ways = pool->way + nhops;
	pool->enter = pool->leave + loads->n;
	return tti_lp_create(loads->capacity, loads->nrows, &pool->lp);
}

/* -- Generating columns ------------------------------------------------------------ */

/* The first columns: as many as a greedy packing would use that makes each link dearer
 * by what it carries already (Garg and Konemann, SIAM J. Comput. 37, 2007). They are
 * cheap to find, and the linear program has little left to add. */
static tutti_status first_columns(struct tti_pool *pool, tti_pricer *price)
{
	const struct tti_loads *loads = pool->loads;
	const uint32_t rounds = FIRST_ROUNDS * (loads->n + loads->nnets);
	double *prices = tti_calloc(loads->nrows, sizeof(*prices));
	tutti_status st = TUTTI_OK;

	if (!prices)
		return tti_fail(TUTTI_ENOMEM, "search of channels: out of memory");
	for (uint32_t row = 0; row < loads->nrows; row++)
		prices[row] = 1e-3 / loads->capacity[row];
	for (uint32_t i = 0; st == TUTTI_OK && i < rounds && tti_pool_may_ask(pool); i++) {
		double least, most = INFINITY;
		uint32_t nadded;

		pool->scratch.n = 0;
		tti_pool_price(pool, prices);
		st = price(pool, TTI_ASK_ONE, i, &least, &nadded);
		for (size_t k = 0; k < pool->scratch.n; k++)
			most = fmin(most, loads->capacity[pool->scratch.at[k].row] /
						  (double)pool->scratch.at[k].amount);
		for (size_t k = 0; k < pool->scratch.n; k++)
			prices[pool->scratch.at[k].row] *=
				1 + DEARER * most * (double)pool->scratch.at[k].amount /
					    loads->capacity[pool->scratch.at[k].row];
	}
	tti_free(prices);
	return st;
}

/* One round: solve, price, ask. *more_out: columns came. */
static tutti_status round_of(struct tti_pool *pool, tti_pricer *price, bool prove, double *value,
			     double *bound, bool *more_out)
{
	double least;
	uint32_t nadded;

	TTI_TRY(tti_lp_solve(pool->lp, value));
	tti_pool_price(pool, tti_lp_prices(pool->lp));
	TTI_TRY(price(pool, prove ? TTI_ASK_PROVE : TTI_ASK_MANY, 0, &least, &nadded));
	*more_out = nadded > 0;
	if (prove && least > 0 && *value / fmin(least, 1) < *bound)
		*bound = *value / fmin(least, 1);
	return TUTTI_OK;
}

/* Links of one speed between nodes of the same types. */
static bool are_alike(const struct tti_loads *loads, uint32_t a, uint32_t b)
{
	const struct tti_graph *graph = loads->routes->paths->graph;
	const struct tti_topo_link *x = &graph->links[loads->link[a]],
				   *y = &graph->links[loads->link[b]];

	return loads->capacity[a] == loads->capacity[b] && x->type == y->type &&
	       graph->nodes[x->from].type == graph->nodes[y->from].type &&
	       graph->nodes[x->to].type == graph->nodes[y->to].type;
}

/* If links are alike, the linear program charges for any of them, at its whim. The bound that
 * follows is better if all of them cost the same. */
static tutti_status bound_alike(struct tti_pool *pool, tti_pricer *price, double value,
				double *bound)
{
	const struct tti_loads *loads = pool->loads;
	const double *prices = tti_lp_prices(pool->lp);
	double least;
	uint32_t nadded;

	for (uint32_t row = 0; row < loads->nrows; row++) {
		double sum = 0;
		uint32_t count = 0;

		for (uint32_t other = 0; other < loads->nrows; other++)
			if (are_alike(loads, row, other)) {
				sum += prices[other];
				count++;
			}
		pool->fair[row] = sum / count;
	}
	tti_pool_price(pool, pool->fair);
	TTI_TRY(price(pool, TTI_ASK_BOUND, 0, &least, &nadded));
	if (least > 0)
		*bound = fmin(*bound, value / fmin(least, 1));
	return TUTTI_OK;
}

/* Add what is known without a search; *best_out: it is the best already. */
static tutti_status try_seeds(struct tti_pool *pool, tti_pricer *price, double *value,
			      double *bound, bool *best_out)
{
	*best_out = false;
	TTI_TRY(tti_seed(pool));
	if (pool->columns.n == 0)
		return TUTTI_OK;
	TTI_TRY(tti_lp_solve(pool->lp, value));
	TTI_TRY(bound_alike(pool, price, *value, bound));
	*best_out = *value >= *bound * (1 - CLOSE);
	return TUTTI_OK;
}

/* Add columns until none is left that would gain. */
static tutti_status add_columns(struct tti_pool *pool, tti_pricer *price, double *value_out,
				double *bound_out)
{
	const double known = pool->config->known_bound;
	bool more = true, prove = false;

	while (more || !prove) {
		prove = !more || tti_thread_ns() >= pool->until_ns;
		TTI_TRY(round_of(pool, price, prove, value_out, bound_out, &more));
		if (*value_out >= *bound_out * (1 - CLOSE) || (known > 0 && !more))
			break;
		if (prove && tti_thread_ns() >= pool->until_ns)
			break;
	}
	/* The last columns count too. */
	return tti_lp_solve(pool->lp, value_out);
}

/* Directly. */
static tutti_status generate_direct(struct tti_pool *pool, tti_pricer *price, double *value_out,
				    double *bound_out)
{
	const double known = pool->config->known_bound;
	bool best;

	*value_out = 0;
	*bound_out = known > 0 ? known : INFINITY;
	TTI_TRY(try_seeds(pool, price, value_out, bound_out, &best));
	if (best)
		return TUTTI_OK;
	TTI_TRY(first_columns(pool, price));
	if (pool->columns.n == 0) {
		*bound_out = 0;
		return TUTTI_OK;
	}
	return add_columns(pool, price, value_out, bound_out);
}

/* If no question could be answered, for want of time or because prices were 0 along some
 * circle: any prices give a bound, and these are 0 nowhere. */
static tutti_status bound_somehow(struct tti_pool *pool, tti_pricer *price, double value,
				  double *bound)
{
	const struct tti_loads *loads = pool->loads;
	double least;
	uint32_t nadded;

	TTI_TRY(bound_alike(pool, price, value, bound));
	if (isfinite(*bound))
		return TUTTI_OK;
	for (uint32_t row = 0; row < loads->nrows; row++)
		pool->fair[row] = 1 / loads->capacity[row];
	tti_pool_price(pool, pool->fair);
	TTI_TRY(price(pool, TTI_ASK_BOUND, 0, &least, &nadded));
	*bound = loads->nrows / least;
	return TUTTI_OK;
}

/* If there are many members, few questions may be asked, and hops over NICs come first: rings and
 * trees that use them in place of each path over CPUs need no question. */
static tutti_status generate_many(struct tti_pool *pool, tti_pricer *price, double *value_out,
				  double *bound_out)
{
	*value_out = 0;
	*bound_out = INFINITY;
	pool->detours = true;
	TTI_TRY(tti_seed_detours(pool));
	if (pool->columns.n > 0) {
		TTI_TRY(tti_lp_solve(pool->lp, value_out));
		TTI_TRY(bound_alike(pool, price, *value_out, bound_out));
		if (*value_out >= *bound_out * (1 - NEARLY))
			return TUTTI_OK;
	}
	TTI_TRY(first_columns(pool, price));
	return add_columns(pool, price, value_out, bound_out);
}

/* Hops over NICs come last: where they gain nothing, which one question tells, all stays
 * as it is without. */
static tutti_status generate(struct tti_pool *pool, tti_pricer *price, double *value_out,
			     double *bound_out)
{
	const bool over_nets = pool->loads->ninner > 0 && pool->config->cross_nic == TTI_CROSS_ANY;
	bool more;

	if (over_nets && pool->loads->n > TTI_TOUR_EXACT)
		return generate_many(pool, price, value_out, bound_out);
	TTI_TRY(generate_direct(pool, price, value_out, bound_out));
	if (!over_nets)
		return TUTTI_OK;
	pool->detours = true;
	*bound_out = INFINITY;
	if (pool->columns.n > 0) {
		TTI_TRY(round_of(pool, price, true, value_out, bound_out, &more));
		if (!more)
			return TUTTI_OK;
	}
	TTI_TRY(first_columns(pool, price));
	if (pool->columns.n > 0)
		return add_columns(pool, price, value_out, bound_out);
	*bound_out = 0;
	return TUTTI_OK;
}

static tutti_status generate_heads(struct tti_pool *pool, double *value_out)
{
	uint32_t nadded;

	TTI_TRY(tti_add_heads(pool, NULL, &nadded));
	while (nadded > 0) {
		TTI_TRY(tti_lp_solve(pool->lp, value_out));
		TTI_TRY(tti_add_heads(pool, tti_lp_prices(pool->lp), &nadded));
	}
	return TUTTI_OK;
}

/* -- The search -------------------------------------------------------------------- */

/* Prices that are the same for links alike, if they prove the bound as well: then they
 * say more. */
static tutti_status keep_prices(struct tti_pool *pool, tti_pricer *price, double value,
				struct tti_local *search)
{
	const double *prices = tti_lp_prices(pool->lp);
	double bound = INFINITY;

	search->nrows = pool->loads->nrows;
	search->price = tti_arena_alloc(&search->arena, search->nrows * sizeof(double) + 1);
	if (!search->price)
		return tti_fail(TUTTI_ENOMEM, "channels: out of memory");
	if (price && pool->columns.n > 0)
		TTI_TRY(bound_alike(pool, price, value, &bound));
	if (bound <= search->bound_gbps * (1 + CLOSE))
		prices = pool->fair;
	memcpy(search->price, prices, search->nrows * sizeof(double));
	return TUTTI_OK;
}

static bool uses_nets(const struct tti_local *search)
{
	for (uint32_t i = 0; i < search->nchannels; i++)
		if (search->channels[i].way)
			return true;
	return false;
}

static uint32_t crossing_of(enum tti_cross_nic cross)
{
	return cross == TTI_CROSS_SAME ? 0 : cross == TTI_CROSS_MIRROR ? 1 : 2;
}

/* A member alone moves nothing: as fast as memory inside a device. */
static tutti_status search_alone(enum tti_pattern pattern, struct tti_local **out)
{
	struct tti_local *search = tti_zalloc(sizeof(*search));
	struct tti_channel *channel =
		search ? tti_arena_alloc(&search->arena, sizeof(*channel)) : NULL;
	uint32_t *room = search ? tti_arena_alloc(&search->arena, 2 * sizeof(*room)) : NULL;

	if (!channel || !room) {
		tti_local_free(search);
		return tti_fail(TUTTI_ENOMEM, "channels: out of memory");
	}
	search->pattern = pattern;
	*out = search;
	if (tti_pattern_has_heads(pattern))
		return TUTTI_OK;
	room[1] = UINT32_MAX;
	*channel = (struct tti_channel){ .bw_gbps = (float)TTI_LOC_GBPS,
					 .order = room,
					 .parent = pattern == TTI_PATTERN_RING ? NULL : room + 1,
					 .net_in = TTI_NO_NET,
					 .net_out = TTI_NO_NET,
					 .second = UINT32_MAX };
	search->channels = channel;
	search->nchannels = 1;
	search->total_gbps = search->bound_gbps = TTI_LOC_GBPS;
	return TUTTI_OK;
}

/* One search: the pool, and what came of it. */
struct run {
	const struct tti_local_config *config;
	struct tti_pool pool;
	tti_pricer *price;
	struct tti_local *search;
	struct tti_score score; /* but for what is known of channels only */
	int64_t start_ns;
};

static void end_run(struct run *run)
{
	pool_release(&run->pool);
	tti_local_free(run->search);
	*run = (struct run){ 0 };
}

/* Find the most, over paths as near as they can be. */
static tutti_status find_best(struct run *run)
{
	struct tti_local *search = run->search;
	struct tti_pool *pool = &run->pool;

	if (tti_pattern_has_heads(search->pattern)) {
		TTI_TRY(generate_heads(pool, &search->reach_gbps));
		search->bound_gbps = search->reach_gbps;
	} else {
		run->price =
			search->pattern == TTI_PATTERN_RING ? tti_price_rings : tti_price_trees;
		TTI_TRY(generate(pool, run->price, &search->reach_gbps, &search->bound_gbps));
		if (!isfinite(search->bound_gbps))
			TTI_TRY(bound_somehow(pool, run->price, search->reach_gbps,
					      &search->bound_gbps));
	}
	search->ncolumns = (uint32_t)pool->columns.n;
	TTI_TRY(keep_prices(pool, run->price, search->reach_gbps, search));
	if (run->price && pool->columns.n > 0)
		TTI_TRY(tti_prefer_near(pool, run->price, search->reach_gbps, &run->score));
	run->score.crossing = crossing_of(search->cross_nic);
	return TUTTI_OK;
}

/* run->search is NULL if it fails. */
static tutti_status begin_run(const struct tti_loads *loads, const struct tti_local_config *config,
			      struct run *run)
{
	tutti_status st;

	*run = (struct run){ .config = config, .start_ns = tti_now_ns() };
	run->search = tti_zalloc(sizeof(*run->search));
	if (!run->search)
		return tti_fail(TUTTI_ENOMEM, "channels: out of memory");
	run->search->pattern = config->pattern;
	run->search->cross_nic = config->cross_nic;
	st = pool_init(&run->pool, loads, config);
	if (st == TUTTI_OK)
		st = find_best(run);
	run->search->ms = (double)(tti_now_ns() - run->start_ns) / 1e6;
	if (st != TUTTI_OK)
		end_run(run);
	return st;
}

/* Few channels of what was found; then the score is complete. */
static tutti_status thin_run(struct run *run)
{
	if (run->search->nchannels == 0)
		TTI_TRY(tti_extract(&run->pool, run->price, run->search));
	run->score.nchannels = run->search->nchannels;
	return TUTTI_OK;
}

/* The run ends. */
static tutti_status finish_run(struct run *run, struct tti_local **out)
{
	const int64_t start_ns = tti_now_ns();
	tutti_status st = thin_run(run);

	if (st == TUTTI_OK) {
		if (run->pool.loads->nnets == 0)
			run->search->cross_nic =
				uses_nets(run->search) ? TTI_CROSS_ANY : TTI_CROSS_SAME;
		run->search->ms += (double)(tti_now_ns() - start_ns) / 1e6;
		*out = run->search;
		run->search = NULL;
	}
	end_run(run);
	return st;
}

static tutti_status run_one(const struct tti_loads *loads, const struct tti_local_config *config,
			    struct tti_local **out)
{
	struct run run;

	TTI_TRY(begin_run(loads, config, &run));
	return finish_run(&run, out);
}

static bool is_better(const struct run *a, const struct run *b)
{
	const double reach = fmax(a->search->reach_gbps, b->search->reach_gbps);

	return tti_score_better(&a->score, &b->score, reach * (1 - TTI_SCORE_WORTH));
}

/* The better one becomes the best, the other is gone. Mirrored rings are no better than others
 * that are as near, unless these are many. */
static tutti_status compare_runs(struct run *best, struct run *run)
{
	const double ms = best->search->ms + run->search->ms;
	bool better = is_better(run, best);
	tutti_status st = TUTTI_OK;

	if (best->score.crossing == 0 && run->score.crossing == 1 && !better) {
		run->score.crossing = 0;
		if (!is_better(best, run))
			st = thin_run(run);
		run->score.crossing = 1;
		better = st == TUTTI_OK && run->score.nchannels > 0 && is_better(run, best);
	}
	end_run(better ? best : run);
	if (better)
		*best = *run;
	best->search->ms = ms;
	return st;
}

/* The bound for any choice of NICs bounds the other choices, and none of them is nearer. */
static tutti_status try_others(const struct tti_loads *loads, struct tti_local_config one[3],
			       struct run *best)
{
	static const enum tti_cross_nic tries[] = { TTI_CROSS_SAME, TTI_CROSS_MIRROR };
	const double bound = best->search->bound_gbps;

	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct run run;

		if (tries[i] == TTI_CROSS_MIRROR && one[0].max_channels == 1)
			break; /* they come in pairs */
		one[i + 1] = one[0];
		one[i + 1].cross_nic = tries[i];
		one[i + 1].known_bound = bound;
		TTI_TRY(begin_run(loads, &one[i + 1], &run));
		TTI_TRY(compare_runs(best, &run));
		if (best->score.crossing > 0)
			continue;
		TTI_TRY(thin_run(best));
		if (best->search->nchannels <= loads->nnets)
			break;
	}
	return TUTTI_OK;
}

static tutti_status search_auto(const struct tti_loads *loads,
				const struct tti_local_config *config, struct tti_local **out)
{
	struct tti_local_config one[3] = { *config };
	struct run best;
	tutti_status st;

	one[0].cross_nic = TTI_CROSS_ANY;
	TTI_TRY(begin_run(loads, &one[0], &best));
	st = try_others(loads, one, &best);
	if (st == TUTTI_OK)
		return finish_run(&best, out);
	end_run(&best);
	return st;
}

tutti_status tti_local_search(const struct tti_loads *loads, const struct tti_local_config *config,
			      struct tti_local **out)
{
	struct tti_local_config one = *config;

	if (loads->n == 1 && loads->nnets == 0)
		return search_alone(config->pattern, out);
	if (config->cross_nic == TTI_CROSS_AUTO && config->pattern == TTI_PATTERN_RING &&
	    loads->nnets > 1)
		return search_auto(loads, config, out);
	if (loads->nnets == 0 && loads->ninner > 0 && config->cross_nic == TTI_CROSS_AUTO)
		one.cross_nic = TTI_CROSS_ANY;
	else if (config->cross_nic == TTI_CROSS_AUTO)
		one.cross_nic = TTI_CROSS_SAME;
	return run_one(loads, &one, out);
}

void tti_local_free(struct tti_local *search)
{
	if (!search)
		return;
	tti_arena_release(&search->arena);
	tti_free(search);
}
