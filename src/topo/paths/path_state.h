/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PATH_STATE_H
#define TTI_TOPO_PATH_STATE_H

/* How a way came to a node, as far as its type and where it may lead depend on it: the rules
 * of paths.h as an automaton that reads a way link by link. For path_search.c alone.
 * Threads: any. */

#include "topo/paths/paths.h"

enum tti_way_state {
	TTI_AT_START,
	/* On the device of the source. */
	TTI_AT_S_DEV,
	TTI_AT_S_NIC,
	TTI_AT_S_CPU,
	/* Away from it: at an NVS, at the first PCI node, at a further one, at an NVS after
	 * one DEV. */
	TTI_AT_U_NVS,
	TTI_AT_U_PCI1,
	TTI_AT_U_PCI2,
	TTI_AT_M_NVS,
	/* At a CPU: over C2C, over NVLink, over PCI from a GPU, from a NIC, over SYS. */
	TTI_AT_C_C2C,
	TTI_AT_C_NVL,
	TTI_AT_C_GPU,
	TTI_AT_C_NIC,
	TTI_AT_C_SYS,
	/* Below the last CPU, by the type that the way has so far. */
	TTI_AT_D_C2C,
	TTI_AT_D_P2C,
	TTI_AT_D_PHB,
	TTI_AT_D_SYS,
	/* At a device, from which only its endpoints are left; at E_NVL also one more
	 * DEV. All states after E_NVL are such. */
	TTI_AT_E_NVL,
	TTI_AT_E_NVB,
	TTI_AT_E_C2C,
	TTI_AT_E_PIX,
	TTI_AT_E_PXB,
	TTI_AT_E_P2C,
	TTI_AT_E_PHB,
	TTI_AT_E_SYS,
	TTI_NWAY_STATES,
};

/* Links by what they join. */
enum tti_way_kind {
	TTI_WAY_TO_ENDPOINT,
	TTI_WAY_OFF_GPU, /* to its DEV */
	TTI_WAY_OFF_NET, /* to its NIC */
	TTI_WAY_OFF_HOST,
	TTI_WAY_NVL_NVS,
	TTI_WAY_NVL_DEV,
	TTI_WAY_NVL_CPU,
	TTI_WAY_C2C_DEV,
	TTI_WAY_C2C_CPU,
	TTI_WAY_PCI_PCI,
	TTI_WAY_PCI_DEV,
	TTI_WAY_PCI_NIC,
	TTI_WAY_PCI_CPU,
	TTI_WAY_SYS_CPU,
	TTI_NWAY_KINDS,
	TTI_NO_WAY_KIND,
};

#define TTI_WAY_PLACES 9

struct tti_way_rule {
	uint8_t place; /* below TTI_WAY_PLACES; states that one node can be in differ in it */
	uint8_t type;  /* of a way that ends at an endpoint of this node                   */
	uint8_t rank;  /* at a PCI or NVS: all ways that go on from a lower one have a
			* lower type                                                       */
	/* Where a link leads to; TTI_AT_START: nowhere. */
	uint8_t next[TTI_NWAY_KINDS];
};
extern const struct tti_way_rule tti_way_rules[TTI_NWAY_STATES];

enum tti_way_kind tti_way_kind(const struct tti_graph *graph, const struct tti_topo_link *link);

#endif
