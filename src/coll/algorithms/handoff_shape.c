/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/algorithms/handoff_shape.h"

#include "util/error.h"
#include "util/mem.h"

static int compare(const struct tti_handoff_stripe *stripe, int32_t source, int32_t dest)
{
	if (stripe->source != source)
		return stripe->source < source ? -1 : 1;
	return stripe->dest < dest ? -1 : stripe->dest > dest;
}

uint32_t tti_handoff_stripes_of(const struct tti_handoff_shape *shape, int32_t source, int32_t dest,
				uint32_t *first)
{
	const struct tti_handoff_stripe *stripes = tti_handoff_stripes(shape);
	uint32_t low = 0, high = shape->nstripes, n = 0;

	while (low < high) {
		const uint32_t middle = low + (high - low) / 2;

		if (compare(&stripes[middle], source, dest) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + n < shape->nstripes && compare(&stripes[low + n], source, dest) == 0)
		n++;
	*first = low;
	return n;
}

uint32_t tti_handoff_next_cut(const struct tti_handoff_shape *shape, uint32_t first, uint32_t n,
			      uint32_t at)
{
	const struct tti_handoff_stripe *stripe = tti_handoff_stripes(shape) + first;
	uint32_t next = TTI_HANDOFF_UNITS;

	for (uint32_t i = 0; i < n; i++) {
		if (stripe[i].begin > at && stripe[i].begin < next)
			next = stripe[i].begin;
		if (stripe[i].end > at && stripe[i].end < next)
			next = stripe[i].end;
	}
	return next;
}

/* -- Checking ---------------------------------------------------------------------- */

struct checker {
	const struct tti_handoff_call *call;
	const struct tti_handoff_shape *shape;
	int *from_place, *to_place; /* [n]: of each rank on its side, -1: not on it */
	int *depth; /* [n]: messages until a rank has the piece at hand, -1: never */
	int deepest;
};

#define breach(...) tti_fail_quiet(TUTTI_EPLAN, "the plan of a handoff: " __VA_ARGS__)

static bool is_part(const tutti_side *side, int32_t part)
{
	return tti_handoff_is_sharded(side) ? part >= 0 && part < side->n : part == -1;
}

/* Numbers that the rest may use as they are. */
static tutti_status check_numbers(const struct checker *c, size_t nbytes)
{
	const struct tti_handoff_shape *shape = c->shape;
	const struct tti_handoff_stripe *stripes = tti_handoff_stripes(shape);
	const struct tti_handoff_hop *hops;
	const int n = c->call->n;

	if (nbytes < sizeof(*shape) || nbytes > UINT32_MAX ||
	    shape->nstripes > nbytes / sizeof(*stripes) || shape->nhops > nbytes / sizeof(*hops) ||
	    nbytes != tti_handoff_shape_bytes(shape->nstripes, shape->nhops))
		return breach("%zu bytes are not what it says it has", nbytes);
	for (uint32_t i = 0; i < shape->nstripes; i++) {
		const struct tti_handoff_stripe *s = &stripes[i];

		if (s->from < 0 || s->from >= n || s->to < 0 || s->to >= n)
			return breach("stripe %u (%d to %d): no such rank", i, s->from, s->to);
		if (!is_part(&c->call->from, s->source) || !is_part(&c->call->to, s->dest))
			return breach("stripe %u is of part %d, %d: there is none", i, s->source,
				      s->dest);
		if (s->begin >= s->end || s->end > TTI_HANDOFF_UNITS)
			return breach("stripe %u is from %u to %u of %d", i, s->begin, s->end,
				      TTI_HANDOFF_UNITS);
		if (s->first > shape->nhops || s->n > shape->nhops - s->first)
			return breach("stripe %u has hops %u to %u of %u", i, s->first,
				      s->first + s->n, shape->nhops);
		if (i > 0 && compare(&stripes[i - 1], s->source, s->dest) > 0)
			return breach("stripe %u stands behind those of later parts", i);
	}
	hops = tti_handoff_hops(shape);
	for (uint32_t i = 0; i < shape->nhops; i++)
		if (hops[i].from < 0 || hops[i].from >= n || hops[i].to < 0 || hops[i].to >= n)
			return breach("hop %u (%d to %d): no such rank", i, hops[i].from,
				      hops[i].to);
	return TUTTI_OK;
}

static bool is_on(const int *place, int rank, int32_t part)
{
	return place[rank] >= 0 && (part < 0 || place[rank] == part);
}

/* One message of the piece at hand. */
static tutti_status pass(struct checker *c, int32_t dest, int from, int to)
{
	if (c->depth[from] < 0)
		return breach("rank %d sends rank %d what it has not", from, to);
	if (!is_on(c->to_place, to, dest))
		return breach("rank %d sends rank %d what it shall not have", from, to);
	if (c->depth[to] >= 0)
		return breach("rank %d sends rank %d what it has already", from, to);
	c->depth[to] = c->depth[from] + 1;
	if (c->depth[to] > c->deepest)
		c->deepest = c->depth[to];
	return TUTTI_OK;
}

static tutti_status pass_stripe(struct checker *c, const struct tti_handoff_stripe *stripe)
{
	const struct tti_handoff_hop *hops = tti_handoff_hops(c->shape) + stripe->first;

	if (stripe->from != stripe->to)
		TTI_TRY(pass(c, stripe->dest, stripe->from, stripe->to));
	for (uint32_t i = 0; i < stripe->n; i++)
		TTI_TRY(pass(c, stripe->dest, hops[i].from, hops[i].to));
	return TUTTI_OK;
}

/* What lies between two neighbouring cuts of a part goes one way. */
static tutti_status check_part(struct checker *c, int32_t source, int32_t dest)
{
	uint32_t first;
	const uint32_t n = tti_handoff_stripes_of(c->shape, source, dest, &first);
	const struct tti_handoff_stripe *stripe = tti_handoff_stripes(c->shape) + first;

	for (uint32_t at = 0; at < TTI_HANDOFF_UNITS;
	     at = tti_handoff_next_cut(c->shape, first, n, at)) {
		for (int rank = 0; rank < c->call->n; rank++)
			c->depth[rank] = is_on(c->from_place, rank, source) ? 0 : -1;
		for (uint32_t i = 0; i < n; i++)
			if (stripe[i].begin <= at && at < stripe[i].end)
				TTI_TRY(pass_stripe(c, &stripe[i]));
		for (int rank = 0; rank < c->call->n; rank++)
			if (is_on(c->to_place, rank, dest) && c->depth[rank] < 0)
				return breach("rank %d never gets what is behind %u of %d", rank,
					      at, TTI_HANDOFF_UNITS);
	}
	return TUTTI_OK;
}

static void place_ranks(const tutti_side *side, int n, int *place)
{
	for (int rank = 0; rank < n; rank++)
		place[rank] = -1;
	for (int i = 0; i < side->n; i++)
		place[side->ranks[i]] = i;
}

static tutti_status check(struct checker *c, size_t nbytes)
{
	const tutti_side *from = &c->call->from, *to = &c->call->to;

	place_ranks(from, c->call->n, c->from_place);
	place_ranks(to, c->call->n, c->to_place);
	TTI_TRY(check_numbers(c, nbytes));
	if (tti_handoff_is_direct(c->call))
		return c->shape->nstripes
			       ? breach("parts of one rank for one other have no stripes")
			       : TUTTI_OK;
	for (int source = 0; tti_handoff_is_sharded(from) && source < from->n; source++)
		TTI_TRY(check_part(c, source, -1));
	for (int dest = 0; tti_handoff_is_sharded(to) && dest < to->n; dest++)
		TTI_TRY(check_part(c, -1, dest));
	return tti_handoff_is_sharded(from) || tti_handoff_is_sharded(to) ? TUTTI_OK
									  : check_part(c, -1, -1);
}

tutti_status tti_handoff_shape_check(const struct tti_handoff_call *call,
				     const struct tti_handoff_shape *shape, size_t nbytes,
				     int *depth)
{
	const size_t n = (size_t)call->n;
	int *room = tti_calloc(3 * n, sizeof(*room));
	struct checker c = { .call = call,
			     .shape = shape,
			     .from_place = room,
			     .to_place = room + n,
			     .depth = room + 2 * n,
			     .deepest = 1 };
	const tutti_status st =
		room ? check(&c, nbytes)
		     : tti_fail(TUTTI_ENOMEM, "a handoff of %d ranks: out of memory", call->n);

	tti_free(room);
	*depth = c.deepest;
	return st;
}
