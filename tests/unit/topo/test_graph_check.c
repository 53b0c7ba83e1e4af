/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "graphs.h"

/* Two GPUs with an NVLink below a switch that is linked to another, and a NIC, on one of
 * two sockets. */
static struct tti_graph *sound(void)
{
	static const char *const text =
		"<cpu numaid='0'>"
		"<pci busid='0000:01:00.0' class='0x060400'>"
		"<pci busid='0000:02:00.0'><gpu dev='0'>"
		"<nvlink target='0000:03:00.0' count='2'/></gpu></pci>"
		"<pci busid='0000:03:00.0'><gpu dev='1'>"
		"<nvlink target='0000:02:00.0' count='2'/></gpu></pci>"
		"<pci busid='0000:04:00.0'><nic><net name='n' speed='1000'/></nic></pci>"
		"</pci>"
		"<pci busid='0000:05:00.0' class='0x060400'>"
		"<pcilink target='0000:01:00.0'/></pci>"
		"</cpu><cpu numaid='1'/>";

	return graph_of(doc_of_text(text), TTI_MODEL_TUTTI);
}

static struct tti_node *node(struct tti_graph *graph, enum tti_node_type type, const char *name)
{
	return &graph->nodes[node_of(graph, type, name)];
}

static struct tti_topo_link *link_at(struct tti_graph *graph, enum tti_link_type type)
{
	for (uint32_t i = 0; i < graph->nlinks; i++)
		if (graph->links[i].type == type)
			return &graph->links[i];
	fail_msg("no such link");
	return NULL;
}

/* -- Breaches: each makes a sound graph unsound in one way -------------------------------- */

static void type_out_of_range(struct tti_graph *graph)
{
	graph->nodes[3].type = (enum tti_node_type)(TTI_NODE_NIC + 1);
}

static void no_name(struct tti_graph *graph)
{
	graph->nodes[3].name = "";
}

static void host_out_of_range(struct tti_graph *graph)
{
	graph->nodes[3].host = 1;
}

static void parent_out_of_range(struct tti_graph *graph)
{
	node(graph, TTI_NODE_NET, "n")->parent = graph->nnodes;
}

static void no_parent(struct tti_graph *graph)
{
	node(graph, TTI_NODE_GPU, "GPU0")->parent = TTI_NODE_NONE;
}

static void wrong_parent(struct tti_graph *graph)
{
	node(graph, TTI_NODE_GPU, "GPU0")->parent = node_of(graph, TTI_NODE_CPU, "CPU0");
}

static void parent_without_a_link(struct tti_graph *graph)
{
	node(graph, TTI_NODE_DEV, "0000:02:00.0")->parent = node_of(graph, TTI_NODE_CPU, "CPU0");
}

static void its_own_ancestor(struct tti_graph *graph)
{
	const uint32_t a = node_of(graph, TTI_NODE_PCI, "0000:01:00.0");
	const uint32_t b = node_of(graph, TTI_NODE_PCI, "0000:05:00.0");

	graph->nodes[a].parent = b;
	graph->nodes[b].parent = a;
}

static void link_to_nowhere(struct tti_graph *graph)
{
	link_at(graph, TTI_LINK_NVL)->to = graph->nnodes;
}

static void link_to_itself(struct tti_graph *graph)
{
	struct tti_topo_link *link = link_at(graph, TTI_LINK_NVL);

	link->to = link->from;
}

static void link_of_another(struct tti_graph *graph)
{
	link_at(graph, TTI_LINK_NVL)->from ^= 1;
}

static void link_type_out_of_range(struct tti_graph *graph)
{
	link_at(graph, TTI_LINK_NVL)->type = (enum tti_link_type)(TTI_LINK_NET + 1);
}

static void link_type_of_others(struct tti_graph *graph)
{
	struct tti_topo_link *link = link_at(graph, TTI_LINK_NVL);

	link->type = graph->links[link->reverse].type = TTI_LINK_SYS;
}

static void reverse_out_of_range(struct tti_graph *graph)
{
	link_at(graph, TTI_LINK_SYS)->reverse = graph->nlinks;
}

static void reverse_of_another(struct tti_graph *graph)
{
	link_at(graph, TTI_LINK_SYS)->reverse = link_at(graph, TTI_LINK_NVL)->reverse;
}

static void no_bandwidth(struct tti_graph *graph)
{
	link_at(graph, TTI_LINK_PCI)->bw_gbps = 0;
}

static void infinite_bandwidth(struct tti_graph *graph)
{
	link_at(graph, TTI_LINK_PCI)->bw_gbps = INFINITY;
}

