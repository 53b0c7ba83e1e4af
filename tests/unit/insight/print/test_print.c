/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrix of paths, findings, JSON and picture. What they say of each topology there is
 * stands in tests/golden/topo; here is why. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "insight/lint/lint.h"
#include "insight/print/path_matrix.h"
#include "insight/print/print.h"
#include "topo/tree/schema.h"
#include "util/error.h"

struct built {
	struct tti_xml_doc *doc;
	struct tti_graph *graph;
	struct tti_paths *paths;
	struct tti_routes *routes;
	struct tti_lint *lint;
};

static const struct tti_print_config plain = { .color = false, .utf8 = false };

static void good(tutti_status status)
{
	if (status != TUTTI_OK)
		fail_msg("%s", tti_error_text());
}

static struct built build(struct tti_xml_doc *doc)
{
	const struct tti_routes_config config = tti_routes_config_from_params();
	struct built built = { .doc = doc };

	good(tti_schema_check(doc));
	good(tti_graph_build(doc, TTI_MODEL_TUTTI, &built.graph));
	good(tti_paths_build(built.graph, &built.paths));
	good(tti_routes_build(built.paths, &config, &built.routes));
	good(tti_lint_run(doc, built.graph, built.paths, built.routes, &built.lint));
	return built;
}

static struct built build_file(const char *name)
{
	struct tti_xml_doc *doc = NULL;
	char path[512];

	snprintf(path, sizeof(path), "%s/topologies/%s", TEST_DATA, name);
	good(tti_xml_read_file(path, &doc));
	return build(doc);
}

static struct built build_text(const char *text)
{
	struct tti_xml_doc *doc = NULL;

	good(tti_xml_read(text, strlen(text), "text.xml", &doc));
	return build(doc);
}

static void release(struct built *built)
{
	tti_lint_free(built->lint);
	tti_routes_free(built->routes);
	tti_paths_free(built->paths);
	tti_graph_free(built->graph);
	tti_xml_free(built->doc);
}

/* A rack of NVLink: hosts of 4 GPUs and 8 NICs. */
static struct built build_rack(int nhosts)
{
	struct tti_strbuf xml = { 0 };
	struct built built;

