/* SPDX-License-Identifier: BSD-3-Clause */
#include "util/hash.h"

/* Byte by byte, so that hosts of any byte order get the same value. */
static uint64_t load_le(const unsigned char *at, size_t nbytes)
{
	uint64_t word = 0;

	for (size_t i = 0; i < nbytes; i++)
		word |= (uint64_t)at[i] << (8 * i);
	return word;
}

uint64_t tti_hash_bytes(const void *data, size_t nbytes)
{
	const unsigned char *at = data;
	uint64_t hash = tti_hash_mix((uint64_t)nbytes + 1);

	for (; nbytes >= 8; at += 8, nbytes -= 8)
		hash = tti_hash_combine(hash, load_le(at, 8));
	return nbytes ? tti_hash_combine(hash, load_le(at, nbytes)) : hash;
}
