/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys stand in the order of docs/topology.md. */
#include "insight/lint/lint.h"
#include "insight/print/print.h"

#include <inttypes.h>

#include "insight/print/print_words.h"
#include "topo/graph/words.h"
#include "util/error.h"
#include "util/json.h"

/* The version of the format, not of the library: greater when a key goes or changes its meaning. */
#define FORMAT 1

static void add_real(struct tti_json *json, const char *key, double value)
{
	tti_json_real(json, key, value, 9);
}

static void add_hex(struct tti_json *json, const char *key, uint64_t value, int digits)
{
	tti_json_addf(json, key, "\"0x%0*" PRIx64 "\"", digits, value);
}

/* A node, or null. */
static void add_index(struct tti_json *json, const char *key, uint32_t node)
{
	if (node == TTI_NODE_NONE)
		tti_json_addf(json, key, "null");
	else
		tti_json_addf(json, key, "%u", node);
}

/* The CPUs of a mask as taskset takes them, "0-15,32-47". */
static void add_cpus(struct tti_json *json, const char *mask)
{
	struct tti_strbuf list = { 0 };

	tti_words_cpus(mask, &list);
	json->out->failed |= list.failed;
	tti_json_text(json, "cpus", list.text);
	tti_strbuf_release(&list);
}

static void add_cpu(struct tti_json *json, const struct tti_cpu_info *cpu)
{
	tti_json_open(json, "cpu", "{");
	tti_json_addf(json, "numaid", "%" PRId64, cpu->numaid);
	tti_json_addf(json, "socket", "%d", cpu->package);
	tti_json_addf(json, "sockets", "%d", cpu->npackages);
	tti_json_bool(json, "socket_assumed", cpu->package_assumed);
	tti_json_text(json, "affinity", cpu->affinity);
	add_cpus(json, cpu->affinity);
	tti_json_text(json, "arch", cpu->arch);
	tti_json_text(json, "vendor", cpu->vendor);
	tti_json_addf(json, "family", "%d", cpu->family);
	tti_json_addf(json, "model", "%d", cpu->model);
	tti_json_text(json, "model_name", tti_graph_cpu_model(cpu).name);
	tti_json_addf(json, "mem_mib", "%" PRId64, cpu->mem_mib);
	add_real(json, "mem_gbps", cpu->mem_gbps);
	add_real(json, "mem_ns", cpu->mem_ns);
	tti_json_bool(json, "mem_measured", cpu->mem_measured);
	tti_json_text(json, "mem_source", tti_print_memory(cpu));
	tti_json_close(json);
}

static void add_pci(struct tti_json *json, const struct tti_pci_info *pci)
{
	char busid[TTI_BUSID_TEXT];

	tti_json_open(json, "pci", "{");
	tti_json_text(json, "busid", tti_busid_format(pci->busid, busid));
	add_hex(json, "class", pci->class_code, 6);
	add_hex(json, "vendor", pci->vendor, 4);
	add_hex(json, "device", pci->device, 4);
	add_hex(json, "subsystem_vendor", pci->subsystem_vendor, 4);
	add_hex(json, "subsystem_device", pci->subsystem_device, 4);
	add_real(json, "link_gts", pci->gts);
	tti_json_addf(json, "link_width", "%d", pci->width);
	tti_json_close(json);
}

static void add_gpu(struct tti_json *json, const struct tti_gpu_info *gpu)
{
	tti_json_open(json, "gpu", "{");
	tti_json_addf(json, "dev", "%d", gpu->dev);
	tti_json_addf(json, "rank", "%d", gpu->rank);
	tti_json_addf(json, "sm", "%d", gpu->sm);
	if (gpu->gcn)
		tti_json_text(json, "gcn", gpu->gcn);
	else
		tti_json_addf(json, "gcn", "null");
	tti_json_bool(json, "gdr", gpu->gdr);
	tti_json_bool(json, "bare", gpu->bare);
	tti_json_close(json);
}

