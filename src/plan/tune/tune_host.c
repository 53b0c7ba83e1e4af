/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/tune/tune_host.h"

#include <math.h>

static struct tti_tune_shape shape_of(const struct tti_tune_machine *machine)
{
	struct tti_tune_shape shape = { .n = machine->n,
					.nodes = machine->nnodes,
					.p = machine->most,
					.least = machine->least,
					.stripes = machine->most,
					.near = machine->most > 1,
					.far = machine->nnodes > 1 };
	const double rounds = ceil(log2(shape.n));

	if (machine->stripes && machine->stripes < machine->most)
		shape.stripes = machine->stripes;
	shape.served = ceil(shape.stripes / shape.least);
	shape.others = shape.n - shape.p;
	shape.far_rounds = fmin(rounds, ceil(log2(shape.nodes)));
	shape.near_rounds = rounds - shape.far_rounds;
	return shape;
}

/* -- The algorithms ---------------------------------------------------------------- */

/* Everybody writes all of it once for its node and sends it to each other rank. */
static struct tti_tune_terms exchange(const struct tti_tune_shape *s)
{
	return (struct tti_tune_terms){
		.near_hops = 1 - s->far,
		.far_hops = s->far,
		.near_messages = s->p - 1,
		.far_messages = 2 * s->others,
		.chunks = 1,
		.read = s->p - 1,
		.written = s->near,
		.touched = 2,
		.socket = 2 * s->others,
		.wire = s->p * s->others,
		.senders = s->nodes - 1,
	};
}

static struct tti_tune_terms direct_reduce_scatter(const struct tti_tune_shape *s)
{
	return tti_tune_direct_half(s, (s->p - 1) / s->n, 1 + 1 / s->n);
}

static struct tti_tune_terms direct_all_gather(const struct tti_tune_shape *s)
{
	return tti_tune_direct_half(s, s->near / s->n, 1 + 1 / s->n);
}

/* One half of a ring. A rank at the border of its node has one side near, one far. */
static struct tti_tune_terms ring_half(const struct tti_tune_shape *s)
{
	const double moved = (s->n - 1) / s->n, hops = s->n - 1;
	const double far_hops = s->far * fmin(s->nodes, hops);

	return (struct tti_tune_terms){
		.near_hops = hops - far_hops,
		.far_hops = far_hops,
		.near_messages = s->near * hops,
		.far_messages = s->far * hops * (2 - s->near),
		.chunks = s->n,
		.read = s->near * moved,
		.written = s->near * (1 - s->far) * moved,
		.touched = 1 + 1 / s->n,
		.socket = s->far * (2 - s->near) * moved,
		.wire = s->far * moved,
		.overlaps = true,
	};
}

/* Two halves of an all_reduce, one after the other; the result of the first is the
 * input of the second, so nothing is read that was not counted. */
static struct tti_tune_terms twice(struct tti_tune_terms a, struct tti_tune_terms b)
{
	return (struct tti_tune_terms){
		.near_hops = a.near_hops + b.near_hops,
		.far_hops = a.far_hops + b.far_hops,
		.near_messages = a.near_messages + b.near_messages,
		.far_messages = a.far_messages + b.far_messages,
		.chunks = a.chunks,
		.read = a.read + b.read,
		.written = a.written + b.written,
		.touched = 2,
		.socket = a.socket + b.socket,
		.wire = a.wire + b.wire,
		.senders = a.senders,
		.overlaps = a.overlaps,
	};
}

static struct tti_tune_terms direct_all_reduce(const struct tti_tune_shape *s)
{
	return twice(direct_reduce_scatter(s), direct_all_gather(s));
}

static struct tti_tune_terms ring_all_reduce(const struct tti_tune_shape *s)
{
	return twice(ring_half(s), ring_half(s));
}

/* Ranks beyond a power of two cost two rounds more. */
static double doubling_rounds(double n)
{
	const double rounds = floor(log2(n));

	return rounds + (exp2(rounds) < n ? 2 : 0);
}

/* The data of those rounds that goes through one rank, in and out: a rank that stands in for
 * another takes and gives back in two of them. */
static double doubling_moved(double n)
{
	const double rounds = doubling_rounds(n);

	return rounds > floor(log2(n)) ? rounds - 1 : rounds;
}

