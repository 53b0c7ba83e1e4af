/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>

#include "tree.h"

#include "nics.h"
#include "topo/detect/nic_scan.h"
#include "util/fault.h"

#define SLOT "pci0000:00/0000:00:01.0/0000:01:00.0"

static struct tree tree;
static struct tti_sysfs root;
static struct tti_nic_scan scan;

static int set_up(void **state)
{
	(void)state;
	tree_make(&tree);
	tree_dir(&tree, "sys/class/net");
	assert_int_equal(tti_sysfs_open(tree.top, &root), TUTTI_OK);
	scan = (struct tti_nic_scan){ .sysfs = &root };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tti_fault_set(NULL);
	tti_nic_scan_release(&scan);
	tti_sysfs_close(&root);
	tree_remove(&tree);
	return 0;
}

static void run(void)
{
	tti_nic_scan_release(&scan);
	assert_int_equal(tti_nic_scan_rdma(&scan), TUTTI_OK);
	assert_int_equal(tti_nic_scan_netdevs(&scan), TUTTI_OK);
}

static const struct tti_nic_port *find(const char *name)
{
	for (size_t i = 0; i < scan.ports.n; i++)
		if (!strcmp(scan.ports.at[i].name, name))
			return &scan.ports.at[i];
	return NULL;
}

static void an_interface_of_a_function_is_a_port(void **state)
{
	const struct tti_nic_port *port;

	(void)state;
	nics_pci(&tree, SLOT, "0x020000\n", NULL);
	nics_net(&tree, "eth0", SLOT);
	nics_net_set(&tree, "eth0", "speed", "25000\n");
	nics_net_set(&tree, "eth0", "dev_port", "1\n");
	run();
	assert_int_equal(scan.ports.n, 1);
	port = find("eth0");
	assert_non_null(port);
	assert_int_equal(port->function, 0x01000);
	assert_true(port->physical == TTI_BUSID_NONE && !port->guid && !port->rdma);
	assert_int_equal(port->speed_mbps, 25000);
	assert_int_equal(port->unit, 2);
	assert_false(port->down);
	assert_string_equal(port->path, "sys/devices/" SLOT);
}

static void a_speed_that_nobody_knows_is_not_known(void **state)
{
	static const char *const texts[] = { "-1\n", "0\n", "4294967295\n", "fast\n", "" };

	(void)state;
	nics_net(&tree, "eth0", SLOT);
	run();
	assert_int_equal(find("eth0")->speed_mbps, -1);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		nics_net_set(&tree, "eth0", "speed", texts[i]);
		run();
		assert_int_equal(find("eth0")->speed_mbps, -1);
	}
	/* Of an interface without a link the last speed is still there with some drivers. */
	nics_net_set(&tree, "eth0", "speed", "1000\n");
	nics_net_set(&tree, "eth0", "operstate", "down\n");
	run();
	assert_int_equal(find("eth0")->speed_mbps, -1);
	assert_true(find("eth0")->down);
	nics_net_set(&tree, "eth0", "operstate", "unknown\n");
	run();
	assert_int_equal(find("eth0")->speed_mbps, 1000);
	assert_false(find("eth0")->down);
}

