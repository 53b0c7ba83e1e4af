/* SPDX-License-Identifier: BSD-3-Clause */
/* Objects are built with the keys in the order of docs/topology.md, which is the order
 * in which they are written. */
#include "insight/lint/lint.h"
#include "insight/print/print.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "insight/print/print_words.h"
#include "topo/graph/words.h"
#include "util/error.h"
#include "util/mem.h"

/* Of the format, not of the library: greater when a key goes or changes its meaning. */
#define FORMAT 1

/* What comes from a file name or a device may be no UTF-8. */
static json_t *text(const char *value)
{
	json_t *json = json_string(value ? value : "");
	char *copy = json ? NULL : tti_strdup(value);

	if (!copy)
		return json;
	for (char *at = copy; *at; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	json = json_string(copy);
	tti_free(copy);
	return json;
}

static json_t *hex(uint64_t value, int digits)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "0x%0*" PRIx64, digits, value);
	return json_string(buf);
}

/* A node, or null. */
static json_t *index_of(uint32_t node)
{
	return node == TTI_NODE_NONE ? json_null() : json_integer(node);
}

/* Takes `value`; false: out of memory. */
static bool put(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) == 0;
}

/* The CPUs of a mask as taskset takes them, "0-15,32-47". */
static json_t *cpus_json(const char *mask)
{
	struct tti_strbuf list = { 0 };
	json_t *json;

	tti_words_cpus(mask, &list);
	json = list.failed ? NULL : json_string(list.text ? list.text : "");
	tti_strbuf_release(&list);
	return json;
}

static json_t *cpu_json(const struct tti_cpu_info *cpu)
{
	const struct tti_cpu_model model = tti_graph_cpu_model(cpu);

	return json_pack(
		"{s:I, s:i, s:i, s:b, s:o, s:o, s:o, s:o, s:i, s:i, s:s, s:I, s:f, s:f, s:b, "
		"s:s}",
		"numaid", (json_int_t)cpu->numaid, "socket", cpu->package, "sockets",
		cpu->npackages, "socket_assumed", cpu->package_assumed, "affinity",
		text(cpu->affinity), "cpus", cpus_json(cpu->affinity), "arch", text(cpu->arch),
		"vendor", text(cpu->vendor), "family", cpu->family, "model", cpu->model,
		"model_name", model.name, "mem_mib", (json_int_t)cpu->mem_mib, "mem_gbps",
		cpu->mem_gbps, "mem_ns", cpu->mem_ns, "mem_measured", cpu->mem_measured,
		"mem_source", tti_print_memory(cpu));
}

static json_t *pci_json(const struct tti_pci_info *pci)
{
	char busid[TTI_BUSID_TEXT];

	return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:i}", "busid",
			 tti_busid_format(pci->busid, busid), "class", hex(pci->class_code, 6),
			 "vendor", hex(pci->vendor, 4), "device", hex(pci->device, 4),
			 "subsystem_vendor", hex(pci->subsystem_vendor, 4), "subsystem_device",
			 hex(pci->subsystem_device, 4), "link_gts", pci->gts, "link_width",
			 pci->width);
}

static json_t *gpu_json(const struct tti_gpu_info *gpu)
{
	return json_pack("{s:i, s:i, s:i, s:o, s:b, s:b}", "dev", gpu->dev, "rank", gpu->rank, "sm",
			 gpu->sm, "gcn", gpu->gcn ? text(gpu->gcn) : json_null(), "gdr", gpu->gdr,
			 "bare", gpu->bare);
}

static json_t *net_json(const struct tti_net_info *net)
{
	return json_pack("{s:i, s:i, s:I, s:i, s:i, s:o, s:o, s:i, s:b, s:b, s:f}", "dev", net->dev,
			 "port", net->port, "speed_mbps", (json_int_t)net->speed_mbps, "rail",
			 net->rail, "plane", net->plane, "guid", hex(net->guid, 1), "asic",
			 hex(net->asic, 1), "maxconn", net->maxconn, "gdr", net->gdr, "coll",
			 net->coll, "latency_ns", net->latency_ns);
}

