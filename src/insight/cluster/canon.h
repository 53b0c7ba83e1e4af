/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_INSIGHT_CLUSTER_CANON_H
#define TTI_INSIGHT_CLUSTER_CANON_H

/* The canonical form of a document: two hosts are of one kind if these bytes are equal. What
 * tti_strip() leaves out is not in it.
 * Threads: any. */

#include "topo/tree/xml.h"

/* One serves many documents, which saves the allocations.
 * Owner: who holds the struct; tti_canon_release(). */
struct tti_canon {
	struct {
		char *at;
		size_t n, room;
	} text;
	struct tti_canon_work *work;
};

enum tti_canon_order {
	TTI_CANON_AS_IS,  /* cheap: equal texts are one kind, different ones may be, too */
	TTI_CANON_SORTED, /* equal texts are one kind, different ones are not            */
};

TUTTI_CHECKED tutti_status tti_canon_write(struct tti_canon *canon, const struct tti_xml_doc *doc,
					   enum tti_canon_order order);
void tti_canon_release(struct tti_canon *canon);

#endif
