/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_CLUSTER_CLUSTER_H
#define TTI_INSIGHT_CLUSTER_CLUSTER_H

/* Many hosts. Hosts that are wired the same way are of one kind, whose graph and paths are kept
 * once. A host itself is its name, its kind and what is its own: the GUIDs of its NICs and the
 * networks they are on. 10,000 hosts of 4 kinds are 4 graphs.
 *
 * Two hosts are of one kind if their documents are equal but for the order of elements and
 * attributes and for what is a host's own, which topo/tree/strip.c lists. Bus ids count: they
 * say which slot a device is in.
 *
 * Rails and switch groups: which NICs of different hosts are on one network or one leaf switch.
 * The sources are a file, rail= in the XML, subnets (tutti_subnet= of a <net>), GUIDs of switches
 * (tutti_switch= of a <net>), and the order of NICs. The first source that knows the rail of
 * every NIC counts, and rail_source says which it is.
 *
 * Owner: tti_cluster_free(). Threads: one at a time while adding, then any. */

#include "topo/paths/paths.h"
#include "topo/tree/intern.h"

/* One NIC port of a kind: a NET of its graph. */
struct tti_cluster_port {
	uint32_t node; /* kind->graph->nodes                                       */
	uint32_t slot; /* it is the slot-th NET of its host, counted by name       */
	double gbps;
};

struct tti_cluster_kind {
	struct tti_xml_doc *doc; /* without what differs from host to host          */
	struct tti_graph *graph;
	struct tti_paths *paths;
	uint64_t hash; /* of the canonical text; equal hashes are compared whole    */
	uint32_t nhosts, first_host;
	struct tti_cluster_port *ports; /* in the order of the graph's NETs           */
	uint32_t nports;
	uint32_t *net_port; /* i-th <net> of doc -> its port, NONE: not in the graph */
	uint32_t nnets;
};

enum tti_rail_source {
	TTI_RAIL_FILE,
	TTI_RAIL_XML,
	TTI_RAIL_SUBNET,
	TTI_RAIL_GUID,
	TTI_RAIL_ORDER,
};
/* "subnets", "the order of NICs". */
const char *tti_rail_source_name(enum tti_rail_source source);

struct tti_cluster_nic {
	uint64_t guid; /* 0: unknown                                            */
	int32_t rail;  /* index into the cluster's rails                        */
	int32_t group; /* switch group, -1: unknown                             */
};

struct tti_cluster_host {
	const char *name;
	uint32_t kind;
	uint32_t first_nic; /* nics[first_nic ..]: in the order of the kind's NETs */
	int32_t domain;     /* NVLink domain of several hosts, -1: none            */
	uint64_t hash;      /* host_hash: as stated, else of the name              */
};

struct tti_cluster_rail {
	const char *name; /* what its source calls it: "3", "10.0.3.0/24"         */
	uint32_t nnics;
	double gbps, slowest_gbps, fastest_gbps; /* of all its NICs, of one         */
};

struct tti_cluster_group {
	const char *name;
	uint32_t nnics;
};

struct tti_cluster_domain {
	const char *name; /* "UUID.CLIQUE" */
	uint32_t nhosts, ngpus;
};

struct tti_cluster {
	struct tti_arena arena;
	struct tti_intern names; /* of hosts: their numbers are their indices       */
	struct tti_cluster_kind *kinds;
	struct tti_cluster_host *hosts;
	struct tti_cluster_nic *nics;
	uint32_t nkinds, nhosts, nnics;
	/* From here on: known when sealed. */
	struct tti_cluster_rail *rails;
	struct tti_cluster_group *groups;
	struct tti_cluster_domain *domains;
	uint32_t nrails, ngroups, ndomains;
	enum tti_rail_source rail_source;
	const char **notes; /* what was assumed or left out, a sentence each         */
	uint32_t nnotes;
	struct tti_cluster_build *build; /* while adding                          */
};

/* The NVLink domain that all GPUs of a host name, "UUID.CLIQUE"; NULL: they name none, or
 * several. Borrowed of the document. */
const char *tti_cluster_fabric_of(const struct tti_xml_doc *doc);

TUTTI_CHECKED tutti_status tti_cluster_create(struct tti_cluster **out);
void tti_cluster_free(struct tti_cluster *cluster);

/* Add a host; the document is checked (tti_schema_check) and stays the caller's.
 * TUTTI_EINVAL: the name is taken, or is not printable ASCII without blanks. */
TUTTI_CHECKED tutti_status tti_cluster_add(struct tti_cluster *cluster, const char *name,
					   const struct tti_xml_doc *doc);
/* Add `count` hosts NAME0, NAME1, ... (NAME-0 after a digit) of one document. Their GUIDs are
 * unknown then. */
TUTTI_CHECKED tutti_status tti_cluster_add_many(struct tti_cluster *cluster, const char *name,
						uint32_t count, const struct tti_xml_doc *doc);
/* Rails and groups from a file: lines of "HOST NIC RAIL [GROUP]". HOST may hold * and ?
 * ("*" is any host), RAIL is a number, GROUP a word; # begins a comment. Of several
 * lines for a NIC the last counts. TUTTI_EINVAL with file and line. */
TUTTI_CHECKED tutti_status tti_cluster_read_rails(struct tti_cluster *cluster, const char *path);
/* No more hosts: rails, groups and domains are found. */
TUTTI_CHECKED tutti_status tti_cluster_seal(struct tti_cluster *cluster);

#endif
