/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_GRAPH_GRAPH_H
#define TTI_TOPO_GRAPH_GRAPH_H

/* The topology as a graph: what is there, what is linked to what, how fast.
 *
 *      HOST      GPU            GPU     LOC   inside a device
 *        │LOC      │LOC           │LOC  NVL   NVLink, xGMI; several are one link
 *      CPU 0     DEV ──NVL── NVS ─DEV   C2C   GPU to its CPU
 *        │PCI      │PCI                 PCI   one PCIe link
 *        └── PCI ──┴── PCI ── NIC       SYS   between CPUs
 *                              │NET     NET   a port and its cable
 *                             NET
 *
 * GPU, HOST and NET are the endpoints: where the data of a rank is, and where it
 * leaves the machine. A DEV is the device that one or several GPU endpoints
 * share. A CPU is a NUMA node (hwloc: NUMANode), a PKG a socket of several NUMA
 * nodes (Package). A graph may hold several hosts: an NVLink domain.
 *
 * A graph is sealed: built once, checked (tti_graph_check), never changed.
 * Owner: tti_graph_free(). It borrows nothing; the document need not outlive it.
 * Threads: any may read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "topo/graph/model.h"
#include "topo/tree/xml.h"
#include "util/arena.h"

#define TTI_NODE_MAP(X) \
	X(GPU, "GPU")   \
	X(HOST, "HOST") \
	X(NET, "NET")   \
	X(DEV, "DEV")   \
	X(PCI, "PCI")   \
	X(NVS, "NVS")   \
	X(CPU, "CPU")   \
	X(PKG, "PKG")   \
	X(NIC, "NIC")

enum tti_node_type {
#define X(name, text) TTI_NODE_##name,
	TTI_NODE_MAP(X)
#undef X
};

#define TTI_LINK_MAP(X) \
	X(LOC, "LOC")   \
	X(NVL, "NVL")   \
	X(C2C, "C2C")   \
	X(PCI, "PCI")   \
	X(SYS, "SYS")   \
	X(NET, "NET")

enum tti_link_type {
#define X(name, text) TTI_LINK_##name,
	TTI_LINK_MAP(X)
#undef X
};

const char *tti_node_type_name(enum tti_node_type type);
const char *tti_link_type_name(enum tti_link_type type);

#define TTI_NODE_NONE UINT32_MAX

struct tti_cpu_info {
	int64_t numaid;       /* -1: unknown                                    */
	int package;          /* its first socket, counted from 0 in its host   */
	int npackages;        /* sockets that its CPUs are on                   */
	bool package_assumed; /* the file does not say which socket             */
	const char *affinity; /* mask as in the XML, "" if none                 */
	const char *arch, *vendor;
	int family, model; /* as written, -1: unknown                           */
	int c2c_sm;        /* compute capability x 10 of a GPU on it by C2C, 0  */
	int64_t mem_mib;   /* size of its memory, -1: unknown                     */
	double mem_gbps, mem_ns;
	bool mem_measured, mem_known; /* known: by the data sheet of the CPU    */
};

struct tti_pci_info {
	uint64_t busid;
	uint32_t class_code; /* 0x060400                                        */
	uint16_t vendor, device, subsystem_vendor, subsystem_device;
	double gts;       /* of the link above it, 0: not stated                   */
	int width;        /* 0: not stated                                         */
	const char *name; /* by the list of PCI ids; NULL: not asked, or unknown */
};

struct tti_gpu_info {
	int dev, rank;   /* -1: none                                             */
	int sm;          /* compute capability x 10, 0: unknown                  */
	const char *gcn; /* AMD's name, NULL                                    */
	bool gdr;
	bool bare; /* known from PCI alone: no driver, no <gpu>                 */
};

struct tti_net_info {
	int dev, port;
	int64_t speed_mbps;  /* as stated, -1 or 0: not known, then 10 Gb/s counts */
	int rail, plane;     /* -1: not stated                                   */
	uint64_t guid, asic; /* ports of one card have one asic                 */
	int maxconn;
	bool gdr, coll;
	bool is_virtual; /* a bridge, a tunnel, a container's end, by its name */
	double latency_ns;
};

