/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_PATHS_CHECK_H
#define TTI_INSIGHT_PATHS_CHECK_H

/* Whether paths are right. Threads: any. */

#include "topo/paths/paths.h"

/* Check that the hops of each path join up from start to end, that bandwidth, latency and type are
 * those of the hops, and that no path is worse than the path of the other direction taken
 * backwards. Without a table, only the paths that were asked for are checked. TUTTI_EINTERNAL with
 * the first breach. */
TUTTI_CHECKED tutti_status tti_paths_check(const struct tti_paths *paths);

#endif
