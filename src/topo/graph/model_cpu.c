/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPUs. Models are told apart by family and model of CPUID, as the Linux kernel lists
 * them (arch/x86/include/asm/intel-family.h, arch/x86/kernel/cpu/amd.c), on Arm by
 * implementer and part of MIDR_EL1 (arch/arm64/include/asm/cputype.h). Memory channels,
 * their speed and the number of cores of the largest CPU of a model are those of its
 * maker's data sheet. */
#include "topo/graph/model.h"

#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum maker { INTEL, AMD, HYGON, ZHAOXIN, X86, ARM, POWER, UNKNOWN };

static enum maker maker_of(const char *arch, const char *vendor)
{
	static const struct {
		const char *vendor;
		enum maker maker;
	} vendors[] = {
		{ "GenuineIntel", INTEL },   { "AuthenticAMD", AMD },     { "HygonGenuine", HYGON },
		{ "CentaurHauls", ZHAOXIN }, { "  Shanghai  ", ZHAOXIN },
	};

	if (!arch)
		return UNKNOWN;
	/* Names of architectures in kernels and documents. */
	if (strncmp(arch, "ppc64", 5) == 0)
		return POWER;
	if (strcmp(arch, "arm64") == 0 || strcmp(arch, "aarch64") == 0)
		return ARM;
	if (strcmp(arch, "x86_64") != 0)
		return UNKNOWN;
	for (size_t i = 0; vendor && i < COUNT(vendors); i++)
		if (strcmp(vendor, vendors[i].vendor) == 0)
			return vendors[i].maker;
	return X86;
}

/* The GB/s that NCCL 2.30 assumes between sockets, from this family and model on. */
static const struct {
	enum maker maker;
	int family, model;
	double gbps;
} nccl_sockets[] = {
	{ INTEL, 19, -1, 40 },   { INTEL, 6, 0xcf, 40 }, { INTEL, 6, 0x8f, 22 },
	{ INTEL, 6, 0x55, 10 },  { INTEL, -1, -1, 6 },   { AMD, -1, -1, 16 },
	{ ZHAOXIN, 7, 0x5b, 9 }, { ZHAOXIN, -1, -1, 6 }, { HYGON, -1, -1, 6 },
	{ X86, -1, -1, 6 },      { POWER, -1, -1, 32 },  { ARM, -1, -1, 6 },
	{ UNKNOWN, -1, -1, 6 },
};

/* Latencies, and the bandwidth between NUMA nodes of one socket, are estimates. Where the
 * bandwidth between sockets is 0 here, the figure of NCCL counts. */
struct pace {
	double inter_gbps, inter_ns, intra_gbps, intra_ns, mem_ns;
};
static const struct pace intel_ring = { 0, 80, 40, 15, 90 }; /* up to Broadwell */
static const struct pace intel_mesh = { 0, 80, 60, 15,
					90 }; /* Skylake to Ice Lake, and client CPUs */
static const struct pace intel_tiles = { 0, 120, 80, 20, 110 }; /* Sapphire Rapids */
/* UPI of 20 and 24 GT/s: the figure that NCCL has for Emerald Rapids. NCCL does not count
 * Granite Rapids and Sierra Forest among these. */
static const struct pace intel_upi2 = { 40, 120, 80, 20, 100 };
static const struct pace zen = { 0, 110, 48, 20, 100 };
static const struct pace zen4 = { 0, 110, 64, 20, 110 };
static const struct pace zhaoxin = { 0, 150, 20, 50, 110 };
static const struct pace x86 = { 0, 100, 20, 40, 100 };
static const struct pace power = { 0, 150, 40, 50, 100 };
static const struct pace arm = { 0, 150, 40, 40, 120 };
/* 100 GB/s from Grace to Grace, three quarters of which are counted: Fusco et al.,
 * "Understanding Data Movement in Tightly Coupled Heterogeneous Systems", 2024. */
static const struct pace grace = { 75, 150, 150, 40, 120 };
static const struct pace unknown = { 0, 150, 20, 50, 100 };

