/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "made.h"
#include "support/xml_edit.h"
#include "topo/detect/detect_cpu.h"
#include "topo/tree/schema.h"

#define CPUS  "sys/devices/system/cpu"
#define NODES "sys/devices/system/node"

static struct tree tree;
static struct tti_xml_doc *doc;

static int set_up(void **state)
{
	(void)state;
	tree_make(&tree);
	tree_dir(&tree, "sys");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tti_xml_free(doc);
	doc = NULL;
	tree_remove(&tree);
	return 0;
}

static void detect(void)
{
	tti_xml_free(doc);
	doc = made_detect(&tree, false);
	assert_int_equal(tti_schema_check(doc), TUTTI_OK);
}

/* NULL: it has no such attribute. */
static void assert_cpu(const char *numaid, const char *name, const char *want)
{
	const struct tti_xml *cpu = tti_xml_find(doc->root, "cpu", "numaid", numaid);
	const char *have;

	assert_non_null(cpu);
	have = tti_xml_get(cpu, name);
	if (want && have)
		assert_string_equal(have, want);
	else
		assert_true(!want && !have);
}

/* -- Nodes -------------------------------------------------------------------------- */

static void a_machine_that_says_nothing_is_one_cpu(void **state)
{
	(void)state;
	detect();
	assert_cpu("-1", "affinity", NULL);
	assert_cpu("-1", "arch", NULL); /* not that of this machine */
	assert_cpu("-1", "vendor", NULL);
	assert_cpu("-1", "host_hash", NULL);
	assert_cpu("-1", "tutti_mem_mib", NULL);
	assert_ptr_equal(doc->root->first, doc->root->last);
}

static void without_numa_all_online_cpus_are_one(void **state)
{
	(void)state;
	tree_dir(&tree, CPUS "/cpu0");
	tree_dir(&tree, CPUS "/cpufreq");
	tree_file(&tree, CPUS "/cpu1/online", "1\n");
	tree_file(&tree, CPUS "/cpu2/online", "0\n");
	tree_file(&tree, CPUS "/cpu33/online", "1\n");
	tree_file(&tree, "proc/meminfo", "MemTotal:       16384 kB\nMemFree: 1 kB\n");
	detect();
	assert_cpu("-1", "affinity", "00000002,00000003");
	assert_cpu("-1", "tutti_mem_mib", "16");
	tree_file(&tree, CPUS "/online", "0-1\n");
	detect();
	assert_cpu("-1", "affinity", "00000003");
}

static void nodes_come_with_all_that_is_said_of_them(void **state)
{
	(void)state;
	made_node(&tree, 10, "00000000,0000ff00", "10 20 40");
	made_node(&tree, 2, "00000000,000000ff", "20 10 40");
	made_node(&tree, 9, "ff0000,0", "40 40 10");
	tree_file(&tree, CPUS "/online", "0-6,8-15,48-55\n");
	tree_file(&tree, CPUS "/cpu0/topology/physical_package_id", "0\n");
	tree_file(&tree, CPUS "/cpu9/topology/physical_package_id", "3\n");
	tree_file(&tree, CPUS "/cpu48/topology/physical_package_id", "-1\n");
	tree_file(&tree, NODES "/node2/meminfo",
		  "Node 2 MemTotal:       2048 kB\nNode 2 MemFree: 4 kB\n");
	tree_file(&tree, "proc/meminfo", "MemTotal:       16384 kB\n");
	detect();
	assert_cpu("2", "affinity", "0000007f"); /* CPU 7 is offline */
	assert_cpu("2", "tutti_package", "0");
	assert_cpu("2", "tutti_distances", "20,10,40");
	assert_cpu("2", "tutti_mem_mib", "2");
	assert_cpu("9", "affinity", "00ff0000,00000000");
	assert_cpu("9", "tutti_package", NULL);
	assert_cpu("9", "tutti_mem_mib", NULL);
	assert_cpu("10", "tutti_package", "3");
	assert_string_equal(tti_xml_get(doc->root->first, "numaid"), "2");
	assert_string_equal(tti_xml_get(doc->root->last, "numaid"), "10");
}

