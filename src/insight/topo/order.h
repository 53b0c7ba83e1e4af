/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_ORDER_H
#define TTI_TOPO_ORDER_H

/* The nodes of a graph as a forest, in the order in which they are shown: hosts,
 * sockets and CPUs as they are numbered, devices by bus id.
 *
 * Owner: tti_print_order_release(). Threads: any may read. */

#include "topo/graph/graph.h"

struct tti_print_order {
	uint32_t *nodes;
	/* The children of a node: nodes[first[node] .. first[node + 1]). Nodes without a parent
	 * are children of the node `nnodes`. */
	uint32_t *first;
	uint32_t *walk; /* all nodes, each before what is below it */
};

/* false: out of memory. */
bool tti_print_order_make(const struct tti_graph *graph, struct tti_print_order *out);
void tti_print_order_release(struct tti_print_order *order);

#endif
