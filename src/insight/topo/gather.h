/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_GATHER_H
#define TTI_TOPO_GATHER_H

/* What is needed of a machine to detect it elsewhere, as files: a bug report, and a
 * test. A directory with sys/ and proc/ below it, in which the links that detection
 * follows lead to where they led.
 *
 * It holds no serial numbers and no addresses of interfaces. The GUIDs of RDMA devices
 * are in it: they tell which ports are of one card.
 * Threads: any. */

#include <stddef.h>

#include "topo/detect/sysfs.h"

struct tti_gather_report {
	size_t nfiles, nlinks, nbytes;
};

/* Into `to_dir`, which is made if it is missing and must be empty. TUTTI_EINVAL: it is
 * not; TUTTI_ESYS: it cannot be written, and is left as it is then. */
TUTTI_CHECKED tutti_status tti_gather(const struct tti_sysfs *from, const char *to_dir,
				      struct tti_gather_report *out);

#endif
