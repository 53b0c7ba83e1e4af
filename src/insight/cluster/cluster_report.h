/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_CLUSTER_CLUSTER_REPORT_H
#define TTI_INSIGHT_CLUSTER_CLUSTER_REPORT_H

/* Clusters for people and other programs. Threads: any. */

#include "insight/cluster/cluster.h"
#include "insight/cluster/cluster_build.h"

/* Join several hosts of a sealed cluster in one document, each with its host_hash, so that the
 * graph and the paths of a whole NVLink domain can be built. */
TUTTI_CHECKED tutti_status tti_cluster_fuse(const struct tti_cluster *cluster,
					    const uint32_t *hosts, uint32_t nhosts,
					    struct tti_xml_doc **out);

/* A sealed cluster for people: kinds, rails, groups, domains, hosts that differ. */
TUTTI_CHECKED tutti_status tti_cluster_print(const struct tti_cluster *cluster,
					     struct tti_strbuf *out);
TUTTI_CHECKED tutti_status tti_cluster_print_json(const struct tti_cluster *cluster,
						  struct tti_strbuf *out);

/* "2 sockets Intel Skylake, 8x GPU sm90, 8x NIC 400 Gb/s"; false: no memory. */
bool tti_cluster_describe(const struct tti_cluster_kind *kind, struct tti_strbuf *out);

#endif
