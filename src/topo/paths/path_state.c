/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/paths/path_state.h"

/* place, type, rank, next */
const struct tti_way_rule tti_way_rules[TTI_NWAY_STATES] = {
	[TTI_AT_START] = { 0,
			   TTI_PATH_LOC,
			   0,
			   { [TTI_WAY_OFF_GPU] = TTI_AT_S_DEV,
			     [TTI_WAY_OFF_NET] = TTI_AT_S_NIC,
			     [TTI_WAY_OFF_HOST] = TTI_AT_S_CPU } },
	[TTI_AT_S_DEV] = { 0,
			   TTI_PATH_LOC,
			   0,
			   { [TTI_WAY_TO_ENDPOINT] = TTI_AT_S_DEV,
			     [TTI_WAY_NVL_NVS] = TTI_AT_U_NVS,
			     [TTI_WAY_NVL_DEV] = TTI_AT_E_NVL,
			     [TTI_WAY_NVL_CPU] = TTI_AT_C_NVL,
			     [TTI_WAY_C2C_CPU] = TTI_AT_C_C2C,
			     [TTI_WAY_PCI_PCI] = TTI_AT_U_PCI1,
			     [TTI_WAY_PCI_DEV] = TTI_AT_E_PIX,
			     [TTI_WAY_PCI_NIC] = TTI_AT_E_PIX,
			     [TTI_WAY_PCI_CPU] = TTI_AT_C_GPU } },
	[TTI_AT_S_NIC] = { 0,
			   TTI_PATH_LOC,
			   0,
			   { [TTI_WAY_TO_ENDPOINT] = TTI_AT_S_NIC,
			     [TTI_WAY_PCI_PCI] = TTI_AT_U_PCI1,
			     [TTI_WAY_PCI_DEV] = TTI_AT_E_PIX,
			     [TTI_WAY_PCI_NIC] = TTI_AT_E_PIX,
			     [TTI_WAY_PCI_CPU] = TTI_AT_C_GPU } },
	[TTI_AT_S_CPU] = { 0,
			   TTI_PATH_LOC,
			   0,
			   { [TTI_WAY_TO_ENDPOINT] = TTI_AT_S_CPU,
			     [TTI_WAY_NVL_NVS] = TTI_AT_D_C2C,
			     [TTI_WAY_NVL_DEV] = TTI_AT_E_C2C,
			     [TTI_WAY_C2C_DEV] = TTI_AT_E_C2C,
			     [TTI_WAY_PCI_PCI] = TTI_AT_D_PHB,
			     [TTI_WAY_PCI_DEV] = TTI_AT_E_PHB,
			     [TTI_WAY_PCI_NIC] = TTI_AT_E_PHB,
			     [TTI_WAY_SYS_CPU] = TTI_AT_C_SYS } },
	[TTI_AT_U_NVS] = { 0,
			   TTI_PATH_DIS,
			   0,
			   { [TTI_WAY_NVL_NVS] = TTI_AT_U_NVS,
			     [TTI_WAY_NVL_DEV] = TTI_AT_E_NVL,
			     [TTI_WAY_NVL_CPU] = TTI_AT_C_NVL } },
	[TTI_AT_U_PCI1] = { 0,
			    TTI_PATH_DIS,
			    0,
			    { [TTI_WAY_PCI_PCI] = TTI_AT_U_PCI2,
			      [TTI_WAY_PCI_DEV] = TTI_AT_E_PIX,
			      [TTI_WAY_PCI_NIC] = TTI_AT_E_PIX,
			      [TTI_WAY_PCI_CPU] = TTI_AT_C_GPU } },
	[TTI_AT_U_PCI2] = { 1,
			    TTI_PATH_DIS,
			    0,
			    { [TTI_WAY_PCI_PCI] = TTI_AT_U_PCI2,
			      [TTI_WAY_PCI_DEV] = TTI_AT_E_PXB,
			      [TTI_WAY_PCI_NIC] = TTI_AT_E_PXB,
			      [TTI_WAY_PCI_CPU] = TTI_AT_C_GPU } },
	[TTI_AT_M_NVS] = { 1,
			   TTI_PATH_DIS,
			   1,
			   { [TTI_WAY_NVL_NVS] = TTI_AT_M_NVS, [TTI_WAY_NVL_DEV] = TTI_AT_E_NVB } },
	[TTI_AT_C_C2C] = { 1,
			   TTI_PATH_C2C,
			   0,
			   { [TTI_WAY_TO_ENDPOINT] = TTI_AT_C_C2C,
			     [TTI_WAY_NVL_NVS] = TTI_AT_D_C2C,
			     [TTI_WAY_NVL_DEV] = TTI_AT_E_C2C,
			     [TTI_WAY_C2C_DEV] = TTI_AT_E_C2C,
			     [TTI_WAY_PCI_PCI] = TTI_AT_D_P2C,
			     [TTI_WAY_PCI_DEV] = TTI_AT_E_PHB,
			     [TTI_WAY_PCI_NIC] = TTI_AT_E_P2C,
			     [TTI_WAY_SYS_CPU] = TTI_AT_C_SYS } },
	[TTI_AT_C_NVL] = { 2,
			   TTI_PATH_C2C,
			   0,
			   { [TTI_WAY_TO_ENDPOINT] = TTI_AT_C_NVL,
			     [TTI_WAY_NVL_NVS] = TTI_AT_D_C2C,
			     [TTI_WAY_NVL_DEV] = TTI_AT_E_C2C,
			     [TTI_WAY_C2C_DEV] = TTI_AT_E_C2C,
			     [TTI_WAY_PCI_PCI] = TTI_AT_D_PHB,
			     [TTI_WAY_PCI_DEV] = TTI_AT_E_PHB,
			     [TTI_WAY_PCI_NIC] = TTI_AT_E_PHB,
			     [TTI_WAY_SYS_CPU] = TTI_AT_C_SYS } },
	[TTI_AT_C_GPU] = { 3,
			   TTI_PATH_PHB,
			   0,
			   { [TTI_WAY_TO_ENDPOINT] = TTI_AT_C_GPU,
			     [TTI_WAY_NVL_NVS] = TTI_AT_D_PHB,
			     [TTI_WAY_NVL_DEV] = TTI_AT_E_PHB,
			     [TTI_WAY_C2C_DEV] = TTI_AT_E_PHB,
			     [TTI_WAY_PCI_PCI] = TTI_AT_D_PHB,
			     [TTI_WAY_PCI_DEV] = TTI_AT_E_PHB,
			     [TTI_WAY_PCI_NIC] = TTI_AT_E_PHB,
			     [TTI_WAY_SYS_CPU] = TTI_AT_C_SYS } },
	[TTI_AT_C_NIC] = { 4,
			   TTI_PATH_PHB,
			   0,
			   { [TTI_WAY_TO_ENDPOINT] = TTI_AT_C_NIC,
			     [TTI_WAY_NVL_NVS] = TTI_AT_D_PHB,
			     [TTI_WAY_NVL_DEV] = TTI_AT_E_PHB,
			     [TTI_WAY_C2C_DEV] = TTI_AT_E_P2C,
			     [TTI_WAY_PCI_PCI] = TTI_AT_D_PHB,
			     [TTI_WAY_PCI_DEV] = TTI_AT_E_PHB,
			     [TTI_WAY_PCI_NIC] = TTI_AT_E_PHB,
			     [TTI_WAY_SYS_CPU] = TTI_AT_C_SYS } },
	[TTI_AT_C_SYS] = { 5,
			   TTI_PATH_SYS,
			   0,
			   { [TTI_WAY_TO_ENDPOINT] = TTI_AT_C_SYS,
			     [TTI_WAY_NVL_NVS] = TTI_AT_D_SYS,
			     [TTI_WAY_NVL_DEV] = TTI_AT_E_SYS,
			     [TTI_WAY_C2C_DEV] = TTI_AT_E_SYS,
			     [TTI_WAY_PCI_PCI] = TTI_AT_D_SYS,
			     [TTI_WAY_PCI_DEV] = TTI_AT_E_SYS,
			     [TTI_WAY_PCI_NIC] = TTI_AT_E_SYS,
			     [TTI_WAY_SYS_CPU] = TTI_AT_C_SYS } },
	[TTI_AT_D_C2C] = { 2,
			   TTI_PATH_DIS,
			   1,
			   { [TTI_WAY_NVL_NVS] = TTI_AT_D_C2C, [TTI_WAY_NVL_DEV] = TTI_AT_E_C2C } },
	[TTI_AT_D_P2C] = { 2,
			   TTI_PATH_DIS,
			   1,
			   { [TTI_WAY_PCI_PCI] = TTI_AT_D_P2C,
			     [TTI_WAY_PCI_DEV] = TTI_AT_E_PHB,
			     [TTI_WAY_PCI_NIC] = TTI_AT_E_P2C } },
	[TTI_AT_D_PHB] = { 3,
			   TTI_PATH_DIS,
			   1,
			   { [TTI_WAY_NVL_NVS] = TTI_AT_D_PHB,
			     [TTI_WAY_NVL_DEV] = TTI_AT_E_PHB,
			     [TTI_WAY_PCI_PCI] = TTI_AT_D_PHB,
			     [TTI_WAY_PCI_DEV] = TTI_AT_E_PHB,
			     [TTI_WAY_PCI_NIC] = TTI_AT_E_PHB } },
	[TTI_AT_D_SYS] = { 4,
			   TTI_PATH_DIS,
			   2,
			   { [TTI_WAY_NVL_NVS] = TTI_AT_D_SYS,
			     [TTI_WAY_NVL_DEV] = TTI_AT_E_SYS,
			     [TTI_WAY_PCI_PCI] = TTI_AT_D_SYS,
			     [TTI_WAY_PCI_DEV] = TTI_AT_E_SYS,
			     [TTI_WAY_PCI_NIC] = TTI_AT_E_SYS } },
	[TTI_AT_E_NVL] = { 1,
			   TTI_PATH_NVL,
			   0,
			   { [TTI_WAY_TO_ENDPOINT] = TTI_AT_E_NVL,
			     [TTI_WAY_NVL_NVS] = TTI_AT_M_NVS,
			     [TTI_WAY_NVL_DEV] = TTI_AT_E_NVB } },
	[TTI_AT_E_NVB] = { 2, TTI_PATH_NVB, 0, { [TTI_WAY_TO_ENDPOINT] = TTI_AT_E_NVB } },
	[TTI_AT_E_C2C] = { 3, TTI_PATH_C2C, 0, { [TTI_WAY_TO_ENDPOINT] = TTI_AT_E_C2C } },
	[TTI_AT_E_PIX] = { 4, TTI_PATH_PIX, 0, { [TTI_WAY_TO_ENDPOINT] = TTI_AT_E_PIX } },
	[TTI_AT_E_PXB] = { 5, TTI_PATH_PXB, 0, { [TTI_WAY_TO_ENDPOINT] = TTI_AT_E_PXB } },
	[TTI_AT_E_P2C] = { 6, TTI_PATH_P2C, 0, { [TTI_WAY_TO_ENDPOINT] = TTI_AT_E_P2C } },
	[TTI_AT_E_PHB] = { 7, TTI_PATH_PHB, 0, { [TTI_WAY_TO_ENDPOINT] = TTI_AT_E_PHB } },
	[TTI_AT_E_SYS] = { 8, TTI_PATH_SYS, 0, { [TTI_WAY_TO_ENDPOINT] = TTI_AT_E_SYS } },
};

