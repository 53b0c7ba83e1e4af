/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "topo/graph/model.h"

static void expect(double is, double wanted)
{
	if (is < wanted - 1e-9 || is > wanted + 1e-9)
		fail_msg("%g, not %g", is, wanted);
}

static void speeds_are_read_as_kernels_write_them(void **state)
{
	(void)state;
	expect(tti_model_pci_gts("16.0 GT/s PCIe"), 16);
	expect(tti_model_pci_gts("2.5 GT/s"), 2.5);
	expect(tti_model_pci_gts("8 GT/s"), 8);
	expect(tti_model_pci_gts("32 GT/s PCIe/s"), 32);
	expect(tti_model_pci_gts("64GT/s"), 64);
	expect(tti_model_pci_gts(NULL), 0);
	expect(tti_model_pci_gts(""), 0);
	expect(tti_model_pci_gts("Unknown"), 0);
	expect(tti_model_pci_gts("Unknown speed"), 0);
	expect(tti_model_pci_gts("16"), 0);
	expect(tti_model_pci_gts("-16 GT/s"), 0);
	expect(tti_model_pci_gts("inf GT/s"), 0);
	expect(tti_model_pci_gts("nan GT/s"), 0);
	expect(tti_model_pci_gts("0x10 GT/s"), 0);
	expect(tti_model_pci_gts("1e9 GT/s"), 0);
}

static void pci_links_have_the_figures_of_their_generation(void **state)
{
	(void)state;
	expect(tti_model_pci_gbps(2.5, 16), 3);
	expect(tti_model_pci_gbps(5, 16), 6);
	expect(tti_model_pci_gbps(8, 16), 12);
	expect(tti_model_pci_gbps(16, 16), 24);
	expect(tti_model_pci_gbps(32, 16), 48);
	expect(tti_model_pci_gbps(64, 16), 96);
	expect(tti_model_pci_gbps(16, 8), 12);
	expect(tti_model_pci_gbps(2.5, 1), 0.1875);
	/* Not stated: generation 3, 16 lanes. */
	expect(tti_model_pci_gbps(0, 0), 12);
	expect(tti_model_pci_gbps(0, 4), 3);
	expect(tti_model_pci_gbps(32, 0), 48);
}

static void gpu_links_have_the_figures_of_their_gpu(void **state)
{
	(void)state;
	expect(tti_model_nvlink_gbps(0), 0);
	expect(tti_model_nvlink_gbps(52), 0);
	expect(tti_model_nvlink_gbps(60), 18);
	expect(tti_model_nvlink_gbps(70), 20);
	expect(tti_model_nvlink_gbps(75), 20);
	expect(tti_model_nvlink_gbps(80), 20);
	expect(tti_model_nvlink_gbps(86), 12);
	expect(tti_model_nvlink_gbps(90), 20.6);
	expect(tti_model_nvlink_gbps(100), 40.1);
	expect(tti_model_nvlink_gbps(120), 40.1);
	expect(tti_model_xgmi_gbps(NULL), 0);
	expect(tti_model_xgmi_gbps("gfx1100"), 0);
	expect(tti_model_xgmi_gbps("906"), 34.5);
	expect(tti_model_xgmi_gbps("gfx90a"), 37.5);
	expect(tti_model_xgmi_gbps("gfx942"), 48);
	expect(tti_model_xgmi_gbps("gfx950"), 57.6);
}

static struct tti_cpu_model model_of(const char *arch, const char *vendor, int family, int model)
{
	return tti_model_cpu(&(struct tti_cpu_id){ arch, vendor, family, model, 0 });
}

