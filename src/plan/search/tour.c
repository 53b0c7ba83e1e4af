/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan/search/tour.h"

#include <math.h>
#include <string.h>

#include "util/error.h"
#include "util/mem.h"

double tti_tour_cost(const struct tti_tour_input *in, const uint32_t *order)
{
	double cost = in->begin[order[0]] + in->end[order[in->n - 1]];

	for (uint32_t i = 0; i + 1 < in->n; i++)
		cost += in->hop[order[i] * in->n + order[i + 1]];
	return cost;
}

/* -- Exact ------------------------------------------------------------------------- */

/* Costs as integers, rounded down, so that the inner loop is one that compilers do
 * many at a time, and what it finds is a bound whatever was rounded. FAR is a way that
 * does not exist or is of no interest; all of a tour's together stay below 2^31. */
#define UNIT (1 << 23)
#define FAR  (1 << 25)

struct subsets {
	uint32_t n;
	int32_t *cost; /* [set * n + last]: the best way through `set` that ends in last */
	int32_t *into; /* [next * n + last]: the hop from last to next                   */
};

static int32_t units(double cost)
{
	return cost < (double)FAR / UNIT ? (int32_t)(cost * UNIT) : FAR;
}

static void fill_subsets(const struct tti_tour_input *in, struct subsets *s)
{
	const uint32_t n = s->n, all = UINT32_C(1) << n;

	for (uint32_t i = 0; i < n * n; i++)
		s->into[i] = units(in->hop[i % n * n + i / n]);
	for (uint32_t i = 0; i < all * n; i++)
		s->cost[i] = 32 * FAR;
	for (uint32_t i = 0; i < n; i++)
		s->cost[(UINT32_C(1) << i) * n + i] = units(in->begin[i]);
	for (uint32_t set = 1; set < all; set++)
		for (uint32_t next = 0; next < n; next++) {
			const int32_t *cost = &s->cost[set * n], *into = &s->into[next * n];
			int32_t least = 32 * FAR;

			if (set >> next & 1)
				continue;
			for (uint32_t last = 0; last < n; last++) {
				const int32_t sum = cost[last] + into[last];

				least = sum < least ? sum : least;
			}
			s->cost[(set | UINT32_C(1) << next) * n + next] = least;
		}
}

/* From the end back: which predecessor gave the cost. */
static int32_t read_back(const struct tti_tour_input *in, const struct subsets *s, uint32_t *order)
{
	const uint32_t n = s->n;
	uint32_t set = (UINT32_C(1) << n) - 1, last = 0;
	int32_t best = INT32_MAX;

	for (uint32_t i = 0; i < n; i++)
		if (s->cost[set * n + i] + units(in->end[i]) < best) {
			best = s->cost[set * n + i] + units(in->end[i]);
			last = i;
		}
	for (uint32_t at = n; at-- > 0;) {
		uint32_t from = 0;
		int32_t least = INT32_MAX;

		order[at] = last;
		set &= ~(UINT32_C(1) << last);
		for (uint32_t i = 0; i < n && at > 0; i++) {
			const int32_t sum = s->cost[set * n + i] + s->into[last * n + i];

			if (set >> i & 1 && sum < least) {
				least = sum;
				from = i;
			}
		}
		last = from;
	}
	return best;
}

tutti_status tti_tour_exact(const struct tti_tour_input *in, uint32_t *order_out, double *cost_out,
			    double *least_out)
{
	const size_t nstates = ((size_t)1 << in->n) * in->n;
	struct subsets s = { .n = in->n };

	tti_assert(in->n >= 1 && in->n <= TTI_TOUR_EXACT);
	s.cost = tti_calloc(nstates + (size_t)in->n * in->n, sizeof(*s.cost));
	if (!s.cost)
		return tti_fail(TUTTI_ENOMEM, "best ring of %u members: out of memory", in->n);
	s.into = s.cost + nstates;
	fill_subsets(in, &s);
	*least_out = (double)read_back(in, &s, order_out) / UNIT;
	*cost_out = tti_tour_cost(in, order_out);
	tti_free(s.cost);
	return TUTTI_OK;
}

/* With more members, short segments and few beginnings must do. */
#define MANY 24

/* -- Good -------------------------------------------------------------------------- */

static void nearest_neighbour(const struct tti_tour_input *in, uint32_t first, bool *used,
			      uint32_t *order)
{
	memset(used, 0, in->n * sizeof(*used));
	order[0] = first;
	used[first] = true;
	for (uint32_t at = 1; at < in->n; at++) {
		const double *hop = &in->hop[order[at - 1] * in->n];
		uint32_t best = in->n;

		for (uint32_t i = 0; i < in->n; i++)
			if (!used[i] && (best == in->n || hop[i] < hop[best]))
				best = i;
		order[at] = best;
		used[best] = true;
	}
}

/* Cost of the way into position `at` from the one before; positions n and up: the end. */
static double step(const struct tti_tour_input *in, const uint32_t *order, uint32_t at)
{
	if (at == 0)
		return in->begin[order[0]];
	if (at == in->n)
		return in->end[order[in->n - 1]];
	return in->hop[order[at - 1] * in->n + order[at]];
}

static double join(const struct tti_tour_input *in, const uint32_t *order, int64_t from, int64_t to)
{
	if (from < 0)
		return in->begin[order[to]];
	if (to >= in->n)
		return in->end[order[from]];
	return in->hop[order[from] * in->n + order[to]];
}

