/* SPDX-License-Identifier: BSD-3-Clause */
/* The data of the check: what every rank sends, and what must come out.
 *
 * Every element of the result is compared, bit for bit. That needs values for
 * which no order of the operations rounds: integers so small that every partial
 * sum is exact in the type, products of few powers of two, averages that are
 * divisible. Where nothing is computed, the bytes are arbitrary.
 *
 * The values are those of a table of PERIOD elements, so that making and
 * checking cost a copy and not a hash per element and rank. The table is
 * entered SHIFT elements later in each round, and PERIOD is a prime: a chunk
 * that ends up in the wrong place does not match. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define PERIOD 4093
#define SHIFT  7

/* At most so many factors of a product are not 1 or -1: 2^6 and 2^-6 are exact
 * in all types, and so is everything between. */
#define MAX_FACTORS 6

/* Larger values would test nothing more. */
#define MAX_AMPLITUDE ((int64_t)1 << 40)

static uint64_t mix(uint64_t x)
{
	/* The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static uint64_t hash(const struct perf_pattern *p, int rank, size_t i, unsigned salt)
{
	return mix(mix(p->seed + salt * 0x100000001b3u) ^ mix((uint64_t)(unsigned)rank << 32 | i));
}

void perf_layout_of(tutti_collective coll, size_t bytes, size_t elt, int nranks,
		    struct perf_layout *out)
{
	const size_t n = (size_t)nranks;
	/* With counts both buffers have room for the rows of all. */
	const bool sends_rows = coll_is(coll, COLL_SENDS_ROWS | COLL_COUNTS);
	const bool gets_rows = coll_is(coll, COLL_GETS_ROWS | COLL_COUNTS);
	size_t count = bytes / elt / (sends_rows || gets_rows ? n : 1);

	/* nccl-tests shows a line of 0 bytes here, which measures nothing. */
	if (!count)
		count = 1;
	if (coll == TUTTI_BARRIER)
		count = 0;
	*out = (struct perf_layout){
		.elt = elt,
		.param = count,
		.send = sends_rows ? count * n : count,
		.recv = gets_rows ? count * n : count,
	};
	out->bytes = (out->send > out->recv ? out->send : out->recv) * elt;
}

/* The types by what they hold; a complex number has two floats. */
enum kind { SIGNED, UNSIGNED, FLOAT };

struct facts {
	enum kind kind;
	int bits;     /* all integers of so many bits are values of the type */
	int exponent; /* bits of it, of a type that C has not                 */
	tutti_type part;
};

static const struct facts facts_of[TUTTI_TYPE_COUNT] = {
	[TUTTI_BOOL] = { UNSIGNED, 1, 0, TUTTI_BOOL },
	[TUTTI_INT8] = { SIGNED, 7, 0, TUTTI_INT8 },
	[TUTTI_UINT8] = { UNSIGNED, 8, 0, TUTTI_UINT8 },
	[TUTTI_INT16] = { SIGNED, 15, 0, TUTTI_INT16 },
	[TUTTI_UINT16] = { UNSIGNED, 16, 0, TUTTI_UINT16 },
	[TUTTI_INT32] = { SIGNED, 31, 0, TUTTI_INT32 },
	[TUTTI_UINT32] = { UNSIGNED, 31, 0, TUTTI_UINT32 },
	[TUTTI_INT64] = { SIGNED, 53, 0, TUTTI_INT64 },
	[TUTTI_UINT64] = { UNSIGNED, 53, 0, TUTTI_UINT64 },
	[TUTTI_FLOAT8_E4M3] = { FLOAT, 4, 4, TUTTI_FLOAT8_E4M3 },
	[TUTTI_FLOAT8_E5M2] = { FLOAT, 3, 5, TUTTI_FLOAT8_E5M2 },
	[TUTTI_FLOAT16] = { FLOAT, 11, 5, TUTTI_FLOAT16 },
	[TUTTI_BFLOAT16] = { FLOAT, 8, 8, TUTTI_BFLOAT16 },
	[TUTTI_FLOAT32] = { FLOAT, 24, 0, TUTTI_FLOAT32 },
	[TUTTI_FLOAT64] = { FLOAT, 53, 0, TUTTI_FLOAT64 },
	[TUTTI_COMPLEX64] = { FLOAT, 24, 0, TUTTI_FLOAT32 },
	[TUTTI_COMPLEX128] = { FLOAT, 53, 0, TUTTI_FLOAT64 },
};

