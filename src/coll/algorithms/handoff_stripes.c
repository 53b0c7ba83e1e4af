/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "coll/algorithms/handoff_shape.h"
#include "plan/handoff/handoff.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/vec.h"

/* From the plan of a handoff, which knows endpoints and fractions, to ranks and units. Ranks on
 * one endpoint get the data from the one of them where it arrives. */

#define LEAST_SHARE  (1.0 / 128)
/* Stripes of one endpoint's sources: more are no faster. */
#define MOST_SOURCES 16
#define NONE         UINT32_MAX

/* A way or a tree of the plan, to be found by its part and node. */
struct ref {
	uint64_t key;
	uint32_t index;
};

/* A tree and how much of a way's data it spreads; tree NONE: all who want it are on one
 * endpoint with whoever has it. */
struct piece {
	uint32_t tree;
	double share;
};

struct builder {
	const struct tti_handoff_job *job;
	const struct tti_handoff_plan *plan;
	struct tti_arena arena;
	uint32_t *node_of, *end_of; /* of each rank: its node, its endpoint in the node's graph */
	int32_t *from_place;        /* of each rank on its side, -1: not on it */
	bool *is_to;
	uint32_t *order, norder; /* nodes with receivers, those that pass on before others */
	bool *served;            /* by node: it has the part at hand */
	uint32_t nserved;
	uint32_t **members, *nmembers; /* of each node: its ranks on side `to` */
	struct ref *ways, *trees;
	double *left;    /* of each tree: the share that no stripe has yet */
	int32_t *server; /* of each endpoint of the node at hand: who has it there */
	TTI_VEC(struct piece) pieces;
	TTI_VEC(struct tti_handoff_stripe) stripes;
	TTI_VEC(struct tti_handoff_hop) hops;
};

static tutti_status no_memory(void)
{
	return tti_fail(TUTTI_ENOMEM, "the stripes of a handoff: out of memory");
}

/* -- Looking things up ------------------------------------------------------------- */