static void distances_that_do_not_fit_are_left_out(void **state)
{
	(void)state;
	made_node(&tree, 0, "f", "10 20 30");
	made_node(&tree, 1, "f0", "20 ten");
	made_node(&tree, 2, "f00", "10 10 10");
	detect();
	assert_cpu("0", "tutti_distances", "10,20,30");
	assert_cpu("1", "tutti_distances", NULL);
	made_node(&tree, 1, "f0", "20 10");
	detect();
	assert_cpu("1", "tutti_distances", NULL);
}

/* HBM or CXL beside two sockets, and a GPU whose driver lends its memory to the kernel. */
static void nodes_of_memory_alone_are_those_of_the_nearest_cpus(void **state)
{
	(void)state;
	made_node(&tree, 0, "f", "10 20 17 28 80");
	made_node(&tree, 1, "f0", "20 10 28 17 80");
	made_node(&tree, 2, "0", "17 28 10 28 80");
	made_node(&tree, 3, "0", "28 17 28 10 80");
	made_node(&tree, 4, "0", "80 80 80 80 10");
	tree_file(&tree, CPUS "/cpu0/topology/physical_package_id", "3\n");
	tree_file(&tree, CPUS "/cpu4/topology/physical_package_id", "5\n");
	for (int i = 2; i <= 4; i++)
		made_file(&tree, "Node MemTotal:       2048 kB", NODES "/node%d/meminfo", i);
	tree_file(&tree, "proc/driver/nvidia/gpus/0004:04:00.0/numa_status",
		  "Node:      4\nStatus:    online\n");
	detect();
	assert_cpu("2", "affinity", "00000000");
	assert_cpu("2", "tutti_mem_mib", "2");
	assert_cpu("2", "tutti_package", "3");
	assert_cpu("3", "tutti_package", "5");
	assert_cpu("0", "tutti_distances", "10,20,17,28");
	assert_null(tti_xml_find(doc->root, "cpu", "numaid", "4"));
}

/* As in a virtual machine that has sockets, but no NUMA. */
static void a_node_may_have_several_packages(void **state)
{
	(void)state;
	made_node(&tree, 0, "ff", "10");
	for (int i = 0; i < 8; i++) {
		made_file(&tree, i % 2 ? "1" : "0", CPUS "/cpu%d/topology/physical_package_id", i);
		made_file(&tree, i % 2 ? "aa" : "55", CPUS "/cpu%d/topology/core_siblings", i);
	}
	detect();
	assert_cpu("0", "tutti_package", "0");
	assert_cpu("0", "tutti_packages", "0,1");
	for (int i = 0; i < 8; i++)
		made_file(&tree, "1", CPUS "/cpu%d/topology/physical_package_id", i);
	detect();
	assert_cpu("0", "tutti_package", "1");
	assert_cpu("0", "tutti_packages", NULL);
}

/* Their NUMA node is offline: they run. */
static void cpus_of_no_node_are_a_cpu_of_their_own(void **state)
{
	(void)state;
	made_node(&tree, 1, "f0", "10");
	tree_file(&tree, CPUS "/online", "0-2,4-7\n");
	tree_file(&tree, CPUS "/cpu0/topology/physical_package_id", "0\n");
	tree_file(&tree, CPUS "/cpu4/topology/physical_package_id", "1\n");
	tree_file(&tree, "proc/meminfo", "MemTotal:       16384 kB\n");
	detect();
	assert_cpu("1", "affinity", "000000f0");
	assert_cpu("-1", "affinity", "00000007");
	assert_cpu("-1", "tutti_package", "0");
	assert_cpu("-1", "tutti_mem_mib", NULL);
	assert_string_equal(tti_xml_get(doc->root->last, "numaid"), "-1");
}

