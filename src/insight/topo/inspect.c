/* SPDX-License-Identifier: BSD-3-Clause */
#include "insight/topo/inspect.h"
#include "insight/lint/lint.h"
#include "insight/topo/paths_check.h"
#include "topo/graph/diff.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "insight/print/print.h"
#include "insight/print/print_words.h"
#include "insight/topo/pci_ids.h"
#include "insight/topo/subset.h"
#include "topo/detect/detect.h"
#include "topo/tree/overlay.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/mem.h"
#include "util/params.h"

/* Sealed: nothing changes it once tutti_topo_load() has given it away. */
struct tutti_topo {
	struct tti_xml_doc *doc;
	struct tti_graph *graph;
	struct tti_paths *paths;
	struct tti_routes *routes;
	struct tti_lint *lint;
};

/* -- Loading ---------------------------------------------------------------------- */

static tutti_status read_config(const struct tutti_topo_config *given,
				struct tutti_topo_config *out)
{
	*out = (struct tutti_topo_config)TUTTI_TOPO_CONFIG_INIT;
	if (!given)
		return TUTTI_OK;
	if (given->size < offsetof(struct tutti_topo_config, name))
		return tti_fail(TUTTI_EINVAL,
				"config.size is %zu: begin with TUTTI_TOPO_CONFIG_INIT",
				given->size);
	memcpy(out, given, given->size < sizeof(*out) ? given->size : sizeof(*out));
	out->size = sizeof(*out);
	if (out->xml_file && out->sysfs_root && !out->detect)
		return tti_fail(TUTTI_EINVAL,
				"both a topology file (%s) and a captured machine (%s): set detect "
				"to lay the file over the machine, or give one of them",
				out->xml_file, out->sysfs_root);
	return TUTTI_OK;
}

/* The file over what is detected; takes `under`. */
static tutti_status lay_over(struct tti_xml_doc *under, const char *path, struct tti_xml_doc **out)
{
	struct tti_xml_doc *over = NULL;
	tutti_status status = tti_xml_read_file(path, &over);

	if (!status)
		status = tti_schema_check(over);
	if (!status)
		status = tti_overlay(under, over, out);
	tti_xml_free(over);
	tti_xml_free(under);
	return status;
}

static tutti_status load_doc(const struct tutti_topo_config *config, struct tti_xml_doc **out)
{
	const struct tti_param_values *params = tti_params();
	const bool of_environment = !config->xml_file && !config->sysfs_root;
	const struct tti_detect_config detect = {
		.sysfs_root = config->sysfs_root ? config->sysfs_root : params->sysfs_root,
		.all = config->all,
		.measure = config->measure,
	};
	const char *over = of_environment ? params->topo_file : config->xml_file;
	struct tti_xml_doc *detected;

	if (config->xml_file && !config->detect)
		return tti_xml_read_file(config->xml_file, out);
	if (of_environment && !config->all && !config->measure)
		return tti_detect_this_machine(out);
	TTI_TRY(tti_detect_machine(&detect, &detected));
	if (over)
		return lay_over(detected, over, out);
	*out = detected;
	return TUTTI_OK;
}

static tutti_status rename_doc(struct tti_xml_doc *doc, const char *name)
{
	const char *copy = name ? tti_arena_strdup(&doc->arena, name) : doc->source;

	if (!copy)
		return tti_fail(TUTTI_ENOMEM, "topology %s: out of memory", name);
	doc->source = copy;
	return TUTTI_OK;
}

