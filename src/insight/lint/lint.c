/* SPDX-License-Identifier: BSD-3-Clause */

#include "insight/lint/lint.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insight/lint/lint_rules.h"
#include "util/error.h"
#include "util/mem.h"

#define ERROR   TTI_SEVERITY_ERROR
#define WARNING TTI_SEVERITY_WARNING
#define NOTE    TTI_SEVERITY_NOTE

static const struct tti_lint_rule rules[] = {
	{ "numa-same-mask", ERROR, tti_lint_numa_same_mask,
	  "give each <cpu> the affinity of its own cores: /sys/devices/system/node/node*/cpumap" },
	{ "numa-mask-overlap", WARNING, tti_lint_numa_mask_overlap,
	  "give each <cpu> the affinity of its own cores: /sys/devices/system/node/node*/cpumap" },
	{ "numa-no-cores", NOTE, tti_lint_numa_no_cores,
	  "state the affinity of the NUMA node, or hang its devices on one that has cores" },
	{ "numa-unknown", NOTE, tti_lint_numa_unknown,
	  "switch NUMA on in the firmware, or state numaid in a topology file" },
	{ "socket-assumed", NOTE, tti_lint_socket_assumed,
	  "state tutti_package of each <cpu> in the topology file" },
	{ "pci-link-narrow", WARNING, tti_lint_pci_link_narrow,
	  "reseat the card, riser or cable; look for PCIe errors in the kernel's log" },
	{ "pci-link-slow", WARNING, tti_lint_pci_link_slow,
	  "look again under load: idle links save power; else check firmware settings and risers" },
	{ "pci-sibling-slower", WARNING, tti_lint_pci_sibling,
	  "compare slots and risers with those of the faster one; reseat the card" },
	{ "pci-uplink-narrow", WARNING, tti_lint_pci_uplink,
	  "check how the switch's upstream port trained; move the device to another slot" },
	{ "pci-virtual-link", WARNING, tti_lint_pci_virtual,
	  "if a virtual machine made this figure up, state the real one in a topology file" },
	{ "pci-busid-twice", WARNING, tti_lint_pci_busid_twice,
	  "give each <pci> of the topology file a bus id of its own" },
	{ "pci-speed-assumed", NOTE, tti_lint_pci_assumed,
	  "state link_speed and link_width in the topology file" },
	{ "pci-unknown-function", NOTE, tti_lint_pci_unknown,
	  "state class in the topology file, or lay the file over what is detected" },
	{ "nvlink-zero", WARNING, tti_lint_nvlink_zero,
	  "check the bridge and `nvidia-smi nvlink --status`; else delete the element" },
	{ "nvlink-no-target", WARNING, tti_lint_nvlink_no_target,
	  "correct target: it is the bus id of a GPU, or of a switch with tclass" },
	{ "nvlink-one-way", WARNING, tti_lint_nvlink_one_way,
	  "state the link at both GPUs; if it was detected, check the link's state" },
	{ "nvlink-uneven", WARNING, tti_lint_nvlink_uneven,
	  "state the same count at both GPUs; if it was detected, check the link's state" },
	{ "nvlink-fewer", WARNING, tti_lint_nvlink_fewer,
	  "check the state of the missing links (`nvidia-smi nvlink --status`); reset the GPU" },
	{ "nvlink-speed-assumed", NOTE, tti_lint_nvlink_assumed,
	  "state sm (or gcn) of the <gpu> in the topology file" },
	{ "gpu-far-nic", WARNING, tti_lint_gpu_far_nic,
	  "put a NIC below the same switch as the GPU, or use another GPU for the network" },
	{ "gpu-no-driver", WARNING, tti_lint_gpu_bare,
	  "load the vendor's driver, or add a <gpu> to the topology file" },
	{ "gpu-dev-twice", ERROR, tti_lint_gpu_dev_twice,
	  "number the GPUs of a host: dev=\"0\", 1 ..." },
	{ "gpu-rank-twice", ERROR, tti_lint_gpu_rank_twice, "give each GPU a rank of its own" },
	{ "gpu-rank-missing", WARNING, tti_lint_gpu_rank_missing,
	  "state ranks without gaps for all GPUs, or for none" },
	{ "gpu-mixed", NOTE, tti_lint_gpu_mixed,
	  "expect the pace of the slowest; use equal GPUs in one communicator" },
	{ "gpu-no-p2p", WARNING, tti_lint_gpu_no_p2p,
	  "check IOMMU and ACS settings, and what the driver says (`nvidia-smi topo -p2p r`)" },
	{ "gpu-no-gdr", WARNING, tti_lint_gpu_no_gdr,
	  "load nvidia-peermem, or use a kernel and drivers with dma-buf" },
	{ "nic-far", WARNING, tti_lint_nic_far,
	  "move the NIC to a slot of the GPUs' socket, or use it for other traffic" },
	{ "nic-no-gdr", WARNING, tti_lint_nic_no_gdr,
	  "use an RDMA driver that reaches GPU memory (peer memory module, or dma-buf)" },
	{ "nic-unbalanced", WARNING, tti_lint_nic_unbalanced,
	  "spread the NICs over the sockets as the GPUs are" },
	{ "nic-faster-than-pci", WARNING, tti_lint_nic_too_fast,
	  "use a slot with more lanes or a newer generation" },
	{ "net-name-twice", ERROR, tti_lint_net_name_twice, "give each <net> a name of its own" },
	{ "net-guid-twice", WARNING, tti_lint_net_guid_twice,
	  "give each card its own guid; if it is one card in two slots, nothing is wrong" },
	{ "net-virtual", NOTE, tti_lint_net_virtual,
	  "nothing; name it in TUTTI_SOCKET_IFNAME if plans shall use it" },
	{ "net-speed-unknown", NOTE, tti_lint_net_speed,
	  "its driver tells no speed: state it (speed, in Mb/s) in the topology file" },
	{ "net-down", WARNING, tti_lint_net_down,
	  "check cable, transceiver and switch port; `ibstat` or `ip link` shows the state" },
	{ "implausible", WARNING, tti_lint_implausible,
	  "correct the figure where it comes from: the file, the network plugin, the hypervisor" },
	{ "too-large", NOTE, tti_lint_too_large, "look at the hosts one by one" },
	{ "name-typo", WARNING, tti_lint_name_typo, "correct the name, if that is what is meant" },
	{ "name-unknown", NOTE, tti_lint_name_unknown, "nothing, if another program reads it" },
};

