/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_CLUSTER_H
#define TTI_TOPO_CLUSTER_H

/* Many hosts as one view. Hosts that are wired alike are one kind, whose graph and
 * paths are kept once; a host itself is its name, its kind and what is its own (the
 * GUIDs and addresses of its NICs). 10,000 hosts of 4 kinds are 4 graphs.
 *
 * Rails and switch groups: which NICs of different hosts sit on one network or one
 * leaf switch. From a file, from rail= in the XML, from subnets, from GUIDs, else from
 * the order of NICs; the view says which.
 *
 * Owner: tti_cluster_free(). Threads: one at a time while adding, then any. */

#include "topo/paths.h"

struct tti_cluster_kind {
	struct tti_xml_doc *doc; /* without what differs from host to host          */
	struct tti_graph *graph;
	struct tti_paths *paths;
	uint64_t hash; /* of the doc; equal hashes are compared whole               */
	uint32_t nhosts;
};

enum tti_rail_source {
	TTI_RAIL_FILE,
	TTI_RAIL_XML,
	TTI_RAIL_SUBNET,
	TTI_RAIL_GUID,
	TTI_RAIL_ORDER,
};

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
};

struct tti_cluster {
	struct tti_arena arena;
	struct tti_cluster_kind *kinds;
	struct tti_cluster_host *hosts;
	struct tti_cluster_nic *nics;
	uint32_t nkinds, nhosts, nnics, nrails, ngroups, ndomains;
	enum tti_rail_source rail_source;
	struct tti_cluster_build *build; /* while adding                          */
};

TUTTI_CHECKED tutti_status tti_cluster_create(struct tti_cluster **out);
void tti_cluster_free(struct tti_cluster *cluster);

/* Add a host; the document is checked (tti_schema_check) and stays the caller's.
 * TUTTI_EINVAL: the name is taken. */
TUTTI_CHECKED tutti_status tti_cluster_add(struct tti_cluster *cluster, const char *name,
					   const struct tti_xml_doc *doc);
/* Add `count` hosts NAME0, NAME1, ... of one document. */
TUTTI_CHECKED tutti_status tti_cluster_add_many(struct tti_cluster *cluster, const char *name,
						uint32_t count, const struct tti_xml_doc *doc);
/* Rails and groups from a file: lines of "HOST NIC RAIL [GROUP]", * for any host,
 * # begins a comment. TUTTI_EINVAL with file and line. */
TUTTI_CHECKED tutti_status tti_cluster_read_rails(struct tti_cluster *cluster, const char *path);
/* No more hosts: rails, groups and domains are found. */
TUTTI_CHECKED tutti_status tti_cluster_seal(struct tti_cluster *cluster);

#endif