static void what_is_made_by_software_is_left_out(void **state)
{
	(void)state;
	nics_net(&tree, "eth0", SLOT);
	nics_net(&tree, "lo", NULL);
	nics_net_set(&tree, "lo", "type", "772\n");
	nics_net(&tree, "docker0", NULL);
	nics_file(&tree, "", "sys/devices/virtual/net/docker0/bridge/bridge_id");
	nics_net(&tree, "bond0", NULL);
	nics_file(&tree, "eth0\n", "sys/devices/virtual/net/bond0/bonding/slaves");
	nics_link(&tree, "/sys/class/net/bond0", "sys/devices/" SLOT "/net/eth0/master");
	nics_net(&tree, "eth0.100", NULL);
	nics_net_set(&tree, "eth0.100", "uevent", "DEVTYPE=vlan\nINTERFACE=eth0.100\n");
	nics_net(&tree, "veth12", NULL);
	nics_net_set(&tree, "veth12", "iflink", "2\n");
	nics_net(&tree, "tap0", NULL);
	nics_net_set(&tree, "tap0", "tun_flags", "0x1002\n");
	nics_net(&tree, "wg0", NULL);
	nics_net_set(&tree, "wg0", "type", "65534\n");
	nics_net(&tree, "dummy0", NULL);
	nics_link(&tree, "/sys/devices/gone/net/old0", "sys/class/net/old0");
	/* On the real device, but no port of it. */
	nics_net(&tree, "ib0.8001", SLOT);
	nics_net_set(&tree, "ib0.8001", "type", "32\n");
	nics_net_set(&tree, "ib0.8001", "iflink", "3\n");
	nics_net(&tree, "wlp3s0", SLOT);
	nics_net_set(&tree, "wlp3s0", "uevent", "DEVTYPE=wlan\n");
	nics_net(&tree, "can0", SLOT);
	nics_net_set(&tree, "can0", "type", "280\n");
	nics_net(&tree, "eth0_0", SLOT);
	nics_net_set(&tree, "eth0_0", "phys_port_name", "pf0vf0\n");
	nics_net(&tree, "eth0_1", SLOT);
	nics_net_set(&tree, "eth0_1", "phys_port_name", "c1pf0sf88\n");
	run();
	assert_int_equal(scan.ports.n, 1);
	assert_non_null(find("eth0"));
	assert_string_equal(find("eth0")->master, "bond0");
}

static void a_port_of_the_wire_is_no_representor(void **state)
{
	(void)state;
	nics_net(&tree, "eth0", SLOT);
	nics_net_set(&tree, "eth0", "phys_port_name", "p0\n");
	run();
	assert_non_null(find("eth0"));
	assert_false(tti_nic_is_representor(&root, "eth0"));
}

static void the_interface_over_a_virtual_function_is_left_out(void **state)
{
	(void)state;
	nics_net(&tree, "eth0", "LNXSYSTM:00/VMBUS:00/guid");
	nics_net(&tree, "enP1", "LNXSYSTM:00/VMBUS:00/other/pci3b2c:00/3b2c:00:02.0");
	nics_file(&tree, "", "sys/class/net/eth0/lower_enP1/x");
	run();
	assert_int_equal(scan.ports.n, 1);
	assert_int_equal(find("enP1")->function, 0x3b2c00020);
}

static void devices_without_pci_are_ports_too(void **state)
{
	(void)state;
	nics_net(&tree, "usb0", "pci0000:00/0000:00:14.0/usb1/1-2/1-2:1.0");
	nics_net(&tree, "eth0", "pci0000:00/0000:00:03.0/virtio2");
	nics_net(&tree, "mmio", "platform/virtio-mmio.0/virtio0");
	run();
	assert_true(find("usb0")->function == TTI_BUSID_NONE);
	assert_int_equal(find("eth0")->function, 0x30);
	assert_true(find("mmio")->function == TTI_BUSID_NONE);
}

static void the_place_tells_where_the_device_link_is_missing(void **state)
{
	(void)state;
	nics_file(&tree, "0\n", "sys/devices/" SLOT "/net/enp3s0/addr_assign_type");
	nics_link(&tree, "../../devices/" SLOT "/net/enp3s0", "sys/class/net/enp3s0");
	run();
	assert_int_equal(find("enp3s0")->function, 0x01000);
}

static void a_virtual_function_names_its_physical_one(void **state)
{
	(void)state;
	nics_pci(&tree, SLOT, "0x020000\n", NULL);
	nics_pci(&tree, "pci0000:00/0000:00:01.0/0000:01:00.2", "0x020000\n", NULL);
	nics_link(&tree, "../0000:01:00.0",
		  "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.2/physfn");
	nics_net(&tree, "eth0", SLOT);
	nics_net(&tree, "eth0v0", "pci0000:00/0000:00:01.0/0000:01:00.2");
	run();
	assert_true(find("eth0")->physical == TTI_BUSID_NONE);
	assert_int_equal(find("eth0v0")->physical, 0x01000);
}

