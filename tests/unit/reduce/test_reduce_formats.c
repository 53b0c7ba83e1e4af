/* SPDX-License-Identifier: BSD-3-Clause */
/* All codes of the small float formats, and long random data on every instruction
 * set. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "reduce/reduce.h"
#include "support/reference.h"

#define CODES 65536

static const tutti_type small[] = { TUTTI_FLOAT16, TUTTI_BFLOAT16, TUTTI_FLOAT8_E4M3,
				    TUTTI_FLOAT8_E5M2 };

static unsigned char one[CODES * 2], other[CODES * 2], dst[CODES * 2], same[CODES * 2];

/* The element-wise result of two arrays of `count` codes. */
static void reduce_two(tutti_type type, tutti_op op, enum tti_isa isa, size_t count)
{
	const void *src[] = { one, other };

	tti_reduce_get_isa(type, op, isa)(dst, NULL, src, 2, count, 0);
}

static void each_isa(tutti_type type, void (*check)(tutti_type type, enum tti_isa isa))
{
	for (int isa = 0; isa < TTI_ISA_COUNT; isa++)
		if (tti_reduce_get_isa(type, TUTTI_SUM, (enum tti_isa)isa))
			check(type, (enum tti_isa)isa);
}

/* x + -0 and min(x, x) are x, whatever x is; a NaN becomes the one NaN. */
static void check_codes(tutti_type type, enum tti_isa isa)
{
	const struct format *f = &formats[type];
	const size_t count = (size_t)1 << (8 * f->bytes), bytes = (size_t)f->bytes;

	for (size_t i = 0; i < count; i++) {
		code_put(one + i * bytes, f->bytes, i);
		code_put(other + i * bytes, f->bytes, (uint64_t)1 << (8 * bytes - 1));
	}
	reduce_two(type, TUTTI_SUM, isa, count);
	for (size_t i = 0; i < count; i++) {
		const bool inf = isinf(decode(f, i)) != 0;
		uint64_t expected = isnan(decode(f, i)) ? f->nan : i;

		if (inf && f->finite)
			expected = i - 1;
		assert_int_equal(code_at(dst + i * bytes, f->bytes), expected);
	}
	memcpy(other, one, sizeof(one));
	for (int op = TUTTI_MAX; op <= TUTTI_MIN; op++) {
		reduce_two(type, (tutti_op)op, isa, count);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(code_at(dst + i * bytes, f->bytes),
					 isnan(decode(f, i)) ? f->nan : i);
	}
}

static void every_code_survives(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
		each_isa(small[i], check_codes);
}

/* All pairs of fp8; as many random ones of 16 bits. */
static void check_pairs(tutti_type type, enum tti_isa isa)
{
	const struct format *f = &formats[type];
	const size_t bytes = (size_t)f->bytes;
	uint64_t state = 7;

	for (size_t i = 0; i < CODES; i++) {
		const uint64_t random = next_random(&state);

		code_put(one + i * bytes, f->bytes, bytes == 1 ? i : random);
		code_put(other + i * bytes, f->bytes, bytes == 1 ? i >> 8 : random >> 16);
	}
	for (int op = 0; op < TUTTI_OP_COUNT; op++) {
		if (!tutti_op_takes((tutti_op)op, type))
			continue;
		reduce_two(type, (tutti_op)op, isa, CODES);
		for (size_t i = 0; i < CODES; i++) {
			const code_t codes[] = { code_at(one + i * bytes, f->bytes),
						 code_at(other + i * bytes, f->bytes) };
			const code_t got = code_at(dst + i * bytes, f->bytes);
			const code_t expected = reference(type, (tutti_op)op, codes, 2, 0);

			if (got != expected)
				fail_msg("%s %s of %#x and %#x: %#x, expected %#x",
					 tti_isa_name(isa), tutti_type_name(type), (int)codes[0],
					 (int)codes[1], (int)got, (int)expected);
		}
	}
}

static void pairs_are_rounded_to_nearest_even(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
		each_isa(small[i], check_pairs);
}

