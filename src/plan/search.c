/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "plan/column.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

#define DEFAULT_BUDGET_MS 1000
/* Asked whether this is close enough to the bound, the search stops. */
#define CLOSE             2e-6
/* Of the greedy start: rounds for each member and NIC, and how much dearer a link gets
 * that is filled once. */
#define FIRST_ROUNDS      4
#define DEARER            0.5
/* Of more than 16 members: how many questions, times members cubed. */
#define QUESTIONS         2e7

const char *tti_pattern_name(enum tti_pattern pattern)
{
	static const char names[][16] = {
#define X(name, text, nccl) text,
		TTI_PATTERN_MAP(X)
#undef X
	};

	return names[pattern];
}

bool tti_pattern_parse(const char *text, enum tti_pattern *out)
{
	for (int i = 0; i < TTI_PATTERN_COUNT; i++)
		if (!strcasecmp(text, tti_pattern_name((enum tti_pattern)i))) {
			*out = (enum tti_pattern)i;
			return true;
		}
	return false;
}

/* -- The pool of columns ---------------------------------------------------------- */

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
	room = tti_arena_alloc(&pool->arena, (3 * nhops + 3 * nends + 2 * loads->n + loads->nrows) *
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
	pool->parent = pool->order + loads->n;
	pool->ways = pool->way + nhops;
	pool->enter = pool->leave + loads->n;
	return tti_lp_create(loads->capacity, loads->nrows, &pool->lp);
}

/* -- Generating columns ----------------------------------------------------------- */

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

/* Of links alike the linear program charges for any, at its whim. The bound that follows
 * is better where all of them cost the same. */
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

/* What is known without a search, and whether it is the best already. */
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

/* Where no question could be answered, for want of time or because prices were 0 along some
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

/* Hops over NICs come last: where they gain nothing, which one question tells, all stays
 * as it is without. */
static tutti_status generate(struct tti_pool *pool, tti_pricer *price, double *value_out,
			     double *bound_out)
{
	bool more;

	TTI_TRY(generate_direct(pool, price, value_out, bound_out));
	if (pool->loads->ninner == 0 || pool->config->cross_nic != TTI_CROSS_ANY)
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

/* -- The search ------------------------------------------------------------------- */

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

static tutti_status run_pool(struct tti_pool *pool, struct tti_local *search)
{
	tti_pricer *price = search->pattern == TTI_PATTERN_RING ? tti_price_rings : tti_price_trees;
	double value = 0;

	if (tti_pattern_has_heads(search->pattern)) {
		price = NULL;
		TTI_TRY(generate_heads(pool, &value));
		search->bound_gbps = value;
	} else {
		TTI_TRY(generate(pool, price, &value, &search->bound_gbps));
		if (!isfinite(search->bound_gbps))
			TTI_TRY(bound_somehow(pool, price, value, &search->bound_gbps));
	}
	search->ncolumns = (uint32_t)pool->columns.n;
	TTI_TRY(keep_prices(pool, price, value, search));
	TTI_TRY(tti_extract(pool, value, search));
	if (pool->loads->nnets == 0)
		search->cross_nic = uses_nets(search) ? TTI_CROSS_ANY : TTI_CROSS_SAME;
	return TUTTI_OK;
}

/* A member alone moves nothing: as fast as memory inside a device. */
static tutti_status search_alone(struct tti_local *search)
{
	struct tti_channel *channel = tti_arena_alloc(&search->arena, sizeof(*channel));
	uint32_t *room = tti_arena_alloc(&search->arena, 2 * sizeof(*room));

	if (!channel || !room)
		return tti_fail(TUTTI_ENOMEM, "channels: out of memory");
	room[1] = UINT32_MAX;
	*channel = (struct tti_channel){ .bw_gbps = (float)TTI_LOC_GBPS,
					 .order = room,
					 .parent = search->pattern == TTI_PATTERN_RING ? NULL
										       : room + 1,
					 .net_in = TTI_NO_NET,
					 .net_out = TTI_NO_NET,
					 .second = UINT32_MAX };
	search->channels = channel;
	search->nchannels = 1;
	search->total_gbps = search->bound_gbps = TTI_LOC_GBPS;
	return TUTTI_OK;
}

static tutti_status run_one(const struct tti_loads *loads, const struct tti_local_config *config,
			    struct tti_local **out)
{
	struct tti_local *search = tti_zalloc(sizeof(*search));
	const int64_t start_ns = tti_now_ns();
	struct tti_pool pool;
	tutti_status st;

	if (!search)
		return tti_fail(TUTTI_ENOMEM, "channels: out of memory");
	search->pattern = config->pattern;
	search->cross_nic = config->cross_nic;
	if (loads->n == 1 && loads->nnets == 0) {
		st = tti_pattern_has_heads(config->pattern) ? TUTTI_OK : search_alone(search);
	} else {
		st = pool_init(&pool, loads, config);
		if (st == TUTTI_OK)
			st = run_pool(&pool, search);
		pool_release(&pool);
	}
	search->ms = (double)(tti_now_ns() - start_ns) / 1e6;
	if (st == TUTTI_OK)
		*out = search;
	else
		tti_local_free(search);
	return st;
}

/* So much of the best is given up for rails that stay straight. */
#define RAIL_WORTH 0.0005

/* What any choice of NICs could carry bounds what the others can, so they are tried in
 * the order of their virtues until one reaches it. */
static tutti_status search_auto(const struct tti_loads *loads,
				const struct tti_local_config *config, struct tti_local **out)
{
	static const enum tti_cross_nic tries[] = { TTI_CROSS_SAME, TTI_CROSS_MIRROR };
	struct tti_local_config one = *config;
	struct tti_local *best = NULL;
	double ms;
	tutti_status st;

	one.cross_nic = TTI_CROSS_ANY;
	TTI_TRY(run_one(loads, &one, &best));
	one.known_bound = best->bound_gbps;
	ms = best->ms;
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		struct tti_local *search = NULL;

		one.cross_nic = tries[i];
		st = run_one(loads, &one, &search);
		if (st != TUTTI_OK) {
			tti_local_free(best);
			return st;
		}
		ms += search->ms;
		if (search->total_gbps >= best->total_gbps * (1 - RAIL_WORTH)) {
			tti_local_free(best);
			best = search;
			break;
		}
		tti_local_free(search);
	}
	best->ms = ms;
	*out = best;
	return TUTTI_OK;
}

tutti_status tti_local_search(const struct tti_loads *loads, const struct tti_local_config *config,
			      struct tti_local **out)
{
	struct tti_local_config one = *config;

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
