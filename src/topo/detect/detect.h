/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_DETECT_H
#define TTI_TOPO_DETECT_DETECT_H

/* From a machine, or a captured one, to the tree of xml.h. Detection leaves out what it
 * cannot find and never invents it. It logs at INFO what it has to assume.
 *
 * Threads: any; nothing is kept between calls. */

#include "topo/tree/xml.h"

struct tti_nvml;

struct tti_detect_config {
	const char *sysfs_root; /* NULL: this machine                                */
	bool all;               /* every PCI function, not only what can communicate */
	bool measure;           /* measure the memory of NUMA nodes, under 2 s       */
	/* The NVIDIA driver's library. NULL: it is loaded, unless the root is a capture. */
	const struct tti_nvml *nvml;
};

/* TUTTI_EINVAL: the root is not one. A machine without PCI, NICs or GPUs is no error. */
TUTTI_CHECKED tutti_status tti_detect_machine(const struct tti_detect_config *config,
					      struct tti_xml_doc **out);

/* The topology that this process uses: what is detected, with the file of TUTTI_TOPO_FILE or
 * NCCL_TOPO_FILE laid over it. It is written to TUTTI_TOPO_DUMP_FILE or NCCL_TOPO_DUMP_FILE
 * if that is set. A file that is named and cannot be read is an error. */
TUTTI_CHECKED tutti_status tti_detect_this_machine(struct tti_xml_doc **out);

#endif
