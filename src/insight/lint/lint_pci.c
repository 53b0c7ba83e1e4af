/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/lint/lint.h"
#include "insight/lint/lint_rules.h"

#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

/* Bandwidths that differ by less count as equal. */
#define LESS(a, b) ((a) < (b)*0.99)

static bool is_stated(const struct tti_node *node)
{
	return node->pci.gts > 0 && node->pci.width > 0;
}

static const char *instead_of(struct tti_linter *linter, uint32_t node, double have, double want)
{
	return tti_lint_say(linter, "%s: %.1f instead of %.1f GB/s over PCI",
			    tti_lint_user(linter, node), have, want);
}

/* -- Links that run below what they can ---------------------------------------------------- */

/* tutti_link_now="8.0 GT/s PCIe x4". */
static bool read_now(const char *now, double *gts_out, int *width_out)
{
	const char *lanes = now ? strrchr(now, 'x') : NULL;
	const long width = lanes ? strtol(lanes + 1, NULL, 10) : 0;

	*gts_out = tti_model_pci_gts(now);
	*width_out = width > 0 && width < 1024 ? (int)width : 0;
	return *gts_out > 0 && *width_out > 0;
}

static void check_now(struct tti_linter *linter, uint32_t at, bool narrow)
{
	const struct tti_node *node = &linter->graph->nodes[at];
	struct tti_finding finding = { 0 };
	double gts;
	int width;

	if (!read_now(tti_lint_attr(linter, at, "tutti_link_now"), &gts, &width) ||
	    !is_stated(node) || narrow != (width < node->pci.width))
		return;
	finding.have_gbps = tti_model_pci_gbps(gts, width);
	finding.want_gbps = tti_model_pci_gbps(node->pci.gts, node->pci.width);
	if (!LESS(finding.have_gbps, finding.want_gbps))
		return;
	finding.what = tti_lint_say(linter, "its link runs at %g GT/s with %d lanes, of %g with %d",
				    gts, width, node->pci.gts, node->pci.width);
	finding.consequence = instead_of(linter, at, finding.have_gbps, finding.want_gbps);
	tti_lint_add(linter, at, &finding);
}

static void check_narrow(struct tti_linter *linter, uint32_t at)
{
	check_now(linter, at, true);
}

static void check_slow(struct tti_linter *linter, uint32_t at)
{
	check_now(linter, at, false);
}

void tti_lint_pci_link_narrow(struct tti_linter *linter)
{
	tti_lint_each_device(linter, check_narrow);
}

void tti_lint_pci_link_slow(struct tti_linter *linter)
{
	tti_lint_each_device(linter, check_slow);
}

/* -- Equal devices with unequal links ------------------------------------------------------- */

static uint64_t model_of(const struct tti_node *node)
{
	if (node->pci.vendor)
		return (uint64_t)node->pci.vendor << 16 | node->pci.device;
	return node->type == TTI_NODE_DEV ? (uint64_t)node->gpu.sm << 32 : 0;
}

static int by_model(const void *left, const void *right, void *context)
{
	const struct tti_graph *graph = context;
	const struct tti_node *a = &graph->nodes[*(const uint32_t *)left];
	const struct tti_node *b = &graph->nodes[*(const uint32_t *)right];

	if (a->host != b->host)
		return a->host < b->host ? -1 : 1;
	if (model_of(a) != model_of(b))
		return model_of(a) < model_of(b) ? -1 : 1;
	return (a > b) - (a < b);
}

static bool same_model(const struct tti_graph *graph, uint32_t a, uint32_t b)
{
	return graph->nodes[a].host == graph->nodes[b].host &&
	       model_of(&graph->nodes[a]) == model_of(&graph->nodes[b]);
}

static void compare_equals(struct tti_linter *linter, const uint32_t *at, size_t n)
{
	uint32_t best = at[0];

	for (size_t i = 1; i < n; i++)
		if (tti_lint_uplink(linter, at[i]) > tti_lint_uplink(linter, best))
			best = at[i];
	for (size_t i = 0; i < n; i++) {
		const struct tti_node *node = &linter->graph->nodes[at[i]];
		struct tti_finding finding = {
			.have_gbps = tti_lint_uplink(linter, at[i]),
			.want_gbps = tti_lint_uplink(linter, best),
		};

		if (!LESS(finding.have_gbps, finding.want_gbps))
			continue;
		finding.what = tti_lint_say(
			linter,
			"its link has %g GT/s and %d lanes, that of %s, "
			"an equal device, %g and %d",
			node->pci.gts, node->pci.width, linter->graph->nodes[best].name,
			linter->graph->nodes[best].pci.gts, linter->graph->nodes[best].pci.width);
		finding.consequence =
			instead_of(linter, at[i], finding.have_gbps, finding.want_gbps);
		tti_lint_add(linter, at[i], &finding);
	}
}

