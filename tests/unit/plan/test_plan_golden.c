/* SPDX-License-Identifier: BSD-3-Clause */
/* The plans of five real machines, beside what they were: tests/golden/plan/NAME.json,
 * without times. With --write they are written instead. And on every file what NCCL finds,
 * bench/plan/nccl.csv, is reached. */
#include "insight/plan/job.h"
#include "machines.h"

#include <stdio.h>
#include <string.h>

#include "util/error.h"
#include "util/strbuf.h"

#define CSV TEST_DATA "/../../bench/plan/nccl.csv"

static bool write_golden;

static struct tti_plan *plan_of(const struct machine *m, uint32_t nnodes)
{
	const struct tti_plan_config config = { .patterns = 1u << TTI_PATTERN_RING |
							    1u << TTI_PATTERN_TREE,
						.cross_nic = TTI_CROSS_AUTO,
						.budget_ms = UNHURRIED_MS };
	const struct tti_routes *routes = m->routes;
	struct tti_plan_job *job = NULL;
	struct tti_plan *plan = NULL;

	assert_int_equal(tti_plan_job_of(&routes, 1, nnodes, 0, &job), TUTTI_OK);
	if (tti_plan_make(job, &config, &plan) != TUTTI_OK || tti_plan_check(plan) != TUTTI_OK)
		fail_msg("%s: %s", m->doc->source, tti_error_text());
	tti_plan_job_free(job);
	return plan;
}

/* -- Golden ------------------------------------------------------------------------ */

/* Times are not what a plan is about. */
static void forget_times(struct tti_plan *plan)
{
	for (uint32_t i = 0; i < plan->npatterns; i++)
		plan->patterns[i].search_ms = 0;
}

static char *read_all(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = calloc(1, 1 << 20);

	assert_non_null(text);
	if (!file || fread(text, 1, (1 << 20) - 1, file) == 0)
		fail_msg("%s is missing: unit_plan_golden --write makes it", path);
	fclose(file);
	return text;
}

static void compare(const char *path, const char *text)
{
	char *was = read_all(path);
	size_t at = 0;

	while (text[at] && text[at] == was[at])
		at++;
	if (text[at] || was[at])
		fail_msg("%s: another plan from byte %zu on: %.60s, it was %.60s", path, at,
			 text + at, was + at);
	free(was);
}

static void golden(void **state)
{
	static const struct {
		const char *name;
		uint32_t nnodes;
	} plans[] = {
		{ "Azure-azhpc-images__ndv2-topo", 1 }, { "aws-ofi-nccl__p4d-24xl-topo", 2 },
		{ "azhpc-images__ndv5-topo", 2 },       { "SimAI-SimCCL__topo_8A100_4CX6", 3 },
		{ "rccl__topo_8p_pcie_2nic", 2 },       { "rccl__topo_8p_4nics", 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
		char path[512];
		struct tti_strbuf out = { 0 };
		struct machine m;
		struct tti_plan *plan;
		char *text;

		snprintf(path, sizeof(path), "%s/topologies/%s.xml", TEST_DATA, plans[i].name);
		machine_read(&m, path, TTI_MODEL_TUTTI);
		plan = plan_of(&m, plans[i].nnodes);
		forget_times(plan);
		assert_int_equal(tti_plan_json(plan, &out), TUTTI_OK);
		text = tti_strbuf_take(&out);
		snprintf(path, sizeof(path), "%s/plan/%s-%u.json", TEST_GOLDEN, plans[i].name,
			 plans[i].nnodes);
		if (write_golden) {
			FILE *file = fopen(path, "we");

			assert_non_null(file);
			assert_true(fputs(text, file) >= 0 && fclose(file) == 0);
		}
		compare(path, text);
		free(text);
		tti_plan_free(plan);
		machine_release(&m);
	}
}

/* -- Targets ----------------------------------------------------------------------- */

struct row {
	char name[128];
	unsigned nnodes;
	double ring, tree, best;
};

static double number(const char *text)
{
	return text && *text ? strtod(text, NULL) : 0;
}

static bool parse(char *line, struct row *row)
{
	char *field[6] = { NULL };

	line[strcspn(line, "\n")] = '\0';
	for (int i = 0; i < 6 && line; i++)
		field[i] = strsep(&line, ",");
	if (!field[5] || field[0][0] == '#' || !strcmp(field[0], "file"))
		return false;
	*row = (struct row){ .nnodes = (unsigned)strtoul(field[1], NULL, 10),
			     .ring = number(field[2]),
			     .tree = number(field[3]),
			     .best = number(field[4]) };
	snprintf(row->name, sizeof(row->name), "%s", field[0]);
	return row->ring > 0;
}

static void reach(const struct row *row, const struct tti_plan *plan)
{
	const struct tti_plan_pattern *ring = tti_plan_pattern(plan, TTI_PATTERN_RING);
	const struct tti_plan_pattern *tree = tti_plan_pattern(plan, TTI_PATTERN_TREE);

	assert_non_null(ring);
	assert_non_null(tree);
	if (ring->total_gbps < row->ring * 0.99999 || ring->total_gbps < 0.98 * row->best)
		fail_msg("%s, %u nodes: rings of %.2f GB/s, NCCL has %.2f, the best is %.2f",
			 row->name, row->nnodes, ring->total_gbps, row->ring, row->best);
	if (tree->total_gbps < ring->total_gbps * 0.99999 || tree->total_gbps < row->tree * 0.99999)
		fail_msg("%s, %u nodes: trees of %.2f GB/s, rings of %.2f, NCCL's trees %.2f",
			 row->name, row->nnodes, tree->total_gbps, ring->total_gbps, row->tree);
	assert_true(ring->total_gbps >= 0.98 * ring->bound_gbps);
	assert_true(tree->total_gbps >= 0.98 * tree->bound_gbps);
}

static void targets(void **state)
{
	FILE *csv = fopen(CSV, "re");
	char line[256];
	unsigned nrows = 0;

	(void)state;
	assert_non_null(csv);
	while (fgets(line, sizeof(line), csv)) {
		char path[512];
		struct machine m;
		struct tti_plan *plan;
		struct row row;

		if (!parse(line, &row))
			continue;
		nrows++;
		snprintf(path, sizeof(path), "%s/topologies/%s.xml", TEST_DATA, row.name);
		machine_read(&m, path, TTI_MODEL_NCCL);
		plan = plan_of(&m, row.nnodes);
		reach(&row, plan);
		tti_plan_free(plan);
		machine_release(&m);
	}
	fclose(csv);
	assert_true(nrows >= 56);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(golden),
		cmocka_unit_test(targets),
	};

	write_golden = argc > 1 && !strcmp(argv[1], "--write");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
