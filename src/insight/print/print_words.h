/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_PRINT_WORDS_H
#define TTI_INSIGHT_PRINT_WORDS_H

/* How the printers of tools call things. What ranks need of it,
 * too, is in topo/graph/words.h.
 * Threads: any. */

#include <stdarg.h>

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

/* Give the text of a printer to the caller: *out is freed with free(), and stays as it is if the
 * printer failed or there is no memory, of which the error says for `what`. The buffer is empty
 * afterwards. */
TUTTI_CHECKED tutti_status tti_print_take(tutti_status status, struct tti_strbuf *buf,
					  const char *what, char **out);
/* A sentence on a line of its own. Control characters of names become '?'. */
TUTTI_PRINTF(2, 0)
void tti_print_line(struct tti_strbuf *out, const char *fmt, va_list args);

#endif
