/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_CPUS_H
#define TOOL_CPUS_H

/* CPUs in the order in which ranks share them out. */

#include <sched.h>

/* The CPUs of `from`, ordered so that those of one core follow each other, and so do the cores of one socket.
 * Their numbers often do not: the second threads of all cores may come after all first ones, and sockets may
 * alternate. Where /sys does not say, the order is that of the numbers. `out` has room for CPU_COUNT(from);
 * returns how many there are. */
int cpus_by_core(const cpu_set_t *from, int *out);

#endif
