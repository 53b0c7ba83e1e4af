/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/prepare/signature.h"

#include "core/call/args.h"

/* One multiplication for each part, by odd numbers; tti_signature_make() mixes their sum. */
static uint64_t part_of(uint64_t packed, size_t count)
{
	return count * UINT64_C(0xc2b2ae3d27d4eb4f) + packed * UINT64_C(0x165667b19e3779f9);
}

uint64_t tti_signature_part(const struct tti_args *args)
{
	return part_of(tti_args_pack(args), tti_args_common_count(args));
}

/* The root of either is the other. */
uint64_t tti_signature_transfer(const struct tti_args *args)
{
	struct tti_args both = *args;

	both.root = -1;
	both.is_send = false;
	return tti_signature_make(UINT64_MAX, part_of(tti_args_pack(&both), args->count));
}
