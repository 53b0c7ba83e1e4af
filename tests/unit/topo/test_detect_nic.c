/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree.h"

#include "nics.h"
#include "topo/detect/detect.h"
#include "topo/tree/schema.h"
#include "util/fault.h"

#define BUS   "pci0000:00/0000:00:01.0/"
#define CARD  BUS "0000:01:00.0"
#define CARD1 BUS "0000:01:00.1"
#define GUID  "946d:ae03:0050:709a\n"

/* Two NUMA nodes of one CPU each. */
static struct tree tree;
static struct tti_xml_doc *doc;

static int set_up(void **state)
{
	(void)state;
	tree_make(&tree);
	for (int node = 0; node < 2; node++) {
		nics_file(&tree, node ? "2\n" : "1\n", "sys/devices/system/node/node%d/cpumap",
			  node);
		nics_file(&tree, node ? "20 10\n" : "10 20\n",
			  "sys/devices/system/node/node%d/distance", node);
		nics_file(&tree, "0\n", "sys/devices/system/cpu/cpu%d/topology/physical_package_id",
			  node);
	}
	tree_file(&tree, "sys/devices/system/cpu/online", "0-1\n");
	tree_file(&tree, "sys/devices/system/node/online", "0-1\n");
	doc = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tti_fault_set(NULL);
	tti_xml_free(doc);
	tree_remove(&tree);
	return 0;
}

static void run(bool all)
{
	const struct tti_detect_config config = { .sysfs_root = tree.top, .all = all };

	tti_xml_free(doc);
	doc = NULL;
	assert_int_equal(tti_detect_machine(&config, &doc), TUTTI_OK);
	assert_int_equal(tti_schema_check(doc), TUTTI_OK);
}

static struct tti_xml *find(const char *element, const char *attr, const char *value)
{
	for (struct tti_xml *node = doc->root; node; node = tti_xml_walk(node)) {
		const char *const text = tti_xml_is(node, element) ? tti_xml_get(node, attr) : NULL;

		if (text && !strcmp(text, value))
			return node;
	}
	return NULL;
}

static struct tti_xml *find_net(const char *name)
{
	struct tti_xml *const net = find("net", "name", name);

	if (!net)
		fail_msg("there is no net %s", name);
	return net;
}

static int count(const char *element)
{
	int n = 0;

	for (struct tti_xml *node = doc->root; node; node = tti_xml_walk(node))
		n += tti_xml_is(node, element);
	return n;
}

static void assert_attr(const char *net, const char *attr, const char *value)
{
	const char *const text = tti_xml_get(find_net(net), attr);

	if (!text || !value)
		assert_true(!text && !value);
	else
		assert_string_equal(text, value);
}

/* The PCI function below which a net hangs. */
static const char *place_of(const char *net)
{
	const struct tti_xml *const nic = find_net(net)->parent;

	assert_true(tti_xml_is(nic, "nic"));
	return tti_xml_is(nic->parent, "pci") ? tti_xml_get(nic->parent, "busid") : "";
}

static void an_rdma_device_and_its_interface_are_one_net(void **state)
{
	(void)state;
	nics_pci(&tree, CARD, "0x020700\n", "mlx5_core");
	nics_rdma(&tree, "mlx5_0", CARD, 1, GUID);
	nics_net(&tree, "ens1f0", CARD);
	run(false);
	assert_int_equal(count("net"), 1);
	assert_attr("mlx5_0", "tutti_netdev", "ens1f0");
	assert_attr("mlx5_0", "speed", "100000");
	assert_attr("mlx5_0", "guid", "0x9a70500003ae6d94");
	assert_attr("mlx5_0", "port", "1");
	assert_attr("mlx5_0", "dev", "0");
	assert_attr("mlx5_0", "tutti_state", NULL);
	assert_string_equal(place_of("mlx5_0"), "0000:01:00.0");
}

static void functions_of_one_card_are_one_nic(void **state)
{
	(void)state;
	nics_pci(&tree, CARD, "0x020000\n", NULL);
	nics_pci(&tree, CARD1, "0x020000\n", NULL);
	nics_rdma(&tree, "mlx5_1", CARD, 1, GUID);
	nics_rdma(&tree, "mlx5_0", CARD1, 1, GUID);
	nics_net(&tree, "eth0", CARD);
	nics_net(&tree, "eth1", CARD1);
	run(false);
	assert_int_equal(count("nic"), 1);
	assert_int_equal(count("net"), 2);
	assert_string_equal(place_of("mlx5_0"), "0000:01:00.0");
	assert_string_equal(place_of("mlx5_1"), "0000:01:00.0");
	/* In the order of PCI, not of names. */
	assert_attr("mlx5_1", "port", "1");
	assert_attr("mlx5_1", "dev", "0");
	assert_attr("mlx5_1", "tutti_netdev", "eth0");
	assert_attr("mlx5_0", "port", "2");
	assert_attr("mlx5_0", "dev", "1");
	assert_attr("mlx5_0", "tutti_netdev", "eth1");
	assert_null(find("pci", "busid", "0000:01:00.1"));
	run(true);
	assert_non_null(find("pci", "busid", "0000:01:00.1"));
	assert_int_equal(count("net"), 2);
}