/* Each round swaps all of it. Neighbours stand in for each other. */
static struct tti_tune_terms recursive_doubling(const struct tti_tune_shape *s)
{
	const double rounds = doubling_rounds(s->n);
	const double far = s->near > 0 ? fmin(s->far_rounds, rounds) : s->far * rounds;
	const double moved = s->near > 0 ? far : s->far * doubling_moved(s->n);
	const double near = rounds - far;

	return (struct tti_tune_terms){
		.near_hops = near,
		.far_hops = far,
		.near_messages = near,
		.far_messages = 2 * moved,
		.chunks = 1,
		.read = near,
		.written = near,
		.touched = 1 + rounds,
		.socket = 2 * moved,
		.wire = s->p * moved,
	};
}

/* How many ends of edges of both trees over m ranks the busiest rank has: parents in
 * both, children in one. */
static double tree_edges(double m)
{
	return m < 2 ? 0 : m < 3 ? 2 : m < 5 ? 3 : 4;
}

/* Those that leave its node. Trees inside nodes hang on a tree over the nodes, the two on
 * two ranks, unless there is but one. */
static double tree_edges_far(const struct tti_tune_shape *s)
{
	return tree_edges(s->nodes) - (s->far > 0 && s->least > 1);
}

static struct tti_tune_terms double_tree(const struct tti_tune_shape *s)
{
	return (struct tti_tune_terms){
		.near_hops = 2 * floor(log2(s->p)),
		.far_hops = 2 * floor(log2(s->nodes)),
		.near_messages = tree_edges(s->p),
		.far_messages = 2 * tree_edges_far(s),
		.chunks = 2,
		.read = tree_edges(s->p) / 2,
		.written = tree_edges(s->p) / 2,
		.touched = 2,
		.socket = tree_edges_far(s),
		.wire = tree_edges(s->nodes) / 2,
		.pipelined = true,
	};
}

/* One way. The root takes the place of both tops, so some pass on a half twice. */
static struct tti_tune_terms double_tree_half(const struct tti_tune_shape *s, double received)
{
	return (struct tti_tune_terms){
		.near_hops = floor(log2(s->p)),
		.far_hops = floor(log2(s->nodes)),
		.near_messages = received,
		.far_messages = tree_edges_far(s),
		.chunks = 2,
		.read = received / 2,
		.written = s->near,
		.touched = 1.5,
		.socket = tree_edges_far(s) / 2,
		.wire = fmin(1.5, s->far * fmax(1, tree_edges(s->nodes) / 2)),
		.pipelined = true,
	};
}

static struct tti_tune_terms double_tree_broadcast(const struct tti_tune_shape *s)
{
	return double_tree_half(s, 2 * s->near);
}

static struct tti_tune_terms double_tree_reduce(const struct tti_tune_shape *s)
{
	return double_tree_half(s, fmin(3, tree_edges(s->p)));
}

/* Data goes between nodes in stripes. These are the terms inside a group, whose members all give
 * their share to a stripe's member, or get it from there; the rest is between groups. */
static struct tti_tune_terms inside(const struct tti_tune_shape *s, double given, double gotten)
{
	return (struct tti_tune_terms){
		.near_hops = s->near,
		.near_messages = given * (s->p - 1) + gotten * (s->stripes - 1),
		.read = given * (s->p - 1) / s->stripes + gotten * (s->stripes - 1) / s->stripes,
		.written = s->near * (given * (s->stripes - 1) + gotten) / s->stripes,
		.busy = s->stripes,
	};
}

/* Inside each node direct, between nodes stripes as rings. */
static struct tti_tune_terms hierarchical(const struct tti_tune_shape *s)
{
	const double moved = 2 * (s->nodes - 1) / s->nodes;
	struct tti_tune_terms terms = inside(s, 1, 1);

	terms.near_hops *= 2;
	terms.near_messages *= s->nodes;
	terms.far_hops = 2 * (s->nodes - 1);
	terms.far_messages = 4 * (s->nodes - 1) * s->served;
	terms.chunks = s->stripes * s->nodes;
	terms.touched = 2;
	terms.socket = 2 * moved * s->served / s->stripes;
	terms.wire = moved;
	terms.overlaps = true;
	return terms;
}

/* Always as many stripes as the smallest node has ranks. */
static struct tti_tune_terms hierarchical_doubling(const struct tti_tune_shape *all)
{
	const double rounds = doubling_rounds(all->nodes), moved = doubling_moved(all->nodes);
	struct tti_tune_shape s = *all;
	struct tti_tune_terms terms;

