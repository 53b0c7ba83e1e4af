/* SPDX-License-Identifier: BSD-3-Clause */
/* Which interfaces the ranks of two hosts are told to begin with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/comm_job.h"
#include "core/nics.h"
#include "topo/schema.h"
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
	struct tti_roll roll;
	struct tti_views views;
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

static void fill_card(struct tti_topo_card *card, const char *names, const uint64_t *rail)
{
	struct tti_xml_doc *doc = NULL;

	assert_int_equal(tti_xml_read(two_sockets, sizeof(two_sockets) - 1, "host", &doc),
			 TUTTI_OK);
	for (uint32_t i = 0; names[i]; i++) {
		const char name[2] = { names[i], '\0' };

		card->nets[i] = number_of(doc, name);
		card->rail[i] = rail ? rail[i] : 0;
		memcpy(card->ifname[i], name, 2);
		card->nnets = i + 1;
	}
	tti_xml_free(doc);
}

/* Half of the ranks on each host. */
static void set_up(struct given *given, const char *one, const char *other, const uint64_t *rails)
{
	struct tti_view_kind kind = { .nbytes = sizeof(two_sockets) - 1 };

	*given = (struct given){ .roll = { .n = N } };
	given->roll.info = tti_calloc(N, sizeof(*given->roll.info));
	given->views.cards = tti_calloc(N, sizeof(*given->views.cards));
	given->views.leader = tti_calloc(N, sizeof(*given->views.leader));
	given->views.kind = tti_calloc(N, sizeof(*given->views.kind));
	kind.text = tti_strdup(two_sockets);
	assert_true(tti_vec_push(&given->views.kinds, kind));
	for (int rank = 0; rank < N; rank++) {
		memset(given->roll.info[rank].cpus, 0xff, sizeof(given->roll.info[rank].cpus));
		given->host_of[rank] = rank / 4 * 4;
		given->views.leader[rank] = rank / 4 * 4;
	}
	fill_card(&given->views.cards[0], one, rails);
	fill_card(&given->views.cards[4], other, rails ? rails + 4 : NULL);
	assert_int_equal(
		tti_comm_job_build(&given->roll, &given->views, given->host_of, &given->job),
		TUTTI_OK);
	assert_int_equal(tti_nics_deal(&given->job, &given->views, given->order, &given->some),
			 TUTTI_OK);
}

static void tear_down(struct given *given)
{
	tti_comm_job_release(&given->job);
	tti_views_release(&given->views);
	tti_roll_release(&given->roll);
}

static struct tti_nic_names names_of(const struct given *given, int rank)
{
	struct tti_nic_names names;

	tti_nics_name(&given->views, rank, &given->order[rank], &names);
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
		memcpy(given.views.cards[0].ifname[i], "bond0", 6);
	assert_true(given.some);
	assert_int_equal(names_of(&given, 1).n, 1);
	assert_string_equal(names_of(&given, 1).name[0], "bond0");
	assert_int_equal(names_of(&given, 5).n, 1);
	tear_down(&given);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nearest_and_fair),
		cmocka_unit_test(straight_by_network),
		cmocka_unit_test(nothing_to_choose),
		cmocka_unit_test(bonded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