static bool put_details(json_t *object, const struct tti_node *node)
{
	switch (node->type) {
	case TTI_NODE_CPU:
		return put(object, "cpu", cpu_json(&node->cpu));
	case TTI_NODE_GPU:
		return put(object, "gpu", gpu_json(&node->gpu));
	case TTI_NODE_NET:
		return put(object, "net", net_json(&node->net));
	case TTI_NODE_DEV:
	case TTI_NODE_PCI:
	case TTI_NODE_NIC:
		return put(object, "pci", pci_json(&node->pci));
	case TTI_NODE_HOST:
	case TTI_NODE_NVS:
	case TTI_NODE_PKG:
	default:
		return true;
	}
}

static json_t *node_json(const struct tti_graph *graph, uint32_t index)
{
	const struct tti_node *node = &graph->nodes[index];
	json_t *object = json_pack("{s:I, s:s, s:o, s:I, s:o, s:I}", "id", (json_int_t)index,
				   "type", tti_node_type_name(node->type), "name", text(node->name),
				   "host", (json_int_t)node->host, "parent", index_of(node->parent),
				   "line", (json_int_t)node->line);

	if (object && !put_details(object, node)) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *link_json(const struct tti_graph *graph, uint32_t index)
{
	const struct tti_topo_link *link = &graph->links[index];

	return json_pack("{s:I, s:I, s:I, s:s, s:i, s:f, s:f}", "id", (json_int_t)index, "from",
			 (json_int_t)link->from, "to", (json_int_t)link->to, "type",
			 tti_link_type_name(link->type), "count", (int)link->count, "gbps",
			 (double)link->bw_gbps, "latency_ns", (double)link->latency_ns);
}

static json_t *note_json(const struct tti_graph *graph, uint32_t index)
{
	const struct tti_note *note = &graph->notes[index];

	return json_pack("{s:o, s:I, s:o}", "node", index_of(note->node), "line",
			 (json_int_t)note->line, "text", text(note->text));
}

static json_t *host_json(const struct tti_graph *graph, uint32_t index)
{
	return text(graph->hosts[index]);
}

static json_t *list_json(const struct tti_graph *graph, uint32_t n,
			 json_t *(*item)(const struct tti_graph *graph, uint32_t index))
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < n; i++)
		if (json_array_append_new(list, item(graph, i))) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

/* -- Paths -------------------------------------------------------------------------- */

static json_t *hops_json(const struct tti_paths *paths, const struct tti_path *path)
{
	json_t *list = json_array();

	for (unsigned i = 0; list && i < path->nhops; i++)
		if (json_array_append_new(list, json_integer(paths->hops[path->first_hop + i]))) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

static json_t *path_json(const struct tti_routes *routes, uint32_t from, uint32_t to)
{
	const struct tti_path *path = tti_paths_get(routes->paths, from, to);
	const struct tti_route *route = tti_routes_get(routes, from, to);

	return json_pack("{s:I, s:I, s:s, s:f, s:f, s:o, s:{s:s, s:s, s:b, s:b, s:o, s:f, s:f}}",
			 "from", (json_int_t)from, "to", (json_int_t)to, "type",
			 tti_path_type_name((enum tti_path_type)path->type), "gbps",
			 (double)path->bw_gbps, "latency_ns", (double)path->latency_ns, "hops",
			 hops_json(routes->paths, path), "route", "type",
			 tti_path_type_name((enum tti_path_type)route->type), "why",
			 tti_print_route_why((enum tti_route_why)route->why), "p2p", route->p2p,
			 "gdr", route->gdr, "via", index_of(route->via), "gbps",
			 (double)route->bw_gbps, "latency_ns", (double)route->latency_ns);
}

static json_t *endpoint_json(const struct tti_graph *graph, uint32_t index)
{
	return json_pack("{s:I, s:s, s:o}", "id", (json_int_t)index, "type",
			 tti_node_type_name(graph->nodes[index].type), "name",
			 text(graph->nodes[index].name));
}

static json_t *endpoints_json(const struct tti_paths *paths)
{
	json_t *list = json_array();

	for (uint32_t i = 0; list && i < paths->n; i++)
		if (json_array_append_new(list, endpoint_json(paths->graph, paths->endpoints[i]))) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

/* -- Findings ----------------------------------------------------------------------- */

static json_t *finding_json(const struct tti_finding *finding)
{
	return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:f, s:f}", "rule",
			 text(finding->rule), "severity", tti_severity_name(finding->severity),
			 "node", index_of(finding->node), "place", text(finding->place), "what",
			 text(finding->what), "consequence", text(finding->consequence), "remedy",
			 text(finding->remedy), "have_gbps", finding->have_gbps, "want_gbps",
			 finding->want_gbps);
}

