/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_PROCESS_H
#define TTI_UTIL_PROCESS_H

/* Which process is meant: the number of one alone is given to others when it has ended, and is
 * another one's in each container.
 *
 * Threads: any. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What a process tells others of itself, so that those beside it see its end: the upper half says
 * which kernel runs it and which space of process numbers it is in, the lower one when it began. 0:
 * the process does not exist, or /proc does not show it, or shows another space. */
uint64_t tti_process_identity(pid_t pid);

/* Whether the process that told this identity runs, or ran, where its number means the same process
 * as here. */
bool tti_process_is_here(uint64_t identity);

/* Whether the process that had this number and told this identity has ended, be it that nobody has
 * waited for it yet. False if that cannot be seen from here. */
bool tti_process_has_ended(pid_t pid, uint64_t identity);

#endif
