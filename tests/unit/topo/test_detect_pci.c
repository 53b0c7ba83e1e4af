/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "made.h"
#include "topo/tree/schema.h"
#include "util/clock.h"
#include "util/fault.h"

#define GPU    "0x030200"
#define NIC    "0x020000"
#define BRIDGE "0x060400"
#define NVME   "0x010802"

static struct tree tree;

static int set_up(void **state)
{
	(void)state;
	tree_make(&tree);
	made_two_nodes(&tree);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tti_fault_set(NULL);
	tree_remove(&tree);
	return 0;
}

/* The PCI Express capability at 0x60, behind another one, in `nbytes` of config. */
static void config(const char *place, int port, int speed, int width, size_t nbytes)
{
	unsigned char bytes[256] = { 0 };
	char name[512];
	FILE *file;

	bytes[0x06] = 0x10;
	bytes[0x34] = 0x40;
	bytes[0x40] = 0x01;
	bytes[0x41] = 0x60;
	bytes[0x60] = 0x10;
	bytes[0x62] = (unsigned char)(port << 4 | 2);
	bytes[0x6c] = (unsigned char)(speed | width << 4);
	bytes[0x6d] = (unsigned char)(width >> 4);
	snprintf(name, sizeof(name), "sys/devices/%s/config", place);
	file = fopen(tree_path(&tree, name), "we");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, nbytes, file), nbytes);
	assert_int_equal(fclose(file), 0);
}

static void assert_attr(const char *busid, const char *name, const char *want)
{
	struct tti_xml_doc *doc = made_detect(&tree, true);
	const struct tti_xml *xml = doc->root;

	while (xml && !(tti_xml_get(xml, "busid") && !strcmp(tti_xml_get(xml, "busid"), busid)))
		xml = tti_xml_walk(xml);
	assert_non_null(xml);
	if (want && tti_xml_get(xml, name))
		assert_string_equal(tti_xml_get(xml, name), want);
	else
		assert_true(!want && !tti_xml_get(xml, name));
	tti_xml_free(doc);
}

/* -- Shape -------------------------------------------------------------------------- */

#define ROOT   "pci0000:00/0000:00:01.0"
#define SWITCH ROOT "/0000:01:00.0"

static void switches_are_one_element_and_root_ports_none(void **state)
{
	(void)state;
	made_pci(&tree, ROOT, BRIDGE);
	made_pci(&tree, SWITCH, BRIDGE);
	made_pci(&tree, SWITCH "/0000:02:00.0", BRIDGE);
	made_pci(&tree, SWITCH "/0000:02:01.0", BRIDGE);
	made_pci(&tree, SWITCH "/0000:02:00.0/0000:03:00.0", GPU);
	made_pci(&tree, SWITCH "/0000:02:01.0/0000:04:00.0", BRIDGE);
	made_pci(&tree, SWITCH "/0000:02:01.0/0000:04:00.0/0000:05:00.0", BRIDGE);
	made_pci(&tree, SWITCH "/0000:02:01.0/0000:04:00.0/0000:05:00.0/0000:06:00.1", NIC);
	made_pci(&tree, SWITCH "/0000:02:01.0/0000:04:00.0/0000:05:00.0/0000:06:00.0", NIC);
	made_pci(&tree, "pci0000:00/0000:00:02.0", BRIDGE);
	made_pci(&tree, "pci0000:00/0000:00:02.0/0000:07:00.0", GPU);
	made_assert_shape(&tree, false,
			  "cpu0(0000:01:00.0(0000:03:00.0 0000:04:00.0(0000:06:00.0 "
			  "0000:06:00.1)) 0000:07:00.0) cpu1");
}

