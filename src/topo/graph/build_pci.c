/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/build.h"

#include <string.h>

#include "util/error.h"
#include "util/hash.h"

enum vendor {
	VENDOR_AMD = 0x1002,
	VENDOR_NVIDIA = 0x10de,
	VENDOR_INTEL = 0x8086,
};

/* -- What a PCI function is ------------------------------------------------------------ */

static tutti_status read_pci(struct tti_build *build, const struct tti_xml *xml,
			     struct tti_pci_info *pci)
{
	static const char *const names[] = { "vendor", "device", "subsystem_vendor",
					     "subsystem_device" };
	uint16_t *const ids[] = { &pci->vendor, &pci->device, &pci->subsystem_vendor,
				  &pci->subsystem_device };
	const char *busid = tti_xml_get(xml, "busid");
	uint64_t value;
	int64_t width;

	if (!busid || !tti_busid_parse(busid, &pci->busid))
		return tti_xml_fail(build->doc, xml, "no bus id");
	TTI_TRY(tti_xml_hex(build->doc, xml, "class", 0xffffff, 0, &value));
	pci->class_code = (uint32_t)value;
	for (size_t i = 0; i < 4; i++) {
		TTI_TRY(tti_xml_hex(build->doc, xml, names[i], UINT16_MAX, 0, &value));
		*ids[i] = (uint16_t)value;
	}
	TTI_TRY(tti_xml_int(build->doc, xml, "link_width", 0, UINT16_MAX, 0, &width));
	pci->width = (int)width;
	pci->gts = tti_model_pci_gts(tti_xml_get(xml, "link_speed"));
	return TUTTI_OK;
}

/* Whether this is a GPU or accelerator that ranks may use, by its class and without a driver.
 * The graphics of a board management controller is not, and neither are Intel's coprocessors
 * for compression (QAT). */
static bool computes(const struct tti_pci_info *pci)
{
	const bool gpu_vendor = pci->vendor == VENDOR_AMD || pci->vendor == VENDOR_NVIDIA;

	switch (pci->class_code >> 8) {
	case 0x0302: /* 3D controller */
		return true;
	case 0x0380: /* display controller */
		return gpu_vendor || pci->vendor == VENDOR_INTEL;
	case 0x0300: /* VGA */
		return gpu_vendor && pci->width >= 8;
	case 0x0b40: /* coprocessor */
		return pci->vendor != VENDOR_INTEL;
	default:
		return pci->class_code >> 16 == 0x12; /* processing accelerator */
	}
}

static bool is_nic(const struct tti_pci_info *pci)
{
	return pci->class_code >> 16 == 0x02 || pci->class_code >> 8 == 0x0c06;
}

/* -- Nodes and the link above them ------------------------------------------------------ */

static tutti_status hang(struct tti_build *build, uint32_t node, uint32_t parent, double bw_gbps)
{
	const bool root = build->nodes.at[parent].type == TTI_NODE_CPU;

	build->nodes.at[node].parent = parent;
	return tti_build_link(build,
			      (struct tti_half){
				      .from = node,
				      .to = parent,
				      .type = TTI_LINK_PCI,
				      .count = 1,
				      .bw_gbps = bw_gbps,
				      .latency_ns = root ? TTI_PCI_ROOT_NS : TTI_PCI_SWITCH_NS,
			      });
}

static tutti_status note_assumed(struct tti_build *build, const struct tti_xml *xml, uint32_t node,
				 const struct tti_pci_info *pci)
{
	if (pci->gts > 0 && pci->width > 0)
		return TUTTI_OK;
	return tti_build_note(build, TTI_NOTE_ASSUMED_SPEED, node, TTI_NODE_NONE, xml,
			      "its PCI link has no stated %s: %s%s%s assumed",
			      pci->gts > 0     ? "width"
			      : pci->width > 0 ? "speed"
					       : "speed and width",
			      pci->gts > 0 ? "" : "8 GT/s",
			      pci->gts > 0 || pci->width > 0 ? "" : ", ",
			      pci->width > 0 ? "" : "16 lanes");
}

static tutti_status add_pci_node(struct tti_build *build, enum tti_node_type type,
				 const struct tti_xml *xml, const struct tti_pci_info *pci,
				 uint32_t parent, uint32_t *out)
{
	const uint32_t host = build->nodes.at[parent].host;
	char busid[TTI_BUSID_TEXT];

	TTI_TRY(tti_build_node(build, type, xml, host, out, "%s",
			       tti_busid_format(pci->busid, busid)));
	build->nodes.at[*out].pci = *pci;
	if (!tti_map_put(&build->by_busid, host, TTI_BUILD_KEY(type, pci->busid), *out))
		return tti_build_no_memory(build);
	return hang(build, *out, parent, tti_model_pci_gbps(pci->gts, pci->width));
}

