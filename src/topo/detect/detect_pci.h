/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_PCI_H
#define TTI_TOPO_DETECT_PCI_H

/* The functions of a machine's PCI buses while detection works on them.
 *
 * Owner: struct tti_pci_scan, for the time of tti_detect_pci().
 * Threads: not synchronised. */

#include "topo/detect/detect.h"
#include "topo/tree/busid.h"
#include "util/arena.h"
#include "util/vec.h"

/* One end of a link: what it can do. */
struct tti_pci_end {
	int decigts; /* speed in tenths of GT/s, 0: not known */
	int width;   /* lanes, 0: not known                   */
};

/* What the PCI Express capability says a function is to its link. */
enum tti_pci_port {
	TTI_PCI_PORT_UNKNOWN, /* no capability, or config was not readable that far */
	TTI_PCI_PORT_ENDPOINT,
	TTI_PCI_PORT_ROOT,
	TTI_PCI_PORT_UPSTREAM,
	TTI_PCI_PORT_DOWNSTREAM,
	TTI_PCI_PORT_BRIDGE, /* between PCI Express and PCI */
};

struct tti_pci_function {
	uint64_t busid;
	const char *path; /* its directory, links resolved                            */
	size_t path_len;
	bool is_listed;                  /* false: seen only as a part of another's path      */
	bool is_bridge;                  /* functions are below it, or could be               */
	bool is_wanted;                  /* it can communicate, or leads to what can          */
	bool is_folded;                  /* it has no element: a root port, a downstream port */
	bool is_end_known;               /* `end` was read                                    */
	struct tti_pci_end end;          /* of its link                                       */
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

/* NULL: there is none. */
struct tti_pci_function *tti_pci_find(const struct tti_pci_scan *scan, uint64_t busid);
/* The bus id that the last part of a path's first `len` bytes is, if it is one. */
bool tti_pci_last_part(const char *path, size_t len, uint64_t *out);

/* `cpu` of each top function (detect_pci_place.c). */
TUTTI_CHECKED tutti_status tti_pci_place(struct tti_pci_scan *scan);

/* What a function's own end of its link can do (detect_pci_link.c). */
struct tti_pci_end tti_pci_read_end(const struct tti_sysfs *sysfs, const char *path);
/* What it runs at now. */
struct tti_pci_end tti_pci_read_now(const struct tti_sysfs *sysfs, const char *path);
enum tti_pci_port tti_pci_read_port(const struct tti_sysfs *sysfs, const char *path);

#endif