static void what_cannot_communicate_comes_only_with_all(void **state)
{
	(void)state;
	made_pci(&tree, ROOT, BRIDGE);
	made_pci(&tree, SWITCH, BRIDGE);
	made_pci(&tree, SWITCH "/0000:02:00.0", BRIDGE);
	made_pci(&tree, SWITCH "/0000:02:00.0/0000:03:00.0", NVME);
	made_pci(&tree, "pci0000:00/0000:00:1f.0", "0x060100");
	made_pci(&tree, "pci0000:00/0000:00:03.0", "0x0b4000");
	made_pci(&tree, "pci0000:00/0000:00:04.0", "0x120000");
	made_pci(&tree, "pci0000:00/0000:00:05.0", "0x0c0600");
	made_pci(&tree, "pci0000:00/0000:00:06.0", "0x068000");
	made_pci(&tree, "pci0000:00/0000:00:07.0", "0x068000");
	made_attr(&tree, "pci0000:00/0000:00:06.0", "vendor", "0x8086");
	made_attr(&tree, "pci0000:00/0000:00:07.0", "vendor", "0x10de");
	made_assert_shape(&tree, false,
			  "cpu0(0000:00:03.0 0000:00:04.0 0000:00:05.0 0000:00:07.0) cpu1");
	made_assert_shape(&tree, true,
			  "cpu0(0000:00:03.0 0000:00:04.0 0000:00:05.0 0000:00:06.0 "
			  "0000:00:07.0 0000:00:1f.0 0000:01:00.0(0000:03:00.0)) cpu1");
}

/* A bridge to PCI below a root port looks like half a switch, and so do two of them
 * like a whole one, unless their capabilities may be read. */
static void bridges_of_old_kinds_are_elements(void **state)
{
	(void)state;
	made_pci(&tree, ROOT, BRIDGE);
	made_pci(&tree, SWITCH, BRIDGE);
	made_pci(&tree, SWITCH "/0000:02:00.0", BRIDGE);
	made_pci(&tree, SWITCH "/0000:02:00.0/0000:03:04.0", NIC);
	made_pci(&tree, SWITCH "/0000:02:05.0", GPU);
	made_assert_shape(&tree, false, "cpu0(0000:01:00.0(0000:02:05.0 0000:03:04.0)) cpu1");
	config(SWITCH, 7, 1, 1, 256);
	made_assert_shape(&tree, false,
			  "cpu0(0000:01:00.0(0000:02:00.0(0000:03:04.0) 0000:02:05.0)) cpu1");
	/* What may be read without being root says nothing of it. */
	config(SWITCH, 7, 1, 1, 64);
	made_assert_shape(&tree, false, "cpu0(0000:01:00.0(0000:02:05.0 0000:03:04.0)) cpu1");
	config(SWITCH, 5, 1, 1, 256);
	config(SWITCH "/0000:02:00.0", 6, 1, 1, 256);
	made_assert_shape(&tree, false, "cpu0(0000:01:00.0(0000:02:05.0 0000:03:04.0)) cpu1");
}

static void ports_that_are_not_listed_count(void **state)
{
	(void)state;
	made_pci(&tree, SWITCH "/0000:02:00.0/0000:03:00.0", GPU);
	made_assert_shape(&tree, false, "cpu0(0000:01:00.0(0000:03:00.0)) cpu1");
	assert_attr("0000:01:00.0", "class", "0x060400");
}

static void order_is_that_of_numbers(void **state)
{
	(void)state;
	made_pci(&tree, "pci10000:00/10000:00:01.0", GPU);
	made_pci(&tree, "pci2000:00/2000:00:01.0", GPU);
	made_pci(&tree, "pci0000:ff/0000:ff:01.0", GPU);
	made_pci(&tree, "pci0000:00/0000:00:0a.0", GPU);
	made_pci(&tree, "pciffffffff:00/ffffffff:00:01.0", NIC);
	made_assert_shape(&tree, false,
			  "cpu0(0000:00:0a.0 0000:ff:01.0 2000:00:01.0 10000:00:01.0 "
			  "ffffffff:00:01.0) cpu1");
}

/* Buses that a function makes, in a domain of their own (VMD), are where it is. */
static void domains_behind_a_function(void **state)
{
	(void)state;
	made_pci(&tree, "pci0000:5d/0000:5d:05.5", "0x010400");
	made_attr(&tree, "pci0000:5d/0000:5d:05.5", "numa_node", "1");
	made_pci(&tree, "pci0000:5d/0000:5d:05.5/pci10000:00/10000:00:02.0", BRIDGE);
	made_pci(&tree, "pci0000:5d/0000:5d:05.5/pci10000:00/10000:00:02.0/10000:01:00.0", NIC);
	made_assert_shape(&tree, false, "cpu0 cpu1(10000:01:00.0)");
}

