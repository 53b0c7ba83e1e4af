/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_REFERENCE_H
#define TESTS_SUPPORT_REFERENCE_H

/* What a reduction has to give, one element at a time, by arithmetic on the
 * numbers that the formats stand for and not on their bits.
 *
 * Floats are held in double. A sum, product or quotient of two float32 made in
 * double and then rounded to float32 is the correctly rounded one, as 53 bits are
 * more than 2 * 24 + 2 (Figueroa, "When is double rounding innocuous?", 1995). */

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "tutti/tutti.h"

/* The bits of an element, the first byte lowest. */
__extension__ typedef unsigned __int128 code_t;

struct format {
	int ebits, mbits; /* of the exponent and the mantissa; 0: an integer */
	int bytes;
	bool is_signed;            /* integers */
	bool is_truth;             /* 0 or anything else */
	bool finite;               /* overflow gives the largest number */
	uint64_t top;              /* code of the largest finite number */
	uint64_t nan;              /* code of the NaN that is stored */
	const struct format *part; /* of a complex number, which has nothing else but its bytes */
};

static const struct format formats[TUTTI_TYPE_COUNT] = {
	[TUTTI_INT16] = { .bytes = 2, .is_signed = true },
	[TUTTI_UINT16] = { .bytes = 2 },
	[TUTTI_BOOL] = { .bytes = 1, .is_truth = true },
	[TUTTI_COMPLEX64] = { .bytes = 8, .part = &formats[TUTTI_FLOAT32] },
	[TUTTI_COMPLEX128] = { .bytes = 16, .part = &formats[TUTTI_FLOAT64] },
	[TUTTI_INT8] = { .bytes = 1, .is_signed = true },
	[TUTTI_UINT8] = { .bytes = 1 },
	[TUTTI_INT32] = { .bytes = 4, .is_signed = true },
	[TUTTI_UINT32] = { .bytes = 4 },
	[TUTTI_INT64] = { .bytes = 8, .is_signed = true },
	[TUTTI_UINT64] = { .bytes = 8 },
	[TUTTI_FLOAT16] = { 5, 10, 2, .top = 0x7bff, .nan = 0x7e00 },
	[TUTTI_FLOAT32] = { 8, 23, 4, .top = 0x7f7fffff, .nan = 0x7fc00000 },
	[TUTTI_FLOAT64] = { 11, 52, 8, .top = 0x7fefffffffffffff, .nan = 0x7ff8000000000000 },
	[TUTTI_BFLOAT16] = { 8, 7, 2, .top = 0x7f7f, .nan = 0x7fc0 },
	[TUTTI_FLOAT8_E4M3] = { 4, 3, 1, .finite = true, .top = 0x7e, .nan = 0x7f },
	[TUTTI_FLOAT8_E5M2] = { 5, 2, 1, .finite = true, .top = 0x7b, .nan = 0x7e },
};

static inline code_t code_at(const unsigned char *p, int bytes)
{
	code_t code = 0;

	for (int i = 0; i < bytes; i++)
		code |= (code_t)p[i] << (8 * i);
	return code;
}

/* The real part, or the imaginary one. */
static inline uint64_t code_part(const struct format *f, code_t code, int part)
{
	const int bits = 8 * f->part->bytes;

	return (uint64_t)(code >> (part * bits)) & (UINT64_MAX >> (64 - bits));
}

static inline code_t code_join(const struct format *f, uint64_t real, uint64_t imaginary)
{
	return (code_t)imaginary << (8 * f->part->bytes) | real;
}

static inline void code_put(unsigned char *p, int bytes, code_t code)
{
	for (int i = 0; i < bytes; i++)
		p[i] = (unsigned char)(code >> (8 * i));
}

static inline double decode(const struct format *f, uint64_t code)
{
	const int bias = (1 << (f->ebits - 1)) - 1;
	const uint64_t mantissa = code & ((UINT64_C(1) << f->mbits) - 1);
	const int exponent = (int)(code >> f->mbits & ((1U << f->ebits) - 1));
	const double sign = code >> (f->bytes * 8 - 1) & 1 ? -1 : 1;
	const uint64_t mag = code & ~(UINT64_C(1) << (f->bytes * 8 - 1));

	if (mag > f->top) /* e4m3 has no infinity and ends with one NaN */
		return mag == f->top + 1 && f->mbits != 3 ? copysign(INFINITY, sign) : NAN;
	if (exponent == 0)
		return sign * ldexp((double)mantissa, 1 - bias - f->mbits);
	return sign *
	       ldexp((double)(mantissa | UINT64_C(1) << f->mbits), exponent - bias - f->mbits);
}