static int by_key(const void *left, const void *right)
{
	const struct ref *a = left, *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

static uint64_t key_of(uint32_t part, uint32_t node)
{
	return (uint64_t)part << 32 | node;
}

static uint32_t find(const struct ref *refs, uint32_t nrefs, uint64_t key, uint32_t *first)
{
	uint32_t low = 0, high = nrefs, n = 0;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (refs[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + n < nrefs && refs[low + n].key == key)
		n++;
	*first = low;
	return n;
}

static bool holds(const struct builder *b, uint32_t rank, uint32_t part)
{
	return b->from_place[rank] >= 0 &&
	       (part == TTI_HANDOFF_WHOLE || b->from_place[rank] == (int32_t)part);
}

/* The k-th source of an endpoint, counted around; -1: none of its ranks has the part. */
static int32_t holder_at(const struct builder *b, uint32_t node, uint32_t end, uint32_t part,
			 uint32_t k, uint32_t *count)
{
	const struct tti_job_node *at = &b->job->job->nodes[node];
	uint32_t n = 0, seen = 0;

	for (uint32_t i = 0; i < at->nranks; i++)
		n += at->members[i] == end && holds(b, at->ranks[i], part);
	if (count)
		*count = n;
	for (uint32_t i = 0; i < at->nranks && n; i++)
		if (at->members[i] == end && holds(b, at->ranks[i], part) && seen++ == k % n)
			return (int32_t)at->ranks[i];
	return -1;
}

/* A receiver on an endpoint, another one for each stripe. */
static int32_t receiver_at(const struct builder *b, uint32_t node, uint32_t end)
{
	const uint32_t turn = (uint32_t)b->stripes.n;
	uint32_t n = 0, seen = 0;

	for (uint32_t i = 0; i < b->nmembers[node]; i++)
		n += b->end_of[b->members[node][i]] == end;
	for (uint32_t i = 0; i < b->nmembers[node]; i++)
		if (b->end_of[b->members[node][i]] == end && seen++ == turn % n)
			return (int32_t)b->members[node][i];
	return -1;
}

/* -- One stripe -------------------------------------------------------------------- */

static bool hop(struct builder *b, int32_t from, int32_t to)
{
	return tti_vec_push(&b->hops, ((struct tti_handoff_hop){ from, to }));
}

/* Between endpoints along the tree; an endpoint that has the part itself needs none. */
static bool climb(struct builder *b, uint32_t node, uint32_t part, uint32_t index, uint32_t turn)
{
	const struct tti_handoff_tree *tree = &b->plan->trees[index];
	bool good = true;

	for (uint32_t i = 1; i < tree->n && good; i++) {
		const uint32_t end = b->end_of[tree->ranks[i]];
		const uint32_t above = b->end_of[tree->ranks[tree->parent[i]]];

		b->server[end] = holder_at(b, node, end, part, turn, NULL);
		if (b->server[end] >= 0)
			continue;
		b->server[end] = receiver_at(b, node, end);
		good = hop(b, b->server[above], b->server[end]);
	}
	return good;
}

/* To all others of each endpoint, from the one behind the stripe's rank on, so that not all
 * stripes are passed on to the same rank first. */
static tutti_status fan_out(struct builder *b, uint32_t node, uint32_t part, int32_t root,
			    uint32_t turn)
{
	const uint32_t n = b->nmembers[node];
	uint32_t start = 0;

	while (start < n && b->members[node][start] <= (uint32_t)root)
		start++;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t rank = b->members[node][(start + i) % n], end = b->end_of[rank];

		if (holds(b, rank, part))
			continue;
		if (b->server[end] < 0)
			b->server[end] = holder_at(b, node, end, part, turn, NULL);
		if (b->server[end] < 0)
			return tti_fail(TUTTI_EINTERNAL,
					"the plan of a handoff does not reach rank %u", rank);
		if (b->server[end] != (int32_t)rank && !hop(b, b->server[end], (int32_t)rank))
			return no_memory();
	}
	return TUTTI_OK;
}

/* What a rank of a node gets, or has and gives, for the endpoints of a tree. */
struct landing {
	uint32_t node, part, tree, turn;
	int32_t from, to;
	double begin, end; /* of the part */
};

static tutti_status add_stripe(struct builder *b, const struct landing *l)
{
	const struct tti_job_node *node = &b->job->job->nodes[l->node];
	struct tti_handoff_stripe stripe = {
		.from = l->from,
		.to = l->to,
		.source = l->part == TTI_HANDOFF_WHOLE ? -1 : (int32_t)l->part,
		.dest = -1,
		.begin = (uint32_t)(l->begin * TTI_HANDOFF_UNITS + 0.5),
		.end = (uint32_t)(l->end * TTI_HANDOFF_UNITS + 0.5),
		.first = (uint32_t)b->hops.n,
	};

	if (stripe.begin == stripe.end)
		return TUTTI_OK;
	for (uint32_t i = 0; i < node->nranks; i++)
		b->server[node->members[i]] = -1;
	b->server[b->end_of[l->to]] = l->to;
	if (l->tree != NONE && !climb(b, l->node, l->part, l->tree, l->turn))
		return no_memory();
	TTI_TRY(fan_out(b, l->node, l->part, l->to, l->turn));
	stripe.n = (uint32_t)b->hops.n - stripe.first;
	return tti_vec_push(&b->stripes, stripe) ? TUTTI_OK : no_memory();
}

/* -- What comes into a node -------------------------------------------------------- */

/* The trees for `share` that landed at an endpoint, without those that carry next to nothing:
 * in all as much. */
static bool take_trees(struct builder *b, const struct ref *trees, uint32_t ntrees, uint32_t end,
		       double share, double least)
{
	double wanted = share, kept = 0, most = 0;
	size_t n = 0;

	b->pieces.n = 0;
	for (uint32_t i = 0; i < ntrees; i++) {
		const uint32_t index = trees[i].index;
		const double part = b->left[index] < wanted ? b->left[index] : wanted;

		if (b->end_of[b->plan->trees[index].ranks[0]] != end || part <= 0)
			continue;
		b->left[index] -= part;
		wanted -= part;
		most = part > most ? part : most;
		if (!tti_vec_push(&b->pieces, ((struct piece){ index, part })))
			return false;
	}
	least = least < most ? least : most;
	for (size_t i = 0; i < b->pieces.n; i++)
		if (b->pieces.at[i].share >= least) {
			kept += b->pieces.at[i].share;
			b->pieces.at[n++] = b->pieces.at[i];
		}
	for (size_t i = 0; i < n; i++)
		b->pieces.at[i].share *= share / kept;
	b->pieces.n = n;
	return n > 0 || tti_vec_push(&b->pieces, ((struct piece){ NONE, share }));
}

static tutti_status bring(struct builder *b, uint32_t node, uint32_t part, const struct ref *ways,
			  uint32_t nways)
{
	uint32_t first;
	const uint32_t ntrees = find(b->trees, b->plan->ntrees, key_of(part, node), &first);
	struct landing l = { .node = node, .part = part };
	double sum = 0;

	for (uint32_t i = 0; i < nways; i++)
		sum += b->plan->ways[ways[i].index].share;
	for (uint32_t i = 0; i < nways; i++) {
		const struct tti_handoff_way *way = &b->plan->ways[ways[i].index];

		l.from = (int32_t)way->from;
		l.to = (int32_t)way->to;
		if (!take_trees(b, b->trees + first, ntrees, b->end_of[way->to], way->share,
				LEAST_SHARE * sum))
			return no_memory();
		for (size_t k = 0; k < b->pieces.n; k++) {
			l.tree = b->pieces.at[k].tree;
			l.end = l.begin + b->pieces.at[k].share / sum;
			TTI_TRY(add_stripe(b, &l));
			l.begin = l.end;
		}
	}
	return TUTTI_OK;
}

/* -- What a node has already ------------------------------------------------------- */

/* A piece of what a node has, in as many equal stripes as an endpoint has sources. */
static tutti_status give_piece(struct builder *b, struct landing *l, uint32_t end, double until)
{
	const double begin = l->begin;
	uint32_t n;

	if (holder_at(b, l->node, end, l->part, 0, &n) < 0)
		return tti_fail(TUTTI_EINTERNAL,
				"the plan of a handoff begins where nobody has the data");
	n = n < MOST_SOURCES ? n : MOST_SOURCES;
	for (l->turn = 0; l->turn < n; l->turn++) {
		l->from = l->to = holder_at(b, l->node, end, l->part, l->turn, NULL);
		l->end = l->turn + 1 == n ? until : begin + (until - begin) * (l->turn + 1) / n;
		TTI_TRY(add_stripe(b, l));
		l->begin = l->end;
	}
	return TUTTI_OK;
}

/* Along the trees; what no tree carries is for endpoints that have it. */
static tutti_status give(struct builder *b, uint32_t node, uint32_t part, double share)
{
	uint32_t first, end = NONE;
	const uint32_t ntrees = find(b->trees, b->plan->ntrees, key_of(part, node), &first);
	struct landing l = { .node = node, .part = part };

	for (uint32_t i = 0; i < b->nmembers[node]; i++)
		if (!holds(b, b->members[node][i], part))
			end = b->end_of[b->members[node][i]];
	for (uint32_t i = 0; i < ntrees && end != NONE; i++) {
		const struct tti_handoff_tree *tree = &b->plan->trees[b->trees[first + i].index];
		const double until = l.begin + tree->share / share;

		l.tree = b->trees[first + i].index;
		TTI_TRY(give_piece(b, &l, b->end_of[tree->ranks[0]], until < 1 ? until : 1));
	}
	l.tree = NONE;
	/* The last stripe may end a hair before the part does. */
	if (end != NONE && ntrees && l.begin > 1 - LEAST_SHARE / 16)
		b->stripes.at[b->stripes.n - 1].end = TTI_HANDOFF_UNITS;
	else if (end != NONE)
		return give_piece(b, &l, end, 1);
	return TUTTI_OK;
}

/* -- Whole on side `to`: node by node ---------------------------------------------- */

/* Whether all who send a part into a node have it by now. */
static bool is_ready(const struct builder *b, uint32_t part, const struct ref *ways, uint32_t nways)
{
	for (uint32_t i = 0; i < nways; i++) {
		const uint32_t from = b->plan->ways[ways[i].index].from;

		if (!holds(b, from, part) && !b->served[b->node_of[from]])
			return false;
	}
	return true;
}

/* To a node, if it can be by now. */
static tutti_status spread_to(struct builder *b, uint32_t part, uint32_t node)
{
	const struct tti_job_node *at = &b->job->job->nodes[node];
	uint32_t first, n;
	bool has = false;

	for (uint32_t k = 0; k < at->nranks && !has; k++)
		has = holds(b, at->ranks[k], part);
	n = find(b->ways, b->plan->nways, key_of(part, node), &first);
	if (!has && !is_ready(b, part, b->ways + first, n))
		return TUTTI_OK;
	b->served[node] = true;
	b->nserved++;
	return has ? give(b, node, part, part == TTI_HANDOFF_WHOLE ? 1 : 1.0 / b->job->nfrom)
		   : bring(b, node, part, b->ways + first, n);
}

static tutti_status spread_part(struct builder *b, uint32_t part)
{
	uint32_t before;

	memset(b->served, 0, b->job->job->nnodes * sizeof(*b->served));
	b->nserved = 0;
	do {
		before = b->nserved;
		for (uint32_t i = 0; i < b->norder; i++)
			if (!b->served[b->order[i]])
				TTI_TRY(spread_to(b, part, b->order[i]));
	} while (b->nserved < b->norder && b->nserved > before);
	return b->nserved == b->norder
		       ? TUTTI_OK
		       : tti_fail(TUTTI_EINTERNAL,
				  "the plan of a handoff has ranks send what nobody has");
}

/* Each part straight to the rank that shall have it. */
static tutti_status send_parts(struct builder *b)
{
	for (uint32_t dest = 0; dest < b->job->nto; dest++)
		for (uint32_t i = 0; i < b->plan->nways; i++) {
			const struct tti_handoff_way *way = &b->plan->ways[i];
			const struct tti_handoff_stripe stripe = { .from = (int32_t)way->from,
								   .to = (int32_t)way->to,
								   .source = -1,
								   .dest = (int32_t)dest,
								   .end = TTI_HANDOFF_UNITS };

			if (way->to == b->job->to[dest] && !tti_vec_push(&b->stripes, stripe))
				return no_memory();
		}
	return TUTTI_OK;
}

static tutti_status add_all(struct builder *b)
{
	if (b->job->from_sharded && b->job->to_sharded)
		return TUTTI_OK;
	if (b->job->to_sharded)
		return send_parts(b);
	if (!b->job->from_sharded)
		return spread_part(b, TTI_HANDOFF_WHOLE);
	for (uint32_t part = 0; part < b->job->nfrom; part++)
		TTI_TRY(spread_part(b, part));
	return TUTTI_OK;
}

/* -- All of it --------------------------------------------------------------------- */

static bool make_room(struct builder *b)
{
	const struct tti_plan_job *job = b->job->job;
	uint32_t most = 0;

	for (uint32_t i = 0; i < job->nnodes; i++) {
		const uint32_t nnodes = job->nodes[i].routes->paths->graph->nnodes;

		most = nnodes > most ? nnodes : most;
	}
	b->node_of = tti_arena_alloc(&b->arena, 2 * job->nranks * sizeof(*b->node_of));
	b->from_place = tti_arena_alloc(&b->arena, job->nranks * sizeof(*b->from_place));
	b->is_to = tti_arena_alloc(&b->arena, job->nranks);
	b->order = tti_arena_alloc(&b->arena, 2 * job->nnodes * sizeof(*b->order));
	b->members = tti_arena_alloc(&b->arena, job->nnodes * sizeof(*b->members));
	b->served = tti_arena_alloc(&b->arena, job->nnodes * sizeof(*b->served));
	b->ways = tti_arena_alloc(&b->arena, b->plan->nways * sizeof(*b->ways) + 1);
	b->trees = tti_arena_alloc(&b->arena, b->plan->ntrees * sizeof(*b->trees) + 1);
	b->left = tti_arena_alloc(&b->arena, b->plan->ntrees * sizeof(*b->left) + 1);
	b->server = tti_arena_alloc(&b->arena, most * sizeof(*b->server));
	return b->node_of && b->from_place && b->is_to && b->order && b->members && b->served &&
	       b->ways && b->trees && b->left && b->server;
}

static bool place_ranks(struct builder *b)
{
	const struct tti_plan_job *job = b->job->job;

	b->end_of = b->node_of + job->nranks;
	b->nmembers = b->order + job->nnodes;
	memset(b->from_place, -1, job->nranks * sizeof(*b->from_place));
	for (uint32_t i = 0; i < b->job->nfrom; i++)
		b->from_place[b->job->from[i]] = (int32_t)i;
	for (uint32_t i = 0; i < b->job->nto; i++)
		b->is_to[b->job->to[i]] = true;
	for (uint32_t node = 0; node < job->nnodes; node++) {
		const struct tti_job_node *at = &job->nodes[node];

		b->members[node] = tti_arena_alloc(&b->arena, at->nranks * sizeof(uint32_t));
		if (!b->members[node])
			return false;
		for (uint32_t i = 0; i < at->nranks; i++) {
			b->node_of[at->ranks[i]] = node;
			b->end_of[at->ranks[i]] = at->members[i];
			if (b->is_to[at->ranks[i]])
				b->members[node][b->nmembers[node]++] = at->ranks[i];
		}
	}
	return true;
}

/* Nodes in the order of the legs, then those into which none comes. */
static void order_nodes(struct builder *b)
{
	for (uint32_t i = 0; i < b->plan->nlegs + b->job->job->nnodes; i++) {
		const uint32_t node =
			i < b->plan->nlegs ? b->plan->legs[i].to_node : i - b->plan->nlegs;
		bool listed = b->nmembers[node] == 0;

		for (uint32_t k = 0; k < b->norder && !listed; k++)
			listed = b->order[k] == node;
		if (!listed)
			b->order[b->norder++] = node;
	}
}

static void index_plan(struct builder *b)
{
	const struct tti_handoff_plan *plan = b->plan;

	for (uint32_t i = 0; i < plan->nways; i++)
		b->ways[i] =
			(struct ref){ key_of(plan->ways[i].part, b->node_of[plan->ways[i].to]), i };
	for (uint32_t i = 0; i < plan->ntrees; i++) {
		b->trees[i] = (struct ref){ key_of(plan->trees[i].part, plan->trees[i].node), i };
		b->left[i] = plan->trees[i].share;
	}
	qsort(b->ways, plan->nways, sizeof(*b->ways), by_key);
	qsort(b->trees, plan->ntrees, sizeof(*b->trees), by_key);
}

static tutti_status build(struct builder *b)
{
	if (!make_room(b) || !place_ranks(b))
		return no_memory();
	order_nodes(b);
	index_plan(b);
	return add_all(b);
}

tutti_status tti_handoff_shape_of_plan(const struct tti_handoff_job *handoff,
				       const struct tti_handoff_plan *plan,
				       struct tti_handoff_shape **out, size_t *nbytes)
{
	struct builder b = { .job = handoff, .plan = plan };
	struct tti_handoff_shape *shape = NULL;
	tutti_status st = build(&b);

	if (st == TUTTI_OK) {
		*nbytes = tti_handoff_shape_bytes((uint32_t)b.stripes.n, (uint32_t)b.hops.n);
		shape = tti_alloc(*nbytes);
		st = shape ? TUTTI_OK : no_memory();
	}
	if (st == TUTTI_OK) {
		*shape = (struct tti_handoff_shape){ (uint32_t)b.stripes.n, (uint32_t)b.hops.n };
		if (b.stripes.n)
			memcpy(tti_handoff_stripes(shape), b.stripes.at,
			       b.stripes.n * sizeof(*b.stripes.at));
		if (b.hops.n)
			memcpy(tti_handoff_hops(shape), b.hops.at, b.hops.n * sizeof(*b.hops.at));
		*out = shape;
	}
	tti_vec_release(&b.pieces);
	tti_vec_release(&b.stripes);
	tti_vec_release(&b.hops);
	tti_arena_release(&b.arena);
	return st;
}
