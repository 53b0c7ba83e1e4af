/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree.h"

#include "nics.h"
#include "topo/detect/detect_parts.h"

#define OPEN   "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82  Release Build\n"
#define CLOSED "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.82  Wed\n"

/* A document with one GPU and two NICs, and what sysfs says of drivers and kernel. */
static struct tree tree;
static struct tti_detect detect;
static struct tti_xml *gpu, *rdma, *ethernet;

static struct tti_xml *add(struct tti_xml *parent, const char *name)
{
	struct tti_xml *const node = tti_xml_add(detect.doc, parent, name);

	assert_non_null(node);
	return node;
}

static struct tti_xml *add_pci(struct tti_xml *parent, const char *class, const char *vendor)
{
	struct tti_xml *const pci = add(parent, "pci");

	assert_true(tti_xml_set(detect.doc, pci, "class", class));
	assert_true(tti_xml_set(detect.doc, pci, "vendor", vendor));
	return pci;
}

static int set_up(void **state)
{
	static const struct tti_detect_config config;
	struct tti_xml *cpu;

	(void)state;
	tree_make(&tree);
	tree_dir(&tree, "sys");
	detect = (struct tti_detect){ .config = &config };
	assert_int_equal(tti_sysfs_open(tree.top, &detect.sysfs), TUTTI_OK);
	assert_int_equal(tti_xml_create("test", &detect.doc), TUTTI_OK);
	cpu = add(detect.doc->root, "cpu");
	gpu = add(add_pci(cpu, "0x030200", "0x10de"), "gpu");
	rdma = add(add(add_pci(cpu, "0x020000", "0x15b3"), "nic"), "net");
	ethernet = add(add(add_pci(cpu, "0x020000", "0x15b3"), "nic"), "net");
	assert_true(tti_xml_set(detect.doc, rdma, "name", "mlx5_0:1"));
	assert_true(tti_xml_set(detect.doc, ethernet, "name", "eth0"));
	nics_pci(&tree, "pci0000:00/0000:00:01.0", "0x020000\n", "mlx5_core");
	nics_rdma(&tree, "mlx5_0", "pci0000:00/0000:00:01.0", 1, "946d:ae03:0050:709a\n");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tti_xml_free(detect.doc);
	tti_sysfs_close(&detect.sysfs);
	tree_remove(&tree);
	return 0;
}

static void run(void)
{
	assert_int_equal(tti_detect_gdr(&detect), TUTTI_OK);
}

static void assert_gdr(const struct tti_xml *node, const char *gdr, const char *why)
{
	assert_string_equal(tti_xml_get(node, "gdr"), gdr);
	assert_non_null(strstr(tti_xml_get(node, "tutti_gdr_why"), why));
}

static void a_module_is_enough(void **state)
{
	(void)state;
	tree_file(&tree, "proc/driver/nvidia/version", CLOSED);
	tree_file(&tree, "proc/sys/kernel/osrelease", "4.18.0\n");
	tree_file(&tree, "sys/module/nvidia_peermem/version", "580.82\n");
	run();
	assert_gdr(gpu, "1", "nvidia_peermem is loaded");
	assert_gdr(rdma, "1", "nvidia_peermem is loaded");
	assert_gdr(ethernet, "0", "not an RDMA device");
}

static void without_a_driver_there_is_none(void **state)
{
	(void)state;
	tree_file(&tree, "proc/sys/kernel/osrelease", "6.8.0\n");
	run();
	assert_gdr(gpu, "0", "the NVIDIA driver is not loaded");
	assert_gdr(rdma, "0", "the NVIDIA driver is not loaded");
}

static void dmabuf_takes_the_open_modules(void **state)
{
	(void)state;
	tree_file(&tree, "proc/sys/kernel/osrelease", "5.15.0-91-generic\n");
	tree_file(&tree, "proc/driver/nvidia/version", CLOSED);
	run();
	assert_gdr(gpu, "0", "only the open ones have dma-buf");
	assert_gdr(rdma, "0", "nvidia_peermem is not loaded");
	tree_file(&tree, "proc/driver/nvidia/version", OPEN);
	run();
	assert_gdr(gpu, "1", "dma-buf, kernel 5.15");
	assert_gdr(rdma, "1", "dma-buf, kernel 5.15, driver mlx5_core");
	assert_gdr(ethernet, "0", "not an RDMA device");
}

