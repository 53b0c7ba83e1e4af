/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/handoff/handoff_pack.h"

#include <math.h>
#include <string.h>

#include "plan/search/arbor.h"
#include "util/clock.h"
#include "util/error.h"
#include "util/mem.h"

/* A column is one way to bring all of the vector everywhere: of each leg one option, of each
 * way of it a tree in the node where it lands. The program says how much of which columns
 * fits into the links together; what a link costs then says which further column would
 * help: legs are priced each by itself, and trees by Edmonds' method, so the cheapest is
 * known exactly, and so is when there is none. */

#define MOST_ROUNDS 1500
#define ENOUGH_GAP  1e-6
#define SPREAD_LOSS 5e-4 /* for NICs that all carry by their speed */

/* -- Prices ------------------------------------------------------------------------ */

static double hop_cost(const struct tti_hand_packing *p, const struct tti_hand_node *node,
		       const struct tti_hop *hop)
{
	const struct tti_load *loads = node->loads->loads + hop->first;
	double cost = 0;

	if (hop->bw_gbps <= 0)
		return INFINITY;
	for (uint32_t i = 0; i < hop->n; i++)
		cost += (double)loads[i].amount * p->price[node->first_row + loads[i].row];
	return cost;
}

static double way_cost(const struct tti_hand_packing *p, const struct tti_hand_atom *atom)
{
	const struct tti_hand_work *work = p->work;
	const struct tti_hand_node *a = tti_hand_node_of(work, atom->from);
	const struct tti_hand_node *b = tti_hand_node_of(work, atom->to);

	if (a != b)
		return hop_cost(p, a, tti_hand_hop_out(work, atom->from, atom->net_out)) +
		       hop_cost(p, b, tti_hand_hop_in(work, atom->to, atom->net_in));
	if (work->end_of[atom->from] == work->end_of[atom->to])
		return 0;
	return hop_cost(p, a, tti_hand_hop(work, atom->from, atom->to));
}

static void price_inside(struct tti_hand_packing *p, const struct tti_hand_node *node)
{
	for (uint32_t from = 0; from < node->nends; from++) {
		p->root_tree[from] = TTI_HAND_NONE;
		for (uint32_t to = 0; to < node->nends; to++)
			p->cost[from * node->nends + to] =
				from == to ? INFINITY
					   : hop_cost(p, node, tti_hop(node->loads, from, to));
	}
}

/* -- Trees ------------------------------------------------------------------------- */

static bool keep_shape(struct tti_hand_packing *p, uint32_t node, uint32_t root,
		       const uint32_t *parent, uint32_t *out)
{
	const size_t nbytes = p->work->nodes[node].nends * sizeof(*parent);
	struct tti_hand_shape shape = { node, root, NULL };

	for (size_t i = 0; i < p->shapes.n; i++) {
		const struct tti_hand_shape *other = &p->shapes.at[i];

		if (other->node == node && other->root == root &&
		    !memcmp(other->parent, parent, nbytes)) {
			*out = (uint32_t)i;
			return true;
		}
	}
	shape.parent = tti_arena_alloc(&p->work->arena, nbytes);
	if (!shape.parent)
		return false;
	memcpy(shape.parent, parent, nbytes);
	*out = (uint32_t)p->shapes.n;
	return tti_vec_push(&p->shapes, shape);
}

/* Room for one question to arbor.h. */
struct question {
	uint32_t *end, *parent, *full;
	double *hop, *begin;
	uint32_t n;
};

static void ask_about(const struct tti_hand_packing *p, const struct tti_hand_node *node,
		      uint32_t root, struct question *q)
{
	q->n = 0;
	for (uint32_t end = 0; end < node->nends; end++) {
		q->full[end] = TTI_HAND_NONE;
		if (end == root || node->wants[end])
			q->end[q->n++] = end;
	}
	for (uint32_t i = 0; i < q->n; i++) {
		q->begin[i] = q->end[i] == root ? 0 : INFINITY;
		for (uint32_t k = 0; k < q->n; k++)
			q->hop[i * q->n + k] = p->cost[q->end[i] * node->nends + q->end[k]];
	}
}

static tutti_status find_tree(struct tti_hand_packing *p, uint32_t index, uint32_t root)
{
	const struct tti_hand_node *node = &p->work->nodes[index];
	const size_t n = node->nends;
	double *numbers = tti_calloc(n * n + n, sizeof(*numbers));
	uint32_t *room = tti_calloc(3 * n, sizeof(*room));
	struct question q = { .end = room,
			      .parent = room + n,
			      .full = room + 2 * n,
			      .hop = numbers,
			      .begin = numbers + n * n };
	tutti_status st = numbers && room ? TUTTI_OK : tti_hand_no_memory();

	if (st == TUTTI_OK) {
		ask_about(p, node, root, &q);
		st = tti_arbor_best(&(struct tti_arbor_input){ q.n, q.hop, q.begin }, q.parent,
				    &p->root_cost[root]);
	}
	for (uint32_t i = 0; i < q.n && st == TUTTI_OK; i++)
		if (q.parent[i] != TTI_ARBOR_NO_PARENT)
			q.full[q.end[i]] = q.end[q.parent[i]];
	if (st == TUTTI_OK && !keep_shape(p, index, root, q.full, &p->root_tree[root]))
		st = tti_hand_no_memory();
	tti_free(numbers);
	tti_free(room);
	return st;
}

