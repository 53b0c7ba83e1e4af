/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/bitset.h"

/* The bits of the last word that count; all of them if nbits fills it. */
static uint64_t tail_mask(size_t nbits)
{
	return nbits % 64 ? (UINT64_C(1) << (nbits % 64)) - 1 : UINT64_MAX;
}

size_t tti_bitset_count(const uint64_t *set, size_t nbits)
{
	const size_t nwords = TTI_BITSET_WORDS(nbits);
	size_t count = 0;

	for (size_t i = 0; i < nwords; i++) {
		const uint64_t mask = i + 1 == nwords ? tail_mask(nbits) : UINT64_MAX;

		count += (size_t)__builtin_popcountll(set[i] & mask);
	}
	return count;
}

size_t tti_bitset_first_clear(const uint64_t *set, size_t nbits)
{
	for (size_t base = 0; base < nbits; base += 64) {
		const uint64_t clear = ~set[base / 64];

		if (clear) {
			const size_t bit = base + (size_t)__builtin_ctzll(clear);

			return bit < nbits ? bit : nbits;
		}
	}
	return nbits;
}

size_t tti_bitset_next(const uint64_t *set, size_t nbits, size_t from)
{
	uint64_t mask = UINT64_MAX << (from % 64);

	for (size_t base = from - from % 64; base < nbits; base += 64) {
		const uint64_t word = set[base / 64] & mask;

		if (word) {
			const size_t bit = base + (size_t)__builtin_ctzll(word);

			return bit < nbits ? bit : nbits;
		}
		mask = UINT64_MAX;
	}
	return nbits;
}