static json_t *findings_json(const struct tti_lint *lint)
{
	json_t *list = json_array();

	for (size_t i = 0; list && i < lint->n; i++)
		if (json_array_append_new(list, finding_json(&lint->at[i]))) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

/* -- Writing ------------------------------------------------------------------------ */

/* An object, key by key: of all paths of a large machine there is no tree in memory. */
struct writer {
	struct tti_strbuf *out;
	const char *comma;
};

/* Takes `json`. */
static void write_value(struct writer *writer, json_t *json)
{
	const size_t flags = JSON_COMPACT | JSON_REAL_PRECISION(9) | JSON_ENCODE_ANY;
	char *dumped = json ? json_dumps(json, flags) : NULL;

	if (dumped)
		tti_strbuf_add(writer->out, dumped);
	else
		writer->out->failed = true;
	free(dumped);
	json_decref(json);
}

static void write_key(struct writer *writer, const char *key)
{
	tti_strbuf_addf(writer->out, "%s\"%s\":", writer->comma, key);
	writer->comma = ",";
}

static void write_member(struct writer *writer, const char *key, json_t *json)
{
	write_key(writer, key);
	write_value(writer, json);
}

static void write_paths(struct writer *writer, const struct tti_routes *routes)
{
	const struct tti_paths *paths = routes->paths;

	write_key(writer, "paths");
	tti_strbuf_add(writer->out, routes->at ? "[" : "null");
	for (uint32_t i = 0; routes->at && i < paths->n; i++)
		for (uint32_t j = 0; j < paths->n && !writer->out->failed; j++) {
			if (i || j)
				tti_strbuf_add(writer->out, ",");
			write_value(writer,
				    path_json(routes, paths->endpoints[i], paths->endpoints[j]));
		}
	tti_strbuf_add(writer->out, routes->at ? "]" : "");
}

static struct writer open_object(struct tti_strbuf *out)
{
	struct writer writer = { .out = out, .comma = "" };

	tti_strbuf_add(out, "{");
	write_member(&writer, "format", json_integer(FORMAT));
	return writer;
}

static tutti_status close_object(struct writer *writer)
{
	tti_strbuf_add(writer->out, "}\n");
	if (writer->out->failed)
		return tti_fail(TUTTI_ENOMEM, "writing a topology as JSON: out of memory");
	return TUTTI_OK;
}

tutti_status tti_print_topo_json(const struct tti_routes *routes, const struct tti_lint *lint,
				 struct tti_strbuf *out)
{
	const struct tti_graph *graph = routes->paths->graph;
	const char *model = graph->model == TTI_MODEL_NCCL ? "nccl" : "tutti";
	struct writer writer = open_object(out);

	write_member(&writer, "source", text(graph->source));
	write_member(&writer, "model", json_string(model));
	write_member(&writer, "hosts", list_json(graph, graph->nhosts, host_json));
	write_member(&writer, "nodes", list_json(graph, graph->nnodes, node_json));
	write_member(&writer, "links", list_json(graph, graph->nlinks, link_json));
	write_member(&writer, "notes", list_json(graph, graph->nnotes, note_json));
	write_paths(&writer, routes);
	write_member(&writer, "findings", findings_json(lint));
	return close_object(&writer);
}

tutti_status tti_print_paths_json(const struct tti_routes *routes, struct tti_strbuf *out)
{
	struct writer writer;

	TTI_TRY(tti_routes_want_all(routes));
	writer = open_object(out);
	write_member(&writer, "endpoints", endpoints_json(routes->paths));
	write_paths(&writer, routes);
	return close_object(&writer);
}

tutti_status tti_print_lint_json(const struct tti_lint *lint, struct tti_strbuf *out)
{
	struct writer writer = open_object(out);

	write_member(&writer, "findings", findings_json(lint));
	return close_object(&writer);
}
