/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/diff_tree.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "topo/graph/words.h"

TUTTI_PRINTF(3, 4)
static void say(struct tti_diff_facts *facts, const char *what, const char *fmt, ...)
{
	struct tti_diff_fact *fact = &facts->fact[facts->n++];
	char text[256];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	fact->what = what;
	fact->at = facts->text.len;
	tti_words_text(text, &facts->text);
	fact->len = facts->text.len - fact->at;
}

static void say_number(struct tti_diff_facts *facts, const char *what, int number)
{
	if (number < 0)
		say(facts, what, "not stated");
	else
		say(facts, what, "%d", number);
}

static const char *yes_no(bool yes)
{
	return yes ? "yes" : "no";
}

/* The link to the parent: as the document states it, and the bandwidth that counts. */
static void say_link(const struct tti_graph *graph, uint32_t v, struct tti_diff_facts *facts)
{
	const struct tti_node *node = &graph->nodes[v];
	const struct tti_topo_link *link = tti_graph_link(graph, v, node->parent, TTI_LINK_PCI);
	char stated[TTI_WORDS_MAX], out[TTI_WORDS_MAX] = "no", in[TTI_WORDS_MAX] = "no";

	tti_words_pci_link(&node->pci, stated);
	if (link) {
		tti_words_gbps((double)link->bw_gbps, out);
		tti_words_gbps((double)graph->links[link->reverse].bw_gbps, in);
	}
	if (!link || link->bw_gbps == graph->links[link->reverse].bw_gbps)
		say(facts, "link", "%s%s%s GB/s", stated, stated[0] ? ", " : "", out);
	else
		say(facts, "link", "%s%s%s GB/s up, %s down", stated, stated[0] ? ", " : "", out,
		    in);
}

static void say_device(const struct tti_graph *graph, uint32_t v, struct tti_diff_facts *facts)
{
	const struct tti_pci_info *pci = &graph->nodes[v].pci;
	char name[TTI_WORDS_MAX];

	tti_words_pci(pci, name);
	say(facts, "device", "%s (%04x:%04x, class %06" PRIx32 ")", name, pci->vendor, pci->device,
	    pci->class_code);
	say(facts, "subsystem", "%04x:%04x", pci->subsystem_vendor, pci->subsystem_device);
	say_link(graph, v, facts);
}

static void say_cpu(const struct tti_cpu_info *cpu, struct tti_diff_facts *facts)
{
	const struct tti_cpu_model model = tti_graph_cpu_model(cpu);
	struct tti_diff_fact *fact;

	say(facts, "model", "%s (%s %s, family %d, model %d)", model.name, cpu->arch, cpu->vendor,
	    cpu->family, cpu->model);
	say(facts, "socket", "%d%s", cpu->package, cpu->package_assumed ? " (assumed)" : "");
	say(facts, "NUMA", "%s", cpu->numaid < 0 ? "not known" : "known");
	fact = &facts->fact[facts->n++];
	*fact = (struct tti_diff_fact){ .what = "cores", .at = facts->text.len };
	tti_words_cpus(cpu->affinity, &facts->text);
	fact->len = facts->text.len - fact->at;
}

static void say_gpu(const struct tti_gpu_info *gpu, struct tti_diff_facts *facts)
{
	say(facts, "driver", "%s", yes_no(!gpu->bare));
	if (gpu->gcn)
		say(facts, "architecture", "%s", gpu->gcn);
	else
		say(facts, "architecture", "sm%d", gpu->sm);
	say(facts, "GPUDirect RDMA", "%s", yes_no(gpu->gdr));
}

static void say_net(const struct tti_net_info *net, struct tti_diff_facts *facts)
{
	char speed[TTI_WORDS_MAX];

	tti_words_net_speed(net->speed_mbps, speed);
	say(facts, "speed", "%s", speed);
	say_number(facts, "port", net->port);
	say_number(facts, "rail", net->rail);
	say_number(facts, "plane", net->plane);
	say(facts, "GPUDirect RDMA", "%s", yes_no(net->gdr));
	say(facts, "collectives in the network", "%s", yes_no(net->coll));
	say(facts, "latency", "%.0f ns", net->latency_ns);
	say(facts, "connections", "%d", net->maxconn);
}

void tti_diff_facts_of(const struct tti_graph *graph, uint32_t v, struct tti_diff_facts *out)
{
	const struct tti_node *node = &graph->nodes[v];

	out->n = 0;
	out->text.len = 0;
	tti_strbuf_add(&out->text, "");
	switch (node->type) {
	case TTI_NODE_CPU:
		say_cpu(&node->cpu, out);
		break;
	case TTI_NODE_DEV:
	case TTI_NODE_PCI:
	case TTI_NODE_NIC:
		say_device(graph, v, out);
		break;
	case TTI_NODE_GPU:
		say_gpu(&node->gpu, out);
		break;
	case TTI_NODE_NET:
		say_net(&node->net, out);
		break;
	case TTI_NODE_HOST:
	case TTI_NODE_NVS:
	case TTI_NODE_PKG:
		break;
	}
}