/* -- The cheapest column ----------------------------------------------------------- */

static tutti_status option_cost(struct tti_hand_packing *p, const struct tti_hand_leg *leg,
				uint32_t index, double *out)
{
	const struct tti_hand_option *option = &p->work->options.at[index];

	*out = p->price[p->work->nrows + index];
	for (uint32_t i = 0; i < option->n; i++) {
		const struct tti_hand_atom *atom = &p->work->atoms.at[option->first + i];
		const uint32_t root = p->work->end_of[atom->to];

		*out += atom->weight * way_cost(p, atom);
		if (!atom->spreads)
			continue;
		if (p->root_tree[root] == TTI_HAND_NONE)
			TTI_TRY(find_tree(p, leg->to, root));
		*out += atom->weight * p->root_cost[root];
	}
	return TUTTI_OK;
}

static bool add_trees(struct tti_hand_packing *p, uint32_t index)
{
	const struct tti_hand_option *option = &p->work->options.at[index];
	bool good = true;

	for (uint32_t i = 0; i < option->n; i++) {
		const struct tti_hand_atom *atom = &p->work->atoms.at[option->first + i];

		if (atom->spreads)
			good = good &&
			       tti_vec_push(&p->trees, p->root_tree[p->work->end_of[atom->to]]);
	}
	return good;
}

/* Into p->option and p->trees. INFINITY: there is none. */
static tutti_status cheapest(struct tti_hand_packing *p, double *cost_out)
{
	struct tti_hand_work *work = p->work;

	*cost_out = p->price[work->nrows + work->options.n];
	p->trees.n = 0;
	for (size_t i = 0; i < work->legs.n; i++) {
		const struct tti_hand_leg *leg = &work->legs.at[i];
		double least = INFINITY;

		price_inside(p, &work->nodes[leg->to]);
		p->option[i] = leg->first;
		for (uint32_t k = leg->first; k < leg->first + leg->n; k++) {
			double cost;

			TTI_TRY(option_cost(p, leg, k, &cost));
			if (cost < least * (1 - 1e-12)) {
				least = cost;
				p->option[i] = k;
			}
		}
		*cost_out += least;
		if (!add_trees(p, p->option[i]))
			return tti_hand_no_memory();
	}
	return TUTTI_OK;
}

/* -- Columns ----------------------------------------------------------------------- */

static bool load_hop(struct tti_hand_packing *p, const struct tti_hand_node *node,
		     const struct tti_hop *hop, double weight)
{
	bool good = true;

	for (uint32_t i = hop->first; i < hop->first + hop->n && good; i++) {
		const struct tti_load *one = &node->loads->loads[i];
		const struct tti_load load = { node->first_row + one->row,
					       (float)(weight * (double)one->amount) };

		good = tti_vec_push(&p->scratch, load);
	}
	return good;
}

static bool load_way(struct tti_hand_packing *p, const struct tti_hand_atom *atom)
{
	const struct tti_hand_work *work = p->work;
	const struct tti_hand_node *a = tti_hand_node_of(work, atom->from);
	const struct tti_hand_node *b = tti_hand_node_of(work, atom->to);

	if (a != b)
		return load_hop(p, a, tti_hand_hop_out(work, atom->from, atom->net_out),
				atom->weight) &&
		       load_hop(p, b, tti_hand_hop_in(work, atom->to, atom->net_in), atom->weight);
	return work->end_of[atom->from] == work->end_of[atom->to] ||
	       load_hop(p, a, tti_hand_hop(work, atom->from, atom->to), atom->weight);
}

static bool load_tree(struct tti_hand_packing *p, uint32_t tree, double weight)
{
	const struct tti_hand_shape *shape = &p->shapes.at[tree];
	const struct tti_hand_node *node = &p->work->nodes[shape->node];
	bool good = true;

	for (uint32_t end = 0; end < node->nends && good; end++)
		if (shape->parent[end] != TTI_HAND_NONE)
			good = load_hop(p, node, tti_hop(node->loads, shape->parent[end], end),
					weight);
	return good;
}