/* To nearest even. keep_inf: an infinity stays one in a `finite` format, too. */
static inline uint64_t encode(const struct format *f, double x, bool keep_inf)
{
	const int bias = (1 << (f->ebits - 1)) - 1;
	const uint64_t sign = signbit(x) ? UINT64_C(1) << (f->bytes * 8 - 1) : 0;
	const double top = decode(f, f->top);
	double steps;
	int exponent;

	if (isnan(x))
		return f->nan;
	if (x == 0)
		return sign;
	if (isinf(x))
		return sign | (f->finite && !keep_inf ? f->top : f->top + 1);
	frexp(x, &exponent);
	exponent = exponent - 1 < 1 - bias ? 1 - bias : exponent - 1;
	steps = nearbyint(ldexp(fabs(x), f->mbits - exponent));
	if (ldexp(steps, exponent - f->mbits) > top)
		return sign | (f->finite ? f->top : f->top + 1);
	/* A mantissa that became 2.0 counts one up in the exponent by itself. */
	return sign | (((uint64_t)(exponent + bias - 1) << f->mbits) + (uint64_t)steps);
}

static inline double least(double a, double b, bool smaller)
{
	if (isnan(a) || isnan(b))
		return NAN;
	if (a == b)
		return (signbit(a) != 0) == smaller ? a : b;
	return (a < b) == smaller ? a : b;
}

static inline double reference_float(const struct format *f, tutti_op op, const code_t *codes,
				     int nsrc, int divisor)
{
	const bool wide = f->bytes == 8;
	double acc = decode(f, (uint64_t)codes[0]);

	for (int s = 1; s < nsrc; s++) {
		const double x = decode(f, (uint64_t)codes[s]);

		if (op == TUTTI_MAX || op == TUTTI_MIN)
			acc = least(acc, x, op == TUTTI_MIN);
		else
			acc = op == TUTTI_PROD ? acc * x : acc + x;
		acc = wide ? acc : (float)acc;
	}
	if (op == TUTTI_AVG && divisor > 0)
		acc = wide ? acc / divisor : (float)(acc / (float)divisor);
	return acc;
}

/* The integer's value: sign-extended, so that comparing and dividing are right. */
static inline int64_t extend(const struct format *f, uint64_t code)
{
	const int drop = 64 - 8 * f->bytes;

	return (int64_t)(code << drop) >> drop;
}

static inline bool is_less(const struct format *f, uint64_t a, uint64_t b)
{
	return f->is_signed ? extend(f, a) < extend(f, b) : a < b;
}

/* By how many of them are true. */
static inline uint64_t reference_truth(tutti_op op, const code_t *codes, int nsrc)
{
	int ntrue = 0;

	for (int s = 0; s < nsrc; s++)
		ntrue += codes[s] != 0;
	if (op == TUTTI_LXOR || op == TUTTI_BXOR)
		return ntrue % 2 == 1;
	if (op == TUTTI_LAND || op == TUTTI_BAND || op == TUTTI_PROD || op == TUTTI_MIN)
		return ntrue == nsrc;
	return ntrue > 0;
}

static inline uint64_t combine_int(const struct format *f, tutti_op op, uint64_t a, uint64_t b)
{
	if (op == TUTTI_MAX || op == TUTTI_MIN)
		return is_less(f, b, a) == (op == TUTTI_MIN) ? b : a;
	if (op == TUTTI_BAND)
		return a & b;
	if (op == TUTTI_BOR)
		return a | b;
	if (op == TUTTI_BXOR)
		return a ^ b;
	return op == TUTTI_PROD ? a * b : a + b;
}