static void controllers_below_other_buses(void **state)
{
	static const char arm[] = "platform/soc/40000000.pcie/pci0002:00/0002:00:00.0/0002:01:00.0";
	static const char hyperv[] = "LNXSYSTM:00/VMBUS:00/47505500-0001-0000-3130-444531303244/"
				     "pci0001:00/0001:00:00.0";

	(void)state;
	made_pci(&tree, arm, NIC);
	made_pci(&tree, hyperv, GPU);
	made_assert_shape(&tree, false, "cpu0(0001:00:00.0 0002:01:00.0) cpu1");
}

/* -- Links -------------------------------------------------------------------------- */

#define BELOW ROOT "/0000:01:00.0"

static void links_are_the_lesser_of_both_ends(void **state)
{
	(void)state;
	made_pci(&tree, ROOT, BRIDGE);
	made_pci(&tree, BELOW, GPU);
	made_attr(&tree, BELOW, "max_link_speed", "32.0 GT/s PCIe");
	made_attr(&tree, BELOW, "max_link_width", "16");
	assert_attr("0000:01:00.0", "link_speed", "32.0 GT/s PCIe");
	assert_attr("0000:01:00.0", "link_width", "16");
	made_attr(&tree, ROOT, "max_link_speed", "16 GT/s");
	made_attr(&tree, ROOT, "max_link_width", "8");
	assert_attr("0000:01:00.0", "link_speed", "16.0 GT/s PCIe");
	assert_attr("0000:01:00.0", "link_width", "8");
	assert_attr("0000:01:00.0", "tutti_link_now", NULL);
	made_attr(&tree, BELOW, "current_link_speed", "16.0 GT/s PCIe");
	made_attr(&tree, BELOW, "current_link_width", "8");
	assert_attr("0000:01:00.0", "tutti_link_now", NULL);
	made_attr(&tree, BELOW, "current_link_width", "4");
	assert_attr("0000:01:00.0", "tutti_link_now", "16.0 GT/s PCIe x4");
	assert_attr("0000:01:00.0", "tutti_path", NULL);
}

static void links_have_several_sources(void **state)
{
	(void)state;
	made_pci(&tree, BELOW, GPU);
	assert_attr("0000:01:00.0", "link_speed", NULL);
	assert_attr("0000:01:00.0", "link_width", NULL);
	config(BELOW, 0, 5, 16, 256);
	assert_attr("0000:01:00.0", "link_speed", "32.0 GT/s PCIe");
	assert_attr("0000:01:00.0", "link_width", "16");
	made_attr(&tree, BELOW, "max_link_speed", "Unknown");
	made_attr(&tree, BELOW, "max_link_width", "255");
	assert_attr("0000:01:00.0", "link_speed", "32.0 GT/s PCIe");
	assert_attr("0000:01:00.0", "link_width", "16");
	made_attr(&tree, BELOW, "current_link_speed", "2.5 GT/s PCIe");
	made_attr(&tree, BELOW, "current_link_width", "0");
	assert_attr("0000:01:00.0", "link_speed", "2.5 GT/s PCIe");
	assert_attr("0000:01:00.0", "link_width", "16");
	made_attr(&tree, BELOW, "current_link_width", "32");
	assert_attr("0000:01:00.0", "link_width", "32");
	made_attr(&tree, BELOW, "current_link_speed", "133 MHz PCI-X");
	assert_attr("0000:01:00.0", "link_speed", "32.0 GT/s PCIe");
}

