/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_UTIL_FAULT_H
#define TTI_UTIL_FAULT_H

/* Fault injection for tests: TUTTI_FAULT="shm.memfd:1,mem:3" makes the first
 * pass of point shm.memfd and the third of point mem fail, each once. Points of
 * this layer: mem (every allocation), thread. Off costs one load. Never on the
 * per-step path. Threads: any. */

#include <stdbool.h>

/* Whether to fail here, now. */
bool tti_fault(const char *point);

/* Set the list from a test, NULL: none. Whether a point of the list before has failed. */
bool tti_fault_set(const char *list);

#endif