static inline uint64_t reference_int(const struct format *f, tutti_op op, const code_t *codes,
				     int nsrc, int divisor)
{
	const uint64_t mask = UINT64_MAX >> (64 - 8 * f->bytes);
	uint64_t acc = (uint64_t)codes[0];

	for (int s = 1; s < nsrc; s++)
		acc = combine_int(f, op, acc, (uint64_t)codes[s]) & mask;
	if (op != TUTTI_AVG || divisor <= 0)
		return acc;
	if (f->is_signed)
		return (uint64_t)(extend(f, acc) / divisor) & mask;
	return acc / (uint64_t)divisor;
}

/* Every product and every sum of two is rounded by itself. */
static inline code_t multiply_complex(const struct format *f, const code_t *codes, int nsrc)
{
	const bool wide = f->part->bytes == 8;
	double re = decode(f->part, code_part(f, codes[0], 0));
	double im = decode(f->part, code_part(f, codes[0], 1));

	for (int s = 1; s < nsrc; s++) {
		const double c = decode(f->part, code_part(f, codes[s], 0));
		const double d = decode(f->part, code_part(f, codes[s], 1));
		const double ac = wide ? re * c : (float)(re * c);
		const double bd = wide ? im * d : (float)(im * d);
		const double ad = wide ? re * d : (float)(re * d);
		const double bc = wide ? im * c : (float)(im * c);

		re = wide ? ac - bd : (float)(ac - bd);
		im = wide ? ad + bc : (float)(ad + bc);
	}
	return code_join(f, encode(f->part, re, false), encode(f->part, im, false));
}

#define REFERENCE_SOURCES 256 /* at most, of complex numbers */

static inline code_t reference_complex(const struct format *f, tutti_op op, const code_t *codes,
				       int nsrc, int divisor)
{
	code_t parts[REFERENCE_SOURCES];
	uint64_t sum[2];

	if (op == TUTTI_PROD)
		return multiply_complex(f, codes, nsrc);
	for (int part = 0; part < 2; part++) {
		for (int s = 0; s < nsrc; s++)
			parts[s] = code_part(f, codes[s], part);
		sum[part] =
			encode(f->part, reference_float(f->part, op, parts, nsrc, divisor), false);
	}
	return code_join(f, sum[0], sum[1]);
}

/* The code that nsrc codes of a type have to give. */
static inline code_t reference(tutti_type type, tutti_op op, const code_t *codes, int nsrc,
			       int divisor)
{
	const struct format *f = &formats[type];

	if (nsrc == 1 && (op != TUTTI_AVG || divisor <= 1))
		return codes[0];
	if (f->part)
		return reference_complex(f, op, codes, nsrc, divisor);
	if (f->is_truth || op == TUTTI_LAND || op == TUTTI_LOR || op == TUTTI_LXOR)
		return reference_truth(op, codes, nsrc);
	if (f->mbits == 0)
		return reference_int(f, op, codes, nsrc, divisor);
	return encode(f, reference_float(f, op, codes, nsrc, divisor),
		      op == TUTTI_MAX || op == TUTTI_MIN);
}

/* Numbers that repeat from run to run (splitmix64). */
static inline uint64_t next_random(uint64_t *state)
{
	uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Zeros, ones, one bit, any; signs and what looks like false to who takes a part for all. */
static inline uint64_t special_int(const struct format *f, uint64_t random)
{
	const uint64_t mask = UINT64_MAX >> (64 - 8 * f->bytes);

	switch (random % 8) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return UINT64_C(1) << (8 * f->bytes - 1);
	case 3:
	case 4:
		return UINT64_C(1) << (random >> 32) % (unsigned)(8 * f->bytes);
	default:
		return random >> 8 & mask;
	}
}

/* Zeros, denormals, the ends of the range, infinities and NaNs of a float. */
static inline uint64_t special_code(const struct format *f, uint64_t random)
{
	const uint64_t sign = random >> 32 & 1 ? UINT64_C(1) << (f->bytes * 8 - 1) : 0;
	const uint64_t one = UINT64_C(1) << f->mbits;

	switch (random % 10) {
	case 0:
	case 1:
		return sign;
	case 2:
		return sign | 1;
	case 3:
		return sign | (one - 1);
	case 4:
		return sign | one;
	case 5:
		return sign | f->top;
	case 6:
		return sign | (f->top + 1);
	case 7:
		return sign | (f->nan == f->top + 1 ? f->nan : f->top + 2);
	default:
		return sign | encode(f, 1.0 + (double)(random >> 40 & 3), false);
	}
}

#endif
