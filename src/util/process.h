/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_PROCESS_H
#define TTI_UTIL_PROCESS_H

/* Which process is meant: the number of one alone is given to others when it has ended, and is another
 * one's in each container.
 *
 * Threads: any. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Of the process that has this number here: made of the kernel that runs, the space of numbers, the
 * number, and when it began. Alike for all who see the same process by the same number. 0: there is
 * none, or it cannot be seen. */
uint64_t tti_process_identity(pid_t pid);

/* Whether the process that had this identity here has ended, be it that nobody has waited for it yet.
 * False if that cannot be seen. */
bool tti_process_has_ended(pid_t pid, uint64_t identity);

#endif
