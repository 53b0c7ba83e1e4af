/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PATHS_H
#define TTI_TOPO_PATHS_H

/* The best path between every two endpoints (GPU, HOST, NET) of a graph, as the
 * wires run. What a process may really use of it is for routes.h.
 *
 * Best is: lowest type, then most bandwidth (of the narrowest link), then fewest
 * hops, then least latency, then the smallest sequence of node indices: exact, and
 * independent of the order of anything.
 *
 * The type of a way, from s to t, LOC links not counted:
 *   LOC  s is t, or both are the same device
 *   NVL  NVLinks only, through nothing but NVS
 *   NVB  NVLinks only, through exactly one other DEV
 *   C2C  C2C (and NVLink between a GPU and a CPU) to the near CPU
 *   PIX  PCI links through at most one PCI node, no CPU
 *   PXB  PCI links through several, no CPU
 *   P2C  C2C to a CPU and PCI links from it to a NIC, or the reverse
 *   PXN  NVLinks to another GPU, from there to a NIC: routes.h makes it
 *   PHB  a way over a CPU, or to one (HOST), over PCI links
 *   SYS  a SYS link
 *   NET  no way inside, but both ends reach a NET
 *   DIS  none
 * Ways do not lead through GPU, HOST, NET or NIC nodes, nor through a DEV but for
 * NVB. The link between a NIC and its NET is part of a way and counts as LOC.
 *
 * Owner: tti_paths_free(). The graph must outlive it.
 * Threads: any may read. */

#include "topo/graph.h"

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

struct tti_path {
	uint32_t first_hop; /* hops[first_hop .. + nhops): indices of links, in order */
	uint16_t nhops;
	uint8_t type;
	float bw_gbps;    /* of the narrowest link; LOC: TTI_LOC_GBPS; DIS: 0    */
	float latency_ns; /* sum                                                  */
};

struct tti_paths {
	const struct tti_graph *graph;
	uint32_t *endpoints; /* node indices: GPUs, then HOSTs, then NETs          */
	uint32_t n;
	uint32_t *index;     /* of a node in endpoints, TTI_NODE_NONE: no endpoint */
	struct tti_path *at; /* at[from * n + to]                                */
	uint32_t *hops;      /* all hop lists; equal lists may share              */
	size_t nhops;
};

TUTTI_CHECKED tutti_status tti_paths_build(const struct tti_graph *graph, struct tti_paths **out);
void tti_paths_free(struct tti_paths *paths);

/* By node index; both must be endpoints. */
const struct tti_path *tti_paths_get(const struct tti_paths *paths, uint32_t from, uint32_t to);

/* Hops join up from start to end, bandwidth, latency and type are those of the hops,
 * nothing is better in one direction than its reverse allows where links are symmetric.
 * TUTTI_EINTERNAL with the first breach. */
TUTTI_CHECKED tutti_status tti_paths_check(const struct tti_paths *paths);

/* The type of a way of links from one endpoint to another, by the rules above;
 * DIS if it is not a permitted way. */
enum tti_path_type tti_path_type_of(const struct tti_graph *graph, const uint32_t *hops,
				    size_t nhops);

#endif