/* All integers up to this are values of the type; of types of up to 16 bits it is the largest one. */
static int64_t exact_limit(tutti_type type)
{
	const struct facts *const facts = &facts_of[type];

	return ((int64_t)1 << facts->bits) - (facts->kind != FLOAT && facts->bits < 53);
}

static bool is_unsigned(tutti_type type)
{
	return facts_of[type].kind == UNSIGNED;
}

static bool is_integer(tutti_type type)
{
	return facts_of[type].kind != FLOAT;
}

/* For bools another operation does the same. */
static tutti_op op_of(const struct perf_pattern *p)
{
	if (p->type != TUTTI_BOOL)
		return p->op;
	if (p->op == TUTTI_BXOR || p->op == TUTTI_LXOR)
		return TUTTI_LXOR;
	if (p->op == TUTTI_PROD || p->op == TUTTI_MIN || p->op == TUTTI_BAND || p->op == TUTTI_LAND)
		return TUTTI_LAND;
	return TUTTI_LOR;
}

/* -amplitude .. amplitude, or 0 .. amplitude. */
static int64_t draw(uint64_t h, int64_t amplitude, bool nonnegative)
{
	if (amplitude > MAX_AMPLITUDE)
		amplitude = MAX_AMPLITUDE;
	if (nonnegative)
		return (int64_t)(h % ((uint64_t)amplitude + 1));
	return (int64_t)(h % (2 * (uint64_t)amplitude + 1)) - amplitude;
}

/* Whether a rank is one of the `few` that take part in element i. */
static bool is_active(int rank, size_t i, int nranks, int64_t few)
{
	return nranks <= few || (int64_t)(((size_t)rank + i) % (size_t)nranks) < few;
}

static double sum_value(const struct perf_pattern *p, int rank, size_t i)
{
	const int64_t limit = exact_limit(p->type);
	const int64_t amplitude = p->nranks <= limit ? limit / p->nranks : 1;

	if (!is_active(rank, i, p->nranks, limit))
		return 0;
	return (double)draw(hash(p, rank, i, 1), amplitude, is_unsigned(p->type));
}

static double prod_value(const struct perf_pattern *p, int rank, size_t i)
{
	const uint64_t h = hash(p, rank, i, 2);
	double value = 1;

	if (is_active(rank, i, p->nranks, MAX_FACTORS) && h % 3)
		value = h % 3 == 1 || is_integer(p->type) ? 2 : 0.5;
	return h & 1024 && !is_unsigned(p->type) ? -value : value;
}

/* The same base on all ranks, plus a difference that rank 2k + 1 takes back
 * from rank 2k: the sum is nranks times the base. */
static double avg_value(const struct perf_pattern *p, int rank, size_t i)
{
	const int64_t limit = exact_limit(p->type);
	const int64_t share = limit / (3 * (int64_t)p->nranks);
	const bool nonnegative = is_unsigned(p->type);
	const int npairs = p->nranks / 2;
	int64_t base = 0, difference = 0;

	if (share > 0) {
		difference = draw(hash(p, rank / 2, i, 3), share, true);
		base = draw(hash(p, 0, i, 4), share, nonnegative);
		if (nonnegative)
			base += share > MAX_AMPLITUDE ? MAX_AMPLITUDE : share;
	} else if (p->nranks <= limit) {
		base = (int64_t)(hash(p, 0, i, 4) % 2);
	} else if (!nonnegative && npairs) {
		difference = is_active(rank / 2, i, npairs, limit / 2);
	}
	if (rank / 2 == npairs) /* the odd one out */
		difference = 0;
	return (double)(rank % 2 ? base - difference : base + difference);
}

/* Bits of which a few are set, or all but a few, so that not all ranks agree and the result is
 * not all zeros or all ones. */
static double bits_value(const struct perf_pattern *p, int rank, size_t i)
{
	const int64_t limit = exact_limit(p->type);
	const uint64_t mask = (uint64_t)(limit > MAX_AMPLITUDE ? MAX_AMPLITUDE - 1 : limit);
	const uint64_t h = hash(p, rank, i, 7), few = h & h >> 13 & h >> 22;

	return (double)((p->op == TUTTI_BXOR ? h : p->op == TUTTI_BOR ? few : ~few) & mask);
}