static void capabilities_may_be_damaged(void **state)
{
	unsigned char loop[256] = { [0x06] = 0x10, [0x34] = 0x40, [0x41] = 0x40 };
	unsigned char last[256] = { [0x06] = 0x10, [0x34] = 0xfc, [0xfc] = 0x10 };
	unsigned char ones[256];
	const unsigned char *const bad[] = { loop, last, ones };

	(void)state;
	memset(ones, 0xff, sizeof(ones)); /* what a device that is gone reads as */
	made_pci(&tree, BELOW, GPU);
	made_pci(&tree, BELOW "/0000:02:00.0", NIC);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		FILE *file = fopen(tree_path(&tree, "sys/devices/" BELOW "/config"), "we");

		assert_non_null(file);
		assert_int_equal(fwrite(bad[i], 1, 256, file), 256);
		assert_int_equal(fclose(file), 0);
		assert_attr("0000:01:00.0", "link_speed", NULL);
		assert_attr("0000:01:00.0", "link_width", NULL);
	}
}

/* -- Places ------------------------------------------------------------------------- */

static void what_is_nearest_to_the_root_decides(void **state)
{
	(void)state;
	made_pci(&tree, ROOT, BRIDGE);
	made_pci(&tree, BELOW, GPU);
	made_attr(&tree, ROOT, "numa_node", "0");
	made_attr(&tree, BELOW, "numa_node", "1");
	made_assert_shape(&tree, false, "cpu0(0000:01:00.0) cpu1");
	made_attr(&tree, ROOT, "numa_node", "-1");
	made_assert_shape(&tree, false, "cpu0 cpu1(0000:01:00.0)");
	made_attr(&tree, BELOW, "numa_node", "7"); /* is not there */
	made_assert_shape(&tree, false, "cpu0(0000:01:00.0) cpu1");
	made_attr(&tree, BELOW, "local_cpulist", "4-7");
	made_assert_shape(&tree, false, "cpu0 cpu1(0000:01:00.0)");
	made_attr(&tree, ROOT, "local_cpus", "000000ff"); /* all: says nothing */
	made_assert_shape(&tree, false, "cpu0 cpu1(0000:01:00.0)");
	made_attr(&tree, ROOT, "local_cpus", "0000000f");
	made_assert_shape(&tree, false, "cpu0(0000:01:00.0) cpu1");
	made_attr(&tree, ROOT, "numa_node", "1");
	made_assert_shape(&tree, false, "cpu0 cpu1(0000:01:00.0)");
}

static void several_nodes_are_the_first_of_them(void **state)
{
	(void)state;
	made_node(&tree, 0, "3", "10 12 32 32");
	made_node(&tree, 1, "c", "12 10 32 32");
	made_node(&tree, 2, "30", "32 32 10 12");
	made_node(&tree, 3, "c0", "32 32 12 10");
	made_pci(&tree, BELOW, GPU);
	made_attr(&tree, BELOW, "local_cpus", "f0");
	made_assert_shape(&tree, false, "cpu0 cpu1 cpu2(0000:01:00.0) cpu3");
}

static void all_below_one_root_port_have_one_place(void **state)
{
	(void)state;
	made_pci(&tree, ROOT "/0000:01:00.0", GPU);
	made_pci(&tree, ROOT "/0000:01:00.1", NIC);
	made_attr(&tree, ROOT "/0000:01:00.0", "numa_node", "1");
	made_attr(&tree, ROOT "/0000:01:00.1", "numa_node", "0");
	made_assert_shape(&tree, false, "cpu0 cpu1(0000:01:00.0 0000:01:00.1)");
}

/* -- Machines that mean harm -------------------------------------------------------- */

