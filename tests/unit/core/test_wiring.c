/* SPDX-License-Identifier: BSD-3-Clause */
/* What is kept of how hosts are wired gives the job that it was made of, for all ranks and for
 * some of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/init/comm_job.h"
#include "core/init/wiring.h"
#include "plan/handoff/handoff.h"
#include "util/error.h"
#include "util/mem.h"

#define NRANKS 6

static const char two_nets[] =
	"<system version=\"1\"><cpu numaid=\"0\" affinity=\"f\"/><cpu numaid=\"1\" affinity=\"f0\">"
	"<pci busid=\"0000:01:00.0\" class=\"0x020000\" link_speed=\"16.0 GT/s PCIe\" "
	"link_width=\"16\"><nic><net name=\"a\" dev=\"0\" speed=\"1000\"/></nic></pci>"
	"<pci busid=\"0000:02:00.0\" class=\"0x020000\" link_speed=\"16.0 GT/s PCIe\" "
	"link_width=\"16\"><nic><net name=\"b\" dev=\"1\" speed=\"400\"/></nic></pci>"
	"</cpu></system>";

/* Ranks 0, 2, 4 on one host, 1, 3, 5 on another of the same class; leaders 0 and 1. */
static const int host_of[NRANKS] = { 0, 1, 0, 1, 0, 1 };

static struct tti_wiring *make(const uint32_t *member)
{
	struct tti_host_classes hosts = { .info = tti_calloc(NRANKS, sizeof(*hosts.info)),
					  .leader = tti_calloc(NRANKS, sizeof(*hosts.leader)),
					  .class_of = tti_calloc(NRANKS, sizeof(*hosts.class_of)) };
	const struct tti_host_class host_class = { .nbytes = sizeof(two_nets) - 1,
						   .text = tti_strdup(two_nets) };
	struct tti_wiring *wiring = NULL;

	assert_true(hosts.info && hosts.leader && hosts.class_of && host_class.text);
	assert_true(tti_vec_push(&hosts.classes, host_class));
	for (int rank = 0; rank < NRANKS; rank++) {
		hosts.leader[rank] = host_of[rank];
		hosts.info[rank].nnets = TTI_HOST_ANY_NET;
	}
	strcpy(hosts.info[1].name, "second");
	assert_int_equal(tti_wiring_create(&hosts, host_of, member, NRANKS, &wiring), TUTTI_OK);
	tti_host_classes_release(&hosts);
	return wiring;
}

/* The endpoints of the NUMA nodes, as a job finds them. */
static void find_members(uint32_t *first, uint32_t *second)
{
	uint32_t none[NRANKS];
	struct tti_wiring *wiring;
	struct tti_comm_job job;

	memset(none, 0xff, sizeof(none));
	wiring = make(none);
	assert_int_equal(tti_comm_job_of_wiring(wiring, host_of, NRANKS, &job), TUTTI_OK);
	assert_int_equal(job.machines[0].graph->ntype[TTI_NODE_HOST], 2);
	*first = job.machines[0].graph->by_type[TTI_NODE_HOST][0];
	*second = job.machines[0].graph->by_type[TTI_NODE_HOST][1];
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(job.job.nodes[0].members[i], *first);
	tti_comm_job_release(&job);
	tti_wiring_free(wiring);
}

