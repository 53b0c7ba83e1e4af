/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/nvml.h"
#include "util/error.h"

#define TODAY  TEST_LIBRARIES "/libfake_nvml.so"
#define OF_535 TEST_LIBRARIES "/libfake_nvml_535.so"
#define OLD    TEST_LIBRARIES "/libfake_nvml_old.so"

static struct tti_nvml *open_machine(const char *library, const char *machine)
{
	struct tti_nvml *nvml = NULL;
	const char *why;

	assert_int_equal(setenv("FAKE_NVML", machine, 1), 0);
	assert_int_equal(tti_nvml_open_library(library, &nvml, &why), TUTTI_OK);
	assert_string_equal(why, "");
	assert_non_null(nvml);
	return nvml;
}

static struct tti_nvml_gpu ask(const struct tti_nvml *nvml, int index)
{
	struct tti_nvml_gpu gpu;

	assert_int_equal(tti_nvml_gpu(nvml, index, &gpu), TUTTI_OK);
	assert_int_equal(gpu.index, index);
	return gpu;
}

static int count_links(const struct tti_nvml_gpu *gpu, enum tti_nvml_remote remote)
{
	int n = 0;

	for (int i = 0; i < gpu->nlinks; i++)
		n += gpu->links[i].active && gpu->links[i].remote == remote;
	return n;
}

static void no_library_is_no_gpu(void **state)
{
	struct tti_nvml *nvml = NULL;
	const char *why = NULL;

	(void)state;
	assert_int_equal(tti_nvml_open_library(NULL, &nvml, &why), TUTTI_OK);
	if (nvml)
		assert_string_equal(why, ""); /* a machine that has GPUs */
	else
		assert_non_null(strstr(why, "libnvidia-ml.so.1"));
	tti_nvml_close(nvml);
}

static void a_driver_that_is_not_loaded_is_no_gpu(void **state)
{
	struct tti_nvml *nvml = NULL;
	const char *why = NULL;

	(void)state;
	assert_int_equal(setenv("FAKE_NVML", "/nonexistent", 1), 0);
	assert_int_equal(tti_nvml_open_library(TODAY, &nvml, &why), TUTTI_OK);
	assert_null(nvml);
	assert_non_null(strstr(why, "Driver Not Loaded"));
	tti_nvml_close(NULL);
}

static void a_named_library_must_be_one(void **state)
{
	struct tti_nvml *nvml = NULL;
	const char *why = NULL;

	(void)state;
	assert_int_equal(tti_nvml_open_library("/nonexistent.so", &nvml, &why), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "TUTTI_NVML_LIB=/nonexistent.so"));
	assert_int_equal(tti_nvml_open_library("libm.so.6", &nvml, &why), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "no nvmlInit_v2()"));
	assert_null(nvml);
}

static void dgx_a100(void **state)
{
	struct tti_nvml *nvml = open_machine(TODAY, TEST_DATA "/nvml/dgx-a100.txt");
	struct tti_nvml_gpu gpu;
	const char *why;

	(void)state;
	assert_int_equal(tti_nvml_count(nvml), 8);
	assert_string_equal(tti_nvml_driver(nvml), "525.147.05");
	gpu = ask(nvml, 2);
	assert_string_equal(gpu.busid, "00000000:47:00.0");
	assert_string_equal(gpu.name, "NVIDIA-A100-SXM4-80GB");
	assert_string_equal(gpu.uuid, "GPU-00000000:47:00.0");
	assert_int_equal(gpu.sm, 80);
	assert_int_equal(gpu.max_pci_gen, 4);
	assert_int_equal(gpu.pci_gen, 1);
	assert_int_equal(gpu.max_pci_width, 16);
	assert_int_equal(gpu.pci_width, 16);
	assert_int_equal(gpu.mem_bytes, UINT64_C(80) << 30);
	assert_int_equal(gpu.nlinks, 12);
	assert_int_equal(count_links(&gpu, TTI_NVML_SWITCH), 12);
	assert_int_equal(gpu.links[11].index, 11);
	assert_int_equal(gpu.links[11].version, 3);
	assert_true(gpu.links[11].p2p);
	assert_string_equal(gpu.links[0].peer, "00000000:C4:00.0");
	assert_string_equal(gpu.links[11].peer, "00000000:C9:00.0");
	assert_int_equal(gpu.c2c_links, 0);
	assert_string_equal(gpu.fabric_uuid, "");
	assert_false(gpu.mig);
	assert_int_equal(gpu.persistent, -1);
	assert_true(tti_nvml_p2p(nvml, 0, 7, &why));
	assert_string_equal(why, "");
	assert_int_equal(tti_nvml_gpu(nvml, 8, &gpu), TUTTI_EINVAL);
	assert_int_equal(tti_nvml_gpu(nvml, -1, &gpu), TUTTI_EINVAL);
	tti_nvml_close(nvml);
}

