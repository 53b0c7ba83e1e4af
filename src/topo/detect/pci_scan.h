/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_PCI_SCAN_H
#define TTI_TOPO_DETECT_PCI_SCAN_H

/* The functions of a machine's PCI buses while detection works on them.
 *
 * Owner: struct tti_pci_scan, for the time of tti_detect_pci().
 * Threads: not synchronised. */

#include "topo/detect/detect_parts.h"
#include "topo/detect/pci_link.h"
#include "topo/tree/busid.h"
#include "util/arena.h"
#include "util/vec.h"

struct tti_pci_function {
	uint64_t busid;
	const char *path; /* its directory, links resolved                            */
	size_t path_len;
	bool is_listed;                  /* false: seen only as a part of another's path      */
	bool is_bridge;                  /* functions are below it, or could be               */
	bool is_wanted;                  /* it can communicate, or leads to what can          */
	bool is_folded;                  /* it has no element: a root port, a downstream port */
	bool is_end_known;               /* `end` was read                                    */
	struct tti_pci_link end;         /* of its link                                       */
	enum tti_pci_port port;          /* only of bridges that are not on a root bus        */
	uint32_t class_code;             /* TTI_PCI_CLASS_NONE: not known                     */
	uint32_t depth, level;           /* functions, elements above it                      */
	struct tti_pci_function *above;  /* the port it is plugged into; NULL: none   */
	struct tti_pci_function *holder; /* whose element has its own; NULL: a CPU's  */
	struct tti_pci_function *top;    /* the one on the root bus                   */
	struct tti_xml *cpu;             /* of a top: where it is                     */
	struct tti_xml *xml;
};

#define TTI_PCI_CLASS_NONE UINT32_MAX

struct tti_pci_scan {
	struct tti_detect *detect;
	struct tti_arena arena;
	TTI_VEC(struct tti_pci_function) functions;  /* by bus id              */
	TTI_VEC(struct tti_pci_function *) in_order; /* by depth, then bus id  */
};

/* Find all functions, and what each hangs below: all but what other files of detection fill in. */
TUTTI_CHECKED tutti_status tti_pci_scan_functions(struct tti_pci_scan *scan);
/* NULL: there is none. */
struct tti_pci_function *tti_pci_scan_find(const struct tti_pci_scan *scan, uint64_t busid);
/* An order for qsort(). */
int tti_pci_scan_by_busid(const void *a, const void *b);

/* Find `cpu` of each function on a root bus (pci_place.c). */
TUTTI_CHECKED tutti_status tti_pci_place(struct tti_pci_scan *scan);

#endif