/* Take order[a .. b) out and put it before position `to` (to < a or to > b). */
static void move_segment(uint32_t *order, uint32_t a, uint32_t b, uint32_t to, uint32_t *scratch)
{
	const uint32_t len = b - a;

	memcpy(scratch, order + a, len * sizeof(*order));
	if (to < a) {
		memmove(order + to + len, order + to, (a - to) * sizeof(*order));
		memcpy(order + to, scratch, len * sizeof(*order));
	} else {
		memmove(order + a, order + b, (to - b) * sizeof(*order));
		memcpy(order + to - len, scratch, len * sizeof(*order));
	}
}

/* The first move of a segment that helps; costs may be INFINITY, whose difference is no
 * number and so no help. */
static bool improve(const struct tti_tour_input *in, uint32_t *order, uint32_t *scratch)
{
	const uint32_t n = in->n, longest = 3 + (n <= MANY ? n / 4 : 0);

	for (uint32_t a = 0; a < n; a++)
		for (uint32_t b = a + 1; b <= n && b - a <= longest && b - a < n; b++) {
			const double out = step(in, order, a) + step(in, order, b);
			const double closed = join(in, order, (int64_t)a - 1, b);

			for (uint32_t to = 0; to <= n; to++) {
				if (to >= a && to <= b)
					continue;
				const double gain = out + step(in, order, to) - closed -
						    join(in, order, (int64_t)to - 1, a) -
						    join(in, order, (int64_t)b - 1, to);

				if (gain > 1e-12) {
					move_segment(order, a, b, to, scratch);
					return true;
				}
			}
		}
	return false;
}

tutti_status tti_tour_good(const struct tti_tour_input *in, uint32_t *order_out, double *cost_out)
{
	const uint32_t n = in->n, nstarts = n < 8 ? n : n <= MANY ? 8 : 2;
	uint32_t *order = tti_calloc(n, 2 * sizeof(*order));
	bool *used = tti_calloc(n, sizeof(*used));

	if (!order || !used) {
		tti_free(order);
		tti_free(used);
		return tti_fail(TUTTI_ENOMEM, "ring of %u members: out of memory", n);
	}
	*cost_out = INFINITY;
	for (uint32_t i = 0; i < nstarts; i++) {
		double cost;

		nearest_neighbour(in, i * n / nstarts, used, order);
		for (uint32_t round = 0;
		     round < (n <= MANY ? 4 : 1) * n && improve(in, order, order + n);)
			round++;
		cost = tti_tour_cost(in, order);
		if (i == 0 || cost < *cost_out) {
			*cost_out = cost;
			memcpy(order_out, order, n * sizeof(*order));
		}
	}
	tti_free(order);
	tti_free(used);
	return TUTTI_OK;
}

/* -- Bound ------------------------------------------------------------------------- */

/* Rows: who has a successor (the members, and the beginning); columns: who is one (the
 * members, and the end). */
static double successor_cost(const struct tti_tour_input *in, uint32_t row, uint32_t column)
{
	const double none = 1e12; /* INFINITY would not subtract */
	double cost;

	if (row == in->n)
		cost = column == in->n ? none : in->begin[column];
	else if (column == in->n)
		cost = in->end[row];
	else
		cost = row == column ? none : in->hop[row * in->n + column];
	return cost < none ? cost : none;
}

struct hungarian {
	double *row, *column, *least; /* potentials; least slack of a column */
	uint32_t *match, *way;        /* row of a column; column before      */
	bool *used;
};

/* Add one row to the matching by the shortest augmenting path. */
static void augment(const struct tti_tour_input *in, struct hungarian *h, uint32_t m, uint32_t row)
{
	uint32_t at = m;

	h->match[m] = row;
	for (uint32_t i = 0; i <= m; i++) {
		h->least[i] = INFINITY;
		h->used[i] = false;
	}
	do {
		const uint32_t from = h->match[at];
		double delta = INFINITY;
		uint32_t next = m;

		h->used[at] = true;
		for (uint32_t i = 0; i < m; i++) {
			if (h->used[i])
				continue;
			const double slack =
				successor_cost(in, from, i) - h->row[from] - h->column[i];

			if (slack < h->least[i]) {
				h->least[i] = slack;
				h->way[i] = at;
			}
			if (h->least[i] < delta) {
				delta = h->least[i];
				next = i;
			}
		}
		for (uint32_t i = 0; i <= m; i++)
			if (h->used[i]) {
				h->row[h->match[i]] += delta;
				h->column[i] -= delta;
			} else {
				h->least[i] -= delta;
			}
		at = next;
	} while (h->match[at] != UINT32_MAX);
	while (at != m) {
		h->match[at] = h->match[h->way[at]];
		at = h->way[at];
	}
}

tutti_status tti_tour_bound(const struct tti_tour_input *in, double *bound_out)
{
	const uint32_t m = in->n + 1;
	double *real = tti_calloc((size_t)m + 1, 3 * sizeof(*real));
	uint32_t *index = tti_calloc((size_t)m + 1, 2 * sizeof(*index));
	struct hungarian h = { .used = tti_calloc((size_t)m + 1, sizeof(*h.used)) };
	tutti_status st = TUTTI_OK;

	if (!real || !index || !h.used) {
		st = tti_fail(TUTTI_ENOMEM, "bound of a ring of %u members: out of memory", in->n);
		goto out;
	}
	h.row = real;
	h.column = real + m + 1;
	h.least = real + 2 * (m + 1);
	h.match = index;
	h.way = index + m + 1;
	for (uint32_t i = 0; i <= m; i++)
		h.match[i] = UINT32_MAX;
	for (uint32_t row = 0; row < m; row++)
		augment(in, &h, m, row);
	*bound_out = 0;
	for (uint32_t i = 0; i < m; i++)
		*bound_out += successor_cost(in, h.match[i], i);
out:
	tti_free(real);
	tti_free(index);
	tti_free(h.used);
	return st;
}
