/* SPDX-License-Identifier: BSD-3-Clause */
/* Which devices reach each other's memory. All do, as it is memory of this host, but for pairs that
 * tests name: TUTTI_CUDAHOST_NO_PEER has those that are refused, TUTTI_CUDAHOST_LIE those whose
 * memory of each other is mapped, and is other memory.
 *
 * Threads: any. */
#ifndef TUTTI_CUDAHOST_ENGINE_PEERS_H
#define TUTTI_CUDAHOST_ENGINE_PEERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/device.h"

/* A bit for each device that a device is paired with. */
struct tti_cuda_pairs {
	uint64_t of[TTI_CUDA_DEVICES_MOST];
};

/* "0-1,2-3" of `count` devices. NULL: none. -1 and why it is none. */
int tti_cuda_pairs_read(const char *list, int count, struct tti_cuda_pairs *out, char *wrong,
			size_t size);

#pragma GCC visibility push(default)

/* Whether `device`, which is there, may access memory of `owner`, which may be any number of another
 * process. Each may access its own. */
bool tti_cuda_peer_is_possible(int device, int owner);

#pragma GCC visibility pop

/* EPEERNONE with a text if it may not. `what` is the function. */
int tti_cuda_peer_check(const char *what, int device, int owner);
bool tti_cuda_peer_lies(int device, int owner);

#endif
