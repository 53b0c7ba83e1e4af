/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_GPU_H
#define TTI_TOPO_DETECT_GPU_H

/* What the parts of tti_detect_gpus() share: one file a source of knowledge.
 * Threads: as detect.h. */

#include "topo/detect/detect.h"

#define TTI_PCI_NVIDIA "0x10de"
#define TTI_PCI_AMD    "0x1002"

/* The <pci> of a GPU; one that is not in the PCI tree gets a place below the CPU of
 * its NUMA node. NULL: out of memory. */
struct tti_xml *tti_detect_gpu_pci(const struct tti_detect *detect, uint64_t busid,
				   const char *vendor);
/* A <gpu dev="..."> below it. NULL: out of memory. */
struct tti_xml *tti_detect_gpu_add(const struct tti_detect *detect, struct tti_xml *pci, int dev);
/* The class of a function that a link leads to, as in sysfs, if it begins with
 * `prefix` ("0x03"); else `otherwise`. Returns buf. */
const char *tti_detect_class(const struct tti_detect *detect, uint64_t busid, const char *prefix,
			     const char *otherwise, char buf[16]);
/* What the link of a GPU runs at now, in tutti_link_now, if it is not what its ends
 * can. decigts (in 0.1 GT/s) or width 0: as sysfs says. false: out of memory. */
#define TTI_GTS_FORMAT "%d.%d GT/s PCIe" /* a locale may have another point */
bool tti_detect_link_now(const struct tti_detect *detect, struct tti_xml *pci, uint64_t busid,
			 int decigts, int width);

/* All that the driver knows; `dev` counts on from *ndev. */
TUTTI_CHECKED tutti_status tti_detect_gpus_nvml(struct tti_detect *detect,
						const struct tti_nvml *nvml, int *ndev);
/* Without NVML: /proc/driver/nvidia says which GPUs have a driver, in its order. */
TUTTI_CHECKED tutti_status tti_detect_gpus_proc(struct tti_detect *detect, int *ndev);
/* AMD: the topology that the kernel's compute driver (kfd) shows. */
TUTTI_CHECKED tutti_status tti_detect_gpus_kfd(struct tti_detect *detect, int *ndev);

#endif
