/* SPDX-License-Identifier: BSD-3-Clause */
/* The contents of the boxes of a picture. */
#include "insight/print/print_dot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "insight/print/print_words.h"
#include "insight/write/dot.h"
#include "topo/graph/words.h"

static const struct tti_node *node_at(const struct tti_picture *picture, uint32_t index)
{
	return &picture->graph->nodes[index];
}

static void add_place(const struct tti_node *node, struct tti_strbuf *out)
{
	char words[TTI_WORDS_MAX], busid[TTI_BUSID_TEXT];

	tti_words_pci(&node->pci, words);
	if (strcmp(words, tti_words_class(node->pci.class_code)) != 0)
		tti_dot_line(out, NULL, words);
	if (node->pci.busid != TTI_BUSID_NONE)
		tti_dot_line(out, NULL, tti_busid_format(node->pci.busid, busid));
}

static void label_cpu(const struct tti_node *node, struct tti_strbuf *out)
{
	struct tti_strbuf cpus = { 0 };
	char text[TTI_WORDS_MAX] = "CPUs";

	if (node->cpu.numaid >= 0)
		snprintf(text, sizeof(text), "NUMA %" PRId64, node->cpu.numaid);
	tti_dot_line(out, text, NULL);
	tti_words_cpus(node->cpu.affinity, &cpus);
	if (cpus.text) {
		snprintf(text, sizeof(text), "cpus %.40s", cpus.text);
		tti_dot_line(out, NULL, text);
	}
	if (node->cpu.mem_gbps > 0) {
		snprintf(text, sizeof(text), "memory %.0f GB/s", node->cpu.mem_gbps);
		tti_dot_line(out, NULL, text);
	}
	tti_strbuf_release(&cpus);
}

/* "6 NVLinks, 120 GB/s" */
static void add_nvlinks(const struct tti_picture *picture, uint32_t device)
{
	const struct tti_node *node = node_at(picture, device);
	char gbps[TTI_WORDS_MAX], text[2 * TTI_WORDS_MAX];
	uint32_t count = 0;
	double sum = 0;

	for (uint32_t i = 0; i < node->nlinks; i++) {
		const struct tti_topo_link *link = &picture->graph->links[node->first_link + i];

		count += link->type == TTI_LINK_NVL ? link->count : 0;
		sum += link->type == TTI_LINK_NVL ? (double)link->bw_gbps : 0;
	}
	if (!count)
		return;
	tti_words_gbps(sum, gbps);
	snprintf(text, sizeof(text), "%u %s%s, %s GB/s", count,
		 node->gpu.gcn ? "xGMI link" : "NVLink", count == 1 ? "" : "s", gbps);
	tti_dot_line(picture->out, NULL, text);
}

static void label_device(const struct tti_picture *picture, uint32_t device)
{
	const struct tti_node *node = node_at(picture, device);
	uint32_t part = picture->places[device].first;
	char text[TTI_WORDS_MAX];

	if (part == TTI_NODE_NONE)
		tti_dot_line(picture->out, "device", NULL);
	for (; part != TTI_NODE_NONE; part = picture->places[part].sibling)
		tti_dot_line(picture->out, node_at(picture, part)->name, NULL);
	if (node->gpu.sm) {
		snprintf(text, sizeof(text), "sm %d", node->gpu.sm);
		tti_dot_line(picture->out, NULL, text);
	}
	add_place(node, picture->out);
	if (picture->mesh)
		add_nvlinks(picture, device);
}

