/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_BITSET_H
#define TTI_UTIL_BITSET_H

/* Bits in an array of words that the caller owns.
 * Threads: not synchronised. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TTI_BITSET_WORDS(nbits) (((size_t)(nbits) + 63) / 64)

static inline void tti_bit_set(uint64_t *set, size_t bit)
{
	set[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static inline void tti_bit_clear(uint64_t *set, size_t bit)
{
	set[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

static inline bool tti_bit_has(const uint64_t *set, size_t bit)
{
	return set[bit / 64] >> (bit % 64) & 1;
}

/* How many of the first nbits are set; the first that is not (nbits if all
 * are); the first that is, from `from` on (nbits if none). */
size_t tti_bitset_count(const uint64_t *set, size_t nbits);
size_t tti_bitset_first_clear(const uint64_t *set, size_t nbits);
size_t tti_bitset_next(const uint64_t *set, size_t nbits, size_t from);

#endif