static void nodes_of_memory_come_with_their_devices(void **state)
{
	(void)state;
	made_node(&tree, 0, "f", "10 20 80");
	made_node(&tree, 1, "f0", "20 10 80");
	made_node(&tree, 252, "0", "80 80 10");
	detect();
	assert_null(tti_xml_find(doc->root, "cpu", "numaid", "252"));
	assert_cpu("0", "tutti_distances", "10,20");
	made_pci(&tree, "pci0000:00/0000:00:01.0", "0x030200");
	made_attr(&tree, "pci0000:00/0000:00:01.0", "numa_node", "252");
	detect();
	assert_cpu("252", "affinity", "00000000");
	assert_cpu("0", "tutti_distances", "10,20,80");
	assert_non_null(
		tti_xml_find(tti_xml_find(doc->root, "cpu", "numaid", "252"), "pci", NULL, NULL));
}

static void nodes_with_the_same_cpus_are_kept(void **state)
{
	(void)state;
	made_node(&tree, 0, "ff", "10 20");
	made_node(&tree, 1, "ff", "20 10");
	detect();
	assert_cpu("0", "affinity", "000000ff");
	assert_cpu("1", "affinity", "000000ff");
}

static void nodes_without_maps_have_lists(void **state)
{
	(void)state;
	tree_file(&tree, NODES "/node0/cpulist", "0-3\n");
	tree_file(&tree, NODES "/node1/cpulist", "4-7\n");
	tree_file(&tree, NODES "/node1/cpumap", "not a map\n");
	tree_file(&tree, NODES "/node99999999999/cpulist", "0\n");
	tree_file(&tree, NODES "/node-1/cpulist", "0\n");
	tree_file(&tree, NODES "/nodex/cpulist", "0\n");
	detect();
	assert_cpu("0", "affinity", "0000000f");
	assert_cpu("1", "affinity", "000000f0");
	assert_string_equal(tti_xml_get(doc->root->last, "numaid"), "1");
}

/* As kernels with pages of 4 KiB do it to long lists. */
static void lists_that_are_cut_are_not_believed(void **state)
{
	char text[4096] = "0";

	(void)state;
	for (int cpu = 2; strlen(text) < 4080; cpu += 2)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), ",%d", cpu);
	for (size_t at = strlen(text); at < sizeof(text) - 1; at++)
		text[at] = text[at - 1] == ',' || at == sizeof(text) - 2 ? '1' : ',';
	tree_file(&tree, CPUS "/online", text);
	tree_dir(&tree, CPUS "/cpu0");
	tree_dir(&tree, CPUS "/cpu2");
	detect();
	assert_cpu("-1", "affinity", "00000005");
}

static void hosts_are_told_apart_if_they_say_who_they_are(void **state)
{
	char first[32];

	(void)state;
	tree_file(&tree, "proc/sys/kernel/hostname", "node01\n");
	detect();
	assert_cpu("-1", "host_hash", NULL);
	tree_file(&tree, "proc/sys/kernel/random/boot_id",
		  "12345678-1234-1234-1234-123456789abc\n");
	detect();
	snprintf(first, sizeof(first), "%s", tti_xml_get(doc->root->first, "host_hash"));
	detect();
	assert_cpu("-1", "host_hash", first);
	tree_file(&tree, "proc/sys/kernel/hostname", "node02\n");
	detect();
	assert_string_not_equal(tti_xml_get(doc->root->first, "host_hash"), first);
}

/* -- Kinds -------------------------------------------------------------------------- */

static void assert_kind(const char *cpuinfo, const char *arch, const char *vendor, int family,
			int model)
{
	struct tti_cpu_kind kind;
	struct tti_sysfs sysfs;

	tree_file(&tree, "proc/cpuinfo", cpuinfo);
	assert_int_equal(tti_sysfs_open(tree.top, &sysfs), TUTTI_OK);
	tti_detect_cpu_kind(&sysfs, &kind);
	tti_sysfs_close(&sysfs);
	assert_string_equal(kind.arch, arch);
	assert_string_equal(kind.vendor, vendor);
	assert_int_equal(kind.family, family);
	assert_int_equal(kind.model, model);
}