static void an_rdma_device_has_rate_state_and_guid(void **state)
{
	const struct tti_nic_port *port;

	(void)state;
	nics_rdma(&tree, "mlx5_0", SLOT, 1, "946d:ae03:0050:709a\n");
	run();
	assert_int_equal(scan.ports.n, 1);
	port = find("mlx5_0");
	assert_true(port->rdma && !port->down);
	assert_int_equal(port->speed_mbps, 100000);
	/* As in the files that NCCL writes. */
	assert_true(port->guid == UINT64_C(0x9a70500003ae6d94));
	assert_string_equal(port->link_layer, "Ethernet");
	assert_null(port->subnet);
	nics_rdma_set(&tree, "mlx5_0", "ports/1/rate", "2.5 Gb/sec (1X SDR)\n");
	nics_rdma_set(&tree, "mlx5_0", "ports/1/link_layer", "InfiniBand\n");
	nics_rdma_set(&tree, "mlx5_0", "ports/1/gids/0",
		      "0123:4567:89ab:cdef:946d:ae03:0050:709a\n");
	run();
	port = find("mlx5_0");
	assert_int_equal(port->speed_mbps, 2500);
	assert_string_equal(port->subnet, "0123:4567:89ab:cdef");
	nics_rdma_set(&tree, "mlx5_0", "ports/1/gids/0",
		      "fe80:0000:0000:0000:946d:ae03:0050:709a\n");
	nics_rdma_set(&tree, "mlx5_0", "ports/1/state", "1: DOWN\n");
	run();
	port = find("mlx5_0");
	assert_true(port->down && port->speed_mbps == -1 && !port->subnet);
}

static void rates_and_guids_that_are_none_are_none(void **state)
{
	static const char *const rates[] = { "",           "-5 Gb/sec",  "nan Gb/sec",
					     "inf Gb/sec", "100 Mb/sec", "1e300 Gb/sec" };
	static const char *const guids[] = { "", "0000:0000:0000:0000\n", "12:zz\n" };

	(void)state;
	nics_rdma(&tree, "mlx5_0", SLOT, 1, "946d:ae03:0050:709a\n");
	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		nics_rdma_set(&tree, "mlx5_0", "ports/1/rate", rates[i]);
		run();
		assert_int_equal(find("mlx5_0")->speed_mbps, -1);
	}
	for (size_t i = 0; i < sizeof(guids) / sizeof(guids[0]); i++) {
		nics_rdma_set(&tree, "mlx5_0", "node_guid", guids[i]);
		nics_rdma_set(&tree, "mlx5_0", "sys_image_guid", guids[i]);
		run();
		assert_true(find("mlx5_0")->guid == 0);
	}
	/* The device's own counts where the card's is not said. */
	nics_rdma_set(&tree, "mlx5_0", "node_guid", "0002:c903:00ab:cdef\n");
	run();
	assert_true(find("mlx5_0")->guid == UINT64_C(0xefcdab0003c90200));
}

static void ports_of_one_device_are_told_apart(void **state)
{
	(void)state;
	nics_rdma(&tree, "mlx4_0", SLOT, 2, "0002:c903:00ab:cdef\n");
	nics_net(&tree, "ib0", SLOT);
	nics_rdma_set(&tree, "mlx4_0", "ports/2/gid_attrs/ndevs/0", "ib0\n");
	run();
	assert_int_equal(scan.ports.n, 3);
	assert_int_equal(find("mlx4_0:1")->unit, 1);
	assert_null(find("mlx4_0:1")->netdev);
	assert_int_equal(find("mlx4_0:2")->unit, 2);
	assert_string_equal(find("mlx4_0:2")->netdev, "ib0");
}

