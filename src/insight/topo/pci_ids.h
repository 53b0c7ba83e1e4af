/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_PCI_IDS_H
#define TTI_TOPO_PCI_IDS_H

/* Names of devices that our own table (words_pci.c) does not have, from the list of PCI ids
 * that most systems have installed.
 * Threads: one for each graph. */

#include "topo/graph/graph.h"

/* Name what `path` names, NULL: where systems have the list. A file that is absent names
 * nothing, and so does what is no such list. TUTTI_ENOMEM. */
TUTTI_CHECKED tutti_status tti_pci_ids_name(struct tti_graph *graph, const char *path);

#endif