/* Three quarters of the peak of the memory channels of a socket: so many MT/s of 8 bytes. */
#define DDR(channels, mts) ((channels) * (mts)*8e-3 * 0.75)
/* The same for memory whose peak is stated in GB/s. */
#define PEAK(gbps)         ((gbps)*0.75)

/* What no data sheet says. */
#define GUESS(gbps) (-(gbps))

#define ANY INT_MAX

/* The first line that matches counts. Where the number of cores is 0, the number of cores of a
 * machine does not say how many sockets it has. */
static const struct cpu_line {
	enum maker maker;
	int family, from, to; /* models, both included; family -1: any */
	double mem_gbps;      /* of a socket */
	int cores;
	const struct pace *pace;
	const char *name;
} cpus[] = {
	{ INTEL, 6, 0xad, 0xae, DDR(8, 6400), 128, &intel_upi2, "Intel Granite Rapids" },
	{ INTEL, 6, 0xaf, 0xaf, DDR(8, 6400), 144, &intel_upi2, "Intel Sierra Forest" },
	{ INTEL, 6, 0xdd, 0xdd, DDR(12, 8000), 288, &intel_upi2, "Intel Clearwater Forest" },
	{ INTEL, 6, 0xcf, 0xcf, DDR(8, 5600), 64, &intel_upi2, "Intel Emerald Rapids" },
	{ INTEL, 6, 0x8f, 0x8f, DDR(8, 4800), 60, &intel_tiles, "Intel Sapphire Rapids" },
	{ INTEL, 6, 0x6a, 0x6a, DDR(8, 3200), 40, &intel_mesh, "Intel Ice Lake" },
	{ INTEL, 6, 0x6c, 0x6c, DDR(4, 3200), 20, &intel_mesh, "Intel Ice Lake D" },
	/* Cascade Lake and Cooper Lake have the model of Skylake. */
	{ INTEL, 6, 0x55, 0x55, DDR(6, 2666), 28, &intel_mesh, "Intel Skylake to Cooper Lake" },
	{ INTEL, 6, 0x57, 0x57, DDR(6, 2400), 72, &intel_mesh, "Intel Knights Landing" },
	{ INTEL, 6, 0x85, 0x85, DDR(6, 2400), 72, &intel_mesh, "Intel Knights Mill" },
	{ INTEL, 6, 0x4f, 0x4f, DDR(4, 2400), 24, &intel_ring, "Intel Broadwell" },
	{ INTEL, 6, 0x56, 0x56, DDR(2, 2400), 16, &intel_ring, "Intel Broadwell D" },
	{ INTEL, 6, 0x3f, 0x3f, DDR(4, 2133), 18, &intel_ring, "Intel Haswell" },
	{ INTEL, 6, 0x3e, 0x3e, DDR(4, 1866), 15, &intel_ring, "Intel Ivy Bridge" },
	{ INTEL, 6, 0x2d, 0x2d, DDR(4, 1600), 8, &intel_ring, "Intel Sandy Bridge" },
	{ INTEL, 6, 0x2c, 0x2c, DDR(3, 1333), 6, &intel_ring, "Intel Westmere" },
	{ INTEL, 6, 0x2e, 0x2f, DDR(4, 1066), 10, &intel_ring, "Intel Nehalem EX" },
	{ INTEL, 6, 0x1a, 0x1a, DDR(3, 1333), 4, &intel_ring, "Intel Nehalem" },
	{ INTEL, 6, 0xc5, 0xc6, DDR(2, 6400), 24, &intel_mesh, "Intel Arrow Lake" },
	{ INTEL, 6, 0xb5, 0xb5, DDR(2, 6400), 12, &intel_mesh, "Intel Arrow Lake" },
	{ INTEL, 6, 0xbd, 0xbd, DDR(2, 8533), 8, &intel_mesh, "Intel Lunar Lake" },
	{ INTEL, 6, 0xaa, 0xac, DDR(2, 5600), 16, &intel_mesh, "Intel Meteor Lake" },
	{ INTEL, 6, 0xb7, 0xb7, DDR(2, 5600), 24, &intel_mesh, "Intel Raptor Lake" },
	{ INTEL, 6, 0xba, 0xba, DDR(2, 5200), 14, &intel_mesh, "Intel Raptor Lake" },
	{ INTEL, 6, 0xbf, 0xbf, DDR(2, 4800), 16, &intel_mesh, "Intel Raptor Lake" },
	{ INTEL, 6, 0xbe, 0xbe, DDR(1, 4800), 8, &intel_mesh, "Intel Alder Lake N" },
	{ INTEL, 6, 0x97, 0x97, DDR(2, 4800), 16, &intel_mesh, "Intel Alder Lake" },
	{ INTEL, 6, 0x9a, 0x9a, DDR(2, 4800), 14, &intel_mesh, "Intel Alder Lake" },
	{ INTEL, 6, 0xa7, 0xa7, DDR(2, 3200), 8, &intel_mesh, "Intel Rocket Lake" },
	{ INTEL, 6, 0x8c, 0x8d, DDR(2, 3200), 8, &intel_mesh, "Intel Tiger Lake" },
	{ INTEL, 6, 0x7d, 0x7e, DDR(2, 3200), 4, &intel_mesh, "Intel Ice Lake client" },
	{ INTEL, 6, 0xa5, 0xa6, DDR(2, 2933), 10, &intel_ring, "Intel Comet Lake" },
	{ INTEL, 6, 0x8e, 0x8e, DDR(2, 2400), 4, &intel_ring, "Intel Kaby Lake" },
	{ INTEL, 6, 0x9e, 0x9e, DDR(2, 2666), 8, &intel_ring, "Intel Coffee Lake" },
	{ INTEL, 6, 0x4e, 0x4e, DDR(2, 2133), 2, &intel_ring, "Intel Skylake client" },
	{ INTEL, 6, 0x5e, 0x5e, DDR(2, 2133), 4, &intel_ring, "Intel Skylake client" },
	{ INTEL, 19, -1, ANY, GUESS(DDR(8, 5600)), 0, &intel_upi2, "Intel" },
	{ INTEL, 6, 0x8f, ANY, GUESS(DDR(8, 4800)), 0, &intel_tiles, "Intel" },
	{ INTEL, 6, 0x55, 0x8e, GUESS(DDR(6, 2666)), 0, &intel_mesh, "Intel" },
	{ INTEL, -1, -1, ANY, GUESS(DDR(4, 2400)), 0, &intel_ring, "Intel" },

	{ AMD, 26, 0x08, 0x08, DDR(8, 6400), 96, &zen4, "AMD Zen 5 (Shimada Peak)" },
	{ AMD, 26, 0x00, 0x0f, DDR(12, 6000), 128, &zen4, "AMD Zen 5 (Turin)" },
	{ AMD, 26, 0x10, 0x1f, DDR(12, 6000), 192, &zen4, "AMD Zen 5c (Turin)" },
	{ AMD, 26, 0x20, 0x2f, DDR(2, 7500), 12, &zen4, "AMD Zen 5 (Strix Point)" },
	{ AMD, 26, 0x40, 0x4f, DDR(2, 5600), 16, &zen4, "AMD Zen 5 (Granite Ridge)" },
	{ AMD, 26, 0x60, 0x6f, DDR(2, 8000), 8, &zen4, "AMD Zen 5 (Krackan Point)" },
	{ AMD, 26, 0x70, 0x77, DDR(4, 8000), 16, &zen4, "AMD Zen 5 (Strix Halo)" },
	{ AMD, 25, 0x18, 0x1f, DDR(8, 5200), 96, &zen4, "AMD Zen 4 (Storm Peak)" },
	{ AMD, 25, 0x10, 0x17, DDR(12, 4800), 96, &zen4, "AMD Zen 4 (Genoa)" },
	/* The GPU gets 5300 GB/s of the same memory, the cores what their three dies can ask
	 * for. */
	{ AMD, 25, 0x90, 0x9f, GUESS(200), 24, &zen4, "AMD Zen 4 (MI300A)" },
	{ AMD, 25, 0xa0, 0xaf, DDR(12, 4800), 128, &zen4, "AMD Zen 4c (Bergamo, Siena)" },
	{ AMD, 25, 0x60, 0x6f, DDR(2, 5200), 16, &zen4, "AMD Zen 4 (Raphael)" },
	{ AMD, 25, 0x70, 0x7f, DDR(2, 5600), 8, &zen4, "AMD Zen 4 (Phoenix)" },
	{ AMD, 25, 0x00, 0x0f, DDR(8, 3200), 64, &zen, "AMD Zen 3 (Milan)" },
	{ AMD, 25, 0x30, 0x3f, DDR(8, 3200), 64, &zen, "AMD Zen 3 (Trento)" },
	{ AMD, 25, 0x20, 0x2f, DDR(2, 3200), 16, &zen, "AMD Zen 3 (Vermeer)" },
	{ AMD, 25, 0x40, 0x4f, DDR(2, 4800), 8, &zen, "AMD Zen 3 (Rembrandt)" },
	{ AMD, 25, 0x50, 0x5f, DDR(2, 3200), 8, &zen, "AMD Zen 3 (Cezanne)" },
	{ AMD, 23, 0x30, 0x3f, DDR(8, 3200), 64, &zen, "AMD Zen 2 (Rome)" },
	{ AMD, 23, 0x60, 0x6f, DDR(2, 3200), 8, &zen, "AMD Zen 2 (Renoir)" },
	{ AMD, 23, 0x70, 0x7f, DDR(2, 3200), 16, &zen, "AMD Zen 2 (Matisse)" },
	/* Naples with 8 channels, and the first Ryzen with 2. */
	{ AMD, 23, 0x01, 0x01, GUESS(DDR(8, 2666)), 32, &zen, "AMD Zen" },
	{ AMD, 23, 0x08, 0x08, DDR(2, 2933), 8, &zen, "AMD Zen (Pinnacle Ridge)" },
	{ AMD, 26, -1, ANY, GUESS(DDR(12, 6000)), 0, &zen4, "AMD" },
	{ AMD, -1, -1, ANY, GUESS(DDR(8, 3200)), 0, &zen, "AMD" },
	{ HYGON, 24, 0x00, 0x02, DDR(8, 2666), 32, &zen, "Hygon Dhyana" },
	{ HYGON, -1, -1, ANY, GUESS(DDR(8, 2666)), 0, &zen, "Hygon" },

	{ ZHAOXIN, 7, 0x5b, 0x5b, DDR(8, 3200), 32, &zhaoxin, "Zhaoxin Yongfeng" },
	{ ZHAOXIN, 7, 0x3b, 0x3b, DDR(2, 2666), 8, &zhaoxin, "Zhaoxin Lujiazui" },
	{ ZHAOXIN, -1, -1, ANY, GUESS(DDR(2, 2666)), 0, &zhaoxin, "Zhaoxin" },
	{ X86, -1, -1, ANY, GUESS(DDR(4, 2400)), 0, &x86, "x86_64" },

	{ POWER, 10, -1, ANY, PEAK(409), 15, &power, "POWER10" },
	{ POWER, 9, -1, ANY, DDR(8, 2666), 24, &power, "POWER9" },
	{ POWER, 8, -1, ANY, PEAK(230), 12, &power, "POWER8" },
	{ POWER, -1, -1, ANY, GUESS(120), 0, &power, "POWER" },

	/* Graviton 4 has as much memory bandwidth as Grace. */
	{ ARM, 0x41, 0xd4f, 0xd4f, DDR(12, 5600), 96, &arm, "Arm Neoverse V2" },
	{ ARM, 0x41, 0xd40, 0xd40, DDR(8, 4800), 64, &arm, "Arm Neoverse V1" },
	{ ARM, 0x41, 0xd49, 0xd49, DDR(8, 4400), 128, &arm, "Arm Neoverse N2" },
	{ ARM, 0x41, 0xd0c, 0xd0c, DDR(8, 3200), 128, &arm, "Arm Neoverse N1" },
	/* Cores of Grace Blackwell 10: LPDDR5X of 8533 MT/s, 256 bits. */
	{ ARM, 0x41, 0xd85, 0xd85, DDR(4, 8533), 20, &arm, "NVIDIA GB10" },
	{ ARM, 0x41, 0xd87, 0xd87, DDR(4, 8533), 20, &arm, "NVIDIA GB10" },
	{ ARM, 0x42, 0x516, 0x516, DDR(8, 2666), 32, &arm, "ThunderX2" },
	{ ARM, 0x43, 0xaf, 0xaf, DDR(8, 2666), 32, &arm, "ThunderX2" },
	{ ARM, 0x46, 0x001, 0x001, PEAK(1024), 48, &arm, "Fujitsu A64FX" },
	{ ARM, 0x48, 0xd01, 0xd01, DDR(8, 2933), 64, &arm, "HiSilicon Kunpeng 920" },
	{ ARM, 0xc0, 0xac3, 0xac4, DDR(8, 5200), 192, &arm, "AmpereOne" },
	{ ARM, -1, -1, ANY, GUESS(140), 0, &arm, "Arm" },
	{ UNKNOWN, -1, -1, ANY, GUESS(60), 0, &unknown, "unknown" },
};

