/* SPDX-License-Identifier: BSD-3-Clause */
/* Which interfaces the ranks of two hosts are told to begin with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/init/comm_job.h"
#include "core/init/nics.h"
#include "topo/tree/schema.h"
#include "util/error.h"
#include "util/mem.h"

#define N 8

/* Two NUMA nodes, two NICs below each; all that runs here may run on all cores, so ranks
 * fill one node and then the other. */
static const char two_sockets[] =
	"<system version=\"1\">"
	"<cpu numaid=\"0\" affinity=\"0000000f\" arch=\"x86_64\" vendor=\"AuthenticAMD\">"
	"<nic><net name=\"a\" dev=\"0\" speed=\"10000\"/></nic>"
	"<nic><net name=\"b\" dev=\"1\" speed=\"10000\"/></nic></cpu>"
	"<cpu numaid=\"1\" affinity=\"000000f0\" arch=\"x86_64\" vendor=\"AuthenticAMD\">"
	"<nic><net name=\"c\" dev=\"2\" speed=\"10000\"/></nic>"
	"<nic><net name=\"d\" dev=\"3\" speed=\"10000\"/></nic></cpu></system>";

struct given {
	struct tti_peers peers;
	struct tti_host_classes hosts;
	int host_of[N];
	struct tti_comm_job job;
	struct tti_nic_order order[N];
	bool some;
};

/* The numbers of the <net>s in the document. */
static uint32_t number_of(const struct tti_xml_doc *doc, const char *name)
{
	uint32_t number = 0;

	for (const struct tti_xml *at = doc->root; at; at = tti_xml_walk(at), number++)
		if (tti_xml_is(at, "net") && !strcmp(tti_xml_get(at, "name"), name))
			return number;
	fail();
	return 0;
}

static void fill_info(struct tti_host_info *info, const char *names, const uint64_t *rail)
{
	struct tti_xml_doc *doc = NULL;

	assert_int_equal(tti_xml_read(two_sockets, sizeof(two_sockets) - 1, "host", &doc),
			 TUTTI_OK);
	for (uint32_t i = 0; names[i]; i++) {
		const char name[2] = { names[i], '\0' };

		info->nets[i] = number_of(doc, name);
		info->rail[i] = rail ? rail[i] : 0;
		memcpy(info->ifname[i], name, 2);
		info->nnets = i + 1;
	}
	tti_xml_free(doc);
}

/* Half of the ranks on each host. */
static void set_up(struct given *given, const char *one, const char *other, const uint64_t *rails)
{
	struct tti_host_class host_class = { .nbytes = sizeof(two_sockets) - 1 };

	*given = (struct given){ .peers = { .n = N } };
	given->peers.info = tti_calloc(N, sizeof(*given->peers.info));
	given->hosts.info = tti_calloc(N, sizeof(*given->hosts.info));
	given->hosts.leader = tti_calloc(N, sizeof(*given->hosts.leader));
	given->hosts.class_of = tti_calloc(N, sizeof(*given->hosts.class_of));
	host_class.text = tti_strdup(two_sockets);
	assert_true(tti_vec_push(&given->hosts.classes, host_class));
	for (int rank = 0; rank < N; rank++) {
		memset(given->peers.info[rank].cpus, 0xff, sizeof(given->peers.info[rank].cpus));
		given->host_of[rank] = rank / 4 * 4;
		given->hosts.leader[rank] = rank / 4 * 4;
	}
	fill_info(&given->hosts.info[0], one, rails);
	fill_info(&given->hosts.info[4], other, rails ? rails + 4 : NULL);
	assert_int_equal(
		tti_comm_job_build(&given->peers, &given->hosts, given->host_of, &given->job),
		TUTTI_OK);
	assert_int_equal(tti_nics_deal(&given->job, &given->hosts, given->order, &given->some),
			 TUTTI_OK);
}

static void tear_down(struct given *given)
{
	tti_comm_job_release(&given->job);
	tti_host_classes_release(&given->hosts);
	tti_peers_release(&given->peers);
}

static struct tti_nic_names names_of(const struct given *given, int rank)
{
	struct tti_nic_names names;

	tti_nics_name(&given->hosts, rank, &given->order[rank], &names);
	return names;
}

static void nearest_and_fair(void **state)
{
	static const char first[] = "abcdabcd";
	struct given given;

	(void)state;
	set_up(&given, "abcd", "abcd", NULL);
	assert_true(given.some);
	for (int rank = 0; rank < N; rank++) {
		const struct tti_nic_names names = names_of(&given, rank);

		assert_int_equal(names.n, 4);
		assert_int_equal(names.name[0][0], first[rank]);
		/* The other of the same node is next, then those of the other. */
		assert_int_equal(names.name[1][0], "badc"[first[rank] - 'a']);
		assert_true((names.name[2][0] < 'c') != (first[rank] < 'c'));
	}
	tear_down(&given);
}

/* The second host lists its NICs in another order; their networks say who belongs together. */
static void straight_by_network(void **state)
{
	static const uint64_t rails[8] = { 1, 2, 3, 4, 2, 1, 4, 3 };
	struct given given;

	(void)state;
	set_up(&given, "abcd", "abcd", rails);
	for (int rank = 0; rank < 4; rank++) {
		const char one = names_of(&given, rank).name[0][0];
		const char other = names_of(&given, rank + 4).name[0][0];

		assert_int_equal(rails[one - 'a'], rails[4 + other - 'a']);
	}
	tear_down(&given);
}

static void nothing_to_choose(void **state)
{
	struct given given;

	(void)state;
	set_up(&given, "a", "b", NULL);
	assert_false(given.some);
	assert_int_equal(names_of(&given, 3).n, 0);
	tear_down(&given);
}

