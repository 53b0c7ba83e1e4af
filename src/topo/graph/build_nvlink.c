/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/build.h"

#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/hash.h"

#define CLASS_NVSWITCH   0x068000
#define CLASS_CPU_BRIDGE 0x068001

/* The GPU whose links are read. */
struct stated {
	struct tti_build *build;
	uint32_t dev;
	uint32_t nvs; /* the switch it is linked to, once it is known */
};

/* -- Where a link leads ------------------------------------------------------------------ */

static uint32_t find_target(const struct tti_build *build, uint32_t host, enum tti_node_type type,
			    const struct tti_xml *xml)
{
	const char *target = tti_xml_get(xml, "target");
	uint64_t busid;

	if (!target || !tti_busid_parse(target, &busid))
		return TTI_NODE_NONE;
	return tti_map_get(&build->by_busid, host, TTI_BUILD_KEY(type, busid));
}

/* All NVSwitches of a domain are one NVS, since they are one network. `tutti_fabric` of the
 * GPUs names the domain. Without it the whole document is one domain: only an NVLink domain is
 * one document of several hosts. */
static tutti_status find_switch(struct stated *stated, const struct tti_xml *gpu, uint32_t *out)
{
	struct tti_build *build = stated->build;
	const char *fabric = tti_xml_get(gpu, "tutti_fabric");
	uint64_t key = 0;

	*out = stated->nvs;
	if (*out != TTI_NODE_NONE)
		return TUTTI_OK;
	if (fabric && *fabric)
		key = tti_hash_bytes(fabric, strlen(fabric)) | 1;
	*out = tti_map_get(&build->fabrics, key, 0);
	if (*out == TTI_MAP_NONE) {
		TTI_TRY(tti_build_node(build, TTI_NODE_NVS, NULL, build->nodes.at[stated->dev].host,
				       out, "NVS%zu", build->fabrics.n));
		if (!tti_map_put(&build->fabrics, key, 0, *out))
			return tti_build_no_memory(build);
	}
	stated->nvs = *out;
	return TUTTI_OK;
}

static tutti_status find_end(struct stated *stated, const struct tti_xml *gpu,
			     const struct tti_xml *link, uint32_t *out)
{
	const struct tti_build *build = stated->build;
	const uint32_t host = build->nodes.at[stated->dev].host;
	uint32_t bridge;
	uint64_t class_code;

	TTI_TRY(tti_xml_hex(build->doc, link, "tclass", 0xffffff, 0, &class_code));
	*out = find_target(build, host, TTI_NODE_DEV, link);
	if (*out != TTI_NODE_NONE)
		return TUTTI_OK;
	bridge = find_target(build, host, TTI_NODE_PCI, link);
	if (bridge != TTI_NODE_NONE && !class_code)
		class_code = build->nodes.at[bridge].pci.class_code;
	if (class_code == CLASS_NVSWITCH)
		return find_switch(stated, gpu, out);
	if (class_code != CLASS_CPU_BRIDGE)
		return TUTTI_OK;
	for (*out = stated->dev; build->nodes.at[*out].type != TTI_NODE_CPU;)
		*out = build->nodes.at[*out].parent;
	return TUTTI_OK;
}

/* -- Links of one GPU --------------------------------------------------------------------- */

static tutti_status add_nvlink(struct stated *stated, const struct tti_xml *gpu,
			       const struct tti_xml *link, double link_gbps)
{
	struct tti_build *build = stated->build;
	struct tti_half half = { .from = stated->dev, .type = TTI_LINK_NVL };
	const char *target = tti_xml_get(link, "target");
	int64_t count;

	TTI_TRY(tti_xml_int(build->doc, link, "count", 0, UINT16_MAX, 1, &count));
	if (!count)
		return tti_build_note(
			build, TTI_NOTE_ZERO_LINK, stated->dev,
			find_target(build, build->nodes.at[stated->dev].host, TTI_NODE_DEV, link),
			link, "an %s to %s of count 0 is left out", link->name,
			target ? target : "nothing");
	TTI_TRY(find_end(stated, gpu, link, &half.to));
	if (half.to == TTI_NODE_NONE || half.to == half.from)
		return tti_build_note(build, TTI_NOTE_NO_TARGET, stated->dev, TTI_NODE_NONE, link,
				      "an %s leads to %s, which is %s", link->name,
				      target ? target : "nothing",
				      half.to == half.from ? "itself" : "no GPU of this host");
	half.count = (uint32_t)count;
	half.bw_gbps = (double)count * link_gbps;
	if (build->nodes.at[half.to].type == TTI_NODE_DEV) {
		half.latency_ns = TTI_NVLINK_NS;
		return tti_build_half(build, half);
	}
	half.latency_ns =
		build->nodes.at[half.to].type == TTI_NODE_NVS ? TTI_NVSWITCH_NS : TTI_C2C_NS;
	return tti_build_link(build, half);
}

