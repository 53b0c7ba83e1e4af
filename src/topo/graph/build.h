/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_GRAPH_BUILD_H
#define TTI_TOPO_GRAPH_BUILD_H

/* A graph under construction.
 *
 *   graph_build.c   runs the stages in their order
 *   build_cpu.c     hosts, NUMA nodes, sockets, host endpoints
 *   build_socket.c  which NUMA nodes share a socket, where nothing says so
 *   build_pci.c     the tree below the CPUs: switches, GPUs, NICs, nets
 *   build_nvlink.c  links that cross the tree: NVLink, C2C, between switches
 *   build_seal.c    names, links by node (CSR), nodes by type
 *   build.c         what all stages use
 *
 * Owner: tti_graph_build(). Threads: one. */

#include "topo/graph/graph.h"
#include "topo/tree/intern.h"
#include "util/vec.h"

/* One direction of a link. */
struct tti_half {
	uint32_t from, to;
	enum tti_link_type type;
	uint32_t count;
	double bw_gbps, latency_ns;
};

struct tti_map_slot {
	uint64_t a, b;
	uint32_t value;
	bool taken;
};
/* (a, b) -> value; the first value of a key stays. */
struct tti_map {
	struct tti_map_slot *slots;
	size_t n, room;
};
#define TTI_MAP_NONE UINT32_MAX
bool tti_map_put(struct tti_map *map, uint64_t a, uint64_t b, uint32_t value);
uint32_t tti_map_get(const struct tti_map *map, uint64_t a, uint64_t b);
void tti_map_release(struct tti_map *map);

/* A <pci>, <gpu> or <cpu> and its node. */
struct tti_made {
	const struct tti_xml *xml;
	uint32_t node;
};

struct tti_build {
	const struct tti_xml_doc *doc;
	struct tti_graph *graph;
	TTI_VEC(struct tti_node) nodes;
	TTI_VEC(struct tti_half) halves;
	TTI_VEC(struct tti_note) notes;
	TTI_VEC(const char *) hosts;
	TTI_VEC(struct tti_made) cpus;
	TTI_VEC(struct tti_made) gpus;  /* the first <gpu> of each DEV          */
	TTI_VEC(struct tti_made) links; /* <pcilink> and the node of its <pci>  */
	struct tti_map host_of;         /* (host_hash, 0)                       */
	struct tti_map by_busid;        /* (host, TTI_BUILD_KEY) -> DEV, PCI    */
	struct tti_map functions;       /* (host, bus id) -> line of its <pci>  */
	struct tti_intern virtuals;     /* host, dev, port and name of each net below a <cpu> */
	struct tti_map cards;           /* (parent, card) -> NIC                */
	struct tti_map numbers;         /* (element, 0) -> its number           */
	struct tti_map fabrics;         /* (hash of tutti_fabric, 0) -> NVS     */
};

#define TTI_BUILD_KEY(type, busid) ((busid) << 4 | (uint64_t)(type))

/* Less bandwidth, a kilobyte a second, is no link. */
#define TTI_BUILD_LEAST_GBPS 1e-6

/* The stages. */
TUTTI_CHECKED tutti_status tti_build_cpus(struct tti_build *build);
TUTTI_CHECKED tutti_status tti_build_sockets(struct tti_build *build);
TUTTI_CHECKED tutti_status tti_build_pci(struct tti_build *build, const struct tti_made *cpu);
TUTTI_CHECKED tutti_status tti_build_nvlinks(struct tti_build *build);
TUTTI_CHECKED tutti_status tti_build_pcilinks(struct tti_build *build);
TUTTI_CHECKED tutti_status tti_build_seal(struct tti_build *build);

/* What the stages share. TUTTI_ENOMEM if there is no memory. */
TUTTI_CHECKED tutti_status tti_build_no_memory(const struct tti_build *build);

/* A new node without a parent. */
TUTTI_CHECKED TUTTI_PRINTF(6, 7) tutti_status
	tti_build_node(struct tti_build *build, enum tti_node_type type, const struct tti_xml *xml,
		       uint32_t host, uint32_t *out, const char *name, ...);
TUTTI_CHECKED tutti_status tti_build_half(struct tti_build *build, struct tti_half half);
/* Both directions are the same. */
TUTTI_CHECKED tutti_status tti_build_link(struct tti_build *build, struct tti_half half);
/* An order of halves for qsort(): by ends. */
int tti_build_by_ends(const void *left, const void *right);
TUTTI_CHECKED TUTTI_PRINTF(6, 7) tutti_status
	tti_build_note(struct tti_build *build, enum tti_note_kind kind, uint32_t node,
		       uint32_t peer, const struct tti_xml *xml, const char *fmt, ...);
/* Assume the package of n > 0 CPUs of one host, sorted by NUMA id, which nothing states; and how
 * many NUMA nodes a socket has, with those that are not among these CPUs. */
TUTTI_CHECKED tutti_status tti_build_guess_sockets(struct tti_build *build,
						   const struct tti_made *at, size_t n,
						   int *per_socket_out);
/* An attribute as text that the graph owns; `missing` if it is not there. */
TUTTI_CHECKED tutti_status tti_build_text(struct tti_build *build, const struct tti_xml *xml,
					  const char *attr, const char *missing, const char **out);

#endif