struct tti_node {
	enum tti_node_type type;
	uint32_t host;       /* index into hosts                                */
	uint32_t parent;     /* towards the CPU: of GPU its DEV, of NET its NIC ... */
	uint32_t first_link; /* links[first_link .. + nlinks) leave it          */
	uint32_t nlinks;
	const char *name; /* "GPU0", "mlx5_0", "CPU1", "0000:3b:00.0"; unique
			   * in its host among nodes of its type */
	/* Unique among all nodes of its type: "HOST/GPU0", by the host's host_hash, in a
	 * graph of several hosts; else its name. */
	const char *full_name;
	uint32_t line;           /* of the file, 0                                     */
	uint32_t element;        /* its number, by tti_xml_walk() from the root on; NONE */
	struct tti_pci_info pci; /* DEV, PCI, NIC                               */
	union {
		struct tti_cpu_info cpu;
		struct tti_gpu_info gpu; /* GPU, and DEV: its first GPU's       */
		struct tti_net_info net;
	};
};

/* One direction. links[link.reverse] is the other. */
struct tti_topo_link {
	uint32_t from, to, reverse;
	enum tti_link_type type;
	uint16_t count; /* links in one: NVLinks; else 1                        */
	float bw_gbps;  /* > 0                                                  */
	float latency_ns;
};

/* What tti_graph_build() left out or assumed. Lint shows the notes. */
enum tti_note_kind {
	TTI_NOTE_ZERO_LINK,      /* an <nvlink count="0">, a link of 0 GB/s     */
	TTI_NOTE_NO_TARGET,      /* a link to something that is not there       */
	TTI_NOTE_ONE_WAY,        /* NVLink stated by one end only               */
	TTI_NOTE_UNEVEN,         /* ... or with different counts                */
	TTI_NOTE_ASSUMED_SPEED,  /* a PCI speed or width that is not stated     */
	TTI_NOTE_ASSUMED_NET,    /* a net speed that is not stated              */
	TTI_NOTE_ASSUMED_SOCKET, /* which NUMA nodes share a socket             */
	TTI_NOTE_ASSUMED_NVLINK, /* the speed of NVLinks of an unknown GPU      */
	TTI_NOTE_BUSID_TWICE,    /* a PCI function with the bus id of another   */
};
struct tti_note {
	enum tti_note_kind kind;
	uint32_t node;    /* where                                              */
	uint32_t peer;    /* the other end of a link, TTI_NODE_NONE: none       */
	uint32_t line;    /* of the element, 0                                  */
	const char *text; /* one sentence                                       */
};

struct tti_graph {
	struct tti_arena arena;
	enum tti_model model;
	struct tti_node *nodes;
	struct tti_topo_link *links;
	uint32_t nnodes, nlinks;
	/* By type, in the order of names: by_type[TTI_NODE_GPU][i]. */
	uint32_t *by_type[TTI_NODE_NIC + 1];
	uint32_t ntype[TTI_NODE_NIC + 1];
	const char **hosts; /* tutti_host or host_hash of each, "" for the one without */
	uint32_t nhosts;
	uint32_t nsockets; /* of all hosts                              */
	struct tti_note *notes;
	uint32_t nnotes;
	const char *source;
};

/* `doc` has passed tti_schema_check(). Each NUMA node that has CPUs gets a HOST. */
TUTTI_CHECKED tutti_status tti_graph_build(const struct tti_xml_doc *doc, enum tti_model model,
					   struct tti_graph **out);
void tti_graph_free(struct tti_graph *graph);

/* Checks the invariants; TUTTI_EINTERNAL with the first breach. Indices are in range, each
 * link has a reverse of its type, links are in CSR order, bandwidths are finite and > 0, no
 * two links of one type join the same two nodes, parents make no cycle, only types that
 * may be linked are, every endpoint hangs below what it must, and names are unique. */
TUTTI_CHECKED tutti_status tti_graph_check(const struct tti_graph *graph);

/* The order of names as that of strcmp(), but digits count as numbers: GPU9 is before GPU10.
 * 0: the same name. */
int tti_name_order(const char *a, const char *b);

/* What model.h knows of a CPU. */
struct tti_cpu_model tti_graph_cpu_model(const struct tti_cpu_info *cpu);

/* Find a node by its full name, or by a name that only one host has. TTI_NODE_NONE: there is
 * none, or several hosts have one. */
uint32_t tti_graph_find(const struct tti_graph *graph, enum tti_node_type type, const char *name);
/* Whether a node is a GPU of AMD, or the device of one. */
bool tti_graph_is_amd(const struct tti_graph *graph, uint32_t node);
/* The CPU that a node hangs below; a CPU itself; NONE. */
uint32_t tti_graph_cpu_of(const struct tti_graph *graph, uint32_t node);
/* The link from a to b of that type, or NULL. */
const struct tti_topo_link *tti_graph_link(const struct tti_graph *graph, uint32_t from,
					   uint32_t to, enum tti_link_type type);

#endif
