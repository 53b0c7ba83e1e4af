/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_MEASURE_H
#define TTI_TOPO_DETECT_MEASURE_H

/* How fast the memory of one NUMA node is, seen from its own cores. Threads that are
 * pinned there measure it; the affinity of the caller does not change.
 * Threads: any, but two at once disturb each other. */

#include <stddef.h>
#include <stdint.h>

#include "tutti/status.h"

struct tti_memory_speed {
	double gbps; /* read and written, by a copy past the caches    */
	double ns;   /* of one dependent access to what no cache holds */
	size_t nthreads;
};

/* `cpus` are cores of one node that this process may use. This takes about budget_ns, and
 * longer if that is not enough for one figure of each kind: both are above 0.
 * TUTTI_ENOMEM, TUTTI_ESYS. */
TUTTI_CHECKED tutti_status tti_measure_node(const uint32_t *cpus, size_t ncpus, int64_t budget_ns,
					    struct tti_memory_speed *out);

#endif
