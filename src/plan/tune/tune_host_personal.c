/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/tune/tune_host.h"

#include <math.h>

/* -- All to all -------------------------------------------------------------------- */

struct tti_tune_terms tti_tune_direct_half(const struct tti_tune_shape *s, double written,
					   double touched)
{
	return (struct tti_tune_terms){
		.near_hops = 1 - s->far,
		.far_hops = s->far,
		.near_messages = s->p - 1,
		.far_messages = 2 * s->others,
		.chunks = s->n,
		.read = (s->p - 1) / s->n,
		.written = written,
		.touched = touched,
		.socket = 2 * s->others / s->n,
		.wire = s->p * s->others / s->n,
		.senders = s->nodes - 1,
	};
}

/* As many messages and bytes as parts to their owners, and all of them are touched twice. */
struct tti_tune_terms tti_tune_direct_all_to_all(const struct tti_tune_shape *s)
{
	return tti_tune_direct_half(s, (s->p - 1) / s->n, 2);
}

/* How many numbers below n have the bit d. */
static double with_bit(double n, double d)
{
	return floor(n / (2 * d)) * d + fmax(0, fmod(n, 2 * d) - d);
}

/* In the round of distance d go as many chunks as there are distances with that bit. Over a
 * distance of less than a node, d ranks of each send to the next one; the last rank of a
 * node does so in every such round. */
struct tti_tune_terms tti_tune_bruck_all_to_all(const struct tti_tune_shape *s)
{
	double near = 0, far = 0, wire = 0;

	for (double d = 1; d < s->n; d *= 2) {
		const double chunks = with_bit(s->n, d);

		near += d < s->p ? chunks : 0;
		far += s->far * (d < s->p ? 1 : 2) * chunks;
		wire += s->far * fmin(d, s->p) * chunks;
	}
	return (struct tti_tune_terms){
		.near_hops = s->near_rounds,
		.far_hops = s->far_rounds,
		.near_messages = near,
		.far_messages = far,
		.chunks = s->n,
		.read = near / s->n,
		.written = near / s->n,
		.touched = 2 + (s->near_rounds + s->far_rounds) / 2,
		.socket = far / s->n,
		.wire = wire / s->n,
	};
}

/* Inside goes all but what starts at the right rank; between nodes each rank sends to one of
 * each other node, or to several of a larger one. */
struct tti_tune_terms tti_tune_hierarchical_all_to_all(const struct tti_tune_shape *s)
{
	const double served = ceil(s->p / s->least);
	const double inside = (s->p - 1) * (1 + (s->nodes - 1) * served);
	const double across = s->others * (1 + served);

	return (struct tti_tune_terms){
		.near_hops = s->near,
		.far_hops = s->far,
		.near_messages = inside,
		.far_messages = across,
		.chunks = s->n,
		.read = inside / s->n,
		.written = inside / s->n,
		.touched = 2,
		.socket = across / s->n,
		.wire = s->p * s->others / s->n,
		.senders = s->nodes - 1,
	};
}

/* -- Gather, scatter: the root is the busiest -------------------------------------- */

struct tti_tune_terms tti_tune_flat_gather(const struct tti_tune_shape *s)
{
	return (struct tti_tune_terms){
		.near_hops = 1 - s->far,
		.far_hops = s->far,
		.near_messages = s->p - 1,
		.far_messages = s->others,
		.chunks = s->n,
		.read = (s->p - 1) / s->n,
		.written = s->near / s->n,
		.touched = 1 + 1 / s->n,
		.socket = s->others / s->n,
		.wire = s->others / s->n,
		.senders = s->nodes - 1,
	};
}

struct tti_tune_terms tti_tune_flat_scatter(const struct tti_tune_shape *s)
{
	struct tti_tune_terms terms = tti_tune_flat_gather(s);

	terms.near_messages = s->near;
	terms.read = s->near / s->n;
	terms.written = (s->p - 1) / s->n;
	terms.senders = 0;
	return terms;
}

/* As many bytes, from fewer at a time, over more hops. */
struct tti_tune_terms tti_tune_binomial_gather(const struct tti_tune_shape *s)
{
	struct tti_tune_terms terms = tti_tune_flat_gather(s);

	terms.near_hops = s->near_rounds;
	terms.far_hops = s->far_rounds;
	terms.written = s->near * floor(s->p / 2) / s->n;
	terms.senders = s->far;
	return terms;
}

struct tti_tune_terms tti_tune_binomial_scatter(const struct tti_tune_shape *s)
{
	struct tti_tune_terms terms = tti_tune_flat_scatter(s);

	terms.near_hops = s->near_rounds;
	terms.far_hops = s->far_rounds;
	terms.near_messages = s->near * floor(s->p / 2);
	terms.read = terms.near_messages / s->n;
	return terms;
}
