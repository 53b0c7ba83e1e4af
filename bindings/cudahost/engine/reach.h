/* SPDX-License-Identifier: BSD-3-Clause */
/* Where guarded memory can be reached: ranges of addresses, each with the other place of its bytes.
 *
 * Threads: any. Lookups take no lock: they read the list as it was between two changes. */
#ifndef TUTTI_CUDAHOST_ENGINE_REACH_H
#define TUTTI_CUDAHOST_ENGINE_REACH_H

#include <stdbool.h>
#include <stddef.h>

/* Ranges do not overlap. false: out of memory. */
bool tti_cuda_reach_add(const char *address, size_t nbytes, char *reach);
void tti_cuda_reach_remove(const char *address);
/* NULL: it is in no range. */
char *tti_cuda_reach_find(const char *address);

#endif