static void hostile_trees_are_detected_or_left_out(void **state)
{
	char path[PATH_MAX] = "pci0000:00";

	(void)state;
	/* Two that claim to be above each other, one that is not there, junk. */
	made_pci(&tree, "pci0000:00/0000:01:00.0/0000:02:00.0", BRIDGE);
	made_pci(&tree, "pci0000:00/0000:02:00.0/0000:01:00.0", BRIDGE);
	made_pci(&tree, "pci0000:00/0000:02:00.0/0000:01:00.0/0000:03:00.0", GPU);
	tree_link(&tree, "sys/bus/pci/devices/0000:09:00.0", "../../../devices/nowhere");
	tree_link(&tree, "sys/bus/pci/devices/0000:0a:00.0", "0000:0a:00.0");
	tree_link(&tree, "sys/bus/pci/devices/0000:0b:00.0", "/");
	tree_file(&tree, "sys/bus/pci/devices/0000:0c:00.0", "a file");
	tree_dir(&tree, "sys/bus/pci/devices/nonsense<&>");
	made_attr(&tree, "pci0000:00/0000:02:00.0/0000:01:00.0/0000:03:00.0", "vendor",
		  "0x10de0x10de");
	made_assert_shape(&tree, false, "cpu0(0000:03:00.0) cpu1");
	/* As deep as paths go here. */
	for (int bus = 0x10; bus < 0x10 + 25; bus++)
		snprintf(path + strlen(path), sizeof(path) - strlen(path), "/0000:%02x:00.0", bus);
	made_pci(&tree, path, GPU);
	assert_attr("0000:28:00.0", "class", GPU);
}

static void out_of_memory_is_a_status(void **state)
{
	const struct tti_detect_config config_ = { .sysfs_root = tree.top };
	struct tti_xml_doc *doc;
	tutti_status st = TUTTI_ENOMEM;
	char fault[32];
	int n = 0;

	(void)state;
	made_pci(&tree, SWITCH "/0000:02:00.0/0000:03:00.0", GPU);
	made_attr(&tree, SWITCH "/0000:02:00.0/0000:03:00.0", "local_cpus", "f0");
	while (st != TUTTI_OK) {
		assert_true(++n < 1000);
		snprintf(fault, sizeof(fault), "mem:%d", n);
		tti_fault_set(fault);
		st = tti_detect_machine(&config_, &doc);
		assert_true(st == TUTTI_OK || st == TUTTI_ENOMEM);
	}
	assert_true(n > 10);
	tti_xml_free(doc);
}

/* 20 switches of 48 ports with two functions below each. */
static void thousands_of_functions_take_no_time(void **state)
{
	struct tti_xml_doc *doc;
	char place[512];
	size_t n = 0;
	int64_t begun;

	(void)state;
	for (int i = 0; i < 20; i++)
		for (int port = 0; port < 48; port++)
			for (int function = 0; function < 2; function++) {
				snprintf(place, sizeof(place),
					 "pci%04x:00/%04x:00:01.0/%04x:01:00.0/%04x:02:%02x.%d/"
					 "%04x:%02x:00.%d",
					 i, i, i, i, port / 2, port % 2, i, port + 3, function);
				made_pci(&tree, place, function ? NVME : NIC);
				made_attr(&tree, place, "max_link_speed", "16.0 GT/s PCIe");
				made_attr(&tree, place, "max_link_width", "16");
				made_attr(&tree, place, "numa_node", "-1");
				made_attr(&tree, place, "local_cpus", "ff");
			}
	begun = tti_now_ns();
	doc = made_detect(&tree, true);
	assert_true(tti_now_ns() - begun < 60 * INT64_C(1000000000));
	print_message("%.0f ms\n", (double)(tti_now_ns() - begun) / 1e6);
	for (const struct tti_xml *xml = doc->root; xml; xml = tti_xml_walk(xml))
		n += tti_xml_is(xml, "pci");
	assert_int_equal(n, 20 * (1 + 2 * 48));
	assert_int_equal(tti_schema_check(doc), TUTTI_OK);
	tti_xml_free(doc);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(switches_are_one_element_and_root_ports_none),
		TEST(what_cannot_communicate_comes_only_with_all),
		TEST(bridges_of_old_kinds_are_elements),
		TEST(ports_that_are_not_listed_count),
		TEST(order_is_that_of_numbers),
		TEST(domains_behind_a_function),
		TEST(controllers_below_other_buses),
		TEST(links_are_the_lesser_of_both_ends),
		TEST(links_have_several_sources),
		TEST(capabilities_may_be_damaged),
		TEST(what_is_nearest_to_the_root_decides),
		TEST(several_nodes_are_the_first_of_them),
		TEST(all_below_one_root_port_have_one_place),
		TEST(hostile_trees_are_detected_or_left_out),
		TEST(out_of_memory_is_a_status),
		TEST(thousands_of_functions_take_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