/* One rank in twice as many as there are decides. */
static double truth_value(const struct perf_pattern *p, int rank, size_t i)
{
	const uint64_t h = hash(p, rank, i, 8);
	const bool rare = (h >> 32) % (2 * (uint64_t)p->nranks) == 0;
	const bool is_true = op_of(p) == TUTTI_LXOR ? h >> 63 : rare == (op_of(p) == TUTTI_LOR);

	return is_true ? (double)(1 + draw(h, exact_limit(p->type) - 1, true)) : 0;
}

static double value_of(const struct perf_pattern *p, int rank, size_t i)
{
	switch (op_of(p)) {
	case TUTTI_PROD:
		return prod_value(p, rank, i);
	case TUTTI_AVG:
		return avg_value(p, rank, i);
	case TUTTI_MAX:
	case TUTTI_MIN:
		return (double)draw(hash(p, rank, i, 5), exact_limit(p->type),
				    is_unsigned(p->type));
	case TUTTI_BAND:
	case TUTTI_BOR:
	case TUTTI_BXOR:
		return bits_value(p, rank, i);
	case TUTTI_LAND:
	case TUTTI_LOR:
	case TUTTI_LXOR:
		return truth_value(p, rank, i);
	case TUTTI_SUM:
		break;
	}
	return sum_value(p, rank, i);
}

static double combine(tutti_op op, double a, double b)
{
	const int64_t x = (int64_t)a, y = (int64_t)b;

	switch (op) {
	case TUTTI_PROD:
		return a * b;
	case TUTTI_MAX:
		return b > a ? b : a;
	case TUTTI_MIN:
		return b < a ? b : a;
	case TUTTI_BAND:
		return (double)(x & y);
	case TUTTI_BOR:
		return (double)(x | y);
	case TUTTI_BXOR:
		return (double)(x ^ y);
	case TUTTI_LAND:
		return x && y;
	case TUTTI_LOR:
		return x || y;
	case TUTTI_LXOR:
		return !x != !y;
	case TUTTI_SUM:
	case TUTTI_AVG:
		break;
	}
	return a + b;
}

static double reduced_value(const struct perf_pattern *p, size_t i)
{
	double result = value_of(p, 0, i);

	for (int rank = 1; rank < p->nranks; rank++)
		result = combine(op_of(p), result, value_of(p, rank, i));
	return p->op == TUTTI_AVG ? result / p->nranks : result;
}

/* The factors of a product of complex numbers. Some ranks have 1 + 2i in one of four directions, the others 1:
 * no part of any product is zero, of which the sign would depend on the order. */
struct turn {
	double re, im;
};

static struct turn turn_of(const struct perf_pattern *p, int rank, size_t i)
{
	static const struct turn turns[] = { { 1, 2 }, { -2, 1 }, { -1, -2 }, { 2, -1 } };

	if (!is_active(rank, i, p->nranks, MAX_FACTORS))
		return (struct turn){ 1, 0 };
	return turns[hash(p, rank, i, 9) % 4];
}

static struct turn reduced_turn(const struct perf_pattern *p, size_t i)
{
	struct turn result = turn_of(p, 0, i);

	for (int rank = 1; rank < p->nranks; rank++) {
		const struct turn a = result, b = turn_of(p, rank, i);

		result = (struct turn){ a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re };
	}
	return result;
}

/* A value that the format can hold exactly: sign, exponent, mantissa. */
static unsigned small_float(double value, int exponent_bits, int mantissa_bits)
{
	const int bias = (1 << (exponent_bits - 1)) - 1;
	const unsigned sign = (signbit(value) ? 1u : 0u) << (exponent_bits + mantissa_bits);
	double fraction;
	int exponent;

	if (value == 0)
		return sign;
	fraction = frexp(fabs(value), &exponent); /* in [0.5, 1) */
	if (exponent - 1 + bias < 1)              /* subnormal */
		return sign | (unsigned)ldexp(fabs(value), bias - 1 + mantissa_bits);
	return sign | (unsigned)(exponent - 1 + bias) << mantissa_bits |
	       (unsigned)ldexp(2 * fraction - 1, mantissa_bits);
}

