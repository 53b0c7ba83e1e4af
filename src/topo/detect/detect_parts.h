/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_DETECT_PARTS_H
#define TTI_TOPO_DETECT_DETECT_PARTS_H

/* The parts of detection, in the order in which they run, and what they share. Each adds to the
 * document what it finds.
 *
 * Threads: one per struct tti_detect. */

#include "topo/detect/detect.h"
#include "topo/detect/sysfs.h"

struct tti_detect {
	struct tti_sysfs sysfs;
	const struct tti_detect_config *config;
	struct tti_xml_doc *doc;
};

/* <cpu> for each NUMA node with CPUs, memory or devices: numaid (-1 where the kernel knows no
 * NUMA, and for CPUs that are in no node), affinity, arch, vendor, familyid, modelid,
 * host_hash, tutti_package (a node of memory alone has that of the nearest CPUs),
 * tutti_packages="0,1" where there are several, tutti_distances="10,21", tutti_mem_mib. */
TUTTI_CHECKED tutti_status tti_detect_cpus(struct tti_detect *detect);
/* The <pci> tree below the CPUs. The upstream and downstream ports of a switch are one element,
 * named by the upstream port. Root ports have no element. */
TUTTI_CHECKED tutti_status tti_detect_pci(struct tti_detect *detect);
/* <nic><net> below their PCI functions, or below a CPU. */
TUTTI_CHECKED tutti_status tti_detect_nics(struct tti_detect *detect);
/* <gpu>, <nvlink>, <c2c>, <xgmi> below their PCI functions; `ndev` counts GPUs on.
 * *why_out, of 256 bytes, says why NVIDIA's driver cannot be asked; "": it can. */
TUTTI_CHECKED tutti_status tti_detect_gpus_nvidia(struct tti_detect *detect, int *ndev,
						  char why_out[256]);
TUTTI_CHECKED tutti_status tti_detect_gpus_amd(struct tti_detect *detect, int *ndev);
/* gdr="0|1" of each <gpu> and <net>, and why, in tutti_gdr_why. */
TUTTI_CHECKED tutti_status tti_detect_gdr(struct tti_detect *detect);
/* tutti_mem_gbps and tutti_mem_ns of each <cpu> whose cores this process may use. */
TUTTI_CHECKED tutti_status tti_detect_memory(struct tti_detect *detect);

/* The element of a PCI function; NULL: it is not in the tree. */
struct tti_xml *tti_detect_find_pci(const struct tti_detect *detect, uint64_t busid);
/* The <cpu> of a NUMA node; the first one for -1, or for a node that is not there. */
struct tti_xml *tti_detect_find_cpu(const struct tti_detect *detect, int64_t numaid);

/* Fails with TUTTI_ENOMEM. */
TUTTI_CHECKED tutti_status tti_detect_no_memory(const struct tti_detect *detect);

#endif
