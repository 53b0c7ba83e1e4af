/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_SCHEMA_H
#define TTI_TOPO_SCHEMA_H

/* What the topology format allows: which element may stand in which, what type
 * each known attribute has, which names are unique, what targets may be.
 *
 *     system{cpu}  cpu{pci,nic}  pci{pci,gpu,nic,pcilink}
 *     gpu{nvlink,xgmi,c2c}  nic{net}
 *
 * Ours, which others skip: `tutti_` attributes (see the tables in schema.c and
 * docs/topology.md), such as tutti_package and tutti_mem_gbps of a <cpu>.
 * Threads: any. */

#include "topo/xml.h"

/* Whether an element is one of these. What stands in one that is not is nobody's: it
 * is kept and not looked at. */
bool tti_schema_knows(const char *element);
/* The host of a checked <cpu>, by which its identities are told from those of other
 * hosts: host_hash as a number, 0 without one. */
uint64_t tti_schema_host(const struct tti_xml_doc *doc, const struct tti_xml *cpu);

/* TUTTI_EINVAL with file, line, column and reason for: another root or version,
 * known elements in wrong places, known attributes that do not parse (negative
 * or not finite where that makes no sense), two CPUs of one host with one
 * numaid, two PCI functions of one host with one bus id (switches side by side aside:
 * a file of AMD has them), two nets with one name, dev and port (but for net="0",
 * which is another service), a PCI function that is its own ancestor by a pcilink
 * target. Graph files (<graphs>) are refused by name.
 * What is merely implausible passes, as does a target that is not there or (in a file
 * that Azure ships) the GPU itself: that is for lint. */
TUTTI_CHECKED tutti_status tti_schema_check(const struct tti_xml_doc *doc);

/* A partial file over what was detected: the file's attributes win, elements of
 * the same identity (cpu: host_hash and numaid; pci: busid, wherever it hangs in
 * `under`; gpu, nic: the one of its pci; net: name, else dev and port; nvlink:
 * target) are one, and what only one of the two has is kept. `over` decides the
 * place of a PCI function that both have. Unknown elements are taken over as
 * they are. *out is a new document; neither input is changed. */
TUTTI_CHECKED tutti_status tti_overlay(const struct tti_xml_doc *under,
				       const struct tti_xml_doc *over, struct tti_xml_doc **out);

#endif