/* CPUs that a GPU is on by C2C. Files of NCCL do not name Arm CPUs, but each compute
 * capability has one CPU. Memory of Grace: STREAM of Schieffer et al., "Harnessing Integrated
 * CPU-GPU System Memory for HPC: A First Look into Grace Hopper", 2024. */
static const struct {
	int from, to; /* compute capability */
	struct cpu_line is;
} superchips[] = {
	{ 90, 109, { ARM, 0, 0, 0, 486, 72, &grace, "NVIDIA Grace" } },
	{ 121, 121, { ARM, 0, 0, 0, DDR(4, 8533), 20, &arm, "NVIDIA GB10" } },
};

/* NCCL writes base family + 16 * extended family of CPUID instead of their sum: 175 for 25.
 * Only base family 15 has an extended one. */
static int true_family(enum maker maker, int family)
{
	if (maker == ARM || maker == POWER || family <= 15 || (family & 15) != 15)
		return family;
	return 15 + (family >> 4);
}

double tti_model_nccl_sockets(const struct tti_cpu_id *id)
{
	const enum maker maker = maker_of(id->arch, id->vendor);
	const int family = true_family(maker, id->family);
	size_t i = 0;

	for (; i < COUNT(nccl_sockets) - 1; i++)
		if (nccl_sockets[i].maker == maker &&
		    (nccl_sockets[i].family == -1 || nccl_sockets[i].family == family) &&
		    id->model >= nccl_sockets[i].model)
			break;
	return nccl_sockets[i].gbps;
}

