/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_CACHES_H
#define TTI_UTIL_CACHES_H

/* The caches that cores share, as the kernel tells of them. Threads: any. */

#include <stddef.h>

struct tti_caches {
	size_t bytes; /* of each: those of the last level, as that of CPU 0 is */
	size_t n;     /* of the host                                           */
};

/* Of the host whose files lie below `root`, "" is this one. What is not told (some virtual
 * machines, some processors) is one cache of 32 MiB. */
void tti_caches_read(const char *root, struct tti_caches *out);

/* Bytes that `nranks` ranks of this host may keep in caches together: each in one, no two
 * caches for one rank. Read once. */
size_t tti_cache_bytes(int nranks);

#endif