static bool is_cpu(enum tti_node_type type)
{
	return type == TTI_NODE_CPU || type == TTI_NODE_PKG;
}

static enum tti_way_kind kind_of_end(enum tti_node_type from, enum tti_node_type to)
{
	if (from == TTI_NODE_GPU && to == TTI_NODE_DEV)
		return TTI_WAY_OFF_GPU;
	if (from == TTI_NODE_NET && to == TTI_NODE_NIC)
		return TTI_WAY_OFF_NET;
	if (from == TTI_NODE_HOST && to == TTI_NODE_CPU)
		return TTI_WAY_OFF_HOST;
	if ((from == TTI_NODE_DEV && to == TTI_NODE_GPU) ||
	    (from == TTI_NODE_NIC && to == TTI_NODE_NET) ||
	    (from == TTI_NODE_CPU && to == TTI_NODE_HOST))
		return TTI_WAY_TO_ENDPOINT;
	return TTI_NO_WAY_KIND;
}

static enum tti_way_kind kind_of_pci(enum tti_node_type from, enum tti_node_type to)
{
	if (from != TTI_NODE_DEV && from != TTI_NODE_NIC && from != TTI_NODE_PCI &&
	    from != TTI_NODE_CPU)
		return TTI_NO_WAY_KIND;
	if (to == TTI_NODE_PCI)
		return TTI_WAY_PCI_PCI;
	if (to == TTI_NODE_DEV)
		return TTI_WAY_PCI_DEV;
	if (to == TTI_NODE_NIC)
		return TTI_WAY_PCI_NIC;
	return to == TTI_NODE_CPU ? TTI_WAY_PCI_CPU : TTI_NO_WAY_KIND;
}

