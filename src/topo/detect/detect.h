/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_H
#define TTI_TOPO_DETECT_H

/* From a machine, or a captured one, to the tree of xml.h: CPUs and NUMA nodes
 * (detect_cpu.c), the PCI tree (detect_pci.c), NICs (detect_nic.c), GPUs
 * (detect_gpu.c, through gpu/nvml.h). What it could not find out is left out,
 * not invented; what it had to assume is logged at INFO.
 *
 * Threads: any; nothing is kept between calls. */

#include "topo/detect/sysfs.h"
#include "topo/tree/xml.h"

struct tti_nvml;

struct tti_detect_config {
	const char *sysfs_root; /* NULL: this machine                              */
	bool all;               /* every PCI function, not only what can communicate */
	bool measure;           /* measure memory of NUMA nodes, under 2 s         */
	/* The NVIDIA driver's library; NULL: load it, unless the root is captured. */
	const struct tti_nvml *nvml;
};

/* TUTTI_EINVAL: the root is none. A machine without PCI, NICs or GPUs is fine. */
TUTTI_CHECKED tutti_status tti_detect(const struct tti_detect_config *config,
				      struct tti_xml_doc **out);

/* The topology that a process shall use: detected, and overlaid with the file of
 * TUTTI_TOPO_FILE or NCCL_TOPO_FILE; written to TUTTI_TOPO_DUMP_FILE or
 * NCCL_TOPO_DUMP_FILE if set. A file that is named and cannot be read is an error. */
TUTTI_CHECKED tutti_status tti_topo_of_this_machine(struct tti_xml_doc **out);

/* -- The parts, in their order ------------------------------------------------------ */

struct tti_detect {
	struct tti_sysfs sysfs;
	const struct tti_detect_config *config;
	struct tti_xml_doc *doc;
};

/* <cpu> for each NUMA node with CPUs, memory or devices: numaid (-1 where the kernel knows no
 * NUMA, and for CPUs that are in none), affinity, arch, vendor, familyid, modelid,
 * host_hash, and tutti_package (one of memory alone has that of the nearest CPUs),
 * tutti_packages="0,1" where there are several, tutti_distances="10,21", tutti_mem_mib. */
TUTTI_CHECKED tutti_status tti_detect_cpus(struct tti_detect *detect);
/* The <pci> tree below the CPUs. A bridge pair of a switch is one element, named by
 * its upstream port. Root ports vanish. */
TUTTI_CHECKED tutti_status tti_detect_pci(struct tti_detect *detect);
/* <nic><net> below their functions, or below a CPU. */
TUTTI_CHECKED tutti_status tti_detect_nics(struct tti_detect *detect);
/* <gpu>, <nvlink>, <c2c> below theirs. */
TUTTI_CHECKED tutti_status tti_detect_gpus(struct tti_detect *detect);
/* gdr="0|1" of each <gpu> and <net>, and why, in tutti_gdr_why. */
TUTTI_CHECKED tutti_status tti_detect_gdr(struct tti_detect *detect);
/* tutti_mem_gbps and tutti_mem_ns of each <cpu> whose cores this process may use. */
TUTTI_CHECKED tutti_status tti_measure_memory(struct tti_detect *detect);

/* The element of a PCI function, NULL: not in the tree. A NIC below a part that was
 * folded away is found by its realpath, which the PCI part keeps in tutti_path until
 * tti_detect() ends. */
struct tti_xml *tti_detect_find_pci(const struct tti_detect *detect, uint64_t busid);
/* The <cpu> of a NUMA node; for -1, or a node that is not there, the first. */
struct tti_xml *tti_detect_find_cpu(const struct tti_detect *detect, int64_t numaid);

#endif