static void add_net(struct tti_json *json, const struct tti_net_info *net)
{
	tti_json_open(json, "net", "{");
	tti_json_addf(json, "dev", "%d", net->dev);
	tti_json_addf(json, "port", "%d", net->port);
	tti_json_addf(json, "speed_mbps", "%" PRId64, net->speed_mbps);
	tti_json_addf(json, "rail", "%d", net->rail);
	tti_json_addf(json, "plane", "%d", net->plane);
	add_hex(json, "guid", net->guid, 1);
	add_hex(json, "asic", net->asic, 1);
	tti_json_addf(json, "maxconn", "%d", net->maxconn);
	tti_json_bool(json, "gdr", net->gdr);
	tti_json_bool(json, "coll", net->coll);
	add_real(json, "latency_ns", net->latency_ns);
	tti_json_close(json);
}

static void add_details(struct tti_json *json, const struct tti_node *node)
{
	switch (node->type) {
	case TTI_NODE_CPU:
		add_cpu(json, &node->cpu);
		break;
	case TTI_NODE_GPU:
		add_gpu(json, &node->gpu);
		break;
	case TTI_NODE_NET:
		add_net(json, &node->net);
		break;
	case TTI_NODE_DEV:
	case TTI_NODE_PCI:
	case TTI_NODE_NIC:
		add_pci(json, &node->pci);
		break;
	case TTI_NODE_HOST:
	case TTI_NODE_NVS:
	case TTI_NODE_PKG:
	default:
		break;
	}
}

static void add_node(struct tti_json *json, const struct tti_graph *graph, uint32_t index)
{
	const struct tti_node *node = &graph->nodes[index];

	tti_json_open(json, NULL, "{");
	tti_json_addf(json, "id", "%u", index);
	tti_json_text(json, "type", tti_node_type_name(node->type));
	tti_json_text(json, "name", node->name);
	tti_json_addf(json, "host", "%u", node->host);
	add_index(json, "parent", node->parent);
	tti_json_addf(json, "line", "%u", node->line);
	add_details(json, node);
	tti_json_close(json);
}

static void add_link(struct tti_json *json, const struct tti_graph *graph, uint32_t index)
{
	const struct tti_topo_link *link = &graph->links[index];

	tti_json_open(json, NULL, "{");
	tti_json_addf(json, "id", "%u", index);
	tti_json_addf(json, "from", "%u", link->from);
	tti_json_addf(json, "to", "%u", link->to);
	tti_json_text(json, "type", tti_link_type_name(link->type));
	tti_json_addf(json, "count", "%u", link->count);
	add_real(json, "gbps", (double)link->bw_gbps);
	add_real(json, "latency_ns", (double)link->latency_ns);
	tti_json_close(json);
}

static void add_note(struct tti_json *json, const struct tti_graph *graph, uint32_t index)
{
	const struct tti_note *note = &graph->notes[index];

	tti_json_open(json, NULL, "{");
	add_index(json, "node", note->node);
	tti_json_addf(json, "line", "%u", note->line);
	tti_json_text(json, "text", note->text);
	tti_json_close(json);
}

static void add_host(struct tti_json *json, const struct tti_graph *graph, uint32_t index)
{
	tti_json_text(json, NULL, graph->hosts[index]);
}

static void
add_list(struct tti_json *json, const char *key, const struct tti_graph *graph, uint32_t n,
	 void (*add)(struct tti_json *json, const struct tti_graph *graph, uint32_t index))
{
	tti_json_open(json, key, "[");
	for (uint32_t i = 0; i < n; i++)
		add(json, graph, i);
	tti_json_close(json);
}

/* -- Paths -------------------------------------------------------------------------- */

static void add_route(struct tti_json *json, const struct tti_route *route)
{
	tti_json_open(json, "route", "{");
	tti_json_text(json, "type", tti_path_type_name((enum tti_path_type)route->type));
	tti_json_text(json, "why", tti_print_route_why((enum tti_route_why)route->why));
	tti_json_bool(json, "p2p", route->p2p);
	tti_json_bool(json, "gdr", route->gdr);
	add_index(json, "via", route->via);
	add_real(json, "gbps", (double)route->bw_gbps);
	add_real(json, "latency_ns", (double)route->latency_ns);
	tti_json_close(json);
}

static void add_path(struct tti_json *json, const struct tti_routes *routes, uint32_t from,
		     uint32_t to)
{
	const struct tti_path *path = tti_paths_get(routes->paths, from, to);

	tti_json_open(json, NULL, "{");
	tti_json_addf(json, "from", "%u", from);
	tti_json_addf(json, "to", "%u", to);
	tti_json_text(json, "type", tti_path_type_name((enum tti_path_type)path->type));
	add_real(json, "gbps", (double)path->bw_gbps);
	add_real(json, "latency_ns", (double)path->latency_ns);
	tti_json_open(json, "hops", "[");
	for (unsigned i = 0; i < path->nhops; i++)
		tti_json_addf(json, NULL, "%u", routes->paths->hops[path->first_hop + i]);
	tti_json_close(json);
	add_route(json, tti_routes_get(routes, from, to));
	tti_json_close(json);
}

