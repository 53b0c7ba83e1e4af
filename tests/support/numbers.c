/* SPDX-License-Identifier: BSD-3-Clause */
#include "support/numbers.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "support/reference.h"

uint64_t numbers_mix(uint64_t value)
{
	return next_random(&value);
}

/* -- Inputs ------------------------------------------------------------------------ */

static code_t mask_of(const struct format *f)
{
	return ~(code_t)0 >> (128 - 8 * f->bytes);
}

/* Of the sums of n values of up to this none needs more bits than the mantissa has. */
static int64_t most_of(const struct format *f, int op, int n)
{
	const int bits = f->mbits + 1 < 20 ? f->mbits + 1 : 20;

	return (INT64_C(1) << bits) / n / (op == NUMBERS_PREMUL && f->bytes > 1 ? 2 : 1);
}

/* Where not even ones can be added up, only as many ranks have one as can be. */
static double draw_term(const struct format *f, int op, int n, size_t place, uint64_t column,
			uint64_t random)
{
	const int64_t most = most_of(f, op, n);
	int64_t value = most > 0 ? (int64_t)(random % (uint64_t)(2 * most + 1)) - most
				 : (random & 1 ? 1 : -1);

	if (most == 0 && place >= (size_t)1 << (f->mbits + 1))
		value = 0;
	return ldexp((double)value, (int)(numbers_mix(column) % 7) - 3);
}

/* Powers of two with one mantissa among them; few enough that even 8 bits hold the product. */
static double draw_factor(size_t place, uint64_t random)
{
	const double sign = random & 1 ? 1 : -1;

	if (place == 0)
		return sign * 1.5;
	return place < 6 ? ldexp(sign, (int)((random >> 1) % 3) - 1) : sign;
}

/* Of any mantissa and very different sizes. */
static double draw_rounding(const struct format *f, uint64_t random)
{
	const int spread = f->ebits < 5 ? 4 : f->ebits < 8 ? 7 : 20;
	const double mantissa = 1 + ldexp((double)(random >> 11), -53);

	return ldexp(random & 1 ? mantissa : -mantissa,
		     (int)((random >> 1) % (uint64_t)spread) - spread / 2);
}

/* Products of 1 + 2i in any of four directions and of positive numbers never have a part that is
 * zero, of which the sign would depend on the order; those of a few are whole and short. */
static code_t draw_turn(const struct format *f, size_t place, uint64_t random)
{
	static const double turns[4][2] = { { 1, 2 }, { -2, 1 }, { -1, -2 }, { 2, -1 } };
	const double *turn = turns[random % 4];

	if (place < 6)
		return code_join(f, encode(f->part, turn[0], false),
				 encode(f->part, turn[1], false));
	return code_join(f, encode(f->part, place < 12 && random & 1 ? 2 : 1, false), 0);
}

/* What integers have in common: some are zero, some have but one bit. */
static uint64_t draw_int(const struct format *f, int op, uint64_t random)
{
	const uint64_t of_truth = f->is_truth || op == TUTTI_LAND || op == TUTTI_LOR ||
				  op == TUTTI_LXOR || op == TUTTI_BAND || op == TUTTI_BOR;

	return of_truth ? special_int(f, numbers_mix(random)) : random & (uint64_t)mask_of(f);
}

/* A float, or a part of a complex number. */
static uint64_t draw_float(const struct format *f, int op, int n, size_t place, uint64_t of_column,
			   uint64_t random)
{
	const uint64_t any = random & (uint64_t)mask_of(f);

	if (op == NUMBERS_XOR || op == NUMBERS_FOLD)
		return any;
	if (op == TUTTI_MAX || op == TUTTI_MIN)
		return isnan(decode(f, any)) ? f->nan : any;
	if (op == TUTTI_PROD)
		return encode(f, draw_factor(place, random), false);
	if (op == NUMBERS_REPRODUCIBLE)
		return encode(f, draw_rounding(f, random), false);
	return encode(f, draw_term(f, op, n, place, of_column, random), false);
}