/* What a column takes, into p->scratch. */
static bool load_column(struct tti_hand_packing *p, const struct tti_hand_column *column)
{
	const struct tti_hand_work *work = p->work;
	const uint32_t caps = work->nrows, all = caps + (uint32_t)work->options.n;
	uint32_t tree = 0;
	bool good;

	p->scratch.n = 0;
	good = tti_vec_push(&p->scratch, ((struct tti_load){ all, 1 }));
	for (size_t i = 0; i < work->legs.n; i++) {
		const struct tti_hand_option *option = &work->options.at[column->option[i]];

		good = good && tti_vec_push(&p->scratch,
					    ((struct tti_load){ caps + column->option[i], 1 }));
		for (uint32_t k = 0; k < option->n && good; k++) {
			const struct tti_hand_atom *atom = &work->atoms.at[option->first + k];

			good = load_way(p, atom) &&
			       (!atom->spreads || load_tree(p, column->tree[tree++], atom->weight));
		}
	}
	return good;
}

static tutti_status add_to_program(struct tti_hand_packing *p, const struct tti_hand_column *column)
{
	if (!load_column(p, column))
		return tti_hand_no_memory();
	return tti_lp_add(p->lp, p->scratch.at, p->scratch.n);
}

static tutti_status add_column(struct tti_hand_packing *p)
{
	const size_t nlegs = p->work->legs.n, ntrees = p->trees.n;
	uint32_t *room = tti_arena_alloc(&p->work->arena, (nlegs + ntrees) * sizeof(*room) + 1);
	const struct tti_hand_column column = { room, room + nlegs };

	if (!room)
		return tti_hand_no_memory();
	memcpy(column.option, p->option, nlegs * sizeof(*room));
	for (size_t i = 0; i < ntrees; i++)
		column.tree[i] = p->trees.at[i];
	TTI_TRY(add_to_program(p, &column));
	return tti_vec_push(&p->columns, column) ? TUTTI_OK : tti_hand_no_memory();
}

/* -- The program ------------------------------------------------------------------- */

static uint32_t nrows_of(const struct tti_hand_packing *p)
{
	return p->work->nrows + (uint32_t)p->work->options.n + 1;
}

/* What an option may carry at most has a row of its own, without a limit at first. */
static void fill_capacity(struct tti_hand_packing *p)
{
	for (uint32_t i = 0; i < p->work->nnodes; i++) {
		const struct tti_hand_node *node = &p->work->nodes[i];

		memcpy(p->capacity + node->first_row, node->loads->capacity,
		       node->loads->nrows * sizeof(*p->capacity));
	}
	for (uint32_t row = p->work->nrows; row < nrows_of(p); row++)
		p->capacity[row] = TTI_LOC_GBPS;
}

/* Columns until none is cheap enough, or time is up. */
static tutti_status generate(struct tti_hand_packing *p, double *value)
{
	double cost;

	p->bound = INFINITY;
	for (uint32_t round = 0; round < MOST_ROUNDS; round++) {
		TTI_TRY(tti_lp_solve(p->lp, value));
		for (uint32_t row = 0; row < nrows_of(p); row++)
			p->price[row] = tti_lp_prices(p->lp)[row];
		TTI_TRY(cheapest(p, &cost));
		if (cost > 0 && *value / cost < p->bound)
			p->bound = *value / cost;
		if (cost >= 1 - ENOUGH_GAP || *value >= p->bound * (1 - ENOUGH_GAP) ||
		    tti_thread_ns() > p->until_ns)
			return TUTTI_OK;
		TTI_TRY(add_column(p));
	}
	return TUTTI_OK;
}

static tutti_status no_way(const struct tti_hand_packing *p)
{
	for (size_t i = 0; i < p->work->atoms.n; i++) {
		const struct tti_hand_atom *atom = &p->work->atoms.at[i];

		if (way_cost(p, atom) >= (double)INFINITY)
			return tti_fail(TUTTI_EPLAN, "nothing leads from rank %u to rank %u",
					atom->from, atom->to);
	}
	return tti_fail(TUTTI_EPLAN,
			"there are ranks of one node that nothing connects, so a handoff does not "
			"reach all");
}

/* The column of the k-th option of each leg, counted around; none if nothing leads along it. */
static tutti_status add_kth(struct tti_hand_packing *p, uint32_t k)
{
	const struct tti_hand_work *work = p->work;
	double sum = 0, cost;

	p->trees.n = 0;
	for (size_t i = 0; i < work->legs.n; i++) {
		const struct tti_hand_leg *leg = &work->legs.at[i];

		price_inside(p, &work->nodes[leg->to]);
		p->option[i] = leg->first + k % leg->n;
		TTI_TRY(option_cost(p, leg, p->option[i], &cost));
		sum += cost;
		if (!add_trees(p, p->option[i]))
			return tti_hand_no_memory();
	}
	return sum < (double)INFINITY ? add_column(p) : TUTTI_OK;
}