static void dmabuf_takes_a_kernel(void **state)
{
	(void)state;
	tree_file(&tree, "proc/driver/nvidia/version", OPEN);
	run();
	assert_gdr(gpu, "0", "the kernel's version is not known");
	tree_file(&tree, "proc/version", "Linux version 4.18.0-477.el8.x86_64 (b@h)\n");
	run();
	assert_gdr(gpu, "0", "kernel 4.18 has no dma-buf for RDMA");
	assert_gdr(rdma, "0", "kernel 4.18 has no dma-buf for RDMA");
	tree_file(&tree, "proc/version", "Linux version 5.12.1\n");
	run();
	assert_gdr(gpu, "1", "kernel 5.12");
}

static void dmabuf_takes_the_driver_of_the_nic(void **state)
{
	const char *const driver = "sys/devices/pci0000:00/0000:00:01.0/driver";

	(void)state;
	tree_file(&tree, "proc/driver/nvidia/version", OPEN);
	tree_file(&tree, "proc/sys/kernel/osrelease", "5.15.0\n");
	assert_int_equal(unlink(tree_path(&tree, driver)), 0);
	run();
	assert_gdr(gpu, "1", "dma-buf");
	assert_gdr(rdma, "0", "the NIC's driver is not known");
	tree_dir(&tree, "sys/bus/pci/drivers/efa");
	tree_dir(&tree, "sys/bus/pci/drivers/hfi1");
	tree_link(&tree, driver, "/sys/bus/pci/drivers/efa");
	run();
	assert_gdr(rdma, "0", "efa has dma-buf from kernel 5.16");
	tree_file(&tree, "proc/sys/kernel/osrelease", "6.1.0\n");
	run();
	assert_gdr(rdma, "1", "driver efa");
	assert_int_equal(unlink(tree_path(&tree, driver)), 0);
	tree_link(&tree, driver, "/sys/bus/pci/drivers/hfi1");
	run();
	assert_gdr(rdma, "0", "hfi1 is not known to have dma-buf");
}

static void each_vendor_has_its_own_way(void **state)
{
	(void)state;
	tree_file(&tree, "sys/module/nvidia_peermem/version", "580.82\n");
	assert_true(tti_xml_set(detect.doc, gpu->parent, "vendor", "0x1002"));
	run();
	assert_gdr(gpu, "0", "the amdgpu driver is not loaded");
	assert_gdr(rdma, "0", "the amdgpu driver is not loaded");
	tree_file(&tree, "sys/kernel/mm/memory_peers/amdkfd/version", "1.0\n");
	run();
	assert_gdr(gpu, "1", "amdkfd");
	assert_gdr(rdma, "1", "amdkfd");
	assert_true(tti_xml_set(detect.doc, gpu->parent, "vendor", "0x1bcf"));
	run();
	assert_gdr(gpu, "0", "no way is known");
}

static void without_a_gpu_there_is_nothing_to_reach(void **state)
{
	struct tti_xml *const pci = gpu->parent;

	(void)state;
	tree_file(&tree, "sys/module/nvidia_peermem/version", "580.82\n");
	/* The VGA of a mainboard is no GPU. */
	assert_true(tti_xml_set(detect.doc, pci, "vendor", "0x102b"));
	assert_true(tti_xml_set(detect.doc, pci, "class", "0x030000"));
	tti_xml_unlink(gpu);
	run();
	assert_gdr(rdma, "0", "there is no GPU");
	/* One without a driver still is one. */
	assert_true(tti_xml_set(detect.doc, pci, "vendor", "0x10de"));
	run();
	assert_gdr(rdma, "1", "nvidia_peermem");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_module_is_enough),
		TEST(without_a_driver_there_is_none),
		TEST(dmabuf_takes_the_open_modules),
		TEST(dmabuf_takes_a_kernel),
		TEST(dmabuf_takes_the_driver_of_the_nic),
		TEST(each_vendor_has_its_own_way),
		TEST(without_a_gpu_there_is_nothing_to_reach),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