static code_t draw(tutti_type type, int op, int rank, int n, size_t column, uint64_t seed)
{
	const struct format *f = &formats[type];
	const uint64_t of_column = seed * 1000003 + column;
	const uint64_t random = numbers_mix(of_column ^ (uint64_t)(rank + 1) << 48);
	/* Which rank has what is another one in each column. */
	const size_t place = ((size_t)rank + column) % (size_t)n;

	if (f->part && op == TUTTI_PROD)
		return draw_turn(f, place, random);
	if (f->part)
		return code_join(f, draw_float(f->part, op, n, place, of_column, random),
				 draw_float(f->part, op, n, place, of_column, numbers_mix(random)));
	return f->mbits == 0 ? draw_int(f, op, random)
			     : draw_float(f, op, n, place, of_column, random);
}

/* None makes a sum longer than twice what it was. */
static code_t draw_scalar(tutti_type type, int rank, uint64_t seed)
{
	static const double scalars[] = { 1, -1, 2, -2 };
	static const double turns[4][2] = { { 1, 1 }, { 1, -1 }, { 0, 2 }, { -1, 0 } };
	const struct format *f = &formats[type];
	const uint64_t random = numbers_mix(seed + (uint64_t)rank);

	if (f->part)
		return code_join(f, encode(f->part, turns[random % 4][0], false),
				 encode(f->part, turns[random % 4][1], false));
	if (f->mbits == 0)
		return draw_int(f, TUTTI_PROD, random);
	return encode(f, scalars[random % (f->bytes > 1 ? 4 : 2)], false);
}

/* 7 is prime to how many there are, so the steps meet every operator. */
int numbers_op_for(tutti_type type, int op)
{
	while (op < TUTTI_OP_COUNT && !tutti_op_takes((tutti_op)op, type))
		op = (op + 7) % TUTTI_OP_COUNT;
	return op;
}

void numbers_draw(struct numbers *out, tutti_type type, int op, int n, size_t columns,
		  uint64_t seed)
{
	const int bytes = formats[type].bytes;

	if (n > NUMBERS_RANKS || columns > NUMBERS_PERIOD)
		abort();
	for (int rank = 0; rank < n; rank++) {
		for (size_t i = 0; i < columns; i++)
			code_put(out->tiles[rank] + i * (size_t)bytes, bytes,
				 draw(type, op, rank, n, i, seed));
		if (op == NUMBERS_PREMUL)
			code_put(out->scalars[rank], bytes, draw_scalar(type, rank, seed));
	}
}

/* A float, or a part of a complex number. */
static uint64_t any_float(const struct format *f, uint64_t random)
{
	if (random % 4 == 0)
		return special_code(f, random >> 2);
	return random % 4 == 1 ? random >> 8 & (uint64_t)mask_of(f)
			       : encode(f, draw_rounding(f, random >> 2), false);
}

static code_t any_bits(const struct format *f, uint64_t random)
{
	if (f->part)
		return code_join(f, any_float(f->part, random),
				 any_float(f->part, numbers_mix(random)));
	return f->mbits == 0 ? special_int(f, random) : any_float(f, random);
}

void numbers_draw_any(struct numbers *out, tutti_type type, int op, int n, size_t columns,
		      uint64_t seed)
{
	const struct format *f = &formats[type];

	numbers_draw(out, type, op, n, columns, seed);
	for (int rank = 0; rank < n; rank++)
		for (size_t i = 0; i < columns; i++)
			code_put(out->tiles[rank] + i * (size_t)f->bytes, f->bytes,
				 any_bits(f, next_random(&seed)));
}

/* -- Results ----------------------------------------------------------------------- */

/* a op b, for codes of any type. */
static code_t fold(code_t a, code_t b)
{
	return a * 3 + b + 1;
}

