/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_PATHS_CHECK_H
#define TTI_INSIGHT_PATHS_CHECK_H

/* Whether paths are right. Threads: any. */

#include "topo/paths/paths.h"

/* Hops join up from start to end, bandwidth, latency and type are those of the hops, and
 * no path is worse than the other direction's taken backwards. TUTTI_EINTERNAL with the
 * first breach. Without a table: of the paths that were asked for. */
TUTTI_CHECKED tutti_status tti_paths_check(const struct tti_paths *paths);

#endif