static void add_paths(struct tti_json *json, const struct tti_routes *routes)
{
	const struct tti_paths *paths = routes->paths;

	if (!routes->at) {
		tti_json_addf(json, "paths", "null");
		return;
	}
	tti_json_open(json, "paths", "[");
	for (uint32_t i = 0; i < paths->n; i++)
		for (uint32_t j = 0; j < paths->n && !json->out->failed; j++)
			add_path(json, routes, paths->endpoints[i], paths->endpoints[j]);
	tti_json_close(json);
}

static void add_endpoints(struct tti_json *json, const struct tti_paths *paths)
{
	tti_json_open(json, "endpoints", "[");
	for (uint32_t i = 0; i < paths->n; i++) {
		const struct tti_node *node = &paths->graph->nodes[paths->endpoints[i]];

		tti_json_open(json, NULL, "{");
		tti_json_addf(json, "id", "%u", paths->endpoints[i]);
		tti_json_text(json, "type", tti_node_type_name(node->type));
		tti_json_text(json, "name", node->name);
		tti_json_close(json);
	}
	tti_json_close(json);
}

/* -- Findings ----------------------------------------------------------------------- */

static void add_findings(struct tti_json *json, const struct tti_lint *lint)
{
	tti_json_open(json, "findings", "[");
	for (size_t i = 0; i < lint->n; i++) {
		const struct tti_finding *finding = &lint->at[i];

		tti_json_open(json, NULL, "{");
		tti_json_text(json, "rule", finding->rule);
		tti_json_text(json, "severity", tti_severity_name(finding->severity));
		add_index(json, "node", finding->node);
		tti_json_text(json, "place", finding->place);
		tti_json_text(json, "what", finding->what);
		tti_json_text(json, "consequence", finding->consequence);
		tti_json_text(json, "remedy", finding->remedy);
		add_real(json, "have_gbps", finding->have_gbps);
		add_real(json, "want_gbps", finding->want_gbps);
		tti_json_close(json);
	}
	tti_json_close(json);
}

/* -- The whole ---------------------------------------------------------------------- */

static struct tti_json open_object(struct tti_strbuf *out)
{
	struct tti_json json = { .out = out };

	tti_json_open(&json, NULL, "{");
	tti_json_addf(&json, "format", "%d", FORMAT);
	return json;
}

static tutti_status close_object(struct tti_json *json)
{
	tti_json_close(json);
	tti_strbuf_add(json->out, "\n");
	if (json->out->failed)
		return tti_fail(TUTTI_ENOMEM, "writing a topology as JSON: out of memory");
	return TUTTI_OK;
}

tutti_status tti_print_topo_json(const struct tti_routes *routes, const struct tti_lint *lint,
				 struct tti_strbuf *out)
{
	const struct tti_graph *graph = routes->paths->graph;
	struct tti_json json = open_object(out);

	tti_json_text(&json, "source", graph->source);
	tti_json_text(&json, "model", graph->model == TTI_MODEL_NCCL ? "nccl" : "tutti");
	add_list(&json, "hosts", graph, graph->nhosts, add_host);
	add_list(&json, "nodes", graph, graph->nnodes, add_node);
	add_list(&json, "links", graph, graph->nlinks, add_link);
	add_list(&json, "notes", graph, graph->nnotes, add_note);
	add_paths(&json, routes);
	add_findings(&json, lint);
	return close_object(&json);
}

tutti_status tti_print_paths_json(const struct tti_routes *routes, struct tti_strbuf *out)
{
	struct tti_json json;

	TTI_TRY(tti_routes_want_all(routes));
	json = open_object(out);
	add_endpoints(&json, routes->paths);
	add_paths(&json, routes);
	return close_object(&json);
}

tutti_status tti_print_lint_json(const struct tti_lint *lint, struct tti_strbuf *out)
{
	struct tti_json json = open_object(out);

	add_findings(&json, lint);
	return close_object(&json);
}
