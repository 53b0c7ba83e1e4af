/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels of every instruction set of this machine against the reference. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "reduce/reduce.h"
#include "support/reference.h"
#include "support/sanitizer.h"

#define MOST_SOURCES 33
#define MOST         130 /* elements */
#define ROOM         (MOST * 16 + 64)
#define GUARD        0xa5

/* What the elements are drawn from. */
enum data { RANDOM_BITS, SPECIAL, SMALL_WHOLE, DATA_COUNT };

struct fixture {
	unsigned char source[MOST_SOURCES][ROOM];
	unsigned char expected[ROOM], dst[ROOM], dst2[ROOM];
	const void *src[MOST_SOURCES];
};

static struct fixture fixture;

static uint64_t draw_part(const struct format *f, enum data data, uint64_t *state)
{
	const uint64_t random = next_random(state);

	if (f->mbits == 0 && data == SPECIAL)
		return special_int(f, random);
	if (f->mbits == 0)
		return data == SMALL_WHOLE ? random % 3 : random >> (64 - 8 * f->bytes);
	if (data == SPECIAL)
		return special_code(f, random);
	if (data == SMALL_WHOLE)
		return encode(f, (double)(random % 5) - 2, false);
	return random >> (64 - 8 * f->bytes);
}

static code_t draw(const struct format *f, enum data data, uint64_t *state)
{
	if (!f->part)
		return draw_part(f, data, state);

	const uint64_t real = draw_part(f->part, data, state);

	return code_join(f, real, draw_part(f->part, data, state));
}

/* Fill the sources, each at another alignment, and what they have to give. */
static void prepare(struct fixture *fix, tutti_type type, tutti_op op, int nsrc, int divisor,
		    enum data data)
{
	const struct format *f = &formats[type];
	uint64_t state = (uint64_t)type * 1000 + (uint64_t)op * 100 + (uint64_t)nsrc;

	for (int s = 0; s < nsrc; s++)
		fix->src[s] = fix->source[s] + (s * 5 + 1) % 61;
	for (size_t i = 0; i < MOST; i++) {
		code_t codes[MOST_SOURCES] = { 0 };

		for (int s = 0; s < nsrc; s++) {
			codes[s] = draw(f, data, &state);
			code_put(fix->source[s] + (s * 5 + 1) % 61 + i * (size_t)f->bytes, f->bytes,
				 codes[s]);
		}
		code_put(fix->expected + i * (size_t)f->bytes, f->bytes,
			 reference(type, op, codes, nsrc, divisor));
	}
}

static void print_code(const char *what, int source, code_t code)
{
	print_error("  %s %d: %#llx %#llx\n", what, source, (unsigned long long)(code >> 64),
		    (unsigned long long)code);
}

static void fail_at(const struct fixture *fix, const unsigned char *got, tutti_type type,
		    tutti_op op, enum tti_isa isa, int nsrc, size_t count)
{
	const int bytes = formats[type].bytes;
	size_t i = 0;

	while (memcmp(got + i * (size_t)bytes, fix->expected + i * (size_t)bytes, (size_t)bytes) ==
	       0)
		i++;
	for (int s = 0; s < nsrc; s++)
		print_code("source", s,
			   code_at((const unsigned char *)fix->src[s] + i * (size_t)bytes, bytes));
	print_code("got", 0, code_at(got + i * (size_t)bytes, bytes));
	print_code("expected", 0, code_at(fix->expected + i * (size_t)bytes, bytes));
	fail_msg("%s %s %s of %d, element %zu of %zu", tti_isa_name(isa), tutti_type_name(type),
		 tutti_op_name(op), nsrc, i, count);
}

static void check_written(const struct fixture *fix, const unsigned char *area, size_t offset,
			  tutti_type type, tutti_op op, enum tti_isa isa, int nsrc, size_t count)
{
	const size_t nbytes = count * (size_t)formats[type].bytes;

	if (memcmp(area + offset, fix->expected, nbytes) != 0)
		fail_at(fix, area + offset, type, op, isa, nsrc, count);
	for (size_t i = 0; i < ROOM; i++)
		if ((i < offset || i >= offset + nbytes) && area[i] != GUARD)
			fail_msg("%s %s of %d, %zu elements: byte %zu written, not asked for",
				 tti_isa_name(isa), tutti_type_name(type), nsrc, count, i);
}