static code_t reduce(tutti_type type, int op, code_t *codes, int n, const struct numbers *numbers)
{
	const int bytes = formats[type].bytes;
	code_t acc = codes[0];

	if (op == NUMBERS_XOR || op == NUMBERS_FOLD) {
		for (int rank = 1; rank < n; rank++)
			acc = op == NUMBERS_XOR ? acc ^ codes[rank] : fold(acc, codes[rank]);
		return acc & mask_of(&formats[type]);
	}
	for (int rank = 0; op == NUMBERS_PREMUL && rank < n; rank++)
		codes[rank] = reference(
			type, TUTTI_PROD,
			(code_t[2]){ codes[rank], code_at(numbers->scalars[rank], bytes) }, 2, 0);
	return reference(type, op < TUTTI_OP_COUNT ? (tutti_op)op : TUTTI_SUM, codes, n, n);
}

void numbers_reduce(struct numbers *numbers, tutti_type type, int op, int n, size_t columns)
{
	const int bytes = formats[type].bytes;
	code_t codes[NUMBERS_RANKS];

	for (size_t i = 0; i < columns; i++) {
		const size_t at = i * (size_t)bytes;

		for (int rank = 0; rank < n; rank++)
			codes[rank] = code_at(numbers->tiles[rank] + at, bytes);
		code_put(numbers->reduced + at, bytes, reduce(type, op, codes, n, numbers));
	}
}

void numbers_lay(void *out, const unsigned char *tile, size_t first, size_t count, size_t size)
{
	unsigned char *to = out;

	while (count > 0) {
		const size_t at = first % NUMBERS_PERIOD;
		const size_t run = count < NUMBERS_PERIOD - at ? count : NUMBERS_PERIOD - at;

		memcpy(to, tile + at * size, run * size);
		to += run * size;
		first += run;
		count -= run;
	}
}

/* -- Operators ---------------------------------------------------------------------- */

static void user_xor(void *inout, const void *in, size_t count, tutti_type type, void *arg)
{
	unsigned char *to = inout;
	const unsigned char *from = in;

	(void)arg;
	for (size_t i = 0; i < count * tutti_type_size(type); i++)
		to[i] ^= from[i];
}

static void user_fold(void *inout, const void *in, size_t count, tutti_type type, void *arg)
{
	const int bytes = (int)tutti_type_size(type);
	unsigned char *to = inout;
	const unsigned char *from = in;

	(void)arg;
	for (size_t at = 0; at < count * (size_t)bytes; at += (size_t)bytes)
		code_put(to + at, bytes, fold(code_at(from + at, bytes), code_at(to + at, bytes)));
}

tutti_op_fn numbers_user_op(int op)
{
	return op == NUMBERS_XOR ? user_xor : op == NUMBERS_FOLD ? user_fold : NULL;
}

tutti_status numbers_make_op(const struct numbers *numbers, tutti_type type, int op, int rank,
			     tutti_comm_t comm, tutti_op *out)
{
	if (op == NUMBERS_PREMUL)
		return tutti_op_create_premul_sum(out, numbers->scalars[rank], type,
						  TUTTI_SCALAR_NOW, comm);
	if (op == NUMBERS_XOR || op == NUMBERS_FOLD)
		return tutti_op_create(out, numbers_user_op(op), NULL, op == NUMBERS_XOR, comm);
	*out = op == NUMBERS_REPRODUCIBLE ? tutti_op_reproducible(TUTTI_SUM) : (tutti_op)op;
	return TUTTI_OK;
}

tutti_status numbers_unmake_op(tutti_op op, tutti_comm_t comm)
{
	const int value = (int)op;

	if (value < TUTTI_OP_COUNT || value >= TUTTI_OP_REPRODUCIBLE)
		return TUTTI_OK;
	return tutti_op_destroy(op, comm);
}

const char *numbers_op_name(int op)
{
	static const char *const names[] = { "reproducible sum", "premul_sum", "user's xor",
					     "user's fold" };

	return op < TUTTI_OP_COUNT ? tutti_op_name((tutti_op)op) : names[op - TUTTI_OP_COUNT];
}
