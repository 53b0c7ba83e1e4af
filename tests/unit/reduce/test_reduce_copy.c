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
	check_all(tti_copy_out);
}

static void every_instruction_set(void **state)
{
	(void)state;
#if TTI_REDUCE_HAVE_X86
	check_all(tti_copy_nt_sse2);
	if (tti_reduce_has_isa(TTI_ISA_AVX2))
		check_all(tti_copy_nt_avx2), check_all(tti_copy_avx2);
	if (tti_reduce_has_isa(TTI_ISA_AVX512))
		check_all(tti_copy_nt_avx512), check_all(tti_copy_avx512);
#endif
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_length_and_alignment),
		cmocka_unit_test(every_instruction_set),
		cmocka_unit_test(large_and_onto_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
