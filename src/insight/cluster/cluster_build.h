/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_CLUSTER_CLUSTER_BUILD_H
#define TTI_INSIGHT_CLUSTER_CLUSTER_BUILD_H

/* A cluster under construction, for cluster*.c alone.
 *
 *   cluster.c         adds hosts
 *   cluster_kind.c    finds the kind of a document, and makes what a new kind needs
 *   canon.c           writes a document as bytes
 *   cluster_groups.c  finds NVLink domains and switch groups
 *   cluster_rails.c   finds rails
 *   cluster_rules.c   reads rails and groups from a file
 *   cluster_fuse.c    joins several hosts in one document
 *
 * Owner: struct tti_cluster. Threads: one. */

#include "insight/cluster/canon.h"
#include "insight/cluster/cluster.h"
#include "topo/tree/intern.h"

/* One way to write the document of a kind: elements may stand in another order. */
struct tti_cluster_variant {
	uint32_t kind;
	uint32_t *port_of; /* its i-th <net> -> port of the kind; one more than needed */
};

/* What the document and the file of rails say about the network of a NIC: numbers of build->words,
 * or NONE. */
struct tti_nic_said {
	uint32_t subnet, leaf;
	uint32_t rule; /* the line of the file of rails that counts, or NONE */
};

/* One line of the file of rails. */
struct tti_rail_rule {
	const char *host, *nic, *file;
	uint32_t line;
	int32_t rail;   /* -1: on none */
	uint32_t group; /* a word, or NONE */
	uint32_t next;  /* the line before it for this NIC that has a glob, or NONE */
	bool used;
};

struct tti_cluster_build {
	struct tti_canon canon;
	struct tti_intern canons; /* canonical texts: their numbers are the kinds'    */
	struct tti_intern seen;   /* texts as they came: the numbers are variants'    */
	struct tti_intern words;  /* subnets, switches, fabrics, groups               */
	TTI_VEC(struct tti_cluster_variant) variants;
	TTI_VEC(uint32_t) nvariants; /* of each kind */
	TTI_VEC(struct tti_cluster_kind) kinds;
	TTI_VEC(struct tti_cluster_host) hosts;
	TTI_VEC(uint32_t) fabrics; /* of each host: a word, or NONE */
	TTI_VEC(struct tti_cluster_nic) nics;
	TTI_VEC(struct tti_nic_said) said; /* of each NIC */
	TTI_VEC(struct tti_rail_rule) rules;
	struct tti_intern exact; /* "HOST NIC" without globs: exact_rule by number      */
	TTI_VEC(uint32_t) exact_rule;
	struct tti_intern globs; /* NICs of lines with globs: the last line by number     */
	TTI_VEC(uint32_t) last_glob;
	TTI_VEC(struct tti_cluster_rail) rails;
	TTI_VEC(struct tti_cluster_group) groups;
	TTI_VEC(struct tti_cluster_domain) domains;
	TTI_VEC(const char *) notes;
};

TUTTI_CHECKED tutti_status tti_cluster_no_memory(void);
/* Let the public fields show what build has. */
void tti_cluster_sync(struct tti_cluster *cluster);
/* Add a sentence to cluster->notes. */
TUTTI_CHECKED TUTTI_PRINTF(2, 3) tutti_status
	tti_cluster_note(struct tti_cluster *cluster, const char *fmt, ...);
void tti_cluster_build_free(struct tti_cluster_build *build);

/* The kind of a document, made if it is new, and how its <net>s stand. The variant is
 * the build's, until the next call at least. */
TUTTI_CHECKED tutti_status tti_cluster_kind_of(struct tti_cluster *cluster,
					       const struct tti_xml_doc *doc,
					       struct tti_cluster_variant *out);
void tti_cluster_kind_release(struct tti_cluster_kind *kind);

/* Find for each NIC the line of the file that counts. */
TUTTI_CHECKED tutti_status tti_rail_rules_apply(struct tti_cluster *cluster);
/* * and ? in `pattern`. */
bool tti_glob_match(const char *pattern, const char *text);

/* Rails of all NICs and where they come from. */
TUTTI_CHECKED tutti_status tti_cluster_find_rails(struct tti_cluster *cluster);
/* NVLink domains of several hosts; NICs on one leaf switch. */
TUTTI_CHECKED tutti_status tti_cluster_find_domains(struct tti_cluster *cluster);
TUTTI_CHECKED tutti_status tti_cluster_find_groups(struct tti_cluster *cluster);

/* The node of a port, in the graph of its kind. */
static inline const struct tti_node *tti_cluster_port_node(const struct tti_cluster_kind *kind,
							   uint32_t port)
{
	return &kind->graph->nodes[kind->ports[port].node];
}

#endif