static void ports_of_one_function_are_one_nic(void **state)
{
	(void)state;
	nics_pci(&tree, CARD, "0x020700\n", NULL);
	nics_rdma(&tree, "mlx4_0", CARD, 2, GUID);
	nics_net(&tree, "ib0", CARD);
	nics_net(&tree, "ib1", CARD);
	nics_net_set(&tree, "ib1", "dev_port", "1\n");
	nics_rdma_set(&tree, "mlx4_0", "ports/2/state", "1: DOWN\n");
	run(false);
	assert_int_equal(count("nic"), 1);
	assert_int_equal(count("net"), 2);
	assert_attr("mlx4_0:1", "port", "1");
	assert_attr("mlx4_0:1", "tutti_netdev", "ib0");
	assert_attr("mlx4_0:2", "port", "2");
	assert_attr("mlx4_0:2", "tutti_netdev", "ib1");
	assert_attr("mlx4_0:2", "tutti_state", "down");
	assert_attr("mlx4_0:2", "speed", "-1");
}

static void virtual_functions_are_on_the_card_of_their_physical_one(void **state)
{
	(void)state;
	nics_pci(&tree, CARD, "0x020000\n", NULL);
	nics_pci(&tree, CARD1, "0x020000\n", NULL);
	nics_pci(&tree, BUS "0000:01:01.2", "0x020000\n", NULL);
	nics_link(&tree, "../0000:01:00.1", "sys/devices/" BUS "0000:01:01.2/physfn");
	nics_net(&tree, "eth0", CARD);
	nics_net(&tree, "eth1", CARD1);
	nics_net(&tree, "eth1v0", BUS "0000:01:01.2");
	run(false);
	assert_int_equal(count("nic"), 1);
	assert_string_equal(place_of("eth1v0"), "0000:01:00.0");
	assert_attr("eth1v0", "tutti_vf_of", "0000:01:00.1");
	/* The wire is the one of its physical function. */
	assert_attr("eth1v0", "port", "2");
	assert_attr("eth1v0", "dev", "2");
	assert_attr("eth1", "port", "2");
	assert_attr("eth1", "tutti_vf_of", NULL);
	assert_null(find("pci", "busid", "0000:01:01.2"));
}

static void a_virtual_function_alone_is_a_card(void **state)
{
	(void)state;
	nics_pci(&tree, "pci0000:00/0000:00:05.0", "0x020000\n", NULL);
	nics_link(&tree, "../0000:17:00.0", "sys/devices/pci0000:00/0000:00:05.0/physfn");
	nics_net(&tree, "eth0", "pci0000:00/0000:00:05.0");
	run(false);
	assert_string_equal(place_of("eth0"), "0000:00:05.0");
	assert_attr("eth0", "tutti_vf_of", NULL);
}

static void a_bond_of_an_rdma_device_is_its_interface(void **state)
{
	(void)state;
	nics_pci(&tree, CARD, "0x020000\n", NULL);
	nics_pci(&tree, CARD1, "0x020000\n", NULL);
	nics_pci(&tree, BUS "0000:02:00.0", "0x020000\n", NULL);
	nics_rdma(&tree, "mlx5_bond_0", CARD, 1, GUID);
	nics_rdma_set(&tree, "mlx5_bond_0", "ports/1/gid_attrs/ndevs/0", "bond0\n");
	nics_net(&tree, "bond0", NULL);
	nics_file(&tree, "eth0 eth1 eth2\n", "sys/devices/virtual/net/bond0/bonding/slaves");
	nics_net(&tree, "eth0", CARD);
	nics_net(&tree, "eth1", CARD1);
	nics_net(&tree, "eth2", BUS "0000:02:00.0");
	nics_link(&tree, "/sys/class/net/bond0", "sys/devices/" CARD "/net/eth0/master");
	nics_link(&tree, "/sys/class/net/bond0", "sys/devices/" CARD1 "/net/eth1/master");
	nics_link(&tree, "/sys/class/net/bond0", "sys/devices/" BUS "0000:02:00.0/net/eth2/master");
	run(false);
	assert_int_equal(count("net"), 2);
	assert_attr("mlx5_bond_0", "tutti_netdev", "bond0");
	assert_attr("mlx5_bond_0", "tutti_master", NULL);
	/* Of another card: hardware of its own. */
	assert_attr("eth2", "tutti_master", "bond0");
}

