/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TTI_TOPO_DETECT_PCI_LINK_H
#define TTI_TOPO_DETECT_PCI_LINK_H

/* The link of a PCI function: how fast and how wide its ends can be, and are now.
 * `path` is the directory of the function below the root of `sysfs`.
 * Threads: any. */

#include "topo/detect/sysfs.h"
#include "topo/tree/xml.h"

struct tti_pci_link {
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
enum tti_pci_port tti_pci_link_port(const struct tti_sysfs *sysfs, const char *path);

/* What the function's own end of the link can do, and what the link runs at now. */
struct tti_pci_link tti_pci_link_max(const struct tti_sysfs *sysfs, const char *path);
struct tti_pci_link tti_pci_link_now(const struct tti_sysfs *sysfs, const char *path);

/* The speed of a generation of PCI Express, from 1; 0: not known. */
int tti_pci_link_decigts(int generation);

/* The attributes link_speed and link_width of a <pci>, as far as they are known, and
 * tutti_link_now, if that is less than the link can do. false: out of memory. */
bool tti_pci_link_set(struct tti_xml_doc *doc, struct tti_xml *pci,
		      const struct tti_pci_link *link);
bool tti_pci_link_set_now(struct tti_xml_doc *doc, struct tti_xml *pci,
			  const struct tti_pci_link *now);

#endif