/* -- GPUs ------------------------------------------------------------------------------ */

static tutti_status read_gpu(struct tti_build *build, const struct tti_xml *xml,
			     struct tti_gpu_info *gpu)
{
	const struct tti_xml_doc *doc = build->doc;
	int64_t dev, rank, sm, gdr;

	TTI_TRY(tti_xml_int(doc, xml, "dev", -1, INT32_MAX, -1, &dev));
	TTI_TRY(tti_xml_int(doc, xml, "rank", -1, INT32_MAX, -1, &rank));
	TTI_TRY(tti_xml_int(doc, xml, "sm", 0, UINT16_MAX, 0, &sm));
	TTI_TRY(tti_xml_int(doc, xml, "gdr", 0, UINT8_MAX, 0, &gdr));
	TTI_TRY(tti_build_text(build, xml, "gcn", NULL, &gpu->gcn));
	gpu->dev = (int)dev;
	gpu->rank = (int)rank;
	gpu->sm = (int)sm;
	gpu->gdr = gdr > 0;
	return TUTTI_OK;
}

/* A GPU that has no number from a driver or from the document is called "GPU" until all
 * numbers are known. */
static tutti_status add_gpu(struct tti_build *build, const struct tti_xml *xml, uint32_t dev,
			    const struct tti_gpu_info *gpu)
{
	const uint32_t host = build->nodes.at[dev].host;
	int64_t number = gpu->dev;
	uint32_t node;

	if (gpu->dev < 0)
		TTI_TRY(tti_xml_int(build->doc, xml, "tutti_number", -1, INT32_MAX, -1, &number));
	if (number < 0)
		TTI_TRY(tti_build_node(build, TTI_NODE_GPU, xml, host, &node, "GPU"));
	else
		TTI_TRY(tti_build_node(build, TTI_NODE_GPU, xml, host, &node, "GPU%lld",
				       (long long)number));
	build->nodes.at[node].gpu = *gpu;
	build->nodes.at[node].parent = dev;
	return tti_build_link(build, (struct tti_half){ .from = node,
							.to = dev,
							.type = TTI_LINK_LOC,
							.count = 1,
							.bw_gbps = TTI_LOC_GBPS });
}

static tutti_status add_dev(struct tti_build *build, const struct tti_xml *xml,
			    const struct tti_pci_info *pci, uint32_t parent)
{
	const struct tti_xml *at = tti_xml_find(xml, "gpu", NULL, NULL);
	struct tti_gpu_info gpu = { .dev = -1, .rank = -1, .bare = true };
	struct tti_made made = { .xml = at };
	bool first = true;

	TTI_TRY(add_pci_node(build, TTI_NODE_DEV, xml, pci, parent, &made.node));
	TTI_TRY(note_assumed(build, xml, made.node, pci));
	build->nodes.at[made.node].gpu = gpu;
	if (!at)
		return add_gpu(build, xml, made.node, &gpu);
	for (; at; at = tti_xml_next(at, "gpu"), first = false) {
		gpu = (struct tti_gpu_info){ 0 };
		TTI_TRY(read_gpu(build, at, &gpu));
		TTI_TRY(add_gpu(build, at, made.node, &gpu));
		if (first)
			build->nodes.at[made.node].gpu = gpu;
	}
	return tti_vec_push(&build->gpus, made) ? TUTTI_OK : tti_build_no_memory(build);
}

/* -- NICs ------------------------------------------------------------------------------ */

static tutti_status read_net(struct tti_build *build, const struct tti_xml *xml,
			     struct tti_net_info *net)
{
	const struct tti_xml_doc *doc = build->doc;
	int64_t dev, port, rail, plane, maxconn, gdr, coll;
	double latency_us;

