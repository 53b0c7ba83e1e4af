/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_SUPPORT_RANDOM_TOPO_H
#define TESTS_SUPPORT_RANDOM_TOPO_H

/* A machine that may exist, or a stranger one, that passes tti_schema_check():
 * one to three hosts of one to four sockets with one or two NUMA nodes each; switches
 * below switches; GPUs with NVLinks to each other (also uneven or stated at one end),
 * to NVSwitches, with xGMI or C2C; cards of one or two ports; links of any width;
 * NICs that are not on PCI; links between switches. At most 24 GPUs and 16 nets.
 *
 * The same seed gives the same document. NULL: out of memory. */

#include <stdint.h>

#include "topo/tree/xml.h"

struct tti_xml_doc *random_topo(uint64_t seed);

#endif