static void store(tutti_type type, double value, char *to)
{
	const struct facts *const facts = &facts_of[type];
	const size_t size = tutti_type_size(type);
	const float single = (float)value;
	uint64_t bits = 0;

	if (facts->kind != FLOAT)
		bits = (uint64_t)(int64_t)value;
	else if (facts->exponent)
		bits = small_float(value, facts->exponent, facts->bits - 1);
	else if (size == sizeof(single))
		memcpy(&bits, &single, sizeof(single));
	else
		memcpy(&bits, &value, sizeof(value));
	/* All machines that Tutti runs on are little-endian. */
	memcpy(to, &bits, size);
}

struct table {
	size_t period;
	size_t elt;
	char *data;
};

static bool make_table(const struct perf_pattern *p, size_t count, struct table *out)
{
	out->elt = p->layout.elt;
	out->period = count < PERIOD ? count : PERIOD;
	out->data = malloc(out->period * out->elt + 1);
	return out->data != NULL;
}

/* Element i of a call that reduces: what a rank sends, or for rank -1 the result. */
static void store_element(const struct perf_pattern *p, int rank, size_t i, char *to)
{
	const tutti_type part = facts_of[p->type].part;
	const size_t size = tutti_type_size(part), nparts = tutti_type_size(p->type) / size;

	if (nparts == 2 && p->op == TUTTI_PROD) {
		const struct turn turn = rank < 0 ? reduced_turn(p, i) : turn_of(p, rank, i);

		store(part, turn.re, to);
		store(part, turn.im, to + size);
		return;
	}
	for (size_t at = i * nparts; at < (i + 1) * nparts; at++, to += size)
		store(part, rank < 0 ? reduced_value(p, at) : value_of(p, rank, at), to);
}

/* The data that `rank` sends. */
static void table_of_rank(const struct perf_pattern *p, int rank, struct table *table)
{
	const size_t elt = table->elt;

	for (size_t i = 0; i < table->period; i++) {
		char *to = table->data + i * elt;

		if (coll_is(p->coll, COLL_REDUCES)) {
			store_element(p, rank, i, to);
			continue;
		}
		for (size_t at = 0; at < elt; at += sizeof(uint64_t)) {
			const uint64_t h = hash(p, rank, i, 6 + (unsigned)at);

			memcpy(to + at, &h, elt < sizeof(h) ? elt : sizeof(h));
		}
	}
}

static void table_of_result(const struct perf_pattern *p, struct table *table)
{
	for (size_t i = 0; i < table->period; i++)
		store_element(p, -1, i, table->data + i * table->elt);
}

/* The place of element `at` in the table, and how many elements follow it there. */
static size_t table_find(const struct table *table, size_t at, size_t *run_out)
{
	const size_t round = at / table->period, in_round = at % table->period;
	const size_t place = (in_round + round * SHIFT) % table->period;
	const size_t to_end = table->period - place, to_round = table->period - in_round;

	*run_out = to_end < to_round ? to_end : to_round;
	return place;
}

static void write_from(const struct table *table, size_t first, size_t count, char *to)
{
	size_t place, run;

	for (size_t done = 0; done < count; done += run) {
		place = table_find(table, first + done, &run);
		if (run > count - done)
			run = count - done;
		memcpy(to + done * table->elt, table->data + place * table->elt, run * table->elt);
	}
}

static long long compare_with(const struct table *table, size_t first, size_t count,
			      const char *from)
{
	const size_t elt = table->elt;
	long long wrong = 0;
	size_t place, run;

	for (size_t done = 0; done < count; done += run) {
		place = table_find(table, first + done, &run);
		if (run > count - done)
			run = count - done;
		if (!memcmp(from + done * elt, table->data + place * elt, run * elt))
			continue;
		for (size_t i = 0; i < run; i++)
			wrong += memcmp(from + (done + i) * elt, table->data + (place + i) * elt,
					elt) != 0;
	}
	return wrong;
}

bool perf_fill(const struct perf_pattern *pattern, int rank, void *send)
{
	const bool is_handoff = pattern->coll == TUTTI_HANDOFF;
	size_t first = 0, count = pattern->layout.send;
	struct table table;

	if (!make_table(pattern, pattern->layout.send, &table))
		return false;
	if (coll_is(pattern->coll, COLL_COUNTS))
		count = perf_uneven_sends(pattern, rank);
	/* All sources of a handoff have parts of one vector. */
	if (is_handoff)
		perf_side_range(&pattern->sides->from, rank, pattern->layout.send, &first, &count);
	table_of_rank(pattern, is_handoff ? 0 : rank, &table);
	write_from(&table, first, count, send);
	free(table.data);
	return true;
}