static void what_is_no_port_is_left_out(void **state)
{
	(void)state;
	nics_rdma(&tree, "mlx5_0", SLOT, 1, "946d:ae03:0050:709a\n");
	nics_rdma_set(&tree, "mlx5_0", "ports/0/state", "4: ACTIVE\n");
	nics_rdma_set(&tree, "mlx5_0", "ports/-2147483648/state", "4: ACTIVE\n");
	nics_rdma_set(&tree, "mlx5_0", "ports/99999999999/state", "4: ACTIVE\n");
	nics_rdma_set(&tree, "mlx5_0", "ports/x/state", "4: ACTIVE\n");
	run();
	assert_int_equal(scan.ports.n, 1);
	assert_int_equal(scan.ports.at[0].unit, 1);
}

static void software_rdma_is_left_out(void **state)
{
	(void)state;
	nics_rdma(&tree, "rxe0", NULL, 1, "5054:00ff:fe77:0001\n");
	nics_rdma_set(&tree, "rxe0", "parent", "eth0\n");
	nics_rdma(&tree, "rxe1", SLOT, 1, "5054:00ff:fe77:0001\n");
	nics_rdma_set(&tree, "rxe1", "parent", "eth1\n");
	nics_rdma(&tree, "siw0", SLOT, 1, "5054:00ff:fe77:0001\n");
	nics_rdma_set(&tree, "siw0", "node_type", "4: RNIC\n");
	nics_rdma(&tree, "lost", NULL, 1, "5054:00ff:fe77:0001\n");
	nics_rdma(&tree, "bare", SLOT, 0, "5054:00ff:fe77:0001\n");
	nics_rdma(&tree, "cxgb4_0", SLOT, 1, "5054:00ff:fe77:0001\n");
	nics_rdma_set(&tree, "cxgb4_0", "node_type", "4: RNIC\n");
	nics_rdma_set(&tree, "cxgb4_0", "hw_rev", "6\n");
	run();
	assert_int_equal(scan.ports.n, 1);
	assert_non_null(find("cxgb4_0"));
}

static void no_memory_is_said_and_nothing_leaks(void **state)
{
	tutti_status status;
	char fault[32];
	int nfailed = 0;

	(void)state;
	nics_rdma(&tree, "mlx5_0", SLOT, 1, "946d:ae03:0050:709a\n");
	nics_rdma_set(&tree, "mlx5_0", "ports/1/gid_attrs/ndevs/0", "eth0\n");
	nics_net(&tree, "eth0", SLOT);
	for (int at = 1; at < 40; at++) {
		snprintf(fault, sizeof(fault), "mem:%d", at);
		tti_fault_set(fault);
		status = tti_nic_scan_rdma(&scan);
		if (!status)
			status = tti_nic_scan_netdevs(&scan);
		tti_fault_set(NULL);
		tti_nic_scan_release(&scan);
		assert_true(status == TUTTI_OK || status == TUTTI_ENOMEM);
		nfailed += status == TUTTI_ENOMEM;
	}
	assert_true(nfailed > 2 && nfailed < 39);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(an_interface_of_a_function_is_a_port),
		TEST(a_speed_that_nobody_knows_is_not_known),
		TEST(what_is_made_by_software_is_left_out),
		TEST(a_port_of_the_wire_is_no_representor),
		TEST(the_interface_over_a_virtual_function_is_left_out),
		TEST(devices_without_pci_are_ports_too),
		TEST(the_place_tells_where_the_device_link_is_missing),
		TEST(a_virtual_function_names_its_physical_one),
		TEST(an_rdma_device_has_rate_state_and_guid),
		TEST(rates_and_guids_that_are_none_are_none),
		TEST(ports_of_one_device_are_told_apart),
		TEST(what_is_no_port_is_left_out),
		TEST(software_rdma_is_left_out),
		TEST(no_memory_is_said_and_nothing_leaks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
