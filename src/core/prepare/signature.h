/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_CORE_PREPARE_SIGNATURE_H
#define TTI_CORE_PREPARE_SIGNATURE_H

/* The numbers by which ranks compare calls: they are tags of the messages. Pure. */

#include <stdint.h>

#include "util/hash.h"

struct tti_args;

/* The signature of a call of all ranks, an odd number: its number, and what of its arguments is in it. */
static inline uint64_t tti_signature_make(uint64_t seq, uint64_t part)
{
	return tti_hash_mix(seq * UINT64_C(0x9e3779b97f4a7c15) + part) | 1;
}

uint64_t tti_signature_part(const struct tti_args *args);

/* The tag of the messages of a send and its receive, which have no number. */
uint64_t tti_signature_transfer(const struct tti_args *args);

#endif
