/* SPDX-License-Identifier: BSD-3-Clause */
/* Who belongs to whom, how oversubscribed machines are, and words for what differs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/init/differ.h"
#include "core/init/oversubscription.h"
#include "core/init/peer_info.h"

static void first_of(void **state)
{
	uint64_t key[500];
	int first[500];

	(void)state;
	srand(1);
	for (int round = 0; round < 200; round++) {
		const int n = 1 + rand() % 500, nkeys = 1 + rand() % 40;

		for (int rank = 0; rank < n; rank++)
			key[rank] = (uint64_t)(rand() % nkeys); /* 0: alone */
		assert_int_equal(tti_peers_group(key, n, first), TUTTI_OK);
		for (int rank = 0; rank < n; rank++) {
			int want = 0;

			while (key[rank] && key[want] != key[rank])
				want++;
			assert_int_equal(first[rank], key[rank] ? want : rank);
		}
	}
}

static void oversubscribed(void **state)
{
	struct tti_peer_info info[5] = {
		{ .machine = 1, .ncpus = 2, .allowed = 2, .cpus = { 0x3 } },
		{ .machine = 2, .ncpus = 1, .allowed = 8, .cpus = { 0xff } }, /* a quota */
		{ .machine = 1, .ncpus = 2, .allowed = 2, .cpus = { 0x6 } },
		{ .machine = 3, .ncpus = 4, .allowed = 4 }, /* not known which */
		{ .machine = 2, .ncpus = 1, .allowed = 8, .cpus = { 0xff } },
	};
	const struct tti_peers peers = { .n = 5, .info = info };
	struct tti_oversubscription load[5];

	(void)state;
	assert_int_equal(tti_oversubscription_find(&peers, load), TUTTI_OK);
	for (int rank = 0; rank < 3; rank += 2) {
		assert_int_equal(load[rank].nranks, 2);
		assert_int_equal(load[rank].ncores, 3);
	}
	assert_int_equal(load[1].nranks, 2);
	assert_int_equal(load[1].ncores, 1);
	assert_int_equal(load[4].ncores, 1);
	assert_int_equal(load[3].nranks, 1);
	assert_int_equal(load[3].ncores, 4);
}

static void differ(void (*how)(const struct tti_differ_texts *, char *, size_t), const char *a,
		   const char *b, const char *want)
{
	const struct tti_differ_texts texts = { a, b, strlen(a), strlen(b) };

	/* Whatever there is room for, no more is written. */
	for (size_t size = 1; size < 700; size += 37) {
		char why[701];

		memset(why, 0x7f, sizeof(why));
		how(&texts, why, size);
		assert_non_null(memchr(why, 0, size));
		assert_int_equal(why[size], 0x7f);
		if (size > 600 && !strstr(why, want))
			fail_msg("\"%s\", not \"%s\"", why, want);
	}
}

#define CPU0 "<system version=\"1\"><cpu numaid=\"0\" affinity=\"f\">"
#define GPU(width)                                                                      \
	"<pci busid=\"0000:01:00.0\" class=\"0x030200\" link_speed=\"16.0 GT/s PCIe\" " \
	"link_width=\"" width "\"><gpu dev=\"0\" sm=\"80\" rank=\"0\"/></pci>"

static void differences(void **state)
{
	(void)state;
	differ(tti_differ_topology, CPU0 GPU("16") "</cpu></system>",
	       CPU0 GPU("8") "</cpu></system>", "gen4 x16");
	differ(tti_differ_topology, CPU0 "</cpu></system>", CPU0 GPU("8") "</cpu></system>",
	       "only in B: GPU0");
	differ(tti_differ_topology, CPU0 "</cpu></system>", "<system", "one is no topology: B:");
	/* What the graph does not show. */
	differ(tti_differ_topology, CPU0 "</cpu>\n  <!--b\x01-->\n</system>",
	       CPU0 "</cpu>\n  <!--d-->\n</system>", "one is no topology: A:2:");
	differ(tti_differ_topology, CPU0 "</cpu>\n  <!--b-->\n</system>",
	       CPU0 "</cpu>\n  <!--d-->\n</system>",
	       "line 2 is '<!--b-->' in A and '<!--d-->' in B");
	differ(tti_differ_topology, CPU0 "</cpu></system>", CPU0 "</cpu></system>\n",
	       "only how they end");
	differ(tti_differ_plan, "{}", "[]", "one is no plan: A");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_of),
		cmocka_unit_test(oversubscribed),
		cmocka_unit_test(differences),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
