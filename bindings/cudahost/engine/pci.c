/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/pci.h"

#include <stdio.h>
#include <string.h>

/* The devices are on buses 1, 2, ... unless a list says otherwise. */
#define FIRST_BUS 1

#define PLACE_BYTES 24

bool tti_cuda_pci_parse(const char *text, struct tti_cuda_pci *out)
{
	unsigned *const domain = &out->domain, *const bus = &out->bus;
	unsigned *const slot = &out->slot, *const function = &out->function;
	int end = 0;

	*out = (struct tti_cuda_pci){ 0 };
	if (sscanf(text, "%8x:%2x:%2x.%1x%n", domain, bus, slot, function, &end) == 4 && !text[end])
		return true;
	*out = (struct tti_cuda_pci){ 0 };
	if (sscanf(text, "%8x:%2x:%2x%n", domain, bus, slot, &end) == 3 && !text[end])
		return true;
	*out = (struct tti_cuda_pci){ 0 };
	return sscanf(text, "%2x:%2x.%1x%n", bus, slot, function, &end) == 3 && !text[end];
}

bool tti_cuda_pci_is_same(const struct tti_cuda_pci *a, const struct tti_cuda_pci *b)
{
	return a->domain == b->domain && a->bus == b->bus && a->slot == b->slot &&
	       a->function == b->function;
}

/* The next place of the list, which is cut into `text`; what stands behind it, NULL at the end. */
static const char *next(const char *list, char text[PLACE_BYTES])
{
	const size_t nbytes = strcspn(list, ",");

	snprintf(text, PLACE_BYTES, "%.*s", (int)nbytes, list);
	return list[nbytes] ? list + nbytes + 1 : NULL;
}

int tti_cuda_pci_place(const char *list, int count, struct tti_cuda_pci *places, char *wrong,
		       size_t nbytes)
{
	char text[PLACE_BYTES];
	int n = 0;

	for (int device = 0; !list && device < count; device++)
		places[device] = (struct tti_cuda_pci){ .bus = FIRST_BUS + (unsigned)device };
	if (!list)
		return 0;
	for (; list; n++) {
		struct tti_cuda_pci place;

		list = next(list, text);
		if (!tti_cuda_pci_parse(text, &place) || place.domain > 0xffff) {
			snprintf(wrong, nbytes,
				 "\"%s\" is no PCI bus id such as \"0000:01:00.0\", with a domain "
				 "of at most ffff",
				 text);
			return -1;
		}
		for (int before = 0; before < n && before < count; before++)
			if (tti_cuda_pci_is_same(&places[before], &place)) {
				snprintf(wrong, nbytes, "\"%s\" is there twice", text);
				return -1;
			}
		if (n < count)
			places[n] = place;
	}
	if (n == count)
		return 0;
	snprintf(wrong, nbytes, "it has %d PCI bus ids for %d devices", n, count);
	return -1;
}
