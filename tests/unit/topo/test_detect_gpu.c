/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "gpu/nvml.h"
#include "topo/detect/detect.h"
#include "topo/graph/graph.h"
#include "topo/tree/schema.h"
#include "util/fault.h"
#include "util/strbuf.h"

#include "tree.h"

#include "nics.h"

#include "machine.h"

#define TODAY  TEST_LIBRARIES "/libfake_nvml.so"
#define GOLDEN TEST_GOLDEN "/topo/detected-hgx-h100.xml"
#define OLD    TEST_LIBRARIES "/libfake_nvml_old.so"

static struct tree tree;

static int make_tree(void **state)
{
	(void)state;
	tree_make(&tree);
	tree_dir(&tree, "sys/bus/pci/devices");
	return 0;
}

static int remove_tree(void **state)
{
	(void)state;
	tree_remove(&tree);
	return 0;
}

/* Detect the tree; with `machine` NULL there is no NVML. */
static struct tti_xml_doc *detect_with(const char *library, const char *machine)
{
	struct tti_detect_config config = { .sysfs_root = tree.top };
	struct tti_nvml *nvml = NULL;
	struct tti_xml_doc *doc = NULL;
	const char *why;

	if (machine) {
		assert_int_equal(setenv("FAKE_NVML", machine, 1), 0);
		assert_int_equal(tti_nvml_open_library(library, &nvml, &why), TUTTI_OK);
		assert_non_null(nvml);
		config.nvml = nvml;
	}
	assert_int_equal(tti_detect_machine(&config, &doc), TUTTI_OK);
	assert_int_equal(tti_schema_check(doc), TUTTI_OK);
	tti_nvml_close(nvml);
	return doc;
}

static struct tti_xml_doc *detect(const char *machine)
{
	return detect_with(TODAY, machine);
}

static const struct tti_xml *find_pci(const struct tti_xml_doc *doc, const char *busid)
{
	for (const struct tti_xml *node = doc->root; node; node = tti_xml_walk(node))
		if (tti_xml_is(node, "pci") && !strcmp(tti_xml_get(node, "busid"), busid))
			return node;
	fail_msg("no <pci busid=\"%s\">", busid);
	return NULL;
}

static const struct tti_xml *find_gpu(const struct tti_xml_doc *doc, const char *busid)
{
	const struct tti_xml *const gpu = tti_xml_find(find_pci(doc, busid), "gpu", NULL, NULL);

	if (!gpu)
		fail_msg("%s has no <gpu>", busid);
	return gpu;
}

static int count_of(const struct tti_xml *node, const char *name)
{
	int n = 0;

	for (const struct tti_xml *at = tti_xml_find(node, name, NULL, NULL); at;
	     at = tti_xml_next(at, name))
		n++;
	return n;
}

static void check_link(const struct tti_xml *gpu, const char *name, const char *target,
		       const char *count, const char *class_code)
{
	const struct tti_xml *const link = tti_xml_find(gpu, name, "target", target);

	if (!link)
		fail_msg("no <%s target=\"%s\">", name, target);
	assert_string_equal(tti_xml_get(link, "count"), count);
	assert_string_equal(tti_xml_get(link, "tclass"), class_code);
}

static char *read_file(const char *path)
{
	FILE *const file = fopen(path, "re");
	char *const text = calloc(1, 1 << 16);

	assert_non_null(text);
	if (!file)
		fail_msg("no file %s", path);
	assert_true(fread(text, 1, (1 << 16) - 1, file) > 0);
	fclose(file);
	return text;
}

/* Set by --write: make the golden file instead of comparing with it. */
static bool write_golden;

/* All of what is written for a machine of that kind, element by element. */
static void hgx_h100(void **state)
{
	struct tti_strbuf text = { 0 };
	struct tti_xml_doc *doc;
	char *golden;

	(void)state;
	machine_hgx(&tree);
	doc = detect(TEST_DATA "/nvml/hgx-h100.txt");
	if (write_golden)
		assert_int_equal(tti_xml_write_file(doc, GOLDEN), TUTTI_OK);
	tti_xml_write(doc, &text);
	assert_false(text.failed);
	golden = read_file(GOLDEN);
	assert_string_equal(text.text, golden);
	free(golden);
	tti_strbuf_release(&text);
	tti_xml_free(doc);
}