/* Each stage is proven before the next one builds on it. */
static tutti_status build(struct tutti_topo *topo, const struct tutti_topo_config *config)
{
	const struct tti_routes_config routes_config = tti_routes_config_from_params();

	TTI_TRY(load_doc(config, &topo->doc));
	TTI_TRY(rename_doc(topo->doc, config->name));
	TTI_TRY(tti_schema_check(topo->doc));
	if (config->gpus)
		TTI_TRY(tti_subset_gpus(topo->doc, config->gpus));
	TTI_TRY(tti_graph_build(topo->doc, config->nccl_model ? TTI_MODEL_NCCL : TTI_MODEL_TUTTI,
				&topo->graph));
	TTI_TRY(tti_pci_ids_name(topo->graph, tti_params()->pci_ids));
	TTI_TRY(tti_graph_check(topo->graph));
	if (topo->graph->nlinks > INT_MAX || topo->graph->nnodes > INT_MAX)
		return tti_fail(TUTTI_EUNSUPPORTED, "%s: more than %d nodes or links",
				topo->doc->source, INT_MAX);
	TTI_TRY(tti_paths_build(topo->graph, &topo->paths));
	TTI_TRY(tti_paths_check(topo->paths));
	TTI_TRY(tti_routes_build(topo->paths, &routes_config, &topo->routes));
	return tti_lint_run(topo->doc, topo->graph, topo->paths, topo->routes, &topo->lint);
}

tutti_status tutti_topo_load(const struct tutti_topo_config *given, tutti_topo_t *out)
{
	struct tutti_topo_config config;
	struct tutti_topo *topo;
	tutti_status status;

	if (!out)
		return tti_fail(TUTTI_EINVAL, "tutti_topo_load: out is NULL");
	*out = NULL;
	TTI_TRY(read_config(given, &config));
	topo = tti_zalloc(sizeof(*topo));
	if (!topo)
		return tti_fail(TUTTI_ENOMEM, "tutti_topo_load: out of memory");
	status = build(topo, &config);
	if (status) {
		tutti_topo_free(topo);
		return status;
	}
	*out = topo;
	return TUTTI_OK;
}

void tutti_topo_free(tutti_topo_t topo)
{
	if (!topo)
		return;
	tti_lint_free(topo->lint);
	tti_routes_free(topo->routes);
	tti_paths_free(topo->paths);
	tti_graph_free(topo->graph);
	tti_xml_free(topo->doc);
	tti_free(topo);
}

static tutti_status take_ranks(const struct tutti_topo *whole, struct tutti_topo *part)
{
	const struct tti_routes_config routes_config = tti_routes_config_from_params();

	TTI_TRY(tti_xml_copy(whole->doc, &part->doc));
	TTI_TRY(tti_subset_ranks(part->doc, whole->graph));
	TTI_TRY(tti_graph_build(part->doc, whole->graph->model, &part->graph));
	TTI_TRY(tti_pci_ids_name(part->graph, tti_params()->pci_ids));
	TTI_TRY(tti_paths_build(part->graph, &part->paths));
	return tti_routes_build(part->paths, &routes_config, &part->routes);
}

tutti_status tti_topo_of_ranks(tutti_topo_t whole, tutti_topo_t *out)
{
	struct tutti_topo *part;
	tutti_status st;

	*out = NULL;
	if (!tti_subset_has_ranks(whole->graph))
		return TUTTI_OK;
	part = tti_zalloc(sizeof(*part));
	if (!part)
		return tti_fail(TUTTI_ENOMEM, "GPUs with ranks: out of memory");
	st = take_ranks(whole, part);
	if (st == TUTTI_OK)
		*out = part;
	else
		tutti_topo_free(part);
	return st;
}

const struct tti_xml_doc *tti_topo_doc(tutti_topo_t topo)
{
	return topo->doc;
}

const struct tti_routes *tti_topo_routes(tutti_topo_t topo)
{
	return topo->routes;
}

/* -- Printing --------------------------------------------------------------------- */

