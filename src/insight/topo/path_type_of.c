/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/topo/path_type_of.h"

/* A walk in the graph: nodes 0 .. n, link i leads from node i to node i + 1. */
struct walk {
	const struct tti_graph *graph;
	const uint32_t *hops;
	size_t n;
};

static const struct tti_topo_link *link_at(const struct walk *walk, size_t i)
{
	return &walk->graph->links[walk->hops[i]];
}

static uint32_t node_at(const struct walk *walk, size_t i)
{
	return i < walk->n ? link_at(walk, i)->from : link_at(walk, walk->n - 1)->to;
}

static enum tti_node_type type_at(const struct walk *walk, size_t i)
{
	return walk->graph->nodes[node_at(walk, i)].type;
}

/* Whether an endpoint hangs on this device by this link. */
static bool is_end(enum tti_node_type endpoint, enum tti_node_type device, enum tti_link_type link)
{
	if (link != TTI_LINK_LOC && link != TTI_LINK_NET)
		return false;
	return (endpoint == TTI_NODE_GPU && device == TTI_NODE_DEV) ||
	       (endpoint == TTI_NODE_HOST && device == TTI_NODE_CPU) ||
	       (endpoint == TTI_NODE_NET && device == TTI_NODE_NIC);
}

static bool is_cpu(enum tti_node_type type)
{
	return type == TTI_NODE_CPU || type == TTI_NODE_PKG;
}

/* The kind of connection between two devices, or between a device and a CPU. */
enum side {
	SIDE_NONE, /* the device is the CPU: a HOST */
	SIDE_PCI,
	SIDE_C2C,
	SIDE_NVL,
	SIDE_BAD,
};

/* Nodes strictly between the ends of a side. */
struct inner {
	size_t pci, dev, nvs;
};

/* The links from node `first` to node `last`. */
static enum side side_of(const struct walk *walk, size_t first, size_t last, struct inner *inner)
{
	const size_t n = last - first;
	size_t pci = 0, nvl = 0;

	*inner = (struct inner){ 0 };
	if (n == 0)
		return SIDE_NONE;
	for (size_t i = first; i < last; i++) {
		const enum tti_link_type type = link_at(walk, i)->type;

		pci += type == TTI_LINK_PCI || type == TTI_LINK_LOC;
		nvl += type == TTI_LINK_NVL;
	}
	for (size_t i = first + 1; i < last; i++) {
		inner->pci += type_at(walk, i) == TTI_NODE_PCI;
		inner->dev += type_at(walk, i) == TTI_NODE_DEV;
		inner->nvs += type_at(walk, i) == TTI_NODE_NVS;
	}
	if (pci == n && inner->pci == n - 1)
		return SIDE_PCI;
	if (type_at(walk, first) == TTI_NODE_NIC || type_at(walk, last) == TTI_NODE_NIC)
		return SIDE_BAD;
	if (nvl == n && inner->dev + inner->nvs == n - 1)
		return SIDE_NVL;
	return n == 1 && link_at(walk, first)->type == TTI_LINK_C2C ? SIDE_C2C : SIDE_BAD;
}

/* Devices at nodes 1 and n - 1, no CPU between or at them. */
static enum tti_path_type type_beside_cpus(const struct walk *walk)
{
	struct inner inner;

	switch (side_of(walk, 1, walk->n - 1, &inner)) {
	case SIDE_PCI:
		return inner.pci <= 1 ? TTI_PATH_PIX : TTI_PATH_PXB;
	case SIDE_NVL:
		return inner.dev == 0 ? TTI_PATH_NVL : inner.dev == 1 ? TTI_PATH_NVB : TTI_PATH_DIS;
	case SIDE_NONE:
	case SIDE_C2C:
	case SIDE_BAD:
		break;
	}
	return TTI_PATH_DIS;
}

/* Nodes `first` to `last` are the CPUs on the walk. */
static enum tti_path_type type_over_cpus(const struct walk *walk, size_t first, size_t last)
{
	struct inner inner[2];
	const enum side a = side_of(walk, 1, first, &inner[0]);
	const enum side b = side_of(walk, last, walk->n - 1, &inner[1]);

	if (a == SIDE_BAD || b == SIDE_BAD || inner[0].dev || inner[1].dev ||
	    type_at(walk, first) == TTI_NODE_PKG || type_at(walk, last) == TTI_NODE_PKG)
		return TTI_PATH_DIS;
	for (size_t i = first; i < last; i++)
		if (!is_cpu(type_at(walk, i + 1)) || link_at(walk, i)->type != TTI_LINK_SYS)
			return TTI_PATH_DIS;
	if (first < last)
		return TTI_PATH_SYS;
	if (a != SIDE_PCI && b != SIDE_PCI)
		return TTI_PATH_C2C;
	if ((a == SIDE_C2C && b == SIDE_PCI && type_at(walk, walk->n) == TTI_NODE_NET) ||
	    (b == SIDE_C2C && a == SIDE_PCI && type_at(walk, 0) == TTI_NODE_NET))
		return TTI_PATH_P2C;
	return TTI_PATH_PHB;
}

enum tti_path_type tti_path_type_of(const struct tti_graph *graph, const uint32_t *hops,
				    size_t nhops)
{
	const struct walk walk = { .graph = graph, .hops = hops, .n = nhops };
	size_t first = 1, last = nhops - 1;

	if (nhops == 0)
		return TTI_PATH_LOC;
	if (nhops == 1 || !is_end(type_at(&walk, 0), type_at(&walk, 1), link_at(&walk, 0)->type) ||
	    !is_end(type_at(&walk, nhops), type_at(&walk, nhops - 1),
		    link_at(&walk, nhops - 1)->type))
		return TTI_PATH_DIS;
	if (nhops == 2)
		return TTI_PATH_LOC;
	while (first < nhops && !is_cpu(type_at(&walk, first)))
		first++;
	while (last > 0 && !is_cpu(type_at(&walk, last)))
		last--;
	return first < nhops ? type_over_cpus(&walk, first, last) : type_beside_cpus(&walk);
}
