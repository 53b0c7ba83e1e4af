/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_TOPO_PATH_TYPE_OF_H
#define TTI_INSIGHT_TOPO_PATH_TYPE_OF_H

/* The rules of topo/paths/paths.h as a definition, apart from the search that finds paths: what
 * the search says is held against it.
 * Threads: any. */

#include "topo/paths/paths.h"

/* The type of a path of links from one endpoint to another; DIS if the rules do not permit it. The
 * links join up and visit no node twice, which is not checked. */
enum tti_path_type tti_path_type_of(const struct tti_graph *graph, const uint32_t *hops,
				    size_t nhops);

#endif