static void links_between_gpus_are_counted_by_target(void **state)
{
	struct tti_xml_doc *doc = detect(TEST_DATA "/nvml/dgx1-v100.txt");
	const struct tti_xml *gpu = find_gpu(doc, "0000:07:00.0");

	(void)state;
	assert_string_equal(tti_xml_get(gpu, "dev"), "1");
	assert_string_equal(tti_xml_get(gpu, "sm"), "70");
	assert_int_equal(count_of(gpu, "nvlink"), 4);
	check_link(gpu, "nvlink", "0000:06:00.0", "1", "0x030200");
	check_link(gpu, "nvlink", "0000:0a:00.0", "2", "0x030200");
	check_link(gpu, "nvlink", "0000:0b:00.0", "1", "0x030200");
	check_link(gpu, "nvlink", "0000:86:00.0", "2", "0x030200");
	assert_null(tti_xml_get(gpu, "tutti_no_p2p"));
	/* PCI does not show these GPUs: the driver's word for the link. */
	assert_string_equal(tti_xml_get(gpu->parent, "link_speed"), "8.0 GT/s PCIe");
	assert_string_equal(tti_xml_get(gpu->parent, "link_width"), "16");
	tti_xml_free(doc);
}

/* Old drivers do not say what is at the other end: its class in PCI does. */
static void an_old_driver(void **state)
{
	struct tti_xml_doc *doc;

	(void)state;
	machine_hgx(&tree);
	doc = detect_with(OLD, TEST_DATA "/nvml/hgx-h100.txt");
	check_link(find_gpu(doc, "0000:1b:00.0"), "nvlink", "0000:05:00.0", "5", "0x068000");
	tti_xml_free(doc);
	doc = detect_with(OLD, TEST_DATA "/nvml/dgx1-v100.txt");
	check_link(find_gpu(doc, "0000:06:00.0"), "nvlink", "0000:07:00.0", "1", "0x068000");
	tti_xml_free(doc);
}

/* An idle GPU lowers its link; what it can do is what counts. */
static void an_idle_link_is_not_slow(void **state)
{
	struct machine_pci pci = MACHINE_GPU("0");
	struct tti_xml_doc *doc;
	const struct tti_xml *gpu;

	(void)state;
	machine_node(&tree, 0, "0-7\n", "10\n");
	pci.speed = "16.0 GT/s PCIe";
	machine_pci(&tree, "pci0000:00/0000:07:00.0", pci);
	pci.speed = NULL;
	machine_pci(&tree, "pci0000:00/0000:0f:00.0", pci);
	tree_file(&tree, "sys/devices/pci0000:00/0000:0f:00.0/current_link_speed",
		  "2.5 GT/s PCIe\n");
	tree_file(&tree, "sys/devices/pci0000:00/0000:0f:00.0/current_link_width", "16\n");
	doc = detect(TEST_DATA "/nvml/dgx-a100.txt");
	for (int i = 0; i < 2; i++) {
		gpu = find_gpu(doc, i ? "0000:0f:00.0" : "0000:07:00.0");
		assert_string_equal(tti_xml_get(gpu->parent, "link_speed"), "16.0 GT/s PCIe");
		assert_string_equal(tti_xml_get(gpu->parent, "link_width"), "16");
		assert_string_equal(tti_xml_get(gpu->parent, "tutti_link_now"),
				    "2.5 GT/s PCIe x16");
	}
	tti_xml_free(doc);
}

static void c2c_and_fabric(void **state)
{
	struct tti_xml_doc *doc = detect(TEST_DATA "/nvml/gh200.txt");
	const struct tti_xml *gpu = find_gpu(doc, "0009:01:00.0");
	const struct tti_xml *c2c = tti_xml_find(gpu, "c2c", NULL, NULL);

	(void)state;
	assert_string_equal(tti_xml_get(gpu, "tutti_fabric"),
			    "3c1f2e4d-5a6b-7c8d-9eaf-b0c1d2e3f405.7");
	check_link(gpu, "nvlink", "fffffff:ff:ff.0", "18", "0x068000");
	assert_non_null(c2c);
	assert_string_equal(tti_xml_get(c2c, "bw"), "44712");
	assert_string_equal(tti_xml_get(c2c, "count"), "10");
	assert_null(tti_xml_get(gpu->parent, "tutti_link_now"));
	tti_xml_free(doc);
}

static void links_to_the_cpu(void **state)
{
	struct tti_xml_doc *doc = detect(TEST_DATA "/nvml/ac922.txt");
	const struct tti_xml *gpu = find_gpu(doc, "0004:04:00.0");

	(void)state;
	check_link(gpu, "nvlink", "0005:00:01.0", "3", "0x068001");
	check_link(gpu, "nvlink", "0004:05:00.0", "3", "0x030200");
	tti_xml_free(doc);
}

