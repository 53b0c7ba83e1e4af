/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/paths/path_state.h"

#define TTI_AT_no TTI_AT_START
#define ROW(name, place, type, rank, end, nvs, dev, nvl_cpu, c2c_dev, c2c_cpu, pci, pci_dev, nic, \
	    pci_cpu, sys)                                                                         \
	[TTI_AT_##name] = { place,                                                                \
			    TTI_PATH_##type,                                                      \
			    rank,                                                                 \
			    { TTI_AT_##end, TTI_AT_##nvs, TTI_AT_##dev, TTI_AT_##nvl_cpu,         \
			      TTI_AT_##c2c_dev, TTI_AT_##c2c_cpu, TTI_AT_##pci, TTI_AT_##pci_dev, \
			      TTI_AT_##nic, TTI_AT_##pci_cpu, TTI_AT_##sys } },

const struct tti_path_state_rule tti_path_state_rules[TTI_PATH_NSTATES] = {
	[TTI_AT_START] = { .type = TTI_PATH_LOC,
			   .next = { [TTI_HOP_OFF_GPU] = TTI_AT_S_DEV,
				     [TTI_HOP_OFF_NET] = TTI_AT_S_NIC,
				     [TTI_HOP_OFF_HOST] = TTI_AT_S_CPU } },
#include "topo/paths/path_state.def"
};
#undef ROW

static bool is_cpu(enum tti_node_type type)
{
	return type == TTI_NODE_CPU || type == TTI_NODE_PKG;
}

static enum tti_path_hop hop_of_end(enum tti_node_type from, enum tti_node_type to)
{
	if (from == TTI_NODE_GPU && to == TTI_NODE_DEV)
		return TTI_HOP_OFF_GPU;
	if (from == TTI_NODE_NET && to == TTI_NODE_NIC)
		return TTI_HOP_OFF_NET;
	if (from == TTI_NODE_HOST && to == TTI_NODE_CPU)
		return TTI_HOP_OFF_HOST;
	if ((from == TTI_NODE_DEV && to == TTI_NODE_GPU) ||
	    (from == TTI_NODE_NIC && to == TTI_NODE_NET) ||
	    (from == TTI_NODE_CPU && to == TTI_NODE_HOST))
		return TTI_HOP_TO_ENDPOINT;
	return TTI_HOP_NONE;
}

static enum tti_path_hop hop_of_pci(enum tti_node_type from, enum tti_node_type to)
{
	if (from != TTI_NODE_DEV && from != TTI_NODE_NIC && from != TTI_NODE_PCI &&
	    from != TTI_NODE_CPU)
		return TTI_HOP_NONE;
	if (to == TTI_NODE_PCI)
		return TTI_HOP_PCI_PCI;
	if (to == TTI_NODE_DEV)
		return TTI_HOP_PCI_DEV;
	if (to == TTI_NODE_NIC)
		return TTI_HOP_PCI_NIC;
	return to == TTI_NODE_CPU ? TTI_HOP_PCI_CPU : TTI_HOP_NONE;
}

static enum tti_path_hop hop_of_nvlink(enum tti_node_type from, enum tti_node_type to)
{
	if (from != TTI_NODE_DEV && from != TTI_NODE_NVS && from != TTI_NODE_CPU)
		return TTI_HOP_NONE;
	if (to == TTI_NODE_NVS)
		return TTI_HOP_NVL_NVS;
	if (to == TTI_NODE_DEV)
		return TTI_HOP_NVL_DEV;
	return to == TTI_NODE_CPU ? TTI_HOP_NVL_CPU : TTI_HOP_NONE;
}

enum tti_path_hop tti_path_state_hop(const struct tti_graph *graph,
				     const struct tti_topo_link *link)
{
	const enum tti_node_type from = graph->nodes[link->from].type;
	const enum tti_node_type to = graph->nodes[link->to].type;

	switch (link->type) {
	case TTI_LINK_LOC:
		/* Between devices on PCI it is a PCI link that is never the limit. */
		if (hop_of_end(from, to) == TTI_HOP_NONE)
			return hop_of_pci(from, to);
		return hop_of_end(from, to);
	case TTI_LINK_NET:
		return hop_of_end(from, to);
	case TTI_LINK_NVL:
		return hop_of_nvlink(from, to);
	case TTI_LINK_C2C:
		if (from == TTI_NODE_DEV && to == TTI_NODE_CPU)
			return TTI_HOP_C2C_CPU;
		return from == TTI_NODE_CPU && to == TTI_NODE_DEV ? TTI_HOP_C2C_DEV : TTI_HOP_NONE;
	case TTI_LINK_PCI:
		return hop_of_pci(from, to);
	case TTI_LINK_SYS:
		return is_cpu(from) && is_cpu(to) ? TTI_HOP_SYS_CPU : TTI_HOP_NONE;
	}
	return TTI_HOP_NONE;
}
