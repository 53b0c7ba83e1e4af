/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts of machines: which GPUs a list names, what goes with the others, what stays as it was. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "insight/lint/lint.h"
#include "insight/topo/subset.h"
#include "topo/tree/schema.h"
#include "util/error.h"

#define DIR TEST_DATA "/topologies/"

static struct tti_xml_doc *read_file(const char *path)
{
	struct tti_xml_doc *doc = NULL;

	assert_int_equal(tti_xml_read_file(path, &doc), TUTTI_OK);
	assert_int_equal(tti_schema_check(doc), TUTTI_OK);
	return doc;
}

static struct tti_graph *graph_of(const struct tti_xml_doc *doc)
{
	struct tti_graph *graph = NULL;

	if (tti_schema_check(doc) != TUTTI_OK ||
	    tti_graph_build(doc, TTI_MODEL_TUTTI, &graph) != TUTTI_OK ||
	    tti_graph_check(graph) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return graph;
}

static struct tti_graph *part_of(const char *file, const char *list)
{
	struct tti_xml_doc *doc = read_file(file);
	struct tti_graph *graph;

	if (tti_subset_gpus(doc, list) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	graph = graph_of(doc);
	tti_xml_free(doc);
	return graph;
}

/* "GPU0 GPU2 GPU5" */
static void expect_gpus(const char *file, const char *list, const char *names)
{
	struct tti_graph *graph = part_of(file, list);
	char all[256] = "";

	for (uint32_t i = 0; i < graph->ntype[TTI_NODE_GPU]; i++) {
		const char *name = graph->nodes[graph->by_type[TTI_NODE_GPU][i]].name;

		snprintf(all + strlen(all), sizeof(all) - strlen(all), "%s%s", i ? " " : "", name);
	}
	assert_string_equal(all, names);
	tti_graph_free(graph);
}

static void lists(void **state)
{
	static const char v100[] = DIR "Azure-azhpc-images__ndv2-topo.xml";

	(void)state;
	expect_gpus(v100, "0,2,5", "GPU0 GPU2 GPU5");
	expect_gpus(v100, "5,0,2", "GPU0 GPU2 GPU5");
	expect_gpus(v100, "GPU7,1-3", "GPU1 GPU2 GPU3 GPU7");
	expect_gpus(v100, "0003:00:00.0,0", "GPU0 GPU2");
	expect_gpus(v100, "0-7", "GPU0 GPU1 GPU2 GPU3 GPU4 GPU5 GPU6 GPU7");
	/* No driver has numbered these. */
	expect_gpus(DIR "aws-aws-ofi-nccl__p5.48xl-topo.xml", "2,6-7", "GPU2 GPU6 GPU7");
}

/* A V100 has six links, to four others; ranks have no gaps. */
static void links_and_ranks(void **state)
{
	struct tti_graph *graph = part_of(DIR "Azure-azhpc-images__ndv2-topo.xml", "0,2,5");
	const uint32_t *gpus = graph->by_type[TTI_NODE_GPU];
	const uint32_t first = graph->nodes[gpus[0]].parent;
	uint32_t nlinks = 0;

	(void)state;
	for (uint32_t i = 0; i < graph->nodes[first].nlinks; i++)
		nlinks += graph->links[graph->nodes[first].first_link + i].type == TTI_LINK_NVL;
	assert_int_equal(nlinks, 1);
	assert_non_null(tti_graph_link(graph, first, graph->nodes[gpus[1]].parent, TTI_LINK_NVL));
	for (uint32_t i = 0; i < graph->nnotes; i++)
		assert_int_not_equal(graph->notes[i].kind, TTI_NOTE_NO_TARGET);
	for (int i = 0; i < 3; i++)
		assert_int_equal(graph->nodes[gpus[i]].gpu.rank, i);
	tti_graph_free(graph);
}

static void refuse(const char *file, const char *list, const char *why)
{
	struct tti_xml_doc *doc = read_file(file);

	assert_int_equal(tti_subset_gpus(doc, list), TUTTI_EINVAL);
	if (!strstr(tti_error_text(), why))
		fail_msg("'%s' is not in '%s'", why, tti_error_text());
	tti_xml_free(doc);
}

static void what_is_not_there(void **state)
{
	static const char v100[] = DIR "Azure-azhpc-images__ndv2-topo.xml";

	(void)state;
	refuse(v100, "8", "GPUs '8': there is no such GPU: " DIR);
	refuse(v100, "0,8", "ndv2-topo.xml has GPU0-7");
	refuse(v100, "6-8", "GPUs '6-8': there is no such GPU");
	refuse(v100, "3-1", "GPUs '3-1': there is no such GPU");
	refuse(v100, "mlx5_0", "GPUs 'mlx5_0': there is no such GPU");
	refuse(v100, "", "GPUs '': there is no such GPU");
	refuse(v100, "0,", "GPUs '': there is no such GPU");
	refuse(v100, "1,GPU1", "GPUs 'GPU1': this GPU is named twice");
	refuse(v100, "0001:00:00.0,0-1", "GPUs '0-1': this GPU is named twice");
	refuse(v100, "0009:00:00.0", "has 0001:00:00.0, 0002:00:00.0,");
}

static void hosts_are_told_apart(void **state)
{
	static const char text[] = "<system version=\"1\">"
				   "<cpu numaid=\"0\" host_hash=\"0xa\"><pci "
				   "busid=\"0000:01:00.0\" class=\"0x030200\">"
				   "<gpu dev=\"0\" sm=\"90\"/></pci></cpu>"
				   "<cpu numaid=\"0\" host_hash=\"0xb\"><pci "
				   "busid=\"0000:01:00.0\" class=\"0x030200\">"
				   "<gpu dev=\"0\" sm=\"90\"/></pci></cpu></system>";
	static const char *const shared[] = { "0", "GPU0", "0000:01:00.0" };
	static const char *const full[] = { "0xb/0", "0xb/GPU0", "0xb/0-0" };

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct tti_xml_doc *doc = NULL;

		assert_int_equal(tti_xml_read(text, strlen(text), "two", &doc), TUTTI_OK);
		assert_int_equal(tti_subset_gpus(doc, shared[i]), TUTTI_EINVAL);
		assert_non_null(strstr(tti_error_text(), "several hosts have that"));
		assert_non_null(strstr(tti_error_text(), "two has 0xa/GPU0, 0xb/GPU0"));
		tti_xml_free(doc);
	}
	for (int i = 0; i < 3; i++) {
		struct tti_xml_doc *doc = NULL;

		assert_int_equal(tti_xml_read(text, strlen(text), "two", &doc), TUTTI_OK);
		assert_int_equal(tti_subset_gpus(doc, full[i]), TUTTI_OK);
		assert_string_equal(tti_xml_get(doc->root, "tutti_gpus"), "0xb/GPU0");
		assert_null(tti_xml_find(doc->root->first, "pci", NULL, NULL));
		assert_non_null(tti_xml_find(doc->root->last, "pci", NULL, NULL));
		tti_xml_free(doc);
	}
}

/* -- All files -------------------------------------------------------------------------- */

static struct tti_lint *lint_of(const struct tti_xml_doc *doc)
{
	struct tti_graph *graph = graph_of(doc);
	struct tti_paths *paths = NULL;
	struct tti_routes *routes = NULL;
	struct tti_lint *lint = NULL;

