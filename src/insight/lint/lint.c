/* SPDX-License-Identifier: BSD-3-Clause */

#include "insight/lint/lint.h"

#include <stdlib.h>

#include "insight/lint/lint_rules.h"
#include "util/error.h"
#include "util/mem.h"

#define ERROR   TTI_SEVERITY_ERROR
#define WARNING TTI_SEVERITY_WARNING
#define NOTE    TTI_SEVERITY_NOTE

static const struct tti_lint_rule rules[] = {
	{ "numa-same-mask", ERROR, tti_lint_numa_same_mask,
	  "give each <cpu> the affinity of its own cores: /sys/devices/system/node/node*/cpumap",
	  NULL },
	{ "numa-mask-overlap", WARNING, tti_lint_numa_mask_overlap,
	  "give each <cpu> the affinity of its own cores: /sys/devices/system/node/node*/cpumap",
	  NULL },
	{ "numa-no-cores", NOTE, tti_lint_numa_no_cores,
	  "state the affinity of the NUMA node, or hang its devices on one that has cores", NULL },
	{ "numa-unknown", NOTE, tti_lint_numa_unknown,
	  "switch NUMA on in the firmware, or state numaid in a topology file", NULL },
	{ "socket-assumed", NOTE, tti_lint_socket_assumed,
	  "state tutti_package of each <cpu> in the topology file", NULL },
	{ "pci-link-narrow", WARNING, tti_lint_pci_link_narrow,
	  "reseat the card, riser or cable; look for PCIe errors in the kernel's log", NULL },
	{ "pci-link-slow", WARNING, tti_lint_pci_link_slow,
	  "look again under load: idle links save power; else check firmware settings and risers",
	  NULL },
	{ "pci-sibling-slower", WARNING, tti_lint_pci_sibling,
	  "compare slots and risers with those of the faster one; reseat the card", NULL },
	{ "pci-uplink-narrow", WARNING, tti_lint_pci_uplink,
	  "check how the switch's upstream port trained; move the device to another slot", NULL },
	{ "pci-virtual-link", WARNING, tti_lint_pci_virtual,
	  "if a virtual machine made this figure up, state the real one in a topology file", NULL },
	{ "pci-busid-twice", WARNING, tti_lint_pci_busid_twice,
	  "give each <pci> of the topology file a bus id of its own", NULL },
	{ "pci-speed-assumed", NOTE, tti_lint_pci_assumed,
	  "state link_speed and link_width in the topology file", NULL },
	{ "pci-unknown-function", NOTE, tti_lint_pci_unknown,
	  "state class in the topology file, or lay the file over what is detected", NULL },
	{ "nvlink-zero", WARNING, tti_lint_nvlink_zero,
	  "check the bridge and `nvidia-smi nvlink --status`; else delete the element",
	  "check the bridge and `amd-smi xgmi` (or `rocm-smi --showtopo`); else "
	  "delete the element" },
	{ "nvlink-no-target", WARNING, tti_lint_nvlink_no_target,
	  "correct target: it is the bus id of a GPU, or of a switch with tclass", NULL },
	{ "nvlink-one-way", WARNING, tti_lint_nvlink_one_way,
	  "state the link at both GPUs; if it was detected, check the link's state", NULL },
	{ "nvlink-uneven", WARNING, tti_lint_nvlink_uneven,
	  "state the same count at both GPUs; if it was detected, check the link's state", NULL },
	{ "nvlink-fewer", WARNING, tti_lint_nvlink_fewer,
	  "check the state of the missing links (`nvidia-smi nvlink --status`); reset the GPU",
	  "check the state of the missing links (`amd-smi xgmi`, or `rocm-smi --shownodesbw`); "
	  "reset the GPU" },
	{ "nvlink-speed-assumed", NOTE, tti_lint_nvlink_assumed,
	  "state sm (or gcn) of the <gpu> in the topology file", NULL },
	{ "gpu-far-nic", WARNING, tti_lint_gpu_far_nic,
	  "put a NIC below the same switch as the GPU, or use another GPU for the network", NULL },
	{ "gpu-no-driver", WARNING, tti_lint_gpu_bare,
	  "load the vendor's driver, or add a <gpu> to the topology file", NULL },
	{ "gpu-dev-twice", ERROR, tti_lint_gpu_dev_twice,
	  "number the GPUs of a host: dev=\"0\", 1 ...", NULL },
	{ "gpu-rank-twice", ERROR, tti_lint_gpu_rank_twice, "give each GPU a rank of its own",
	  NULL },
	{ "gpu-rank-missing", WARNING, tti_lint_gpu_rank_missing,
	  "state ranks without gaps for all GPUs, or for none", NULL },
	{ "gpu-mixed", NOTE, tti_lint_gpu_mixed,
	  "expect the pace of the slowest; use equal GPUs in one communicator", NULL },
	{ "gpu-no-p2p", WARNING, tti_lint_gpu_no_p2p,
	  "check IOMMU and ACS settings, and what the driver says (`nvidia-smi topo -p2p r`)",
	  "check IOMMU and ACS settings, and what the driver says (`rocm-smi --showtopoaccess`)" },
	{ "gpu-no-gdr", WARNING, tti_lint_gpu_no_gdr,
	  "load nvidia-peermem, or use a kernel and drivers with dma-buf",
	  "use an amdgpu driver (ROCm) and a kernel with dma-buf and PCI "
	  "peer-to-peer, or AMD's peer memory" },
	{ "nic-far", WARNING, tti_lint_nic_far,
	  "move the NIC to a slot of the GPUs' socket, or use it for other traffic", NULL },
	{ "nic-no-gdr", WARNING, tti_lint_nic_no_gdr,
	  "use an RDMA driver that reaches GPU memory (peer memory module, or dma-buf)", NULL },
	{ "nic-unbalanced", WARNING, tti_lint_nic_unbalanced,
	  "spread the NICs over the sockets as the GPUs are", NULL },
	{ "nic-faster-than-pci", WARNING, tti_lint_nic_too_fast,
	  "use a slot with more lanes or a newer generation", NULL },
	{ "net-name-twice", ERROR, tti_lint_net_name_twice, "give each <net> a name of its own",
	  NULL },
	{ "net-guid-twice", WARNING, tti_lint_net_guid_twice,
	  "give each card its own guid; if it is one card in two slots, nothing is wrong", NULL },
	{ "net-virtual", NOTE, tti_lint_net_virtual,
	  "nothing; name it in TUTTI_SOCKET_IFNAME if plans shall use it", NULL },
	{ "net-speed-unknown", NOTE, tti_lint_net_speed,
	  "its driver tells no speed: state it (speed, in Mb/s) in the topology file", NULL },
	{ "net-down", WARNING, tti_lint_net_down,
	  "check cable, transceiver and switch port; `ibstat` or `ip link` shows the state", NULL },
	{ "implausible", WARNING, tti_lint_implausible,
	  "correct the figure where it comes from: the file, the network plugin, the hypervisor",
	  NULL },
	{ "too-large", NOTE, tti_lint_too_large, "look at the hosts one by one", NULL },
	{ "name-typo", WARNING, tti_lint_name_typo, "correct the name, if that is what is meant",
	  NULL },
	{ "name-unknown", NOTE, tti_lint_name_unknown, "nothing, if another program reads it",
	  NULL },
};

