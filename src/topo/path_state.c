/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/path_state.h"

/* place, type, rank, next */
const struct tti_way_rule tti_way_rules[NSTATES] = {
	[START] = { 0,
		    TTI_PATH_LOC,
		    0,
		    { [OFF_GPU] = S_DEV, [OFF_NET] = S_NIC, [OFF_HOST] = S_CPU } },
	[S_DEV] = { 0,
		    TTI_PATH_LOC,
		    0,
		    { [TO_ENDPOINT] = S_DEV,
		      [NVL_NVS] = U_NVS,
		      [NVL_DEV] = E_NVL,
		      [NVL_CPU] = C_NVL,
		      [C2C_CPU] = C_C2C,
		      [PCI_PCI] = U_PCI1,
		      [PCI_DEV] = E_PIX,
		      [PCI_NIC] = E_PIX,
		      [PCI_CPU] = C_GPU } },
	[S_NIC] = { 0,
		    TTI_PATH_LOC,
		    0,
		    { [TO_ENDPOINT] = S_NIC,
		      [PCI_PCI] = U_PCI1,
		      [PCI_DEV] = E_PIX,
		      [PCI_NIC] = E_PIX,
		      [PCI_CPU] = C_GPU } },
	[S_CPU] = { 0,
		    TTI_PATH_LOC,
		    0,
		    { [TO_ENDPOINT] = S_CPU,
		      [NVL_NVS] = D_C2C,
		      [NVL_DEV] = E_C2C,
		      [C2C_DEV] = E_C2C,
		      [PCI_PCI] = D_PHB,
		      [PCI_DEV] = E_PHB,
		      [PCI_NIC] = E_PHB,
		      [SYS_CPU] = C_SYS } },
	[U_NVS] = { 0,
		    TTI_PATH_DIS,
		    0,
		    { [NVL_NVS] = U_NVS, [NVL_DEV] = E_NVL, [NVL_CPU] = C_NVL } },
	[U_PCI1] = { 0,
		     TTI_PATH_DIS,
		     0,
		     { [PCI_PCI] = U_PCI2,
		       [PCI_DEV] = E_PIX,
		       [PCI_NIC] = E_PIX,
		       [PCI_CPU] = C_GPU } },
	[U_PCI2] = { 1,
		     TTI_PATH_DIS,
		     0,
		     { [PCI_PCI] = U_PCI2,
		       [PCI_DEV] = E_PXB,
		       [PCI_NIC] = E_PXB,
		       [PCI_CPU] = C_GPU } },
	[M_NVS] = { 1, TTI_PATH_DIS, 1, { [NVL_NVS] = M_NVS, [NVL_DEV] = E_NVB } },
	[C_C2C] = { 1,
		    TTI_PATH_C2C,
		    0,
		    { [TO_ENDPOINT] = C_C2C,
		      [NVL_NVS] = D_C2C,
		      [NVL_DEV] = E_C2C,
		      [C2C_DEV] = E_C2C,
		      [PCI_PCI] = D_P2C,
		      [PCI_DEV] = E_PHB,
		      [PCI_NIC] = E_P2C,
		      [SYS_CPU] = C_SYS } },
	[C_NVL] = { 2,
		    TTI_PATH_C2C,
		    0,
		    { [TO_ENDPOINT] = C_NVL,
		      [NVL_NVS] = D_C2C,
		      [NVL_DEV] = E_C2C,
		      [C2C_DEV] = E_C2C,
		      [PCI_PCI] = D_PHB,
		      [PCI_DEV] = E_PHB,
		      [PCI_NIC] = E_PHB,
		      [SYS_CPU] = C_SYS } },
	[C_GPU] = { 3,
		    TTI_PATH_PHB,
		    0,
		    { [TO_ENDPOINT] = C_GPU,
		      [NVL_NVS] = D_PHB,
		      [NVL_DEV] = E_PHB,
		      [C2C_DEV] = E_PHB,
		      [PCI_PCI] = D_PHB,
		      [PCI_DEV] = E_PHB,
		      [PCI_NIC] = E_PHB,
		      [SYS_CPU] = C_SYS } },
	[C_NIC] = { 4,
		    TTI_PATH_PHB,
		    0,
		    { [TO_ENDPOINT] = C_NIC,
		      [NVL_NVS] = D_PHB,
		      [NVL_DEV] = E_PHB,
		      [C2C_DEV] = E_P2C,
		      [PCI_PCI] = D_PHB,
		      [PCI_DEV] = E_PHB,
		      [PCI_NIC] = E_PHB,
		      [SYS_CPU] = C_SYS } },
	[C_SYS] = { 5,
		    TTI_PATH_SYS,
		    0,
		    { [TO_ENDPOINT] = C_SYS,
		      [NVL_NVS] = D_SYS,
		      [NVL_DEV] = E_SYS,
		      [C2C_DEV] = E_SYS,
		      [PCI_PCI] = D_SYS,
		      [PCI_DEV] = E_SYS,
		      [PCI_NIC] = E_SYS,
		      [SYS_CPU] = C_SYS } },
	[D_C2C] = { 2, TTI_PATH_DIS, 1, { [NVL_NVS] = D_C2C, [NVL_DEV] = E_C2C } },
	[D_P2C] = { 2,
		    TTI_PATH_DIS,
		    1,
		    { [PCI_PCI] = D_P2C, [PCI_DEV] = E_PHB, [PCI_NIC] = E_P2C } },
	[D_PHB] = { 3,
		    TTI_PATH_DIS,
		    1,
		    { [NVL_NVS] = D_PHB,
		      [NVL_DEV] = E_PHB,
		      [PCI_PCI] = D_PHB,
		      [PCI_DEV] = E_PHB,
		      [PCI_NIC] = E_PHB } },
	[D_SYS] = { 4,
		    TTI_PATH_DIS,
		    2,
		    { [NVL_NVS] = D_SYS,
		      [NVL_DEV] = E_SYS,
		      [PCI_PCI] = D_SYS,
		      [PCI_DEV] = E_SYS,
		      [PCI_NIC] = E_SYS } },
	[E_NVL] = { 1,
		    TTI_PATH_NVL,
		    0,
		    { [TO_ENDPOINT] = E_NVL, [NVL_NVS] = M_NVS, [NVL_DEV] = E_NVB } },
	[E_NVB] = { 2, TTI_PATH_NVB, 0, { [TO_ENDPOINT] = E_NVB } },
	[E_C2C] = { 3, TTI_PATH_C2C, 0, { [TO_ENDPOINT] = E_C2C } },
	[E_PIX] = { 4, TTI_PATH_PIX, 0, { [TO_ENDPOINT] = E_PIX } },
	[E_PXB] = { 5, TTI_PATH_PXB, 0, { [TO_ENDPOINT] = E_PXB } },
	[E_P2C] = { 6, TTI_PATH_P2C, 0, { [TO_ENDPOINT] = E_P2C } },
	[E_PHB] = { 7, TTI_PATH_PHB, 0, { [TO_ENDPOINT] = E_PHB } },
	[E_SYS] = { 8, TTI_PATH_SYS, 0, { [TO_ENDPOINT] = E_SYS } },
};

