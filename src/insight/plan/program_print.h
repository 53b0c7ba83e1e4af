/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_PROGRAM_PRINT_H
#define TTI_INSIGHT_PROGRAM_PRINT_H

/* Programs as the text that tti_program_read() takes (coll/files/text.h), and as JSON. Out of
 * memory: buf->failed. Threads: any. */

#include "coll/program.h"
#include "util/strbuf.h"

/* Header line of the set, then one rank's steps. */
void tti_program_print_head(const struct tti_program *prog, struct tti_strbuf *buf);
void tti_program_print_rank(const struct tti_program *prog, struct tti_strbuf *buf);
/* One JSON object with the n programs given, which are of one set. */
TUTTI_CHECKED tutti_status tti_program_print_json(const struct tti_program *prog, int n,
						  struct tti_strbuf *buf);

#endif