	TTI_TRY(tti_xml_int(doc, xml, "dev", -1, INT32_MAX, -1, &dev));
	TTI_TRY(tti_xml_int(doc, xml, "port", 0, INT32_MAX, -1, &port));
	TTI_TRY(tti_xml_int(doc, xml, "rail", -1, INT32_MAX, -1, &rail));
	TTI_TRY(tti_xml_int(doc, xml, "plane", -1, INT32_MAX, -1, &plane));
	TTI_TRY(tti_xml_int(doc, xml, "maxconn", 0, INT32_MAX, 0, &maxconn));
	TTI_TRY(tti_xml_int(doc, xml, "gdr", 0, UINT8_MAX, 0, &gdr));
	TTI_TRY(tti_xml_int(doc, xml, "coll", 0, UINT8_MAX, 0, &coll));
	TTI_TRY(tti_xml_int(doc, xml, "speed", -1, INT32_MAX, -1, &net->speed_mbps));
	TTI_TRY(tti_xml_hex(doc, xml, "guid", UINT64_MAX, 0, &net->guid));
	TTI_TRY(tti_xml_real(doc, xml, "latency", 1e9, 0, &latency_us));
	net->dev = (int)dev;
	net->port = (int)port;
	net->rail = (int)rail;
	net->plane = (int)plane;
	net->maxconn = (int)maxconn;
	net->gdr = gdr > 0;
	net->coll = coll > 0;
	net->latency_ns = latency_us > 0 ? latency_us * 1e3 : TTI_NET_NS;
	return TUTTI_OK;
}

/* A number that the ports of one card share: the GUID, else the address of the card, else one
 * of their own. */
static uint64_t asic_of(const struct tti_build *build, uint32_t nic, const struct tti_net_info *net)
{
	const struct tti_node *node = &build->nodes.at[nic];

	if (net->guid)
		return net->guid;
	return tti_hash_combine(tti_hash_mix(node->host + UINT64_C(1)),
				node->pci.busid != TTI_BUSID_NONE ? TTI_BUSID_CARD(node->pci.busid)
								  : UINT64_MAX - nic);
}

/* The first <net> from `net` on that is a port. One with net="0" is another service of the
 * same NIC, with numbers of its own. */
static const struct tti_xml *only_net(const struct tti_xml *net)
{
	while (net) {
		const char *is_net = tti_xml_get(net, "net");

		if (!is_net || strcmp(is_net, "0") != 0)
			break;
		net = tti_xml_next(net, "net");
	}
	return net;
}

/* Names that programs give to interfaces which are no hardware: of containers and virtual
 * machines (veth, docker, br-, cni, lxc, lxd, podman, cali, cilium, flannel, antrea, weave,
 * virbr, vnet, vmnet, vboxnet, kube-), tunnels (tun, tap, tunl, ipip, sit, gre, ip6, vxlan,
 * geneve, wg, tailscale), and what leads nowhere. A br0 or a bond may be what an owner made
 * of a NIC. */
static bool is_virtual_name(const char *name)
{
	static const char *const prefixes[] = {
		"veth",  "docker",  "br-",          "cni",    "lxc",    "lxd",   "podman",
		"cali",  "cilium",  "flannel",      "antrea", "weave",  "virbr", "vnet",
		"vmnet", "vboxnet", "kube-",        "tun",    "tap",    "ipip",  "sit",
		"gre",   "ip6tnl",  "ip6gre",       "vxlan",  "geneve", "wg",    "tailscale",
		"dummy", "ifb",     "nodelocaldns",
	};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return strcmp(name, "lo") == 0;
}

static tutti_status add_net(struct tti_build *build, const struct tti_xml *xml, uint32_t nic)
{
	const char *name = tti_xml_get(xml, "name");
	const uint32_t host = build->nodes.at[nic].host;
	struct tti_net_info net = { 0 };
	double mbps = TTI_NET_MBPS;
	uint32_t node;

	TTI_TRY(read_net(build, xml, &net));
	net.asic = asic_of(build, nic, &net);
	net.is_virtual = name && is_virtual_name(name);
	if (name && *name)
		TTI_TRY(tti_build_node(build, TTI_NODE_NET, xml, host, &node, "%s", name));
	else
		TTI_TRY(tti_build_node(build, TTI_NODE_NET, xml, host, &node, "NET%d",
				       net.dev < 0 ? 0 : net.dev));
	build->nodes.at[node].net = net;
	build->nodes.at[node].parent = nic;
	if (net.speed_mbps > 0)
		mbps = (double)net.speed_mbps;
	else
		TTI_TRY(tti_build_note(build, TTI_NOTE_ASSUMED_NET, node, TTI_NODE_NONE, xml,
				       "its speed is %s: 10 Gb/s assumed",
				       tti_xml_get(xml, "speed") ? "not known" : "not stated"));
	return tti_build_link(build, (struct tti_half){ .from = nic,
							.to = node,
							.type = TTI_LINK_NET,
							.count = 1,
							.bw_gbps = mbps / 8000,
							.latency_ns = net.latency_ns });
}

