/* SPDX-License-Identifier: BSD-3-Clause */
/* What is printed of a cluster; the interface; large ones and little memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "clusters.h"
#include "insight/cluster/cluster_report.h"
#include "support/sanitizer.h"
#include "tutti/insight.h"
#include "util/clock.h"
#include "util/fault.h"
/* -- Printing ---------------------------------------------------------------------------------- */

static void hosts_that_differ_are_named_in_words(void **state)
{
	struct tti_xml_doc *doc = read_file(H100_FILE);
	struct tti_cluster *cluster = create();
	json_t *root, *differ;
	struct tti_strbuf out = { 0 };
	char *text;

	(void)state;
	assert_int_equal(tti_cluster_add_many(cluster, "node", 7, doc), TUTTI_OK);
	assert_true(tti_xml_set(doc, nth(doc, "pci", 4), "link_width", "4"));
	add(cluster, "slow7", doc);
	add(cluster, "slow8", doc);
	tti_xml_free(doc);
	doc = read_file(H100_FILE);
	tti_xml_unlink(nth(doc, "gpu", 5)->parent);
	add(cluster, "lost9", doc);
	tti_xml_free(doc);
	doc = read_file(MI50_FILE);
	add(cluster, "amd10", doc);
	tti_xml_free(doc);
	seal(cluster);
	expect(cluster, "11 hosts of 4 kinds, ");
	expect(cluster, "7 hosts, each 2 sockets Intel Sapphire Rapids, 8x GPU sm90, "
			"8x NIC 400 Gb/s\n     node0-6\n");
	expect(cluster, "slow7-8 (B) from kind 0 (A):\n"
			"     GPU1");
	expect(cluster, "lost9 (B) from kind 0 (A):\n     only in A: GPU5 ");
	text = print(cluster);
	assert_null(strstr(text, "amd10 (B)"));
	free(text);
	assert_int_equal(tti_cluster_print_json(cluster, &out), TUTTI_OK);
	text = tti_strbuf_take(&out);
	root = json_loads(text, 0, NULL);
	assert_non_null(root);
	assert_int_equal(json_array_size(json_object_get(root, "hosts")), 11);
	assert_int_equal(json_array_size(json_object_get(root, "kinds")), 4);
	differ = json_object_get(json_object_get(root, "differ"), "kinds");
	assert_int_equal(json_array_size(differ), 2);
	assert_int_equal(json_array_size(json_object_get(json_array_get(differ, 0), "differences")),
			 1);
	json_decref(root);
	free(text);
	tti_cluster_free(cluster);
}

static void an_empty_cluster_prints(void **state)
{
	struct tti_cluster *cluster = create();
	struct tti_strbuf out = { 0 };
	char *text;

	(void)state;
	assert_int_equal(tti_cluster_print(cluster, &out), TUTTI_EUSAGE);
	assert_int_equal(tti_cluster_print_json(cluster, &out), TUTTI_EUSAGE);
	seal(cluster);
	expect(cluster, "0 hosts of 0 kinds, 0 NICs\n");
	assert_int_equal(tti_cluster_print_json(cluster, &out), TUTTI_OK);
	text = tti_strbuf_take(&out);
	free(text);
	tti_cluster_free(cluster);
}

