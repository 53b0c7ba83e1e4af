/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/lint/lint.h"
#include "insight/lint/lint_rules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "util/mem.h"

/* -- Masks: "ffff,00000000", words of 32 bits, highest first ------------------------------ */

static unsigned digit_of(char c)
{
	return isdigit((unsigned char)c) ? (unsigned)(c - '0')
					 : (unsigned)(tolower((unsigned char)c) - 'a') + 10;
}

/* Calls visit(context, digit, place) for each hex digit that is not 0, the lowest first;
 * stops where it returns false. */
static void each_digit(const char *mask, bool (*visit)(void *context, unsigned digit, size_t place),
		       void *context)
{
	size_t place = 0, in_word = 0;

	for (size_t i = strlen(mask); i-- > 0;) {
		if (mask[i] == ',') {
			place += 8 - in_word;
			in_word = 0;
			continue;
		}
		if (mask[i] != '0' && isxdigit((unsigned char)mask[i]) &&
		    !visit(context, digit_of(mask[i]), place))
			return;
		place++;
		in_word++;
	}
}

static bool any(void *context, unsigned digit, size_t place)
{
	(void)digit;
	(void)place;
	*(bool *)context = true;
	return false;
}

static bool has_cores(const char *mask)
{
	bool found = false;

	each_digit(mask, any, &found);
	return found;
}

/* The NUMA node that has each core of a host. */
struct owners {
	uint32_t *of; /* by core; CPU + 1 */
	size_t room;
	uint32_t cpu, other;
};

static bool claim(void *context, unsigned digit, size_t place)
{
	struct owners *owners = context;

	for (unsigned bit = 0; bit < 4; bit++) {
		uint32_t *owner = &owners->of[place * 4 + bit];

		if (!(digit >> bit & 1))
			continue;
		if (*owner && owners->other == TTI_NODE_NONE)
			owners->other = *owner - 1;
		if (!*owner)
			*owner = owners->cpu + 1;
	}
	return true;
}

/* Leading zeros and upper case aside. */
static bool same_mask(const char *a, const char *b)
{
	a += strspn(a, "0,");
	b += strspn(b, "0,");
	return strcasecmp(a, b) == 0;
}

static uint32_t host_endpoint(const struct tti_graph *graph, uint32_t cpu)
{
	const struct tti_node *node = &graph->nodes[cpu];

	for (uint32_t i = 0; i < node->nlinks; i++)
		if (graph->nodes[graph->links[node->first_link + i].to].type == TTI_NODE_HOST)
			return graph->links[node->first_link + i].to;
	return TTI_NODE_NONE;
}

static void add_overlap(struct tti_linter *linter, const struct owners *owners, bool same)
{
	const struct tti_graph *graph = linter->graph;
	const struct tti_node *cpu = &graph->nodes[owners->cpu];
	const struct tti_node *other = &graph->nodes[owners->other];
	const uint32_t a = host_endpoint(graph, owners->other);
	const uint32_t b = host_endpoint(graph, owners->cpu);
	struct tti_finding finding = { .want_gbps = cpu->cpu.mem_gbps };
	const struct tti_path *way = NULL;

	if (a != TTI_NODE_NONE && b != TTI_NODE_NONE)
		way = tti_lint_path(linter, a, b);
	if (way)
		finding.have_gbps = (double)way->bw_gbps;
	finding.what = tti_lint_say(linter, "%s cores as %s: affinity %s",
				    same ? "the same" : "some of the same", other->name,
				    cpu->cpu.affinity);
	if (!way || finding.have_gbps >= finding.want_gbps)
		finding.have_gbps = finding.want_gbps = 0;
	finding.consequence =
		way ? tti_lint_say(linter,
				   "ranks pinned to %s run on %s: its memory at %.1f GB/s of %.1f",
				   cpu->name, other->name, (double)way->bw_gbps, cpu->cpu.mem_gbps)
		    : tti_lint_say(linter, "ranks pinned to %s run on %s", cpu->name, other->name);
	tti_lint_add(linter, owners->cpu, &finding);
}

