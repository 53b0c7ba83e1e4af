/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_TREE_OVERLAY_PAIR_H
#define TTI_TOPO_TREE_OVERLAY_PAIR_H

/* Which elements of two topologies are the same, by the rules of overlay.h.
 *
 * Owner: tti_overlay_pairs_release(). Both documents must outlive it.
 * Threads: one at a time. */

#include "topo/tree/schema.h"
#include "util/vec.h"

struct tti_overlay_pair {
	struct tti_xml *over;
	const struct tti_xml *under;
};

/* A host, and its first CPU in each document; NULL: that document does not have it. */
struct tti_overlay_host {
	uint64_t hash;
	struct tti_xml *over;
	const struct tti_xml *under;
};

struct tti_overlay_pairs {
	TTI_VEC(struct tti_overlay_pair) list;  /* the roots first                    */
	TTI_VEC(const struct tti_xml *) paired; /* of both, sorted by address           */
	TTI_VEC(struct tti_overlay_host) hosts; /* sorted by hash                       */
	bool one_host;                          /* each document has one, whatever its hash */
};

/* TUTTI_ENOMEM. */
TUTTI_CHECKED tutti_status tti_overlay_pairs_find(struct tti_overlay_pairs *pairs,
						  const struct tti_xml_doc *under,
						  const struct tti_xml_doc *over);
void tti_overlay_pairs_release(struct tti_overlay_pairs *pairs);

/* Whether an element of one document is in a pair. */
bool tti_overlay_pairs_has(const struct tti_overlay_pairs *pairs, const struct tti_xml *node);
/* The host of a <cpu> of either document. */
struct tti_overlay_host *tti_overlay_pairs_host(const struct tti_overlay_pairs *pairs,
						const struct tti_xml *cpu);

#endif