static void the_api_reads_files_and_prints(void **state)
{
	tutti_cluster_t cluster = NULL;
	char path[512], *text = NULL;

	(void)state;
	snprintf(path, sizeof(path), "%s/topologies/%s", TEST_DATA, H100_FILE);
	assert_int_equal(tutti_cluster_make(NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_cluster_make(&cluster), TUTTI_OK);
	assert_int_equal(tutti_cluster_add(cluster, "n", path, 3), TUTTI_OK);
	assert_int_equal(tutti_cluster_add(cluster, "single", path, 0), TUTTI_OK);
	assert_int_equal(tutti_cluster_add(cluster, "x", "/no/such", 0), TUTTI_EINVAL);
	assert_int_equal(tutti_cluster_add(cluster, "x", path, -1), TUTTI_EINVAL);
	assert_int_equal(tutti_cluster_add(NULL, "x", path, 0), TUTTI_EINVAL);
	assert_int_equal(tutti_cluster_read_rails(cluster, NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_cluster_print(cluster, 0, NULL), TUTTI_EINVAL);
	assert_int_equal(tutti_cluster_print(cluster, 0, &text), TUTTI_OK);
	assert_non_null(strstr(text, "4 hosts of 1 kind"));
	free(text);
	assert_int_equal(tutti_cluster_print(cluster, 1, &text), TUTTI_OK);
	assert_int_equal(text[0], '{');
	free(text);
	assert_int_equal(tutti_cluster_add(cluster, "late", path, 0), TUTTI_EUSAGE);
	tutti_cluster_free(cluster);
	tutti_cluster_free(NULL);
}

/* -- Ten thousand hosts -------------------------------------------------------------------------- */

static long resident_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	long pages = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
	fclose(file);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* What this process has spent, which is hardly more on a busy machine. */
static int64_t spent_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Each with GUIDs of its own, so that no document is one that was there before. */
static void ten_thousand_hosts_of_four_kinds_take_seconds_at_most(void **state)
{
	static const char *const names[] = { H100_FILE, A100_FILE, MI50_FILE, V100_FILE };
	struct tti_cluster *cluster = create();
	struct tti_xml_doc *docs[4];
	const long before = resident_kib();
	int64_t spent = 0;
	char name[16];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		docs[i] = read_file(names[i]);
	for (unsigned i = 0; i < 10000; i++) {
		int64_t start;

		snprintf(name, sizeof(name), "node%u", i);
		if (i % 7 == 0) {
			const struct tti_xml *net = nth(docs[0], "net", i % 8);

			/* By hand: setting it 10,000 times is not what is measured. */
			snprintf((char *)tti_xml_get(net, "guid"), 6, "0x1%02x", i & 0xff);
		}
		start = spent_ns();
		assert_int_equal(tti_cluster_add(cluster, name, docs[i % 4]), TUTTI_OK);
		spent += spent_ns() - start;
	}
	spent -= spent_ns();
	seal(cluster);
	spent += spent_ns();
	assert_int_equal(cluster->nkinds, 4);
	assert_int_equal(cluster->nhosts, 10000);
	assert_int_equal(cluster->kinds[2].nhosts, 2500);
	print_message("10,000 hosts: %.0f ms, %ld KiB\n", (double)spent / 1e6,
		      resident_kib() - before);
	if (!TTI_SANITIZED) {
		assert_true(spent < INT64_C(5000000000));
		assert_true(resident_kib() - before < 100 * 1024);
	}
	for (unsigned i = 0; i < 4; i++)
		tti_xml_free(docs[i]);
	tti_cluster_free(cluster);
}

/* -- Short of memory ------------------------------------------------------------------------------ */

static tutti_status all_of_it(const struct tti_xml_doc *a, const struct tti_xml_doc *b,
			      const char *rails, struct tti_strbuf *out)
{
	struct tti_xml_doc *fused = NULL;
	struct tti_cluster *cluster = NULL;
	const uint32_t hosts[] = { 0, 2 };
	tutti_status status = tti_cluster_create(&cluster);

	if (!status)
		status = tti_cluster_add_many(cluster, "n", 2, a);
	if (!status)
		status = tti_cluster_add(cluster, "m", b);
	if (!status && rails)
		status = tti_cluster_read_rails(cluster, rails);
	if (!status)
		status = tti_cluster_seal(cluster);
	if (!status)
		status = tti_cluster_fuse(cluster, hosts, 2, &fused);
	if (!status)
		status = tti_cluster_print(cluster, out);
	if (!status)
		status = tti_cluster_print_json(cluster, out);
	tti_xml_free(fused);
	tti_cluster_free(cluster);
	return status;
}

static void out_of_memory_is_told(void **state)
{
	struct tti_xml_doc *a = gb200(), *b = gb200();
	char path[32];

	(void)state;
	tti_xml_set(b, nth(b, "pci", 0), "link_width", "8");
	set_all(a, "net", "tutti_subnet", "10.0.#.0/24");
	set_all(b, "net", "tutti_subnet", "10.0.#.0/24");
	write_file(path, "* mlx5_0 0 g\nm mlx5_1 1\nm mlx5_2 2\nn? mlx5_2 2\n");
	for (unsigned round = 0; round < 2; round++) {
		tutti_status status = TUTTI_ENOMEM;
		unsigned at = 1;

		for (; status == TUTTI_ENOMEM && at < 20000; at++) {
			struct tti_strbuf out = { 0 };
			char spec[32];

			snprintf(spec, sizeof(spec), "mem:%u", at);
			tti_fault_set(spec);
			status = all_of_it(a, b, round ? path : NULL, &out);
			tti_fault_set(NULL);
			tti_strbuf_release(&out);
		}
		assert_int_equal(status, TUTTI_OK);
		assert_true(at > 50);
	}
	unlink(path);
	tti_xml_free(a);
	tti_xml_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts_that_differ_are_named_in_words),
		cmocka_unit_test(an_empty_cluster_prints),
		cmocka_unit_test(the_api_reads_files_and_prints),
		cmocka_unit_test(ten_thousand_hosts_of_four_kinds_take_seconds_at_most),
		cmocka_unit_test(out_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