	s.stripes = fmin(s.stripes, s.least);
	terms = inside(&s, 1, 1);
	terms.near_hops *= 2;
	terms.far_hops = rounds;
	terms.far_messages = 2 * moved;
	terms.chunks = s.stripes;
	terms.touched = 2 + rounds / s.stripes;
	terms.socket = 2 * moved / s.stripes;
	terms.wire = moved;
	return terms;
}

/* Stripes as chains: a broadcast gives to all of a group twice, first the root's, and a
 * reduction gathers twice, last at the root. */
static struct tti_tune_terms hierarchical_chain(const struct tti_tune_shape *s, double given)
{
	struct tti_tune_terms terms = inside(s, given, 1);

	terms.near_hops *= 2;
	terms.near_messages += s->near * (1 - given);
	terms.far_hops = s->nodes - 1;
	terms.far_messages = fmin(2, s->nodes - 1) * s->served;
	terms.chunks = s->stripes;
	terms.touched = 1 + given;
	terms.socket = fmin(2, s->nodes - 1) * s->served / s->stripes;
	terms.wire = s->far;
	terms.pipelined = true;
	return terms;
}

static struct tti_tune_terms hierarchical_broadcast(const struct tti_tune_shape *s)
{
	struct tti_tune_terms terms = hierarchical_chain(s, 0);

	/* The root writes all for its group, whose ranks read all of it. */
	terms.read = s->near;
	terms.written = s->near;
	return terms;
}

static struct tti_tune_terms hierarchical_reduce(const struct tti_tune_shape *s)
{
	return hierarchical_chain(s, 1);
}

/* Chunks are the ranks' own. Those of other nodes come along the stripes. */
static struct tti_tune_terms hierarchical_half(const struct tti_tune_shape *s,
					       struct tti_tune_terms terms)
{
	const double far = s->others / s->n;

	terms.near_hops *= 1 + s->far;
	terms.far_hops = s->nodes - 1;
	terms.far_messages = 2 * s->others * s->served / s->stripes;
	terms.chunks = s->n;
	terms.touched = 1 + 1 / s->n;
	terms.socket = 2 * far * s->served / s->stripes;
	terms.wire = far;
	terms.overlaps = true;
	return terms;
}

static struct tti_tune_terms hierarchical_all_gather(const struct tti_tune_shape *s)
{
	const double far = s->others / s->n;
	struct tti_tune_terms terms = hierarchical_half(s, inside(s, 0, far));

	terms.near_messages = s->p - 1 + s->others * (s->stripes - 1) / s->stripes;
	terms.read += (s->p - 1) / s->n;
	terms.written += s->near / s->n;
	return terms;
}

static struct tti_tune_terms hierarchical_reduce_scatter(const struct tti_tune_shape *s)
{
	struct tti_tune_terms terms = hierarchical_half(s, inside(s, 1, 0));

	terms.near_messages = (s->p - 1) * s->n / s->stripes;
	return terms;
}

/* Stripes as chains from the first node to the last, where all are complete. Ranks are
 * numbered node by node. */
static struct tti_tune_terms ordered(const struct tti_tune_shape *s, double gotten)
{
	struct tti_tune_terms terms = inside(s, 1, gotten);

	terms.near_hops *= 2;
	terms.far_hops = s->nodes - 1;
	terms.pipelined = true;
	return terms;
}

/* And back. */
static struct tti_tune_terms ordered_all_reduce(const struct tti_tune_shape *s)
{
	const double moved = fmin(2, s->nodes - 1);
	struct tti_tune_terms terms = ordered(s, 1);

	terms.far_hops *= 2;
	terms.far_messages = 2 * moved * s->served;
	terms.chunks = s->stripes;
	terms.touched = 2;
	terms.socket = 2 * moved * s->served / s->stripes;
	terms.wire = moved;
	return terms;
}

/* The root is taken to be on the first node: it gets all stripes from the last. */
static struct tti_tune_terms ordered_reduce(const struct tti_tune_shape *s)
{
	struct tti_tune_terms terms = ordered(s, 1 - s->far);

	terms.far_hops += s->far;
	terms.far_messages = s->far * (s->stripes + s->served);
	terms.chunks = s->stripes;
	terms.touched = 2;
	terms.socket = terms.far_messages / s->stripes;
	terms.wire = s->far;
	return terms;
}

static struct tti_tune_terms ordered_reduce_scatter(const struct tti_tune_shape *s)
{
	struct tti_tune_terms terms = ordered(s, 0);
	const double owned = s->n / s->stripes; /* chunks of a stripe */
	const double messages = s->nodes > 2 ? 2 * owned + 1 : 2 * owned - 1;

