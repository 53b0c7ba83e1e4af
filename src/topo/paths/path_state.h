/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PATHS_PATH_STATE_H
#define TTI_TOPO_PATHS_PATH_STATE_H

/* How a path came to a node, as far as its type and where it may lead depend on that: the rules
 * of paths.h as an automaton that reads a path link by link. For path_search.c alone.
 * Threads: any. */

#include "topo/paths/paths.h"

enum tti_path_state {
	TTI_AT_START, /* at the source; as `next` of a state: nowhere */
#define ROW(name, ...) TTI_AT_##name,
#include "topo/paths/path_state.def"
#undef ROW
	TTI_PATH_NSTATES,
};

/* Links by their type and by what they lead to, in the order of the columns of path_state.def.
 * The last ones leave the source: a GPU for its DEV, a NET for its NIC, a HOST for its CPU. */
enum tti_path_hop {
	TTI_HOP_TO_ENDPOINT,
	TTI_HOP_NVL_NVS,
	TTI_HOP_NVL_DEV,
	TTI_HOP_NVL_CPU,
	TTI_HOP_C2C_DEV,
	TTI_HOP_C2C_CPU,
	TTI_HOP_PCI_PCI,
	TTI_HOP_PCI_DEV,
	TTI_HOP_PCI_NIC,
	TTI_HOP_PCI_CPU,
	TTI_HOP_SYS_CPU,
	TTI_HOP_OFF_GPU,
	TTI_HOP_OFF_NET,
	TTI_HOP_OFF_HOST,
	TTI_PATH_NHOPS,
	TTI_HOP_NONE, /* no path takes this link */
};

#define TTI_PATH_PLACES 9

struct tti_path_state_rule {
	uint8_t place; /* below TTI_PATH_PLACES; states that one node can be in differ in it */
	uint8_t type;  /* of a path that ends at an endpoint of this node                    */
	uint8_t rank;  /* at a PCI or NVS: all paths that go on from a lower rank have a
			* lower type                                                         */
	uint8_t next[TTI_PATH_NHOPS];
};
extern const struct tti_path_state_rule tti_path_state_rules[TTI_PATH_NSTATES];

enum tti_path_hop tti_path_state_hop(const struct tti_graph *graph,
				     const struct tti_topo_link *link);

#endif
