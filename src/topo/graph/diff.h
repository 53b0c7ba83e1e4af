/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_GRAPH_DIFF_H
#define TTI_TOPO_GRAPH_DIFF_H

/* What differs between two topologies. Threads: any. */

#include "topo/graph/graph.h"
#include "util/strbuf.h"

/* What differs between two nodes, in words, one line each ("only in B: NIC mlx5_3
 * ..."). Bus ids are matched by place in the tree, so a node whose devices are
 * numbered otherwise but wired alike does not differ. *ndiffs_out: lines. */
TUTTI_CHECKED tutti_status tti_topo_diff(const struct tti_graph *a, const struct tti_graph *b,
					 struct tti_strbuf *out, size_t *ndiffs_out);

#endif
