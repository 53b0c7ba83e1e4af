/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans of one node whose hops go over NICs: added up link by link, written and read, and
 * told from others. */
#include "insight/plan/job.h"
#include "insight/plan/plan_report.h"
#include "insight/tune/tune_any.h"
#include "machines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plan/tune/tune.h"
#include "support/random_topo.h"
#include "support/sanitizer.h"
#include "util/error.h"

static const struct tti_plan_config one_way = {
	.patterns = 1u << TTI_PATTERN_RING | 1u << TTI_PATTERN_TREE, .cross_nic = TTI_CROSS_AUTO
};
static const struct tti_plan_config both_ways = { .patterns = 1u << TTI_PATTERN_RING |
							      1u << TTI_PATTERN_TREE,
						  .cross_nic = TTI_CROSS_AUTO,
						  .both_ways = true,
						  .budget_ms = UNHURRIED_MS };

static struct tti_plan *plan_of(const struct tti_plan_job *job,
				const struct tti_plan_config *config)
{
	struct tti_plan *plan = NULL;

	if (tti_plan_make(job, config, &plan) != TUTTI_OK || tti_plan_check(plan) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return plan;
}

/* What the machine cannot carry, in words. */
static size_t findings(const struct tti_plan_job *job, const struct tti_plan_config *config,
		       const struct tti_plan *plan, char *text, size_t size)
{
	const struct tti_report report = { .plan = plan, .job = job, .config = config };
	struct tti_strbuf out = { 0 };
	size_t n = 0;

	assert_int_equal(tti_plan_verify(&report, &out, &n), TUTTI_OK);
	snprintf(text, size, "%s", out.text ? out.text : "");
	tti_strbuf_release(&out);
	return n;
}

static void links_carry_it(const struct tti_plan_job *job, const struct tti_plan_config *config,
			   const struct tti_plan *plan)
{
	char text[256];

	if (findings(job, config, plan, text, sizeof(text)) > 0)
		fail_msg("%s", text);
}

static struct tti_plan_job *job_of(const struct machine *m, uint32_t nranks)
{
	const struct tti_routes *routes = m->routes;
	struct tti_plan_job *job = NULL;

	assert_int_equal(tti_plan_job_of(&routes, 1, 1, nranks, &job), TUTTI_OK);
	return job;
}

static bool uses_ways(const struct tti_plan_pattern *pattern)
{
	for (uint32_t i = 0; i < pattern->nchannels; i++)
		if (pattern->channels[i].ways)
			return true;
	return false;
}

static bool uses_nets(const struct tti_plan *plan)
{
	for (uint32_t i = 0; i < plan->npatterns; i++)
		if (uses_ways(&plan->patterns[i]))
			return true;
	return false;
}

/* Written and read, it is the same plan. */
static void round_trip(const struct tti_plan *plan)
{
	struct tti_strbuf out = { 0 };
	struct tti_plan *again = NULL;
	char why[128];

	assert_int_equal(tti_plan_json(plan, &out), TUTTI_OK);
	if (tti_plan_read(out.text, out.len, "plan", &again) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	assert_false(tti_plan_differ(plan, again, why, sizeof(why)));
	assert_int_equal(plan->hash, again->hash);
	tti_plan_free(again);
	tti_strbuf_release(&out);
}

static void random_nodes(void **state)
{
	const char *asked = getenv("TEST_ROUNDS");
	const uint64_t rounds = asked ? strtoull(asked, NULL, 10) : SANITIZED ? 20 : 60;
	uint32_t count = 0;

	(void)state;
	for (uint64_t seed = 110; seed < 110 + rounds; seed++) {
		const struct tti_plan_config *config = seed % 2 ? &both_ways : &one_way;
		struct tti_plan *plan;
		struct tti_plan_job *job;
		struct machine m;

		machine_build(&m, random_topo(seed), (enum tti_model)(seed % 2));
		/* Some with ranks that share devices. */
		job = job_of(&m, seed % 3 ? 0 : 9);
		plan = plan_of(job, config);
		/* NICs of several hosts may have one name. */
		if (m.graph->nhosts == 1) {
			links_carry_it(job, config, plan);
			round_trip(plan);
		}
		count += uses_nets(plan);
		tti_plan_free(plan);
		tti_plan_job_free(job);
		machine_release(&m);
	}
	assert_true(count > 0);
}

/* -- One machine ----------------------------------------------------------------------- */

static struct machine machine;
static struct tti_plan_job *job;
static struct tti_plan *plan;

static int set_up(void **state)
{
	(void)state;
	machine_read(&machine, TEST_DATA "/topologies/rccl__topo_8p_4nics.xml", TTI_MODEL_NCCL);
	job = job_of(&machine, 0);
	plan = plan_of(job, &one_way);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tti_plan_free(plan);
	tti_plan_job_free(job);
	machine_release(&machine);
	return 0;
}

static void without_their_nics_it_is_too_much(void **state)
{
	struct tti_strbuf out = { 0 };
	struct tti_plan *direct = NULL;
	char text[4096], why[128], *at;

	(void)state;
	assert_int_equal(tti_plan_json(plan, &out), TUTTI_OK);
	/* As a reader that does not know of them would see it. */
	for (at = out.text; (at = strstr(at, "\"over_nets\""));)
		at[1] = '-';
	assert_int_equal(tti_plan_read(out.text, out.len, "old", &direct), TUTTI_OK);
	assert_true(tti_plan_differ(plan, direct, why, sizeof(why)));
	assert_non_null(strstr(why, "another way to rank"));
	assert_true(plan->hash != direct->hash);
	links_carry_it(job, &one_way, plan);
	assert_true(findings(job, &one_way, direct, text, sizeof(text)) > 0);
	assert_non_null(strstr(text, "is to carry"));
	tti_plan_free(direct);
	tti_strbuf_release(&out);
}

static void a_node_of_several_does_not(void **state)
{
	const struct tti_routes *routes = machine.routes;
	struct tti_plan_job *two = NULL;
	struct tti_plan *other;

	(void)state;
	assert_int_equal(tti_plan_job_of(&routes, 1, 2, 0, &two), TUTTI_OK);
	other = plan_of(two, &one_way);
	assert_true(uses_nets(plan));
	assert_false(uses_nets(other));
	tti_plan_free(other);
	tti_plan_job_free(two);
}

/* -- In words -------------------------------------------------------------------------- */

static void holds(const struct tti_strbuf *out, const char *want)
{
	if (!out->text || !strstr(out->text, want))
		fail_msg("\"%s\" is not in: %s", want, out->text ? out->text : "");
}

static void told_to_people(void **state)
{
	const struct tti_report report = { .plan = plan, .job = job, .config = &one_way };
	struct tti_strbuf out = { 0 };

	(void)state;
	tti_plan_table(&report, &out);
	holds(&out, "-4 by mlx5_1, mlx5_5");
	out.len = 0;
	assert_int_equal(tti_plan_explain(&report, &out), TUTTI_OK);
	holds(&out, "by mlx5_1 and mlx5_5; directly (SYS, 16.0 alone)");
	holds(&out, "mlx5_3 takes 24.0 out and 24.0 in");
	holds(&out, "without hops over NICs (--cross-nic 0): 48.0 GB/s");
	out.len = 0;
	assert_int_equal(tti_plan_dot(&report, &out), TUTTI_OK);
	holds(&out, "mlx5_1 &#8594; mlx5_");
	tti_strbuf_release(&out);
}

/* NCCL's file has no word for it: what is in there is a plan without, and is told so. */
static void told_to_nccl(void **state)
{
	const struct tti_report report = { .plan = plan, .job = job, .config = &one_way };
	struct tti_strbuf out = { 0 }, excess = { 0 };
	struct tti_plan *read = NULL;

	(void)state;
	assert_int_equal(tti_plan_nccl(&report, &out), TUTTI_OK);
	holds(&out, "ring: the plan has 96.00 GB/s with hops inside the node that go over NICs");
	holds(&out, "ring: 48.00 of 48.00 GB/s");
	assert_int_equal(
		tti_plan_read_nccl(out.text, out.len, "graph", job, &one_way, &excess, &read),
		TUTTI_OK);
	assert_int_equal(excess.len, 0);
	assert_false(uses_nets(read));
	links_carry_it(job, &one_way, read);
	assert_true(tti_plan_pattern(read, TTI_PATTERN_RING)->bound_gbps > 95.9);
	tti_plan_free(read);
	tti_strbuf_release(&out);
}

static void differences(void **state)
{
	struct tti_plan_config config = one_way;
	struct tti_strbuf out = { 0 };
	struct tti_plan *other;
	size_t n = 0;

	(void)state;
	config.cross_nic = TTI_CROSS_SAME;
	other = plan_of(job, &config);
	assert_false(uses_nets(other));
	tti_plan_diff(plan, other, &out, &n);
	holds(&out, "against directly and directly");
	out.len = n = 0;
	tti_plan_diff(plan, plan, &out, &n);
	assert_int_equal(n, 0);
	tti_plan_free(other);
	tti_strbuf_release(&out);
}

/* A hop over the network takes its time there. */
static void latency(void **state)
{
	const struct tti_tune_constants c = tti_tune_defaults().constants;
	struct tti_tune_any machine_of = tti_tune_any_of_plan(plan), without = machine_of;
	struct tti_tune_time with_nets, direct;

	(void)state;
	assert_true(machine_of.ring_net_hops >= 2 && machine_of.tree_net_hops >= 1);
	without.ring_net_hops = without.tree_net_hops = 0;
	for (int i = 0; i < 2; i++) {
		const enum tti_tune_algo algo = i ? TTI_TUNE_TREE : TTI_TUNE_RING;
		const double hops = i ? machine_of.tree_net_hops : machine_of.ring_net_hops;
		const double hop = i ? c.gpu_pci_tree_us : c.gpu_pci_us;

		assert_true(tti_tune_any_predict(&c, &machine_of, TUTTI_ALL_REDUCE, algo, 1 << 20,
						 &with_nets));
		assert_true(tti_tune_any_predict(&c, &without, TUTTI_ALL_REDUCE, algo, 1 << 20,
						 &direct));
		assert_true(fabs(with_nets.latency_us - direct.latency_us -
				 2 * hops * (c.gpu_net_us - hop)) < 1e-6);
	}
}

/* -- Files ----------------------------------------------------------------------------- */

#define HEAD                                                                                  \
	"{\"nodes\":1,\"ranks\":3,\"hosts\":[{\"name\":\"a\",\"kind\":0,\"ranks\":[0,1,2],"   \
	"\"nets\":[\"x\",\"y\"]}],\"patterns\":{\"ring\":{\"bound_bw_gbps\":9,\"channels\":[" \
	"{\"bw_gbps\":9,\"ranks\":[0,2,1],\"nets\":[],\"type_intra\":\"NET\","                \
	"\"type_inter\":\"LOC\",\"over_nets\":"
#define TAIL "}]}}}"

static void texts_of_hops(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: it is good */
	} cases[] = {
		{ "[]", NULL },
		{ "[[0,\"x\",\"y\",2]]", NULL },
		{ "[[1,\"y\",\"x\",0],[2,\"x\",\"y\",1]]", NULL },
		{ "[[0,\"x\",\"x\",2]]", "no two of the node" },
		{ "[[0,\"x\",\"z\",2]]", "z is no NIC of node a" },
		{ "[[0,\"x\",\"y\",1]]", "no hop from rank 0 to 1" },
		{ "[[0,\"x\",\"y\",7]]", "no hop from rank 0 to 7" },
		{ "[[-1,\"x\",\"y\",2]]", "no hop from rank -1 to 2" },
		{ "[[4294967296,\"x\",\"y\",2]]", "no hop from rank 4294967296" },
		{ "[[0,\"x\",\"y\",2],[0,\"x\",\"y\",2]]",
		  "over_nets[1]: the hop from rank 0 to 2 is "
		  "there twice" },
		{ "[[0,\"x\",\"y\"]]", "not a rank, the NIC it leaves by" },
		{ "[\"x\"]", "not a rank" },
		{ "7", "is not a list" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct tti_plan *read = NULL;
		char text[1024];
		tutti_status st;

		snprintf(text, sizeof(text), HEAD "%s" TAIL, cases[i].text);
		st = tti_plan_read(text, strlen(text), "x.json", &read);
		if (!cases[i].want && st != TUTTI_OK)
			fail_msg("%s: %s", cases[i].text, tti_error_text());
		if (cases[i].want && (st == TUTTI_OK || !strstr(tti_error_text(), cases[i].want)))
			fail_msg("%s: %s", cases[i].text, tti_error_text());
		if (!cases[i].want)
			assert_int_equal(uses_ways(&read->patterns[0]), i > 0);
		tti_plan_free(read);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_nodes),
		cmocka_unit_test(without_their_nics_it_is_too_much),
		cmocka_unit_test(a_node_of_several_does_not),
		cmocka_unit_test(told_to_people),
		cmocka_unit_test(told_to_nccl),
		cmocka_unit_test(differences),
		cmocka_unit_test(latency),
		cmocka_unit_test(texts_of_hops),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
