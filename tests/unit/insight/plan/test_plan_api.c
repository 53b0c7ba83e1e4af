/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans as the API has them: made, printed in each format, read again, compared, checked;
 * NCCL's graph files; what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "plan_text.h"

#define DIR TEST_DATA "/topologies/"

static tutti_topo_t load(const char *name, bool nccl)
{
	struct tutti_topo_config config = TUTTI_TOPO_CONFIG_INIT;
	tutti_topo_t topo = NULL;
	char path[512];

	snprintf(path, sizeof(path), DIR "%s", name);
	config.xml_file = path;
	config.nccl_model = nccl;
	if (tutti_topo_load(&config, &topo) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return topo;
}

static tutti_plan_t make(tutti_topo_t topo, int nnodes, const struct tutti_plan_config *config)
{
	tutti_topo_t nodes[64];
	tutti_plan_t plan = NULL;

	for (int i = 0; i < nnodes; i++)
		nodes[i] = topo;
	if (tutti_plan_make(nodes, nnodes, config, &plan) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return plan;
}

static void write_file(char path[32], const char *text)
{
	FILE *file;

	snprintf(path, 32, "/tmp/tutti-plan-XXXXXX");
	file = fdopen(mkstemp(path), "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
}

static void expect_words(tutti_plan_t plan, tutti_plan_format format, const char *words)
{
	char *text = plan_text(plan, format);

	if (!strstr(text, words))
		fail_msg("'%s' is not in\n%s", words, text);
	free(text);
}

/* -- Made and printed -------------------------------------------------------------------- */

static void all_formats(void **state)
{
	tutti_topo_t topo = load("SimAI-SimCCL__topo_8A100_4CX6.xml", true);
	struct tutti_plan_config config = TUTTI_PLAN_CONFIG_INIT;
	struct tutti_plan_pattern pattern;
	tutti_plan_t plan;

	(void)state;
	config.patterns = "ring";
	plan = make(topo, 2, &config);
	assert_int_equal(tutti_plan_pattern_count(plan), 1);
	assert_int_equal(tutti_plan_get_pattern(plan, 0, &pattern), TUTTI_OK);
	assert_string_equal(pattern.name, "ring");
	assert_true(pattern.total_gbps > 117.6 && pattern.bound_gbps < 117.7);
	assert_int_equal(tutti_plan_get_pattern(plan, 1, &pattern), TUTTI_EINVAL);
	expect_words(plan, TUTTI_PLAN_TABLE, "16 ranks on 2 nodes");
	expect_words(plan, TUTTI_PLAN_TABLE, "117.7");
	expect_words(plan, TUTTI_PLAN_EXPLAIN, "proven that no others carry more");
	expect_words(plan, TUTTI_PLAN_EXPLAIN, "CPU0 to mlx5_bond_0 (PCI), 24.0 GB/s, at 0.833");
	expect_words(plan, TUTTI_PLAN_EXPLAIN, "CPU1 to CPU0 (SYS): 119.3 GB/s (+1.4 %)");
	expect_words(plan, TUTTI_PLAN_EXPLAIN,
		     "below switch 0000:11:00.0, beside GPU0, or at any of 7 other places: 141.7");
	expect_words(plan, TUTTI_PLAN_DOT, "digraph");
	expect_words(plan, TUTTI_PLAN_DOT, "mlx5_bond_0");
	expect_words(plan, TUTTI_PLAN_NCCL, "<graph id=\"0\" pattern=\"4\"");
	expect_words(plan, TUTTI_PLAN_ADVICE, "node0 slots=8");
	tutti_plan_free(plan);
	tutti_topo_free(topo);
}

/* AMD's links have their own name where people read, and that of NCCL in files. */
static void links_of_amd(void **state)
{
	tutti_topo_t topo = load("rccl__topo_8p_940.xml", false);
	struct tutti_plan_config config = TUTTI_PLAN_CONFIG_INIT;
	tutti_plan_t one, two;

	(void)state;
	config.patterns = "ring";
	one = make(topo, 1, &config);
	two = make(topo, 2, &config);
	expect_words(one, TUTTI_PLAN_TABLE, " channel     GB/s  type  GPU\n");
	expect_words(one, TUTTI_PLAN_TABLE, "  XGMI  ");
	expect_words(one, TUTTI_PLAN_TABLE, "(XGMI), ");
	expect_words(one, TUTTI_PLAN_EXPLAIN, "(XGMI, ");
	expect_words(two, TUTTI_PLAN_TABLE, "  XGMI/");
	expect_words(one, TUTTI_PLAN_JSON, "\"type_intra\":\"NVL\"");
	expect_words(one, TUTTI_PLAN_NCCL, " typeintra=\"NVL\"");
	tutti_plan_free(one);
	tutti_plan_free(two);
	tutti_topo_free(topo);
}

/* An idle NIC, and why. */
static void idle_nic(void **state)
{
	tutti_topo_t topo = load("rccl__topo_8p_pcie_2nic.xml", false);
	struct tutti_plan_config config = TUTTI_PLAN_CONFIG_INIT;
	tutti_plan_t plan;

	(void)state;
	config.patterns = "ring";
	config.cross_nic = 0;
	plan = make(topo, 2, &config);
	expect_words(plan, TUTTI_PLAN_EXPLAIN, "mlx5_0 is idle");
	expect_words(plan, TUTTI_PLAN_EXPLAIN, "which is full");
	tutti_plan_free(plan);
	tutti_topo_free(topo);
}

/* Ranks dealt out in turn leave a node with each step. */
static void order_of_ranks(void **state)
{
	tutti_topo_t topo = load("aws-ofi-nccl__p4d-24xl-topo.xml", true);
	struct tutti_plan_config config = TUTTI_PLAN_CONFIG_INIT;
	static const int groups[] = { 0, 1, 0, 1 };
	int node_of_rank[32];
	tutti_plan_t plan;

	(void)state;
	for (int rank = 0; rank < 32; rank++)
		node_of_rank[rank] = rank % 4;
	config.patterns = "ring";
	config.node_of_rank = node_of_rank;
	config.nranks = 32;
	config.group_of_node = groups;
	plan = make(topo, 4, &config);
	/* 4 NICs of 12 GB/s carry 48 once, and 6 if eight steps leave the node. */
	expect_words(plan, TUTTI_PLAN_ADVICE,
		     "6.00 GB/s  the plan has 8.00 times that; 32 steps leave a node, 32 a switch");
	expect_words(plan, TUTTI_PLAN_ADVICE, "4 steps leave a node, 2 a switch");
	expect_words(plan, TUTTI_PLAN_TABLE, "follow each other as node0, node2, node1, node3");
	tutti_plan_free(plan);
	tutti_topo_free(topo);
}

static void several_kinds(void **state)
{
	tutti_topo_t nodes[] = { load("azhpc-images__ndv4-topo.xml", false),
				 load("aws-ofi-nccl__p4d-24xl-topo.xml", false) };
	tutti_plan_t plan = NULL;
	char *text = NULL;

	(void)state;
	assert_int_equal(tutti_plan_make(nodes, 2, NULL, &plan), TUTTI_OK);
	expect_words(plan, TUTTI_PLAN_TABLE, "of 2 kinds");
	expect_words(plan, TUTTI_PLAN_EXPLAIN, "that of node1 carries least");
	assert_int_equal(tutti_plan_print(plan, TUTTI_PLAN_NCCL, 0, &text), TUTTI_EINVAL);
	assert_null(text);
	tutti_plan_free(plan);
	tutti_topo_free(nodes[0]);
	tutti_topo_free(nodes[1]);
}

/* -- Read again ---------------------------------------------------------------------------- */

static void there_and_back(void **state)
{
	tutti_topo_t topo = load("azhpc-images__ndv4-topo.xml", false);
	tutti_topo_t nodes[] = { topo, topo };
	tutti_plan_t plan = make(topo, 2, NULL), again = NULL;
	char *json = plan_text(plan, TUTTI_PLAN_JSON), *text = NULL;
	char path[32];
	int n = -1;

	(void)state;
	write_file(path, json);
	assert_int_equal(tutti_plan_read(path, NULL, 0, NULL, &again), TUTTI_OK);
	assert_int_equal(tutti_plan_diff(plan, again, &text, &n), TUTTI_OK);
	assert_int_equal(n, 0);
	assert_string_equal(text, "");
	free(text);
	assert_int_equal(tutti_plan_print(again, TUTTI_PLAN_EXPLAIN, 0, &text), TUTTI_EINVAL);
	assert_int_equal(tutti_plan_check(again, &text, &n), TUTTI_EINVAL);
	tutti_plan_free(again);
	assert_int_equal(tutti_plan_read(path, nodes, 2, NULL, &again), TUTTI_OK);
	assert_int_equal(tutti_plan_check(again, &text, &n), TUTTI_OK);
	assert_int_equal(n, 0);
	free(text);
	expect_words(again, TUTTI_PLAN_DOT, "digraph");
	tutti_plan_free(again);
	/* Of other machines it is no plan. */
	assert_int_equal(tutti_plan_read(path, nodes, 1, NULL, &again), TUTTI_EINVAL);
	assert_null(again);
	unlink(path);
	free(json);
	tutti_plan_free(plan);
	tutti_topo_free(topo);
}

/* The first `from` becomes `to`, which is as long. */
static void edit(char *text, const char *from, const char *to)
{
	const char *at = strstr(text, from);

	assert_non_null(at);
	for (size_t i = 0; to[i]; i++)
		text[(size_t)(at - text) + i] = to[i];
}

/* A channel that is said to carry more than its links have. */
static void too_much(void **state)
{
	tutti_topo_t topo = load("Azure-azhpc-images__ndv2-topo.xml", false);
	struct tutti_plan_config config = TUTTI_PLAN_CONFIG_INIT;
	tutti_plan_t plan, edited = NULL;
	char *json, *text = NULL;
	char path[32];
	int n = 0;

	(void)state;
	config.patterns = "ring";
	plan = make(topo, 1, &config);
	json = plan_text(plan, TUTTI_PLAN_JSON);
	edit(json, "{\"bw_gbps\":40", "{\"bw_gbps\":50");
	edit(json, "\"bound_bw_gbps\":120", "\"bound_bw_gbps\":140");
	write_file(path, json);
	assert_int_equal(tutti_plan_read(path, &topo, 1, &config, &edited), TUTTI_OK);
	assert_int_equal(tutti_plan_check(edited, &text, &n), TUTTI_OK);
	assert_int_equal(n, 8);
	assert_non_null(strstr(text, "GPU0 to GPU3 (NVL) of node 0 has 40.00 GB/s"));
	free(text);
	assert_int_equal(tutti_plan_diff(plan, edited, &text, &n), TUTTI_OK);
	assert_int_equal(n, 2);
	assert_non_null(strstr(text, "ring channel 0: 40.000 against 50.000 GB/s"));
	free(text);
	tutti_plan_free(edited);
	unlink(path);
	free(json);
	tutti_plan_free(plan);
	tutti_topo_free(topo);
}

static void different_plans(void **state)
{
	tutti_topo_t topo = load("aws-ofi-nccl__p4d-24xl-topo.xml", false);
	struct tutti_plan_config config = TUTTI_PLAN_CONFIG_INIT;
	tutti_plan_t two = make(topo, 2, NULL), three = make(topo, 3, NULL), one;
	char *text = NULL;
	int n = 0;

	(void)state;
	assert_int_equal(tutti_plan_diff(two, three, &text, &n), TUTTI_OK);
	assert_true(n >= 1);
	assert_non_null(strstr(text, "16 ranks on 2 nodes against 24 on 3"));
	free(text);
	config.cross_nic = 1;
	config.max_channels = 2;
	config.patterns = "ring";
	one = make(topo, 2, &config);
	assert_int_equal(tutti_plan_diff(two, one, &text, &n), TUTTI_OK);
	assert_non_null(strstr(text, "tree: only in the first"));
	free(text);
	tutti_plan_free(one);
	tutti_plan_free(two);
	tutti_plan_free(three);
	tutti_topo_free(topo);
}

/* -- NCCL's graph files --------------------------------------------------------------------- */

static void nccl_there_and_back(void **state)
{
	static const struct {
		const char *name;
		int nnodes;
		double least; /* of what there is, equal channels keep */
	} cases[] = {
		{ "azhpc-images__ndv4-topo.xml", 2, 0.99 },
		{ "azhpc-images__ndv5-topo.xml", 4, 0.95 },
		{ "Azure-azhpc-images__ndv2-topo.xml", 1, 0.99 },
		{ "SimAI-SimCCL__topo_8A100_4CX6.xml", 2, 0.90 },
		{ "rccl__topo_4p3l_n4.xml", 1, 0.99 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		tutti_topo_t topo = load(cases[i].name, true), nodes[] = { topo, topo, topo, topo };
		tutti_plan_t plan = make(topo, cases[i].nnodes, NULL), again = NULL;
		struct tutti_plan_pattern ours, theirs;
		char *xml = plan_text(plan, TUTTI_PLAN_NCCL), *text = NULL;
		char path[32];
		int n;

		write_file(path, xml);
		if (tutti_plan_read(path, nodes, cases[i].nnodes, NULL, &again) != TUTTI_OK)
			fail_msg("%s: %s", cases[i].name, tti_error_text());
		assert_int_equal(tutti_plan_get_pattern(plan, 0, &ours), TUTTI_OK);
		assert_int_equal(tutti_plan_get_pattern(again, 0, &theirs), TUTTI_OK);
		if (theirs.total_gbps < cases[i].least * ours.total_gbps ||
		    theirs.total_gbps > ours.total_gbps * (1 + 1e-5))
			fail_msg("%s: %.2f of %.2f GB/s", cases[i].name, theirs.total_gbps,
				 ours.total_gbps);
		assert_int_equal(tutti_plan_check(again, &text, &n), TUTTI_OK);
		if (n)
			fail_msg("%s: %s", cases[i].name, text);
		free(text);
		free(xml);
		unlink(path);
		tutti_plan_free(again);
		tutti_plan_free(plan);
		tutti_topo_free(topo);
	}
}

/* Those that clouds ship. */
/* A graph made for NICs ten times as fast: what is too much is told, and what is shown is what
 * this machine can carry. */
static void nccl_too_much(void **state)
{
	tutti_topo_t topo = load("azhpc-images__ndv5-topo.xml", true), nodes[] = { topo, topo };
	tutti_plan_t plan = make(topo, 2, NULL), again = NULL;
	char *xml = plan_text(plan, TUTTI_PLAN_NCCL), *text = NULL;
	struct tutti_plan_pattern ours, theirs;
	char path[32];
	int n = 0;

	(void)state;
	edit(xml, "speedintra=\"48\" speedinter=\"48\"", "speedintra=\"480\"               ");
	write_file(path, xml);
	assert_int_equal(tutti_plan_read(path, nodes, 2, NULL, &again), TUTTI_OK);
	unlink(path);
	assert_int_equal(tutti_plan_get_pattern(plan, 0, &ours), TUTTI_OK);
	assert_int_equal(tutti_plan_get_pattern(again, 0, &theirs), TUTTI_OK);
	assert_string_equal(theirs.name, "ring");
	assert_true(theirs.total_gbps > 383 && theirs.total_gbps < 384.01);
	assert_true(theirs.bound_gbps < ours.bound_gbps * 1.0001);
	assert_int_equal(tutti_plan_check(again, &text, &n), TUTTI_OK);
	assert_true(n > 8);
	assert_non_null(strstr(text, "has 48.00 GB/s and is to carry 480.00 (10.00 times as much"));
	assert_non_null(strstr(text, "ring: of 3840.00 GB/s the machines can carry 384.00"));
	free(text);
	free(xml);
	tutti_plan_free(again);
	tutti_plan_free(plan);
	tutti_topo_free(topo);
}

static void nccl_raw(void **state)
{
	tutti_topo_t topo = load("Azure-azhpc-images__ncv4-topo.xml", true);
	tutti_topo_t nodes[] = { topo, topo };
	struct tutti_plan_pattern ring;
	tutti_plan_t plan = NULL;

	(void)state;
	assert_int_equal(
		tutti_plan_read(DIR "raw/azhpc-images__ncv4-graph.xml", &topo, 1, NULL, &plan),
		TUTTI_OK);
	assert_int_equal(tutti_plan_pattern_count(plan), 2);
	assert_int_equal(tutti_plan_get_pattern(plan, 0, &ring), TUTTI_OK);
	assert_true(ring.total_gbps == 24 && ring.bound_gbps >= 24 && ring.bound_gbps < 24.01);
	tutti_plan_free(plan);
	/* Of a machine with two GPUs. */
	assert_int_equal(
		tutti_plan_read(DIR "raw/Azure-azurehpc__nc48v4-graph.xml", &topo, 1, NULL, &plan),
		TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "nc48v4-graph.xml:3:5: "));
	assert_non_null(strstr(tti_error_text(), "2 GPUs in a channel of 4 ranks"));
	/* Without NICs it says nothing about several nodes, without a machine nothing. */
	assert_int_equal(
		tutti_plan_read(DIR "raw/azhpc-images__ncv4-graph.xml", nodes, 2, NULL, &plan),
		TUTTI_EINVAL);
	assert_non_null(strstr(tti_error_text(), "job of one node?"));
	assert_int_equal(
		tutti_plan_read(DIR "raw/azhpc-images__ncv4-graph.xml", NULL, 0, NULL, &plan),
		TUTTI_EINVAL);
	tutti_topo_free(topo);
}

static void nccl_refused(void **state)
{
	static const char *const files[][2] = {
		{ "<system version=\"1\"/>", "this is a topology" },
		{ "<graphs version=\"1\"/>", "no graph with channels" },
		{ "<graphs><graph id=\"0\" pattern=\"9\" nchannels=\"1\"/></graphs>", "pattern 9" },
		{ "<graphs><graph id=\"0\" pattern=\"4\" nchannels=\"1\" "
		  "speedintra=\"1\"/></graphs>",
		  "nchannels is 1, and there are 0" },
		{ "<graphs><graph id=\"0\" pattern=\"4\" "
		  "nchannels=\"1\"><channel/></graph></graphs>",
		  "carry nothing" },
		{ "<graphs><graph id=\"0\" pattern=\"4\" nchannels=\"1\" speedintra=\"1\"><channel>"
		  "<gpu dev=\"9\"/></channel></graph></graphs>",
		  "no GPU with dev 9" },
		{ "<graphs><graph id=\"0\" pattern=\"4\" nchannels=\"1\" speedintra=\"1\"><channel>"
		  "<gpu dev=\"0\"/><gpu dev=\"0\"/></channel></graph></graphs>",
		  "twice" },
		{ "<graphs><graph id=\"0\" pattern=\"4\" nchannels=\"1\" speedintra=\"1\"><channel>"
		  "<gpu dev=\"x\"/></channel></graph></graphs>",
		  "no hexadecimal number" },
		{ "<graphs><graph id=\"0\" pattern=\"4\" nchannels=\"2000000\"/></graphs>",
		  "nchannels" },
		{ "<graphs", "1:" },
		{ "{\"nodes\":1}", "\"ranks\" is missing" },
		{ "", "" },
	};
	tutti_topo_t topo = load("Azure-azhpc-images__ncv4-topo.xml", true);

	(void)state;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		tutti_plan_t plan = NULL;
		char path[32];

		write_file(path, files[i][0]);
		assert_int_equal(tutti_plan_read(path, &topo, 1, NULL, &plan), TUTTI_EINVAL);
		assert_null(plan);
		if (!strstr(tti_error_text(), files[i][1]) || !strstr(tti_error_text(), path))
			fail_msg("'%s' is not in '%s'", files[i][1], tti_error_text());
		unlink(path);
	}
	tutti_topo_free(topo);
}

/* -- Refused -------------------------------------------------------------------------------- */

static void bad_configs(void **state)
{
	tutti_topo_t topo = load("azhpc-images__ncv4-topo.xml", false);
	struct tutti_plan_config good = TUTTI_PLAN_CONFIG_INIT;
	static const int nowhere[] = { 0, 1 };
	struct tutti_plan_config bad[8];
	tutti_plan_t plan = NULL;

	(void)state;
	for (int i = 0; i < 8; i++)
		bad[i] = good;
	bad[0].size = 4;
	bad[1].patterns = "ring,circle";
	bad[2].cross_nic = 3;
	bad[3].min_channels = -1;
	bad[4].min_channels = 9;
	bad[4].max_channels = 8;
	bad[5].ranks_per_node = -2;
	bad[6].node_of_rank = nowhere;
	bad[6].nranks = 2;
	bad[7].node_of_rank = nowhere;
	for (int i = 0; i < 8; i++) {
		assert_int_equal(tutti_plan_make(&topo, 1, &bad[i], &plan), TUTTI_EINVAL);
		assert_null(plan);
	}
	assert_int_equal(tutti_plan_make(NULL, 1, NULL, &plan), TUTTI_EINVAL);
	assert_int_equal(tutti_plan_make(&topo, 0, NULL, &plan), TUTTI_EINVAL);
	assert_int_equal(tutti_plan_make(&topo, 1, NULL, NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_plan_read("/nowhere/at/all", NULL, 0, NULL, &plan), TUTTI_EINVAL);
	assert_int_equal(tutti_plan_read("/", NULL, 0, NULL, &plan), TUTTI_EINVAL);
	assert_int_equal(tutti_plan_pattern_count(NULL), 0);
	tutti_plan_free(NULL);
	tutti_topo_free(topo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_formats),
		cmocka_unit_test(idle_nic),
		cmocka_unit_test(links_of_amd),
		cmocka_unit_test(order_of_ranks),
		cmocka_unit_test(several_kinds),
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(too_much),
		cmocka_unit_test(different_plans),
		cmocka_unit_test(nccl_there_and_back),
		cmocka_unit_test(nccl_too_much),
		cmocka_unit_test(nccl_raw),
		cmocka_unit_test(nccl_refused),
		cmocka_unit_test(bad_configs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
