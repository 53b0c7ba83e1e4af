/* SPDX-License-Identifier: BSD-3-Clause */
#include "topo/graph/build.h"

#include "util/error.h"
#include "util/mem.h"

static tutti_status number_elements(struct tti_build *build)
{
	const struct tti_xml *node = build->doc->root;

	for (uint32_t n = 0; node; node = tti_xml_walk(node))
		if (!tti_map_put(&build->numbers, (uintptr_t)node, 0, n++))
			return tti_build_no_memory(build);
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

tutti_status tti_graph_build(const struct tti_xml_doc *doc, enum tti_model model,
			     struct tti_graph **out)
{
	struct tti_build build = { .doc = doc };
	tutti_status status;

	build.graph = tti_zalloc(sizeof(*build.graph));
	if (!build.graph)
		return tti_build_no_memory(&build);
	build.graph->model = model;
	build.graph->source = tti_arena_strdup(&build.graph->arena, doc->source);
	status = build.graph->source ? all_stages(&build) : tti_build_no_memory(&build);
	release(&build);
	if (status == TUTTI_OK)
		*out = build.graph;
	else
		tti_graph_free(build.graph);
	return status;
}