	terms.near_messages = (s->p - 1) * owned;
	terms.far_hops += s->far;
	terms.far_messages = s->far * messages * s->served;
	terms.chunks = s->n;
	terms.touched = 1 + 1 / s->n;
	terms.socket = terms.far_messages / s->n;
	terms.wire = s->far + (s->nodes > 2) / s->nodes; /* its own comes back */
	return terms;
}

static struct tti_tune_terms flat_broadcast(const struct tti_tune_shape *s)
{
	return (struct tti_tune_terms){
		.near_hops = 1 - s->far,
		.far_hops = s->far,
		.near_messages = s->near,
		.far_messages = s->others,
		.chunks = 1,
		.read = s->near,
		.written = s->near,
		.touched = 1,
		.socket = s->others,
		.wire = s->others,
	};
}

static struct tti_tune_terms flat_reduce(const struct tti_tune_shape *s)
{
	return (struct tti_tune_terms){
		.near_hops = 1 - s->far,
		.far_hops = s->far,
		.near_messages = s->p - 1,
		.far_messages = s->others,
		.chunks = 1,
		.read = s->p - 1,
		.written = s->near,
		.touched = 2,
		.socket = s->others,
		.wire = s->others,
		.senders = s->nodes - 1,
	};
}

static struct tti_tune_terms binomial(const struct tti_tune_shape *s, double near_messages,
				      double touched)
{
	return (struct tti_tune_terms){
		.near_hops = s->near_rounds,
		.far_hops = s->far_rounds,
		.near_messages = near_messages,
		.far_messages = s->far_rounds,
		.chunks = 1,
		.read = near_messages,
		.written = s->near_rounds > 0,
		.touched = touched,
		.socket = s->far_rounds,
		.wire = s->far_rounds,
		.pipelined = true,
	};
}

/* A fan-out is written once for all children of a node. */
static struct tti_tune_terms binomial_broadcast(const struct tti_tune_shape *s)
{
	return binomial(s, s->near_rounds > 0, 1);
}

static struct tti_tune_terms binomial_reduce(const struct tti_tune_shape *s)
{
	return binomial(s, s->near_rounds, 2);
}

static struct tti_tune_terms chain(const struct tti_tune_shape *s, double touched)
{
	return (struct tti_tune_terms){
		.near_hops = s->n - s->nodes,
		.far_hops = s->nodes - 1,
		.near_messages = s->near,
		.far_messages = fmin(2 - s->near, s->nodes - 1),
		.chunks = 1,
		.read = s->near,
		.written = s->near,
		.touched = touched,
		.socket = fmin(2 - s->near, s->nodes - 1),
		.wire = s->far,
		.pipelined = true,
	};
}

static struct tti_tune_terms chain_broadcast(const struct tti_tune_shape *s)
{
	return chain(s, 1);
}

static struct tti_tune_terms chain_reduce(const struct tti_tune_shape *s)
{
	return chain(s, 2);
}

/* As many bytes as a ring. Rounds over distances of a node and more are between nodes; of
 * those over a shorter distance d, d ranks of a node send to the next one. */
static struct tti_tune_terms bruck(const struct tti_tune_shape *s)
{
	const double across = s->far * (s->p - 1);

	return (struct tti_tune_terms){
		.near_hops = s->near_rounds,
		.far_hops = s->far_rounds,
		.near_messages = s->p - 1,
		.far_messages = 2 * s->others + across,
		.chunks = s->n,
		.read = (s->p - 1) / s->n,
		.written = (s->p - 1) / s->n,
		.touched = 1 + 1 / s->n,
		.socket = (2 * s->others + across) / s->n,
		.wire = (s->p * s->others + across * (s->p + 1) / 3) / s->n,
	};
}

static struct tti_tune_terms dissemination(const struct tti_tune_shape *s)
{
	return (struct tti_tune_terms){
		.near_hops = s->near_rounds,
		.far_hops = s->far_rounds,
		.near_messages = s->near_rounds,
		.far_messages = 2 * s->far_rounds,
		.chunks = 1,
	};
}