/* Both are bonded: the interface is named once. */
static void bonded(void **state)
{
	struct given given;

	(void)state;
	set_up(&given, "ab", "c", NULL);
	for (int i = 0; i < 2; i++)
		memcpy(given.hosts.info[0].ifname[i], "bond0", 6);
	assert_true(given.some);
	assert_int_equal(names_of(&given, 1).n, 1);
	assert_string_equal(names_of(&given, 1).name[0], "bond0");
	assert_int_equal(names_of(&given, 5).n, 1);
	tear_down(&given);
}

/* -- What the plan says --------------------------------------------------------------- */

static struct tti_plan *plan_of(const struct given *given)
{
	const struct tti_plan_config config = { .patterns = 1u << TTI_PATTERN_RING |
							    1u << TTI_PATTERN_TREE };
	struct tti_plan *plan = NULL;

	if (tti_plan_make(&given->job.job, &config, &plan) != TUTTI_OK)
		fail_msg("%s", tti_error_text());
	return plan;
}

static struct tti_nic_wires wires_of(const struct given *given, const struct tti_plan *plan,
				     int rank)
{
	struct tti_nic_wires wires;
	uint8_t *at = NULL;
	uint32_t n = 0;

	assert_int_equal(tti_nics_locate(&given->job, &given->hosts, plan, &at, &n), TUTTI_OK);
	assert_int_equal(n, plan->nodes[0].nnets + plan->nodes[1].nnets);
	assert_int_equal(tti_nics_wire(plan, &given->hosts, at, rank, &wires), TUTTI_OK);
	tti_free(at);
	return wires;
}

/* The interfaces are those whose NICs the rings use, on both sides. */
static void wires_are_interfaces(void **state)
{
	int nwired = 0;
	struct tti_plan *plan;
	struct given given;

	(void)state;
	set_up(&given, "abcd", "dbca", NULL);
	for (int host = 0; host < N; host += 4)
		for (int i = 0; i < 4; i++)
			given.hosts.info[host].ifname[i][0] -= 'a' - 'A';
	plan = plan_of(&given);
	for (int rank = 0; rank < N; rank++) {
		struct tti_nic_wires wires = wires_of(&given, plan, rank);

		for (int i = 0; i < wires.n; i++) {
			const struct tti_lane_share *here = &wires.share[i];
			struct tti_nic_wires there = wires_of(&given, plan, wires.peer[i]);
			bool mirrored = false;

			for (int k = 0; k < there.n; k++)
				mirrored |= there.peer[k] == rank &&
					    !strcmp(there.share[k].local_nic, here->remote_nic) &&
					    !strcmp(there.share[k].remote_nic, here->local_nic);
			assert_true(mirrored && here->share > 0);
			assert_in_range(here->local_nic[0], 'A', 'D');
			assert_true(wires.peer[i] / 4 != rank / 4);
			tti_nics_unwire(&there);
		}
		nwired += wires.n;
		tti_nics_unwire(&wires);
	}
	assert_true(nwired > 0);
	tti_plan_free(plan);
	tear_down(&given);
}

/* A bond carries what its NICs would; what is no interface here is left out. */
static void bonds_and_strangers(void **state)
{
	struct tti_nic_wires wires;
	struct tti_plan *plan;
	struct given given;
	double all = 0;
	int n = 0;

	(void)state;
	set_up(&given, "ab", "ab", NULL);
	plan = plan_of(&given);
	for (int host = 0; host < N; host += 4)
		for (int i = 0; i < 2; i++)
			memcpy(given.hosts.info[host].ifname[i], "bond0", 6);
	for (int rank = 0; rank < 4; rank++) {
		wires = wires_of(&given, plan, rank);
		n += wires.n;
		for (int i = 0; i < wires.n; i++) {
			assert_true(i == 0 || wires.peer[i] != wires.peer[i - 1]);
			assert_string_equal(wires.share[i].local_nic, "bond0");
			all += wires.share[i].share;
		}
		tti_nics_unwire(&wires);
	}
	assert_true(n > 0 && all > 0);
	given.hosts.info[4].nnets = TTI_HOST_ANY_NET;
	for (int rank = 0; rank < 4; rank++) {
		wires = wires_of(&given, plan, rank);
		assert_int_equal(wires.n, 0);
		tti_nics_unwire(&wires);
	}
	tti_plan_free(plan);
	tear_down(&given);
}

static void some_of_the_ranks(void **state)
{
	static const int of[] = { 6, 1, 4 };
	int peer[] = { 1, 4, 4, 5 };
	struct tti_lane_share share[4] = { { .share = 1 }, { .share = 2 }, { .share = 3 } };
	const struct tti_nic_wires all = { .n = 4, .peer = peer, .share = share };
	const struct tti_nic_wires none = { .n = 0 };
	struct tti_nic_wires wires;

	(void)state;
	assert_int_equal(tti_nics_rewire(&all, of, 3, &wires), TUTTI_OK);
	assert_int_equal(wires.n, 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(wires.peer[i], i ? 2 : 1);
		assert_float_equal(wires.share[i].share, i + 1, 0);
	}
	tti_nics_unwire(&wires);
	assert_int_equal(tti_nics_rewire(&none, of, 3, &wires), TUTTI_OK);
	assert_null(wires.peer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nearest_and_fair),     cmocka_unit_test(straight_by_network),
		cmocka_unit_test(nothing_to_choose),    cmocka_unit_test(bonded),
		cmocka_unit_test(wires_are_interfaces), cmocka_unit_test(bonds_and_strangers),
		cmocka_unit_test(some_of_the_ranks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
