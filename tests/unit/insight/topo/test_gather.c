/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/topo/tree.h"

#include "insight/topo/gather.h"
#include "tutti/insight.h"
#include "unit/topo/nics.h"
#include "util/error.h"
#include "util/fault.h"

#define SLOT "pci0000:00/0000:00:01.0/0000:01:00.0"

/* A machine, and where it is gathered. */
static struct tree tree, copy;
static struct tti_sysfs from, to;
static struct tti_gather_report report;

static int set_up(void **state)
{
	(void)state;
	tree_make(&tree);
	tree_make(&copy);
	tree_dir(&tree, "sys/class/net");
	assert_int_equal(tti_sysfs_open(tree.top, &from), TUTTI_OK);
	to.fd = -1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tti_fault_set(NULL);
	tti_sysfs_close(&from);
	tti_sysfs_close(&to);
	tree_remove(&tree);
	tree_remove(&copy);
	return 0;
}

static void run(void)
{
	assert_int_equal(tti_gather(&from, copy.top, &report), TUTTI_OK);
	assert_int_equal(tti_sysfs_open(copy.top, &to), TUTTI_OK);
}

static void assert_line(const char *path, const char *text)
{
	char line[128];

	assert_true(tti_sysfs_line(&to, line, sizeof(line), "%s", path));
	assert_string_equal(line, text);
}

static void links_lead_to_where_they_led(void **state)
{
	char real[256];

	(void)state;
	nics_pci(&tree, SLOT, "0x020000\n", "mlx5_core");
	nics_net(&tree, "eth0", SLOT);
	nics_rdma(&tree, "mlx5_0", SLOT, 1, "946d:ae03:0050:709a\n");
	nics_net(&tree, "bond0", NULL);
	nics_link(&tree, "/sys/class/net/bond0", "sys/devices/" SLOT "/net/eth0/master");
	nics_link(&tree, "/sys/devices/gone", "sys/bus/pci/devices/0000:09:00.0");
	run();
	assert_true(tti_sysfs_real(&to, real, sizeof(real), "sys/bus/pci/devices/0000:01:00.0"));
	assert_string_equal(real, "sys/devices/" SLOT);
	assert_true(tti_sysfs_real(&to, real, sizeof(real), "sys/class/net/eth0/device"));
	assert_string_equal(real, "sys/devices/" SLOT);
	assert_true(tti_sysfs_real(&to, real, sizeof(real), "sys/class/net/eth0/master"));
	assert_string_equal(real, "sys/devices/virtual/net/bond0");
	assert_true(tti_sysfs_real(&to, real, sizeof(real),
				   "sys/class/infiniband/mlx5_0/device/driver"));
	assert_string_equal(real, "sys/bus/pci/drivers/mlx5_core");
	assert_false(tti_sysfs_exists(&to, "sys/bus/pci/devices/0000:09:00.0"));
	assert_line("sys/bus/pci/devices/0000:01:00.0/class", "0x020000");
	assert_line("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE");
	assert_true(report.nlinks >= 5 && report.nfiles >= 10);
}

