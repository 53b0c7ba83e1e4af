/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <string.h>

#include "insight/plan/explain.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/mem.h"

/* One more NIC, really put into the topology: below each switch (or CPU) that GPUs hang on
 * and no NIC does. All that follows from a topology is made again, and the plan too. */

#define MOST_PLACES 16
#define LEAST_GAIN  0.002

struct places {
	uint32_t at[MOST_PLACES]; /* nodes of the graph */
	uint32_t n;
	uint32_t like; /* the NET to have another of: the fastest */
};

static bool is_below(const struct tti_graph *graph, uint32_t node, uint32_t above)
{
	while (node != TTI_NODE_NONE && node != above)
		node = graph->nodes[node].parent;
	return node == above;
}

static bool has_nic(const struct tti_graph *graph, uint32_t place)
{
	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_NET]; i++)
		if (is_below(graph, graph->by_type[TTI_NODE_NET][i], place))
			return true;
	return false;
}

/* The node to which the device of a member is attached, if a NIC could be attached there, too. */
static uint32_t place_of(const struct tti_graph *graph, uint32_t member)
{
	const uint32_t device = graph->nodes[member].parent;
	const uint32_t place =
		device == TTI_NODE_NONE ? TTI_NODE_NONE : graph->nodes[device].parent;

	if (graph->nodes[member].type != TTI_NODE_GPU || place == TTI_NODE_NONE ||
	    graph->nodes[place].element == TTI_NODE_NONE)
		return TTI_NODE_NONE;
	return graph->nodes[place].type == TTI_NODE_PCI || graph->nodes[place].type == TTI_NODE_CPU
		       ? place
		       : TTI_NODE_NONE;
}

static void find_places(const struct tti_explain *explain, struct places *out)
{
	const struct tti_loads *loads = explain->loads;
	const struct tti_graph *graph = loads->routes->paths->graph;

	*out = (struct places){ .like = TTI_NODE_NONE };
	for (uint32_t i = 0; i < loads->n && out->n < MOST_PLACES; i++) {
		const uint32_t place = place_of(graph, loads->nodes[i]);
		bool known = place == TTI_NODE_NONE || has_nic(graph, place);

		for (uint32_t k = 0; k < out->n; k++)
			known |= out->at[k] == place;
		if (!known)
			out->at[out->n++] = place;
	}
	for (uint32_t i = 0; i < loads->nnets; i++)
		if (out->like == TTI_NODE_NONE || graph->nodes[loads->nets[i]].net.speed_mbps >
							  graph->nodes[out->like].net.speed_mbps)
			out->like = loads->nets[i];
}

/* -- A topology with more NICs --------------------------------------------------------- */

static struct tti_xml *element_at(struct tti_xml_doc *doc, uint32_t number)
{
	struct tti_xml *node = doc->root;

	for (uint32_t i = 0; node && i < number; i++)
		node = tti_xml_walk(node);
	return node;
}

static tutti_status add_nic(struct tti_xml_doc *doc, struct tti_xml *below,
			    const struct tti_graph *graph, uint32_t like, uint32_t number)
{
	const struct tti_node *net = &graph->nodes[like];
	struct tti_xml *pci = tti_xml_add(doc, below, "pci");
	struct tti_xml *nic = pci ? tti_xml_add(doc, pci, "nic") : NULL;
	struct tti_xml *added = nic ? tti_xml_add(doc, nic, "net") : NULL;

	if (added && tti_xml_setf(doc, pci, "busid", "ffff:%02x:00.0", number) &&
	    tti_xml_set(doc, pci, "class", "0x020000") &&
	    tti_xml_set(doc, pci, "link_speed", "32.0 GT/s PCIe") &&
	    tti_xml_set(doc, pci, "link_width", "16") &&
	    tti_xml_setf(doc, added, "name", "tutti_new%u", number) &&
	    tti_xml_setf(doc, added, "dev", "%u", 1000 + number) &&
	    tti_xml_setf(doc, added, "speed", "%lld", (long long)net->net.speed_mbps) &&
	    tti_xml_set(doc, added, "port", "1") &&
	    tti_xml_setf(doc, added, "guid", "0x7e57%04x", number) &&
	    tti_xml_set(doc, added, "gdr", net->net.gdr ? "1" : "0"))
		return TUTTI_OK;
	return tti_fail(TUTTI_ENOMEM, "explanation: out of memory");
}

/* Places by their elements first: adding moves those behind. */
static tutti_status change_doc(const struct tti_explain *explain, const struct places *places,
			       uint32_t first, uint32_t count, struct tti_xml_doc **out)
{
	const struct tti_graph *graph = explain->loads->routes->paths->graph;
	struct tti_xml *below[MOST_PLACES];
	struct tti_xml_doc *doc = NULL;

	TTI_TRY(tti_xml_copy(explain->report->docs[explain->index], &doc));
	*out = doc;
	for (uint32_t i = 0; i < count; i++)
		below[i] = element_at(doc, graph->nodes[places->at[first + i]].element);
	for (uint32_t i = 0; i < count; i++) {
		if (!below[i])
			return tti_fail(TUTTI_EINTERNAL, "%s is not in its document",
					graph->nodes[places->at[first + i]].full_name);
		TTI_TRY(add_nic(doc, below[i], graph, places->like, i));
	}
	return TUTTI_OK;
}