static void check_count(struct fixture *fix, tutti_type type, tutti_op op, enum tti_isa isa,
			int nsrc, size_t count, int divisor)
{
	const tti_reduce_fn fn = tti_reduce_get_isa(type, op, isa);
	const size_t offset = 1 + count % 33;
	const bool twice = count % 3 == 1;

	if (!fn)
		return;
	memset(fix->dst, GUARD, ROOM);
	memset(fix->dst2, GUARD, ROOM);
	fn(fix->dst + offset, twice ? fix->dst2 + 3 : NULL, fix->src, nsrc, count, divisor);
	check_written(fix, fix->dst, offset, type, op, isa, nsrc, count);
	check_written(fix, fix->dst2, 3, type, op, isa, nsrc, twice ? count : 0);
}

static void check_pair(tutti_type type, tutti_op op)
{
	static const int nsrcs[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 33 };
	static const int divisors[] = { 0, 1, 3, 7, 64, INT32_MAX };

	for (int run = 0; run < (int)(sizeof(nsrcs) / sizeof(int)) * DATA_COUNT; run++) {
		const int nsrc = nsrcs[run / DATA_COUNT];
		const int divisor = divisors[run % (int)(sizeof(divisors) / sizeof(int))];
		const enum data data = (enum data)(run % DATA_COUNT);
		/* Every count for some (under a sanitizer every fifth), every seventeenth for the others. */
		const bool is_thorough = (nsrc == 2 || nsrc == 3) && data != SMALL_WHOLE;
		const size_t step = !is_thorough ? 17 : SANITIZED ? 5 : 1;

		prepare(&fixture, type, op, nsrc, divisor, data);
		for (size_t count = 0; count <= MOST; count += step)
			for (int isa = 0; isa < TTI_ISA_COUNT; isa++)
				check_count(&fixture, type, op, (enum tti_isa)isa, nsrc, count,
					    divisor);
	}
}

static void every_type_and_operation_gives_the_reference(void **state)
{
	(void)state;
	for (int type = 0; type < TUTTI_TYPE_COUNT; type++)
		for (int op = 0; op < TUTTI_OP_COUNT; op++)
			if (tutti_op_takes((tutti_op)op, (tutti_type)type))
				check_pair((tutti_type)type, (tutti_op)op);
}

static void check_in_place(tutti_type type, enum tti_isa isa, int nsrc, int k, int j)
{
	const tti_reduce_fn fn = tti_reduce_get_isa(type, TUTTI_SUM, isa);
	const size_t count = MOST - 3, nbytes = count * (size_t)formats[type].bytes;
	void *dst, *dst2;

	if (!fn)
		return;
	prepare(&fixture, type, TUTTI_SUM, nsrc, 0, RANDOM_BITS);
	dst = (void *)(uintptr_t)fixture.src[k];
	dst2 = (void *)(uintptr_t)fixture.src[j];
	fn(dst, dst2, fixture.src, nsrc, count, 0);
	assert_memory_equal(dst, fixture.expected, nbytes);
	assert_memory_equal(dst2, fixture.expected, nbytes);
}

/* One source and another, or the same, in turn. */
static void results_may_replace_any_source(void **state)
{
	(void)state;
	for (int run = 0; run < TUTTI_TYPE_COUNT * TTI_ISA_COUNT; run++)
		for (int nsrc = 2; nsrc <= 5; nsrc++)
			for (int k = 0; k < nsrc * nsrc; k++)
				check_in_place((tutti_type)(run / TTI_ISA_COUNT),
					       (enum tti_isa)(run % TTI_ISA_COUNT), nsrc, k % nsrc,
					       k / nsrc);
}

/* There the copy to the first must not spoil the second. */
static void one_source_onto_itself(void **state)
{
	unsigned char data[100], other[100];
	const void *src[] = { data };

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)i;
	tti_reduce_get(TUTTI_INT8, TUTTI_SUM)(data, other, src, 1, sizeof(data), 0);
	assert_memory_equal(data, other, sizeof(data));
	memset(other, 0, sizeof(other));
	tti_reduce_get(TUTTI_INT8, TUTTI_SUM)(other, data, src, 1, sizeof(data), 0);
	assert_memory_equal(data, other, sizeof(data));
	assert_int_equal(data[99], 99);
}

static void thousands_of_sources(void **state)
{
	enum { SOURCES = 3000 };
	static const void *src[SOURCES];
	static float values[SOURCES][2];
	float dst[2];

	(void)state;
	for (int s = 0; s < SOURCES; s++) {
		values[s][0] = (float)s;
		values[s][1] = 1;
		src[s] = values[s];
	}
	for (int isa = 0; isa < TTI_ISA_COUNT; isa++) {
		const tti_reduce_fn fn =
			tti_reduce_get_isa(TUTTI_FLOAT32, TUTTI_AVG, (enum tti_isa)isa);

		if (!fn)
			continue;
		fn(dst, NULL, src, SOURCES, 2, SOURCES);
		assert_true(dst[0] == (float)(SOURCES - 1) / 2);
		assert_true(dst[1] == 1);
	}
}