/* Compare with the elements of rank `from`, beginning with `first`. */
static long long wrong_of_row(const struct perf_pattern *p, struct table *table, int from,
			      size_t first, const char *recv)
{
	table_of_rank(p, from, table);
	return compare_with(table, first, p->layout.param, recv);
}

static long long wrong_from_all(const struct perf_pattern *p, struct table *table, int rank,
				const char *recv)
{
	const size_t count = p->layout.param;
	long long wrong = 0;

	for (int from = 0; from < p->nranks; from++)
		wrong += wrong_of_row(p, table, from, (size_t)rank * count,
				      recv + (size_t)from * count * table->elt);
	return wrong;
}

static long long wrong_from_ranks(const struct perf_pattern *p, struct table *table, int first_rank,
				  int nranks, const char *recv)
{
	const size_t count = p->layout.param;
	long long wrong = 0;

	for (int i = 0; i < nranks; i++) {
		table_of_rank(p, first_rank + i, table);
		wrong += compare_with(table, 0, count, recv + (size_t)i * count * table->elt);
	}
	return wrong;
}

static long long wrong_of_handoff(const struct perf_pattern *p, struct table *table, int rank,
				  const char *recv)
{
	size_t first, count;

	perf_side_range(&p->sides->to, rank, p->layout.recv, &first, &count);
	table_of_rank(p, 0, table);
	return compare_with(table, first, count, recv);
}

static long long wrong_of_uneven(const struct perf_pattern *p, struct table *table, int rank,
				 const char *recv)
{
	const bool from_one = coll_is(p->coll, COLL_SCATTERS | COLL_REDUCES);
	long long wrong = 0;

	for (int i = 0; i < (from_one ? 1 : p->nranks); i++) {
		const int from = from_one ? p->root : i;
		struct perf_part part;

		perf_uneven_part(p, rank, from, &part);
		if (coll_is(p->coll, COLL_REDUCES))
			table_of_result(p, table);
		else
			table_of_rank(p, from, table);
		wrong +=
			compare_with(table, part.first, part.count, recv + part.place * table->elt);
	}
	return wrong;
}

long long perf_count_wrong(const struct perf_pattern *pattern, int rank, const void *recv)
{
	const struct perf_layout *const layout = &pattern->layout;
	const tutti_collective coll = pattern->coll;
	const int n = pattern->nranks;
	struct table table;
	long long wrong = 0;

	if (coll_is(coll, COLL_ROOTED) && coll_is(coll, COLL_REDUCES | COLL_GATHERS) &&
	    rank != pattern->root)
		return 0;
	if (!make_table(pattern, layout->send, &table))
		return -1;
	if (coll_is(coll, COLL_COUNTS)) {
		wrong = wrong_of_uneven(pattern, &table, rank, recv);
	} else if (coll_is(coll, COLL_REDUCES)) {
		table_of_result(pattern, &table);
		wrong = compare_with(
			&table, coll_is(coll, COLL_SCATTERS) ? (size_t)rank * layout->param : 0,
			layout->recv, recv);
	} else if (coll_is(coll, COLL_GATHERS)) {
		wrong = wrong_from_ranks(pattern, &table, 0, n, recv);
	} else if (coll_is(coll, COLL_PAIRS)) {
		wrong = wrong_from_all(pattern, &table, rank, recv);
	} else if (coll_is(coll, COLL_SCATTERS)) {
		wrong = wrong_of_row(pattern, &table, pattern->root, (size_t)rank * layout->param,
				     recv);
	} else if (coll == TUTTI_HANDOFF) {
		wrong = wrong_of_handoff(pattern, &table, rank, recv);
	} else if (coll == TUTTI_BROADCAST) {
		wrong = wrong_from_ranks(pattern, &table, pattern->root, 1, recv);
	} else {
		wrong = wrong_from_ranks(pattern, &table, (rank + n - 1) % n, 1, recv);
	}
	free(table.data);
	return wrong;
}