static bool is_cpu(enum tti_node_type type)
{
	return type == TTI_NODE_CPU || type == TTI_NODE_PKG;
}

static enum tti_way_kind kind_of_end(enum tti_node_type from, enum tti_node_type to)
{
	if (from == TTI_NODE_GPU && to == TTI_NODE_DEV)
		return OFF_GPU;
	if (from == TTI_NODE_NET && to == TTI_NODE_NIC)
		return OFF_NET;
	if (from == TTI_NODE_HOST && to == TTI_NODE_CPU)
		return OFF_HOST;
	if ((from == TTI_NODE_DEV && to == TTI_NODE_GPU) ||
	    (from == TTI_NODE_NIC && to == TTI_NODE_NET) ||
	    (from == TTI_NODE_CPU && to == TTI_NODE_HOST))
		return TO_ENDPOINT;
	return NO_KIND;
}

static enum tti_way_kind kind_of_pci(enum tti_node_type from, enum tti_node_type to)
{
	if (from != TTI_NODE_DEV && from != TTI_NODE_NIC && from != TTI_NODE_PCI &&
	    from != TTI_NODE_CPU)
		return NO_KIND;
	if (to == TTI_NODE_PCI)
		return PCI_PCI;
	if (to == TTI_NODE_DEV)
		return PCI_DEV;
	if (to == TTI_NODE_NIC)
		return PCI_NIC;
	return to == TTI_NODE_CPU ? PCI_CPU : NO_KIND;
}

static enum tti_way_kind kind_of_nvlink(enum tti_node_type from, enum tti_node_type to)
{
	if (from != TTI_NODE_DEV && from != TTI_NODE_NVS && from != TTI_NODE_CPU)
		return NO_KIND;
	if (to == TTI_NODE_NVS)
		return NVL_NVS;
	if (to == TTI_NODE_DEV)
		return NVL_DEV;
	return to == TTI_NODE_CPU ? NVL_CPU : NO_KIND;
}

enum tti_way_kind tti_way_kind(const struct tti_graph *graph, const struct tti_topo_link *link)
{
	const enum tti_node_type from = graph->nodes[link->from].type;
	const enum tti_node_type to = graph->nodes[link->to].type;

	switch (link->type) {
	case TTI_LINK_LOC:
		/* Between what PCI joins it is a PCI link that is never the limit. */
		if (kind_of_end(from, to) == NO_KIND)
			return kind_of_pci(from, to);
		return kind_of_end(from, to);
	case TTI_LINK_NET:
		return kind_of_end(from, to);
	case TTI_LINK_NVL:
		return kind_of_nvlink(from, to);
	case TTI_LINK_C2C:
		if (from == TTI_NODE_DEV && to == TTI_NODE_CPU)
			return C2C_CPU;
		return from == TTI_NODE_CPU && to == TTI_NODE_DEV ? C2C_DEV : NO_KIND;
	case TTI_LINK_PCI:
		return kind_of_pci(from, to);
	case TTI_LINK_SYS:
		return is_cpu(from) && is_cpu(to) ? SYS_CPU : NO_KIND;
	}
	return NO_KIND;
}