static void compare_type(struct tti_linter *linter, enum tti_node_type type)
{
	const struct tti_graph *graph = linter->graph;
	uint32_t *at = tti_calloc(graph->ntype[type] + 1, sizeof(*at));
	size_t n = 0, from = 0;

	linter->failed |= !at;
	TTI_LINT_EACH (node, graph, type)
		if (at && model_of(&graph->nodes[node]) && is_stated(&graph->nodes[node]) &&
		    !tti_lint_is_virtual(linter, node))
			at[n++] = node;
	if (n)
		qsort_r(at, n, sizeof(*at), by_model, (void *)(uintptr_t)graph);
	for (size_t i = 1; i <= n; i++) {
		if (i < n && same_model(graph, at[i], at[from]))
			continue;
		compare_equals(linter, &at[from], i - from);
		from = i;
	}
	tti_free(at);
}

void tti_lint_pci_sibling(struct tti_linter *linter)
{
	compare_type(linter, TTI_NODE_DEV);
	compare_type(linter, TTI_NODE_NIC);
}

/* -- Switches ------------------------------------------------------------------------------- */

/* The child with the widest link that leads to an endpoint, NONE. */
static uint32_t widest_child(const struct tti_linter *linter, uint32_t at)
{
	const struct tti_graph *graph = linter->graph;
	const struct tti_node *node = &graph->nodes[at];
	uint32_t best = TTI_NODE_NONE;

	for (uint32_t i = 0; i < node->nlinks; i++) {
		const uint32_t to = graph->links[node->first_link + i].to;

		if (graph->nodes[to].parent != at || !is_stated(&graph->nodes[to]) ||
		    tti_lint_endpoint(linter, to) == TTI_NODE_NONE)
			continue;
		if (best == TTI_NODE_NONE ||
		    tti_lint_uplink(linter, to) > tti_lint_uplink(linter, best))
			best = to;
	}
	return best;
}

/* Whether a GPU below carries more over C2C than the uplink would have to. GB300 trays hang
 * a GPU and its NIC on a switch with an uplink of one lane. */
static bool has_c2c_below(const struct tti_linter *linter, uint32_t at, double gbps)
{
	const struct tti_graph *graph = linter->graph;

	TTI_LINT_EACH (dev, graph, TTI_NODE_DEV) {
		uint32_t up = dev;

		if (tti_lint_c2c(linter, dev) < gbps)
			continue;
		while (up != TTI_NODE_NONE && up != at)
			up = graph->nodes[up].parent;
		if (up == at)
			return true;
	}
	return false;
}

/* An uplink may be shared by design, but should not be narrower than one device below it. */
void tti_lint_pci_uplink(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;

	TTI_LINT_EACH (pci, graph, TTI_NODE_PCI) {
		const struct tti_node *node = &graph->nodes[pci];
		const uint32_t child = widest_child(linter, pci);
		struct tti_finding finding = { .have_gbps = tti_lint_uplink(linter, pci) };

		if (child == TTI_NODE_NONE || !is_stated(node) || tti_lint_is_virtual(linter, pci))
			continue;
		finding.want_gbps = tti_lint_uplink(linter, child);
		if (!LESS(finding.have_gbps, finding.want_gbps) ||
		    has_c2c_below(linter, pci, finding.want_gbps))
			continue;
		finding.what = tti_lint_say(
			linter,
			"its uplink of %g GT/s and %d lanes is narrower than that of %s below",
			node->pci.gts, node->pci.width, graph->nodes[child].name);
		finding.consequence =
			instead_of(linter, child, finding.have_gbps, finding.want_gbps);
		tti_lint_add(linter, pci, &finding);
	}
}

static void add_busid_twice(struct tti_linter *linter, const struct tti_note *note)
{
	const struct tti_finding finding = {
		.what = tti_lint_say(linter, "%s", note->text),
		.consequence = tti_lint_say(
			linter,
			"each counts as a device of its own with %.1f GB/s: if they are one, "
			"%s shares that with the others; links to the bus id lead to the first",
			tti_lint_uplink(linter, note->node), tti_lint_user(linter, note->node)),
	};

	tti_lint_add(linter, note->node, &finding);
}

void tti_lint_pci_busid_twice(struct tti_linter *linter)
{
	tti_lint_each_note(linter, TTI_NOTE_BUSID_TWICE, add_busid_twice);
}

/* -- Figures that are none ------------------------------------------------------------------- */

