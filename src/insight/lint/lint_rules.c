/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/lint/lint_rules.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
	const struct tti_lint_rule *rule = linter->rule;
	const bool is_amd = node != TTI_NODE_NONE && tti_graph_is_amd(linter->graph, node);

	return is_amd && rule->amd_remedy ? rule->amd_remedy : rule->remedy;
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

bool tti_lint_has_tables(const struct tti_linter *linter)
{
	return linter->paths->at && linter->routes->at;
}

void tti_lint_each_device(struct tti_linter *linter,
			  void (*fn)(struct tti_linter *linter, uint32_t device))
{
	TTI_LINT_EACH (dev, linter->graph, TTI_NODE_DEV)
		fn(linter, dev);
	TTI_LINT_EACH (pci, linter->graph, TTI_NODE_PCI)
		fn(linter, pci);
	TTI_LINT_EACH (nic, linter->graph, TTI_NODE_NIC)
		fn(linter, nic);
}

void tti_lint_each_note(struct tti_linter *linter, enum tti_note_kind kind,
			void (*fn)(struct tti_linter *linter, const struct tti_note *note))
{
	for (uint32_t i = 0; i < linter->graph->nnotes; i++)
		if (linter->graph->notes[i].kind == kind)
			fn(linter, &linter->graph->notes[i]);
}