static enum tti_way_kind kind_of_nvlink(enum tti_node_type from, enum tti_node_type to)
{
	if (from != TTI_NODE_DEV && from != TTI_NODE_NVS && from != TTI_NODE_CPU)
		return TTI_NO_WAY_KIND;
	if (to == TTI_NODE_NVS)
		return TTI_WAY_NVL_NVS;
	if (to == TTI_NODE_DEV)
		return TTI_WAY_NVL_DEV;
	return to == TTI_NODE_CPU ? TTI_WAY_NVL_CPU : TTI_NO_WAY_KIND;
}

enum tti_way_kind tti_way_kind(const struct tti_graph *graph, const struct tti_topo_link *link)
{
	const enum tti_node_type from = graph->nodes[link->from].type;
	const enum tti_node_type to = graph->nodes[link->to].type;

	switch (link->type) {
	case TTI_LINK_LOC:
		/* Between what PCI joins it is a PCI link that is never the limit. */
		if (kind_of_end(from, to) == TTI_NO_WAY_KIND)
			return kind_of_pci(from, to);
		return kind_of_end(from, to);
	case TTI_LINK_NET:
		return kind_of_end(from, to);
	case TTI_LINK_NVL:
		return kind_of_nvlink(from, to);
	case TTI_LINK_C2C:
		if (from == TTI_NODE_DEV && to == TTI_NODE_CPU)
			return TTI_WAY_C2C_CPU;
		return from == TTI_NODE_CPU && to == TTI_NODE_DEV ? TTI_WAY_C2C_DEV
								  : TTI_NO_WAY_KIND;
	case TTI_LINK_PCI:
		return kind_of_pci(from, to);
	case TTI_LINK_SYS:
		return is_cpu(from) && is_cpu(to) ? TTI_WAY_SYS_CPU : TTI_NO_WAY_KIND;
	}
	return TTI_NO_WAY_KIND;
}