	assert_int_equal(tti_paths_build(graph, &paths), TUTTI_OK);
	assert_int_equal(tti_routes_build(paths, NULL, &routes), TUTTI_OK);
	assert_int_equal(tti_lint_run(doc, graph, paths, routes, &lint), TUTTI_OK);
	tti_routes_free(routes);
	tti_paths_free(paths);
	tti_graph_free(graph);
	return lint;
}

/* What is wrong with a part is wrong with the whole. */
static void expect_no_more_rules(const char *path, const struct tti_lint *whole,
				 const struct tti_lint *part)
{
	for (size_t i = 0; i < part->n; i++) {
		bool known = false;

		for (size_t k = 0; k < whole->n; k++)
			known |= !strcmp(whole->at[k].rule, part->at[i].rule);
		if (!known)
			fail_msg("%s: %s: %s", path, part->at[i].rule, part->at[i].what);
	}
}

/* Every step-th of the first `most` GPUs. */
static void try_file(const char *path, uint32_t most, uint32_t step)
{
	struct tti_xml_doc *doc = read_file(path), *copy = NULL;
	struct tti_graph *graph = graph_of(doc), *part;
	struct tti_lint *whole = lint_of(doc), *rest;
	const uint32_t ngpus = graph->ntype[TTI_NODE_GPU], n = ngpus < most ? ngpus : most;
	char list[512] = "";

	assert_int_equal(tti_xml_copy(doc, &copy), TUTTI_OK);
	for (uint32_t i = 0; i < n; i += step)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? "," : "",
			 graph->nodes[graph->by_type[TTI_NODE_GPU][i]].name);
	if (tti_subset_gpus(copy, list) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	part = graph_of(copy);
	assert_int_equal(part->ntype[TTI_NODE_GPU], (n + step - 1) / step);
	assert_int_equal(part->ntype[TTI_NODE_NET], graph->ntype[TTI_NODE_NET]);
	for (uint32_t i = 0; i < part->ntype[TTI_NODE_GPU]; i++)
		assert_string_equal(part->nodes[part->by_type[TTI_NODE_GPU][i]].name,
				    graph->nodes[graph->by_type[TTI_NODE_GPU][step * i]].name);
	rest = lint_of(copy);
	expect_no_more_rules(path, whole, rest);
	tti_lint_free(whole);
	tti_lint_free(rest);
	tti_graph_free(part);
	tti_graph_free(graph);
	tti_xml_free(copy);
	tti_xml_free(doc);
}

static void parts_of_every_file(void **state)
{
	glob_t files;

	(void)state;
	assert_int_equal(glob(DIR "*.xml", 0, NULL, &files), 0);
	for (size_t i = 0; i < files.gl_pathc; i++)
		for (uint32_t step = 1; step <= 2; step++)
			try_file(files.gl_pathv[i], step == 1 ? 2 : UINT32_MAX, step);
	globfree(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(links_and_ranks),
		cmocka_unit_test(what_is_not_there),
		cmocka_unit_test(hosts_are_told_apart),
		cmocka_unit_test(parts_of_every_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