static tutti_status print(const struct tutti_topo *topo, tutti_topo_format format,
			  const struct tti_print_config *config, struct tti_strbuf *out)
{
	switch (format) {
	case TUTTI_TOPO_TREE:
		tti_print_tree(topo->graph, config, out);
		return TUTTI_OK;
	case TUTTI_TOPO_XML:
		tti_xml_write(topo->doc, out);
		return TUTTI_OK;
	case TUTTI_TOPO_JSON:
		return tti_print_topo_json(topo->routes, topo->lint, out);
	case TUTTI_TOPO_DOT:
		tti_print_dot(topo->routes, topo->lint, out);
		return TUTTI_OK;
	case TUTTI_TOPO_PATHS:
		return tti_print_paths(topo->routes, config, out);
	case TUTTI_TOPO_PATHS_JSON:
		return tti_print_paths_json(topo->routes, out);
	case TUTTI_TOPO_LINT:
		tti_print_lint(topo->lint, config, out);
		return TUTTI_OK;
	case TUTTI_TOPO_LINT_JSON:
		return tti_print_lint_json(topo->lint, out);
	default:
		return tti_fail(TUTTI_EINVAL, "there is no format %d of a topology", (int)format);
	}
}

tutti_status tutti_topo_print(tutti_topo_t topo, tutti_topo_format format, unsigned flags,
			      char **out)
{
	const struct tti_print_config config = {
		.color = flags & TUTTI_TOPO_COLOR,
		.utf8 = flags & TUTTI_TOPO_UTF8,
	};
	struct tti_strbuf buf = { 0 };

	if (!topo || !out)
		return tti_fail(TUTTI_EINVAL, "tutti_topo_print: topo or out is NULL");
	*out = NULL;
	return tti_print_take(print(topo, format, &config, &buf), &buf, "printing a topology", out);
}

tutti_status tutti_topo_diff(tutti_topo_t a, tutti_topo_t b, char **out, int *ndiffs_out)
{
	struct tti_strbuf buf = { 0 };
	tutti_status status;
	size_t ndiffs = 0;

	if (!a || !b || !out || !ndiffs_out)
		return tti_fail(TUTTI_EINVAL, "tutti_topo_diff: an argument is NULL");
	*out = NULL;
	*ndiffs_out = 0;
	status = tti_print_take(tti_topo_diff(a->graph, b->graph, &buf, &ndiffs), &buf,
				"printing a topology", out);
	if (!status)
		*ndiffs_out = ndiffs < INT_MAX ? (int)ndiffs : INT_MAX;
	return status;
}

/* -- Looking ---------------------------------------------------------------------- */

int tutti_topo_node_count(tutti_topo_t topo)
{
	return topo ? (int)topo->graph->nnodes : 0;
}

int tutti_topo_link_count(tutti_topo_t topo)
{
	return topo ? (int)topo->graph->nlinks : 0;
}

int tutti_topo_finding_count(tutti_topo_t topo)
{
	return topo ? (int)topo->lint->n : 0;
}

static tutti_status check_index(const char *what, const void *out, int index, int count)
{
	if (!out)
		return tti_fail(TUTTI_EINVAL, "tutti_topo_get_%s: out is NULL", what);
	if (index < 0 || index >= count)
		return tti_fail(TUTTI_EINVAL, "there is no %s %d: this topology has %d", what,
				index, count);
	return TUTTI_OK;
}

/* A node index as the API has it. */
static int public_index(uint32_t node)
{
	return node == TTI_NODE_NONE ? -1 : (int)node;
}

tutti_status tutti_topo_get_node(tutti_topo_t topo, int index, struct tutti_topo_node *out)
{
	const struct tti_node *node;

	TTI_TRY(check_index("node", out, index, tutti_topo_node_count(topo)));
	node = &topo->graph->nodes[index];
	*out = (struct tutti_topo_node){
		.type = tti_node_type_name(node->type),
		.name = node->name,
		.host = topo->graph->nhosts > 1 ? topo->graph->hosts[node->host] : "",
		.parent = public_index(node->parent),
		.numaid = node->type == TTI_NODE_CPU ? (int)node->cpu.numaid : -1,
		.rank = node->type == TTI_NODE_GPU ? node->gpu.rank : -1,
		.sm = node->type == TTI_NODE_GPU ? node->gpu.sm : 0,
		.class_code = node->pci.class_code,
	};
	/* A NET hangs on its NIC by one link, that of its speed. */
	for (uint32_t i = 0; node->type == TTI_NODE_NET && i < node->nlinks; i++)
		if (topo->graph->links[node->first_link + i].type == TTI_LINK_NET)
			out->net_gbps = (double)topo->graph->links[node->first_link + i].bw_gbps;
	return TUTTI_OK;
}

