/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of every length and alignment write what they should and nothing else. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "reduce/kernels.h"

#define ROOM  2048
#define GUARD 0xa5

static unsigned char from[ROOM], to[ROOM];

static void copy_cached(void *dst, const void *src, size_t nbytes)
{
	tti_copy(dst, src, nbytes, 0);
}

static void copy_large(void *dst, const void *src, size_t nbytes)
{
	tti_copy(dst, src, nbytes, 1);
}

static struct tti_copy_way way;

static void copy_out(void *dst, const void *src, size_t nbytes)
{
	tti_copy_out(&way, dst, src, nbytes);
}

static void copy_out_past(void *dst, const void *src, size_t nbytes)
{
	tti_copy_out(NULL, dst, src, nbytes);
}

static void check(void (*copy)(void *dst, const void *src, size_t nbytes), size_t at_dst,
		  size_t at_src, size_t nbytes)
{
	memset(to, GUARD, ROOM);
	copy(to + at_dst, from + at_src, nbytes);
	assert_memory_equal(to + at_dst, from + at_src, nbytes);
	for (size_t i = 0; i < ROOM; i++)
		if ((i < at_dst || i >= at_dst + nbytes) && to[i] != GUARD)
			fail_msg("%zu bytes to %zu: byte %zu written", nbytes, at_dst, i);
}

static void check_all(void (*copy)(void *dst, const void *src, size_t nbytes))
{
	for (size_t i = 0; i < ROOM; i++)
		from[i] = (unsigned char)(i * 7 + i / 256 + 1);
	for (size_t nbytes = 0; nbytes <= 1100; nbytes += nbytes < 200 ? 1 : 37)
		for (size_t at = 0; at < 66; at += 13)
			check(copy, at, 66 - at, nbytes);
}

static void every_length_and_alignment(void **state)
{
	(void)state;
	check_all(copy_cached);
	check_all(copy_large);
	check_all(copy_out);
	check_all(copy_out_past);
	check_all(tti_copy_for_reader);
}

static void every_instruction_set(void **state)
{
	(void)state;
#if TTI_REDUCE_HAVE_X86
	check_all(tti_copy_nt_sse2);
	check_all(tti_copy_string);
	if (tti_reduce_has_isa(TTI_ISA_AVX2))
		check_all(tti_copy_nt_avx2), check_all(tti_copy_avx2);
	if (tti_reduce_has_isa(TTI_ISA_AVX512))
		check_all(tti_copy_nt_avx512), check_all(tti_copy_avx512);
#endif
}

/* Whatever is known of the way, and where a copy is timed. */
static void any_way(void **state)
{
	static const struct tti_copy_way ways[] = {
		{ 0, false }, { 0, true }, { 1, false }, { 1, true }
	};
	enum { MOST = 20000, MARGIN = 70 };
	static unsigned char a[MOST + MARGIN], b[MOST + 2 * MARGIN];

	(void)state;
	for (size_t i = 0; i < sizeof(a); i++)
		a[i] = (unsigned char)(i * 31 >> 3);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		for (size_t nbytes = 2000; nbytes <= MOST; nbytes += 2047) {
			struct tti_copy_way known = ways[i];

			memset(b, GUARD, sizeof(b));
			tti_copy_out(&known, b + nbytes % MARGIN, a + i, nbytes);
			assert_memory_equal(b + nbytes % MARGIN, a + i, nbytes);
			for (size_t at = 0; at < sizeof(b); at++)
				if (at < nbytes % MARGIN || at >= nbytes % MARGIN + nbytes)
					assert_int_equal(b[at], GUARD);
			if (tti_copies_past(nbytes) && ways[i].left)
				assert_int_equal(known.left, 0);
			else if (tti_copies_past(nbytes))
				assert_true(known.left > 0);
			else
				assert_memory_equal(&known, &ways[i], sizeof(known));
		}
}

/* 4 KiB: 64 lines, at 30 ns from far away, at 8 from near by. */
static void near_and_far(void **state)
{
	struct tti_copy_way known = { 0 };

	(void)state;
	tti_copy_way_note(&known, 4096, INT64_C(64) * 8);
	assert_true(known.is_near);
	/* What became far costs much: it is looked for more often. */
	const int left_near = known.left;

	tti_copy_way_note(&known, 4096, INT64_C(64) * 30);
	assert_false(known.is_near);
	assert_true(known.left > left_near && left_near > 0);
	tti_copy_way_note(&known, 4096, INT64_MAX);
	assert_false(known.is_near);
}

/* Where the target lies behind the source, counted modulo a page: what is quick for some
 * distances is not taken for others. */
static void every_distance(void **state)
{
	enum { PAGE = 4096, NBYTES = 3 * PAGE + 5, MARGIN = 64 };
	static _Alignas(PAGE) unsigned char a[NBYTES + PAGE], b[NBYTES + PAGE + 2 * MARGIN];

	(void)state;
	for (size_t i = 0; i < sizeof(a); i++)
		a[i] = (unsigned char)(i * 31 >> 3);
	for (size_t behind = 0; behind < PAGE; behind += behind < 70 || behind > 4030 ? 1 : 61)
		for (size_t nbytes = PAGE - 1; nbytes <= NBYTES; nbytes += PAGE + 3) {
			unsigned char *const dst = b + MARGIN + behind;

			memset(b, GUARD, sizeof(b));
			tti_copy(dst, a, nbytes, 0);
			assert_memory_equal(dst, a, nbytes);
			assert_int_equal(dst[-1], GUARD);
			assert_int_equal(dst[nbytes], GUARD);
		}
}

static void large_and_onto_itself(void **state)
{
	const size_t nbytes = (3 << 20) + 11;
	unsigned char *a = malloc(nbytes), *b = malloc(nbytes);

	(void)state;
	assert_non_null(a);
	assert_non_null(b);
	for (size_t i = 0; i < nbytes; i++)
		a[i] = (unsigned char)(i * 31 >> 3);
	tti_copy(b, a, nbytes, 1);
	assert_memory_equal(a, b, nbytes);
	tti_copy(b, b, nbytes, 1);
	assert_memory_equal(a, b, nbytes);
	tti_copy(NULL, NULL, 0, 1);
	tti_copy(NULL, NULL, 0, 0);
	free(a);
	free(b);
}

/* What is no copy goes through the caches only where the reader is known to be near, and leaves
 * it to a copy to find out again. */
static void through_while_near(void **state)
{
	struct tti_copy_way known = { .left = 3 };

	(void)state;
	assert_true(tti_copy_way_through(NULL, 1));
	assert_int_equal(tti_copy_way_through(NULL, 65536), !tti_copies_past(65536));
	assert_int_equal(tti_copy_way_through(&known, 65536), !tti_copies_past(65536));
	known.is_near = true;
	for (int i = 0; i < 3; i++)
		assert_true(tti_copy_way_through(&known, 65536));
	assert_int_equal(tti_copy_way_through(&known, 65536), !tti_copies_past(65536));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_and_alignment),
		cmocka_unit_test(every_instruction_set),
		cmocka_unit_test(through_while_near),
		cmocka_unit_test(any_way),
		cmocka_unit_test(every_distance),
		cmocka_unit_test(near_and_far),
		cmocka_unit_test(large_and_onto_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