static void kinds_are_read_from_cpuinfo(void **state)
{
	(void)state;
	assert_kind("processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\n"
		    "model\t\t: 143\nmodel name\t: Intel(R) Xeon(R)\nstepping\t: 8\n",
		    "x86_64", "GenuineIntel", 6, 143);
	assert_kind("vendor_id\t:   Shanghai  \ncpu family\t: 7\nmodel\t\t: 91\n", "x86_64",
		    "  Shanghai  ", 7, 91);
	assert_kind("processor\t: 0\nBogoMIPS\t: 200.00\nCPU implementer\t: 0x41\n"
		    "CPU architecture: 8\nCPU variant\t: 0x0\nCPU part\t: 0xd4f\n",
		    "arm64", "ARM", 0x41, 0xd4f);
	assert_kind("CPU implementer\t: 0x7f\nCPU part\t: 0x001\n", "arm64", "", 0x7f, 1);
	assert_kind("processor\t: 0\ncpu\t\t: POWER9, altivec supported\n"
		    "revision\t: 2.1 (pvr 004e 1201)\n",
		    "ppc64", "IBM", 9, -1);
	assert_kind("vendor_id       : IBM/S390\n# processors    : 2\n", "", "", -1, -1);
	assert_kind("", "", "", -1, -1);
	assert_kind("vendor_id\t: <&\"\x01\xff\ncpu family\t: -6\nmodel\t: many\n", "x86_64", "",
		    -1, -1);
	tree_file(&tree, CPUS "/cpu0/regs/identification/midr_el1", "0x00000000410fd871\n");
	assert_kind("", "arm64", "ARM", 0x41, 0xd87);
}

static void this_machine_says_what_its_files_say(void **state)
{
	struct tti_cpu_kind asked, read;
	struct tti_sysfs live;

	(void)state;
	assert_int_equal(tti_sysfs_open(NULL, &live), TUTTI_OK);
	tti_detect_cpu_kind(&live, &asked);
	live.captured = true;
	tti_detect_cpu_kind(&live, &read);
	tti_sysfs_close(&live);
	assert_true(asked.arch[0] != '\0');
	if (read.arch[0] == '\0')
		skip(); /* its files do not say */
	assert_string_equal(asked.arch, read.arch);
	assert_string_equal(asked.vendor, read.vendor);
	assert_int_equal(asked.family, read.family);
	assert_int_equal(asked.model, read.model);
}

static void limits_of_a_process_change_nothing(void **state)
{
	const struct tti_detect_config config = { 0 };
	struct tti_xml_doc *before, *after;
	cpu_set_t old, one;
	size_t cpu = 0;

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(old), &old), 0);
	while (!CPU_ISSET(cpu, &old))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(tti_detect_machine(&config, &before), TUTTI_OK);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(tti_detect_machine(&config, &after), TUTTI_OK);
	assert_int_equal(sched_setaffinity(0, sizeof(old), &old), 0);
	assert_true(xml_same(before->root, after->root));
	tti_xml_free(before);
	tti_xml_free(after);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_machine_that_says_nothing_is_one_cpu),
		TEST(without_numa_all_online_cpus_are_one),
		TEST(nodes_come_with_all_that_is_said_of_them),
		TEST(distances_that_do_not_fit_are_left_out),
		TEST(nodes_of_memory_come_with_their_devices),
		TEST(nodes_of_memory_alone_are_those_of_the_nearest_cpus),
		TEST(a_node_may_have_several_packages),
		TEST(cpus_of_no_node_are_a_cpu_of_their_own),
		TEST(nodes_with_the_same_cpus_are_kept),
		TEST(nodes_without_maps_have_lists),
		TEST(lists_that_are_cut_are_not_believed),
		TEST(hosts_are_told_apart_if_they_say_who_they_are),
		TEST(kinds_are_read_from_cpuinfo),
		TEST(this_machine_says_what_its_files_say),
		TEST(limits_of_a_process_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