static void virtio_hangs_at_its_function(void **state)
{
	(void)state;
	nics_pci(&tree, "pci0000:00/0000:00:03.0", "0x020000\n", NULL);
	nics_net(&tree, "eth0", "pci0000:00/0000:00:03.0/virtio2");
	run(false);
	assert_string_equal(place_of("eth0"), "0000:00:03.0");
	assert_attr("eth0", "speed", "-1");
}

static void what_is_not_on_pci_hangs_at_its_numa_node(void **state)
{
	const char *const usb = "pci0000:80/0000:80:14.0/usb1/1-2/1-2:1.0";
	const struct tti_xml *cpu;

	(void)state;
	nics_file(&tree, "0x0c0330\n", "sys/devices/pci0000:80/0000:80:14.0/class");
	nics_file(&tree, "1\n", "sys/devices/pci0000:80/0000:80:14.0/numa_node");
	nics_link(&tree, "../../../devices/pci0000:80/0000:80:14.0",
		  "sys/bus/pci/devices/0000:80:14.0");
	nics_net(&tree, "usb0", usb);
	nics_net(&tree, "eth0", "platform/virtio-mmio.0/virtio0");
	nics_net(&tree, "eth1", "platform/virtio-mmio.1/virtio1");
	run(false);
	cpu = find_net("usb0")->parent->parent;
	assert_true(tti_xml_is(cpu, "cpu"));
	assert_string_equal(tti_xml_get(cpu, "numaid"), "1");
	cpu = find_net("eth0")->parent->parent;
	assert_true(tti_xml_is(cpu, "cpu"));
	assert_string_equal(tti_xml_get(cpu, "numaid"), "0");
	/* Two devices, two cards. */
	assert_int_equal(count("nic"), 3);
	assert_ptr_not_equal(find_net("eth0")->parent, find_net("eth1")->parent);
}

static void numbers_follow_the_bus(void **state)
{
	(void)state;
	nics_net(&tree, "aaa", "platform/soc/ethernet");
	nics_pci(&tree, "pci0000:00/0000:00:04.0", "0x020000\n", NULL);
	nics_net(&tree, "zzz", "pci0000:00/0000:00:04.0");
	nics_pci(&tree, "pci0000:00/0000:00:05.0", "0x020000\n", NULL);
	nics_rdma(&tree, "bbb", "pci0000:00/0000:00:05.0", 1, GUID);
	nics_pci(&tree, "pci0001:00/0001:00:01.0", "0x020000\n", NULL);
	nics_net(&tree, "ccc", "pci0001:00/0001:00:01.0");
	run(false);
	assert_attr("zzz", "dev", "0");
	assert_attr("bbb", "dev", "1");
	assert_attr("ccc", "dev", "2");
	assert_attr("aaa", "dev", "3");
}

static void no_memory_is_said_and_nothing_leaks(void **state)
{
	const struct tti_detect_config config = { .sysfs_root = tree.top };
	char fault[32];
	int at = 0;
	tutti_status status;

	(void)state;
	nics_pci(&tree, CARD, "0x020000\n", "mlx5_core");
	nics_pci(&tree, CARD1, "0x020000\n", NULL);
	nics_rdma(&tree, "mlx5_0", CARD, 1, GUID);
	nics_net(&tree, "eth1", CARD1);
	do {
		snprintf(fault, sizeof(fault), "mem:%d", ++at);
		tti_fault_set(fault);
		status = tti_detect_machine(&config, &doc);
		tti_fault_set(NULL);
		assert_true(status == TUTTI_OK || status == TUTTI_ENOMEM);
	} while (status && at < 1000);
	assert_true(at > 20 && at < 1000);
	assert_int_equal(count("net"), 2);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(an_rdma_device_and_its_interface_are_one_net),
		TEST(functions_of_one_card_are_one_nic),
		TEST(ports_of_one_function_are_one_nic),
		TEST(virtual_functions_are_on_the_card_of_their_physical_one),
		TEST(a_virtual_function_alone_is_a_card),
		TEST(a_bond_of_an_rdma_device_is_its_interface),
		TEST(virtio_hangs_at_its_function),
		TEST(what_is_not_on_pci_hangs_at_its_numa_node),
		TEST(numbers_follow_the_bus),
		TEST(no_memory_is_said_and_nothing_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
