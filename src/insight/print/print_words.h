/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_PRINT_WORDS_H
#define TTI_INSIGHT_PRINT_WORDS_H

/* How the printers of tools call things. What ranks need of it,
 * too, is in topo/graph/words.h.
 * Threads: any. */

#include "topo/graph/words.h"
#include "topo/paths/routes.h"

/* "switch", "NIC", "USB controller": a PCI function that the tree shows as no more than that. A
 * GPU among these does not compute, so it is a "display". */
const char *tti_print_function(uint32_t class_code);
/* "125.6 GiB", "512 MiB", "1.5 TiB". */
void tti_print_memory_size(int64_t mib, char buf[TTI_WORDS_MAX]);
/* Where the bandwidth of a CPU's memory is from: "measured", "data sheet", "estimate". */
const char *tti_print_memory(const struct tti_cpu_info *cpu);
/* Why a route is what it is, as a sentence. */
const char *tti_print_route_why(enum tti_route_why why);

/* Columns that a text takes on a terminal: the characters of UTF-8. */
size_t tti_print_width(const char *text);

#endif
