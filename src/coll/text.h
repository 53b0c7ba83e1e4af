/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_COLL_TEXT_H
#define TTI_COLL_TEXT_H

/* Programs as text: what `tutti show` prints and what can be read back.
 *
 *     program all_reduce algorithm ring n 4 root 0 chunks 4
 *     rank 0
 *       0 send chunk 0 to 1
 *       1 recv_reduce chunk 3 from 3
 *       2 recv_reduce chunk 2 from 3 final
 *     rank 1
 *       ...
 */

#include "coll/program.h"
#include "util/strbuf.h"

/* Header line of the set, then one rank's steps. */
void tti_program_print_head(const struct tti_program *prog, struct tti_strbuf *buf);
void tti_program_print_rank(const struct tti_program *prog, struct tti_strbuf *buf);
/* One JSON object with all ranks. */
TUTTI_CHECKED tutti_status tti_program_print_json(const struct tti_program *prog, int n,
						  struct tti_strbuf *buf);

/* The programs of all ranks: *out is an array of *n, each to be released, the
 * array freed with tti_free(). TUTTI_EINVAL: line and reason. At most 4096 ranks
 * and 10^7 steps. */
TUTTI_CHECKED tutti_status tti_program_read(const char *text, struct tti_program **out, int *n);

#endif