#define NRULES (sizeof(rules) / sizeof(rules[0]))

const struct tti_lint_rule *tti_lint_rules(size_t *n_out)
{
	*n_out = NRULES;
	return rules;
}

const char *tti_severity_name(enum tti_severity severity)
{
	static const char *const names[] = { "note", "warning", "error" };

	return names[severity];
}

/* -- All rules ---------------------------------------------------------------------------- */

static int worst_first(const void *left, const void *right)
{
	const struct tti_lint_found *a = left, *b = right;

	if (a->finding.severity != b->finding.severity)
		return a->finding.severity > b->finding.severity ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->finding.node != b->finding.node)
		return a->finding.node < b->finding.node ? -1 : 1;
	return (a->number > b->number) - (a->number < b->number);
}

void tti_lint_too_large(struct tti_linter *linter)
{
	const struct tti_finding finding = {
		.what = tti_lint_say(linter, "%u endpoints: not all pairs of them were looked at",
				     linter->paths->n),
		.consequence = "a NIC that is far from its GPUs, or does not reach their memory, "
			       "is not found: what GB/s it costs is not known",
	};

	if (!tti_lint_has_tables(linter))
		tti_lint_add_at(linter, linter->doc->root, &finding);
}

static void run_rules(struct tti_linter *linter)
{
	const struct tti_xml *xml = linter->doc->root;

	for (; xml && !linter->failed; xml = tti_xml_walk(xml))
		linter->failed = !tti_vec_push(&linter->elements, xml);
	for (size_t i = 0; i < NRULES && !linter->failed; i++) {
		linter->rule = &rules[i];
		rules[i].run(linter);
	}
}

static bool take_findings(struct tti_linter *linter)
{
	struct tti_lint *lint = linter->lint;

	if (linter->failed)
		return false;
	if (linter->found.n)
		qsort(linter->found.at, linter->found.n, sizeof(*linter->found.at), worst_first);
	lint->at = tti_arena_alloc(&lint->arena, linter->found.n * sizeof(*lint->at));
	if (!lint->at)
		return false;
	for (size_t i = 0; i < linter->found.n; i++)
		lint->at[i] = linter->found.at[i].finding;
	lint->n = linter->found.n;
	return true;
}

tutti_status tti_lint_run(const struct tti_xml_doc *doc, const struct tti_graph *graph,
			  const struct tti_paths *paths, const struct tti_routes *routes,
			  struct tti_lint **out)
{
	struct tti_linter linter = {
		.doc = doc,
		.graph = graph,
		.paths = paths,
		.routes = routes,
		.lint = tti_zalloc(sizeof(*linter.lint)),
	};
	bool taken = false;

	if (linter.lint) {
		run_rules(&linter);
		taken = take_findings(&linter);
	}
	tti_vec_release(&linter.found);
	tti_vec_release(&linter.elements);
	if (!taken) {
		tti_lint_free(linter.lint);
		return tti_fail(TUTTI_ENOMEM, "no memory for the findings on %s", doc->source);
	}
	*out = linter.lint;
	return TUTTI_OK;
}

void tti_lint_free(struct tti_lint *lint)
{
	if (!lint)
		return;
	tti_arena_release(&lint->arena);
	tti_free(lint);
}