static void the_copy_has_no_serial_numbers_or_addresses(void **state)
{
	char text[1024];
	ssize_t n;

	(void)state;
	nics_net(&tree, "eth0", SLOT);
	nics_net_set(&tree, "eth0", "address", "52:54:00:12:34:56\n");
	nics_net_set(&tree, "eth0", "phys_port_id", "525400123456\n");
	nics_net_set(&tree, "eth0", "phys_switch_id", "525400123456\n");
	tree_file(&tree, "sys/class/dmi/id/product_serial", "S3CR3T\n");
	tree_file(&tree, "sys/class/dmi/id/product_uuid", "S3CR3T\n");
	tree_file(&tree, "sys/class/dmi/id/product_name", "Machine\n");
	tree_file(&tree, "proc/sys/kernel/hostname", "node17\n");
	tree_file(&tree, "proc/sys/kernel/random/boot_id", "S3CR3T\n");
	tree_file(&tree, "proc/cpuinfo",
		  "processor\t: 0\n\nHardware\t: Board\nSerial\t\t: 00S3CR3T\n");
	tree_file(&tree, "proc/driver/nvidia/gpus/0000:01:00.0/information",
		  "Model: \t\t H100\nIRQ:   \t\t 7\nGPU UUID: \t GPU-S3CR3T\nDMA Size: 52\n");
	tree_file(&tree, "sys/class/kfd/kfd/topology/nodes/1/properties",
		  "cpu_cores_count 0\nunique_id 123456789\ngfx_target_version 90402");
	run();
	assert_line("sys/class/dmi/id/product_name", "Machine");
	assert_false(tti_sysfs_exists(&to, "sys/class/dmi/id/product_serial"));
	assert_false(tti_sysfs_exists(&to, "sys/class/dmi/id/product_uuid"));
	assert_false(tti_sysfs_exists(&to, "sys/class/net/eth0/address"));
	assert_false(tti_sysfs_exists(&to, "sys/class/net/eth0/phys_port_id"));
	assert_false(tti_sysfs_exists(&to, "sys/class/net/eth0/phys_switch_id"));
	assert_false(tti_sysfs_exists(&to, "proc/sys/kernel/hostname"));
	assert_false(tti_sysfs_exists(&to, "proc/sys/kernel/random/boot_id"));
	n = tti_sysfs_bytes(&to, text, sizeof(text), "proc/cpuinfo");
	assert_int_equal(n, strlen("processor\t: 0\n\nHardware\t: Board\n"));
	n = tti_sysfs_bytes(&to, text, sizeof(text) - 1,
			    "proc/driver/nvidia/gpus/0000:01:00.0/information");
	assert_true(n > 0);
	text[n] = '\0';
	assert_string_equal(text, "Model: \t\t H100\nIRQ:   \t\t 7\nDMA Size: 52\n");
	n = tti_sysfs_bytes(&to, text, sizeof(text) - 1,
			    "sys/class/kfd/kfd/topology/nodes/1/properties");
	assert_true(n > 0);
	text[n] = '\0';
	assert_string_equal(text, "cpu_cores_count 0\ngfx_target_version 90402");
}

static void of_the_config_space_only_the_first_part_is_taken(void **state)
{
	char config[4096], text[4096];
	FILE *file;

	(void)state;
	nics_pci(&tree, SLOT, "0x020000\n", NULL);
	/* Lines mean nothing here. */
	memset(config, '\n', sizeof(config));
	memcpy(config, "Serial", 6);
	file = fopen(tree_path(&tree, "sys/devices/" SLOT "/config"), "we");
	assert_non_null(file);
	assert_int_equal(fwrite(config, 1, sizeof(config), file), sizeof(config));
	assert_int_equal(fclose(file), 0);
	run();
	assert_int_equal(tti_sysfs_bytes(&to, text, sizeof(text), "sys/devices/" SLOT "/config"),
			 256);
	assert_memory_equal(text, config, 256);
}

static void nodes_above_a_device_keep_their_numa_node(void **state)
{
	(void)state;
	nics_net(&tree, "enP1", "LNXSYSTM:00/VMBUS:00/guid/pci3b2c:00/3b2c:00:02.0/virtio9");
	tree_file(&tree, "sys/devices/LNXSYSTM:00/VMBUS:00/guid/numa_node", "1\n");
	run();
	assert_line("sys/devices/LNXSYSTM:00/VMBUS:00/guid/numa_node", "1");
}

static void a_directory_with_something_in_it_is_refused(void **state)
{
	(void)state;
	tree_file(&copy, "mine", "text");
	assert_int_equal(tti_gather(&from, copy.top, &report), TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "is not empty"));
	assert_non_null(strstr(tti_error_text(), copy.top));
}