/* A few cases by hand, so that the reference itself is held to something. */
static void known_results(void **state)
{
	static const struct {
		tutti_type type;
		tutti_op op;
		unsigned a, b, result;
	} cases[] = {
		{ TUTTI_FLOAT8_E4M3, TUTTI_SUM, 0x7e, 0x7e, 0x7e },  /* 448 + 448 = 448 */
		{ TUTTI_FLOAT8_E4M3, TUTTI_SUM, 0xfe, 0xfe, 0xfe },  /* -448 - 448 */
		{ TUTTI_FLOAT8_E4M3, TUTTI_SUM, 0xff, 0x38, 0x7f },  /* NaN + 1 */
		{ TUTTI_FLOAT8_E4M3, TUTTI_SUM, 0x38, 0x38, 0x40 },  /* 1 + 1 = 2 */
		{ TUTTI_FLOAT8_E4M3, TUTTI_SUM, 0x58, 0x38, 0x58 },  /* 16 + 1: tie to 16 */
		{ TUTTI_FLOAT8_E4M3, TUTTI_SUM, 0x59, 0x38, 0x5a },  /* 18 + 1: tie to 20 */
		{ TUTTI_FLOAT8_E4M3, TUTTI_PROD, 0x01, 0x30, 0x00 }, /* 2^-9 / 2: tie to 0 */
		{ TUTTI_FLOAT8_E5M2, TUTTI_SUM, 0x7b, 0x7b, 0x7b },  /* 57344 twice */
		{ TUTTI_FLOAT8_E5M2, TUTTI_SUM, 0x7c, 0x3c, 0x7b },  /* inf + 1 */
		{ TUTTI_FLOAT8_E5M2, TUTTI_MAX, 0x7c, 0x3c, 0x7c },  /* max(inf, 1) */
		{ TUTTI_FLOAT8_E5M2, TUTTI_SUM, 0x7c, 0xfc, 0x7e },  /* inf - inf */
		{ TUTTI_FLOAT16, TUTTI_SUM, 0x7bff, 0x7bff, 0x7c00 },
		{ TUTTI_FLOAT16, TUTTI_SUM, 0x6800, 0x3c00, 0x6800 }, /* 2048 + 1 */
		{ TUTTI_FLOAT16, TUTTI_MIN, 0x8000, 0x0000, 0x8000 },
		{ TUTTI_FLOAT16, TUTTI_MAX, 0x8000, 0x0000, 0x0000 },
		{ TUTTI_BFLOAT16, TUTTI_SUM, 0x7f7f, 0x7f7f, 0x7f80 },
		{ TUTTI_BFLOAT16, TUTTI_SUM, 0x4380, 0x3f80, 0x4380 }, /* 256 + 1 */
		{ TUTTI_BFLOAT16, TUTTI_MIN, 0xffc1, 0x0000, 0x7fc0 },
		{ TUTTI_BFLOAT16, TUTTI_MAX, 0x0000, 0xffc1, 0x7fc0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (int isa = 0; isa < TTI_ISA_COUNT; isa++) {
			const int bytes = formats[cases[i].type].bytes;

			if (!tti_reduce_get_isa(cases[i].type, cases[i].op, (enum tti_isa)isa))
				continue;
			code_put(one, bytes, cases[i].a);
			code_put(other, bytes, cases[i].b);
			reduce_two(cases[i].type, cases[i].op, (enum tti_isa)isa, 1);
			if (code_at(dst, bytes) != cases[i].result)
				fail_msg("case %zu on %s: %#x", i, tti_isa_name((enum tti_isa)isa),
					 (int)code_at(dst, bytes));
		}
}

/* Against a sum in double: what is exact in it comes out exactly, and the sum of
 * many 16-bit numbers is off by its one rounding, not by one for each. */
static void one_rounding_for_many_sources(void **state)
{
	enum { SOURCES = 256, COUNT = 97 };
	static uint16_t values[SOURCES][COUNT];
	const struct format *f = &formats[TUTTI_FLOAT16];
	const void *src[SOURCES];
	uint16_t result[COUNT];
	uint64_t random = 3;

	(void)state;
	for (int s = 0; s < SOURCES; s++) {
		src[s] = values[s];
		for (int i = 0; i < COUNT; i++)
			values[s][i] = (uint16_t)encode(f, (double)(next_random(&random) % 64) / 64,
							false);
	}
	tti_reduce_get(TUTTI_FLOAT16, TUTTI_SUM)(result, NULL, src, SOURCES, COUNT, 0);
	for (int i = 0; i < COUNT; i++) {
		double sum = 0;

		for (int s = 0; s < SOURCES; s++)
			sum += decode(f, values[s][i]);
		assert_int_equal(result[i], encode(f, sum, false));
	}
}

static void sets_agree_on_long_data(void **state)
{
	enum { SOURCES = 7 };
	static unsigned char data[SOURCES][CODES];
	const void *src[SOURCES];
	uint64_t random = 11;

	(void)state;
	for (int s = 0; s < SOURCES; s++) {
		for (size_t i = 0; i < CODES; i++)
			data[s][i] = (unsigned char)next_random(&random);
		src[s] = data[s] + s % 3;
	}
	for (int run = 0; run < TUTTI_TYPE_COUNT * TUTTI_OP_COUNT; run++) {
		const tutti_type type = (tutti_type)(run / TUTTI_OP_COUNT);
		const tutti_op op = (tutti_op)(run % TUTTI_OP_COUNT);
		const size_t count = (CODES - 8) / (size_t)formats[type].bytes - 5;
		const int nsrc = 2 + run % 6;

		if (!tutti_op_takes(op, type))
			continue;
		tti_reduce_get_isa(type, op, TTI_ISA_SCALAR)(same, NULL, src, nsrc, count, 5);
		for (int isa = 1; isa < TTI_ISA_COUNT; isa++) {
			const tti_reduce_fn fn = tti_reduce_get_isa(type, op, (enum tti_isa)isa);

			if (!fn)
				continue;
			fn(dst, one + 1, src, nsrc, count, 5);
			assert_memory_equal(dst, same, count * (size_t)formats[type].bytes);
			assert_memory_equal(one + 1, same, count * (size_t)formats[type].bytes);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_survives),
		cmocka_unit_test(pairs_are_rounded_to_nearest_even),
		cmocka_unit_test(known_results),
		cmocka_unit_test(one_rounding_for_many_sources),
		cmocka_unit_test(sets_agree_on_long_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