static void a_link_that_sleeps_is_active_one_that_is_down_is_not(void **state)
{
	struct tti_nvml *nvml = open_machine(TODAY, TEST_DATA "/nvml/hgx-h100.txt");
	struct tti_nvml_gpu gpu = ask(nvml, 3);

	(void)state;
	assert_int_equal(gpu.nlinks, 18);
	assert_int_equal(count_links(&gpu, TTI_NVML_SWITCH), 18);
	assert_int_equal(gpu.links[0].version, 4);
	gpu = ask(nvml, 5);
	assert_int_equal(gpu.nlinks, 18);
	assert_int_equal(count_links(&gpu, TTI_NVML_SWITCH), 17);
	assert_int_equal(gpu.links[17].index, 17);
	assert_false(gpu.links[17].active);
	assert_string_equal(gpu.links[17].peer, "");
	tti_nvml_close(nvml);
}

static void links_between_gpus(void **state)
{
	struct tti_nvml *nvml = open_machine(TODAY, TEST_DATA "/nvml/dgx1-v100.txt");

	(void)state;
	for (int i = 0; i < 8; i++) {
		const struct tti_nvml_gpu gpu = ask(nvml, i);

		assert_int_equal(gpu.nlinks, 6);
		assert_int_equal(count_links(&gpu, TTI_NVML_GPU), 6);
		assert_int_equal(gpu.links[0].version, 2);
	}
	tti_nvml_close(nvml);
}

static void check_gh200(const char *library)
{
	struct tti_nvml *nvml = open_machine(library, TEST_DATA "/nvml/gh200.txt");
	const struct tti_nvml_gpu gpu = ask(nvml, 0);

	assert_string_equal(gpu.busid, "00000009:01:00.0");
	assert_int_equal(gpu.c2c_links, 10);
	assert_true(gpu.c2c_gbps > 44.711 && gpu.c2c_gbps < 44.713);
	assert_string_equal(gpu.fabric_uuid, "3c1f2e4d-5a6b-7c8d-9eaf-b0c1d2e3f405");
	assert_int_equal(gpu.fabric_clique, 7);
	assert_true(gpu.fabric_ready);
	assert_int_equal(count_links(&gpu, TTI_NVML_SWITCH), 18);
	tti_nvml_close(nvml);
}

static void c2c_and_a_fabric_of_several_hosts(void **state)
{
	(void)state;
	check_gh200(TODAY);
	check_gh200(OF_535);
}

static void trouble_is_told(void **state)
{
	struct tti_nvml *nvml = open_machine(TODAY, TEST_DATA "/nvml/trouble.txt");
	struct tti_nvml_gpu gpu = ask(nvml, 0);
	const char *why;

	(void)state;
	assert_int_equal(gpu.nlinks, 6);
	assert_int_equal(count_links(&gpu, TTI_NVML_GPU), 5);
	assert_false(gpu.links[4].active);
	assert_false(gpu.links[5].p2p);
	assert_string_not_equal(gpu.fabric_uuid, "");
	assert_false(gpu.fabric_ready);

	assert_int_equal(tti_nvml_gpu(nvml, 1, &gpu), TUTTI_ESYS);
	assert_non_null(strstr(tti_error_text(), "GPU 1 (00000000:43:00.0)"));
	assert_non_null(strstr(tti_error_text(), "GPU is lost"));
	assert_int_equal(tti_nvml_gpu(nvml, 2, &gpu), TUTTI_ESYS);
	assert_non_null(strstr(tti_error_text(), "Insufficient Permissions"));

	gpu = ask(nvml, 3);
	assert_true(gpu.mig);
	assert_int_equal(gpu.persistent, 1);
	assert_false(tti_nvml_p2p(nvml, 0, 3, &why));
	assert_string_equal(why, "they hang on different I/O hubs");
	assert_false(tti_nvml_p2p(nvml, 3, 0, &why));
	assert_string_equal(why, "it is not supported");
	assert_false(tti_nvml_p2p(nvml, 0, 2, &why));
	assert_string_equal(why, "the driver does not reach the GPU");
	tti_nvml_close(nvml);
}

/* Without the functions that came later: the bus id from its numbers, the other end
 * of a link of unknown kind, no fields. */
static void an_old_driver(void **state)
{
	struct tti_nvml *nvml = open_machine(OLD, TEST_DATA "/nvml/dgx1-v100.txt");
	struct tti_nvml_gpu gpu = ask(nvml, 7);

	(void)state;
	assert_string_equal(gpu.busid, "0000:8a:00.0");
	assert_int_equal(gpu.sm, 70);
	assert_int_equal(gpu.nlinks, 6);
	assert_int_equal(count_links(&gpu, TTI_NVML_OTHER), 6);
	assert_string_equal(gpu.links[0].peer, "00000000:0B:00.0");
	tti_nvml_close(nvml);

	nvml = open_machine(OLD, TEST_DATA "/nvml/gh200.txt");
	gpu = ask(nvml, 0);
	assert_int_equal(gpu.c2c_links, 0);
	assert_string_equal(gpu.fabric_uuid, "");
	tti_nvml_close(nvml);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_library_is_no_gpu),
		cmocka_unit_test(a_driver_that_is_not_loaded_is_no_gpu),
		cmocka_unit_test(a_named_library_must_be_one),
		cmocka_unit_test(dgx_a100),
		cmocka_unit_test(a_link_that_sleeps_is_active_one_that_is_down_is_not),
		cmocka_unit_test(links_between_gpus),
		cmocka_unit_test(c2c_and_a_fabric_of_several_hosts),
		cmocka_unit_test(trouble_is_told),
		cmocka_unit_test(an_old_driver),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