tutti_status tutti_topo_get_link(tutti_topo_t topo, int index, struct tutti_topo_link *out)
{
	const struct tti_topo_link *link;

	TTI_TRY(check_index("link", out, index, tutti_topo_link_count(topo)));
	link = &topo->graph->links[index];
	*out = (struct tutti_topo_link){
		.from = (int)link->from,
		.to = (int)link->to,
		.type = tti_link_type_name(link->type),
		.count = link->count,
		.gbps = (double)link->bw_gbps,
		.latency_ns = (double)link->latency_ns,
	};
	return TUTTI_OK;
}

tutti_status tutti_topo_get_finding(tutti_topo_t topo, int index, struct tutti_topo_finding *out)
{
	const struct tti_finding *finding;

	TTI_TRY(check_index("finding", out, index, tutti_topo_finding_count(topo)));
	finding = &topo->lint->at[index];
	*out = (struct tutti_topo_finding){
		.rule = finding->rule,
		.severity = tti_severity_name(finding->severity),
		.place = finding->place,
		.what = finding->what,
		.consequence = finding->consequence,
		.remedy = finding->remedy,
		.have_gbps = finding->have_gbps,
		.want_gbps = finding->want_gbps,
	};
	return TUTTI_OK;
}

static tutti_status check_endpoint(const struct tutti_topo *topo, const void *out, int index)
{
	TTI_TRY(check_index("node", out, index, (int)topo->graph->nnodes));
	if (topo->paths->index[index] == TTI_NODE_NONE)
		return tti_fail(TUTTI_EINVAL,
				"node %d is %s, a %s: paths lead between GPU, HOST and NET", index,
				topo->graph->nodes[index].name,
				tti_node_type_name(topo->graph->nodes[index].type));
	return TUTTI_OK;
}

tutti_status tutti_topo_get_path(tutti_topo_t topo, int from, int to, struct tutti_topo_path *out)
{
	const struct tti_path *path;
	const struct tti_route *route;

	if (!topo)
		return tti_fail(TUTTI_EINVAL, "tutti_topo_get_path: topo is NULL");
	TTI_TRY(check_endpoint(topo, out, from));
	TTI_TRY(check_endpoint(topo, out, to));
	path = tti_paths_get(topo->paths, (uint32_t)from, (uint32_t)to);
	route = path ? tti_routes_get(topo->routes, (uint32_t)from, (uint32_t)to) : NULL;
	if (!route) /* said why */
		return TUTTI_ENOMEM;
	*out = (struct tutti_topo_path){
		.type = tti_path_type_name((enum tti_path_type)path->type),
		.route = tti_path_type_name((enum tti_path_type)route->type),
		.why = tti_print_route_why((enum tti_route_why)route->why),
		.gdr = route->gdr,
		.via = public_index(route->via),
		.nhops = path->nhops,
		.wire_gbps = (double)path->bw_gbps,
		.gbps = (double)route->bw_gbps,
		.latency_ns = (double)route->latency_ns,
	};
	return TUTTI_OK;
}

int tutti_topo_find(tutti_topo_t topo, const char *type, const char *name)
{
	if (!topo || !type || !name)
		return -1;
	for (int i = TTI_NODE_GPU; i <= TTI_NODE_NIC; i++)
		if (!strcmp(tti_node_type_name((enum tti_node_type)i), type))
			return public_index(
				tti_graph_find(topo->graph, (enum tti_node_type)i, name));
	return -1;
}