static tutti_status add_links(struct stated *stated, const struct tti_xml *gpu, const char *name,
			      double link_gbps, bool *any_out)
{
	const struct tti_xml *link = tti_xml_find(gpu, name, NULL, NULL);

	if (!link)
		return TUTTI_OK;
	*any_out = true;
	if (!(link_gbps > 0)) {
		link_gbps = TTI_NVLINK_GBPS;
		TTI_TRY(tti_build_note(
			stated->build, TTI_NOTE_ASSUMED_NVLINK, stated->dev, TTI_NODE_NONE, gpu,
			"the kind of GPU is not known: %g GB/s for each %s", link_gbps, name));
	}
	for (; link; link = tti_xml_next(link, name))
		TTI_TRY(add_nvlink(stated, gpu, link, link_gbps));
	return TUTTI_OK;
}

static tutti_status add_c2c(struct stated *stated, const struct tti_xml *gpu)
{
	struct tti_build *build = stated->build;
	const struct tti_xml *c2c = tti_xml_find(gpu, "c2c", NULL, NULL);
	struct tti_half half = {
		.from = stated->dev,
		.to = stated->dev,
		.type = TTI_LINK_C2C,
		.latency_ns = TTI_C2C_NS,
	};

	while (build->nodes.at[half.to].type != TTI_NODE_CPU)
		half.to = build->nodes.at[half.to].parent;
	for (; c2c; c2c = tti_xml_next(c2c, "c2c")) {
		int64_t count;
		double bw;

		TTI_TRY(tti_xml_int(build->doc, c2c, "count", 0, UINT16_MAX, 1, &count));
		TTI_TRY(tti_xml_real(build->doc, c2c, "bw", 1e9, 0, &bw));
		half.count = (uint32_t)count;
		half.bw_gbps = bw * (double)count / 1000;
		if (half.bw_gbps >= TTI_BUILD_LEAST_GBPS)
			TTI_TRY(tti_build_link(build, half));
		else
			TTI_TRY(tti_build_note(build, TTI_NOTE_ZERO_LINK, stated->dev, half.to, c2c,
					       "a C2C link of 0 GB/s is left out"));
	}
	return TUTTI_OK;
}

/* Several <gpu> of one device are parts of it that state the same links. Only the links of the
 * first part that states any count. */
static tutti_status add_gpu(struct tti_build *build, const struct tti_made *made)
{
	const struct tti_gpu_info *info = &build->nodes.at[made->node].gpu;
	struct stated stated = { .build = build, .dev = made->node, .nvs = TTI_NODE_NONE };
	const double nvlink_gbps = tti_model_nvlink_gbps(info->sm);
	double xgmi_gbps = tti_model_xgmi_gbps(info->gcn);
	const struct tti_xml *gpu = made->xml;
	bool any = false;

	if (!(xgmi_gbps > 0))
		xgmi_gbps = nvlink_gbps;
	for (; gpu && !any; gpu = tti_xml_next(gpu, "gpu")) {
		any = tti_xml_find(gpu, "c2c", NULL, NULL) != NULL;
		TTI_TRY(add_links(&stated, gpu, "nvlink", nvlink_gbps, &any));
		TTI_TRY(add_links(&stated, gpu, "xgmi", xgmi_gbps, &any));
		TTI_TRY(add_c2c(&stated, gpu));
	}
	return TUTTI_OK;
}

/* -- Both ends ------------------------------------------------------------------------------ */

static bool between_gpus(const struct tti_build *build, const struct tti_half *half)
{
	return half->type == TTI_LINK_NVL && build->nodes.at[half->from].type == TTI_NODE_DEV &&
	       build->nodes.at[half->to].type == TTI_NODE_DEV;
}