static void cpus_are_told_apart(void **state)
{
	static const struct {
		const char *arch, *vendor;
		int family, model;
		double inter_gbps;
		bool overhead;
	} cpus[] = {
		{ "x86_64", "GenuineIntel", 6, 79, 6, true },
		{ "x86_64", "GenuineIntel", 6, 85, 10, true },
		{ "x86_64", "GenuineIntel", 6, 106, 10, true },
		{ "x86_64", "GenuineIntel", 6, 143, 22, true },
		{ "x86_64", "GenuineIntel", 6, 173, 40, true },
		{ "x86_64", "GenuineIntel", 6, 207, 40, true },
		{ "x86_64", "GenuineIntel", 6, 250, 40, true },
		{ "x86_64", "GenuineIntel", 19, 1, 40, true },
		{ "x86_64", "GenuineIntel", -1, -1, 6, true },
		{ "x86_64", "AuthenticAMD", 23, 49, 16, false },
		{ "x86_64", "AuthenticAMD", -1, -1, 16, false },
		{ "x86_64", "CentaurHauls", 7, 0x3b, 6, false },
		{ "x86_64", "CentaurHauls", 7, 0x5b, 9, false },
		{ "x86_64", "  Shanghai  ", 7, 0x5b, 9, false },
		{ "ppc64le", "", -1, -1, 32, false },
		{ "ppc64", NULL, -1, -1, 32, false },
		{ "aarch64", "ARM", -1, -1, 6, false },
		{ "arm64", NULL, 0, 0, 6, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
		const struct tti_cpu_model is =
			model_of(cpus[i].arch, cpus[i].vendor, cpus[i].family, cpus[i].model);

		expect(is.inter_gbps, cpus[i].inter_gbps);
		assert_int_equal(is.p2p_overhead, cpus[i].overhead);
		assert_true(is.inter_ns > is.intra_ns && is.intra_gbps > is.inter_gbps);
		assert_true(is.mem_gbps > 0 && is.mem_ns > 0);
	}
}

/* Families and models of files that NCCL wrote, and of CPUID. */
static void models_have_their_names_and_memory(void **state)
{
	static const struct {
		const char *vendor;
		int family, model;
		double mem_gbps;
		bool known;
		const char *name;
	} cpus[] = {
		{ "AuthenticAMD", 143, 49, 153.6, true, "AMD Zen 2 (Rome)" },
		{ "AuthenticAMD", 23, 49, 153.6, true, "AMD Zen 2 (Rome)" },
		{ "AuthenticAMD", 175, 1, 153.6, true, "AMD Zen 3 (Milan)" },
		{ "AuthenticAMD", 175, 48, 153.6, true, "AMD Zen 3 (Trento)" },
		{ "AuthenticAMD", 175, 17, 345.6, true, "AMD Zen 4 (Genoa)" },
		{ "AuthenticAMD", 25, 17, 345.6, true, "AMD Zen 4 (Genoa)" },
		{ "AuthenticAMD", 175, 144, 200, false, "AMD Zen 4 (MI300A)" },
		{ "AuthenticAMD", 191, 2, 432, true, "AMD Zen 5 (Turin)" },
		{ "AuthenticAMD", 26, 2, 432, true, "AMD Zen 5 (Turin)" },
		{ "AuthenticAMD", 21, 2, 153.6, false, "AMD" },
		{ "HygonGenuine", 159, 1, 127.968, true, "Hygon Dhyana" },
		{ "GenuineIntel", 6, 79, 57.6, true, "Intel Broadwell" },
		{ "GenuineIntel", 6, 106, 153.6, true, "Intel Ice Lake" },
		{ "GenuineIntel", 6, 143, 230.4, true, "Intel Sapphire Rapids" },
		{ "GenuineIntel", 6, 167, 38.4, true, "Intel Rocket Lake" },
		{ "GenuineIntel", 6, 173, 307.2, true, "Intel Granite Rapids" },
		{ "GenuineIntel", 6, 186, 62.4, true, "Intel Raptor Lake" },
		{ "GenuineIntel", 6, 207, 268.8, true, "Intel Emerald Rapids" },
		{ "GenuineIntel", 6, 250, 230.4, false, "Intel" },
		{ "Other", 6, 1, 57.6, false, "x86_64" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cpus) / sizeof(cpus[0]); i++) {
		const struct tti_cpu_model is =
			model_of("x86_64", cpus[i].vendor, cpus[i].family, cpus[i].model);

		assert_string_equal(is.name, cpus[i].name);
		expect(is.mem_gbps, cpus[i].mem_gbps);
		assert_int_equal(is.is_known, cpus[i].known);
	}
	assert_string_equal(model_of("arm64", "ARM", 0x41, 0xd0c).name, "Arm Neoverse N1");
	assert_string_equal(model_of("ppc64", "IBM", 9, 2).name, "POWER9");
	assert_string_equal(model_of("riscv64", NULL, -1, -1).name, "unknown");
	assert_string_equal(model_of(NULL, NULL, -1, -1).name, "unknown");
}

static void the_gpu_of_a_superchip_names_its_cpu(void **state)
{
	struct tti_cpu_id id = { .arch = "arm64", .family = -1, .model = -1 };

	(void)state;
	assert_string_equal(tti_model_cpu(&id).name, "Arm");
	id.c2c_sm = 103;
	assert_string_equal(tti_model_cpu(&id).name, "NVIDIA Grace");
	expect(tti_model_cpu(&id).mem_gbps, 486);
	expect(tti_model_cpu(&id).inter_gbps, 75);
	expect(tti_model_nccl_sockets(&id), 6);
	id.c2c_sm = 121;
	assert_string_equal(tti_model_cpu(&id).name, "NVIDIA GB10");
	id.arch = "x86_64";
	assert_string_equal(tti_model_cpu(&id).name, "x86_64");
}

/* NCCL counts all Intel CPUs from model 0x8f to 0xce for Sapphire Rapids. */
static void nccl_has_its_own_sockets(void **state)
{
	struct tti_cpu_id id = { "x86_64", "GenuineIntel", 6, 173, 0 };

	(void)state;
	expect(tti_model_nccl_sockets(&id), 22);
	expect(tti_model_cpu(&id).inter_gbps, 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(speeds_are_read_as_kernels_write_them),
		cmocka_unit_test(pci_links_have_the_figures_of_their_generation),
		cmocka_unit_test(gpu_links_have_the_figures_of_their_gpu),
		cmocka_unit_test(cpus_are_told_apart),
		cmocka_unit_test(models_have_their_names_and_memory),
		cmocka_unit_test(the_gpu_of_a_superchip_names_its_cpu),
		cmocka_unit_test(nccl_has_its_own_sockets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
