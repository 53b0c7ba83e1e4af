/* SPDX-License-Identifier: BSD-3-Clause */
/* Of plans that carry as much, the one over near ways and with few channels; never more channels
 * than were asked for, on any machines. */
#include "insight/plan/job.h"
#include "machines.h"

#include <stdio.h>

#include "plan/search/score.h"
#include "support/sanitizer.h"
#include "util/error.h"

static void open_machine(struct machine *m, const char *name, enum tti_model model)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/topologies/%s.xml", TEST_DATA, name);
	machine_read(m, path, model);
}

/* Of `count` nodes of each of two machines, or of the first alone. */
static struct tti_plan *plan_of(const struct machine *a, const struct machine *b, uint32_t count,
				const struct tti_plan_config *config)
{
	const struct tti_routes *routes[] = { a->routes, b ? b->routes : NULL };
	struct tti_plan_job *job = NULL;
	struct tti_plan *plan = NULL;

	assert_int_equal(tti_plan_job_of(routes, b ? 2 : 1, count, 0, &job), TUTTI_OK);
	if (tti_plan_make(job, config, &plan) != TUTTI_OK || tti_plan_check(plan) != TUTTI_OK)
		fail_msg("%s: %s", a->doc->source, tti_error_text());
	tti_plan_job_free(job);
	return plan;
}

/* -- The order of plans ------------------------------------------------------------------- */

static void order_of_scores(void **state)
{
	static const struct tti_score falling[] = {
		{ .gbps = 99.9999, .nchannels = 4, .hops = 10 },
		{ .gbps = 100, .nchannels = 4, .hops = 20 },
		{ .gbps = 100, .crossing = 1, .nchannels = 4 },
		{ .gbps = 100, .nchannels = 5 },
		{ .gbps = 100, .crossing = 2, .nchannels = 1 },
		{ .gbps = 100, .far_hops = 2 },
		{ .gbps = 100, .far = 1, .far_hops = 1 },
		{ .gbps = 100, .far = 100, .far_hops = 100, .nchannels = 1 },
		{ .gbps = 99, .nchannels = 1 },
		{ .gbps = 98, .nchannels = 1 },
	};
	const size_t n = sizeof(falling) / sizeof(falling[0]);
	const double least = 100 * (1 - TTI_SCORE_WORTH);

	(void)state;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			assert_int_equal(tti_score_better(&falling[i], &falling[k], least), i < k);
}

/* -- Near ways ---------------------------------------------------------------------------- */

/* What NCCL has on these, two nodes each, is near. */
static void rings_of_hosts_stay_near(void **state)
{
	static const char *const names[] = {
		"azhpc-images__ndv5-topo",
		"azhpc-images__ndv4-topo",
		"aws-aws-ofi-nccl__p5.48xl-topo",
		"oci-hpc__H100-topology",
		"rccl__topo_8p1h_4",
		"rccl__topo_8p_940",
		"rccl__topo_16p1h",
	};
	const struct tti_plan_config config = { .patterns = 1u << TTI_PATTERN_RING |
							    1u << TTI_PATTERN_TREE,
						.cross_nic = TTI_CROSS_AUTO,
						.budget_ms = UNHURRIED_MS };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (int model = 0; model < 2; model++) {
			struct machine m;
			struct tti_plan *plan;

			open_machine(&m, names[i], (enum tti_model)model);
			plan = plan_of(&m, NULL, 2, &config);
			for (uint32_t k = 0; k < plan->npatterns; k++)
				for (uint32_t c = 0; c < plan->patterns[k].nchannels; c++) {
					const struct tti_plan_channel *channel =
						&plan->patterns[k].channels[c];

					if (channel->type_intra >= TTI_PATH_PHB ||
					    channel->type_inter >= TTI_PATH_PHB)
						fail_msg("%s: channel %u of %s goes over a CPU",
							 names[i], c,
							 tti_pattern_name(
								 plan->patterns[k].pattern));
				}
			tti_plan_free(plan);
			machine_release(&m);
		}
}

/* -- Few channels -------------------------------------------------------------------------- */

static void few_channels(void **state)
{
	static const struct {
		const char *name;
		uint32_t nnodes;
		enum tti_pattern pattern;
		uint32_t most;
		double least;
	} cases[] = {
		{ "aws-aws-ofi-nccl__p5.48xl-topo", 2, TTI_PATTERN_RING, 32, 384 },
		{ "azhpc-images__ndv5-topo", 2, TTI_PATTERN_RING, 8, 384 },
		{ "oci-hpc__H100-topology", 2, TTI_PATTERN_RING, 16, 360 },
		{ "rccl__topo_8p_940", 2, TTI_PATTERN_RING, 16, 384 },
		{ "rccl__topo_8p_940", 1, TTI_PATTERN_TREE, 8, 480 },
		{ "rccl__topo_8p1h_4", 2, TTI_PATTERN_RING, 16, 192 },
		{ "rccl__topo_8p6l_2nic", 2, TTI_PATTERN_TREE, 4, 48 },
		{ "rccl__topo_8p_4nics", 1, TTI_PATTERN_RING, 6, 96 },
		{ "rccl__topo_8p_rome_n4_1", 1, TTI_PATTERN_TREE, 32, 163 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tti_plan_config config = { .patterns = 1u << cases[i].pattern,
							.cross_nic = TTI_CROSS_AUTO,
							.budget_ms = UNHURRIED_MS };
		struct machine m;
		struct tti_plan *plan;

		open_machine(&m, cases[i].name, TTI_MODEL_NCCL);
		plan = plan_of(&m, NULL, cases[i].nnodes, &config);
		assert_int_equal(plan->npatterns, 1);
		if (plan->patterns[0].nchannels > cases[i].most ||
		    plan->patterns[0].total_gbps < cases[i].least * (1 - 1e-5))
			fail_msg("%s, %u nodes: %u channels for %.4f GB/s", cases[i].name,
				 cases[i].nnodes, plan->patterns[0].nchannels,
				 plan->patterns[0].total_gbps);
		tti_plan_free(plan);
		machine_release(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order_of_scores),
		cmocka_unit_test(rings_of_hosts_stay_near),
		cmocka_unit_test(few_channels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