/* What a later pass adds to is what an earlier one stored. */
static void average_of_integers_in_two_passes(void **state)
{
	const int32_t a[] = { -7, INT32_MIN, 100 }, b[] = { -6, 1, -1 }, c[] = { 3, 0, 5 };
	const void *first[] = { a, b }, *second[2];
	int32_t part[3];
	const tti_reduce_fn fn = tti_reduce_get(TUTTI_INT32, TUTTI_AVG);

	(void)state;
	fn(part, NULL, first, 2, 3, 0);
	assert_int_equal(part[0], -13);
	second[0] = part;
	second[1] = c;
	fn(part, NULL, second, 2, 3, 3);
	assert_int_equal(part[0], -3);
	assert_int_equal(part[1], (INT32_MIN + 1) / 3);
	assert_int_equal(part[2], 34);
}

static void one_source_is_copied_bit_for_bit(void **state)
{
	const uint32_t nan = 0xff812345;
	const void *src[] = { &nan };
	uint32_t dst = 0, dst2 = 0;

	(void)state;
	tti_reduce_get(TUTTI_FLOAT32, TUTTI_SUM)(&dst, &dst2, src, 1, 1, 0);
	assert_int_equal(dst, nan);
	assert_int_equal(dst2, nan);
	tti_reduce_get(TUTTI_FLOAT32, TUTTI_AVG)(&dst, NULL, src, 1, 1, 4);
	assert_int_equal(dst, 0x7fc00000);
}

static void nothing_is_touched_for_no_elements(void **state)
{
	const void *src[] = { NULL, NULL, NULL };

	(void)state;
	for (int type = 0; type < TUTTI_TYPE_COUNT; type++)
		for (int nsrc = 1; nsrc <= 3; nsrc++)
			tti_reduce_get((tutti_type)type, TUTTI_SUM)(NULL, NULL, src, nsrc, 0, 0);
}

/* What calls are let through, and no other pair, is there on every set. */
static void there_is_a_kernel_for_each_pair_that_exists(void **state)
{
	(void)state;
	for (int isa = 0; isa < TTI_ISA_COUNT; isa++) {
		if (!tti_reduce_get_isa(TUTTI_INT8, TUTTI_SUM, (enum tti_isa)isa))
			continue;
		for (int type = 0; type < TUTTI_TYPE_COUNT; type++)
			for (int op = 0; op < TUTTI_OP_COUNT; op++)
				assert_int_equal(tti_reduce_get_isa((tutti_type)type, (tutti_op)op,
								    (enum tti_isa)isa) != NULL,
						 tutti_op_takes((tutti_op)op, (tutti_type)type));
	}
}