/* The nets of a <pci>, of all its <nic>. */
static tutti_status add_nets(struct tti_build *build, const struct tti_xml *pci, uint32_t node)
{
	const struct tti_xml *nic = tti_xml_find(pci, "nic", NULL, NULL);

	for (; nic; nic = tti_xml_next(nic, "nic")) {
		const struct tti_xml *net = only_net(tti_xml_find(nic, "net", NULL, NULL));

		for (; net; net = only_net(tti_xml_next(net, "net")))
			TTI_TRY(add_net(build, net, node));
	}
	return TUTTI_OK;
}

/* Functions of one card at one place are one NIC: they share its link. */
static tutti_status add_nic(struct tti_build *build, const struct tti_xml *xml,
			    const struct tti_pci_info *pci, uint32_t parent)
{
	const uint64_t card = TTI_BUSID_CARD(pci->busid);
	uint32_t node = tti_map_get(&build->cards, parent, card);

	if (node == TTI_MAP_NONE) {
		TTI_TRY(add_pci_node(build, TTI_NODE_NIC, xml, pci, parent, &node));
		if (tti_xml_find(xml, "nic", NULL, NULL))
			TTI_TRY(note_assumed(build, xml, node, pci));
		if (!tti_map_put(&build->cards, parent, card, node))
			return tti_build_no_memory(build);
	}
	return add_nets(build, xml, node);
}

/* NCCL writes a net that has no PCI function below every <cpu>. All of these are one net,
 * below the first <cpu> in the order of NUMA ids. */
static tutti_status is_new_virtual(struct tti_build *build, const struct tti_xml *net,
				   uint32_t host, bool *out)
{
	const char *name = tti_xml_get(net, "name");
	const size_t before = build->virtuals.entries.n;
	struct tti_strbuf key = { 0 };
	int64_t dev, port;

	TTI_TRY(tti_xml_int(build->doc, net, "dev", -1, INT32_MAX, -1, &dev));
	TTI_TRY(tti_xml_int(build->doc, net, "port", 0, INT32_MAX, -1, &port));
	tti_strbuf_addf(&key, "%u %d %d %s", host, (int)dev, (int)port, name ? name : "");
	const bool good =
		!key.failed && tti_intern(&build->virtuals, key.text, key.len) != TTI_INTERN_NONE;
	tti_strbuf_release(&key);
	*out = build->virtuals.entries.n > before;
	return good ? TUTTI_OK : tti_build_no_memory(build);
}

/* NICs that are not on PCI: each net is one, at memory speed. */
static tutti_status add_virtual_nics(struct tti_build *build, const struct tti_made *cpu)
{
	const uint32_t host = build->nodes.at[cpu->node].host;
	const struct tti_xml *nic = tti_xml_find(cpu->xml, "nic", NULL, NULL);

	for (; nic; nic = tti_xml_next(nic, "nic")) {
		const struct tti_xml *net = only_net(tti_xml_find(nic, "net", NULL, NULL));

		for (; net; net = only_net(tti_xml_next(net, "net"))) {
			const char *name = tti_xml_get(net, "name");
			uint32_t node;
			bool is_new;

			TTI_TRY(is_new_virtual(build, net, host, &is_new));
			if (!is_new)
				continue;
			TTI_TRY(tti_build_node(build, TTI_NODE_NIC, nic, host, &node, "%s",
					       name && *name ? name : "NIC"));
			TTI_TRY(hang(build, node, cpu->node, TTI_LOC_GBPS));
			TTI_TRY(add_net(build, net, node));
		}
	}
	return TUTTI_OK;
}

/* -- The tree -------------------------------------------------------------------------- */

static tutti_status add_below(struct tti_build *build, const struct tti_xml *xml, uint32_t parent);

/* Broadcom's PEX 88000 (gen 4) and 89000 (gen 5) show one chip as a switch with switches below
 * it, whose uplinks do not exist. Ids and levels are as in NCCL 2.30. */
static int chip_of(const struct tti_pci_info *pci, uint16_t level)
{
	const uint16_t part = pci->subsystem_device & 0xf000;

	if (pci->vendor != 0x1000 || pci->subsystem_vendor != 0x1000)
		return 0;
	if (pci->device == 0xc010 && part == 0xa000)
		return 4;
	return pci->device == 0xc030 && part == level << 12 ? 5 : 0;
}

