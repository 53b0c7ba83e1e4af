/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "util/bitset.h"
#include "util/hash.h"

#define MOST 200

static const size_t sizes[] = { 0, 1, 2, 63, 64, 65, 127, 128, 129, MOST };
#define NSIZES (sizeof(sizes) / sizeof(sizes[0]))

static size_t slow_count(const uint64_t *set, size_t nbits)
{
	size_t count = 0;

	for (size_t bit = 0; bit < nbits; bit++)
		count += tti_bit_has(set, bit);
	return count;
}

static size_t slow_next(const uint64_t *set, size_t nbits, size_t from, bool value)
{
	for (; from < nbits; from++)
		if (tti_bit_has(set, from) == value)
			return from;
	return nbits;
}

/* Also with bits set past the end, which must not count. */
static void check_all(const uint64_t *set, size_t nbits)
{
	assert_int_equal(tti_bitset_count(set, nbits), slow_count(set, nbits));
	assert_int_equal(tti_bitset_first_clear(set, nbits), slow_next(set, nbits, 0, false));
	for (size_t from = 0; from <= nbits + 70; from++)
		assert_int_equal(tti_bitset_next(set, nbits, from),
				 slow_next(set, nbits, from < nbits ? from : nbits, true));
}

static void empty_full_and_single(void **state)
{
	(void)state;
	for (size_t i = 0; i < NSIZES; i++) {
		uint64_t set[TTI_BITSET_WORDS(MOST) + 2];

		memset(set, 0, sizeof(set));
		check_all(set, sizes[i]);
		for (size_t bit = 0; bit < sizes[i]; bit++) {
			tti_bit_set(set, bit);
			assert_int_equal(tti_bitset_next(set, sizes[i], 0), bit);
			assert_int_equal(tti_bitset_count(set, sizes[i]), 1);
			tti_bit_clear(set, bit);
			assert_false(tti_bit_has(set, bit));
		}
		memset(set, 0xff, sizeof(set));
		check_all(set, sizes[i]);
		assert_int_equal(tti_bitset_first_clear(set, sizes[i]), sizes[i]);
	}
}

static void random_sets_agree_with_the_slow_way(void **state)
{
	(void)state;
	srandom(1);
	for (int round = 0; round < 2000; round++) {
		uint64_t set[TTI_BITSET_WORDS(MOST) + 2];
		const int density = (int)(random() % 4);

		for (size_t i = 0; i < sizeof(set) / sizeof(set[0]); i++) {
			set[i] = (uint64_t)random() << 42 ^ (uint64_t)random() << 21 ^
				 (uint64_t)random();
			if (density == 0)
				set[i] &= set[i] >> 1 & set[i] >> 2 & set[i] >> 3;
			else if (density == 1)
				set[i] |= set[i] >> 1 | set[i] >> 2 | set[i] << 3;
		}
		check_all(set, (size_t)random() % (MOST + 1));
	}
}

static void words_are_enough_and_no_more(void **state)
{
	(void)state;
	assert_int_equal(TTI_BITSET_WORDS(0), 0);
	assert_int_equal(TTI_BITSET_WORDS(1), 1);
	assert_int_equal(TTI_BITSET_WORDS(64), 1);
	assert_int_equal(TTI_BITSET_WORDS(65), 2);
}

static void hash_sees_every_byte_and_the_length(void **state)
{
	unsigned char data[40] = { 0 };

	(void)state;
	for (size_t len = 0; len <= sizeof(data); len++) {
		const uint64_t hash = tti_hash_bytes(data, len);

		assert_int_equal(tti_hash_bytes(data, len), hash);
		for (size_t other = 0; other < len; other++)
			assert_true(tti_hash_bytes(data, other) != hash);
		for (size_t at = 0; at < len; at++)
			for (int bit = 0; bit < 8; bit++) {
				data[at] ^= (unsigned char)(1 << bit);
				assert_true(tti_hash_bytes(data, len) != hash);
				data[at] = 0;
			}
	}
}

/* Ranks compare hashes: the values are part of the protocol. */
static void hash_is_the_same_everywhere(void **state)
{
	(void)state;
	assert_true(tti_hash_mix(0) == 0);
	/* First outputs of splitmix64 with seed 0. */
	assert_true(tti_hash_combine(0, 0) == UINT64_C(0xe220a8397b1dcdaf));
	assert_true(tti_hash_combine(UINT64_C(0x9e3779b97f4a7c15), 0) ==
		    UINT64_C(0x6e789e6aa1b965f4));
	/* A word is little-endian, whatever the host is. */
	assert_true(tti_hash_bytes("\1\0\0\0\0\0\0\0", 8) == tti_hash_combine(tti_hash_mix(9), 1));
	assert_true(tti_hash_bytes("\0\1", 2) == tti_hash_combine(tti_hash_mix(3), 256));
	assert_true(tti_hash_bytes(NULL, 0) == tti_hash_mix(1));
}

static void hash_does_not_need_alignment(void **state)
{
	unsigned char data[64];

	(void)state;
	for (size_t shift = 0; shift < 8; shift++) {
		memcpy(data + shift, "all ranks hold the same plan", 28);
		assert_true(tti_hash_bytes(data + shift, 28) ==
			    tti_hash_bytes("all ranks hold the same plan", 28));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_full_and_single),
		cmocka_unit_test(random_sets_agree_with_the_slow_way),
		cmocka_unit_test(words_are_enough_and_no_more),
		cmocka_unit_test(hash_sees_every_byte_and_the_length),
		cmocka_unit_test(hash_is_the_same_everywhere),
		cmocka_unit_test(hash_does_not_need_alignment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
