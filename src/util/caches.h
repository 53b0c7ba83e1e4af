/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_CACHES_H
#define TTI_UTIL_CACHES_H

/* The caches that cores share, as the kernel reports them. Threads: any. */

#include <stddef.h>

struct tti_caches {
	size_t bytes; /* of each cache of the last level, as that of CPU 0 */
	size_t n;     /* how many the host has                             */
};

/* The caches of the host whose files lie below `root` ("": this one). Where the kernel does not
 * report them, as on some virtual machines and processors: one cache of 32 MiB. */
void tti_caches_read(const char *root, struct tti_caches *out);

/* Bytes that `nranks` ranks of this host may keep in caches together: each in one, no two
 * caches for one rank. Read once. */
size_t tti_cache_bytes(int nranks);

#endif
