/* SPDX-License-Identifier: BSD-3-Clause */
/* Where on PCI the devices say that they are. */
#ifndef TUTTI_CUDAHOST_ENGINE_PCI_H
#define TUTTI_CUDAHOST_ENGINE_PCI_H

#include <stdbool.h>
#include <stddef.h>

struct tti_cuda_pci {
	unsigned domain, bus, slot, function;
};

/* "DOMAIN:BUS:DEVICE.FUNCTION", "DOMAIN:BUS:DEVICE" or "BUS:DEVICE.FUNCTION", in hexadecimal; false if the
 * text is nothing of that. */
bool tti_cuda_pci_parse(const char *text, struct tti_cuda_pci *out);
bool tti_cuda_pci_is_same(const struct tti_cuda_pci *a, const struct tti_cuda_pci *b);

/* Where `count` devices are: as the list says, with commas between, or without one (NULL) on buses 1, 2, ... of
 * domain 0. 0, or -1 and in `wrong` why: a text that is no place, one that stands twice, or not `count` of
 * them. */
int tti_cuda_pci_place(const char *list, int count, struct tti_cuda_pci *places, char *wrong,
		       size_t nbytes);

#endif
