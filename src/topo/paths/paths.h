/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PATHS_H
#define TTI_TOPO_PATHS_H

/* The best path between every two endpoints (GPU, HOST, NET) of a graph, as the
 * wires run. What a process may really use of it is for routes.h.
 *
 * Best is: lowest type, then most bandwidth (of the narrowest link), then fewest
 * hops, then least latency, then the smallest sequence of nodes (by host, type and
 * name): exact, and independent of the order of anything.
 *
 * The type of a way, from s to t; the links between an endpoint and its device (GPU
 * and DEV, HOST and CPU, NET and NIC) do not count:
 *   LOC  s is t, or both are on one device: two ports of a NIC, two GPUs of one DEV,
 *        two HOSTs of one CPU
 *   NVL  NVLinks only, through nothing but NVS
 *   NVB  NVLinks only, through exactly one other DEV
 *   C2C  over one CPU, which each end reaches by one C2C link, or by NVLinks through
 *        nothing but NVS, or is on: GPU to HOST, HOST to GPU, GPU to GPU
 *   PIX  PCI links through at most one PCI node, no CPU
 *   PXB  PCI links through several, no CPU
 *   P2C  over one CPU, C2C between it and the GPU, PCI links between it and a NET
 *   PXN  NVLinks to another GPU, from there to a NIC: routes.h makes it
 *   PHB  over one CPU, one side of it by PCI links (HOST: that CPU is the end)
 *   SYS  over several CPUs in a row, joined by SYS links, maybe through PKGs
 *   NET  no way inside, but both ends reach a NET: the widths and latencies are
 *        those of the best way (of a NET: its own link) between each end and one
 *        NET, no hops are given
 *   DIS  none
 * All else is not a way: ways do not lead through GPU, HOST, NET or NIC nodes, nor
 * through a DEV but for NVB, visit no node twice, do not climb from PCI to a CPU
 * and down and up again, and between a device and a CPU there are PCI links, or C2C,
 * or NVLinks, but no mixture. A link of type LOC between PCI nodes counts as PCI.
 * Every way and its reverse have one type.
 *
 * All pairs are kept in a table where that takes at most TTI_PATHS_BYTES: about 1,500
 * endpoints. With more, `at` is NULL and tti_paths_get() finds all paths from a node
 * when it is first asked for one, until TTI_PATHS_BYTES are in use. Whoever wants all pairs
 * looks at `at` first.
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
/* The same, but that no way leads through another GPU. */
TUTTI_CHECKED tutti_status tti_paths_build_without_nvb(const struct tti_graph *graph,
						       struct tti_paths **out);
void tti_paths_free(struct tti_paths *paths);

/* By node index; both must be endpoints. NULL: there is no table, and no memory for what
 * was asked (the thread's error text says so). */
const struct tti_path *tti_paths_get(const struct tti_paths *paths, uint32_t from, uint32_t to);
/* The links of that path, path->nhops of them, with or without a table. */
const uint32_t *tti_paths_hops(const struct tti_paths *paths, uint32_t from, uint32_t to);

/* Whether the paths from a node are there: with a table always, else if asked for before. */
bool tti_paths_has(const struct tti_paths *paths, uint32_t from);

#endif
