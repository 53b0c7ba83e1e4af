/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_GATHER_H
#define TTI_TOPO_GATHER_H

/* Capture a machine: copy the files from which it can be detected elsewhere, for a bug report or a
 * test. The result is a directory with sys/ and proc/ below it, in which the links that detection
 * follows lead to the same places.
 *
 * A capture holds no serial numbers and no addresses of interfaces. It holds the GUIDs of RDMA
 * devices, because they tell which ports belong to one card.
 * Threads: any. */

#include <stddef.h>

#include "topo/detect/sysfs.h"

struct tti_gather_report {
	size_t nfiles, nlinks, nbytes;
};

/* Capture into `to_dir`, which is made if it is missing. TUTTI_EINVAL: it is not empty. TUTTI_ESYS:
 * it cannot be written; what was written so far stays. */
TUTTI_CHECKED tutti_status tti_gather(const struct tti_sysfs *from, const char *to_dir,
				      struct tti_gather_report *out);

#endif
