/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_PROCESS_H
#define TTI_UTIL_PROCESS_H

/* Identities of processes. A process id alone does not identify a process: it is given to others
 * once the process has ended, and names another process in each container.
 *
 * Threads: any. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The identity of a process, by which others on its host see its end. The upper half says which
 * kernel runs it and in which pid namespace it is, the lower half when it began. 0: the process
 * does not exist, or /proc does not show it, or shows another namespace. */
uint64_t tti_process_identity(pid_t pid);

/* Whether the process of this identity runs, or ran, in the pid namespace of this process. */
bool tti_process_is_here(uint64_t identity);

/* Whether the process of this id and identity has ended; a zombie has. False if that cannot be seen
 * from here. */
bool tti_process_has_ended(pid_t pid, uint64_t identity);

#endif
