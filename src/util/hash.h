/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_HASH_H
#define TTI_UTIL_HASH_H

/* Not for secrets: those go through libsodium. */

#include <stddef.h>
#include <stdint.h>

/* The finalizer of splitmix64 (Steele, Lea and Flood, OOPSLA 2014). */
static inline uint64_t tti_hash_mix(uint64_t x)
{
	x ^= x >> 30;
	x *= UINT64_C(0xbf58476d1ce4e5b9);
	x ^= x >> 27;
	x *= UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static inline uint64_t tti_hash_combine(uint64_t seed, uint64_t value)
{
	return tti_hash_mix(seed + UINT64_C(0x9e3779b97f4a7c15) + value);
}

uint64_t tti_hash_bytes(const void *data, size_t nbytes);

#endif