static void find_overlaps(struct tti_linter *linter, bool same)
{
	const struct tti_graph *graph = linter->graph;
	struct owners owners = { 0 };
	uint32_t host = 0;

	TTI_LINT_EACH (cpu, graph, TTI_NODE_CPU) {
		const size_t len = strlen(graph->nodes[cpu].cpu.affinity) * 8 + 8;

		owners.room = len > owners.room ? len : owners.room;
	}
	owners.of = tti_calloc(owners.room * 4 + 1, sizeof(*owners.of));
	linter->failed |= !owners.of;
	TTI_LINT_EACH (cpu, graph, TTI_NODE_CPU) {
		const struct tti_node *node = &graph->nodes[cpu];

		if (linter->failed)
			break;
		if (node->host != host) /* by_type is sorted by host */
			memset(owners.of, 0, owners.room * 4 * sizeof(*owners.of));
		host = node->host;
		owners.cpu = cpu;
		owners.other = TTI_NODE_NONE;
		each_digit(node->cpu.affinity, claim, &owners);
		if (owners.other != TTI_NODE_NONE &&
		    same_mask(node->cpu.affinity, graph->nodes[owners.other].cpu.affinity) == same)
			add_overlap(linter, &owners, same);
	}
	tti_free(owners.of);
}

void tti_lint_numa_same_mask(struct tti_linter *linter)
{
	find_overlaps(linter, true);
}

void tti_lint_numa_mask_overlap(struct tti_linter *linter)
{
	find_overlaps(linter, false);
}

/* -- NUMA nodes --------------------------------------------------------------------------- */

static bool has_devices(const struct tti_linter *linter, uint32_t cpu)
{
	return tti_lint_endpoint(linter, cpu) != TTI_NODE_NONE;
}

/* GB/s of the widest link to other NUMA nodes, 0: there is none. */
static double way_out(const struct tti_graph *graph, uint32_t cpu)
{
	const struct tti_node *node = &graph->nodes[cpu];
	double best = 0;

	for (uint32_t i = 0; i < node->nlinks; i++) {
		const struct tti_topo_link *link = &graph->links[node->first_link + i];

		if (link->type == TTI_LINK_SYS && (double)link->bw_gbps > best)
			best = (double)link->bw_gbps;
	}
	return best;
}

void tti_lint_numa_no_cores(struct tti_linter *linter)
{
	const struct tti_graph *graph = linter->graph;

	TTI_LINT_EACH (cpu, graph, TTI_NODE_CPU) {
		const struct tti_node *node = &graph->nodes[cpu];
		const double out = way_out(graph, cpu);
		struct tti_finding finding = { 0 };

		if (has_cores(node->cpu.affinity) || !has_devices(linter, cpu))
			continue;
		finding.what = *node->cpu.affinity
				       ? "it has devices but no cores"
				       : "the affinity of a NUMA node with devices is not stated";
		if (out > 0)
			finding.consequence = tti_lint_say(linter,
							   "ranks are not pinned near %s: up to "
							   "all their memory traffic crosses "
							   "a link of %.1f GB/s",
							   tti_lint_user(linter, cpu), out);
		else
			finding.consequence = "ranks are not pinned";
		tti_lint_add(linter, cpu, &finding);
	}
}

/* Whether its host has NUMA nodes, to none of which these cores belong. */
static bool is_of_no_node(const struct tti_graph *graph, uint32_t cpu)
{
	TTI_LINT_EACH (other, graph, TTI_NODE_CPU) {
		if (graph->nodes[other].host == graph->nodes[cpu].host &&
		    graph->nodes[other].cpu.numaid >= 0)
			return true;
	}
	return false;
}

void tti_lint_numa_unknown(struct tti_linter *linter)
{
	TTI_LINT_EACH (cpu, linter->graph, TTI_NODE_CPU) {
		struct tti_finding finding = {
			.what = "its NUMA id is not known (-1)",
			.consequence =
				"all that hangs on it counts as one socket: crossings of sockets "
				"are not seen",
		};

		if (linter->graph->nodes[cpu].cpu.numaid >= 0)
			continue;
		if (is_of_no_node(linter->graph, cpu)) {
			finding.what = "its cores belong to no NUMA node that is online";
			finding.consequence = "ranks that run on them have no memory near";
		}
		tti_lint_add(linter, cpu, &finding);
	}
}

static void add_socket(struct tti_linter *linter, const struct tti_note *note)
{
	const struct tti_cpu_model model =
		tti_graph_cpu_model(&linter->graph->nodes[note->node].cpu);
	const struct tti_finding finding = {
		.what = tti_lint_say(linter, "%s", note->text),
		.consequence = tti_lint_say(
			linter, "%.1f GB/s are counted between sockets, %.1f GB/s inside of one",
			model.inter_gbps, model.intra_gbps),
	};

	tti_lint_add(linter, note->node, &finding);
}

void tti_lint_socket_assumed(struct tti_linter *linter)
{
	tti_lint_each_note(linter, TTI_NOTE_ASSUMED_SOCKET, add_socket);
}