/* Join several links between two GPUs to one. */
static size_t sum_up(struct tti_half *at, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept && at[kept - 1].from == at[i].from && at[kept - 1].to == at[i].to) {
			at[kept - 1].count += at[i].count;
			at[kept - 1].bw_gbps += at[i].bw_gbps;
		} else {
			at[kept++] = at[i];
		}
	}
	return kept;
}

static const struct tti_half *find_back(const struct tti_half *at, size_t n,
					const struct tti_half *half)
{
	size_t low = 0, high = n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;

		if (at[middle].from < half->to ||
		    (at[middle].from == half->to && at[middle].to < half->from))
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && at[low].from == half->to && at[low].to == half->from ? &at[low] : NULL;
}

/* An NVLink that is up is up at both ends. So a link that only one end states counts for both
 * ends. If the ends state different counts, each direction keeps its own. Both cases are
 * noted. */
static tutti_status match_ends(struct tti_build *build, size_t first)
{
	const size_t n = build->halves.n - first;

	for (size_t i = 0; i < n; i++) {
		const struct tti_half half = build->halves.at[first + i];
		const struct tti_half *back = find_back(&build->halves.at[first], n, &half);
		struct tti_half added = half;

		if (back && back->count != half.count && half.from < half.to)
			TTI_TRY(tti_build_note(build, TTI_NOTE_UNEVEN, half.from, half.to, NULL,
					       "%u NVLinks to %s, which states %u back", half.count,
					       build->nodes.at[half.to].name, back->count));
		if (back)
			continue;
		TTI_TRY(tti_build_note(build, TTI_NOTE_ONE_WAY, half.from, half.to, NULL,
				       "%u NVLinks to %s, which states none back: "
				       "assumed both ways",
				       half.count, build->nodes.at[half.to].name));
		added.from = half.to;
		added.to = half.from;
		TTI_TRY(tti_build_half(build, added));
	}
	return TUTTI_OK;
}

tutti_status tti_build_nvlinks(struct tti_build *build)
{
	size_t first = build->halves.n;
	size_t n = 0;

	for (size_t i = 0; i < build->gpus.n; i++)
		TTI_TRY(add_gpu(build, &build->gpus.at[i]));
	/* Move links that both ends can state to the end of the list. */
	for (size_t i = first; i < build->halves.n; i++) {
		const struct tti_half half = build->halves.at[i];

		if (between_gpus(build, &half))
			continue;
		build->halves.at[i] = build->halves.at[first + n];
		build->halves.at[first + n++] = half;
	}
	first += n;
	if (build->halves.n == first)
		return TUTTI_OK;
	qsort(&build->halves.at[first], build->halves.n - first, sizeof(*build->halves.at),
	      tti_build_by_ends);
	build->halves.n = first + sum_up(&build->halves.at[first], build->halves.n - first);
	return match_ends(build, first);
}

/* -- Between switches ----------------------------------------------------------------------- */

/* A link between two PCI switches is assumed to be as wide as the narrower of their uplinks. */
tutti_status tti_build_pcilinks(struct tti_build *build)
{
	for (size_t i = 0; i < build->links.n; i++) {
		const struct tti_made *link = &build->links.at[i];
		const struct tti_node *from = &build->nodes.at[link->node];
		const uint32_t to = find_target(build, from->host, TTI_NODE_PCI, link->xml);
		const char *target = tti_xml_get(link->xml, "target");
		double there, here = tti_model_pci_gbps(from->pci.gts, from->pci.width);

		if (to == TTI_NODE_NONE || to == link->node) {
			TTI_TRY(tti_build_note(
				build, TTI_NOTE_NO_TARGET, link->node, TTI_NODE_NONE, link->xml,
				"a pcilink leads to %s, which is no other PCI switch",
				target ? target : "nothing"));
			continue;
		}
		there = tti_model_pci_gbps(build->nodes.at[to].pci.gts,
					   build->nodes.at[to].pci.width);
		TTI_TRY(tti_build_link(build, (struct tti_half){
						      .from = link->node,
						      .to = to,
						      .type = TTI_LINK_PCI,
						      .count = 1,
						      .bw_gbps = here < there ? here : there,
						      .latency_ns = TTI_PCI_SWITCH_NS,
					      }));
	}
	return TUTTI_OK;
}