/* Whether a switch is a part of the chip above it. */
static bool is_part_of(const struct tti_build *build, const struct tti_xml *xml,
		       const struct tti_pci_info *pci, uint32_t parent)
{
	const struct tti_node *above = &build->nodes.at[parent];
	const char *busid = tti_xml_get(xml->parent, "busid");
	uint64_t number;

	/* Not if the parent in the document is such a part itself. */
	return above->type == TTI_NODE_PCI && busid && tti_busid_parse(busid, &number) &&
	       number == above->pci.busid && chip_of(&above->pci, 0) != 0 &&
	       chip_of(&above->pci, 0) == chip_of(pci, 1);
}

/* A switch, or any other function, which carries no traffic. */
static tutti_status add_switch(struct tti_build *build, const struct tti_xml *xml,
			       const struct tti_pci_info *pci, uint32_t parent, uint32_t *out)
{
	struct tti_made link = { .xml = tti_xml_find(xml, "pcilink", NULL, NULL) };
	const bool carries = tti_xml_find(xml, "pci", NULL, NULL) != NULL;

	if (carries && is_part_of(build, xml, pci, parent)) {
		*out = parent;
		if (!tti_map_put(&build->by_busid, build->nodes.at[parent].host,
				 TTI_BUILD_KEY(TTI_NODE_PCI, pci->busid), parent))
			return tti_build_no_memory(build);
	} else {
		TTI_TRY(add_pci_node(build, TTI_NODE_PCI, xml, pci, parent, out));
		if (carries)
			TTI_TRY(note_assumed(build, xml, *out, pci));
	}
	for (; link.xml; link.xml = tti_xml_next(link.xml, "pcilink")) {
		link.node = *out;
		if (!tti_vec_push(&build->links, link))
			return tti_build_no_memory(build);
	}
	return add_below(build, xml, *out);
}

/* Modelled machines use a bus id several times. Each function is a device of its own, and
 * links to the id lead to the first, that of `line`. Functions that were joined to a card have
 * no node. */
static tutti_status note_twice(struct tti_build *build, const struct tti_xml *xml, uint32_t line,
			       uint32_t node)
{
	if (line == TTI_MAP_NONE || node == build->nodes.n)
		return TUTTI_OK;
	return tti_build_note(build, TTI_NOTE_BUSID_TWICE, node, TTI_NODE_NONE, xml,
			      "it has the bus id of the <pci> of line %u", line);
}

/* <gpu> and <nic> say what a function is, else its class and its children do. A function that
 * is a device and has other functions below it is a switch, with the device below it. */
static tutti_status add_function(struct tti_build *build, const struct tti_xml *xml,
				 uint32_t parent)
{
	const bool gpu = tti_xml_find(xml, "gpu", NULL, NULL) != NULL;
	const bool nic = tti_xml_find(xml, "nic", NULL, NULL) != NULL;
	const bool carries = tti_xml_find(xml, "pci", NULL, NULL) != NULL;
	const uint32_t host = build->nodes.at[parent].host, made = (uint32_t)build->nodes.n;
	struct tti_pci_info pci = { 0 };

	TTI_TRY(read_pci(build, xml, &pci));
	const uint32_t first = tti_map_get(&build->functions, host, pci.busid);

	if (!tti_map_put(&build->functions, host, pci.busid, xml->line))
		return tti_build_no_memory(build);
	if (carries || (!gpu && !nic && !computes(&pci) && !is_nic(&pci)))
		TTI_TRY(add_switch(build, xml, &pci, parent, &parent));
	if (gpu || (!nic && !carries && computes(&pci)))
		TTI_TRY(add_dev(build, xml, &pci, parent));
	if (nic || (!gpu && !carries && is_nic(&pci)))
		TTI_TRY(add_nic(build, xml, &pci, parent));
	return note_twice(build, xml, first, made);
}

/* Recursive, as deep as the document: its reader bounds that (TTI_XML_DEPTH). */
static tutti_status add_below(struct tti_build *build, const struct tti_xml *xml, uint32_t parent)
{
	const struct tti_xml *pci = tti_xml_find(xml, "pci", NULL, NULL);

	for (; pci; pci = tti_xml_next(pci, "pci"))
		TTI_TRY(add_function(build, pci, parent));
	return TUTTI_OK;
}

tutti_status tti_build_pci(struct tti_build *build, const struct tti_made *cpu)
{
	TTI_TRY(add_below(build, cpu->xml, cpu->node));
	return add_virtual_nics(build, cpu);
}
