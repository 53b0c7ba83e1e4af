/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PATH_STATE_H
#define TTI_TOPO_PATH_STATE_H

/* How a way came to a node, as far as its type and where it may lead depend on it: the rules
 * of paths.h as an automaton that reads a way link by link. For path_search.c alone.
 * Threads: any. */

#include "topo/paths.h"

enum tti_way_state {
	START,
	/* On the device of the source. */
	S_DEV,
	S_NIC,
	S_CPU,
	/* Away from it: at an NVS, at the first PCI node, at a further one, at an NVS after
	 * one DEV. */
	U_NVS,
	U_PCI1,
	U_PCI2,
	M_NVS,
	/* At a CPU: over C2C, over NVLink, over PCI from a GPU, from a NIC, over SYS. */
	C_C2C,
	C_NVL,
	C_GPU,
	C_NIC,
	C_SYS,
	/* Below the last CPU, by the type that the way has so far. */
	D_C2C,
	D_P2C,
	D_PHB,
	D_SYS,
	/* At a device, from which only its endpoints are left; E_NVL: or one more DEV. All
	 * after E_NVL are such. */
	E_NVL,
	E_NVB,
	E_C2C,
	E_PIX,
	E_PXB,
	E_P2C,
	E_PHB,
	E_SYS,
	NSTATES,
};

/* Links by what they join. */
enum tti_way_kind {
	TO_ENDPOINT,
	OFF_GPU, /* to its DEV */
	OFF_NET, /* to its NIC */
	OFF_HOST,
	NVL_NVS,
	NVL_DEV,
	NVL_CPU,
	C2C_DEV,
	C2C_CPU,
	PCI_PCI,
	PCI_DEV,
	PCI_NIC,
	PCI_CPU,
	SYS_CPU,
	NKINDS,
	NO_KIND,
};

#define TTI_WAY_PLACES 9

struct tti_way_rule {
	uint8_t place; /* below TTI_WAY_PLACES; states that one node can be in differ in it */
	uint8_t type;  /* of a way that ends at an endpoint of this node                   */
	uint8_t rank;  /* at a PCI or NVS: all ways that go on from a lower one have a
			* lower type                                                       */
	uint8_t next[NKINDS]; /* where a link leads to; START: nowhere                     */
};
extern const struct tti_way_rule tti_way_rules[NSTATES];

enum tti_way_kind tti_way_kind(const struct tti_graph *graph, const struct tti_topo_link *link);

#endif
