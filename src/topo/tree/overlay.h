/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_TREE_OVERLAY_H
#define TTI_TOPO_TREE_OVERLAY_H

/* A partial file laid over what was detected.
 * Threads: any. */

#include "topo/tree/xml.h"

/* The attributes of the file (`over`) win, elements of the same identity become one, and what
 * only one of the two has is kept. Both have passed tti_schema_check(). *out is a new document
 * that passes, too. Neither input is changed.
 *
 * Hosts: the host of `over` and the host of `under` are the same machine. If either document
 *   has several, hosts are matched by host_hash. The result has the host_hash of `under`,
 *   since a file is often used on other machines than the one it was written on.
 * Identity: a cpu is known by its numaid; a pci by its busid, wherever it hangs; a gpu or nic
 *   by its number among those of its pci; a net by name and port, wherever it hangs, else by
 *   dev and port; an nvlink, xgmi or pcilink by its target; an unknown element by its place.
 * Places: `over` decides the place of what both have. What `under` alone has stays below
 *   its parent there, and so moves with the parent. A <cpu> of `under` alone stays as well,
 *   except one of numaid -1 (a machine that tells no locality) when `over` has CPUs: the first
 *   of these gets what is left below it.
 * Filled in: the attributes that `over` lacks. Family and model of a CPU are filled in only if
 *   its vendor is the one of `under`. CPUs that `under` lacks get arch, vendor, family and
 *   model of its first. A net of `under` whose dev `over` gave to another net gets the next
 *   free one.
 * Unknown elements are taken over as they are. The comments of `over` stay.
 *
 * TUTTI_EINVAL: the two together are no topology, because they are nested too deep, or because
 * a pcilink of `under` leads to what `over` has below it. */
TUTTI_CHECKED tutti_status tti_overlay(const struct tti_xml_doc *under,
				       const struct tti_xml_doc *over, struct tti_xml_doc **out);

#endif
