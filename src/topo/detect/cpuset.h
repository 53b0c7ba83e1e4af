/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_CPUSET_H
#define TTI_TOPO_DETECT_CPUSET_H

/* A set of CPUs of any machine, read and written as the kernel does. A failure for want of
 * memory is remembered: look at `failed` once, at the end.
 * Owner: who holds the struct; tti_cpuset_release(). A zeroed one is empty.
 * Threads: not synchronised. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/detect/sysfs.h"
#include "util/strbuf.h"
#include "util/vec.h"

/* Numbers of CPUs are smaller than this; no machine has so many. */
#define TTI_CPUSET_MAX (1u << 20)

struct tti_cpuset {
	TTI_VEC(uint32_t) words; /* the lowest CPUs first */
	bool failed;
};

/* false: out of memory or not below TTI_CPUSET_MAX. */
bool tti_cpuset_add(struct tti_cpuset *set, uint64_t first, uint64_t last);

/* "00ff,000000ff", the highest CPUs first, or "0-7,16-23". false: the text is not that, or there
 * is no memory; the set is empty then. */
bool tti_cpuset_parse_map(struct tti_cpuset *set, const char *text);
bool tti_cpuset_parse_list(struct tti_cpuset *set, const char *text);

/* The same for a file, by one of these functions. false also if it is absent or cut short. */
TUTTI_PRINTF(4, 5)
bool tti_cpuset_read(struct tti_cpuset *set, const struct tti_sysfs *sysfs,
		     bool (*parse)(struct tti_cpuset *, const char *), const char *fmt, ...);

/* Whole words, "000000ff,ffffffff", without those of zeros in front. */
void tti_cpuset_format(const struct tti_cpuset *set, struct tti_strbuf *out);

bool tti_cpuset_has(const struct tti_cpuset *set, uint64_t cpu);
bool tti_cpuset_is_empty(const struct tti_cpuset *set);
bool tti_cpuset_is_within(const struct tti_cpuset *set, const struct tti_cpuset *other);
bool tti_cpuset_meets(const struct tti_cpuset *set, const struct tti_cpuset *other);
/* Keep what both have. */
void tti_cpuset_and(struct tti_cpuset *set, const struct tti_cpuset *other);
/* The first CPU from `from` on; TTI_CPUSET_MAX: none. */
uint64_t tti_cpuset_next(const struct tti_cpuset *set, uint64_t from);

void tti_cpuset_release(struct tti_cpuset *set);

#endif