/* A lost GPU and one that may not be touched stay PCI functions; a link that is down,
 * or not for GPUs, does not count. */
static void trouble(void **state)
{
	struct tti_xml_doc *doc;
	const struct tti_xml *gpu;

	(void)state;
	machine_hgx(&tree);
	doc = detect(TEST_DATA "/nvml/trouble.txt");
	assert_null(tti_xml_find(find_pci(doc, "0000:43:00.0"), "gpu", NULL, NULL));
	assert_null(tti_xml_find(find_pci(doc, "0000:52:00.0"), "gpu", NULL, NULL));
	gpu = find_gpu(doc, "0000:1b:00.0");
	assert_int_equal(count_of(gpu, "nvlink"), 1);
	check_link(gpu, "nvlink", "0000:61:00.0", "4", "0x030200");
	assert_null(tti_xml_get(gpu, "tutti_fabric"));
	assert_null(tti_xml_get(gpu, "tutti_mig"));
	assert_string_equal(tti_xml_get(gpu, "tutti_no_p2p"), "0000:61:00.0");
	assert_string_equal(tti_xml_get(gpu->parent, "tutti_link_now"), "32.0 GT/s PCIe x8");
	gpu = find_gpu(doc, "0000:61:00.0");
	assert_string_equal(tti_xml_get(gpu, "dev"), "3");
	assert_string_equal(tti_xml_get(gpu, "tutti_mig"), "1");
	assert_string_equal(tti_xml_get(gpu, "tutti_no_p2p"), "0000:1b:00.0");
	check_link(gpu, "nvlink", "0000:1b:00.0", "3", "0x030200");
	tti_xml_free(doc);
}

/* No NVML in a captured machine: /proc tells which GPUs have a driver, and numbers
 * them; the others stay bare. */
static void proc_numbers_gpus(void **state)
{
	struct tti_xml_doc *doc;

	(void)state;
	machine_hgx(&tree);
	tree_file(&tree, "proc/driver/nvidia/gpus/0000:52:00.0/information", "Model: H100\n");
	tree_file(&tree, "proc/driver/nvidia/gpus/0000:43:00.0/information", "Model: H100\n");
	tree_file(&tree, "proc/driver/nvidia/gpus/none/information", "\n");
	doc = detect(NULL);
	assert_string_equal(tti_xml_get(find_gpu(doc, "0000:43:00.0"), "dev"), "0");
	assert_string_equal(tti_xml_get(find_gpu(doc, "0000:52:00.0"), "dev"), "1");
	assert_null(tti_xml_get(find_gpu(doc, "0000:52:00.0"), "sm"));
	assert_null(tti_xml_find(find_pci(doc, "0000:61:00.0"), "gpu", NULL, NULL));
	tti_xml_free(doc);
}

static void kfd_node(int node, const char *text)
{
	nics_file(&tree, text, "sys/devices/virtual/kfd/kfd/topology/nodes/%d/properties", node);
}

static void kfd_link(int node, int link, const char *text)
{
	nics_file(&tree, text,
		  "sys/devices/virtual/kfd/kfd/topology/nodes/%d/io_links/%d/properties", node,
		  link);
}

static void make_amd(void)
{
	struct machine_pci pci = { "0x120000", "0x1002", "0x74a1", "32.0 GT/s PCIe", "16", "0" };

	machine_node(&tree, 0, "0-7\n", "10\n");
	machine_pci(&tree, "pci0000:00/0000:0c:00.0", pci);
	machine_pci(&tree, "pci0000:00/0000:9f:00.0", pci);
	pci.class_code = "0x038000";
	machine_pci(&tree, "pci0000:00/0001:43:00.0", pci);
	machine_pci(&tree, "pci0000:00/0001:44:00.0", pci);
	tree_link(&tree, "sys/class/kfd/kfd", "../../devices/virtual/kfd/kfd");
	kfd_node(0, "cpu_cores_count 8\nsimd_count 0\ngfx_target_version 0\n");
	kfd_node(1, "simd_count 1216\ngfx_target_version 90402\nlocation_id 3072\ndomain 0\n");
	kfd_node(2, "simd_count 1216\ngfx_target_version 90402\nlocation_id 40704\ndomain 0\n");
	kfd_node(10, "simd_count 440\nlocation_id 17152\ndomain 1\ngfx_target_version 90010\n");
	kfd_node(11, "simd_count 40\nlocation_id 3073\ndomain 0\ngfx_target_version 90402\n");
}

