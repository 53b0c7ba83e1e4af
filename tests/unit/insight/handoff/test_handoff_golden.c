/* SPDX-License-Identifier: BSD-3-Clause */
/* Handoffs between two nodes of 8 GPUs as they are printed: tests/golden/handoff/NAME.json
 * and NAME.txt. With --write they are written instead. And the API that prints them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tutti/insight.h"
#include "util/error.h"

#define DIR TEST_DATA "/topologies/handoff/"

static bool write_golden;

static tutti_topo_t load(const char *name)
{
	struct tutti_topo_config config = TUTTI_TOPO_CONFIG_INIT;
	tutti_topo_t topo = NULL;
	char path[512];

	snprintf(path, sizeof(path), DIR "%s.xml", name);
	config.xml_file = path;
	config.name = name;
	if (tutti_topo_load(&config, &topo) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return topo;
}

static char *read_all(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = calloc(1, 1 << 20);

	assert_non_null(text);
	if (!file || fread(text, 1, (1 << 20) - 1, file) == 0)
		fail_msg("%s is missing: unit_handoff_golden --write makes it", path);
	fclose(file);
	return text;
}

static void compare(const char *name, const char *suffix, const char *text)
{
	char path[512], *was;
	size_t at = 0;

	snprintf(path, sizeof(path), TEST_GOLDEN "/handoff/%s.%s", name, suffix);
	if (write_golden) {
		FILE *file = fopen(path, "we");

		assert_non_null(file);
		assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
	}
	was = read_all(path);
	while (text[at] && text[at] == was[at])
		at++;
	if (text[at] || was[at])
		fail_msg("%s: another text from byte %zu on: %.60s, it was %.60s", path, at,
			 text + at, was + at);
	free(was);
}

static void print(tutti_handoff_plan_t plan, const char *name, tutti_plan_format format,
		  const char *suffix)
{
	char *text = NULL;

	assert_int_equal(tutti_handoff_plan_print(plan, format, 64 << 20, &text), TUTTI_OK);
	compare(name, suffix, text);
	free(text);
}

static void golden(void **state)
{
	static const char *const names[] = { "handoff_1nic", "handoff_2nic", "handoff_4nic",
					     "handoff_2nic_unequal", "handoff_4nic_nvlink" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		tutti_topo_t topo = load(names[i]);
		const tutti_topo_t nodes[2] = { topo, topo };
		tutti_handoff_plan_t plan = NULL;

		if (tutti_handoff_plan_make(nodes, 2, NULL, NULL, &plan) != TUTTI_OK)
			fail_msg("%s", tti_error_text());
		print(plan, names[i], TUTTI_PLAN_JSON, "json");
		print(plan, names[i], TUTTI_PLAN_TABLE, "txt");
		print(plan, names[i], TUTTI_PLAN_EXPLAIN, "explain.txt");
		tutti_handoff_plan_free(plan);
		tutti_topo_free(topo);
	}
}

/* -- The API ----------------------------------------------------------------------------- */

static void figures(void **state)
{
	tutti_topo_t topo = load("handoff_2nic");
	const tutti_topo_t nodes[3] = { topo, topo, topo };
	static const int from[] = { 0, 1 }, to[] = { 8, 16, 17 };
	struct tutti_handoff_plan_config config = TUTTI_HANDOFF_PLAN_CONFIG_INIT;
	struct tutti_handoff_figures figures;
	tutti_handoff_plan_t plan = NULL;
	char *text = NULL;

	(void)state;
	config.from = from;
	config.nfrom = 2;
	config.to = to;
	config.nto = 3;
	assert_int_equal(tutti_handoff_plan_make(nodes, 3, NULL, &config, &plan), TUTTI_OK);
	assert_int_equal(tutti_handoff_plan_get(plan, 1 << 20, &figures), TUTTI_OK);
	assert_int_equal(figures.npairs, 4);
	assert_true(figures.gbps > 6.2 && figures.gbps <= figures.bound_gbps * 1.000001);
	assert_true(figures.us >= figures.bound_us && figures.naive_us > figures.us);
	assert_int_equal(tutti_handoff_plan_print(plan, TUTTI_PLAN_DOT, 1, &text), TUTTI_OK);
	assert_memory_equal(text, "digraph tutti", 13);
	free(text);
	assert_int_equal(tutti_handoff_plan_print(plan, TUTTI_PLAN_NCCL, 1, &text), TUTTI_EINVAL);
	tutti_handoff_plan_free(plan);
	tutti_topo_free(topo);
}

static void refuse(const tutti_topo_t *nodes, int nnodes, const int *from, int nfrom, const int *to,
		   int nto, const char *words)
{
	struct tutti_handoff_plan_config config = TUTTI_HANDOFF_PLAN_CONFIG_INIT;
	tutti_handoff_plan_t plan = NULL;

	config.from = from;
	config.nfrom = nfrom;
	config.to = to;
	config.nto = nto;
	assert_int_equal(tutti_handoff_plan_make(nodes, nnodes, NULL, &config, &plan),
			 TUTTI_EINVAL);
	assert_null(plan);
	if (!strstr(tti_error_text(), words))
		fail_msg("'%s' does not say '%s'", tti_error_text(), words);
}

static void refused(void **state)
{
	tutti_topo_t topo = load("handoff_1nic");
	const tutti_topo_t nodes[2] = { topo, topo };
	static const int good[] = { 8, 9 }, twice[] = { 8, 8 }, high[] = { 16 }, low[] = { -1 };
	tutti_handoff_plan_t plan = NULL;

	(void)state;
	refuse(nodes, 2, good, 0, good, 2, "side 'from' of a handoff has no ranks");
	refuse(nodes, 2, good, 2, twice, 2, "rank 8 is on side 'to' of a handoff twice");
	refuse(nodes, 2, high, 1, good, 2, "has rank 16: there are 16 ranks");
	refuse(nodes, 2, low, 1, good, 2, "has rank -1");
	refuse(nodes, 1, NULL, 0, good, 1, "say which ranks hold the vector");
	assert_int_equal(tutti_handoff_plan_make(nodes, 0, NULL, NULL, &plan), TUTTI_EINVAL);
	assert_int_equal(tutti_handoff_plan_make(NULL, 2, NULL, NULL, &plan), TUTTI_EINVAL);
	assert_int_equal(tutti_handoff_plan_get(NULL, 1, NULL), TUTTI_EINVAL);
	tutti_handoff_plan_free(NULL);
	tutti_topo_free(topo);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(figures),
		cmocka_unit_test(refused),
	};

	write_golden = argc > 1 && !strcmp(argv[1], "--write");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
