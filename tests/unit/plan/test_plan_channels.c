/* SPDX-License-Identifier: BSD-3-Clause */
/* However many channels are asked for: no plan has more or fewer, over one node, several, and
 * several kinds. */
#include "insight/plan/job.h"
#include "machines.h"

#include "support/sanitizer.h"
#include "util/error.h"

/* Every file, under a sanitizer every eighth. Each is asked for some of the numbers, the next one for
 * others. */
#define FILES_STEP (SANITIZED ? 8 : 1)
#define ASKED_STEP 3

static const struct {
	uint32_t least, most;
} asked[] = { { 0, 1 }, { 1, 4 }, { 4, 4 }, { 0, 7 }, { 3, 3 }, { 10, 16 }, { 40, 64 } };

/* Trees over nodes come in pairs: at least one, and never a half. */
static void expect_number(const struct tti_plan *plan, const struct tti_plan_pattern *pattern,
			  uint32_t least, uint32_t most, const char *source)
{
	if (tti_trees_in_pairs(pattern->pattern, plan->nnodes)) {
		most = most > 2 ? most / 2 * 2 : 2;
		least = (least + 1) / 2 * 2 < most ? (least + 1) / 2 * 2 : most;
	}
	if (pattern->nchannels < least || pattern->nchannels > most)
		fail_msg("%s, %u nodes: %u channels of %s, of %u to %u", source, plan->nnodes,
			 pattern->nchannels, tti_pattern_name(pattern->pattern), least, most);
}

static void number_of_channels(const struct machine *a, const struct machine *b, uint32_t count,
			       size_t first)
{
	const struct tti_routes *routes[] = { a->routes, b ? b->routes : NULL };
	struct tti_plan_job *job = NULL;

	assert_int_equal(tti_plan_job_of(routes, b ? 2 : 1, count, 0, &job), TUTTI_OK);
	for (size_t i = first % ASKED_STEP; i < sizeof(asked) / sizeof(asked[0]); i += ASKED_STEP) {
		const struct tti_plan_config config = { .patterns = 1u << TTI_PATTERN_RING |
								    1u << TTI_PATTERN_TREE,
							.cross_nic = TTI_CROSS_AUTO,
							.min_channels = asked[i].least,
							.max_channels = asked[i].most,
							.budget_ms = UNHURRIED_MS };
		struct tti_plan *plan = NULL;

		if (tti_plan_make(job, &config, &plan) != TUTTI_OK ||
		    tti_plan_check(plan) != TUTTI_OK)
			fail_msg("%s: %s", a->doc->source, tti_error_text());
		if (plan->npatterns != 2)
			fail_msg("%s, %u nodes: of %u to %u channels %u patterns", a->doc->source,
				 plan->nnodes, asked[i].least, asked[i].most, plan->npatterns);
		for (uint32_t k = 0; k < plan->npatterns; k++)
			expect_number(plan, &plan->patterns[k], asked[i].least, asked[i].most,
				      a->doc->source);
		tti_plan_free(plan);
	}
	tti_plan_job_free(job);
}

static void on_all_machines(void **state)
{
	glob_t files;

	(void)state;
	machine_files(&files);
	for (size_t i = 0; i < files.gl_pathc; i += FILES_STEP) {
		struct machine m;

		machine_read(&m, files.gl_pathv[i], TTI_MODEL_TUTTI);
		number_of_channels(&m, NULL, 1, i / FILES_STEP);
		if (m.graph->ntype[TTI_NODE_NET] > 0)
			number_of_channels(&m, NULL, 2, i / FILES_STEP + 1);
		machine_release(&m);
	}
	globfree(&files);
}

static void on_two_kinds(void **state)
{
	static const char *const names[] = {
		TEST_DATA "/topologies/azhpc-images__ndv4-topo.xml",
		TEST_DATA "/topologies/azhpc-images__ndv5-topo.xml",
		TEST_DATA "/topologies/rccl__topo_8p_940.xml",
		TEST_DATA "/topologies/SimAI-SimCCL__topo_8A100_4CX6.xml",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t k = 0; k < i; k++) {
			struct machine a, b;

			machine_read(&a, names[i], TTI_MODEL_TUTTI);
			machine_read(&b, names[k], TTI_MODEL_TUTTI);
			number_of_channels(&a, &b, 1, i + k);
			number_of_channels(&b, &a, 2, i + k + 1);
			machine_release(&a);
			machine_release(&b);
		}
}

/* Eight of 24 GB/s fit beside eight of 48, as they are. */
static void kinds_need_no_more_than_one(void **state)
{
	const struct tti_plan_config config = { .patterns = 1u << TTI_PATTERN_RING,
						.cross_nic = TTI_CROSS_AUTO,
						.budget_ms = UNHURRIED_MS };
	struct machine a, b;
	const struct tti_routes *routes[2];
	struct tti_plan_job *job = NULL;
	struct tti_plan *plan = NULL;

	(void)state;
	machine_read(&a, TEST_DATA "/topologies/azhpc-images__ndv4-topo.xml", TTI_MODEL_TUTTI);
	machine_read(&b, TEST_DATA "/topologies/azhpc-images__ndv5-topo.xml", TTI_MODEL_TUTTI);
	routes[0] = a.routes;
	routes[1] = b.routes;
	assert_int_equal(tti_plan_job_of(routes, 2, 1, 0, &job), TUTTI_OK);
	assert_int_equal(tti_plan_make(job, &config, &plan), TUTTI_OK);
	assert_true(plan->patterns[0].total_gbps >= 192 * (1 - 1e-5));
	assert_int_equal(plan->patterns[0].nchannels, 8);
	tti_plan_free(plan);
	tti_plan_job_free(job);
	machine_release(&a);
	machine_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(on_all_machines),
		cmocka_unit_test(on_two_kinds),
		cmocka_unit_test(kinds_need_no_more_than_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
