/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_TREE_SCHEMA_H
#define TTI_TOPO_TREE_SCHEMA_H

/* What the topology format allows: which element may stand in which, what type
 * each known attribute has, which names are unique, what targets may be.
 *
 *     system{cpu}  cpu{pci,nic}  pci{pci,gpu,nic,pcilink}
 *     gpu{nvlink,xgmi,c2c}  nic{net}
 *
 * Ours, which others skip: `tutti_` attributes (see the tables in schema.c and
 * docs/topology.md), such as tutti_package and tutti_mem_gbps of a <cpu>.
 * Threads: any. */

#include "topo/tree/xml.h"

/* Whether an element is one of these. What stands in an unknown element is kept and not
 * looked at. */
bool tti_schema_knows(const char *element);
/* All known elements in document order, and the outermost of the unknown ones. */
struct tti_xml *tti_schema_walk(const struct tti_xml *node);
/* The host of a <cpu>: host_hash as a number. A host_hash that is no number (a redacted one) is
 * hashed; 0: there is none. */
uint64_t tti_schema_host(const struct tti_xml *cpu);
/* Whether the CPUs of a document are of more than one host. */
bool tti_schema_has_several_hosts(const struct tti_xml_doc *doc);

/* TUTTI_EINVAL with file, line, column and reason for: another root or version,
 * known elements in wrong places, known attributes that do not parse (negative
 * or not finite where that makes no sense), two CPUs of one host with one
 * numaid, a net with neither name nor dev, a PCI function that is its own ancestor by a
 * pcilink target. Graph files (<graphs>) are refused by name.
 * What is merely implausible passes, since NCCL loads it, and lint finds it: a bus id or a net
 * that is there twice, a target that is not there or is the GPU itself (in a file that Azure
 * ships). */
TUTTI_CHECKED tutti_status tti_schema_check(const struct tti_xml_doc *doc);

#endif
