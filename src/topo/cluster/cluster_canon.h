/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_CLUSTER_CANON_H
#define TTI_TOPO_CLUSTER_CANON_H

/* What a document says of the kind of its host, as bytes: two documents are of one
 * kind if these are equal. What is a host's own is left out; of host_hash only
 * which CPUs share one.
 * Threads: any. */

#include "topo/tree/intern.h"
#include "topo/tree/xml.h"
#include "util/vec.h"

/* Written over and over: one for many documents saves the allocations.
 * Owner: who holds it; tti_canon_release(). */
struct tti_canon {
	struct {
		char *at;
		size_t n, room;
	} text;
	struct tti_canon_work *work;
};

enum tti_canon_order {
	TTI_CANON_AS_IS,  /* cheap: equal texts are one kind, others may be, too     */
	TTI_CANON_SORTED, /* equal texts are one kind, others are not                */
};

TUTTI_CHECKED tutti_status tti_canon_write(struct tti_canon *canon, const struct tti_xml_doc *doc,
					   enum tti_canon_order order);
void tti_canon_release(struct tti_canon *canon);

/* The hosts of a document that holds several, as numbers in the order in which they
 * come; all are 0 where there is but one. NONE: no memory. */
struct tti_canon_hosts {
	bool several;
	struct tti_intern seen;
};
void tti_canon_hosts_init(struct tti_canon_hosts *hosts, const struct tti_xml_doc *doc);
void tti_canon_hosts_release(struct tti_canon_hosts *hosts);
uint32_t tti_canon_host_of(struct tti_canon_hosts *hosts, const struct tti_xml *cpu);

/* A copy without what is a host's own. */
TUTTI_CHECKED tutti_status tti_canon_strip(const struct tti_xml_doc *doc, struct tti_xml_doc **out);

#endif
