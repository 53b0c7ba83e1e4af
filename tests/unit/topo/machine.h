/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_TOPO_MACHINE_H
#define TESTS_TOPO_MACHINE_H

/* A made-up machine as the kernel shows it: NUMA nodes, PCI functions, and the GPU
 * servers that the files of tests/data/nvml describe. tree.h and nics.h come before this one. */

#include <string.h>

static inline void machine_node(struct tree *tree, int node, const char *cpus,
				const char *distances)
{
	nics_file(tree, cpus, "sys/devices/system/node/node%d/cpulist", node);
	nics_file(tree, distances, "sys/devices/system/node/node%d/distance", node);
}

/* A function at a place below sys/devices: "pci0000:10/0000:10:01.0/0000:11:00.0". */
struct machine_pci {
	const char *class_code, *vendor, *device, *speed, *width, *numa;
};

static inline void machine_pci(struct tree *tree, const char *place, struct machine_pci pci)
{
	char name[256], target[512];

	nics_file(tree, pci.class_code, "sys/devices/%s/class", place);
	nics_file(tree, pci.vendor, "sys/devices/%s/vendor", place);
	nics_file(tree, pci.device, "sys/devices/%s/device", place);
	nics_file(tree, pci.numa, "sys/devices/%s/numa_node", place);
	if (pci.speed) {
		nics_file(tree, pci.speed, "sys/devices/%s/max_link_speed", place);
		nics_file(tree, pci.width, "sys/devices/%s/max_link_width", place);
	}
	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s", strrchr(place, '/') + 1);
	snprintf(target, sizeof(target), "../../../devices/%s", place);
	tree_link(tree, name, target);
}

#define MACHINE_PORT(numa) \
	((struct machine_pci){ "0x060400", "0x1000", "0xc030", "32.0 GT/s PCIe", "16", numa })
#define MACHINE_GPU(numa) \
	((struct machine_pci){ "0x030200", "0x10de", "0x2330", "32.0 GT/s PCIe", "16", numa })
#define MACHINE_NIC(numa) \
	((struct machine_pci){ "0x020700", "0x15b3", "0x1021", "32.0 GT/s PCIe", "16", numa })
#define MACHINE_SWITCH(numa) \
	((struct machine_pci){ "0x068000", "0x10de", "0x22a3", "32.0 GT/s PCIe", "2", numa })

/* The InfiniBand device mlx5_NIC of one port, NDR. */
static inline void machine_ib(struct tree *tree, const char *place, int nic)
{
	char name[16], guid[32];

	snprintf(name, sizeof(name), "mlx5_%d", nic);
	snprintf(guid, sizeof(guid), "a088:c203:00aa:000%d\n", nic);
	nics_rdma(tree, name, place, 1, guid);
	nics_rdma_set(tree, name, "ports/1/rate", "400 Gb/sec (4X NDR)\n");
	nics_rdma_set(tree, name, "ports/1/link_layer", "InfiniBand\n");
}

/* A PCI switch below a root port of its own, each function behind a port of its own. */
static inline void machine_switch(struct tree *tree, int root, const char *numa,
				  const char *const gpus[2], const char *const nics[2], int nic)
{
	char place[96];

	snprintf(place, sizeof(place), "pci0000:%02x/0000:%02x:01.0", root, root);
	machine_pci(tree, place, MACHINE_PORT(numa));
	snprintf(place, sizeof(place), "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0", root, root,
		 root + 1);
	machine_pci(tree, place, MACHINE_PORT(numa));
	for (int i = 0; i < 4; i++) {
		const char *const bus = i % 2 ? gpus[i / 2] : nics[i / 2];
		char below[160];

		snprintf(place, sizeof(place),
			 "pci0000:%02x/0000:%02x:01.0/0000:%02x:00.0/0000:%02x:%02x.0", root, root,
			 root + 1, root + 2, i);
		machine_pci(tree, place, MACHINE_PORT(numa));
		snprintf(below, sizeof(below), "%s/0000:%s:00.0", place, bus);
		machine_pci(tree, below, i % 2 ? MACHINE_GPU(numa) : MACHINE_NIC(numa));
		if (i % 2 == 0)
			machine_ib(tree, below, nic + i / 2);
	}
}

/* 2 NUMA nodes, 4 PCI switches with 2 GPUs and 2 NICs each, 4 NVSwitches: what
 * hgx-h100.txt tells of the GPUs fits to it. */
static inline void machine_hgx(struct tree *tree)
{
	static const char *const gpus[4][2] = {
		{ "1b", "43" }, { "52", "61" }, { "9d", "c3" }, { "d1", "df" }
	};
	static const char *const nics[4][2] = {
		{ "1a", "42" }, { "51", "60" }, { "9c", "c2" }, { "d0", "de" }
	};
	static const int roots[4] = { 0x10, 0x48, 0x90, 0xc8 };

	tree_file(tree, "sys/devices/system/node/online", "0-1\n");
	tree_dir(tree, "sys/module/nvidia");
	tree_dir(tree, "sys/module/nvidia_peermem");
	machine_node(tree, 0, "0-55\n", "10 21\n");
	machine_node(tree, 1, "56-111\n", "21 10\n");
	for (int i = 0; i < 4; i++)
		machine_switch(tree, roots[i], i < 2 ? "0" : "1", gpus[i], nics[i], 2 * i);
	for (int i = 0; i < 4; i++) {
		char place[96];

		snprintf(place, sizeof(place), "pci0000:00/0000:00:1c.%d", i);
		machine_pci(tree, place, MACHINE_PORT("0"));
		snprintf(place, sizeof(place), "pci0000:00/0000:00:1c.%d/0000:%02x:00.0", i, 4 + i);
		machine_pci(tree, place, MACHINE_SWITCH("0"));
	}
}

#endif