static void amd_gpus_and_xgmi(void **state)
{
	struct tti_xml_doc *doc;
	const struct tti_xml *gpu;

	(void)state;
	make_amd();
	kfd_link(1, 0, "type 2\nnode_from 1\nnode_to 0\nmin_bandwidth 312\nmax_bandwidth 64000\n");
	kfd_link(1, 1, "type 11\nnode_from 1\nnode_to 2\nmin_bandwidth 0\nmax_bandwidth 0\n");
	kfd_link(1, 2,
		 "type 11\nnode_from 1\nnode_to 10\nmin_bandwidth 64000\n"
		 "max_bandwidth 256000\n");
	kfd_link(1, 3, "type 11\nnode_from 1\nnode_to 99\nmin_bandwidth 0\nmax_bandwidth 0\n");
	kfd_link(1, 4, "type 11\nnode_from 1\nnode_to 0\nmin_bandwidth 0\nmax_bandwidth 0\n");
	doc = detect(NULL);
	gpu = find_gpu(doc, "0000:0c:00.0");
	assert_string_equal(tti_xml_get(gpu, "dev"), "0");
	assert_string_equal(tti_xml_get(gpu, "gcn"), "gfx942");
	assert_int_equal(count_of(gpu, "xgmi"), 2);
	check_link(gpu, "xgmi", "0000:9f:00.0", "1", "0x120000");
	check_link(gpu, "xgmi", "0001:43:00.0", "4", "0x038000");
	assert_string_equal(tti_xml_get(find_gpu(doc, "0000:9f:00.0"), "dev"), "1");
	gpu = find_gpu(doc, "0001:43:00.0");
	assert_string_equal(tti_xml_get(gpu, "dev"), "2");
	assert_string_equal(tti_xml_get(gpu, "gcn"), "gfx90a");
	assert_null(tti_xml_find(find_pci(doc, "0001:44:00.0"), "gpu", NULL, NULL));
	/* The second part of the first GPU is not another one. */
	assert_int_equal(count_of(find_pci(doc, "0000:0c:00.0"), "gpu"), 1);
	for (const struct tti_xml *node = doc->root; node; node = tti_xml_walk(node))
		assert_false(tti_xml_is(node, "pci") &&
			     !strcmp(tti_xml_get(node, "busid"), "0000:0c:00.1"));
	assert_string_equal(tti_xml_get(doc->root, "version"), "2");
	tti_xml_free(doc);
}

static void kfd_may_say_anything(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n\n",
		"gfx_target_version",
		"gfx_target_version x\nlocation_id 3072\n",
		"gfx_target_version 99999999999999999999\n",
		"gfx_target_version 90402\nlocation_id 18446744073709551615\n",
		"gfx_target_version 1000000\nlocation_id 1\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct tti_xml_doc *doc;

		make_amd();
		kfd_node(1, texts[i]);
		kfd_node(11, "");
		kfd_link(2, 0, "type 11\nnode_to 1\n");
		kfd_link(2, 1, "type 11\nnode_to 2\n");
		kfd_link(2, 2, "type 11\nnode_to 10\nmin_bandwidth 1\nmax_bandwidth 100000\n");
		doc = detect(NULL);
		assert_null(tti_xml_find(find_pci(doc, "0000:0c:00.0"), "gpu", NULL, NULL));
		assert_int_equal(count_of(find_gpu(doc, "0000:9f:00.0"), "xgmi"), 0);
		tti_xml_free(doc);
		tree_remove(&tree);
		make_tree(NULL);
	}
}

/* /proc knows a GPU whose PCI function is an empty directory, and one that PCI does not
 * show at all, as in captures of which a part is missing. */