static void latency_is_no_number(struct tti_graph *graph)
{
	link_at(graph, TTI_LINK_PCI)->latency_ns = NAN;
}

static void negative_latency(struct tti_graph *graph)
{
	link_at(graph, TTI_LINK_NET)->latency_ns = -1;
}

static void link_of_none(struct tti_graph *graph)
{
	link_at(graph, TTI_LINK_NVL)->count = 0;
}

static void pci_link_of_two(struct tti_graph *graph)
{
	link_at(graph, TTI_LINK_PCI)->count = 2;
}

static void first_link_off(struct tti_graph *graph)
{
	graph->nodes[2].first_link++;
}

static void more_links_than_there_are(struct tti_graph *graph)
{
	graph->nodes[graph->nnodes - 1].nlinks++;
}

static void links_left_over(struct tti_graph *graph)
{
	graph->nlinks++;
}

static void links_out_of_order(struct tti_graph *graph)
{
	struct tti_node *dev = node(graph, TTI_NODE_DEV, "0000:02:00.0");
	struct tti_topo_link *links = &graph->links[dev->first_link], first = links[0];

	links[0] = links[1];
	links[1] = first;
	graph->links[links[0].reverse].reverse = dev->first_link;
	graph->links[links[1].reverse].reverse = dev->first_link + 1;
}

static void a_name_twice(struct tti_graph *graph)
{
	node(graph, TTI_NODE_GPU, "GPU1")->name = "GPU0";
}

static void names_out_of_order(struct tti_graph *graph)
{
	uint32_t *gpus = graph->by_type[TTI_NODE_GPU], first = gpus[0];

	gpus[0] = gpus[1];
	gpus[1] = first;
}

static void listed_as_another_type(struct tti_graph *graph)
{
	graph->by_type[TTI_NODE_GPU][0] = graph->by_type[TTI_NODE_NET][0];
}

static void listed_beyond_the_end(struct tti_graph *graph)
{
	graph->by_type[TTI_NODE_GPU][0] = graph->nnodes;
}

static void not_listed(struct tti_graph *graph)
{
	graph->ntype[TTI_NODE_GPU]--;
}

static void note_on_nothing(struct tti_graph *graph)
{
	graph->notes[0].node = graph->nnodes;
}

static void note_without_text(struct tti_graph *graph)
{
	graph->notes[0].text = NULL;
}

static void every_breach_is_found(void **state)
{
	static const struct {
		const char *name;
		void (*breach)(struct tti_graph *graph);
	} breaches[] = {
#define B(name) { #name, name }
		B(type_out_of_range),
		B(no_name),
		B(host_out_of_range),
		B(parent_out_of_range),
		B(no_parent),
		B(wrong_parent),
		B(parent_without_a_link),
		B(its_own_ancestor),
		B(link_to_nowhere),
		B(link_to_itself),
		B(link_of_another),
		B(link_type_out_of_range),
		B(link_type_of_others),
		B(reverse_out_of_range),
		B(reverse_of_another),
		B(no_bandwidth),
		B(infinite_bandwidth),
		B(latency_is_no_number),
		B(negative_latency),
		B(link_of_none),
		B(pci_link_of_two),
		B(first_link_off),
		B(more_links_than_there_are),
		B(links_left_over),
		B(links_out_of_order),
		B(a_name_twice),
		B(names_out_of_order),
		B(listed_as_another_type),
		B(listed_beyond_the_end),
		B(not_listed),
		B(note_on_nothing),
		B(note_without_text),
#undef B
	};

	(void)state;
	for (size_t i = 0; i < sizeof(breaches) / sizeof(breaches[0]); i++) {
		struct tti_graph *graph = sound();

		assert_true(graph->nnotes > 0);
		breaches[i].breach(graph);
		if (tti_graph_check(graph) != TUTTI_EINTERNAL)
			fail_msg("%s is not found", breaches[i].name);
		tti_graph_free(graph);
	}
}

/* -- Order of names ------------------------------------------------------------------------- */

static void digits_count_as_numbers(void **state)
{
	static const char *const sorted[] = { "",      "CPU",      "CPU0",      "CPU1",
					      "CPU02", "CPU2",     "CPU10",     "CPU10.2",
					      "GPU9",  "mlx5_0#2", "mlx5_0#10", "mlx5_00#10",
					      "mlx5_1" };
	const size_t n = sizeof(sorted) / sizeof(sorted[0]);

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++) {
			const int order = tti_name_order(sorted[i], sorted[j]);

			assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_breach_is_found),
		cmocka_unit_test(digits_count_as_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
