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
 *
 * Steps of memory programs (program.h), of a rank whose input and output are one buffer:
 *
 *     rank 2 in_place
 *       0 notify to 0
 *       1 wait for 0
 *       2 get_reduce chunk 2 from 0
 *       3 get chunk 3 from 1 stage 1
 *       4 put chunk 3 to 0 stage 1
 *
 * Among the steps of a rank of send_recv or handoff stand the chunks that it has, and gets:
 *
 *         input chunk 0
 *         output chunk 1
 *
 * A stage that is not said is 0. Each rank comes once, in any order. The numbers before the steps
 * may be left out. Blank lines are skipped, and so is the rest of a line after #. */

#include "coll/program.h"

/* The word before the peer of a step: "to", "from" or "for". */
const char *tti_text_before_peer(enum tti_step_kind kind);

/* The programs of all ranks: *out is an array of *n, each to be released, the
 * array freed with tti_free(); their `algorithm` is part of it. TUTTI_EINVAL
 * (quiet): line and reason. At most 4096 ranks, 2^20 chunks and 10^7 steps. Whether the
 * steps make sense is for tti_program_check(). */
#define TTI_TEXT_RANKS_MAX  4096
#define TTI_TEXT_CHUNKS_MAX (1 << 20)
#define TTI_TEXT_STEPS_MAX  10000000
TUTTI_CHECKED tutti_status tti_program_read(const char *text, struct tti_program **out, int *n);

#endif