static void all_ranks_and_some(void **state)
{
	static const int all[] = { 0, 1, 2, 3, 4, 5 }, some[] = { 5, 4, 1 }, fewer[] = { 2, 0 };
	static const int some_hosts[] = { 0, 1, 0 }, fewer_hosts[] = { 0, 0 };
	uint32_t first, second, member[NRANKS];
	struct tti_wiring *wiring, *same, *child, *grandchild;
	struct tti_comm_job job;

	(void)state;
	find_members(&first, &second);
	for (int rank = 0; rank < NRANKS; rank++)
		member[rank] = rank < 4 ? first : second;
	wiring = make(member);
	assert_int_equal(tti_wiring_project(wiring, all, NRANKS, &same), TUTTI_OK);
	assert_ptr_equal(same, wiring);
	assert_int_equal(tti_wiring_project(wiring, some, 3, &child), TUTTI_OK);
	assert_int_equal(tti_wiring_project(child, fewer, 2, &grandchild), TUTTI_OK);
	/* Each outlives the one that it was made of. */
	tti_wiring_free(wiring);
	assert_int_equal(tti_comm_job_of_wiring(same, host_of, NRANKS, &job), TUTTI_OK);
	assert_int_equal(job.job.nnodes, 2);
	assert_ptr_equal(job.job.nodes[0].routes, job.job.nodes[1].routes);
	assert_string_equal(job.job.nodes[1].name, "second");
	for (uint32_t node = 0; node < 2; node++) {
		assert_int_equal(job.job.nodes[node].nnets, 2);
		for (uint32_t i = 0; i < 3; i++) {
			assert_int_equal(job.job.nodes[node].ranks[i], 2 * i + node);
			assert_int_equal(job.job.nodes[node].members[i], member[2 * i + node]);
		}
	}
	tti_comm_job_release(&job);
	tti_wiring_free(same);
	assert_int_equal(tti_comm_job_of_wiring(child, some_hosts, 3, &job), TUTTI_OK);
	assert_int_equal(job.job.nnodes, 2);
	assert_int_equal(job.job.nodes[0].nranks, 2);
	assert_string_equal(job.job.nodes[0].name, "second");
	assert_int_equal(job.job.nodes[0].members[0], second);
	assert_int_equal(job.job.nodes[0].members[1], first);
	assert_int_equal(job.job.nodes[1].members[0], second);
	tti_comm_job_release(&job);
	tti_wiring_free(child);
	/* Ranks 1 and 5 of all: those that the child has as 2 and 0. */
	assert_int_equal(tti_comm_job_of_wiring(grandchild, fewer_hosts, 2, &job), TUTTI_OK);
	assert_int_equal(job.job.nnodes, 1);
	assert_int_equal(job.job.nodes[0].members[0], first);
	assert_int_equal(job.job.nodes[0].members[1], second);
	tti_comm_job_release(&job);
	tti_wiring_free(grandchild);
}

/* The networks of the NICs say which are on one rail, whatever their names and places. */
static void crossed_rails(void **state)
{
	static const uint32_t from[] = { 0, 2, 4 }, to[] = { 1, 3, 5 };
	struct tti_handoff_job handoff = { .from = from, .to = to, .nfrom = 3, .nto = 3 };
	const uint32_t member[NRANKS] = { 0 };
	struct tti_handoff_plan *plan = NULL;
	struct tti_wiring *wiring = make(member);
	struct tti_comm_job job;

	(void)state;
	for (uint32_t site = 0; site < 2; site++) {
		assert_int_equal(tti_comm_job_of_wiring(wiring, host_of, NRANKS, &job), TUTTI_OK);
		wiring->sites[site].nnets = 2;
		for (uint32_t net = 0; net < 2; net++) {
			const uint32_t at = job.job.nodes[0].nets[net];

			wiring->sites[site].nets[net] = job.machines[0].graph->nodes[at].element;
			wiring->sites[site].rail[net] = 7 + (net ^ site);
		}
		tti_comm_job_release(&job);
	}
	assert_int_equal(tti_comm_job_of_wiring(wiring, host_of, NRANKS, &job), TUTTI_OK);
	handoff.job = &job.job;
	assert_int_equal(tti_handoff_plan_make(&handoff, &plan), TUTTI_OK);
	assert_true(plan->nways >= 2);
	for (uint32_t i = 0; i < plan->nways; i++)
		assert_int_equal(plan->ways[i].straight,
				 plan->ways[i].net_out == 1 - plan->ways[i].net_in);
	assert_true(plan->ways[0].straight);
	tti_handoff_plan_free(plan);
	tti_comm_job_release(&job);
	tti_wiring_free(wiring);
}

/* Nothing is known: all ranks of a host sit beside its one NIC, and pairs carry alike. */
static void plain_hosts(void **state)
{
	static const uint32_t from[] = { 0, 2, 4 }, to[] = { 1, 3, 5 };
	struct tti_handoff_job handoff = { .from = from, .to = to, .nfrom = 3, .nto = 3 };
	struct tti_handoff_plan *plan = NULL;
	struct tti_wiring *child = NULL;
	struct tti_comm_job job;

	(void)state;
	assert_int_equal(tti_wiring_project(NULL, host_of, NRANKS, &child), TUTTI_OK);
	assert_null(child);
	assert_int_equal(tti_comm_job_of_wiring(NULL, host_of, NRANKS, &job), TUTTI_OK);
	handoff.job = &job.job;
	if (tti_handoff_plan_make(&handoff, &plan) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	assert_int_equal(tti_handoff_plan_check(&handoff, plan), TUTTI_OK);
	assert_int_equal(plan->nways, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(plan->ways[i].from, 2 * i);
		assert_int_equal(plan->ways[i].to, 2 * i + 1);
		assert_true(plan->ways[i].share > 0.333 && plan->ways[i].share < 0.334);
	}
	tti_handoff_plan_free(plan);
	tti_comm_job_release(&job);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ranks_and_some),
		cmocka_unit_test(crossed_rails),
		cmocka_unit_test(plain_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
