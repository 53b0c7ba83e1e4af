/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PATHS_PATHS_H
#define TTI_TOPO_PATHS_PATHS_H

/* The best path between every two endpoints (GPU, HOST, NET) of a graph, as the
 * wires run. routes.h says what a process may use of it.
 *
 * The best path has the lowest type, then the most bandwidth (of the narrowest link), then
 * the fewest hops, then the least latency, then the smallest sequence of nodes (by host, type
 * and name). So it is exact and does not depend on the order of anything in the graph.
 *
 * The type of a path from s to t. The links between an endpoint and its device (GPU
 * and DEV, HOST and CPU, NET and NIC) do not count:
 *   LOC  s is t, or both are on one device: two ports of a NIC, two GPUs of one DEV,
 *        two HOSTs of one CPU
 *   NVL  NVLinks only, through nothing but NVS
 *   NVB  NVLinks only, through exactly one other DEV
 *   C2C  over one CPU. Each end is on it, or reaches it by one C2C link or by NVLinks
 *        through nothing but NVS: GPU to HOST, HOST to GPU, GPU to GPU
 *   PIX  PCI links through at most one PCI node, no CPU
 *   PXB  PCI links through several, no CPU
 *   P2C  over one CPU, C2C between it and the GPU, PCI links between it and a NET
 *   PXN  NVLinks to another GPU, from there to a NIC: routes.h makes it
 *   PHB  over one CPU, one side of it by PCI links (HOST: that CPU is the end)
 *   SYS  over several CPUs in a row, joined by SYS links, maybe through PKGs
 *   NET  no path inside, but both ends reach a NET. Bandwidth and latency are those of the
 *        best paths between each end and one NET (an end that is a NET: of its own link).
 *        There are no hops
 *   DIS  none
 * Nothing else is a path. A path does not lead through GPU, HOST, NET or NIC nodes, through a
 * DEV only for NVB, and visits no node twice. It does not climb from PCI to a CPU, go down and
 * climb again. Between a device and a CPU it has PCI links, or C2C, or NVLinks, but no mixture.
 * A link of type LOC between PCI nodes counts as PCI. A path and its reverse have the same type.
 *
 * All pairs are kept in a table if that takes at most TTI_PATHS_BYTES: about 1,500
 * endpoints. With more, `at` is NULL, and tti_paths_get() finds all paths from a node
 * when the first of them is asked for, until TTI_PATHS_BYTES are in use. A caller that wants
 * all pairs looks at `at` first.
 *
 * Owner: tti_paths_free(). The graph must outlive it.
 * Threads: any may read. */

#include "topo/graph/graph.h"

#define TTI_PATH_MAP(X) \
	X(LOC, "LOC")   \
	X(NVL, "NVL")   \
	X(NVB, "NVB")   \
	X(C2C, "C2C")   \
	X(PIX, "PIX")   \
	X(PXB, "PXB")   \
	X(P2C, "P2C")   \
	X(PXN, "PXN")   \
	X(PHB, "PHB")   \
	X(SYS, "SYS")   \
	X(NET, "NET")   \
	X(DIS, "DIS")

enum tti_path_type {
#define X(name, text) TTI_PATH_##name,
	TTI_PATH_MAP(X)
#undef X
};

const char *tti_path_type_name(enum tti_path_type type);
/* false: no such type. */
bool tti_path_type_parse(const char *text, enum tti_path_type *out);

#define TTI_PATHS_BYTES ((size_t)80 << 20)

struct tti_path {
	uint32_t first_hop; /* hops[first_hop .. + nhops): indices of links, in order */
	uint16_t nhops;
	uint8_t type;
	float bw_gbps;    /* of the narrowest link; to itself TTI_LOC_GBPS; DIS: 0 */
	float latency_ns; /* sum                                                  */
};

struct tti_paths {
	const struct tti_graph *graph;
	uint32_t *endpoints; /* node indices: GPUs, then HOSTs, then NETs          */
	uint32_t n;
	uint32_t *index;     /* of a node in endpoints, TTI_NODE_NONE: no endpoint */
	struct tti_path *at; /* at[from * n + to]; NULL: too many                */
	uint32_t *hops;      /* all hop lists of the table                       */
	size_t nhops;
	struct tti_paths_lazy *lazy; /* in place of the table                    */
};

/* TUTTI_EINVAL: a path of more than 65,535 links. */
TUTTI_CHECKED tutti_status tti_paths_build(const struct tti_graph *graph, struct tti_paths **out);
/* The same without paths through another GPU. */
TUTTI_CHECKED tutti_status tti_paths_build_without_nvb(const struct tti_graph *graph,
						       struct tti_paths **out);
void tti_paths_free(struct tti_paths *paths);

/* By node index; both nodes must be endpoints. NULL: there is no table and no memory for this
 * path, which the thread's error text says. */
const struct tti_path *tti_paths_get(const struct tti_paths *paths, uint32_t from, uint32_t to);
/* The links of that path, path->nhops of them, with or without a table. */
const uint32_t *tti_paths_hops(const struct tti_paths *paths, uint32_t from, uint32_t to);

/* Whether the paths from a node are known: always with a table, else if one was asked for. */
bool tti_paths_has(const struct tti_paths *paths, uint32_t from);

#endif