static void a_place_that_cannot_be_made_is_refused(void **state)
{
	(void)state;
	tree_file(&copy, "file", "text");
	assert_int_equal(tti_gather(&from, tree_path(&copy, "file"), &report), TUTTI_ESYS);
	assert_int_equal(tti_gather(&from, tree_path(&copy, "no/such"), &report), TUTTI_ESYS);
	assert_non_null(strstr(tti_error_text(), "no/such"));
}

static void a_missing_directory_is_made(void **state)
{
	char path[sizeof(copy.path)];

	(void)state;
	tree_file(&tree, "proc/version", "Linux version 6.1.0\n");
	snprintf(path, sizeof(path), "%s", tree_path(&copy, "new"));
	assert_int_equal(tti_gather(&from, path, &report), TUTTI_OK);
	assert_int_equal(access(tree_path(&copy, "new/proc/version"), R_OK), 0);
}

/* A captured machine may come from anybody. */
static void nothing_is_written_outside(void **state)
{
	(void)state;
	tree_file(&tree, "secret", "S3CR3T\n");
	nics_link(&tree, "/../../../../secret", "sys/class/net/eth0");
	nics_link(&tree, "../../../../../../../../../tmp", "sys/bus/pci/devices/0000:01:00.0");
	nics_link(&tree, "../../..", "sys/bus/pci/devices/0000:02:00.0");
	nics_link(&tree, "0000:03:00.0", "sys/bus/pci/devices/0000:03:00.0");
	tree_dir(&tree, "sys/bus/pci/devices/0000:04:00.0/class");
	assert_int_equal(mkfifo(tree_path(&tree, "sys/bus/pci/devices/0000:04:00.0/vendor"), 0600),
			 0);
	run();
	assert_false(tti_sysfs_exists(&to, "tmp"));
	assert_false(tti_sysfs_exists(&to, "sys/bus/pci/devices/0000:04:00.0/vendor"));
}

/* Of this machine, whatever it is. */
static void the_machine_at_hand_is_gathered(void **state)
{
	char path[sizeof(copy.path)];

	(void)state;
	assert_int_equal(tutti_topo_gather(NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_topo_gather(""), TUTTI_EINVAL);
	snprintf(path, sizeof(path), "%s", tree_path(&copy, "this"));
	assert_int_equal(tutti_topo_gather(path), TUTTI_OK);
	assert_int_equal(tti_sysfs_open(path, &to), TUTTI_OK);
	assert_true(to.captured);
	assert_true(tti_sysfs_exists(&to, "proc/version"));
	assert_true(tti_sysfs_exists(&to, "sys/devices/system/cpu/cpu0/topology"));
	assert_int_equal(tutti_topo_gather(path), TUTTI_EINVAL);
}

static void no_memory_is_said(void **state)
{
	char path[64], fault[32];
	int nfailed = 0;

	(void)state;
	nics_pci(&tree, SLOT, "0x020000\n", NULL);
	nics_net(&tree, "eth0", SLOT);
	for (int at = 1; at < 12; at++) {
		tutti_status status;

		snprintf(path, sizeof(path), "%d", at);
		tree_path(&copy, path);
		snprintf(fault, sizeof(fault), "mem:%d", at);
		tti_fault_set(fault);
		status = tti_gather(&from, copy.path, &report);
		tti_fault_set(NULL);
		assert_true(status == TUTTI_OK || status == TUTTI_ENOMEM);
		nfailed += status == TUTTI_ENOMEM;
	}
	assert_true(nfailed > 3);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(links_lead_to_where_they_led),
		TEST(the_copy_has_no_serial_numbers_or_addresses),
		TEST(of_the_config_space_only_the_first_part_is_taken),
		TEST(nodes_above_a_device_keep_their_numa_node),
		TEST(a_directory_with_something_in_it_is_refused),
		TEST(a_place_that_cannot_be_made_is_refused),
		TEST(a_missing_directory_is_made),
		TEST(nothing_is_written_outside),
		TEST(the_machine_at_hand_is_gathered),
		TEST(no_memory_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