/* By hand, so that the reference is held to something. */
static void known_results(void **state)
{
	static const float fa[] = { 1, 2, INFINITY, 0 }, fb[] = { 3, 4, 0, 1 };
	static const double da[] = { 1, 2, 0.5, 0 }, db[] = { 3, 4, -4, 3 };
	static const int16_t ia[] = { 2, 300, -7, 0 }, ib[] = { 1, 300, 0, 0 };
	static const unsigned char ba[] = { 2, 0, 0, 1 }, bb[] = { 4, 0, 9, 0 };
	static const struct {
		tutti_type type;
		tutti_op op;
		const void *a, *b;
		size_t count;
		const char *result;
	} cases[] = {
		/* inf + 0i times 0 + 1i has NaN as its real part. */
		{ TUTTI_COMPLEX64, TUTTI_PROD, fa, fb, 2, "-5 10 nan inf " },
		{ TUTTI_COMPLEX64, TUTTI_SUM, fa, fb, 2, "4 6 inf 1 " },
		{ TUTTI_COMPLEX64, TUTTI_AVG, fa, fb, 2, "2 3 inf 0.5 " },
		{ TUTTI_COMPLEX128, TUTTI_PROD, da, db, 2, "-5 10 -2 1.5 " },
		{ TUTTI_COMPLEX128, TUTTI_AVG, da, db, 2, "2 3 -1.75 1.5 " },
		{ TUTTI_INT16, TUTTI_PROD, ia, ib, 4, "2 24464 0 0 " },
		{ TUTTI_INT16, TUTTI_AVG, ia, ib, 4, "1 300 -3 0 " },
		{ TUTTI_INT16, TUTTI_BAND, ia, ib, 4, "0 300 0 0 " },
		{ TUTTI_INT16, TUTTI_BOR, ia, ib, 4, "3 300 -7 0 " },
		{ TUTTI_INT16, TUTTI_BXOR, ia, ib, 4, "3 0 -7 0 " },
		{ TUTTI_INT16, TUTTI_LAND, ia, ib, 4, "1 1 0 0 " },
		{ TUTTI_INT16, TUTTI_LOR, ia, ib, 4, "1 1 1 0 " },
		{ TUTTI_INT16, TUTTI_LXOR, ia, ib, 4, "0 0 1 0 " },
		{ TUTTI_BOOL, TUTTI_SUM, ba, bb, 4, "1 0 1 1 " },
		{ TUTTI_BOOL, TUTTI_MAX, ba, bb, 4, "1 0 1 1 " },
		{ TUTTI_BOOL, TUTTI_BOR, ba, bb, 4, "1 0 1 1 " },
		{ TUTTI_BOOL, TUTTI_LOR, ba, bb, 4, "1 0 1 1 " },
		{ TUTTI_BOOL, TUTTI_PROD, ba, bb, 4, "1 0 0 0 " },
		{ TUTTI_BOOL, TUTTI_MIN, ba, bb, 4, "1 0 0 0 " },
		{ TUTTI_BOOL, TUTTI_BAND, ba, bb, 4, "1 0 0 0 " },
		{ TUTTI_BOOL, TUTTI_LAND, ba, bb, 4, "1 0 0 0 " },
		{ TUTTI_BOOL, TUTTI_BXOR, ba, bb, 4, "0 0 1 1 " },
		{ TUTTI_BOOL, TUTTI_LXOR, ba, bb, 4, "0 0 1 1 " },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const void *src[] = { cases[i].a, cases[i].b };
		const struct format *f = &formats[cases[i].type];
		const struct format *part = f->part ? f->part : f;
		unsigned char got[64];
		char text[100] = "";

		tti_reduce_get(cases[i].type, cases[i].op)(got, NULL, src, 2, cases[i].count, 2);
		for (int k = 0; k < (int)cases[i].count * f->bytes / part->bytes; k++) {
			const uint64_t code = (uint64_t)code_at(got + k * part->bytes, part->bytes);
			const size_t at = strlen(text);
			const double value = part->mbits       ? decode(part, code)
					     : part->is_signed ? (double)extend(part, code)
							       : (double)code;

			snprintf(text + at, sizeof(text) - at, "%g ", value);
		}
		assert_string_equal(text, cases[i].result);
	}
}

static void look_up(void **state)
{
	tti_reduce_fn best = NULL;

	(void)state;
	for (int isa = 0; isa < TTI_ISA_COUNT; isa++) {
		const tti_reduce_fn fn =
			tti_reduce_get_isa(TUTTI_INT8, TUTTI_MIN, (enum tti_isa)isa);

		best = fn ? fn : best;
		assert_string_not_equal(tti_isa_name((enum tti_isa)isa), "?");
	}
	assert_non_null(tti_reduce_get_isa(TUTTI_INT8, TUTTI_MIN, TTI_ISA_SCALAR));
	assert_ptr_equal(tti_reduce_get(TUTTI_INT8, TUTTI_MIN), best);
	assert_null(tti_reduce_get(TUTTI_TYPE_COUNT, TUTTI_SUM));
	assert_null(tti_reduce_get((tutti_type)-1, TUTTI_SUM));
	assert_null(tti_reduce_get(TUTTI_INT8, TUTTI_OP_COUNT));
	assert_null(tti_reduce_get_isa(TUTTI_INT8, TUTTI_SUM, TTI_ISA_COUNT));
	assert_string_equal(tti_isa_name(TTI_ISA_COUNT), "?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_and_operation_gives_the_reference),
		cmocka_unit_test(results_may_replace_any_source),
		cmocka_unit_test(one_source_onto_itself),
		cmocka_unit_test(thousands_of_sources),
		cmocka_unit_test(average_of_integers_in_two_passes),
		cmocka_unit_test(one_source_is_copied_bit_for_bit),
		cmocka_unit_test(nothing_is_touched_for_no_elements),
		cmocka_unit_test(there_is_a_kernel_for_each_pair_that_exists),
		cmocka_unit_test(known_results),
		cmocka_unit_test(look_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
