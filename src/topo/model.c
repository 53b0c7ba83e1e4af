/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/model.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* -- PCI --------------------------------------------------------------------------- */

/* GB/s of one lane. Half of what the wire signals in gen 1, three quarters of it from
 * gen 3 on: coding, packet headers and flow control of devices that talk to each
 * other. These are the figures that NCCL plans with. Gen 7 follows the same rule. */
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

/* NVLink by compute capability, from it on until the next: payload of one link as NCCL
 * plans with it, 20 of 25 GB/s of the wire from Volta on, 40.1 of 50 for Blackwell. GA10x
 * (86) has half of the lanes in a link. */
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

/* -- CPUs -------------------------------------------------------------------------- */

/* The first line that fits: from this family and model on, -1: any.
 *
 * inter_gbps is what devices get between sockets, as NCCL plans with it. All others are
 * estimates from data sheets, to be replaced by what is measured: latencies, memory as
 * three quarters of the peak of a socket's channels, and between NUMA nodes of one
 * socket a share of its mesh. */
static const struct cpu_line {
	const char *arch, *vendor;
	int family, model;
	struct tti_cpu_model is;
} cpus[] = {
	{ "x86_64",
	  "GenuineIntel",
	  19,
	  -1,
	  { 40, 120, 80, 20, 270, 100, true, "Intel after family 6" } },
	{ "x86_64",
	  "GenuineIntel",
	  6,
	  0xcf,
	  { 40, 120, 80, 20, 270, 100, true, "Intel Emerald Rapids or later" } },
	{ "x86_64",
	  "GenuineIntel",
	  6,
	  0x8f,
	  { 22, 120, 80, 20, 230, 110, true, "Intel Sapphire Rapids" } },
	{ "x86_64",
	  "GenuineIntel",
	  6,
	  0x55,
	  { 10, 80, 60, 15, 96, 90, true, "Intel Skylake to Ice Lake" } },
	{ "x86_64",
	  "GenuineIntel",
	  -1,
	  -1,
	  { 6, 80, 40, 15, 57, 90, true, "Intel before Skylake" } },
	{ "x86_64", "AuthenticAMD", 26, -1, { 16, 110, 64, 20, 430, 110, false, "AMD Zen 5" } },
	{ "x86_64", "AuthenticAMD", 25, 16, { 16, 110, 64, 20, 345, 110, false, "AMD Zen 4" } },
	{ "x86_64", "AuthenticAMD", -1, -1, { 16, 110, 48, 20, 150, 100, false, "AMD" } },
	{ "x86_64",
	  "  Shanghai  ",
	  7,
	  0x5b,
	  { 9, 150, 20, 50, 100, 110, false, "Zhaoxin Yongfeng" } },
	{ "x86_64",
	  "CentaurHauls",
	  7,
	  0x5b,
	  { 9, 150, 20, 50, 100, 110, false, "Zhaoxin Yongfeng" } },
	{ "x86_64", "  Shanghai  ", -1, -1, { 6, 150, 20, 50, 60, 110, false, "Zhaoxin" } },
	{ "x86_64", "CentaurHauls", -1, -1, { 6, 150, 20, 50, 60, 110, false, "Zhaoxin" } },
	{ "x86_64", NULL, -1, -1, { 6, 100, 20, 40, 60, 100, false, "x86_64" } },
	{ "ppc64", NULL, -1, -1, { 32, 150, 40, 50, 120, 100, false, "POWER" } },
	{ "arm64", NULL, -1, -1, { 6, 150, 40, 40, 140, 120, false, "Arm" } },
	{ NULL, NULL, -1, -1, { 6, 150, 20, 50, 60, 100, false, "unknown" } },
};

/* "ppc64le", "aarch64": the names that kernels use for one architecture. */
static const char *same_arch(const char *arch)
{
	if (arch && strncmp(arch, "ppc64", 5) == 0)
		return "ppc64";
	return arch && strcmp(arch, "aarch64") == 0 ? "arm64" : arch;
}

static bool text_fits(const char *want, const char *text)
{
	return !want || (text && strcmp(want, text) == 0);
}

struct tti_cpu_model tti_model_cpu(const char *arch, const char *vendor, int family, int model)
{
	size_t i = 0;

	arch = same_arch(arch);
	for (; i < COUNT(cpus) - 1; i++) {
		const struct cpu_line *line = &cpus[i];

		if (!text_fits(line->arch, arch) || !text_fits(line->vendor, vendor))
			continue;
		if ((line->family == -1 || line->family == family) &&
		    (line->model == -1 || model >= line->model))
			break;
	}
	return cpus[i].is;
}
