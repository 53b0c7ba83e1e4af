/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_DETECT_GPU_H
#define TTI_TOPO_DETECT_DETECT_GPU_H

/* What detect_gpu_nvidia.c and detect_gpu_amd.c share.
 * Threads: as detect_parts.h. */

#include "topo/detect/detect_parts.h"
#include "topo/detect/pci_link.h"

#define TTI_PCI_NVIDIA "0x10de"
#define TTI_PCI_AMD    "0x1002"

/* The <pci> of a GPU. If the PCI tree does not have it, it is added below the CPU of its NUMA
 * node. NULL: out of memory. */
struct tti_xml *tti_detect_gpu_pci(const struct tti_detect *detect, uint64_t busid,
				   const char *vendor);
/* A <gpu dev="..."> below it. NULL: out of memory. */
struct tti_xml *tti_detect_gpu_add(const struct tti_detect *detect, struct tti_xml *pci, int dev);
/* The class that sysfs says of a function, if it begins with `prefix` ("0x03"); else
 * `otherwise`. Returns buf. */
const char *tti_detect_class(const struct tti_detect *detect, uint64_t busid, const char *prefix,
			     const char *otherwise, char buf[16]);
/* Sets tutti_link_now of the <pci> of a GPU, if its link runs at less than its ends can do. What
 * the driver says (0 or NULL: nothing) goes before what sysfs says. false: out of memory. */
bool tti_detect_link_now(const struct tti_detect *detect, struct tti_xml *pci, uint64_t busid,
			 const struct tti_pci_link *said);

#endif