/* The bandwidth that other devices of this type have on the host, or that the net needs. */
static double usual_gbps(const struct tti_linter *linter, uint32_t at)
{
	const struct tti_graph *graph = linter->graph;
	const uint32_t user = tti_lint_endpoint(linter, at);
	double best = graph->nodes[user].type == TTI_NODE_NET ? tti_lint_uplink(linter, user) : 0;

	TTI_LINT_EACH (dev, graph, TTI_NODE_DEV)
		if (graph->nodes[user].type == TTI_NODE_GPU && tti_lint_uplink(linter, dev) > best)
			best = tti_lint_uplink(linter, dev);
	return best;
}

static void check_virtual(struct tti_linter *linter, uint32_t at)
{
	struct tti_finding finding = { 0 };

	const uint32_t user = tti_lint_endpoint(linter, at);

	/* If the speed of the port is unknown, nobody can tell whether the link slows it down. */
	if (!tti_lint_is_virtual(linter, at) || user == TTI_NODE_NONE ||
	    (linter->graph->nodes[user].type == TTI_NODE_NET &&
	     linter->graph->nodes[user].net.speed_mbps <= 0))
		return;
	finding.have_gbps = tti_lint_uplink(linter, at);
	finding.want_gbps = usual_gbps(linter, at);
	if (!LESS(finding.have_gbps, finding.want_gbps))
		return;
	finding.what =
		"its link has one lane of 2.5 GT/s, as virtual machines and built-in NICs show";
	finding.consequence = instead_of(linter, at, finding.have_gbps, finding.want_gbps);
	tti_lint_add(linter, at, &finding);
}

void tti_lint_pci_virtual(struct tti_linter *linter)
{
	tti_lint_each_device(linter, check_virtual);
}

/* Whether the assumed speed of a NIC's PCI link is more than its port needs, so that the assumption
 * does not matter. */
static bool is_enough(const struct tti_linter *linter, uint32_t at)
{
	const struct tti_graph *graph = linter->graph;
	const uint32_t user = tti_lint_endpoint(linter, at);

	return graph->nodes[at].type == TTI_NODE_NIC && user != TTI_NODE_NONE &&
	       graph->nodes[user].type == TTI_NODE_NET &&
	       tti_lint_uplink(linter, user) < tti_lint_uplink(linter, at);
}

static void add_assumed(struct tti_linter *linter, const struct tti_note *note)
{
	const uint32_t child = widest_child(linter, note->node);
	struct tti_finding finding = {
		.what = tti_lint_say(linter, "%s", note->text),
		.have_gbps = tti_lint_uplink(linter, note->node),
		.want_gbps = child == TTI_NODE_NONE ? 0 : tti_lint_uplink(linter, child),
	};

	if (is_enough(linter, note->node) || tti_lint_odd_speed(linter, note->node))
		return;
	if (LESS(finding.have_gbps, finding.want_gbps)) {
		finding.consequence =
			instead_of(linter, child, finding.have_gbps, finding.want_gbps);
	} else {
		finding.consequence =
			tti_lint_say(linter, "%s: planned with %.1f GB/s",
				     tti_lint_user(linter, note->node), finding.have_gbps);
		finding.have_gbps = finding.want_gbps = 0;
	}
	tti_lint_add(linter, note->node, &finding);
}

void tti_lint_pci_assumed(struct tti_linter *linter)
{
	tti_lint_each_note(linter, TTI_NOTE_ASSUMED_SPEED, add_assumed);
}

/* One finding for all functions below one node. */
static void check_unknown_below(struct tti_linter *linter, uint32_t at)
{
	const struct tti_graph *graph = linter->graph;
	const struct tti_node *node = &graph->nodes[at];
	uint32_t n = 0, first = TTI_NODE_NONE;
	struct tti_finding finding = { 0 };

	for (uint32_t i = 0; i < node->nlinks; i++) {
		const uint32_t to = graph->links[node->first_link + i].to;
		const struct tti_node *child = &graph->nodes[to];

		if (child->parent != at || child->type != TTI_NODE_PCI || child->pci.class_code ||
		    child->nlinks > 1)
			continue;
		if (n++ == 0)
			first = to;
	}
	if (!n)
		return;
	finding.what =
		tti_lint_say(linter, "%u function%s below %s %s neither class nor <gpu> or <nic>",
			     n, n == 1 ? "" : "s", node->name, n == 1 ? "has" : "have");
	finding.consequence = tti_lint_say(
		linter, "devices are not used: %.1f GB/s of PCI each, if they are GPUs or NICs",
		tti_lint_uplink(linter, first));
	tti_lint_add(linter, first, &finding);
}

void tti_lint_pci_unknown(struct tti_linter *linter)
{
	TTI_LINT_EACH (cpu, linter->graph, TTI_NODE_CPU)
		check_unknown_below(linter, cpu);
	TTI_LINT_EACH (pci, linter->graph, TTI_NODE_PCI)
		check_unknown_below(linter, pci);
}