/* The first columns: a link costs by how slow it is. Where nodes are alike, what is best for one
 * is for all, so by the k-th NIC everywhere is near the best of many. */
static tutti_status begin(struct tti_hand_packing *p)
{
	uint32_t most = 0;
	double cost;

	for (uint32_t row = 0; row < nrows_of(p); row++)
		p->price[row] = 1 / p->capacity[row];
	TTI_TRY(cheapest(p, &cost));
	if (cost >= (double)INFINITY)
		return no_way(p);
	TTI_TRY(add_column(p));
	for (size_t i = 0; i < p->work->legs.n; i++)
		most = p->work->legs.at[i].n > most ? p->work->legs.at[i].n : most;
	for (uint32_t k = 0; k < most && p->work->legs.n > 1; k++)
		TTI_TRY(add_kth(p, k));
	return TUTTI_OK;
}

/* The same with every option held to its part by speed, so that no NIC is left idle where
 * one could do it all; *kept: it costs next to nothing. */
static tutti_status spread(struct tti_hand_packing *p, double best, bool *kept)
{
	const struct tti_hand_work *work = p->work;
	struct tti_lp *before = p->lp;
	double value = 0;
	tutti_status st;

	for (size_t i = 0; i < work->legs.n; i++) {
		const struct tti_hand_leg *leg = &work->legs.at[i];
		double sum = 0;

		for (uint32_t k = leg->first; k < leg->first + leg->n; k++)
			sum += work->options.at[k].gbps;
		for (uint32_t k = leg->first; k < leg->first + leg->n; k++)
			p->capacity[work->nrows + k] = best * work->options.at[k].gbps / sum;
	}
	p->lp = NULL;
	st = tti_lp_create(p->capacity, nrows_of(p), &p->lp);
	for (size_t i = 0; i < p->columns.n && st == TUTTI_OK; i++)
		st = add_to_program(p, &p->columns.at[i]);
	if (st == TUTTI_OK)
		st = generate(p, &value);
	*kept = st == TUTTI_OK && value >= best * (1 - SPREAD_LOSS);
	if (*kept || st != TUTTI_OK) {
		tti_lp_free(before);
		return st;
	}
	tti_lp_free(p->lp);
	p->lp = before;
	return TUTTI_OK;
}

/* -- All of it --------------------------------------------------------------------- */

static tutti_status solve(struct tti_hand_packing *p, struct tti_handoff_plan *plan)
{
	double value = 0;
	bool kept = false;

	TTI_TRY(begin(p));
	TTI_TRY(generate(p, &value));
	plan->best_gbps = p->bound > value ? p->bound : value;
	TTI_TRY(tti_hand_say_limit(p, plan));
	TTI_TRY(spread(p, value, &kept));
	/* Solved again without a limit on options, or with: the value is what counts. */
	TTI_TRY(tti_lp_solve(p->lp, &value));
	return tti_hand_take(p, value, plan);
}

static bool make_room(struct tti_hand_packing *p)
{
	struct tti_arena *arena = &p->work->arena;
	size_t most = 1;

	for (uint32_t i = 0; i < p->work->nnodes; i++)
		most = p->work->nodes[i].nends > most ? p->work->nodes[i].nends : most;
	p->capacity = tti_arena_alloc(arena, nrows_of(p) * sizeof(*p->capacity));
	p->price = tti_arena_alloc(arena, nrows_of(p) * sizeof(*p->price));
	p->option = tti_arena_alloc(arena, p->work->legs.n * sizeof(*p->option) + 1);
	p->cost = tti_arena_alloc(arena, most * most * sizeof(*p->cost));
	p->root_tree = tti_arena_alloc(arena, most * sizeof(*p->root_tree));
	p->root_cost = tti_arena_alloc(arena, most * sizeof(*p->root_cost));
	return p->capacity && p->price && p->option && p->cost && p->root_tree && p->root_cost;
}

tutti_status tti_hand_pack(struct tti_hand_work *work, struct tti_handoff_plan *plan)
{
	const double budget_ms = work->handoff->budget_ms;
	struct tti_hand_packing p = {
		.work = work,
		.until_ns =
			budget_ms > 0 ? tti_thread_ns() + (int64_t)(budget_ms * 1e6) : INT64_MAX,
	};
	tutti_status st;

	if (work->legs.n == 0)
		return TUTTI_OK;
	if (!make_room(&p))
		return tti_hand_no_memory();
	fill_capacity(&p);
	st = tti_lp_create(p.capacity, nrows_of(&p), &p.lp);
	if (st == TUTTI_OK)
		st = solve(&p, plan);
	tti_lp_free(p.lp);
	tti_vec_release(&p.shapes);
	tti_vec_release(&p.columns);
	tti_vec_release(&p.scratch);
	tti_vec_release(&p.trees);
	return st;
}
