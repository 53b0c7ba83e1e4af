/* SPDX-License-Identifier: BSD-3-Clause */
/* Where guarded memory can be reached: ranges of addresses, each with the other place of its bytes and
 * the devices that have access to it.
 *
 * Threads: any. Lookups take no lock: they read the list as it was between two changes. */
#ifndef TUTTI_CUDAHOST_ENGINE_REACH_H
#define TUTTI_CUDAHOST_ENGINE_REACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tti_cuda_reach_range {
	const char *address;
	size_t nbytes;
	char *reach;
	/* Whose memory it is, and who has access: a bit for each device. Of memory that is everybody's
	 * who has access to the device (is_plain) the bits do not matter. */
	int owner;
	bool is_plain;
	uint64_t devices;
};

/* Ranges do not overlap. One that is reached where its address says is not kept. ENOMEM. */
int tti_cuda_reach_add(const struct tti_cuda_reach_range *range);
/* The range that begins there, if there is one. */
void tti_cuda_reach_allow(const char *address, uint64_t devices);
void tti_cuda_reach_remove(const char *address);

/* Of the range that has the address: where that is, and who has access. false: there is none. */
struct tti_cuda_reached {
	char *at;
	int owner;
	bool is_plain;
	uint64_t devices;
};
bool tti_cuda_reach_find(const char *address, struct tti_cuda_reached *out);

#endif