/* A line for each port of each NIC. */
static void label_nic(const struct tti_picture *picture, uint32_t nic)
{
	char words[TTI_WORDS_MAX], busid[TTI_BUSID_TEXT];
	const struct tti_node *node = node_at(picture, nic);

	for (uint32_t i = nic; i != TTI_NODE_NONE; i = picture->places[i].next)
		for (uint32_t port = picture->places[i].first; port != TTI_NODE_NONE;
		     port = picture->places[port].sibling) {
			tti_words_net_speed(node_at(picture, port)->net.speed_mbps, words);
			tti_dot_line(picture->out, node_at(picture, port)->name, words);
		}
	if (node->pci.busid == TTI_BUSID_NONE)
		return;
	tti_words_pci(&node->pci, words);
	tti_dot_line(picture->out, NULL, words);
	if (picture->places[nic].count == 1)
		tti_dot_line(picture->out, NULL, tti_busid_format(node->pci.busid, busid));
}

static void label_of(const struct tti_picture *picture, uint32_t index)
{
	const struct tti_node *node = node_at(picture, index);
	char text[TTI_WORDS_MAX];

	switch (node->type) {
	case TTI_NODE_CPU:
		label_cpu(node, picture->out);
		break;
	case TTI_NODE_DEV:
		label_device(picture, index);
		break;
	case TTI_NODE_NIC:
		label_nic(picture, index);
		break;
	case TTI_NODE_NVS:
		tti_dot_line(picture->out, "NVSwitch", NULL);
		break;
	case TTI_NODE_PKG:
		snprintf(text, sizeof(text), "socket %.20s",
			 node->name + strcspn(node->name, "0123456789"));
		tti_dot_line(picture->out, text, NULL);
		break;
	case TTI_NODE_PCI:
		tti_dot_line(picture->out, tti_print_function(node->pci.class_code), NULL);
		add_place(node, picture->out);
		break;
	case TTI_NODE_GPU:
	case TTI_NODE_HOST:
	case TTI_NODE_NET:
	default:
		tti_dot_line(picture->out, node->name, NULL);
	}
}

static const char *fill_of(enum tti_node_type type)
{
	switch (type) {
	case TTI_NODE_DEV:
	case TTI_NODE_GPU:
		return TTI_DOT_GPU;
	case TTI_NODE_NVS:
		return TTI_DOT_NVS;
	case TTI_NODE_NIC:
	case TTI_NODE_NET:
		return TTI_DOT_NIC;
	case TTI_NODE_CPU:
	case TTI_NODE_PKG:
	case TTI_NODE_HOST:
		return TTI_DOT_CPU;
	case TTI_NODE_PCI:
	default:
		return TTI_DOT_PCI;
	}
}

/* Whether a finding is on what a box shows. */
static bool is_on_box(const struct tti_picture *picture, const struct tti_finding *finding,
		      uint32_t box)
{
	return tti_finding_costs(finding) && finding->node != TTI_NODE_NONE &&
	       picture->places[finding->node].box == box;
}

/* The rules that found something on what a box shows, once each. */
static void add_rules(const struct tti_picture *picture, uint32_t box)
{
	const struct tti_lint *lint = picture->lint;

	for (size_t i = 0; lint && i < lint->n; i++) {
		bool said = !is_on_box(picture, &lint->at[i], box);

		for (size_t k = 0; k < i; k++)
			said |= is_on_box(picture, &lint->at[k], box) &&
				!strcmp(lint->at[k].rule, lint->at[i].rule);
		if (said)
			continue;
		tti_strbuf_add(picture->out,
			       "<tr><td><font point-size=\"9\" color=\"" TTI_DOT_MARK "\"><b>! ");
		tti_dot_text(picture->out, lint->at[i].rule);
		tti_strbuf_add(picture->out, "</b></font></td></tr>");
	}
}

void tti_picture_add_box(const struct tti_picture *picture, uint32_t index)
{
	bool marked = false;

	for (size_t i = 0; picture->lint && i < picture->lint->n; i++)
		marked |= is_on_box(picture, &picture->lint->at[i], index);
	tti_dot_box(picture->out, fill_of(node_at(picture, index)->type), marked, "n%u", index);
	label_of(picture, index);
	add_rules(picture, index);
	tti_dot_box_end(picture->out);
}