	tti_strbuf_add(&xml, "<system version='1'>");
	for (int i = 0; i < nhosts * 2; i++) {
		tti_strbuf_addf(&xml,
				"<cpu host_hash='0x%x' numaid='%d' affinity='%s' arch='arm64'>",
				i / 2 + 1, i % 2, i % 2 ? "ffff0000" : "ffff");
		for (int k = i % 2 * 2; k < i % 2 * 2 + 2; k++)
			tti_strbuf_addf(
				&xml,
				"<pci busid='%04x:01:00.0' class='0x060400' link_speed='32 GT/s' "
				"link_width='16'>"
				"<pci busid='%04x:03:00.0' class='0x020700' link_speed='32 GT/s' "
				"link_width='16'><nic><net name='mlx5_%d' dev='%d' speed='400000' "
				"guid='0x%x' gdr='1'/></nic></pci>"
				"<pci busid='%04x:04:00.0' class='0x020700' link_speed='32 GT/s' "
				"link_width='16'><nic><net name='mlx5_%d' dev='%d' speed='400000' "
				"guid='0x%x' gdr='1'/></nic></pci>"
				"<pci busid='%04x:09:00.0' class='0x030200' link_speed='32 GT/s' "
				"link_width='16'><gpu dev='%d' sm='100' rank='%d' gdr='1'>"
				"<nvlink target='fffffff:ff:ff.0' count='18' tclass='0x068000'/>"
				"</gpu></pci></pci>",
				(unsigned)k, (unsigned)k, 2 * k, i / 2 * 8 + 2 * k,
				(unsigned)(i / 2 * 8 + 2 * k + 1), (unsigned)k, 2 * k + 1,
				i / 2 * 8 + 2 * k + 1, (unsigned)(i / 2 * 8 + 2 * k + 2),
				(unsigned)k, k, i / 2 * 4 + k);
		tti_strbuf_add(&xml, "</cpu>");
	}
	tti_strbuf_add(&xml, "</system>");
	assert_false(xml.failed);
	built = build_text(xml.text);
	tti_strbuf_release(&xml);
	return built;
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static size_t count_of(const char *text, const char *word)
{
	size_t n = 0;

	for (; (text = strstr(text, word)) != NULL; text += strlen(word))
		n++;
	return n;
}

/* -- Groups ------------------------------------------------------------------------- */

/* 8 GPUs with 4 NICs each: what would be 40 columns. */
static void nics_beside_one_gpu_are_alike(void **state)
{
	struct built built = build_file("aws-aws-ofi-nccl__p5.48xl-topo.xml");
	struct tti_path_matrix matrix;

	(void)state;
	good(tti_path_matrix_find(built.routes, &matrix));
	assert_int_equal(matrix.n, 16);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(matrix.at[i].n, 1);
	for (uint32_t i = 8; i < 16; i++)
		assert_int_equal(matrix.at[i].n, 4);
	assert_string_equal(matrix.at[8].label, "NIC0");
	tti_path_matrix_release(&matrix);
	release(&built);
}

/* Whatever the groups are, a cell stands for each pair of its members. */
static void a_cell_is_true_of_all_members(void **state)
{
	struct built built = build_rack(4);
	struct tti_path_matrix matrix;

	(void)state;
	good(tti_path_matrix_find(built.routes, &matrix));
	for (uint32_t i = 0; i < matrix.n; i++)
		for (uint32_t j = 0; j < matrix.n; j++) {
			const struct tti_matrix_cell cell = tti_matrix_cell(&matrix, i, j);
			const struct tti_matrix_group *a = &matrix.at[i], *b = &matrix.at[j];

			for (uint32_t k = 0; k < a->n * b->n; k++) {
				const uint32_t from = a->nodes[k / b->n], to = b->nodes[k % b->n];
				const struct tti_route *route;

				if (from == to)
					continue;
				route = tti_routes_get(built.routes, from, to);
				assert_int_equal(tti_paths_get(built.paths, from, to)->type,
						 cell.path->type);
				assert_int_equal(route->type, cell.route->type);
				assert_int_equal(route->why, cell.route->why);
				assert_true(route->bw_gbps >= cell.route->bw_gbps &&
					    route->bw_gbps <= cell.route->bw_gbps);
			}
		}
	tti_path_matrix_release(&matrix);
	release(&built);
}

/* -- Paths -------------------------------------------------------------------------- */

static void the_matrix_is_that_of_nvidia_smi(void **state)
{
	static const char machine[] =
		"<system version='1'><cpu numaid='0' affinity='f' arch='x86_64' "
		"vendor='AuthenticAMD' familyid='25' modelid='17'>"
		"<pci busid='0000:01:00.0' class='0x060400' link_speed='16 GT/s' link_width='16'>"
		"<pci busid='0000:02:00.0' class='0x030200' link_speed='16 GT/s' link_width='16'>"
		"<gpu dev='0' sm='80' rank='0' gdr='1'>"
		"<nvlink target='0000:04:00.0' count='4' tclass='0x030200'/></gpu></pci>"
		"<pci busid='0000:03:00.0' class='0x020700' link_speed='16 GT/s' link_width='16'>"
		"<nic><net name='ib0' dev='0' speed='100000' gdr='1'/></nic></pci></pci>"
		"<pci busid='0000:04:00.0' class='0x030200' link_speed='16 GT/s' link_width='16'>"
		"<gpu dev='1' sm='80' rank='1' gdr='0'>"
		"<nvlink target='0000:02:00.0' count='4' tclass='0x030200'/></gpu></pci>"
		"</cpu></system>";
	static const char matrix[] = "      GPU0  GPU1  ib0   CPU affinity  NUMA\n"
				     "GPU0  X     NV4   PIX   0-3           0\n"
				     "GPU1  NV4   X     PHB*  0-3           0\n"
				     "ib0   PIX   PHB+  X     0-3           0\n"
				     "\nGB/s\n"
				     "      GPU0   GPU1   ib0\n"
				     "GPU0  X      80.0   12.5\n"
				     "GPU1  80.0   X      12.5*\n"
				     "ib0   12.5   12.5+  X\n";
	struct built built = build_text(machine);
	struct tti_strbuf out = { 0 };

	(void)state;
	good(tti_print_paths(built.routes, &plain, &out));
	assert_memory_equal(out.text, matrix, strlen(matrix));
	/* Each sign and each type has its line, and no other has. */
	assert_non_null(strstr(out.text, "\n*    a GPU beside the NIC hands it over\n"));
	assert_non_null(strstr(out.text, "\n+    the GPU does not support GPUDirect RDMA"));
	assert_int_equal(count_of(out.text, "\nNV#  "), 1);
	assert_null(strstr(out.text, "\nSYS "));
	tti_strbuf_release(&out);
	release(&built);
}

static void a_rack_fits_on_a_screen(void **state)
{
	struct built built = build_rack(18);
	struct tti_strbuf out = { 0 };

	(void)state;
	good(tti_print_paths(built.routes, &plain, &out));
	assert_false(out.failed);
	assert_true(count_lines(out.text) < 40);
	assert_non_null(strstr(out.text, "GPU1-3, 68 GPUs of 17 other hosts\n"));
	assert_non_null(strstr(out.text, "  PIX     48.0 GB/s  mlx5_0-1\n"));
	assert_non_null(strstr(out.text, "136 NICs of 17 other hosts\n"));
	tti_strbuf_release(&out);
	release(&built);
}

/* 12,000 NICs: no table of 144 million paths, but all else. */
static void too_many_pairs_are_refused_in_words(void **state)
{
	struct tti_strbuf xml = { 0 }, out = { 0 };
	struct built built;
	json_t *root;

	(void)state;
	tti_strbuf_add(&xml, "<system version='1'><cpu numaid='0' affinity='1'><nic>");
	for (int i = 0; i < 12000; i++)
		tti_strbuf_addf(&xml, "<net name='n%d' dev='%d' speed='100000'/>", i, i);
	tti_strbuf_add(&xml, "</nic></cpu></system>");
	built = build_text(xml.text);
	assert_int_equal(tti_print_paths(built.routes, &plain, &out), TUTTI_EUNSUPPORTED);
	assert_int_equal(tti_print_paths_json(built.routes, &out), TUTTI_EUNSUPPORTED);
	good(tti_print_topo_json(built.routes, built.lint, &out));
	root = json_loads(out.text, 0, NULL);
	assert_true(json_is_null(json_object_get(root, "paths")));
	json_decref(root);
	tti_strbuf_release(&out);
	tti_print_dot(built.routes, built.lint, &out);
	assert_false(out.failed);
	tti_strbuf_release(&out);
	tti_strbuf_release(&xml);
	release(&built);
}

static void nothing_has_no_paths(void **state)
{
	struct built built = build_text("<system version='1'></system>");
	struct tti_strbuf out = { 0 };

	(void)state;
	good(tti_print_paths(built.routes, &plain, &out));
	assert_non_null(strstr(out.text, "there are no paths"));
	tti_strbuf_release(&out);
	tti_print_dot(built.routes, built.lint, &out);
	assert_false(out.failed);
	tti_strbuf_release(&out);
	release(&built);
}

/* -- Findings ----------------------------------------------------------------------- */

static void one_heading_per_rule(void **state)
{
	struct built built = build_file("aws-aws-ofi-nccl__p5.48xl-topo.xml");
	struct tti_strbuf out = { 0 };

	(void)state;
	tti_print_lint(built.lint, &plain, &out);
	assert_int_equal(count_of(out.text, "warning pci-uplink-narrow: "), 1);
	/* Equal findings of eight switches, in one line, with all of their names. */
	assert_int_equal(count_of(out.text, "narrower than"), 1);
	assert_non_null(strstr(out.text, "GPU0-7: "));
	for (size_t i = 0; i < built.lint->n; i++)
		assert_non_null(strstr(out.text, built.lint->at[i].name));
	tti_strbuf_release(&out);
	release(&built);
}

static void equal_findings_are_one_line(void **state)
{
	struct tti_strbuf text = { 0 }, out = { 0 };
	struct built built;

	(void)state;
	tti_strbuf_add(&text, "<system version=\"1\"><cpu numaid=\"0\" affinity=\"ff\">");
	for (int i = 0; i < 12; i++)
		tti_strbuf_addf(&text,
				"<pci busid=\"0000:%02x:00.0\" vendor=\"%s\" class=\"0x030200\" "
				"link_speed=\"16.0 GT/s PCIe\" link_width=\"%d\">"
				"<gpu dev=\"%d\" sm=\"80\" gdr=\"0\"/></pci>",
				i + 1, i < 8 ? "0x10de" : "0x1002", i == 3 ? 8 : 16,
				i < 2 ? i : i + 1);
	tti_strbuf_add(&text, "<pci busid=\"0000:41:00.0\" link_speed=\"32.0 GT/s PCIe\" "
			      "link_width=\"16\"><nic><net name=\"n0\" dev=\"0\" "
			      "speed=\"400000\" gdr=\"1\"/></nic></pci></cpu></system>");
	built = build_text(text.text);
	tti_print_lint(built.lint, &plain, &out);
	/* Not the one with other figures, nor those of another vendor. */
	assert_int_equal(count_of(out.text, "NICs cannot reach its memory"), 3);
	assert_non_null(strstr(out.text, ": GPU GPU0, GPU1, GPU3, GPU5-8: NICs cannot"));
	assert_non_null(strstr(out.text, "\n    GPU0, GPU1, GPU3, GPU5-8 to n0 is copied"));
	assert_non_null(strstr(out.text, ": GPU GPU4: NICs cannot"));
	assert_non_null(strstr(out.text, ": GPU GPU9-12: NICs cannot"));
	tti_strbuf_release(&text);
	tti_strbuf_release(&out);
	release(&built);
}

/* -- JSON --------------------------------------------------------------------------- */

static void expect_keys(json_t *object, const char *keys)
{
	struct tti_strbuf got = { 0 };
	const char *key;
	json_t *value;

	json_object_foreach(object, key, value) tti_strbuf_addf(&got, "%s ", key);
	assert_string_equal(got.text, keys);
	tti_strbuf_release(&got);
}

static void json_says_what_a_numa_node_has(void **state)
{
	struct built built = build_text(
		"<system version='1'><cpu numaid='0' affinity='0000ffff,0000ffff' arch='x86_64' "
		"tutti_mem_mib='1024'/></system>");
	struct tti_strbuf out = { 0 };
	json_t *root, *cpu;

	(void)state;
	good(tti_print_topo_json(built.routes, built.lint, &out));
	root = json_loads(out.text, 0, NULL);
	assert_non_null(root);
	cpu = json_object_get(json_array_get(json_object_get(root, "nodes"), 0), "cpu");
	expect_keys(cpu,
		    "numaid socket sockets socket_assumed affinity cpus arch vendor family model "
		    "model_name mem_mib mem_gbps mem_ns mem_measured mem_source ");
	assert_string_equal(json_string_value(json_object_get(cpu, "cpus")), "0-15,32-47");
	assert_int_equal(json_integer_value(json_object_get(cpu, "mem_mib")), 1024);
	assert_string_equal(json_string_value(json_object_get(cpu, "mem_source")), "estimate");
	json_decref(root);
	tti_strbuf_release(&out);
	release(&built);
}

static void json_holds_everything_in_order(void **state)
{
	struct built built = build_file("azhpc-images__ndv4-topo.xml");
	struct tti_strbuf out = { 0 };
	json_t *root, *path;

	(void)state;
	good(tti_print_topo_json(built.routes, built.lint, &out));
	root = json_loads(out.text, 0, NULL);
	assert_non_null(root);
	expect_keys(root, "format source model hosts nodes links notes paths findings ");
	assert_int_equal(json_array_size(json_object_get(root, "nodes")), built.graph->nnodes);
	assert_int_equal(json_array_size(json_object_get(root, "links")), built.graph->nlinks);
	assert_int_equal(json_array_size(json_object_get(root, "findings")), built.lint->n);
	assert_int_equal(json_array_size(json_object_get(root, "paths")),
			 built.paths->n * built.paths->n);
	expect_keys(json_array_get(json_object_get(root, "links"), 0),
		    "id from to type count gbps latency_ns ");
	path = json_array_get(json_object_get(root, "paths"), 0);
	expect_keys(path, "from to type gbps latency_ns hops route ");
	expect_keys(json_object_get(path, "route"), "type why p2p gdr via gbps latency_ns ");
	json_decref(root);
	tti_strbuf_release(&out);

	good(tti_print_paths_json(built.routes, &out));
	root = json_loads(out.text, 0, NULL);
	expect_keys(root, "format endpoints paths ");
	json_decref(root);
	tti_strbuf_release(&out);
	good(tti_print_lint_json(built.lint, &out));
	root = json_loads(out.text, 0, NULL);
	expect_keys(root, "format findings ");
	json_decref(root);
	tti_strbuf_release(&out);
	release(&built);
}

/* A path of the machine, which may be no UTF-8, is no reason to have no JSON. */
static void json_is_utf8_whatever_comes(void **state)
{
	struct built built = build_file("azhpc-images__ncv4-topo.xml");
	const char *source = built.graph->source;
	struct tti_strbuf out = { 0 };
	json_t *root;

	(void)state;
	built.graph->source = "caf\xe9";
	good(tti_print_topo_json(built.routes, built.lint, &out));
	built.graph->source = source;
	root = json_loads(out.text, 0, NULL);
	assert_string_equal(json_string_value(json_object_get(root, "source")), "caf?");
	json_decref(root);
	tti_strbuf_release(&out);
	release(&built);
}

/* -- Picture ------------------------------------------------------------------------ */

static void names_are_no_markup(void **state)
{
	struct built built = build_text("<system version='1'><cpu numaid='0' affinity='1'><nic>"
					"<net name='a&lt;b&gt;&amp;&quot;' dev='0'/></nic></cpu>"
					"</system>");
	struct tti_strbuf out = { 0 };

	(void)state;
	tti_print_dot(built.routes, built.lint, &out);
	assert_non_null(strstr(out.text, "a&lt;b&gt;&amp;&quot;"));
	assert_null(strstr(out.text, "a<b>"));
	tti_strbuf_release(&out);
	release(&built);
}

static void a_picture_shows_all_and_marks_what_is_wrong(void **state)
{
	struct built built = build_file("aws-aws-ofi-nccl__p5.48xl-topo.xml");
	struct tti_strbuf out = { 0 };

	(void)state;
	tti_print_dot(built.routes, built.lint, &out);
	for (uint32_t i = 0; i < built.graph->ntype[TTI_NODE_NET]; i++) {
		char name[64];

		snprintf(name, sizeof(name), "<b>%s</b>",
			 built.graph->nodes[built.graph->by_type[TTI_NODE_NET][i]].name);
		assert_non_null(strstr(out.text, name));
	}
	assert_int_equal(count_of(out.text, "<b>! pci-uplink-narrow</b>"), 8);
	/* Four NICs share a box and a line. */
	assert_int_equal(count_of(out.text, "label=\"4 x 12.0\""), 8);
	tti_strbuf_release(&out);
	/* Without findings nothing is red. */
	tti_print_dot(built.routes, NULL, &out);
	assert_null(strstr(out.text, "#c00000"));
	tti_strbuf_release(&out);
	release(&built);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nics_beside_one_gpu_are_alike),
		cmocka_unit_test(a_cell_is_true_of_all_members),
		cmocka_unit_test(the_matrix_is_that_of_nvidia_smi),
		cmocka_unit_test(a_rack_fits_on_a_screen),
		cmocka_unit_test(too_many_pairs_are_refused_in_words),
		cmocka_unit_test(nothing_has_no_paths),
		cmocka_unit_test(one_heading_per_rule),
		cmocka_unit_test(equal_findings_are_one_line),
		cmocka_unit_test(json_says_what_a_numa_node_has),
		cmocka_unit_test(json_holds_everything_in_order),
		cmocka_unit_test(json_is_utf8_whatever_comes),
		cmocka_unit_test(names_are_no_markup),
		cmocka_unit_test(a_picture_shows_all_and_marks_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