/* What helps in place of it where the device is AMD's. */
static const struct {
	const char *rule, *remedy;
} amd[] = {
	{ "nvlink-zero", "check the bridge and `amd-smi xgmi` (or `rocm-smi --showtopo`); else "
			 "delete the element" },
	{ "nvlink-fewer",
	  "check the state of the missing links (`amd-smi xgmi`, or `rocm-smi --shownodesbw`); "
	  "reset the GPU" },
	{ "gpu-no-p2p",
	  "check IOMMU and ACS settings, and what the driver says (`rocm-smi --showtopoaccess`)" },
	{ "gpu-no-gdr", "use an amdgpu driver (ROCm) and a kernel with dma-buf and PCI "
			"peer-to-peer, or AMD's peer memory" },
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

/* -- What rules use ----------------------------------------------------------------------- */

const char *tti_lint_say(struct tti_linter *linter, const char *fmt, ...)
{
	va_list args, again;
	char *text = NULL;
	int len;

	va_start(args, fmt);
	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	if (len >= 0)
		text = tti_arena_alloc(&linter->lint->arena, (size_t)len + 1);
	if (text)
		vsnprintf(text, (size_t)len + 1, fmt, args);
	else
		linter->failed = true;
	va_end(args);
	return text;
}

bool tti_lint_is_amd(const struct tti_linter *linter, uint32_t node)
{
	return tti_graph_is_amd(linter->graph, node);
}

double tti_lint_c2c(const struct tti_linter *linter, uint32_t node)
{
	const struct tti_graph *graph = linter->graph;
	const struct tti_node *at = &graph->nodes[node];
	double gbps = 0;

	if (at->type == TTI_NODE_GPU)
		at = &graph->nodes[at->parent];
	for (uint32_t i = 0; i < at->nlinks; i++)
		if (graph->links[at->first_link + i].type == TTI_LINK_C2C)
			gbps += (double)graph->links[at->first_link + i].bw_gbps;
	return gbps;
}

static const char *remedy(const struct tti_linter *linter, uint32_t node)
{
	const bool is_amd = node != TTI_NODE_NONE && tti_lint_is_amd(linter, node);

	for (size_t i = 0; is_amd && i < sizeof(amd) / sizeof(amd[0]); i++)
		if (strcmp(amd[i].rule, linter->rule->name) == 0)
			return amd[i].remedy;
	return linter->rule->remedy;
}

static void add(struct tti_linter *linter, const char *place, uint32_t line,
		const struct tti_finding *finding)
{
	struct tti_lint_found found = {
		.finding = *finding,
		.line = line,
		.number = linter->found.n,
	};

	if (!finding->what || !finding->consequence || !place)
		linter->failed = true;
	found.finding.rule = linter->rule->name;
	found.finding.place = place;
	found.finding.severity = linter->rule->severity;
	found.finding.remedy = remedy(linter, finding->node);
	if (!linter->failed && !tti_vec_push(&linter->found, found))
		linter->failed = true;
}

void tti_lint_add(struct tti_linter *linter, uint32_t node, const struct tti_finding *finding)
{
	const struct tti_graph *graph = linter->graph;
	const struct tti_node *at = &graph->nodes[node];
	struct tti_finding filled = *finding;
	char line[16] = "";

	if (at->line)
		snprintf(line, sizeof(line), ":%u", at->line);
	filled.name_at = strlen(graph->source) + strlen(line) + strlen(": ") +
			 strlen(tti_node_type_name(at->type)) + strlen(" ");
	filled.node = node;
	filled.name = at->name;
	add(linter,
	    tti_lint_say(linter, "%s%s: %s %s%s%s", graph->source, line,
			 tti_node_type_name(at->type), at->name,
			 graph->nhosts > 1 ? " of host " : "",
			 graph->nhosts > 1 ? graph->hosts[at->host] : ""),
	    at->line, &filled);
}

void tti_lint_add_at(struct tti_linter *linter, const struct tti_xml *xml,
		     const struct tti_finding *finding)
{
	struct tti_finding filled = *finding;
	char line[16] = "";

	if (xml->line)
		snprintf(line, sizeof(line), ":%u", xml->line);
	filled.node = TTI_NODE_NONE;
	add(linter, tti_lint_say(linter, "%s%s: <%s>", linter->graph->source, line, xml->name),
	    xml->line, &filled);
}

const struct tti_xml *tti_lint_element(const struct tti_linter *linter, uint32_t node)
{
	const uint32_t number = linter->graph->nodes[node].element;

	return number < linter->elements.n ? linter->elements.at[number] : NULL;
}

const char *tti_lint_attr(const struct tti_linter *linter, uint32_t node, const char *attr)
{
	const struct tti_xml *xml = tti_lint_element(linter, node);

	return xml ? tti_xml_get(xml, attr) : NULL;
}

double tti_lint_uplink(const struct tti_linter *linter, uint32_t node)
{
	const struct tti_graph *graph = linter->graph;
	const uint32_t parent = graph->nodes[node].parent;

	for (uint32_t i = 0; parent != TTI_NODE_NONE && i < graph->nodes[node].nlinks; i++) {
		const struct tti_topo_link *link = &graph->links[graph->nodes[node].first_link + i];

		if (link->to == parent && link->type != TTI_LINK_NVL && link->type != TTI_LINK_C2C)
			return (double)link->bw_gbps;
	}
	return 0;
}

const struct tti_path *tti_lint_path(const struct tti_linter *linter, uint32_t from, uint32_t to)
{
	return linter->paths->at ? tti_paths_get(linter->paths, from, to) : NULL;
}

int tti_lint_package(const struct tti_linter *linter, uint32_t node)
{
	const uint32_t cpu = tti_graph_cpu_of(linter->graph, node);

	return cpu == TTI_NODE_NONE ? -1 : linter->graph->nodes[cpu].cpu.package;
}

uint32_t tti_lint_endpoint(const struct tti_linter *linter, uint32_t node)
{
	const struct tti_graph *graph = linter->graph;
	const struct tti_node *at = &graph->nodes[node];
	uint32_t found = TTI_NODE_NONE;

	if (at->type == TTI_NODE_GPU || at->type == TTI_NODE_NET)
		return node;
	for (uint32_t i = 0; found == TTI_NODE_NONE && i < at->nlinks; i++) {
		const uint32_t to = graph->links[at->first_link + i].to;

		if (graph->nodes[to].parent == node)
			found = tti_lint_endpoint(linter, to);
	}
	return found;
}

const char *tti_lint_user(const struct tti_linter *linter, uint32_t node)
{
	const uint32_t user = tti_lint_endpoint(linter, node);

	return linter->graph->nodes[user == TTI_NODE_NONE ? node : user].name;
}

const char *tti_lint_figures(struct tti_linter *linter, struct tti_finding *finding)
{
	const double have = finding->have_gbps, want = finding->want_gbps;

	if (have < want * 0.99)
		return tti_lint_say(linter, "%.1f instead of %.1f GB/s", have, want);
	finding->have_gbps = finding->want_gbps = 0;
	return tti_lint_say(linter, "%.1f GB/s", have);
}

bool tti_lint_is_plain_net(const struct tti_linter *linter, uint32_t net)
{
	const struct tti_net_info *info = &linter->graph->nodes[net].net;

	return !info->gdr && info->speed_mbps <= TTI_NET_MBPS;
}

bool tti_lint_is_virtual(const struct tti_linter *linter, uint32_t node)
{
	const struct tti_pci_info *pci = &linter->graph->nodes[node].pci;

	return pci->busid != TTI_BUSID_NONE && pci->gts > 0 && pci->gts < 3 && pci->width == 1;
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

bool tti_lint_has_tables(const struct tti_linter *linter)
{
	return linter->paths->at && linter->routes->at;
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
