/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PCI_IDS_H
#define TTI_TOPO_PCI_IDS_H

/* Names of devices that our own table (words_pci.c) does not have, from the list of PCI ids
 * that most systems have installed.
 * Threads: one for each graph. */

#include "topo/graph/graph.h"

/* Name the devices of a graph that the list at `path` has; NULL: where systems have the list. A
 * file that is absent, or is no such list, names nothing. TUTTI_ENOMEM. */
TUTTI_CHECKED tutti_status tti_pci_ids_name(struct tti_graph *graph, const char *path);

#endif
