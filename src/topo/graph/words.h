/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_GRAPH_WORDS_H
#define TTI_TOPO_GRAPH_WORDS_H

/* Vendors, devices, ranges of CPUs and figures as people read them. A name from a file or a
 * device may hold any bytes: text for a terminal goes through tti_words_text().
 * Threads: any. */

#include "topo/paths/paths.h"
#include "util/strbuf.h"

#define TTI_WORDS_MAX 48

/* "Mellanox", "ConnectX-7": NULL if not known. */
const char *tti_words_vendor(uint16_t vendor);
const char *tti_words_device(uint16_t vendor, uint16_t device);
/* What a PCI function is: "NVIDIA H100 SXM", "Broadcom switch", "USB controller",
 * "PCI 1234:5678". Never empty. */
void tti_words_pci(const struct tti_pci_info *pci, char buf[TTI_WORDS_MAX]);
/* "GPU", "switch", "NIC", "accelerator", "USB controller"... by class code. */
const char *tti_words_class(uint32_t class_code);

/* A type of paths or links among the GPUs of a graph, which may be NULL: "XGMI" in place of "NVL"
 * where the GPUs are AMD's. In formats for programs a type has one name. */
const char *tti_words_path_type(const struct tti_graph *graph, enum tti_path_type type);
const char *tti_words_link_type(const struct tti_graph *graph, enum tti_link_type type);
/* "gen4 x16"; "gen4", "x16" or "" if one or both are not stated. */
void tti_words_pci_link(const struct tti_pci_info *pci, char buf[TTI_WORDS_MAX]);
/* "24.0", "1800": GB/s to three digits or so. */
void tti_words_gbps(double gbps, char buf[TTI_WORDS_MAX]);
/* "400 Gb/s"; "speed unknown". */
void tti_words_net_speed(int64_t mbps, char buf[TTI_WORDS_MAX]);

/* The CPUs of a mask ("00ff,ff000000") as "24-39", "0-62:2"; nothing for a mask that is empty. */
void tti_words_cpus(const char *mask, struct tti_strbuf *out);
/* Names with numbers at their end, shortened: "mlx5_0-3, mlx5_8, eth0". */
void tti_words_names(const char *const *names, size_t n, struct tti_strbuf *out);
/* Text with ? in place of control characters. */
void tti_words_text(const char *text, struct tti_strbuf *out);

#endif
