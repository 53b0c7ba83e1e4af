/* SPDX-License-Identifier: BSD-3-Clause */
/* Figures that no device can have. The planner uses them nevertheless, as only the owner of the
 * machine knows the right ones. */
#include "insight/lint/lint.h"
#include "insight/lint/lint_rules.h"

#include <string.h>

static void check_net(struct tti_linter *linter, uint32_t net)
{
	const struct tti_node *node = &linter->graph->nodes[net];
	const double gbit = (double)node->net.speed_mbps / 1000;
	const double pci = tti_lint_uplink(linter, node->parent);
	double gbps = tti_lint_uplink(linter, net);
	struct tti_finding finding = { 0 };

	if (node->net.speed_mbps <= TTI_LINT_MOST_MBPS)
		return;
	gbps = pci > 0 && pci < gbps ? pci : gbps;
	finding.what = tti_lint_say(linter,
				    "a speed of %g Gb/s, which no port has; in kb/s in place of "
				    "Mb/s it is %g Gb/s",
				    gbit, gbit / 1000);
	finding.consequence = tti_lint_say(linter, "%s: planned with %.1f GB/s", node->name, gbps);
	tti_lint_add(linter, net, &finding);
}

static void check_nvlinks(struct tti_linter *linter, uint32_t dev)
{
	const struct tti_graph *graph = linter->graph;
	const struct tti_node *node = &graph->nodes[dev];
	struct tti_finding finding = { 0 };
	uint32_t count = 0;
	double gbps = 0;

	for (uint32_t i = 0; i < node->nlinks; i++) {
		const struct tti_topo_link *link = &graph->links[node->first_link + i];

		if (link->type != TTI_LINK_NVL)
			continue;
		count += link->count;
		gbps += (double)link->bw_gbps;
	}
	if (count <= TTI_LINT_MOST_NVLINKS)
		return;
	finding.what = tti_lint_say(linter, "%u NVLinks, where no GPU has more than %d", count,
				    TTI_LINT_MOST_NVLINKS);
	finding.consequence = tti_lint_say(linter, "%s: planned with %.1f GB/s over NVLink",
					   tti_lint_user(linter, dev), gbps);
	tti_lint_add(linter, dev, &finding);
}

const char *tti_lint_odd_speed(const struct tti_linter *linter, uint32_t node)
{
	const char *speed = tti_lint_attr(linter, node, "link_speed");

	/* For a link that is down the kernel says "Unknown" or "Unknown speed". */
	if (!speed || !*speed || linter->graph->nodes[node].pci.gts > 0 ||
	    strncasecmp(speed, "unknown", strlen("unknown")) == 0)
		return NULL;
	return speed;
}

static void check_pci(struct tti_linter *linter, uint32_t at)
{
	const struct tti_node *node = &linter->graph->nodes[at];
	const char *odd = tti_lint_odd_speed(linter, at);
	struct tti_finding finding = { 0 };

	if (!odd && node->pci.width <= TTI_LINT_MOST_LANES && node->pci.gts <= TTI_LINT_MOST_GTS)
		return;
	if (odd)
		finding.what = tti_lint_say(linter,
					    "link_speed=\"%.32s\" is no speed, as \"16.0 GT/s "
					    "PCIe\" is: 8 GT/s assumed",
					    odd);
	else
		finding.what = tti_lint_say(
			linter, "a link of %g GT/s and %d lanes: PCI has at most %d and %d",
			node->pci.gts, node->pci.width, TTI_LINT_MOST_GTS, TTI_LINT_MOST_LANES);
	finding.consequence = tti_lint_say(linter, "%s: planned with %.1f GB/s",
					   tti_lint_user(linter, at), tti_lint_uplink(linter, at));
	tti_lint_add(linter, at, &finding);
}

void tti_lint_implausible(struct tti_linter *linter)
{
	TTI_LINT_EACH (net, linter->graph, TTI_NODE_NET)
		check_net(linter, net);
	TTI_LINT_EACH (dev, linter->graph, TTI_NODE_DEV)
		check_nvlinks(linter, dev);
	tti_lint_each_device(linter, check_pci);
}