static const struct cpu_line *find_line(const struct tti_cpu_id *id)
{
	const enum maker maker = maker_of(id->arch, id->vendor);
	const int family = true_family(maker, id->family);
	size_t i = 0;

	for (size_t k = 0; maker == ARM && k < COUNT(superchips); k++)
		if (id->c2c_sm >= superchips[k].from && id->c2c_sm <= superchips[k].to)
			return &superchips[k].is;
	for (; i < COUNT(cpus) - 1; i++)
		if (cpus[i].maker == maker && (cpus[i].family == -1 || cpus[i].family == family) &&
		    id->model >= cpus[i].from && id->model <= cpus[i].to)
			break;
	return &cpus[i];
}

struct tti_cpu_model tti_model_cpu(const struct tti_cpu_id *id)
{
	const struct cpu_line *line = find_line(id);
	const struct pace *pace = line->pace;

	return (struct tti_cpu_model){
		.inter_gbps = pace->inter_gbps > 0 ? pace->inter_gbps : tti_model_nccl_sockets(id),
		.inter_ns = pace->inter_ns,
		.intra_gbps = pace->intra_gbps,
		.intra_ns = pace->intra_ns,
		.mem_gbps = fabs(line->mem_gbps),
		.mem_ns = pace->mem_ns,
		.cores = line->cores,
		.is_known = line->mem_gbps > 0,
		.p2p_overhead = line->maker == INTEL,
		.name = line->name,
	};
}
