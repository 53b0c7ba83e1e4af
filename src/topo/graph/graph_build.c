/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/graph_build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/mem.h"

static tutti_status out_of_memory(const struct tti_build *build)
{
	return tti_fail(TUTTI_ENOMEM, "no memory for the graph of %s", build->doc->source);
}

static char *format(struct tti_arena *arena, const char *fmt, va_list args)
{
	va_list again;
	char *text;
	int len;

	va_copy(again, args);
	len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	text = len < 0 ? NULL : tti_arena_alloc(arena, (size_t)len + 1);
	if (text)
		vsnprintf(text, (size_t)len + 1, fmt, args);
	return text;
}

tutti_status tti_build_node(struct tti_build *build, enum tti_node_type type,
			    const struct tti_xml *xml, uint32_t host, uint32_t *out,
			    const char *name, ...)
{
	struct tti_node node = {
		.type = type,
		.host = host,
		.parent = TTI_NODE_NONE,
		.line = xml ? xml->line : 0,
		.element = xml ? tti_map_get(&build->numbers, (uintptr_t)xml, 0) : TTI_NODE_NONE,
		.pci = { .busid = TTI_BUSID_NONE },
	};
	va_list args;

	va_start(args, name);
	node.name = format(&build->graph->arena, name, args);
	va_end(args);
	if (!node.name || !tti_vec_push(&build->nodes, node))
		return out_of_memory(build);
	*out = (uint32_t)(build->nodes.n - 1);
	return TUTTI_OK;
}

tutti_status tti_build_half(struct tti_build *build, struct tti_half half)
{
	return tti_vec_push(&build->halves, half) ? TUTTI_OK : out_of_memory(build);
}

tutti_status tti_build_link(struct tti_build *build, struct tti_half half)
{
	struct tti_half back = half;

	back.from = half.to;
	back.to = half.from;
	TTI_TRY(tti_build_half(build, half));
	return tti_build_half(build, back);
}

tutti_status tti_build_note(struct tti_build *build, enum tti_note_kind kind, uint32_t node,
			    uint32_t peer, const struct tti_xml *xml, const char *fmt, ...)
{
	struct tti_note note = {
		.kind = kind,
		.node = node,
		.peer = peer,
		.line = xml ? xml->line : 0,
	};
	va_list args;

	va_start(args, fmt);
	note.text = format(&build->graph->arena, fmt, args);
	va_end(args);
	if (!note.text || !tti_vec_push(&build->notes, note))
		return out_of_memory(build);
	return TUTTI_OK;
}

tutti_status tti_build_text(struct tti_build *build, const struct tti_xml *xml, const char *attr,
			    const char *missing, const char **out)
{
	const char *text = tti_xml_get(xml, attr);

	*out = missing;
	if (!text)
		return TUTTI_OK;
	*out = tti_arena_strdup(&build->graph->arena, text);
	return *out ? TUTTI_OK : out_of_memory(build);
}

/* -- The whole ----------------------------------------------------------------------- */

static tutti_status number_elements(struct tti_build *build)
{
	const struct tti_xml *node = build->doc->root;

	for (uint32_t n = 0; node; node = tti_xml_walk(node))
		if (!tti_map_put(&build->numbers, (uintptr_t)node, 0, n++))
			return out_of_memory(build);
	return TUTTI_OK;
}

static tutti_status all_stages(struct tti_build *build)
{
	TTI_TRY(number_elements(build));
	TTI_TRY(tti_build_cpus(build));
	TTI_TRY(tti_build_sockets(build));
	for (size_t i = 0; i < build->cpus.n; i++)
		TTI_TRY(tti_build_pci(build, &build->cpus.at[i]));
	TTI_TRY(tti_build_nvlinks(build));
	TTI_TRY(tti_build_pcilinks(build));
	TTI_TRY(tti_build_seal(build));
	return tti_graph_check(build->graph);
}

static void release(struct tti_build *build)
{
	tti_vec_release(&build->nodes);
	tti_vec_release(&build->halves);
	tti_vec_release(&build->notes);
	tti_vec_release(&build->hosts);
	tti_vec_release(&build->cpus);
	tti_vec_release(&build->gpus);
	tti_vec_release(&build->links);
	tti_map_release(&build->host_of);
	tti_map_release(&build->by_busid);
	tti_map_release(&build->functions);
	tti_intern_release(&build->virtuals);
	tti_map_release(&build->cards);
	tti_map_release(&build->numbers);
	tti_map_release(&build->fabrics);
}

tutti_status tti_graph_build(const struct tti_xml_doc *doc, const struct tti_graph_config *config,
			     struct tti_graph **out)
{
	struct tti_build build = { .doc = doc };
	tutti_status status;

	if (config)
		build.config = *config;
	build.graph = tti_zalloc(sizeof(*build.graph));
	if (!build.graph)
		return out_of_memory(&build);
	build.graph->model = build.config.model;
	build.graph->source = tti_arena_strdup(&build.graph->arena, doc->source);
	status = build.graph->source ? all_stages(&build) : out_of_memory(&build);
	release(&build);
	if (status == TUTTI_OK)
		*out = build.graph;
	else
		tti_graph_free(build.graph);
	return status;
}