static void proc_and_half_a_tree(void **state)
{
	struct tti_xml_doc *doc;

	(void)state;
	machine_node(&tree, 0, "0-7\n", "10 40\n");
	machine_node(&tree, 1, "8-15\n", "40 10\n");
	tree_dir(&tree, "sys/devices/pci0004:00/0004:04:00.0");
	tree_link(&tree, "sys/bus/pci/devices/0004:04:00.0",
		  "../../../devices/pci0004:00/0004:04:00.0");
	tree_dir(&tree, "proc/driver/nvidia/gpus/0004:04:00.0");
	tree_dir(&tree, "proc/driver/nvidia/gpus/0035:05:00.0");
	doc = detect(NULL);
	for (int i = 0; i < 2; i++) {
		const struct tti_xml *gpu = find_gpu(doc, i ? "0035:05:00.0" : "0004:04:00.0");

		assert_string_equal(tti_xml_get(gpu, "dev"), i ? "1" : "0");
		assert_string_equal(tti_xml_get(gpu->parent, "vendor"), "0x10de");
		assert_int_equal(strncmp(tti_xml_get(gpu->parent, "class"), "0x03", 4), 0);
	}
	tti_xml_free(doc);
}

/* Each allocation fails once: an error, and nothing is lost. */
static void out_of_memory(void **state)
{
	struct tti_detect_config config = { .sysfs_root = tree.top };
	struct tti_nvml *nvml = NULL;
	tutti_status status = TUTTI_ENOMEM;
	const char *why;
	char fault[32];
	int at;

	(void)state;
	make_amd();
	kfd_link(1, 0, "type 11\nnode_from 1\nnode_to 2\n");
	assert_int_equal(setenv("FAKE_NVML", TEST_DATA "/nvml/trouble.txt", 1), 0);
	assert_int_equal(tti_nvml_open_library(TODAY, &nvml, &why), TUTTI_OK);
	config.nvml = nvml;
	for (at = 1; status != TUTTI_OK && at < 10000; at++) {
		struct tti_xml_doc *doc = NULL;

		snprintf(fault, sizeof(fault), "mem:%d", at);
		tti_fault_set(fault);
		status = tti_detect_machine(&config, &doc);
		tti_fault_set(NULL);
		assert_true(status == TUTTI_OK ? doc != NULL : doc == NULL);
		if (status != TUTTI_OK)
			assert_int_equal(status, TUTTI_ENOMEM);
		tti_xml_free(doc);
	}
	assert_true(at > 20 && at < 10000);
	tti_nvml_close(nvml);
}

/* What is detected can be built from: every machine gives a graph that holds, with its
 * GPUs. In "trouble" the driver knows two of the eight that PCI shows. */
static void graphs_of_all_machines(void **state)
{
	static const struct {
		const char *name;
		uint32_t ngpus;
	} machines[] = {
		{ "dgx-a100", 8 }, { "hgx-h100", 8 }, { "dgx1-v100", 8 },
		{ "gh200", 1 },    { "trouble", 8 },  { "ac922", 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		struct tti_graph *graph = NULL;
		struct tti_xml_doc *doc;
		char path[256];

		tree_remove(&tree);
		make_tree(NULL);
		if (!strcmp(machines[i].name, "trouble") || !strcmp(machines[i].name, "hgx-h100"))
			machine_hgx(&tree);
		else
			machine_node(&tree, 0, "0-7\n", "10\n");
		snprintf(path, sizeof(path), "%s/nvml/%s.txt", TEST_DATA, machines[i].name);
		doc = detect(path);
		assert_int_equal(tti_graph_build(doc, TTI_MODEL_TUTTI, &graph), TUTTI_OK);
		assert_int_equal(tti_graph_check(graph), TUTTI_OK);
		assert_int_equal(graph->ntype[TTI_NODE_GPU], machines[i].ngpus);
		tti_graph_free(graph);
		tti_xml_free(doc);
	}
}

static void no_gpus(void **state)
{
	struct tti_xml_doc *doc;

	(void)state;
	machine_node(&tree, 0, "0-7\n", "10\n");
	doc = detect(NULL);
	for (const struct tti_xml *node = doc->root; node; node = tti_xml_walk(node))
		assert_false(tti_xml_is(node, "gpu"));
	tti_xml_free(doc);
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_tree, remove_tree)
	const struct CMUnitTest tests[] = {
		TEST(hgx_h100),
		TEST(links_between_gpus_are_counted_by_target),
		TEST(an_old_driver),
		TEST(an_idle_link_is_not_slow),
		TEST(c2c_and_fabric),
		TEST(links_to_the_cpu),
		TEST(trouble),
		TEST(proc_numbers_gpus),
		TEST(amd_gpus_and_xgmi),
		TEST(kfd_may_say_anything),
		TEST(proc_and_half_a_tree),
		TEST(out_of_memory),
		TEST(graphs_of_all_machines),
		TEST(no_gpus),
	};

	write_golden = argc > 1 && !strcmp(argv[1], "--write");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
