/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans as text and back; texts that are none. */
#include "insight/plan/job.h"
#include "unit/plan/machines.h"

#include <stdio.h>
#include <string.h>

#include "util/error.h"

static struct tti_plan *plan_of(const char *file, uint32_t count)
{
	const struct tti_routes *routes;
	struct tti_plan *plan = NULL;
	struct tti_plan_job *job = NULL;
	struct machine m;
	char path[256];

	snprintf(path, sizeof(path), TEST_DATA "/topologies/%s", file);
	machine_read(&m, path, TTI_MODEL_TUTTI);
	routes = m.routes;
	assert_int_equal(tti_plan_job_of(&routes, 1, count, 0, &job), TUTTI_OK);
	assert_int_equal(tti_plan_make(job, NULL, &plan), TUTTI_OK);
	tti_plan_job_free(job);
	machine_release(&m);
	return plan;
}

static char *text_of(const struct tti_plan *plan)
{
	struct tti_strbuf out = { 0 };
	char *text;

	assert_int_equal(tti_plan_json(plan, &out), TUTTI_OK);
	text = tti_strbuf_take(&out);
	assert_non_null(text);
	return text;
}

static void there_and_back(void **state)
{
	(void)state;
	for (uint32_t count = 1; count <= 3; count++) {
		struct tti_plan *plan = plan_of("azhpc-images__ndv4-topo.xml", count);
		struct tti_plan *again = NULL;
		char *text = text_of(plan), *twice, why[200];

		if (tti_plan_read(text, strlen(text), "plan.json", &again) != TUTTI_OK)
			fail_msg("%s", tti_error_text());
		twice = text_of(again);
		assert_string_equal(text, twice);
		assert_int_equal(plan->hash, again->hash);
		assert_false(tti_plan_differ(plan, again, why, sizeof(why)));
		free(text);
		free(twice);
		tti_plan_free(plan);
		tti_plan_free(again);
	}
}

/* Thirds and sevenths of what fills a link are rounded down; their sum is not. */
static void totals_are_whole(void **state)
{
	static const char *const names[] = { "azhpc-images__ndv4-topo.xml",
					     "aws-aws-ofi-nccl__p5.48xl-topo.xml",
					     "Timez-zx-nccl-tests__topo_real.v2.xml" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (uint32_t count = 1; count <= 2; count++) {
			struct tti_plan *plan = plan_of(names[i], count);

			for (uint32_t k = 0; k < plan->npatterns; k++) {
				const struct tti_plan_pattern *pattern = &plan->patterns[k];
				char total[32], bound[32];

				if (tti_pattern_has_heads(pattern->pattern))
					continue;
				snprintf(total, sizeof(total), "%.5f", pattern->total_gbps);
				snprintf(bound, sizeof(bound), "%.5f", pattern->bound_gbps);
				assert_string_equal(total, bound);
			}
			tti_plan_free(plan);
		}
}

static void refuse(const char *text, const char *why)
{
	struct tti_plan *plan = NULL;

	assert_int_not_equal(tti_plan_read(text, strlen(text), "x.json", &plan), TUTTI_OK);
	if (!strstr(tti_error_text(), why))
		fail_msg("\"%s\" has no \"%s\"", tti_error_text(), why);
}

#define HOSTS                                                                                      \
	"{\"nodes\":1,\"ranks\":2,\"hosts\":[{\"name\":\"\",\"kind\":0,\"ranks\":[0,1],\"nets\":[" \
	"]}],\"patterns\":"
#define RING(channels) HOSTS "{\"ring\":{\"bound_bw_gbps\":9,\"channels\":[" channels "]}}}"

static void texts_that_are_none(void **state)
{
	(void)state;
	refuse("", "x.json:1");
	refuse("{\"nodes\":1,\n\"nodes\":2}", "x.json:2");
	refuse("[]", "not an object");
	refuse("{\"nodes\":-1}", "not between");
	refuse("{\"nodes\":2,\"ranks\":1}", "1 ranks on 2 nodes");
	refuse("{\"nodes\":1,\"ranks\":1,\"hosts\":[]}", "hosts: 0 entries");
	refuse("{\"nodes\":1,\"ranks\":4000000000}", "ranks");
	refuse(HOSTS "{\"rings\":{}}}", "no such pattern");
	refuse(RING("{}"), "patterns.ring.channels[0]: \"bw_gbps\" is missing");
	refuse(RING("{\"bw_gbps\":1,\"ranks\":[0,7]}"), "ring.channels[0].ranks: entry 1");
	refuse(RING("{\"bw_gbps\":1,\"ranks\":[0,0],\"nets\":[],\"type_intra\":\"SYS\","
		    "\"type_inter\":\"LOC\"}"),
	       "twice rank 0");
	refuse(RING("{\"bw_gbps\":10,\"ranks\":[0,1],\"nets\":[],\"type_intra\":\"SYS\","
		    "\"type_inter\":\"LOC\"}"),
	       "bound");
	refuse(RING("{\"bw_gbps\":1,\"ranks\":[0,1],\"nets\":[],\"type_intra\":\"BUS\","
		    "\"type_inter\":\"LOC\"}"),
	       "no type of path");
}

static void differences_in_words(void **state)
{
	struct tti_plan *a = plan_of("azhpc-images__ndv4-topo.xml", 2);
	struct tti_plan *b = plan_of("azhpc-images__ndv4-topo.xml", 2);
	struct tti_plan *c = plan_of("azhpc-images__ndv4-topo.xml", 3);
	char why[200];

	(void)state;
	assert_true(tti_plan_differ(a, c, why, sizeof(why)));
	assert_string_equal(why, "16 ranks on 2 nodes against 24 on 3");
	b->patterns[0].channels[1].bw_gbps -= 1;
	assert_true(tti_plan_differ(a, b, why, sizeof(why)));
	assert_non_null(strstr(why, "ring channel 1: 24.000 against 23.000"));
	assert_int_not_equal(tti_plan_hash(a), tti_plan_hash(b));
	tti_plan_free(a);
	tti_plan_free(b);
	tti_plan_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(totals_are_whole),
		cmocka_unit_test(texts_that_are_none),
		cmocka_unit_test(differences_in_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