/* A changed document, and everything that is built from it. */
struct changed {
	struct tti_xml_doc *doc;
	struct tti_graph *graph;
	struct tti_paths *paths;
	struct tti_routes *routes;
	struct tti_loads *loads;
	struct tti_local *search;
};

static tutti_status plan_changed(const struct tti_explain *explain, struct changed *c)
{
	TTI_TRY(tti_schema_check(c->doc));
	TTI_TRY(tti_graph_build(c->doc, explain->loads->routes->paths->graph->model, &c->graph));
	TTI_TRY(tti_paths_build(c->graph, &c->paths));
	TTI_TRY(tti_routes_build(c->paths, NULL, &c->routes));
	TTI_TRY(tti_explain_loads(explain->node, c->routes, true, &c->loads));
	return tti_local_search(c->loads, &explain->config, &c->search);
}

static tutti_status plan_with(const struct tti_explain *explain, const struct places *places,
			      uint32_t first, uint32_t count, double *gbps_out)
{
	struct changed c = { 0 };
	tutti_status st = change_doc(explain, places, first, count, &c.doc);

	if (st == TUTTI_OK)
		st = plan_changed(explain, &c);
	if (st == TUTTI_OK)
		*gbps_out = c.search->total_gbps;
	tti_local_free(c.search);
	tti_loads_free(c.loads);
	tti_routes_free(c.routes);
	tti_paths_free(c.paths);
	tti_graph_free(c.graph);
	tti_xml_free(c.doc);
	return st;
}

/* -- Sentences ------------------------------------------------------------------------ */

static void say_place(const struct tti_explain *explain, const struct places *places, uint32_t at)
{
	const struct tti_graph *graph = explain->loads->routes->paths->graph;
	const struct tti_node *place = &graph->nodes[places->at[at]];

	tti_strbuf_addf(explain->out, "%s%s, beside", place->type == TTI_NODE_PCI ? "switch " : "",
			place->full_name);
	for (uint32_t i = 0; i < explain->loads->n; i++)
		if (is_below(graph, explain->loads->nodes[i], places->at[at]))
			tti_strbuf_addf(explain->out, " %s",
					graph->nodes[explain->loads->nodes[i]].full_name);
}

static void say_gain(const struct tti_explain *explain, double then)
{
	const double now = explain->search->total_gbps;
	char gbps[24];

	tti_gbps_words(then, gbps);
	if (then < now * (1 + LEAST_GAIN))
		tti_strbuf_add(explain->out, ": nothing gained\n");
	else
		tti_strbuf_addf(explain->out, ": %s GB/s (%+.1f %%)\n", gbps,
				100 * (then / now - 1));
}

/* Places with the same gain are reported together, by the first of them. */
static tutti_status try_each(const struct tti_explain *explain, const struct places *places)
{
	double then[MOST_PLACES] = { 0 };

	for (uint32_t i = 0; i < places->n; i++)
		TTI_TRY(plan_with(explain, places, i, 1, &then[i]));
	for (uint32_t i = 0; i < places->n; i++) {
		uint32_t count = 0;
		bool said = false;

		for (uint32_t k = 0; k < places->n; k++) {
			const bool same = fabs(then[k] - then[i]) < LEAST_GAIN * then[i];

			said |= same && k < i;
			count += same && k > i;
		}
		if (said)
			continue;
		tti_strbuf_add(explain->out, "    below ");
		say_place(explain, places, i);
		if (count)
			tti_strbuf_addf(explain->out, ", or at any of %u other places", count);
		say_gain(explain, then[i]);
	}
	return TUTTI_OK;
}

tutti_status tti_explain_more_nics(struct tti_explain *explain)
{
	const struct tti_graph *graph = explain->loads->routes->paths->graph;
	struct places places;
	double then = 0;

	if (!explain->report->docs || !explain->report->docs[explain->index])
		return TUTTI_OK;
	find_places(explain, &places);
	if (places.n == 0 || places.like == TTI_NODE_NONE)
		return TUTTI_OK;
	tti_strbuf_addf(explain->out, "  planned again with one more NIC like %s\n",
			graph->nodes[places.like].full_name);
	TTI_TRY(try_each(explain, &places));
	if (places.n == 1)
		return TUTTI_OK;
	TTI_TRY(plan_with(explain, &places, 0, places.n, &then));
	tti_strbuf_addf(explain->out, "    one below each of these %u", places.n);
	say_gain(explain, then);
	return TUTTI_OK;
}
