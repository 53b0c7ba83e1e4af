/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_TREE_STRIP_H
#define TTI_TOPO_TREE_STRIP_H

/* A document without what identifies its host, so that hosts which are wired the same way
 * have the same document. Which CPUs share a host_hash stays, as a small number.
 * Threads: any. */

#include "topo/tree/intern.h"
#include "topo/tree/xml.h"

TUTTI_CHECKED tutti_status tti_strip(const struct tti_xml_doc *doc, struct tti_xml_doc **out);

/* Whether tti_strip() leaves this attribute of an element out. */
bool tti_strip_is_own(const struct tti_xml *node, const char *attr);

/* The hosts of a document that holds several, numbered in the order in which they come. All
 * numbers are 0 where there is one host only. TTI_INTERN_NONE: no memory.
 * Owner: who holds the struct; tti_strip_hosts_release(). */
struct tti_strip_hosts {
	bool several;
	struct tti_intern seen;
};
void tti_strip_hosts_init(struct tti_strip_hosts *hosts, const struct tti_xml_doc *doc);
void tti_strip_hosts_release(struct tti_strip_hosts *hosts);
uint32_t tti_strip_host_of(struct tti_strip_hosts *hosts, const struct tti_xml *cpu);

#endif