static const struct {
	tutti_collective coll;
	enum tti_tune_algo algo;
	struct tti_tune_terms (*terms)(const struct tti_tune_shape *shape);
} algorithms[] = {
	{ TUTTI_ALL_REDUCE, TTI_TUNE_EXCHANGE, exchange },
	{ TUTTI_ALL_REDUCE, TTI_TUNE_DIRECT, direct_all_reduce },
	{ TUTTI_ALL_REDUCE, TTI_TUNE_RING, ring_all_reduce },
	{ TUTTI_ALL_REDUCE, TTI_TUNE_RECURSIVE_DOUBLING, recursive_doubling },
	{ TUTTI_ALL_REDUCE, TTI_TUNE_DOUBLE_TREE, double_tree },
	{ TUTTI_ALL_REDUCE, TTI_TUNE_HIERARCHICAL, hierarchical },
	{ TUTTI_ALL_REDUCE, TTI_TUNE_HIERARCHICAL_DOUBLING, hierarchical_doubling },
	{ TUTTI_ALL_REDUCE, TTI_TUNE_ORDERED, ordered_all_reduce },
	{ TUTTI_BROADCAST, TTI_TUNE_FLAT, flat_broadcast },
	{ TUTTI_BROADCAST, TTI_TUNE_BINOMIAL, binomial_broadcast },
	{ TUTTI_BROADCAST, TTI_TUNE_CHAIN, chain_broadcast },
	{ TUTTI_BROADCAST, TTI_TUNE_DOUBLE_TREE, double_tree_broadcast },
	{ TUTTI_BROADCAST, TTI_TUNE_HIERARCHICAL, hierarchical_broadcast },
	{ TUTTI_REDUCE, TTI_TUNE_FLAT, flat_reduce },
	{ TUTTI_REDUCE, TTI_TUNE_BINOMIAL, binomial_reduce },
	{ TUTTI_REDUCE, TTI_TUNE_CHAIN, chain_reduce },
	{ TUTTI_REDUCE, TTI_TUNE_DOUBLE_TREE, double_tree_reduce },
	{ TUTTI_REDUCE, TTI_TUNE_HIERARCHICAL, hierarchical_reduce },
	{ TUTTI_REDUCE, TTI_TUNE_ORDERED, ordered_reduce },
	{ TUTTI_ALL_GATHER, TTI_TUNE_RING, ring_half },
	{ TUTTI_ALL_GATHER, TTI_TUNE_DIRECT, direct_all_gather },
	{ TUTTI_ALL_GATHER, TTI_TUNE_BRUCK, bruck },
	{ TUTTI_ALL_GATHER, TTI_TUNE_HIERARCHICAL, hierarchical_all_gather },
	{ TUTTI_REDUCE_SCATTER, TTI_TUNE_RING, ring_half },
	{ TUTTI_REDUCE_SCATTER, TTI_TUNE_DIRECT, direct_reduce_scatter },
	{ TUTTI_REDUCE_SCATTER, TTI_TUNE_HIERARCHICAL, hierarchical_reduce_scatter },
	{ TUTTI_REDUCE_SCATTER, TTI_TUNE_ORDERED, ordered_reduce_scatter },
	{ TUTTI_ALL_TO_ALL, TTI_TUNE_DIRECT, tti_tune_direct_all_to_all },
	{ TUTTI_ALL_TO_ALL, TTI_TUNE_BRUCK, tti_tune_bruck_all_to_all },
	{ TUTTI_ALL_TO_ALL, TTI_TUNE_HIERARCHICAL, tti_tune_hierarchical_all_to_all },
	{ TUTTI_GATHER, TTI_TUNE_FLAT, tti_tune_flat_gather },
	{ TUTTI_GATHER, TTI_TUNE_BINOMIAL, tti_tune_binomial_gather },
	{ TUTTI_SCATTER, TTI_TUNE_FLAT, tti_tune_flat_scatter },
	{ TUTTI_SCATTER, TTI_TUNE_BINOMIAL, tti_tune_binomial_scatter },
	{ TUTTI_BARRIER, TTI_TUNE_DISSEMINATION, dissemination },
	{ TUTTI_BARRIER, TTI_TUNE_EXCHANGE, exchange },
};

bool tti_tune_host_terms(const struct tti_tune_machine *machine, tutti_collective coll,
			 enum tti_tune_algo algo, struct tti_tune_terms *out)
{
	const struct tti_tune_shape shape = shape_of(machine);

	for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
		if (algorithms[i].coll == coll && algorithms[i].algo == algo) {
			*out = machine->n > 1
				       ? algorithms[i].terms(&shape)
				       : (struct tti_tune_terms){ .chunks = 1, .touched = 2 };
			return true;
		}
	return false;
}
