/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TOOL_CPUS_H
#define TOOL_CPUS_H

/* CPUs in the order in which ranks share them out. */

#include <sched.h>

/* Those of `from` that are of one core stand together, and the cores of one socket: by their numbers they often do
 * not, as the second threads of all cores may come behind the first ones, and sockets may alternate. Where
 * /sys does not tell, by their numbers. `out` has room for CPU_COUNT(from); returns how many there are. */
int cpus_by_core(const cpu_set_t *from, int *out);

#endif
