/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/model.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* -- PCI --------------------------------------------------------------------------- */

/* GB/s of one lane: half of the signalling rate in gen 1, three quarters of it from gen 3 on.
 * The rest is coding, packet headers and flow control between devices. NCCL has the same
 * figures; gen 7 follows the same rule. */
static const struct {
	double gts, lane_gbps;
} pci_generations[] = {
	{ 2.5, 0.1875 }, { 5, 0.375 }, { 8, 0.75 }, { 16, 1.5 }, { 32, 3 }, { 64, 6 }, { 128, 12 },
};

double tti_model_pci_gts(const char *link_speed)
{
	double gts = 0, digit = 1;

	/* Not strtod(), which also takes "inf" and "0x10" and depends on the locale. */
	if (!link_speed)
		return 0;
	link_speed += strspn(link_speed, " ");
	for (; isdigit((unsigned char)*link_speed) && gts < 1e6; link_speed++)
		gts = gts * 10 + (*link_speed - '0');
	if (*link_speed == '.')
		for (link_speed++; isdigit((unsigned char)*link_speed); link_speed++)
			gts += (*link_speed - '0') * (digit /= 10);
	link_speed += strspn(link_speed, " ");
	return gts <= 1024 && strncasecmp(link_speed, "GT/s", 4) == 0 ? gts : 0;
}

double tti_model_pci_gbps(double gts, int width)
{
	double lane_gbps = gts > 0 ? pci_generations[0].lane_gbps : pci_generations[2].lane_gbps;

	for (size_t i = 0; i < COUNT(pci_generations); i++)
		if (gts >= pci_generations[i].gts)
			lane_gbps = pci_generations[i].lane_gbps;
	return lane_gbps * (width > 0 ? width : 16);
}

/* -- GPU to GPU -------------------------------------------------------------------- */

/* NVLink by compute capability, each row until the next: the payload of one link as in NCCL,
 * 20 of 25 GB/s of the wire from Volta on, 40.1 of 50 for Blackwell. A link of GA10x (86) has
 * half of the lanes. */
static const struct {
	int sm;
	double gbps;
} nvlinks[] = {
	{ 60, 18 }, { 70, 20 }, { 80, 20 }, { 86, 12 }, { 87, 20 }, { 90, 20.6 }, { 100, 40.1 },
};

double tti_model_nvlink_gbps(int sm)
{
	double gbps = 0;

	for (size_t i = 0; i < COUNT(nvlinks); i++)
		if (sm >= nvlinks[i].sm)
			gbps = nvlinks[i].gbps;
	return gbps;
}

/* xGMI: three quarters of the peak that AMD's data sheets state for one direction of
 * one link (MI50 and MI100 46, MI200 50, MI300 64, MI350 76.8 GB/s). The share is
 * what copies between MI250X reach over one link (Pearson, "Interconnect Bandwidth
 * Heterogeneity on AMD MI250x and Infinity Fabric", 2023). */
static const struct {
	const char *gcn;
	double gbps;
} xgmi[] = {
	{ "906", 34.5 }, { "908", 34.5 }, { "90a", 37.5 },
	{ "910", 37.5 }, { "94", 48 },    { "95", 57.6 },
};

double tti_model_xgmi_gbps(const char *gcn)
{
	if (!gcn)
		return 0;
	if (strncasecmp(gcn, "gfx", 3) == 0)
		gcn += 3;
	for (size_t i = 0; i < COUNT(xgmi); i++)
		if (strncasecmp(gcn, xgmi[i].gcn, strlen(xgmi[i].gcn)) == 0)
			return xgmi[i].gbps;
	return 0;
}
